"""Every default of a standard elementwise primitive against float64 NumPy and SciPy, at the edges of its domain too.

refdev has the 36 required primitives only, so the defaults run there; on cpu the same table checks the native kernels.
"""
from __future__ import annotations

import numpy as np
import pytest

import tensorplay as tp
from tp_testkit.references.elementwise import ELEMENTWISE

DEVICES = ("refdev", "cpu")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")

# Largest error in units of the last place. The exp, log, sin, cos and pow that a default is made of count in it.
UNARY = {
    "reciprocal": 1, "rsqrt": 2, "exp2": 3, "expm1": 4, "log2": 3, "log10": 4, "log1p": 3, "tan": 4, "asin": 4,
    "acos": 4, "atan": 3, "sinh": 5, "cosh": 4, "asinh": 4, "acosh": 4, "atanh": 4, "erf": 4, "erfc": 14, "erfinv": 6,
    "lgamma": 6, "digamma": 6, "ceil": 0, "trunc": 0, "round": 0, "sign": 0,
}
BINARY = {"atan2": 4, "fmod": 0, "remainder": 0, "hypot": 3}
# Functions that cross zero where they are differences of larger numbers: the error counts from this size on.
FLOORS = {"lgamma": 8.0, "digamma": 2.0}


def edges(dtype: type) -> np.ndarray:
    """Zeros, denormals, limits, halves, infinities and NaN, with both signs."""
    limits = np.finfo(dtype)
    values = [0, limits.smallest_subnormal, limits.smallest_subnormal * 77, limits.tiny, 1e-30, 1e-10, 1e-5, 1e-3,
              limits.eps, 0.1, 0.25, 0.42, 0.5, 0.75, 0.999, 1 - limits.epsneg, 1, 1 + limits.eps, 1.25, 1.5, 2, 2.5, 3,
              3.5, 5, 7.5, 8.5, 10, 20, 50, 87, 88.7, 89.4, 100, 127.5, 128, 150, 709.7, 710, 1024, 1e4, 1e6,
              2.0 ** 24 - 1, 2.0 ** 30, 1e17, 1e30, limits.max / 2, limits.max, np.inf, np.nan]
    positive = np.array(values, dtype=dtype)
    return np.concatenate([positive, -positive])


def unary_inputs(dtype: type) -> np.ndarray:
    random = np.random.default_rng(0)
    parts = [edges(dtype), random.uniform(-3, 3, 60), random.uniform(-1, 1, 60), random.uniform(0, 12, 60),
             random.uniform(-90, 90, 30), 10.0 ** random.uniform(-30, 30, 30), 1 - 10.0 ** random.uniform(-7, 0, 30)]
    return np.concatenate([part.astype(dtype) for part in parts])


