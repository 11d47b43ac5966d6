"""Between Python numbers and bytes, and the Python protocols that read a tensor's values."""
from __future__ import annotations

import math
import operator
import struct

import numpy
import pytest

import tensorplay as tp
from tensorplay._data import pack, unpack
from tensorplay._errors import ArgumentError, DeviceError, ShapeError, ValueRangeError
from tensorplay.library import from_bytes, to_bytes

nan, inf = float("nan"), float("inf")

EXACT = [  # (dtype, values that come back as they were, with the same class)
    ("bool", [True, False]),
    ("uint8", [0, 1, 255]), ("int8", [-128, -1, 0, 127]), ("int16", [-32768, 32767]), ("uint16", [0, 65535]),
    ("int32", [-2 ** 31, 2 ** 31 - 1]), ("uint32", [0, 2 ** 32 - 1]), ("int64", [-2 ** 63, 2 ** 63 - 1]),
    ("uint64", [0, 2 ** 64 - 1]),
    ("float16", [0.0, -0.0, 1.5, -65504.0, 65504.0, 2.0 ** -24, inf, -inf]),
    ("bfloat16", [0.0, -0.0, 1.5, 2.0 ** 127, -(2.0 ** -126), 2.0 ** -133, 3.3895313892515355e38, inf, -inf]),
    ("float32", [0.0, -0.0, 1.5, 3.4028234663852886e38, 1.401298464324817e-45, inf, -inf]),
    ("float64", [0.1, -0.0, 1.7976931348623157e308, 5e-324, inf, -inf]),
    ("complex64", [1 + 2j, -0.5j, complex(inf, -1.5), 0j]),
    ("complex128", [0.1 + 0.2j, complex(-inf, 5e-324)]),
]


@pytest.mark.parametrize(("dtype", "values"), EXACT)
def test_values_that_every_dtype_holds(dtype, values, place):
    kind = getattr(tp, dtype)
    data = pack(values, kind)
    assert len(data) == len(values) * kind.itemsize
    back = unpack(data, kind, len(values))
    assert back == values
    assert [str(value) for value in back] == [str(value) for value in values]  # the sign of zero too
    assert [type(value) for value in back] == [type(value) for value in values]
    assert unpack(data, kind, len(values) - 1, 1) == values[1:]
    x = tp.tensor(values, dtype=kind, device=place)
    assert x.tolist() == values
    assert [one.item() for one in x] == values
    assert to_bytes(x) == data
    assert from_bytes(data, (len(values),), kind, place).tolist() == values
    if dtype != "bfloat16":
        assert data == numpy.array(values, dtype).tobytes()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_nan_stays_nan(dtype):
    kind = getattr(tp, dtype)
    found = unpack(pack([nan, -nan], kind), kind, 2)
    assert [value != value for value in found] == [True, True]


ROUNDED = [  # (dtype, value, what a cast of a float64 gives)
    ("float16", 65519.0, 65504.0), ("float16", 65520.0, inf), ("float16", -1e9, -inf), ("float16", 1e-8, 0.0),
    ("float16", 3e-8, 2.0 ** -24), ("float16", 2049.0, 2048.0), ("float16", 2051.0, 2052.0), ("float16", 70000, inf),
    ("float16", 2049, 2048.0),
    ("bfloat16", 1 + 2.0 ** -8, 1.0), ("bfloat16", 1 + 3 * 2.0 ** -8, 1 + 2.0 ** -6), ("bfloat16", 3.4e38, inf),
    ("bfloat16", -1e39, -inf), ("bfloat16", 9e-41, 2.0 ** -133), ("bfloat16", 1e-41, 0.0), ("bfloat16", 257, 256.0),
    ("bfloat16", 1e400, inf),
    ("float32", 1e39, inf), ("float32", -1e39, -inf), ("float32", 16777217, 16777216.0), ("float32", 2 ** 200, inf),
    ("float32", 1e-46, 0.0), ("float32", 0.1, 0.10000000149011612), ("float32", True, 1.0),
    ("float64", 2 ** 53 + 1, 2.0 ** 53), ("float64", 2 ** 2000, inf), ("float64", -2 ** 2000, -inf),
    ("complex64", 1e39, complex(inf, 0)), ("complex64", 1e39j, complex(0, inf)), ("complex64", 2, 2 + 0j),
    ("int8", 1.9, 1), ("int8", -1.9, -1), ("int64", 2.0 ** 53, 2 ** 53), ("uint8", 255.9, 255), ("int16", True, 1),
    ("uint8", -1, 255), ("uint16", -2, 65534), ("uint64", -1, 2 ** 64 - 1),
    ("bool", 2, True), ("bool", 0.5, True), ("bool", nan, True), ("bool", -0.0, False), ("bool", 1j, True),
]


