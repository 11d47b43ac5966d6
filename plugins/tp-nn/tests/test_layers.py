"""Layers and losses against float64 NumPy, forward and (by finite differences of the same NumPy code) gradient."""
from __future__ import annotations

import math

import numpy as np
import pytest

import tensorplay as tp
from tensorplay import nn

RNG = np.random.default_rng(0)


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def normal_cdf(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def layer_norm(x: np.ndarray, weight=1.0, bias=0.0, eps: float = 1e-5) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * weight + bias


def rms_norm(x: np.ndarray, weight=1.0, eps: float = np.finfo(float).eps) -> np.ndarray:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


LAYERS = [  # (name, layer, its reference on x and the layer's own parameters, shape of x)
    ("linear", lambda: nn.Linear(4, 3), lambda x, weight, bias: x @ weight.T + bias, (5, 4)),
    ("linear no bias", lambda: nn.Linear(4, 3, bias=False), lambda x, weight: x @ weight.T, (2, 5, 4)),
    ("linear vector", lambda: nn.Linear(4, 3), lambda x, weight, bias: x @ weight.T + bias, (4,)),
    ("linear no rows", lambda: nn.Linear(4, 3), lambda x, weight, bias: x @ weight.T + bias, (0, 4)),
    ("layer norm", lambda: nn.LayerNorm(6), layer_norm, (3, 6)),
    ("layer norm plain", lambda: nn.LayerNorm(6, eps=0.1, elementwise_affine=False), lambda x: layer_norm(x, eps=0.1),
     (3, 6)),
    ("layer norm no bias", lambda: nn.LayerNorm(6, bias=False), layer_norm, (2, 3, 6)),
    ("rms norm", lambda: nn.RMSNorm(6), rms_norm, (3, 6)),
    ("rms norm eps", lambda: nn.RMSNorm(6, eps=0.1), lambda x, weight: rms_norm(x, weight, 0.1), (6,)),
    ("rms norm plain", lambda: nn.RMSNorm(6, elementwise_affine=False), rms_norm, (1, 6)),
    ("relu", nn.ReLU, lambda x: np.maximum(x, 0), (3, 4)),
    ("gelu", nn.GELU, lambda x: x * normal_cdf(x), (3, 4)),
    ("gelu tanh", lambda: nn.GELU("tanh"),
     lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))), (3, 4)),
    ("silu", nn.SiLU, lambda x: x / (1 + np.exp(-x)), (3, 4)),
    ("tanh", nn.Tanh, np.tanh, (3, 4)),
    ("sigmoid", nn.Sigmoid, lambda x: 1 / (1 + np.exp(-x)), ()),
    ("softmax", lambda: nn.Softmax(0), lambda x: softmax(x, 0), (3, 4)),
    ("log softmax", lambda: nn.LogSoftmax(-1), lambda x: np.log(softmax(x)), (3, 4)),
    ("flatten", nn.Flatten, lambda x: x.reshape(2, 12), (2, 3, 4)),
    ("flatten part", lambda: nn.Flatten(0, 1), lambda x: x.reshape(6, 4), (2, 3, 4)),
    ("identity", lambda: nn.Identity(1, two=2), lambda x: x, (2,)),
    ("dropout in evaluation", lambda: nn.Dropout(0.5).eval(), lambda x: x, (3, 4)),
    ("swiglu", lambda: nn.SwiGLU(4, 5),
     lambda x, gate, up, down: ((x @ gate.T) / (1 + np.exp(-(x @ gate.T))) * (x @ up.T)) @ down.T, (3, 4)),
]


def shaken(layer: nn.Module) -> list[np.ndarray]:
    """Give every parameter random values, and return them in float64."""
    values = []
    with tp.no_grad():
        for parameter in layer.parameters():
            values.append(RNG.normal(size=parameter.shape))
            parameter.copy_(tp.tensor(values[-1]))
    return values


def slope(function, arrays: list[np.ndarray], which: int, weight: np.ndarray) -> np.ndarray:
    """Central differences of sum(weight * function(*arrays)) with respect to one array."""
    out, step = np.zeros_like(arrays[which]), 1e-6
    for place in np.ndindex(out.shape):
        ends = []
        for sign in (1, -1):
            moved = [a.copy() for a in arrays]
            moved[which][place] += sign * step
            ends.append((weight * function(*moved)).sum())
        out[place] = (ends[0] - ends[1]) / (2 * step)
    return out


