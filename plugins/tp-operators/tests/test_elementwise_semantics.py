"""What elementwise operators promise beyond their values: dtypes, refused operands, bounds, NaN, in-place forms."""
from __future__ import annotations

import math

import pytest

import tensorplay as tp
from tensorplay import library
from tensorplay.library import find_function

DEVICES = ("cpu", "refdev", "meta")
VALUES = ("cpu", "refdev")
NAN, INF = math.nan, math.inf


def same(got: tp.Tensor, expected: list) -> bool:
    """Equal lists, NaN equal to NaN."""
    return str(got.tolist()) == str(expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("name", "dtype", "message"), [
    ("bitwise_and", tp.float32, "bitwise_and: takes bool or integer operands, but input is float32"),
    ("bitwise_left_shift", tp.bool, "shift_left: takes integer operands, but input is bool"),
    ("remainder", tp.complex64, "remainder: takes integer or floating point operands, but input is complex64"),
    ("lt", tp.complex64, "lt: takes bool or integer or floating point operands"),
    ("lerp", tp.int64, "lerp: takes floating point or complex operands, but input is int64"),
    ("maximum", tp.complex64, "maximum: takes bool or integer or floating point operands"),
])
def test_refused_dtypes(name: str, dtype: tp.dtype, message: str, device: str) -> None:
    x = tp.ones(2, dtype=dtype, device=device)
    with pytest.raises(library.DTypeError, match=message):
        getattr(tp, name)(x, x, *([x] if name == "lerp" else []))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["gelu", "silu", "elu", "leaky_relu", "hardswish", "mish", "softplus"])
def test_activations_refuse_integers(name: str, device: str) -> None:
    with pytest.raises(library.DTypeError, match=rf"{name}: takes floating point operands, but input is int64"):
        find_function(name, "NN_FUNCTIONS")(tp.ones(2, dtype=tp.int64, device=device))


@pytest.mark.parametrize("device", DEVICES)
def test_promotion(device: str) -> None:
    small, half = tp.ones(3, dtype=tp.int8, device=device), tp.ones(3, dtype=tp.float16, device=device)
    assert tp.exp(small).dtype is tp.float32
    assert tp.atan2(small, half).dtype is tp.float16
    assert tp.remainder(small, tp.ones(3, dtype=tp.uint8, device=device)).dtype is tp.int16
    assert tp.floor(small).dtype is tp.int8 and tp.sign(small).dtype is tp.int8
    assert tp.clamp(small, 0, 2).dtype is tp.int8 and tp.clamp(small, 0.5).dtype is tp.float32
    assert tp.where(small > 0, small, 1.5).dtype is tp.float32
    assert (small < 1.5).dtype is tp.bool and tp.logical_and(small, half).dtype is tp.bool
    assert tp.abs(tp.ones(2, dtype=tp.complex64, device=device)).dtype is tp.float32
    assert tp.masked_fill(small, small > 0, 2.5).dtype is tp.int8


@pytest.mark.parametrize("device", DEVICES)
def test_bad_arguments(device: str) -> None:
    x = tp.ones(2, 3, device=device)
    with pytest.raises(library.ArgumentError, match="at least one of min and max"):
        tp.clamp(x)
    with pytest.raises(library.DTypeError, match="condition must be bool, got float32"):
        tp.where(x, x, x)
    with pytest.raises(library.ArgumentError, match="both input and other"):
        tp.where(x > 0, x)
    with pytest.raises(library.ValueRangeError, match="'none' or 'tanh', got 'exact'"):
        tp.gelu(x, approximate="exact")
    with pytest.raises(library.ShapeError, match=r"prelu: weight\[2\] must have 1 element"):
        tp.prelu(x, tp.ones(2, device=device))
    with pytest.raises(library.ShapeError, match=r"size 3 .* cannot be halved"):
        find_function("glu", "NN_FUNCTIONS")(x)
    with pytest.raises(library.ShapeError, match=r"atan2: input\[2, 3\], other\[2\] do not broadcast"):
        library.infer(tp.atan2.op, (x, tp.ones(2, device=device)))