@pytest.mark.parametrize(("dtype", "value", "expected"), ROUNDED)
def test_values_that_are_rounded(dtype, value, expected):
    kind = getattr(tp, dtype)
    assert unpack(pack([value], kind), kind, 1) == [expected]
    assert unpack(pack([1, value, 0], kind), kind, 1, 1) == [expected]


OVERFLOWS = [  # (dtype, value, text)
    ("int8", 128, "a value does not fit into int8: 128 is outside the range of int8"),
    ("int8", -129, "a value does not fit into int8: -129 is outside"),
    ("int8", 1e3, "a value does not fit into int8: 1000.0 is outside"),
    ("uint8", 256, "a value does not fit into uint8"),
    ("uint8", -129, "a value does not fit into uint8"), ("int16", 2 ** 15, "a value does not fit into int16"),
    ("uint16", 2 ** 16, "a value does not fit into uint16"), ("int32", 2 ** 31, "a value does not fit into int32"),
    ("uint32", 2 ** 32, "a value does not fit into uint32"), ("int64", 2 ** 63, "a value does not fit into int64"),
    ("int64", -2 ** 63 - 1, "a value does not fit into int64"), ("uint64", 2 ** 64, "a value does not fit into uint64"),
    ("int64", inf, "a value does not fit into int64: cannot convert float infinity to integer"),
    ("int64", nan, "a value does not fit into int64: cannot convert float NaN to integer"),
    ("int64", 1j, "a value does not fit into int64"), ("float32", 1j, "a value does not fit into float32"),
    ("bfloat16", 1j, "a value does not fit into bfloat16"),
]


@pytest.mark.parametrize(("dtype", "value", "text"), OVERFLOWS)
def test_values_that_do_not_fit(dtype, value, text):
    for call in (lambda: pack([0, value], getattr(tp, dtype)),
                 lambda: tp.tensor([value], dtype=getattr(tp, dtype), device="meta")):
        with pytest.raises(ValueRangeError) as caught:
            call()
        assert caught.value.message.startswith(text)


def test_bfloat16_against_every_rounding():
    """All 65,536 patterns come back, and a value between two neighbours goes to the nearer, ties to the even one."""
    patterns = struct.pack("<65536H", *range(65536))
    values = unpack(patterns, tp.bfloat16, 65536)
    again = struct.unpack("<65536H", pack(values, tp.bfloat16))
    assert all([a == b or values[a] != values[a] for a, b in enumerate(again)])
    for pattern in range(0, 0x7F7F, 97):
        low, high = values[pattern], values[pattern + 1]
        middle = (low + high) / 2
        even = low if pattern % 2 == 0 else high
        assert unpack(pack([middle], tp.bfloat16), tp.bfloat16, 1) == [even]
        assert unpack(pack([low + (high - low) * 0.75], tp.bfloat16), tp.bfloat16, 1) == [high]


def test_float16_against_numpy():
    values = numpy.random.default_rng(0).normal(0, 3e4, 4000).tolist()
    with numpy.errstate(over="ignore"):
        assert unpack(pack(values, tp.float16), tp.float16, 4000) == numpy.array(values, "float16").tolist()


# ---- reading values -------------------------------------------------------------------------------------------------
SHAPES = [(), (1,), (3,), (2, 3), (2, 1, 3), (0,), (2, 0), (0, 2), (2, 0, 3), (1, 1, 1)]


@pytest.mark.parametrize("shape", SHAPES)
def test_tolist_against_numpy(shape, place):
    array = numpy.arange(numpy.prod(shape, dtype=int), dtype="float64").reshape(shape)
    x = tp.tensor(array, device=place)
    assert x.tolist() == array.tolist()
    if array.ndim > 1:
        assert x.transpose(0, -1).tolist() == array.swapaxes(0, -1).tolist()
        assert x[::-1].tolist() == array[::-1].tolist()
        assert to_bytes(x.transpose(0, -1)) == array.swapaxes(0, -1).tobytes()


def test_item(place):
    x = tp.tensor([[1.5, 2.5], [3.5, 4.5]], device=place)
    assert (x[1, 0].item(), x[1:, 1:].item(), x.t()[1, 0].item(), x[::-1][0, 0].item()) == (3.5, 4.5, 2.5, 3.5)
    assert tp.tensor([[[7]]], device=place).item() == 7
    for bad in (x, x[:0]):
        with pytest.raises(ShapeError) as caught:
            bad.item()
        assert caught.value.message.startswith(f"item() takes a tensor with one element, this one has {bad.numel()}")


