"""`backward` and `grad`: accumulation, retained and recorded graphs, selected inputs, and the errors."""
from __future__ import annotations

import gc
import threading
import weakref

import pytest

import tensorplay as tp
from tensorplay import autograd
from tensorplay.library import ArgumentError, AutogradError


def leaf(*values: float) -> tp.Tensor:
    return tp.tensor([float(value) for value in values], requires_grad=True)


def test_the_first_program() -> None:
    x = tp.Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    z = x.matmul(tp.Tensor([[5.0, 6.0], [7.0, 8.0]])) + tp.ones_like(x)
    z.sum().backward()

    assert x.grad.tolist() == [[11.0, 15.0], [11.0, 15.0]]


def test_gradients_add_up_in_place() -> None:
    x = leaf(1, 2)
    (x * 2).sum().backward()
    first = x.grad
    (x * 3).sum().backward()

    assert x.grad is first
    assert first.tolist() == [5.0, 5.0]


def test_a_gradient_that_others_can_see_is_not_kept_itself() -> None:
    x, y, given = leaf(1, 2), leaf(3, 4), tp.tensor([1.0, 1.0])
    (x + y).backward(given)
    x.grad.add_(1)

    assert (y.grad.tolist(), given.tolist()) == ([1.0, 1.0], [1.0, 1.0])


def test_a_gradient_that_nobody_sees_is_kept_without_a_copy() -> None:
    x, seen = leaf(1, 2), []

    class Watch(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            made = grad * 3
            seen.append(made.storage)
            return made

    Watch.apply(x).sum().backward()

    assert x.grad.storage is not seen.pop()  # `seen` had it too

    class Quiet(Watch):
        @staticmethod
        def backward(ctx, grad):
            made = grad * 3
            seen.append(id(made))
            return made

    x.grad = None
    Quiet.apply(x).sum().backward()

    assert id(x.grad) == seen[0]


def test_expanded_gradients_get_memory_of_their_own() -> None:
    x = leaf(1, 2)
    x.sum().backward()
    x.sum().backward()

    assert x.grad.tolist() == [2.0, 2.0]


def test_backward_twice() -> None:
    x = leaf(1, 2)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()

    assert x.grad.tolist() == [4.0, 8.0]
    with pytest.raises(AutogradError, match="MulBackward0: cannot go backward a second time"):
        y.backward()


def test_only_wanted_inputs() -> None:
    x, w = leaf(1, 2), leaf(3, 4)
    middle = x * w
    (middle * w).sum().backward(inputs=[w])

    assert (x.grad, w.grad.tolist()) == (None, [6.0, 16.0])


def test_grad_of_leaves_middles_and_outputs() -> None:
    x = leaf(1, 2)
    y = x * 3
    z = (y * y).sum()

    found = autograd.grad(z, (x, y, z))

    assert [g.tolist() for g in found] == [[18.0, 36.0], [6.0, 12.0], 1.0]
    assert x.grad is None


def test_create_graph() -> None:
    x = tp.tensor(2.0, requires_grad=True)
    values, y = [], x ** 4
    for _ in range(4):
        (y,) = autograd.grad(y, x, create_graph=True)
        values.append(y.item())

    assert values == [32.0, 48.0, 48.0, 24.0]


def test_backward_with_create_graph_gives_a_gradient_with_a_graph() -> None:
    x = tp.tensor(3.0, requires_grad=True)
    (x * x * x).backward(create_graph=True)
    penalty = x.grad * x.grad
    x.grad = None
    penalty.backward()

    assert x.grad.item() == 2 * 27 * 18


def test_unused_inputs() -> None:
    x, unused = leaf(1), leaf(2, 3)

    with pytest.raises(AutogradError, match=r"do not depend on input 1 \(shape \[2\]\)"):
        autograd.grad((x * 2).sum(), (x, unused))
    assert autograd.grad((x * 2).sum(), (x, unused), allow_unused=True)[1] is None
    assert autograd.grad((x * 2).sum(), (x, unused), materialize_grads=True)[1].tolist() == [0.0, 0.0]


x0, plain = leaf(1, 2), tp.ones(2)
MISUSE = {
    "no graph": (lambda: plain.sum().backward(), AutogradError, "has no graph"),
    "not a scalar": (lambda: (x0 * 2).backward(), AutogradError, r"has shape \[2\], and only a scalar"),
    "gradient's shape": (lambda: (x0 * 2).backward(tp.ones(3)), AutogradError, r"has shape \[3\], but .* \[2\]"),
    "gradient's type": (lambda: (x0 * 2).backward(1.0), AutogradError, "must be a Tensor, got float"),
    "input without grad": (lambda: autograd.grad(x0.sum(), plain), AutogradError, "input 0 does not require grad"),
    "input's type": (lambda: autograd.grad(x0.sum(), 3), ArgumentError, "input 0 must be a Tensor, got int"),
    "number of gradients": (lambda: autograd.grad([x0.sum()], x0, [None, None]), ArgumentError, "1 tensors but 2"),
    "batched": (lambda: autograd.grad(x0.sum(), x0, is_grads_batched=True), ArgumentError, "not supported"),
    "empty inputs": (lambda: x0.sum().backward(inputs=[]), ArgumentError, "inputs is empty"),
    "hook on plain": (lambda: plain.register_hook(print), AutogradError, "register_hook: the tensor does not require"),
    "requires_grad off": (lambda: (x0 * 2).requires_grad_(False), AutogradError, "only be turned off on leaf"),
}


@pytest.mark.parametrize("name", MISUSE)
def test_misuse(name: str) -> None:
    call, kind, message = MISUSE[name]
    with pytest.raises(kind, match=message):
        call()


def test_under_no_grad_nothing_is_recorded() -> None:
    x = leaf(1)
    with tp.no_grad():
        y = x * 2
        with tp.enable_grad():
            z = x * 2

    assert (y.requires_grad, y.grad_fn, z.requires_grad) == (False, None, True)


def test_a_graph_goes_away_without_the_garbage_collector() -> None:
    x = leaf(1, 2)
    gc.collect()
    gc.disable()
    try:
        y = (x.exp() * x).tanh()
        y = y[0:1] + y
        y.mul_(y)
        kept = weakref.ref(y)
        loss = y.sum()
        loss.backward()
        del y, loss
        assert kept() is None
    finally:
        gc.enable()


@pytest.mark.slow
def test_a_million_operations() -> None:
    x = leaf(1)
    y = x
    for _ in range(1_000_000):
        y = -y
    y.sum().backward()

    assert x.grad.tolist() == [1.0]
    del y


def test_threads_run_backward_at_once() -> None:
    x = leaf(*range(100))
    failures: list = []

    def work() -> None:
        try:
            for _ in range(50):
                (x * 2).sum().backward()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert x.grad.tolist() == [400.0] * 100


def test_a_backward_inside_a_backward() -> None:
    x = leaf(2.0)

    class Checkpoint(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, grad):
            with tp.enable_grad():
                again = ctx.saved_tensors[0].detach().requires_grad_()
                (again * again * again).backward(grad)
            return again.grad

    Checkpoint.apply(x * 2).sum().backward()

    assert x.grad.tolist() == [96.0]
