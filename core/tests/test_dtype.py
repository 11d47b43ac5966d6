"""Data types: promotion against tables that PyTorch 2.13 gave, and the limits that finfo and iinfo state."""
from __future__ import annotations

import copy
import pickle

import pytest

import tensorplay as tp
from tensorplay._dtype import ALL, BY_CODE, as_dtype
from tensorplay._errors import DTypeError
from tensorplay._layout import layout

SHORT = {"b": tp.bool, "u1": tp.uint8, "i1": tp.int8, "i2": tp.int16, "i4": tp.int32, "i8": tp.int64, "u2": tp.uint16,
         "u4": tp.uint32, "u8": tp.uint64, "f2": tp.float16, "bf": tp.bfloat16, "f4": tp.float32, "f8": tp.float64,
         "c8": tp.complex64, "c16": tp.complex128}
NAMES = list(SHORT)

# torch.promote_types of the row's and the column's dtype. A capital letter: PyTorch refuses the pair (it has few rules
# for its later unsigned types), TensorPlay answers with the smallest type that holds both; `-`: so does TensorPlay.
PROMOTED = """
    b  u1 i1 i2 i4 i8 u2 u4 u8 f2 bf f4 f8 c8 c16
b   b  u1 i1 i2 i4 i8 U2 U4 U8 f2 bf f4 f8 c8 c16
u1  u1 u1 i2 i2 i4 i8 U2 U4 U8 f2 bf f4 f8 c8 c16
i1  i1 i2 i1 i2 i4 i8 I4 I8 -  f2 bf f4 f8 c8 c16
i2  i2 i2 i2 i2 i4 i8 I4 I8 -  f2 bf f4 f8 c8 c16
i4  i4 i4 i4 i4 i4 i8 I4 I8 -  f2 bf f4 f8 c8 c16
i8  i8 i8 i8 i8 i8 i8 I8 I8 -  f2 bf f4 f8 c8 c16
u2  U2 U2 I4 I4 I4 I8 u2 U4 U8 f2 bf f4 f8 C8 C16
u4  U4 U4 I8 I8 I8 I8 U4 u4 U8 f2 bf f4 f8 C8 C16
u8  U8 U8 -  -  -  -  U8 U8 u8 f2 bf f4 f8 C8 C16
f2  f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 f4 f4 f8 c8 c16
bf  bf bf bf bf bf bf bf bf bf f4 bf f4 f8 c8 c16
f4  f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f8 c8 c16
f8  f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 c16 c16
c8  c8 c8 c8 c8 c8 c8 C8 C8 C8 c8 c8 c8 c16 c8 c16
c16 c16 c16 c16 c16 c16 c16 C16 C16 C16 c16 c16 c16 c16 c16 c16
"""

# torch.result_type of a tensor with dimensions (row) and a 0-d tensor (column). C: PyTorch answers complex32.
WITH_ZERO_DIM = """
    b  u1 i1 i2 i4 i8 u2 u4 u8 f2 bf f4 f8 c8 c16
b   b  u1 i1 i2 i4 i8 U2 U4 U8 f2 bf f4 f8 c8 c16
u1  u1 u1 u1 u1 u1 u1 u1 u1 u1 f2 bf f4 f8 c8 c16
i1  i1 i1 i1 i1 i1 i1 i1 i1 i1 f2 bf f4 f8 c8 c16
i2  i2 i2 i2 i2 i2 i2 i2 i2 i2 f2 bf f4 f8 c8 c16
i4  i4 i4 i4 i4 i4 i4 i4 i4 i4 f2 bf f4 f8 c8 c16
i8  i8 i8 i8 i8 i8 i8 i8 i8 i8 f2 bf f4 f8 c8 c16
u2  u2 u2 u2 u2 u2 u2 u2 u2 u2 f2 bf f4 f8 c8 c16
u4  u4 u4 u4 u4 u4 u4 u4 u4 u4 f2 bf f4 f8 c8 c16
u8  u8 u8 u8 u8 u8 u8 u8 u8 u8 f2 bf f4 f8 c8 c16
f2  f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 C8 C8
bf  bf bf bf bf bf bf bf bf bf bf bf bf bf c8 c8
f4  f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 c8 c8
f8  f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 c16 c16
c8  c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8
c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16
"""

# torch.result_type of a tensor and a Python number; the same for tensors with dimensions and 0-d ones.
WITH_NUMBER = """
    True 1 1.0 1j
b   b  i8 f4 c8
u1  u1 u1 f4 c8
i1  i1 i1 f4 c8
i2  i2 i2 f4 c8
i4  i4 i4 f4 c8
i8  i8 i8 f4 c8
u2  u2 u2 f4 c8
u4  u4 u4 f4 c8
u8  u8 u8 f4 c8
f2  f2 f2 f2 C8
bf  bf bf bf c8
f4  f4 f4 f4 c8
f8  f8 f8 f8 c16
c8  c8 c8 c8 c8
c16 c16 c16 c16 c16
"""


