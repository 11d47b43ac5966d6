"""Tensors from numbers, and casts, in NumPy: for the dtypes and numbers that the native kernels leave out."""
from __future__ import annotations

from typing import Any

import numpy as np

from tensorplay._dtype import INTEGER
from tensorplay.library import Tensor

from .numpy_arrays import memory, store, values


def full(out: Tensor, size: Any, value: Any, dtype: Any, device: Any) -> None:
    store(out, value)


def iota(out: Tensor, count: int, start: Any, step: Any, dtype: Any, device: Any) -> None:
    """start + i * step: integers exactly, wrapped to the dtype, others in double precision."""
    if all([isinstance(one, int) for one in (start, step)]) and out.layout.dtype.category <= INTEGER:
        numbers = np.arange(count, dtype=np.uint64) * np.uint64(step % 2 ** 64) + np.uint64(start % 2 ** 64)
        store(out, numbers if out.layout.dtype.category else numbers != 0)
        return
    store(out, start + step * np.arange(count))


def cast(out: Tensor, x: Tensor, dtype: Any) -> None:
    """Complex numbers lose their imaginary part, except that they are True where any part is not 0."""
    source = values(x)
    if out.layout.dtype.name == "bool":
        source = source != 0
    if out.layout.numel and out.layout.dtype is x.layout.dtype:
        memory(out)[...] = memory(x)
    else:
        store(out, source)


KERNELS = {"full": full, "iota": iota, "cast": cast}