@pytest.mark.parametrize("device", VALUES)
def test_nan_and_infinities(device: str) -> None:
    x = tp.tensor([NAN, INF, -INF, -0.5], device=device)
    assert same(tp.sign(x), [0.0, 1.0, -1.0, -1.0])
    assert same(tp.relu(x), [NAN, INF, 0.0, 0.0])
    assert same(tp.clamp(x, 3, 2), [NAN, 2.0, 2.0, 2.0])
    assert same(tp.heaviside(x, 0.5), [0.0, 1.0, 0.0, 0.0])
    assert same(tp.nan_to_num(x, 7.0, 8.0, 9.0), [7.0, 8.0, 9.0, -0.5])
    assert same(tp.fmax(x, 1.0), [1.0, INF, 1.0, 1.0])
    assert same(tp.hypot(x, INF), [INF, INF, INF, INF])
    assert same(tp.logaddexp(x, x)[1:3], [INF, -INF])
    assert same(tp.xlogy(0.0, x), [NAN, 0.0, 0.0, 0.0])
    assert same(tp.isclose(x, x), [False, True, True, True])
    assert same(tp.isclose(x, x, equal_nan=True), [True, True, True, True])
    assert same(tp.frac(x)[3:], [-0.5])


@pytest.mark.parametrize("device", VALUES)
def test_integer_edges(device: str) -> None:
    unsigned = tp.tensor([0, 1, 200], dtype=tp.uint8, device=device)
    assert tp.clamp(unsigned, -5, 300).tolist() == [0, 1, 200]
    assert tp.clamp_max(unsigned, 7).tolist() == [0, 1, 7]
    assert tp.isclose(unsigned, tp.tensor([1, 1, 200], dtype=tp.uint8, device=device)).tolist() == [False, True, True]
    assert tp.abs(tp.tensor([-128, -3], dtype=tp.int8, device=device)).tolist() == [-128, 3]
    assert tp.addcmul(tp.tensor([1], device=device), tp.tensor([2], device=device), tp.tensor([3], device=device),
                      value=2).tolist() == [13]
    assert [tp.trunc_divide(tp.tensor([7, -7], device=device), n).tolist() for n in (2, -2)] == [[3, -3], [-3, 3]]


@pytest.mark.parametrize("device", VALUES)
def test_inplace_forms(device: str) -> None:
    x = tp.tensor([-1.5, 0.0, 2.5], device=device)
    assert x.clone().relu_().tolist() == [0.0, 0.0, 2.5]
    assert x.clone().clamp_(-1, 1).tolist() == [-1.0, 0.0, 1.0]
    assert x.clone().floor_().tolist() == [-2.0, 0.0, 2.0]
    assert x.clone().masked_fill_(x > 0, 9).tolist() == [-1.5, 0.0, 9.0]
    y = x.clone()
    assert find_function("hardtanh", "NN_FUNCTIONS")(y, inplace=True) is y and y.tolist() == [-1.0, 0.0, 1.0]
    with pytest.raises(library.DTypeError, match="cannot be stored in a int64 tensor"):
        tp.tensor([1, 2], device=device).exp_()


@pytest.mark.parametrize("device", VALUES)
def test_gradients_at_edges(device: str) -> None:
    def gradient(function, *values: float) -> list:
        x = tp.tensor(list(values), device=device, requires_grad=True)
        function(x).sum().backward()
        return x.grad.tolist()

    assert gradient(tp.relu, -1.0, 0.0, 1.0) == [0.0, 0.0, 1.0]
    assert gradient(lambda x: tp.clamp(x, 0, 1), -1.0, 0.0, 1.0, 2.0) == [0.0, 1.0, 1.0, 0.0]
    assert gradient(lambda x: tp.maximum(x, 1.0), 0.0, 1.0, 2.0) == [0.0, 0.5, 1.0]
    assert gradient(find_function("elu", "NN_FUNCTIONS"), 0.0, 1000.0) == [1.0, 1.0]
    assert gradient(tp.sinc, 0.0) == [0.0]
    assert gradient(tp.abs, -2.0, 0.0, 2.0) == [-1.0, 0.0, 1.0]
    assert gradient(lambda x: tp.logaddexp(x, x), INF, 0.0) == [1.0, 1.0]
    assert gradient(find_function("softplus", "NN_FUNCTIONS"), 1000.0, 0.0) == [1.0, 0.5]
