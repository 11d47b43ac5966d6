"""Data types and their promotion. Names, sizes and promotion results are torch's."""
from __future__ import annotations

from ._errors import DTypeError

BOOL, INTEGER, FLOATING, COMPLEX = range(4)


class DType:
    """An element type such as `tensorplay.float32`; one object each, compare with `is` or `==`."""

    __slots__ = ("name", "itemsize", "code", "category", "format", "is_signed")

    def __init__(self, name: str, itemsize: int, code: int, category: int, format: str, is_signed: bool) -> None:
        self.name = name
        self.itemsize = itemsize
        self.code = code  # tpk_dtype of the native kernels; never reused for another type
        self.category = category
        self.format = format  # of `struct` and `memoryview`; bfloat16 and complex have none that both understand
        self.is_signed = is_signed

    @property
    def is_floating_point(self) -> bool:
        """Whether it is float16, bfloat16, float32 or float64."""
        return self.category == FLOATING

    @property
    def is_complex(self) -> bool:
        """Whether it is complex64 or complex128."""
        return self.category == COMPLEX

    def to_real(self) -> DType:
        """The dtype of the real part: complex64 gives float32; real dtypes give themselves."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    def to_complex(self) -> DType:
        """The complex dtype whose parts have this one: float64 gives complex128."""
        return {"float64": complex128, "complex128": complex128}.get(self.name, complex64)

    def __repr__(self) -> str:
        return f"tensorplay.{self.name}"

    def __reduce__(self) -> str | tuple:
        return by_name, (self.name,)


bool_ = DType("bool", 1, 0, BOOL, "?", False)
uint8 = DType("uint8", 1, 1, INTEGER, "B", False)
int8 = DType("int8", 1, 2, INTEGER, "b", True)
int16 = DType("int16", 2, 3, INTEGER, "h", True)
int32 = DType("int32", 4, 4, INTEGER, "i", True)
int64 = DType("int64", 8, 5, INTEGER, "q", True)
uint16 = DType("uint16", 2, 6, INTEGER, "H", False)
uint32 = DType("uint32", 4, 7, INTEGER, "I", False)
uint64 = DType("uint64", 8, 8, INTEGER, "Q", False)
float16 = DType("float16", 2, 9, FLOATING, "e", True)
bfloat16 = DType("bfloat16", 2, 10, FLOATING, "", True)
float32 = DType("float32", 4, 11, FLOATING, "f", True)
float64 = DType("float64", 8, 12, FLOATING, "d", True)
complex64 = DType("complex64", 8, 13, COMPLEX, "", True)
complex128 = DType("complex128", 16, 14, COMPLEX, "", True)

ALL = (bool_, uint8, int8, int16, int32, int64, uint16, uint32, uint64, float16, bfloat16, float32, float64, complex64,
       complex128)
BY_NAME = {dtype.name: dtype for dtype in ALL}
BY_CODE = {dtype.code: dtype for dtype in ALL}
ALIASES = {"half": float16, "float": float32, "double": float64, "short": int16, "int": int32, "long": int64,
           "cfloat": complex64, "cdouble": complex128}

_default = float32


def by_name(name: str) -> DType:
    return BY_NAME[name]


def as_dtype(value: object) -> DType:
    """A DType from a DType or from Python's `bool`, `int`, `float`, `complex`."""
    if value.__class__ is DType:
        return value  # type: ignore[return-value]
    found = None
    if value.__class__ is type:
        found = {bool: bool_, int: int64, float: _default, complex: _default.to_complex()}.get(value)  # type: ignore
    if found is None:
        raise DTypeError(f"dtype must be a tensorplay dtype such as tensorplay.float32, got {value!r}")
    return found


def get_default_dtype() -> DType:
    """The dtype of floating point tensors made from Python numbers: float32 unless `set_default_dtype` changed it."""
    return _default


def set_default_dtype(dtype: DType) -> None:
    """Make `dtype` (a floating point type) the dtype of tensors made from Python floats."""
    global _default
    dtype = as_dtype(dtype)
    if dtype.category != FLOATING:
        raise DTypeError(f"set_default_dtype takes a floating point dtype, got {dtype!r}")
    _default = dtype
    from ._op import clear_tables

    clear_tables()  # kernels keep what metas said


def promote_types(first: DType, second: DType) -> DType:
    """The smallest dtype that holds both, by torch's rules: `promote_types(int32, float16)` is float16.

    Raises DTypeError for uint64 with a signed integer, which no integer type holds.
    """
    if first is second:
        return first
    if first.category != second.category:
        low, high = (first, second) if first.category < second.category else (second, first)
        if high.category == COMPLEX and low.category == FLOATING:
            return complex128 if low is float64 else high
        return high
    if first.category == FLOATING:
        return float32 if first.itemsize == second.itemsize else max(first, second, key=_itemsize)
    if first.category == COMPLEX or first.is_signed == second.is_signed:
        return max(first, second, key=_itemsize)
    unsigned, signed = (second, first) if first.is_signed else (first, second)
    if signed.itemsize > unsigned.itemsize:
        return signed
    if unsigned is uint64:
        raise DTypeError(f"{unsigned} and {signed} have no common integer type; cast one of them with .to(...)")
    return {1: int16, 2: int32, 4: int64}[unsigned.itemsize]


def _itemsize(dtype: DType) -> int:
    return dtype.itemsize


def number_dtype(value: object) -> DType:
    """The dtype that a Python number has on its own."""
    kind = value.__class__
    if kind is bool:
        return bool_
    if kind is int:
        return int64
    if kind is complex:
        return _default.to_complex()
    return _default


def result_dtype(operands: tuple) -> DType:
    """The dtype of an operation over layouts and Python numbers: sized tensors first, then 0-d tensors, then numbers;
    a weaker group counts only if its category (bool < integer < floating < complex) is higher."""
    sized = zero_dim = number = None
    for operand in operands:
        dtype = getattr(operand, "dtype", None)
        if dtype is None:
            dtype = number_dtype(operand)
            number = dtype if number is None else promote_types(number, dtype)
        elif operand.shape:
            sized = dtype if sized is None else promote_types(sized, dtype)
        else:
            zero_dim = dtype if zero_dim is None else promote_types(zero_dim, dtype)
    result = sized
    for weaker in (zero_dim, number):
        if weaker is None:
            continue
        if result is None:
            result = weaker
        elif weaker.category > result.category:
            result = result.to_complex() if weaker.category == COMPLEX and result.category == FLOATING \
                else promote_types(result, weaker)
    return result  # type: ignore[return-value]
