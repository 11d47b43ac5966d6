"""Ten steps of every optimizer over all of its arguments, against float64 NumPy."""
from __future__ import annotations

import numpy as np
import pytest

import tensorplay as tp
from tensorplay import optim

STEPS = 10
SHAPES = [(4, 3), (5,), (), (0, 2), (70, 33)]
CASES = [
    ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}), ("SGD", {"lr": 0.1, "weight_decay": 0.2}),
    ("SGD", {"lr": 0.1, "maximize": True, "weight_decay": 0.2}),
    ("SGD", {"lr": 0.1, "momentum": 0.5, "nesterov": True, "maximize": True, "weight_decay": 0.2}),
    ("Adam", {}), ("Adam", {"lr": 0.1}), ("Adam", {"lr": 0.1, "betas": (0.5, 0.8)}), ("Adam", {"lr": 0.1, "eps": 0.3}),
    ("Adam", {"lr": 0.1, "betas": (0.0, 0.9)}), ("Adam", {"lr": 0.1, "weight_decay": 0.2}),
    ("Adam", {"lr": 0.1, "amsgrad": True}), ("Adam",
                                             {"lr": 0.1, "maximize": True, "amsgrad": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.2, "decoupled_weight_decay": True}),
    ("AdamW", {}), ("AdamW", {"lr": 0.1}), ("AdamW", {"lr": 0.1, "weight_decay": 0.0}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.3, "amsgrad": True}), ("AdamW", {"lr": 0.1, "maximize": True}),
    ("AdamW", {"lr": 0.1, "betas": (0.7, 0.9), "eps": 1e-3}),
]
TOLERANCE = {"float64": 1e-11, "float32": 3e-5, "bfloat16": 0.15,
             "float16": 0.06}  # squares of small gradients are subnormal


def run(name: str, named: dict, dtype: str, place) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    starts = [rng.normal(size=shape) for shape in SHAPES]
    params = [place(tp.tensor(start, dtype=getattr(tp, dtype))).requires_grad_() for start in starts]
    optimizer = getattr(optim, name)(params, **named)
    for _ in range(STEPS):
        for param, shape in zip(params, SHAPES):
            param.grad = place(tp.tensor(rng.normal(size=shape), dtype=getattr(tp, dtype)))
        optimizer.step()
    return [param.detach().double().numpy() for param in params]


def expected(update, named: dict) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    params = [rng.normal(size=shape) for shape in SHAPES]
    states: list[dict] = [{} for _ in SHAPES]
    for _ in range(STEPS):
        params = [update(param, rng.normal(size=param.shape), state, **named) for param, state in zip(params, states)]
    return params


def as_it_is(x):
    return x


def transposed(x):
    """The same values, stored column by column."""
    return x.t().contiguous().t() if x.ndim == 2 else x


@pytest.mark.parametrize("place", [as_it_is, transposed])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("name", "named"), CASES, ids=[f"{n}-{','.join(map(str, k))}" for n, k in CASES])
def test_updates(references, name, named, dtype, place) -> None:
    for found, wanted in zip(run(name, named, dtype, place), expected(getattr(references, name.lower()), named)):
        np.testing.assert_allclose(found, wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(("name", "named"), [("SGD", {"lr": 0.1, "momentum": 0.9}),
                                             ("AdamW", {"lr": 0.01, "eps": 1e-3})])
def test_short_floats(references, name, named, dtype) -> None:
    for found, wanted in zip(run(name, named, dtype, as_it_is), expected(getattr(references, name.lower()), named)):
        np.testing.assert_allclose(found, wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def two_steps(threads: int) -> list[float]:
    before = tp.get_num_threads()
    tp.set_num_threads(threads)
    try:
        w = tp.arange(200_000, dtype=tp.float32).div(1e5).requires_grad_()
        optimizer = optim.AdamW([w], lr=0.1)
        for _ in range(2):
            w.grad = w.detach().cos()
            optimizer.step()
    finally:
        tp.set_num_threads(before)
    return w.tolist()


def test_thread_count_does_not_matter() -> None:
    assert two_steps(1) == two_steps(2) == two_steps(3)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_parameters_without_gradient_stand_still_and_join_later(references, name) -> None:
    named = {"lr": 0.1, **({"momentum": 0.9} if name == "SGD" else {})}
    update = getattr(references, name.lower())
    params = [tp.ones(2, dtype=tp.float64, requires_grad=True) for _ in range(2)]
    optimizer = getattr(optim, name)(params, **named)
    wanted, states = [np.ones(2), np.ones(2)], [{}, {}]
    for step in range(6):
        optimizer.zero_grad()
        for i in (0, 1) if step >= 3 else (0,):
            params[i].grad = tp.tensor([1.0, -2.0 - step], dtype=tp.float64)
            wanted[i] = update(wanted[i], np.array([1.0, -2.0 - step]), states[i], **named)
        optimizer.step()
    for param, value in zip(params, wanted):
        np.testing.assert_allclose(param.detach().numpy(), value, rtol=1e-12)


def test_learning_rate_may_be_a_tensor() -> None:
    w = tp.ones(1, requires_grad=True)
    optimizer = optim.SGD([w], lr=tp.tensor(0.5))
    w.grad = tp.ones(1)
    optimizer.step()
    assert w.item() == 0.5


@pytest.mark.parametrize("make", [lambda p: optim.SGD(p, lr=0.1), lambda p: optim.AdamW(p, lr=0.1)])
def test_a_step_counts_as_a_change_in_place(make) -> None:
    w = tp.ones(2, requires_grad=True)
    loss = (w * w).sum()
    loss.backward(retain_graph=True)
    make([w]).step()
    with pytest.raises(RuntimeError, match=r"changed in place by (sgd|adamw)_step"):
        loss.backward()


def test_a_step_records_no_graph() -> None:
    w = tp.ones(2, requires_grad=True)
    optimizer = optim.Adam([w])
    w.grad = tp.ones(2)
    optimizer.step()
    assert w.is_leaf and w.requires_grad and not optimizer.state[w]["exp_avg"].requires_grad


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
@pytest.mark.parametrize(("shape", "grad"), [((3,), (1,)), ((2, 3), (3, 2)), ((2,), (3,)), ((1,), (3,))])
def test_a_gradient_of_another_shape_is_refused(name, shape, grad) -> None:
    w = tp.ones(*shape, requires_grad=True)
    w.grad = tp.ones(*grad)
    with pytest.raises(ValueError, match=rf"parameter 0 has shape \[{shape[0]}.*\], its gradient \[{grad[0]}.*\]"):
        getattr(optim, name)([w], lr=0.1).step()
    assert w.detach().sum().item() == w.numel()
