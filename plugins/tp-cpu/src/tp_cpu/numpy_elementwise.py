"""Elementwise kernels in NumPy, for dtypes that the native ones leave out: complex, unsigned, 16-bit floats, bool."""
from __future__ import annotations

from typing import Any

import numpy as np

from tensorplay.library import Tensor

from .numpy_arrays import elementwise, memory, refuse_zero, store, values


def whole_kept(function: Any) -> Any:
    """A rounding function; integers stay what they are, where NumPy may give floats."""
    return lambda x: x if x.dtype.kind in "biu" else function(x)


def reciprocal(x: np.ndarray) -> np.ndarray:
    return 1 / x


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def sign(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind in "bu":
        return x != 0
    return np.where(np.isnan(x), 0, np.sign(x)) if x.dtype.kind == "f" else np.sign(x)


# ---- division --------------------------------------------------------------------------------------------------------
def floor_div(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    refuse_zero("floor_div", y)
    if x.dtype.kind in "iu":
        return np.floor_divide(x, y)
    return np.where(y == 0, x / y, np.floor_divide(x, y))


def remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    refuse_zero("remainder", y)
    return np.remainder(x, y)


def fmod(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    refuse_zero("fmod", y)
    return np.fmod(x, y)


# ---- bits ------------------------------------------------------------------------------------------------------------
def bits_of(x: np.ndarray) -> int:
    return x.dtype.itemsize * 8


def outside(x: np.ndarray, count: np.ndarray) -> np.ndarray:
    return (count < 0) | (count >= bits_of(x))


def shift_left(x: np.ndarray, count: np.ndarray) -> np.ndarray:
    beyond = outside(x, count)
    return np.where(beyond, np.zeros_like(x), np.left_shift(x, np.where(beyond, np.zeros_like(count), count)))


def shift_right(x: np.ndarray, count: np.ndarray) -> np.ndarray:
    beyond = outside(x, count)
    last = np.full_like(count, bits_of(x) - 1)
    shifted = np.right_shift(x, np.where(beyond, last, count))
    return shifted if x.dtype.kind == "i" else np.where(beyond, np.zeros_like(x), shifted)


# ---- neighbours ------------------------------------------------------------------------------------------------------
def nextafter(out: Tensor, x: Tensor, other: Tensor) -> None:
    """In the dtype itself; for bfloat16 one step of the bits, whose order is that of the numbers of one sign."""
    if out.layout.dtype.name != "bfloat16":
        return store(out, np.nextafter(memory(x), memory(other)))
    start, end = values(x), values(other)
    bits = memory(x).astype(np.int32)
    step = np.where((start < end) == (bits < 0x8000), 1, -1)
    moved = np.where(start == 0, np.where(end > 0, 0x0001, 0x8001), bits + step)
    moved = np.where(start == end, memory(other), moved)
    result = np.where(np.isnan(start) | np.isnan(end), 0x7FC0, moved)
    if out.layout.numel:
        memory(out)[...] = result.astype(np.uint16)
    return None


# ---- several operands ------------------------------------------------------------------------------------------------
def scaled(factor: Any, x: np.ndarray) -> Any:
    """A number in the array's dtype, so that a Python float does not widen integers."""
    return x if factor == 1 else x * np.asarray(factor).astype(x.dtype)


def addcmul(x: np.ndarray, first: np.ndarray, second: np.ndarray, value: Any) -> np.ndarray:
    return x + scaled(value, first) * second


def addcdiv(x: np.ndarray, first: np.ndarray, second: np.ndarray, value: Any) -> np.ndarray:
    return x + scaled(value, first) / second


def lerp(start: np.ndarray, end: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """From the nearer end, as the native kernel."""
    return np.where(np.abs(weight) < 0.5, start + weight * (end - start), end - (end - start) * (1 - weight))


UNARY = {
    "neg": np.negative, "abs": np.abs, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos,
    "tanh": np.tanh, "floor": whole_kept(np.floor), "ceil": whole_kept(np.ceil), "trunc": whole_kept(np.trunc),
    "round": whole_kept(np.rint), "sign": sign, "reciprocal": reciprocal, "rsqrt": lambda x: 1 / np.sqrt(x),
    "exp2": np.exp2, "log2": np.log2, "log10": np.log10, "expm1": np.expm1, "log1p": np.log1p, "tan": np.tan,
    "sinh": np.sinh, "cosh": np.cosh, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "sigmoid": sigmoid, "bitwise_not": np.invert,
    "logical_not": np.logical_not, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "conj": np.conj,
}
BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide, "floor_div": floor_div,
    "remainder": remainder, "fmod": fmod, "pow": np.power, "maximum": np.maximum, "minimum": np.minimum,
    "atan2": np.arctan2, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "shift_left": shift_left, "shift_right": shift_right, "logical_and": np.logical_and,
    "logical_or": np.logical_or, "logical_xor": np.logical_xor,
}
SEVERAL = {
    "where": np.where, "fma": lambda x, y, z: x * y + z, "lerp": lerp, "addcmul": addcmul, "addcdiv": addcdiv,
}

KERNELS = {name: elementwise(function) for name, function in {**UNARY, **BINARY, **SEVERAL}.items()}
KERNELS["nextafter"] = nextafter