def cells(table):
    columns, *rows = table.strip().splitlines()
    for row in rows:
        name, *values = row.split()
        assert len(values) == len(columns.split())
        for column, value in zip(columns.split(), values):
            yield name, column, value.lower()


def meta(dtype, shape):
    from tensorplay._tensor import make_tensor

    return make_tensor(None, 0, layout(shape, dtype, tp.device("meta")))


def test_the_tables_name_every_dtype():
    assert [dtype.name for dtype in SHORT.values()] == [dtype.name for dtype in ALL]
    assert len(list(cells(PROMOTED))) == len(list(cells(WITH_ZERO_DIM))) == len(ALL) ** 2


@pytest.mark.parametrize("first", NAMES)
def test_promotion_of_two_dtypes(first):
    for name, column, expected in cells(PROMOTED):
        if name != first:
            continue
        if expected == "-":
            with pytest.raises(DTypeError, match=r"no common integer type; cast one of them"):
                tp.promote_types(SHORT[name], SHORT[column])
        else:
            assert tp.promote_types(SHORT[name], SHORT[column]) is SHORT[expected], (name, column)


@pytest.mark.parametrize("first", NAMES)
def test_promotion_with_a_0d_tensor(first):
    for name, column, expected in cells(WITH_ZERO_DIM):
        if name == first:
            sized, scalar = meta(SHORT[name], (2,)), meta(SHORT[column], ())
            assert tp.result_type(sized, scalar) is SHORT[expected], (name, column)
            assert tp.result_type(scalar, sized) is SHORT[expected], (name, column)


@pytest.mark.parametrize("shape", [(), (2,), (0,)])
def test_promotion_with_a_number(shape):
    for name, column, expected in cells(WITH_NUMBER):
        number = {"True": True, "1": 1, "1.0": 1.0, "1j": 1j}[column]
        assert tp.result_type(meta(SHORT[name], shape), number) is SHORT[expected], (name, column)
        assert tp.result_type(number, meta(SHORT[name], shape)) is SHORT[expected], (name, column)


@pytest.mark.parametrize(("first", "second", "expected"), [
    (1, 2, tp.int64), (True, False, tp.bool), (True, 3, tp.int64), (1, 2.0, tp.float32), (1, 2j, tp.complex64)])
def test_promotion_of_two_numbers(first, second, expected):
    assert tp.result_type(first, second) is expected


@pytest.fixture
def double():
    tp.set_default_dtype(tp.float64)
    yield
    tp.set_default_dtype(tp.float32)


def test_the_default_dtype_is_that_of_python_floats(double):
    assert tp.get_default_dtype() is tp.float64
    assert tp.result_type(meta(tp.int64, (2,)), 1.5) is tp.float64
    assert tp.result_type(meta(tp.int64, (2,)), 1j) is tp.complex128
    assert tp.result_type(meta(tp.float32, (2,)), 1.5) is tp.float32
    assert as_dtype(float) is tp.float64
    assert tp.finfo().bits == 64
    assert tp.tensor(1.5, device="meta").dtype is tp.float64
    assert (tp.tensor([3], device="meta") / 2).dtype is tp.float64


def test_kernels_follow_the_default_dtype():
    x = tp.tensor([3], device="meta")
    assert (x / 2).dtype is tp.float32
    tp.set_default_dtype(tp.float64)
    try:
        assert (x / 2).dtype is tp.float64
    finally:
        tp.set_default_dtype(tp.float32)
    assert (x / 2).dtype is tp.float32


@pytest.mark.parametrize("dtype", [tp.int64, tp.bool, tp.complex64, int])
def test_only_floating_point_can_be_the_default(dtype):
    with pytest.raises(DTypeError, match="set_default_dtype takes a floating point dtype"):
        tp.set_default_dtype(dtype)
    assert tp.get_default_dtype() is tp.float32


def test_python_types_are_dtypes():
    try:
        tp.set_default_dtype(float)
        assert tp.get_default_dtype() is tp.float32
    finally:
        tp.set_default_dtype(tp.float32)
    assert [as_dtype(kind) for kind in (bool, int, float, complex)] == [tp.bool, tp.int64, tp.float32, tp.complex64]


@pytest.mark.parametrize("value", ["float32", None, 3, [], object, "f4"])
def test_nonsense_is_not_a_dtype(value):
    with pytest.raises(DTypeError, match=r"dtype must be a tensorplay dtype such as tensorplay\.float32, got"):
        as_dtype(value)


def test_can_cast():
    rank = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}  # PyTorch: never from a higher kind to a lower one
    for source, first in SHORT.items():
        for target, second in SHORT.items():
            kinds = [rank[name.replace("bf", "f")[0]] for name in (source, target)]
            assert tp.can_cast(first, second) is (kinds[0] <= kinds[1]), (source, target)


