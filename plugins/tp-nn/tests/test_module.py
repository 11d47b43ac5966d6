"""Module: registries, walking, modes, moving, copies."""
from __future__ import annotations

import copy
import pickle

import pytest

import tensorplay as tp
from tensorplay import nn
from tensorplay.library import ArgumentError, TensorPlayError


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.scale = nn.Parameter(tp.ones(3))
        self.register_buffer("mean", tp.zeros(3))
        self.register_buffer("scratch", tp.zeros(1), persistent=False)
        self.second = nn.Linear(3, 1, bias=False)

    def forward(self, x):
        return self.second(self.first(x) * self.scale - self.mean)


def names(iterator) -> list[str]:
    return [name for name, _ in iterator]


def test_registries_are_found_by_walking() -> None:
    net = Net()
    assert names(net.named_parameters()) == ["scale", "first.weight", "first.bias", "second.weight"]
    assert names(net.named_buffers()) == ["mean", "scratch"]
    assert names(net.named_modules()) == ["", "first", "second"]
    assert names(net.named_children()) == ["first", "second"]
    assert names(net.named_parameters(recurse=False)) == ["scale"]
    assert names(net.named_parameters(prefix="net")) == ["net.scale", "net.first.weight", "net.first.bias",
                                                         "net.second.weight"]
    assert net.get_submodule("first") is net.first and net.get_submodule("") is net
    assert net.get_parameter("first.bias") is net.first.bias and net.get_buffer("mean") is net.mean


def test_shared_parameters_and_modules_count_once() -> None:
    net = Net()
    net.second.weight = net.other = net.scale
    net.again = net.first
    assert len(list(net.parameters())) == 3
    assert names(net.named_parameters(remove_duplicate=False)) == [
        "scale", "other", "first.weight", "first.bias", "second.weight", "again.weight", "again.bias"]
    assert names(net.named_modules()) == ["", "first", "second"]


def test_replacing_keeps_the_place() -> None:
    net = Net()
    net.first = nn.Linear(2, 3, bias=False)
    net.scale = nn.Parameter(tp.zeros(3))
    net.mean = tp.ones(3)
    assert list(net.state_dict()) == ["scale", "mean", "first.weight", "second.weight"]
    assert net(tp.ones(1, 2)).item() == -net.second.weight.sum().item()


def test_a_name_stands_in_one_registry() -> None:
    net = Net()
    net.scale = None
    assert net.scale is None and names(net.named_parameters(recurse=False)) == []
    net.mean = nn.Parameter(tp.zeros(3))
    assert names(net.named_buffers()) == ["scratch"] and "mean" in names(net.named_parameters())
    net.extra = nn.Buffer(tp.ones(2), persistent=False)
    assert "extra" in names(net.named_buffers()) and "extra" not in net.state_dict()
    del net.first
    assert not hasattr(net, "first") and names(net.named_modules()) == ["", "second"]


@pytest.mark.parametrize(("change", "error", "message"), [
    (lambda n: setattr(n, "scale", 3), ArgumentError,
     "Net.scale is a parameter: assign a tp.nn.Parameter or None, not int"),
    (lambda n: setattr(n, "first", "x"), ArgumentError, "Net.first is a submodule: assign a Module or None, not str"),
    (lambda n: setattr(n, "mean", 1.0), ArgumentError, "Net.mean is a buffer: assign a Tensor or None, not float"),
    (lambda n: n.register_buffer("scale", tp.ones(1)), KeyError,
     "Net already has an attribute 'scale'; choose another"),
    (lambda n: n.register_parameter("mean", None), KeyError, "Net already has an attribute 'mean'; choose another"),
    (lambda n: n.register_module("forward", None), KeyError, "Net already has an attribute 'forward'"),
    (lambda n: n.register_module("a.b", None), KeyError, "must not be empty or contain dots, got 'a.b'"),
    (lambda n: n.register_module("", None), KeyError, "must not be empty or contain dots, got ''"),
    (lambda n: n.register_module(3, None), ArgumentError, "must be a string, got 3"),
    (lambda n: n.register_module("m", tp.ones(1)), ArgumentError, "'m' must be a Module or None, got Tensor"),
    (lambda n: n.register_parameter("p", tp.ones(1)), ArgumentError, "expected a Parameter, got Tensor"),
    (lambda n: n.register_buffer("b", [1]), ArgumentError, "expected a Tensor, got list"),
    (lambda n: n.frist, AttributeError, "'Net' object has no attribute 'frist'; did you mean 'first'?"),
    (lambda n: delattr(n, "scael"), AttributeError, "has no attribute 'scael'; did you mean 'scale'?"),
    (lambda n: n.get_submodule("first.weight"), AttributeError, "'weight' is not a module"),
    (lambda n: n.get_parameter("first"), AttributeError, "'first' is not a parameter"),
    (lambda n: n.get_buffer("scale"), AttributeError, "'scale' is not a buffer"),
    (lambda n: n.train(1), ArgumentError, "train takes a bool, got 1"),
    (lambda n: n.to(tp.int64), ArgumentError, "floating point or complex dtypes, got tensorplay.int64"),
    (lambda n: n.to(3), ArgumentError, "takes a device, a dtype or a tensor, got int 3"),
    (lambda n: n.to(devcie="cpu"), ArgumentError, "Module.to has no argument 'devcie'"),
    (lambda n: n.to("warp"), TensorPlayError, "there is no device 'warp'"),
    (lambda n: nn.Module()(1), NotImplementedError, "Module has no forward method"),
    (lambda n: nn.Parameter([1.0]), ArgumentError, "Parameter takes a Tensor, got list; make one with tp.tensor"),
])
def test_refuses(change, error, message) -> None:
    net = Net()
    before = names(net.named_parameters())
    with pytest.raises(error) as caught:
        change(net)
    assert message in str(caught.value)
    assert names(net.named_parameters()) == before


