"""CPU tensors as NumPy arrays over the same memory, and results written back. What every `numpy_*` module is built of.

A kernel is `kernel(out, *args)` over tensors. 16-bit floats are computed in float32; bfloat16, which NumPy does not
know, is converted through its bits.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorplay._dtype import COMPLEX, INTEGER
from tensorplay.library import DivisionByZeroError, IndexRangeError, Tensor

SMALL_FLOATS = ("float16", "bfloat16")
WIDE = {"float16": np.float32, "bfloat16": np.float32, "float32": np.float64, "complex64": np.complex128}


def memory(x: Tensor) -> np.ndarray:
    """The array over a tensor's memory; bfloat16 as the 16-bit integers that hold it."""
    source = x.layout
    dtype = np.dtype("uint16" if source.dtype.name == "bfloat16" else source.dtype.name)
    if not source.numel:
        return np.empty(source.shape, dtype)
    strides = tuple([step * dtype.itemsize for step in source.strides])
    return np.ndarray(source.shape, dtype, x.storage, x.offset * dtype.itemsize, strides)


def values(x: Tensor) -> np.ndarray:
    """A tensor's elements for computing: its memory, except that 16-bit floats become float32. Read only."""
    array = memory(x)
    name = x.layout.dtype.name
    if name == "bfloat16":
        return np.left_shift(array, 16, dtype=np.uint32).view(np.float32)
    return array.astype(np.float32) if name == "float16" else array


def wide_values(x: Tensor) -> np.ndarray:
    """A tensor's elements in the dtype in which sums and factorizations are accurate: float64, complex128, int64."""
    array = values(x)
    dtype = x.layout.dtype
    if dtype.category > INTEGER:
        return array.astype(np.complex128 if dtype.category == COMPLEX else np.float64, copy=False)
    return array


def store(out: Tensor, result: Any) -> None:
    """Write an array into a tensor, cast to its dtype and broadcast to its shape."""
    if not out.layout.numel:
        return
    if out.layout.dtype.name == "bfloat16":
        result = bfloat16_bits(np.asarray(result))
    elif out.layout.dtype.category != COMPLEX and np.iscomplexobj(result):
        result = result.real
    with np.errstate(all="ignore"):
        memory(out)[...] = result


def bfloat16_bits(array: np.ndarray) -> np.ndarray:
    """Rounded to the nearest, ties to even; NaN stays NaN."""
    with np.errstate(all="ignore"):
        words = np.ascontiguousarray(array, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (words + 0x7FFF + (words >> 16 & 1)) >> 16
    nan = words & 0x7FFFFFFF > 0x7F800000
    return np.where(nan, 0x7FC0, rounded).astype(np.uint16).reshape(array.shape)


def elementwise(function: Callable) -> Callable:
    """The kernel that applies a function of arrays; attributes are passed on."""

    def kernel(out: Tensor, *args: Any) -> None:
        with np.errstate(all="ignore"):
            store(out, function(*[values(arg) if isinstance(arg, Tensor) else arg for arg in args]))

    kernel.__wrapped__ = function  # type: ignore[attr-defined]
    return kernel


def refuse_zero(name: str, divisor: np.ndarray) -> None:
    """Integers have no infinity: dividing by 0 is an error, as in the native kernels."""
    if divisor.dtype.kind in "biu" and not divisor.all():
        raise DivisionByZeroError(f"{name}: division by zero")


def check_range(name: str, index: np.ndarray, size: int, dim: int, negative: bool = False) -> None:
    """Raise for the first index outside 0..size-1 (with `negative`, outside -size..size-1)."""
    wrong = (index < (-size if negative else 0)) | (index >= size)
    if wrong.any():
        raise IndexRangeError(f"{name}: index {int(index[wrong].flat[0])} is out of range for dimension {dim} of size "
                              f"{size}")
