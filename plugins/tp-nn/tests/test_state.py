"""state_dict and load_state_dict: names, sharing, strictness, and that a refused state changes nothing."""
from __future__ import annotations

import pytest

import tensorplay as tp
from tensorplay import nn


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.LayerNorm(3))


KEYS = ["0.weight", "0.bias", "2.weight", "2.bias"]


def test_state_shares_memory_and_carries_no_graph() -> None:
    model = net()
    state = model.state_dict()
    assert list(state) == KEYS and not any(v.requires_grad for v in state.values())
    with tp.no_grad():
        model[0].weight.zero_()
    assert state["0.weight"].abs().sum().item() == 0
    assert model.state_dict(keep_vars=True)["0.weight"] is model[0].weight
    assert list(model.state_dict(prefix="m.", destination={"x": 1})) == ["x", *["m." + k for k in KEYS]]


def test_round_trip_copies_values_and_keeps_objects() -> None:
    source, target = net(), net()
    weight = target[0].weight
    result = target.load_state_dict(source.state_dict())
    assert result.missing_keys == [] and result.unexpected_keys == []
    assert target[0].weight is weight and weight.tolist() == source[0].weight.tolist()
    assert weight.requires_grad


def test_dtypes_are_converted_and_assign_takes_the_tensors() -> None:
    state = {k: v.double() for k, v in net().state_dict().items()}
    target = net()
    target.load_state_dict(state)
    assert target[0].weight.dtype is tp.float32
    target.load_state_dict(state, assign=True)
    assert target[0].weight.dtype is tp.float64 and type(target[0].weight) is nn.Parameter
    assert target[0].weight.requires_grad and target[0].weight.storage is state["0.weight"].storage


def renamed(state: dict, old: str, new: str) -> dict:
    return {new if name == old else name: value for name, value in state.items()}


REFUSED = [
    (lambda s: {k: v for k, v in s.items() if k != "2.bias"}, "missing: 2.bias"),
    (lambda s: {**s, "extra": tp.ones(1)}, "unexpected: extra"),
    (lambda s: renamed(s, "0.weight", "fc.weight"),
     "missing: 0.weight\n  unexpected: fc.weight (renamed to 0.weight?)"),
    (lambda s: {**s, "0.weight": tp.ones(3, 4)}, "0.weight has shape [3, 4] in the state but [3, 2] in the module"),
    (lambda s: {**s, "0.weight": [1]}, "0.weight is list, not a Tensor"),
    (lambda s: {**s, "0.weight": tp.ones(3, 2, dtype=tp.complex64)}, "0.weight is complex64 in the state but float32"),
    (lambda s: {**s, "0.weight": tp.ones(3, 2, device="meta")}, "0.weight is on the meta device and has no values"),
    (lambda s: {**s, 5: tp.ones(1)}, "unexpected: 5"),
    (lambda s: {**s, **{f"x{i}": tp.ones(1) for i in range(500)}}, "x19 and 480 more"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_refused_states_change_nothing(change, message) -> None:
    model, other = net(), net()
    before = [p.tolist() for p in model.parameters()]
    with pytest.raises(ValueError) as caught:
        model.load_state_dict(change(other.state_dict()))
    text = str(caught.value)
    assert text.startswith("Sequential.load_state_dict changed nothing, because the state does not fit:\n  ")
    assert message in text and isinstance(caught.value, RuntimeError)
    assert [p.tolist() for p in model.parameters()] == before


def test_not_strict_reports_instead() -> None:
    model = net()
    found = model.load_state_dict({"0.bias": tp.ones(3), "extra": tp.ones(1)}, strict=False)
    assert found.missing_keys == ["0.weight", "2.weight", "2.bias"] and found.unexpected_keys == ["extra"]
    assert model[0].bias.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(RuntimeError, match="has shape"):
        model.load_state_dict({"0.bias": tp.ones(4)}, strict=False)


def test_takes_only_mappings() -> None:
    with pytest.raises(TypeError, match="takes a mapping from names to tensors, got list"):
        net().load_state_dict([1])
