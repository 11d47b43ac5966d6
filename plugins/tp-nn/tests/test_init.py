"""Initial values: bounds, means and deviations of large weights, and what each layer starts with."""
from __future__ import annotations

import math

import pytest

import tensorplay as tp
from tensorplay import nn
from tensorplay.nn import init

FAN_IN, FAN_OUT = 300, 200


def statistics(tensor) -> tuple[float, float, float, float]:
    values = tensor.detach().double()
    return values.mean().item(), values.std().item(), values.min().item(), values.max().item()


def uniform(bound: float) -> tuple:
    return 0.0, bound / math.sqrt(3), bound


CASES = [  # (initialiser, mean, deviation, largest magnitude or None)
    (lambda w: init.uniform_(w, -2, 2), *uniform(2)),
    (lambda w: init.normal_(w, 1, 0.5), 1, 0.5, None),
    (lambda w: init.trunc_normal_(w, 0, 1, -2, 2), 0, 0.8796, 2),
    (lambda w: init.xavier_uniform_(w), *uniform(math.sqrt(6 / 500))),
    (lambda w: init.xavier_normal_(w, gain=2), 0, 2 * math.sqrt(2 / 500), None),
    (lambda w: init.kaiming_uniform_(w), *uniform(math.sqrt(6 / FAN_IN))),
    (lambda w: init.kaiming_uniform_(w, a=math.sqrt(5)), *uniform(1 / math.sqrt(FAN_IN))),
    (lambda w: init.kaiming_normal_(w, nonlinearity="relu"), 0, math.sqrt(2 / FAN_IN), None),
    (lambda w: init.kaiming_normal_(w, mode="fan_out", nonlinearity="tanh"), 0, 5 / 3 / math.sqrt(FAN_OUT), None),
    (lambda w: nn.Linear(FAN_IN, FAN_OUT).weight, *uniform(1 / math.sqrt(FAN_IN))),
    (lambda w: nn.Linear(9, 60_000).bias, *uniform(1 / 3)),
    (lambda w: nn.Embedding(FAN_OUT, FAN_IN).weight, 0, 1, None),
]


@pytest.mark.parametrize(("fill", "mean", "deviation", "largest"), CASES)
def test_statistics(fill, mean, deviation, largest) -> None:
    tp.manual_seed(0)
    filled = fill(nn.Parameter(tp.empty(FAN_OUT, FAN_IN)))
    assert filled.requires_grad and filled.grad_fn is None
    found_mean, found_deviation, low, high = statistics(filled)
    assert abs(found_mean - mean) < 0.02 * deviation
    assert abs(found_deviation / deviation - 1) < 0.01
    if largest is not None:
        assert -largest * 1.0001 <= low < -0.99 * largest and 0.99 * largest < high <= largest * 1.0001


def test_constants() -> None:
    weight = tp.empty(2, 3)
    assert init.ones_(weight) is weight and weight.tolist() == [[1.0] * 3] * 2
    assert init.zeros_(weight).tolist() == [[0.0] * 3] * 2
    assert init.constant_(weight, 2.5).tolist() == [[2.5] * 3] * 2
    assert init.eye_(weight).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    assert nn.LayerNorm(2).weight.tolist() == [1.0, 1.0] and nn.LayerNorm(2).bias.tolist() == [0.0, 0.0]
    assert nn.RMSNorm(2).weight.tolist() == [1.0, 1.0]


def test_same_seed_same_weights() -> None:
    tp.manual_seed(3)
    first = nn.Linear(4, 4).weight.tolist()
    tp.manual_seed(3)
    assert nn.Linear(4, 4).weight.tolist() == first
    assert nn.Linear(4, 4).weight.tolist() != first


@pytest.mark.parametrize(("name", "param", "gain"), [
    ("linear", None, 1.0), ("conv2d", None, 1.0), ("sigmoid", None, 1.0), ("tanh", None, 5 / 3), ("selu", None, 0.75),
    ("relu", None, math.sqrt(2)), ("leaky_relu", None, math.sqrt(2 / 1.0001)),
    ("leaky_relu", 0.2, math.sqrt(2 / 1.04))])
def test_gains(name, param, gain) -> None:
    assert init.calculate_gain(name, param) == pytest.approx(gain)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: init.calculate_gain("swish"), TypeError, "unknown nonlinearity 'swish'; one of conv1d"),
    (lambda: init.kaiming_normal_(tp.empty(3)), ValueError, r"at least two dimensions, got \[3\]"),
    (lambda: init.kaiming_normal_(tp.empty(3, 3), mode="fan"), TypeError,
     "mode must be 'fan_in' or 'fan_out', got 'fan'"),
    (lambda: init.eye_(tp.empty(3)), ValueError, r"eye_ needs a matrix, got \[3\]"),
])
def test_refuses(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("make", [lambda: nn.Linear(0, 3), lambda: nn.Linear(3, 0), lambda: nn.Embedding(0, 3)])
def test_empty_layers(make) -> None:
    assert 0 in make().weight.shape