FLOATS = [  # torch.finfo: dtype, bits, eps, max, smallest normal, resolution
    (tp.float16, 16, 0.0009765625, 65504.0, 6.103515625e-05, 0.001),
    (tp.bfloat16, 16, 0.0078125, 3.3895313892515355e+38, 1.1754943508222875e-38, 0.01),
    (tp.float32, 32, 1.1920928955078125e-07, 3.4028234663852886e+38, 1.1754943508222875e-38, 1e-06),
    (tp.float64, 64, 2.220446049250313e-16, 1.7976931348623157e+308, 2.2250738585072014e-308, 1e-15),
    (tp.complex64, 32, 1.1920928955078125e-07, 3.4028234663852886e+38, 1.1754943508222875e-38, 1e-06),
    (tp.complex128, 64, 2.220446049250313e-16, 1.7976931348623157e+308, 2.2250738585072014e-308, 1e-15),
]


@pytest.mark.parametrize(("dtype", "bits", "eps", "largest", "tiny", "resolution"), FLOATS)
def test_finfo(dtype, bits, eps, largest, tiny, resolution):
    info = tp.finfo(dtype)
    assert (info.bits, info.eps, info.max, info.min, info.tiny) == (bits, eps, largest, -largest, tiny)
    assert (info.smallest_normal, info.resolution, info.dtype) == (tiny, resolution, dtype.to_real().name)


INTEGERS = [
    (tp.uint8, 8, 0, 255), (tp.int8, 8, -128, 127), (tp.int16, 16, -32768, 32767), (tp.uint16, 16, 0, 65535),
    (tp.int32, 32, -2147483648, 2147483647), (tp.uint32, 32, 0, 4294967295),
    (tp.int64, 64, -9223372036854775808, 9223372036854775807), (tp.uint64, 64, 0, 18446744073709551615),
]


@pytest.mark.parametrize(("dtype", "bits", "low", "high"), INTEGERS)
def test_iinfo(dtype, bits, low, high):
    info = tp.iinfo(dtype)
    assert (info.bits, info.min, info.max, info.dtype) == (bits, low, high, dtype.name)


@pytest.mark.parametrize(("limits", "dtype", "text"), [
    (tp.finfo, tp.int32, "finfo takes a floating point dtype, got tensorplay.int32; iinfo is for integers"),
    (tp.finfo, tp.bool, "finfo takes a floating point dtype"),
    (tp.iinfo, tp.float32, "iinfo takes an integer dtype, got tensorplay.float32; finfo is for floating point"),
    (tp.iinfo, tp.bool, "iinfo takes an integer dtype"),
    (tp.iinfo, tp.complex64, "iinfo takes an integer dtype")])
def test_limits_of_the_other_kind(limits, dtype, text):
    with pytest.raises(DTypeError, match=text):
        limits(dtype)


PARTS = [(tp.float16, tp.complex64), (tp.bfloat16, tp.complex64), (tp.float32, tp.complex64),
         (tp.float64, tp.complex128), (tp.complex64, tp.complex64), (tp.complex128, tp.complex128)]


@pytest.mark.parametrize(("dtype", "expected"), PARTS)
def test_complex_counterparts(dtype, expected):
    assert dtype.to_complex() is expected
    assert dtype.to_real() is {"complex64": tp.float32, "complex128": tp.float64}.get(dtype.name, dtype)


def test_one_object_each():
    for dtype in ALL:
        assert pickle.loads(pickle.dumps(dtype)) is copy.deepcopy(dtype) is copy.copy(dtype) is dtype
        assert repr(dtype) == f"tensorplay.{dtype.name}"
        assert BY_CODE[dtype.code] is dtype
    assert (tp.half, tp.float, tp.double, tp.short, tp.int, tp.long, tp.cfloat, tp.cdouble) == (
        tp.float16, tp.float32, tp.float64, tp.int16, tp.int32, tp.int64, tp.complex64, tp.complex128)


CODES = {"bool": 0, "uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint16": 6, "uint32": 7, "uint64": 8,
         "float16": 9, "bfloat16": 10, "float32": 11, "float64": 12, "complex64": 13, "complex128": 14}


def test_codes_never_change():
    """Native kernels and published plugins are compiled against these numbers."""
    assert {dtype.name: dtype.code for dtype in ALL} == CODES


def test_kinds():
    flags = {dtype.name: (dtype.is_floating_point, dtype.is_complex, dtype.is_signed, dtype.itemsize) for dtype in ALL}
    assert flags["float16"] == (True, False, True, 2)
    assert flags["uint64"] == (False, False, False, 8)
    assert flags["bool"] == (False, False, False, 1)
    assert flags["complex128"] == (False, True, True, 16)
    assert flags["int8"] == (False, False, True, 1)