NUMBERS = [  # (value, dtype, bool, int, float, complex)
    (0, "int64", False, 0, 0.0, 0j), (3, "int8", True, 3, 3.0, 3 + 0j), (2.75, "float32", True, 2, 2.75, 2.75 + 0j),
    (-2.75, "float64", True, -2, -2.75, -2.75 + 0j), (True, "bool", True, 1, 1.0, 1 + 0j),
    (-0.0, "float16", False, 0, 0.0, 0j),
    (nan, "float32", True, None, None, None), (0j, "complex64", False, None, None, 0j),
    (1j, "complex64", True, None, None, 1j),
]


@pytest.mark.parametrize(("value", "dtype", "as_bool", "as_int", "as_float", "as_complex"), NUMBERS)
def test_conversion_to_numbers(value, dtype, as_bool, as_int, as_float, as_complex, place):
    for shape in ((), (1,), (1, 1)):
        x = tp.tensor(value, dtype=getattr(tp, dtype), device=place).reshape(shape)
        assert bool(x) is as_bool
        for kind, expected in ((int, as_int), (float, as_float), (complex, as_complex)):
            if expected is not None:
                assert kind(x) == expected
                assert type(kind(x)) is kind


@pytest.mark.parametrize("shape", [(2,), (0,), (2, 2)])
def test_several_elements_have_no_truth_value(shape, place):
    x = tp.zeros(shape, device=place)
    count = x.numel()
    for kind in (bool, int, float, complex):
        with pytest.raises(ShapeError, match=f"truth value of a tensor with {count} elements|one element, this one "
                                             f"has"):
            kind(x)


def test_index(place):
    assert list(range(10))[tp.tensor(3, device=place)] == 3
    assert "abc"[tp.tensor([1], device=place)] == "b"
    assert operator.index(tp.tensor(True, device=place)) == 1
    for bad in (tp.tensor(1.0, device=place), tp.tensor([1, 2], device=place),
                tp.zeros(0, dtype=tp.int64, device=place)):
        with pytest.raises(ArgumentError, match="only integer tensors of one element can be used as an index"):
            operator.index(bad)


def test_len_and_iteration(place):
    x = tp.tensor([[1, 2], [3, 4]], device=place)
    assert (len(x), [row.tolist() for row in x]) == (2, [[1, 2], [3, 4]])
    assert (len(x[:0]), list(x[:0]), len(x[:, :0])) == (0, [], 2)
    assert [row.tolist() for row in reversed(x)] == [[3, 4], [1, 2]]
    next(iter(x)).fill_(9)
    assert x.tolist() == [[9, 9], [3, 4]]
    scalar = tp.tensor(1, device=place)
    with pytest.raises(TypeError, match="len\\(\\) of a 0-d tensor"):
        len(scalar)
    with pytest.raises(TypeError, match=r"iteration over a 0-d tensor; x.item\(\) gives its value"):
        iter(scalar)


def test_contains(place):
    x = tp.tensor([1.0, 2.0, nan], device=place)
    assert (1 in x, 2.0 in x, 3 in x, nan in x) == (True, True, False, False)
    assert tp.tensor(2.0, device=place) in x
    assert 1 not in x[:0]


FORMATS = [(3.14159, ".2f", "3.14"), (42, "05d", "00042"), (42, "x", "2a"), (1234567.0, ",.1f", "1,234,567.0"),
           (True, "", "True"), (2.5, "", "2.5"), (1 + 2j, ".1f", "1.0+2.0j")]


@pytest.mark.parametrize(("value", "spec", "expected"), FORMATS)
def test_format(value, spec, expected):
    pytest.importorskip("tp_cpu")
    x = tp.tensor(value, dtype=tp.float64 if isinstance(value, float) else None)
    assert format(x, spec) == expected


def test_format_of_several_elements():
    x = tp.tensor([1, 2])
    assert (f"{x}", f"{x[:1]}", f"{x[:1]:03d}") == ("tensor([1, 2])", "tensor([1])", "001")
    assert f"{tp.ones(2, device='meta')[0]}" == "tensor(..., device='meta', size=())"
    with pytest.raises(TypeError, match="unsupported format string"):
        format(x, ".2f")


def test_hash_and_equality(place):
    x, y = tp.ones(2, device=place), tp.ones(2, device=place)
    assert len({x, y, x}) == 2
    assert {x: "x", y: "y"}[y] == "y"
    assert (x == y).tolist() == [True, True]
    assert (x == "other", x != None, x is None) == (False, True, False)  # noqa: E711


def test_math_functions_take_tensors(place):
    x = tp.tensor(2.0, device=place)
    assert (math.sqrt(x), round(float(x)), max(x, tp.tensor(3.0, device=place)).item()) == (math.sqrt(2), 2, 3.0)


def test_meta_tensors_have_no_values():
    x = tp.ones(1, device="meta")
    for read in (x.item, x.tolist, lambda: bool(x), lambda: float(x), lambda: to_bytes(x), lambda: 1 in x):
        with pytest.raises(DeviceError, match="a tensor on device 'meta' has a shape and a dtype but no data"):
            read()
