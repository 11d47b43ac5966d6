"""Reading, writing, sorting and searching by index in NumPy. What only moves elements moves their bits."""
from __future__ import annotations

from typing import Any

import numpy as np

import tensorplay as tp
from tensorplay.library import Tensor, allocate, layout

from .numpy_arrays import check_range, memory, store, values


def lined(array: np.ndarray) -> np.ndarray:
    """0-d arrays as one element in a line, so that they can be indexed along dimension 0."""
    return array if array.ndim else array.reshape(1)


def along(name: str, index: Tensor, dim: int, size: int) -> tuple:
    """An index for every dimension with which NumPy reads or writes what gather and scatter mean."""
    picked = lined(values(index))
    dim = dim % picked.ndim
    check_range(name, picked, size, dim)
    grid: list = list(np.ogrid[tuple([slice(0, n) for n in picked.shape])])
    grid[dim] = picked
    return tuple(grid)


def size_along(x: Tensor, dim: int) -> int:
    return x.layout.shape[dim] if x.layout.ndim else 1


# ---- along one dimension ---------------------------------------------------------------------------------------------
def gather(out: Tensor, x: Tensor, dim: int, index: Tensor) -> None:
    if out.layout.numel:
        lined(memory(out))[...] = lined(memory(x))[along("gather", index, dim, size_along(x, dim))]


def scatter(out: Tensor, x: Tensor, dim: int, index: Tensor, src: Tensor, mode: str) -> None:
    if out.layout.numel:
        memory(out)[...] = memory(x)
    if not index.layout.numel:
        return
    place = along("scatter", index, dim, size_along(x, dim))
    part = tuple([slice(0, n) for n in lined(memory(index)).shape])
    if mode == "set":
        lined(memory(out))[place] = lined(memory(src))[part]
    else:
        combine_at(out, place, lined(values(src))[part], np.add)


def combine_at(out: Tensor, place: tuple, source: np.ndarray, function: Any) -> None:
    """`out` combined with the source where `place` says, an element at a time; 16-bit floats meanwhile in float32."""
    total = lined(values(out))
    if out.layout.dtype.name in ("float16", "bfloat16"):
        total = total.copy()
    with np.errstate(all="ignore"):
        function.at(total, place, source)
    if out.layout.dtype.name in ("float16", "bfloat16"):
        store(out, total.reshape(out.layout.shape))


def scatter_reduce(out: Tensor, x: Tensor, dim: int, index: Tensor, src: Tensor, mode: str) -> None:
    if out.layout.numel:
        memory(out)[...] = memory(x)
    if not index.layout.numel:
        return
    place = along("scatter_reduce", index, dim, size_along(x, dim))
    part = tuple([slice(0, n) for n in lined(memory(index)).shape])
    combine_at(out, place, lined(values(src))[part],
               {"mul": np.multiply, "max": np.maximum, "min": np.minimum}[mode])


def index_select(out: Tensor, x: Tensor, dim: int, index: Tensor) -> None:
    picked = values(index).reshape(-1)
    check_range("index_select", picked, size_along(x, dim), dim)
    if out.layout.numel:
        memory(out)[...] = np.take(lined(memory(x)), picked, dim).reshape(out.layout.shape)


# ---- x[tensors] ------------------------------------------------------------------------------------------------------
def at_tensors(x: Tensor, indices: Any, dims: Any) -> tuple:
    """x[..., i, ..., j]: index arrays at their dimensions, all of the others."""
    place: list = [slice(None)] * x.layout.ndim
    for index, dim in zip(indices, dims):
        place[dim] = memory(index)
        check_range("index", place[dim], x.layout.shape[dim], dim, negative=True)
    return tuple(place)


def index_get(out: Tensor, x: Tensor, indices: Any, dims: Any) -> None:
    place = at_tensors(x, indices, dims)
    if out.layout.numel:
        memory(out)[...] = memory(x)[place]


def index_put(out: Tensor, x: Tensor, indices: Any, source: Tensor, dims: Any, accumulate: bool) -> None:
    place = at_tensors(x, indices, dims)
    if not out.layout.numel:
        return
    memory(out)[...] = memory(x)
    if accumulate:
        combine_at(out, place, values(source), np.add)
    else:
        memory(out)[place] = memory(source)


# ---- order -----------------------------------------------------------------------------------------------------------
def order(array: np.ndarray, dim: int, descending: bool) -> np.ndarray:
    """The indices that sort, equal elements in their order, NaN as the largest."""
    if not descending:
        return np.argsort(array, dim, kind="stable")
    backwards = np.argsort(np.flip(array, dim), dim, kind="stable")
    return np.flip(array.shape[dim] - 1 - backwards, dim)


def sort(outs: tuple, x: Tensor, dim: int, descending: bool, stable: bool) -> None:
    pick_sorted(outs, x, order(lined(values(x)), dim, descending), dim)


def pick_sorted(outs: tuple, x: Tensor, index: np.ndarray, dim: int) -> None:
    if outs[0].layout.numel:
        memory(outs[0])[...] = np.take_along_axis(lined(memory(x)), index, dim).reshape(outs[0].layout.shape)
    store(outs[1], index.reshape(outs[1].layout.shape))


def topk(outs: tuple, x: Tensor, k: int, dim: int, largest: bool, sorted: bool) -> None:  # noqa: A002
    index = order(lined(values(x)), dim, largest)
    pick_sorted(outs, x, np.take(index, range(k if x.layout.ndim else 1), dim), dim)


def searchsorted(out: Tensor, sequence: Tensor, wanted: Tensor, right: bool) -> None:
    rows, columns = values(sequence), values(wanted)
    side = "right" if right else "left"
    if rows.ndim == 1:
        return store(out, np.searchsorted(rows, columns, side))
    found = np.zeros(columns.shape, np.int64)
    for at in np.ndindex(*rows.shape[:-1]):
        found[at] = np.searchsorted(rows[at], columns[at], side)
    return store(out, found)


# ---- results whose shape depends on values ---------------------------------------------------------------------------
def nonzero(x: Tensor) -> Tensor:
    found = np.argwhere(values(x))
    made = allocate(layout((found.shape[0], x.layout.ndim), tp.int64, x.layout.device))
    store(made, found)
    return made


KERNELS = {
    "gather": gather, "scatter": scatter, "scatter_reduce": scatter_reduce, "index_select": index_select,
    "index_get": index_get, "index_put": index_put, "sort": sort, "topk": topk, "searchsorted": searchsorted,
}
DECOMPOSITIONS = {"nonzero": nonzero}