@pytest.mark.parametrize(("make", "reference", "shape"), [case[1:] for case in LAYERS], ids=[c[0] for c in LAYERS])
def test_layer(make, reference, shape) -> None:
    layer = make().double()
    arrays = [RNG.normal(size=shape), *shaken(layer)]
    x = tp.tensor(arrays[0], requires_grad=True)
    y = layer(x)
    expected = reference(*arrays)
    assert y.shape == expected.shape
    np.testing.assert_allclose(y.detach().numpy(), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(layer.float()(x.detach().float()).detach().numpy(), expected, rtol=2e-5, atol=1e-5)
    layer.double().zero_grad()
    weight = RNG.normal(size=expected.shape)
    (layer(x) * tp.tensor(weight)).sum().backward()
    for which, tensor in enumerate([x, *layer.parameters()]):
        np.testing.assert_allclose(tensor.grad.numpy(), slope(reference, arrays, which, weight), rtol=1e-5, atol=1e-7)


LOGITS, CLASSES = RNG.normal(size=(5, 4)), np.array([0, 3, 1, 1, 2])
WEIGHT = np.array([1.0, 2.0, 0.5, 3.0])
PICK = np.arange(5), CLASSES
LOG_P = np.log(softmax(LOGITS))
OTHER, BINARY = RNG.normal(size=(5, 4)), (RNG.normal(size=(5, 4)) > 0).astype(float)


def stable_bce(x: np.ndarray, y: np.ndarray, pos_weight=1.0) -> np.ndarray:
    return -(pos_weight * y * -np.log1p(np.exp(-x)) + (1 - y) * -np.log1p(np.exp(x)))


LOSSES = [
    (nn.CrossEntropyLoss(), LOGITS, CLASSES, -LOG_P[PICK].mean()),
    (nn.CrossEntropyLoss(reduction="sum"), LOGITS, CLASSES, -LOG_P[PICK].sum()),
    (nn.CrossEntropyLoss(reduction="none"), LOGITS, CLASSES, -LOG_P[PICK]),
    (nn.CrossEntropyLoss(ignore_index=1), LOGITS, CLASSES, -LOG_P[PICK][CLASSES != 1].mean()),
    (nn.CrossEntropyLoss(tp.tensor(WEIGHT)), LOGITS, CLASSES,
     -(LOG_P[PICK] * WEIGHT[CLASSES]).sum() / WEIGHT[CLASSES].sum()),
    (nn.CrossEntropyLoss(label_smoothing=0.1), LOGITS, CLASSES,
     (0.9 * -LOG_P[PICK] + 0.1 * -LOG_P.mean(1)).mean()),
    (nn.CrossEntropyLoss(), LOGITS, softmax(OTHER), -(LOG_P * softmax(OTHER)).sum(1).mean()),
    (nn.NLLLoss(), LOG_P, CLASSES, -LOG_P[PICK].mean()),
    (nn.NLLLoss(tp.tensor(WEIGHT), reduction="sum"), LOG_P, CLASSES, -(LOG_P[PICK] * WEIGHT[CLASSES]).sum()),
    (nn.MSELoss(), LOGITS, OTHER, ((LOGITS - OTHER) ** 2).mean()),
    (nn.MSELoss(reduction="sum"), LOGITS, OTHER, ((LOGITS - OTHER) ** 2).sum()),
    (nn.L1Loss(reduction="none"), LOGITS, OTHER, abs(LOGITS - OTHER)),
    (nn.BCEWithLogitsLoss(), LOGITS, BINARY, stable_bce(LOGITS, BINARY).mean()),
    (nn.BCEWithLogitsLoss(pos_weight=tp.tensor(WEIGHT)), LOGITS, BINARY, stable_bce(LOGITS, BINARY, WEIGHT).mean()),
    (nn.BCEWithLogitsLoss(tp.tensor(WEIGHT)), LOGITS, BINARY, (stable_bce(LOGITS, BINARY) * WEIGHT).mean()),
]


@pytest.mark.parametrize(("loss", "x", "target", "expected"), LOSSES,
                         ids=[f"{i}-{case[0]._get_name()}" for i, case in enumerate(LOSSES)])
def test_loss(loss, x, target, expected) -> None:
    found = loss(tp.tensor(x, requires_grad=True), tp.tensor(target))
    assert found.requires_grad
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-10)


@pytest.mark.parametrize(("named", "reduction"), [({"size_average": False}, "sum"), ({"size_average": True}, "mean"),
                                                  ({"reduce": False}, "none"), ({"reduce": True}, "mean")])
def test_old_reduction_arguments_mean_what_they_meant(named, reduction) -> None:
    for kind in (nn.MSELoss, nn.CrossEntropyLoss, nn.NLLLoss, nn.BCEWithLogitsLoss):
        with pytest.warns(DeprecationWarning, match=f"use reduction='{reduction}'"):
            assert kind(**named).reduction == reduction


def test_embedding() -> None:
    table = nn.Embedding(6, 3, padding_idx=-2)
    assert table.padding_idx == 4 and table.weight[4].tolist() == [0.0, 0.0, 0.0]
    ids = tp.tensor([[1, 4], [1, 5]])
    rows = table(ids)
    assert rows.tolist() == table.weight.detach().numpy()[ids.numpy()].tolist()
    rows.sum().backward()
    assert table.weight.grad.sum(1).tolist() == [0.0, 6.0, 0.0, 0.0, 0.0, 3.0]
    assert table(tp.zeros(0, dtype=tp.int64)).shape == (0, 3)
    frozen = nn.Embedding.from_pretrained(tp.ones(4, 2))
    assert not frozen.weight.requires_grad and frozen(tp.tensor([3])).tolist() == [[1.0, 1.0]]
    with pytest.raises(NotImplementedError, match="max_norm"):
        nn.Embedding(4, 2, max_norm=1.0)(tp.tensor([0]))


def test_dropout_keeps_the_mean_and_follows_the_seed() -> None:
    drop, x = nn.Dropout(0.25), tp.ones(100_000)
    tp.manual_seed(1)
    first = drop(x)
    assert set(first.tolist()) == {0.0, tp.tensor(1 / 0.75).item()}
    assert abs(first.mean().item() - 1) < 0.01
    tp.manual_seed(1)
    assert (drop(x) == first).all().item()
    assert nn.Dropout(1.0)(x).abs().sum().item() == 0


@pytest.mark.parametrize("make", [lambda: nn.ReLU(inplace=True), lambda: nn.SiLU(inplace=True)])
def test_in_place_activations_write_into_their_input(make) -> None:
    x = tp.tensor([-1.0, 2.0])
    expected = type(make())()(x.clone()).tolist()
    assert make()(x) is x and x.tolist() == expected
