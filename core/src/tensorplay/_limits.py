"""The range and precision of numbers: finfo and iinfo."""
from __future__ import annotations

from ._dtype import FLOATING, INTEGER, DType, get_default_dtype
from ._errors import DTypeError


class finfo:
    """Limits of a floating point dtype: `finfo(float32).eps`, `max`, `min`, `tiny`, `smallest_normal`, `bits`."""

    def __init__(self, dtype: DType | None = None) -> None:
        dtype = (dtype or get_default_dtype()).to_real()
        if dtype.category != FLOATING:
            raise DTypeError(f"finfo takes a floating point dtype, got {dtype}; iinfo is for integers")
        mantissa, exponent = {"float16": (10, 15), "bfloat16": (7, 127), "float32": (23, 127),
                              "float64": (52, 1023)}[dtype.name]
        self.dtype = dtype.name
        self.bits = dtype.itemsize * 8
        self.eps = 2.0 ** -mantissa
        self.resolution = float(f"1e-{int(mantissa * 0.30103)}")
        self.max = (2.0 - 2.0 ** -mantissa) * 2.0 ** exponent
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - exponent)


class iinfo:
    """Limits of an integer dtype: `iinfo(int8).min`, `max`, `bits`."""

    def __init__(self, dtype: DType) -> None:
        if dtype.category != INTEGER:
            raise DTypeError(f"iinfo takes an integer dtype, got {dtype}; finfo is for floating point")
        self.dtype = dtype.name
        self.bits = dtype.itemsize * 8
        self.max = 2 ** (self.bits - dtype.is_signed) - 1
        self.min = -(2 ** (self.bits - 1)) if dtype.is_signed else 0
