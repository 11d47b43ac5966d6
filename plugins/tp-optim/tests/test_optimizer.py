"""What all optimizers share: groups, state_dict as torch lays it out, closures, refusals."""
from __future__ import annotations

import copy
import pickle

import pytest

import tensorplay as tp
from tensorplay import nn, optim

KINDS = [("SGD", {"lr": 0.1, "momentum": 0.9}), ("Adam", {"lr": 0.1, "amsgrad": True}), ("AdamW", {"lr": 0.1})]


def pair() -> list:
    return [nn.Parameter(tp.ones(2)), nn.Parameter(tp.ones(3, 1))]


def advance(params: list, optimizer, steps: int = 1) -> None:
    for step in range(steps):
        for param in params:
            param.grad = tp.full_like(param, 0.5 + step).detach()
        optimizer.step()


def values(params: list) -> list:
    return [p.tolist() for p in params]


# The literal dictionaries that torch 2.13 gives.
ADAM_GROUP = {"lr": 0.1, "betas": (0.9, 0.999), "eps": 1e-08, "weight_decay": 0, "amsgrad": False, "maximize": False,
              "foreach": None, "capturable": False, "differentiable": False, "fused": None,
              "decoupled_weight_decay": False, "params": [0, 1]}
SGD_GROUP = {"lr": 0.1, "momentum": 0, "dampening": 0, "weight_decay": 0, "nesterov": False, "maximize": False,
             "foreach": None, "differentiable": False, "fused": None, "params": [0, 1]}


@pytest.mark.parametrize(("kind", "group"), [
    (optim.SGD, SGD_GROUP), (optim.Adam, ADAM_GROUP),
    (optim.AdamW, {**ADAM_GROUP, "weight_decay": 0.01, "decoupled_weight_decay": True})])
def test_state_dict_layout(kind, group) -> None:
    params = pair()
    optimizer = kind(params, lr=0.1)
    assert optimizer.state_dict() == {"state": {}, "param_groups": [group]}
    params[0].grad = tp.full((2,), 2.0)
    optimizer.step()
    state = optimizer.state_dict()["state"]
    if kind is optim.SGD:
        assert state == {}
        return
    assert list(state) == [0] and list(state[0]) == ["step", "exp_avg", "exp_avg_sq"]
    assert state[0]["step"].dtype is tp.float32 and state[0]["step"].shape == () and state[0]["step"].item() == 1
    assert state[0]["exp_avg"].tolist() == pytest.approx([0.2, 0.2])
    assert state[0]["exp_avg_sq"].tolist() == pytest.approx([0.004, 0.004])


def test_momentum_buffer_is_in_the_state() -> None:
    params = pair()
    optimizer = optim.SGD(params, lr=0.1, momentum=0.9)
    advance(params, optimizer)
    state = optimizer.state_dict()["state"]
    assert list(state) == [0, 1] and state[0]["momentum_buffer"].tolist() == [0.5, 0.5]


def test_repr_as_torch_prints_it() -> None:
    assert repr(optim.SGD(pair(), lr=0.1)) == (
        "SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n    foreach: None\n    fused: None\n"
        "    lr: 0.1\n    maximize: False\n    momentum: 0\n    nesterov: False\n    weight_decay: 0\n)")


