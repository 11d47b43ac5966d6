"""Reductions and scans in NumPy, for dtypes that the native kernels leave out. Sums of floats are accumulated in a
wider dtype."""
from __future__ import annotations

from typing import Any

import numpy as np

from tensorplay.library import Tensor

from .numpy_arrays import memory, store, values


def axes_of(dim: Any) -> tuple | None:
    """NumPy's axis argument: None and an empty list mean every dimension."""
    if dim is None:
        return None
    return (tuple(dim) or None) if isinstance(dim, (tuple, list)) else (dim,)


def axes_for(x: np.ndarray, dim: Any) -> tuple | None:
    return None if x.ndim == 0 else axes_of(dim)


def accumulator(out: Tensor, x: np.ndarray) -> np.dtype:
    """Integers are summed in the result's dtype, floats in a wide one."""
    kind = out.layout.dtype.category
    if kind < 2:
        return np.dtype(np.int64 if kind == 0 else out.layout.dtype.name)
    return np.dtype(np.complex128 if kind == 3 or x.dtype.kind == "c" else np.float64)


def sum_(out: Tensor, x: Tensor, dim: Any, keepdim: bool, dtype: Any) -> None:
    array = values(x)
    with np.errstate(all="ignore"):
        store(out, np.sum(array, axes_for(array, dim), accumulator(out, array), keepdims=keepdim and array.ndim > 0))


def mean(out: Tensor, x: Tensor, dim: Any, keepdim: bool, dtype: Any) -> None:
    array = values(x)
    with np.errstate(all="ignore"):
        total = np.sum(array, axes_for(array, dim), accumulator(out, array), keepdims=keepdim and array.ndim > 0)
        store(out, total / (array.size // total.size if total.size else 1) if array.size else total * np.nan)


def prod(out: Tensor, x: Tensor, dim: Any, keepdim: bool, dtype: Any) -> None:
    array = values(x)
    with np.errstate(all="ignore"):
        store(out, np.prod(array, axes_for(array, dim), accumulator(out, array), keepdims=keepdim and array.ndim > 0))


def extreme(function: Any) -> Any:
    def kernel(out: Tensor, x: Tensor, dim: Any, keepdim: bool) -> None:
        array = values(x)
        store(out, function(array, axes_for(array, dim), keepdims=keepdim and array.ndim > 0) if array.ndim else array)

    return kernel


def arg_extreme(function: Any) -> Any:
    """The first occurrence; NaN counts as the extreme."""

    def kernel(out: Tensor, x: Tensor, dim: Any, keepdim: bool) -> None:
        array = values(x)
        found = function(array if array.ndim else array.reshape(1), dim if array.ndim else None)
        store(out, np.reshape(found, out.layout.shape))

    return kernel


def truth(function: Any) -> Any:
    def kernel(out: Tensor, x: Tensor, dim: Any, keepdim: bool) -> None:
        array = values(x)
        store(out, function(array, axes_for(array, dim), keepdims=keepdim and array.ndim > 0))

    return kernel


def scan(function: Any) -> Any:
    """cumsum and cumprod."""

    def kernel(out: Tensor, x: Tensor, dim: int, dtype: Any) -> None:
        array = values(x)
        with np.errstate(all="ignore"):
            store(out, function(array, dim, accumulator(out, array)) if array.ndim else array)

    return kernel


def extreme_scan(better: Any) -> Any:
    """cummax and cummin: values and the index of the last of equal ones; NaN wins from where it occurs."""

    def kernel(outs: tuple, x: Tensor, dim: int) -> None:
        source, array = memory(x), values(x)
        if not array.ndim or not array.size:
            store(outs[0], array)
            store(outs[1], np.zeros(array.shape, np.int64))
            return
        rows = np.moveaxis(array, dim, 0)
        if source.dtype.kind == "b":
            rows = rows.astype(np.uint8)
        best = better.accumulate(rows, axis=0)
        # a row is a new extreme where it equals the running one (NaN: where it is one)
        fresh = (rows == best) | np.isnan(rows) if rows.dtype.kind == "f" else rows == best
        at = np.arange(rows.shape[0]).reshape((-1,) + (1,) * (rows.ndim - 1))
        index = np.maximum.accumulate(np.where(fresh, at, 0), axis=0)
        store(outs[0], np.moveaxis(best, 0, dim))
        store(outs[1], np.moveaxis(index, 0, dim))

    return kernel


def matmul(out: Tensor, x: Tensor, y: Tensor) -> None:
    """bool is the `or` of `and`s; floats in float32 or wider."""
    first, second = values(x), values(y)
    if first.dtype.kind == "b":
        first, second = first.astype(np.float32), second.astype(np.float32)
        store(out, np.matmul(first, second) > 0)
        return
    with np.errstate(all="ignore"):
        store(out, np.matmul(first, second))


KERNELS = {
    "sum": sum_, "mean": mean, "prod": prod, "amax": extreme(np.max), "amin": extreme(np.min),
    "argmax": arg_extreme(np.argmax), "argmin": arg_extreme(np.argmin), "any": truth(np.any), "all": truth(np.all),
    "cumsum": scan(np.cumsum), "cumprod": scan(np.cumprod), "cummax": extreme_scan(np.maximum),
    "cummin": extreme_scan(np.minimum), "matmul": matmul,
}