def test_without_super_init() -> None:
    class Forgetful(nn.Module):
        def __init__(self) -> None:
            self.layer = nn.Linear(1, 1)

    with pytest.raises(ArgumentError, match=r"Forgetful: call super\(\).__init__\(\) before assigning 'layer'"):
        Forgetful()


def test_properties_with_setters_are_honoured() -> None:
    class Gauge(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.level = 2

        @property
        def level(self) -> int:
            return self.doubled // 2

        @level.setter
        def level(self, value: int) -> None:
            self.doubled = 2 * value

    assert Gauge().doubled == 4 and Gauge().level == 2


def test_modes_reach_everything_below() -> None:
    net = nn.Sequential(Net(), nn.Dropout(0.5))
    assert not any(m.training for m in net.eval().modules())
    assert all(m.training for m in net.train().modules())
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())
    seen = []
    net.apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["Linear", "Linear", "Net", "Dropout", "Sequential"]


def test_zero_grad() -> None:
    net = Net()
    net(tp.ones(1, 2)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert net.scale.grad.tolist() == [0.0, 0.0, 0.0]
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())


@pytest.mark.parametrize("convert", [lambda n: n.double(), lambda n: n.to(tp.float64), lambda n: n.to(dtype=tp.float64),
                                     lambda n: n.to("cpu", tp.float64), lambda n: n.type(tp.float64),
                                     lambda n: n.to(tp.zeros(1, dtype=tp.float64))])
def test_conversion_keeps_the_parameter_objects_and_skips_integers(convert) -> None:
    net = Net()
    net.register_buffer("count", tp.tensor(3))
    weight = net.first.weight
    net(tp.ones(1, 2)).sum().backward()
    assert convert(net) is net
    assert net.first.weight is weight and weight.dtype is tp.float64 and weight.grad.dtype is tp.float64
    assert net.mean.dtype is tp.float64 and net.count.dtype is tp.int64
    assert net(tp.ones(1, 2, dtype=tp.float64)).dtype is tp.float64


def test_moves_to_another_device() -> None:
    net = Net().to("meta")
    assert net(tp.ones(4, 2, device="meta")).shape == (4, 1)
    assert {str(t.device) for t in [*net.parameters(), *net.buffers()]} == {"meta"}


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_are_independent_and_whole(duplicate) -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    net.tied = net[0]
    made = duplicate(net)
    assert made[0].weight is not net[0].weight and made[0].weight is made[0]._parameters["weight"]
    assert type(made[0].weight) is nn.Parameter and made[0].weight.requires_grad
    assert made.tied is made[0]
    with tp.no_grad():
        made[0].weight.zero_()
    assert net[0].weight.abs().sum().item() > 0


def test_parameter() -> None:
    weight = nn.Parameter(tp.ones(2), requires_grad=False)
    assert not weight.requires_grad and weight.is_leaf
    assert repr(nn.Parameter(tp.ones(2))) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert type(nn.Parameter(tp.ones(2)) + 1) is tp.Tensor