@pytest.mark.parametrize(("name", "named"), KINDS)
@pytest.mark.parametrize("carry", [lambda s: s, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_a_loaded_state_continues_exactly(name, named, carry) -> None:
    one, two = pair(), pair()
    first, second = getattr(optim, name)(one, **named), getattr(optim, name)(two, lr=7.0)
    advance(one, first, 3)
    with tp.no_grad():
        for mine, theirs in zip(two, one):
            mine.copy_(theirs)
    second.load_state_dict(carry(first.state_dict()))
    assert second.param_groups[0]["lr"] == 0.1
    advance(one, first, 3)
    advance(two, second, 3)
    assert values(one) == values(two)


def test_loading_copies_and_converts() -> None:
    one, two = pair(), [nn.Parameter(p.detach().double()) for p in pair()]
    first, second = optim.Adam(one), optim.Adam(two)
    advance(one, first)
    second.load_state_dict(first.state_dict())
    moment = second.state[two[0]]["exp_avg"]
    assert moment.dtype is tp.float64 and second.state[two[0]]["step"] == 1
    advance(one, first)
    assert moment.tolist() == pytest.approx([0.05, 0.05])


@pytest.mark.parametrize(("change", "message"), [
    (lambda s: {**s, "param_groups": s["param_groups"] * 2},
     "has groups of [2, 2] parameters, this optimizer has groups of [2]"),
    (lambda s: {**s, "param_groups": [{**s["param_groups"][0], "params": [0]}]}, "groups of [1] parameters"),
    (lambda s: {**s, "state": {0: {"exp_avg": tp.ones(5)}}}, "exp_avg of parameter 0 has shape [5], the parameter [2]"),
    (lambda s: {**s, "state": {9: {}}}, "there is state for parameter 9, but the groups have 0, 1"),
    (lambda s: {"state": {}}, "takes a dict with 'state' and 'param_groups', got ['state']"),
    (lambda s: [1], "takes a dict with 'state' and 'param_groups', got list"),
])
def test_refused_states_change_nothing(change, message) -> None:
    params = pair()
    optimizer = optim.Adam(params)
    advance(params, optimizer)
    before = optimizer.state[params[0]]["exp_avg"].tolist(), optimizer.param_groups[0]["lr"]
    with pytest.raises((ValueError, TypeError)) as caught:
        optimizer.load_state_dict(change(optimizer.state_dict()))
    assert message in str(caught.value)
    assert (optimizer.state[params[0]]["exp_avg"].tolist(), optimizer.param_groups[0]["lr"]) == before


def test_groups_have_settings_of_their_own() -> None:
    fast, slow, late = nn.Parameter(tp.ones(1)), nn.Parameter(tp.ones(1)), nn.Parameter(tp.ones(1))
    optimizer = optim.SGD([{"params": [fast], "lr": 0.5}, {"params": slow}], lr=0.1)
    optimizer.add_param_group({"params": iter([late]), "lr": 0.25})
    for param in (fast, slow, late):
        param.grad = tp.ones(1)
    optimizer.step()
    assert [fast.item(), slow.item(), late.item()] == pytest.approx([0.5, 0.9, 0.75])
    assert [g["params"] for g in optimizer.state_dict()["param_groups"]] == [[0], [1], [2]]
    optimizer.param_groups[2]["lr"] = 0.0
    optimizer.step()
    assert late.item() == 0.75


def test_named_parameters() -> None:
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.param_groups[0]["params"][1] is model.bias


def test_state_replaced_by_the_user_is_seen() -> None:
    params = pair()
    optimizer = optim.SGD(params, lr=0.1, momentum=0.9)
    advance(params, optimizer, 2)
    optimizer.state.clear()
    advance(params, optimizer)
    assert optimizer.state[params[0]]["momentum_buffer"].tolist() == [0.5, 0.5]


def test_closure_runs_with_gradients_and_its_loss_is_returned() -> None:
    w = nn.Parameter(tp.tensor([3.0]))
    optimizer = optim.SGD([w], lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    with tp.no_grad():
        assert optimizer.step(closure).item() == 9.0
    assert w.item() == 0.0


def test_zero_grad() -> None:
    params = pair()
    optimizer = optim.SGD(params, lr=0.1)
    params[0].grad = kept = tp.ones(2)
    optimizer.zero_grad(set_to_none=False)
    assert params[0].grad is kept and kept.tolist() == [0.0, 0.0] and params[1].grad is None
    optimizer.zero_grad()
    assert params[0].grad is None


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_go_on_alone(duplicate) -> None:
    params = pair()
    optimizer = optim.Adam(params, lr=0.1)
    advance(params, optimizer)
    other_params, other = duplicate((params, optimizer))
    assert other.param_groups[0]["params"][0] is other_params[0]
    before = values(params)
    advance(other_params, other)
    assert values(params) == before and other.state[other_params[0]]["step"] == 2


LEAF = nn.Parameter(tp.ones(1))


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: optim.SGD([], lr=0.1), ValueError, "SGD got an empty list of parameters"),
    (lambda: optim.SGD(LEAF, lr=0.1), TypeError,
     "an iterable of tensors or dicts, got a single Tensor; write [tensor]"),
    (lambda: optim.SGD([1.0], lr=0.1), TypeError, "optimizer parameters must be Tensors, got float"),
    (lambda: optim.SGD([LEAF * 2], lr=0.1), ValueError,
     "cannot change a tensor that was computed; give it leaf tensors"),
    (lambda: optim.SGD([LEAF, LEAF], lr=0.1), ValueError, "a parameter appears in more than one group, or twice"),
    (lambda: optim.SGD([{"lr": 1}], lr=0.1), TypeError, "must be a dict with 'params', got {'lr': 1}"),
    (lambda: optim.SGD([{"params": {LEAF}}], lr=0.1), TypeError, "got a set; use a list"),
    (lambda: optim.SGD([LEAF], lr=-1), ValueError, "SGD: lr must not be negative, got -1"),
    (lambda: optim.SGD([LEAF], lr=float("nan")), ValueError, "SGD: lr must not be negative, got nan"),
    (lambda: optim.SGD([LEAF], momentum=-0.1), ValueError, "SGD: momentum must not be negative, got -0.1"),
    (lambda: optim.SGD([LEAF], nesterov=True), ValueError, "nesterov needs a positive momentum and no dampening"),
    (lambda: optim.Adam([LEAF], betas=(0.9, 1.0)), ValueError, "Adam: betas[1] must be in [0, 1), got 1.0"),
    (lambda: optim.AdamW([LEAF], eps=-1), ValueError, "AdamW: eps must not be negative, got -1"),
    (lambda: optim.AdamW([LEAF], weight_decay=-1), ValueError, "AdamW: weight_decay must not be negative, got -1"),
    (lambda: optim.AdamW([LEAF], differentiable=True), NotImplementedError, "differentiable=True"),
    (lambda: optim.Optimizer([LEAF], {}).step() or advance([LEAF], optim.Optimizer([LEAF], {})), NotImplementedError,
     "Optimizer has no update"),
])
def test_refuses(make, error, message) -> None:
    with pytest.raises(error) as caught:
        make()
    assert message in str(caught.value)