def binary_inputs(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    some = np.array([0, np.finfo(dtype).smallest_subnormal, np.finfo(dtype).tiny, 0.1, 1, 1.5, 3, 1e17, 1e30,
                     np.finfo(dtype).max, np.inf, np.nan], dtype=dtype)
    some = np.concatenate([some, -some])
    values = np.concatenate([random.uniform(-10, 10, 100), 10.0 ** random.uniform(-30, 30, 100)]).astype(dtype)
    return (np.concatenate([np.repeat(some, some.size), values]),
            np.concatenate([np.tile(some, some.size), random.permutation(values)]))


def on_device(array: np.ndarray, device: str) -> tp.Tensor:
    return tp.tensor(array.tolist(), dtype=getattr(tp, array.dtype.name), device=device)


def run(name: str, device: str, *arrays: np.ndarray) -> np.ndarray:
    result = getattr(tp, name)(*[on_device(array, device) for array in arrays])
    return np.array(result.tolist(), dtype=result.dtype.name)


def reference(name: str, *arrays: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(ELEMENTWISE[name](*[array.astype(np.float64) for array in arrays]), dtype=np.float64)


def errors(got: np.ndarray, expected: np.ndarray, floor: float = 0.0) -> np.ndarray:
    """How far off each value is, in units of the last place; inf for a wrong NaN, infinity or sign of zero."""
    dtype, limits = got.dtype, np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        rounded = expected.astype(dtype)
        size = np.minimum(np.maximum(np.abs(rounded), dtype.type(floor)), limits.max)
        off = np.abs(got.astype(np.float64) - expected) / np.spacing(size).astype(np.float64)
    off = np.where((got == rounded) & (np.signbit(got) == np.signbit(rounded)), 0.0, off)
    off = np.where((got == 0) & (rounded == 0) & (np.signbit(got) != np.signbit(rounded)), np.inf, off)
    return np.where(np.isnan(expected), np.where(np.isnan(got), 0.0, np.inf), np.where(np.isnan(got), np.inf, off))


def check(name: str, device: str, limit: float, *arrays: np.ndarray) -> None:
    got, expected = run(name, device, *arrays), reference(name, *arrays)
    assert got.dtype == arrays[0].dtype
    off = errors(got, expected, FLOORS.get(name, 0.0))
    worst = int(np.argmax(off))
    assert off[worst] <= limit, (f"{name}({', '.join(repr(array[worst]) for array in arrays)}) on {device} is "
                                 f"{got[worst]!r}, should be {expected[worst]!r}: {off[worst]:.1f} ulp of {limit}")


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("device", DEVICES)
def test_unary(name: str, device: str, dtype: type) -> None:
    check(name, device, UNARY[name], unary_inputs(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("device", DEVICES)
def test_binary(name: str, device: str, dtype: type) -> None:
    check(name, device, BINARY[name], *binary_inputs(dtype))


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
@pytest.mark.parametrize("device", DEVICES)
def test_float16_computes_in_float32(name: str, device: str) -> None:
    """Within one unit of the rounded result, where results of that size exist at all."""
    random = np.random.default_rng(2)
    values = np.concatenate([random.uniform(-4, 4, 60), [0.0, -0.0, np.inf, -np.inf, np.nan]]).astype(np.float16)
    arrays = (values,) if name in UNARY else (values, np.roll(values, 7))
    check(name, device, 1, *arrays)


@pytest.mark.parametrize("name", [name for name in UNARY if name not in ("ceil", "trunc", "round", "sign")])
@pytest.mark.parametrize("device", DEVICES)
def test_integers_become_floats(name: str, device: str) -> None:
    values = np.array([0, 1, 2, 3, 7], dtype=np.int32)
    got = run(name, device, values)
    assert got.dtype == np.float32
    assert errors(got, reference(name, values), FLOORS.get(name, 0.0)).max() <= UNARY[name]


@pytest.mark.parametrize("device", DEVICES)
def test_logarithms_of_powers_are_exact(device: str) -> None:
    powers = np.arange(-149, 128)
    got = run("log2", device, (2.0 ** powers).astype(np.float32))
    np.testing.assert_array_equal(got, powers)
    np.testing.assert_array_equal(run("log10", device, 10.0 ** np.arange(23)), np.arange(23))


def integer_pairs(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    limits = np.iinfo(dtype)
    values = sorted({limits.min, limits.min + 1, 0, 1, 2, 3, 7, limits.max // 2, limits.max - 1, limits.max}
                    | ({-1, -2, -3, -7} if limits.min else set()))
    array = np.array(values, dtype=dtype)
    return np.repeat(array, array.size), np.tile(array, array.size)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["remainder", "fmod"])
@pytest.mark.parametrize("device", DEVICES)
def test_integer_remainders(name: str, device: str, dtype: str) -> None:
    x, y = (array[integer_pairs(dtype)[1] != 0] for array in integer_pairs(dtype))
    whole = [int(a) - int(b) * (int(a) // int(b)) for a, b in zip(x, y)]
    if name == "fmod":  # the sign of the dividend instead of the divisor's
        whole = [rest - int(b) if rest and (a < 0) != (b < 0) else rest for rest, a, b in zip(whole, x, y)]
    got = run(name, device, x, y)
    assert got.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(got, np.array(whole, dtype=dtype))


@pytest.mark.parametrize("name", ["floor_divide", "trunc_divide", "remainder", "fmod"])
@pytest.mark.parametrize("device", DEVICES)
def test_integer_division_by_zero_is_refused(name: str, device: str) -> None:
    with pytest.raises(tp.TensorPlayError, match="zero"):
        run(name, device, np.array([1, 2]), np.array([1, 0]))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("left", [True, False], ids=["left", "right"])
@pytest.mark.parametrize("device", DEVICES)
def test_shifts(left: bool, device: str, dtype: str) -> None:
    limits, bits = np.iinfo(dtype), np.dtype(dtype).itemsize * 8
    numbers = np.array([limits.min, limits.min + 1, 1, 5, limits.max // 3, limits.max], dtype=dtype)
    counts = [0, 1, 2, bits // 2, bits - 2, bits - 1, bits, bits + 1, 100] + ([-1, limits.min] if limits.min else [])
    x, count = np.repeat(numbers, len(counts)), np.tile(np.array(counts, dtype=dtype), numbers.size)
    expected = ELEMENTWISE["shift_left" if left else "shift_right"](x, count)
    got = run("bitwise_left_shift" if left else "bitwise_right_shift", device, x, count)
    assert got.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("device", DEVICES)
def test_integers_stay_exact(device: str, dtype: str) -> None:
    x, y = integer_pairs(dtype)
    for name in ("ceil", "trunc", "round"):
        np.testing.assert_array_equal(run(name, device, x), x)
    np.testing.assert_array_equal(run("sign", device, x), np.sign(x))
    np.testing.assert_array_equal(run("le", device, x, y), x <= y)
    product = run("fma", device, x, y, y)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(product, (x * y + y).astype(dtype))


@pytest.mark.parametrize("device", DEVICES)
def test_comparisons_with_nan_and_zeros(device: str) -> None:
    values = np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan], dtype=np.float32)
    x, y = np.repeat(values, values.size), np.tile(values, values.size)
    for name in ("eq", "ne", "lt", "le", "gt", "ge", "maximum", "minimum", "fmax", "fmin"):
        np.testing.assert_array_equal(run(name, device, x, y), ELEMENTWISE[name](x, y), err_msg=name)
    for name in ("isnan", "isinf", "isfinite", "isposinf", "isneginf"):
        np.testing.assert_array_equal(run(name, device, values), ELEMENTWISE[name](values), err_msg=name)


def test_nextafter_runs_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TP_FALLBACK", "count")
    x, y = np.array([0.0, 1.0, 1.0, np.inf], np.float32), np.array([1.0, 2.0, 0.0, 0.0], np.float32)
    for device in DEVICES:
        np.testing.assert_array_equal(run("nextafter", device, x, y), np.nextafter(x, y))
