"""Sequential, ModuleList, ModuleDict, ParameterList: list and dict operations with the names they leave."""
from __future__ import annotations

import pytest

import tensorplay as tp
from tensorplay import nn


def kinds(container) -> list[tuple[str, str]]:
    return [(name, type(module).__name__) for name, module in container.named_children()]


def three(kind):
    parts = [nn.ReLU(), nn.Tanh(), nn.Sigmoid()]
    return kind(*parts) if kind is nn.Sequential else kind(parts)


BOTH = [nn.Sequential, nn.ModuleList]
EDITS = [
    (lambda c: c.__setitem__(0, nn.SiLU()), [("0", "SiLU"), ("1", "Tanh"), ("2", "Sigmoid")]),
    (lambda c: c.__setitem__(-1, nn.SiLU()), [("0", "ReLU"), ("1", "Tanh"), ("2", "SiLU")]),
    (lambda c: c.__delitem__(0), [("0", "Tanh"), ("1", "Sigmoid")]),
    (lambda c: c.__delitem__(slice(0, 2)), [("0", "Sigmoid")]),
    (lambda c: c.append(nn.SiLU()), [("0", "ReLU"), ("1", "Tanh"), ("2", "Sigmoid"), ("3", "SiLU")]),
    (lambda c: c.extend([nn.SiLU()] * 1), [("0", "ReLU"), ("1", "Tanh"), ("2", "Sigmoid"), ("3", "SiLU")]),
    (lambda c: c.insert(1, nn.SiLU()), [("0", "ReLU"), ("1", "SiLU"), ("2", "Tanh"), ("3", "Sigmoid")]),
    (lambda c: c.pop(1), [("0", "ReLU"), ("1", "Sigmoid")]),
]


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(("edit", "expected"), EDITS)
def test_edits(kind, edit, expected) -> None:
    container = three(kind)
    edit(container)
    assert kinds(container) == expected and len(container) == len(expected)
    assert [type(m).__name__ for m in container] == [name for _, name in expected]


@pytest.mark.parametrize("kind", BOTH)
def test_indexing(kind) -> None:
    container = three(kind)
    assert type(container[-1]).__name__ == "Sigmoid"
    assert type(container[1:]) is kind and [type(m).__name__ for m in container[1:]] == ["Tanh", "Sigmoid"]
    assert container[:1][0] is container[0]
    for broken in (lambda: container[3], lambda: container[-4], lambda: container.__setitem__(3, nn.ReLU())):
        with pytest.raises(IndexError, match=f"out of range for {kind.__name__} of length 3"):
            broken()


def test_sequential_calls_in_order_and_takes_names() -> None:
    model = nn.Sequential({"stretch": nn.Linear(1, 1, bias=False), "shift": nn.Linear(1, 1)})
    with tp.no_grad():
        for parameter, value in zip(model.parameters(), (2.0, 1.0, 5.0)):
            parameter.fill_(value)
    assert model(tp.tensor([[3.0]])).item() == 11.0
    assert kinds(model[1:]) == [("shift", "Linear")]


@pytest.mark.parametrize(("make", "message"), [
    (lambda: nn.Sequential(nn.ReLU(), tp.relu), "Sequential: '1' must be a Module or None, got function"),
    (lambda: nn.ModuleList([3]), "ModuleList: '0' must be a Module or None, got int"),
    (lambda: nn.ModuleDict({"a": "b"}), "ModuleDict: 'a' must be a Module or None, got str"),
    (lambda: nn.ModuleDict({"keys": nn.ReLU()}), "ModuleDict already has an attribute 'keys'"),
    (lambda: nn.ModuleDict({"a": nn.ReLU()})["b"], "ModuleDict has no module 'b'; it has a"),
    (lambda: nn.ModuleDict().pop("b"), "ModuleDict has no module 'b'; it has none"),
    (lambda: nn.ModuleList()(1), "ModuleList has no forward method"),
    (lambda: nn.ParameterList([tp.ones(1)])[1], "index 1 is out of range for ParameterList of length 1"),
])
def test_refuses(make, message) -> None:
    with pytest.raises((TypeError, KeyError, IndexError, NotImplementedError)) as caught:
        make()
    assert message in str(caught.value)


def test_module_list_adds() -> None:
    first = three(nn.ModuleList)
    joined = first + [nn.SiLU()]
    assert len(joined) == 4 and len(first) == 3
    first += [nn.SiLU()]
    assert kinds(first)[-1] == ("3", "SiLU")


def test_module_dict() -> None:
    made = nn.ModuleDict({"a": nn.ReLU()})
    made["b"] = nn.Tanh()
    made["a"] = nn.Sigmoid()
    assert list(made) == ["a", "b"] and "a" in made and len(made) == 2
    assert [type(m).__name__ for m in made.values()] == ["Sigmoid", "Tanh"]
    assert type(made.pop("a")).__name__ == "Sigmoid" and list(made.keys()) == ["b"]
    made.clear()
    assert len(made) == 0 and list(made.items()) == []


def test_parameter_list() -> None:
    made = nn.ParameterList(tp.full((1,), float(i)) for i in range(12))
    assert [p.item() for p in made] == [float(i) for i in range(12)] and made[-1].item() == 11.0
    made[10] = tp.ones(1)
    assert [name for name, _ in made.named_parameters()] == [str(i) for i in range(12)]
    assert isinstance(made[10], nn.Parameter) and made[10].item() == 1.0
