"""Sorting, the largest k, binary search."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import (
    NONDIFFERENTIABLE,
    PRIMITIVE,
    ArgumentError,
    Layout,
    ShapeError,
    Tensor,
    normalize_dim,
    op,
    shape_text,
)

from ._order import named_pair, ordered_only

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# ---- sort -----------------------------------------------------------------------------------------------------------
sort_op = op("sort(Tensor input, int dim, bool descending, bool stable) -> (Tensor, Tensor)", tags=(PRIMITIVE,),
             doc="(sorted values, their indices); equal ones keep their order, NaN counts as the largest.")


@sort_op.meta
def _(source: Layout, dim: int, descending: bool, stable: bool) -> tuple:
    normalize_dim(dim, source.ndim, "sort")
    ordered_only("sort", source)
    return source.dense(), source.with_dtype(tp.int64)


def _comes_first(v: Tensor, w: Tensor, i: Tensor, j: Tensor, descending: bool) -> Tensor:
    """Whether (value v, index i) stands before (w, j): by value with NaN largest, then by index."""
    if descending:
        before = v > w
        if v.dtype.category == 2:
            before = tp.logical_or(before, tp.logical_and(v != v, w == w))
    else:
        before = v < w
        if v.dtype.category == 2:
            before = tp.logical_or(before, tp.logical_and(w != w, v == v))
    equal = v == w
    if v.dtype.category == 2:
        equal = tp.logical_or(equal, tp.logical_and(v != v, w != w))
    return tp.logical_or(before, tp.logical_and(equal, i < j))


@sort_op.decomposition
def _(input: Tensor, dim: int, descending: bool, stable: bool) -> tuple:  # noqa: A002
    """Bitonic network over the next power of two; padding carries indices past the end, so it sorts behind."""
    ordered_only("sort", input.layout)
    if not input.layout.ndim or not input.layout.numel:
        return input.clone(), tp.zeros_like(input, dtype=tp.int64)
    x = input.movedim(dim, -1)
    size = x.layout.shape[-1]
    total = 1 << max(size - 1, 0).bit_length()
    values = x.contiguous()
    if total > size:
        values = tp.cat([values, values.narrow(-1, 0, 1).expand(x.layout.shape[:-1] + (total - size,))], -1)
    at = tp.arange(total, device=x.device)
    index = at.expand(values.layout.shape).clone()
    real = index < size
    block = 2
    while block <= total:
        step = block // 2
        while step:
            other = tp.bitwise_xor(at, step).expand(values.layout.shape)
            w, j, real_w = (tp.gather(t, -1, other) for t in (values, index, real.to(tp.int64)))
            real_w = real_w != 0
            before = _comes_first(values, w, index, j, descending)
            before = tp.where(tp.eq(real, real_w), before, real)
            rising = tp.eq(tp.bitwise_and(at, block), 0)
            keep = tp.eq(tp.eq(rising, at < tp.bitwise_xor(at, step)), before)
            values, index, real = tp.where(keep, values, w), tp.where(keep, index, j), tp.where(keep, real, real_w)
            step //= 2
        block *= 2
    values, index = values.narrow(-1, 0, size), index.narrow(-1, 0, size)
    return values.movedim(-1, dim).contiguous(), index.movedim(-1, dim).contiguous()


def _picked_grad(grads: tuple, outputs: tuple, dim: int, input_layout: Layout) -> tuple:
    if grads[0] is None:
        return (None,)
    zero = tp.zeros(input_layout.shape, dtype=grads[0].dtype, device=grads[0].device)
    return (tp.scatter_add(zero, dim, outputs[1], grads[0]) if input_layout.ndim else grads[0],)


sort_op.vjp(lambda grads, outputs, dim, input_layout: _picked_grad(grads, outputs, dim, input_layout))


@sort_op.samples
def _(make: Any) -> Iterator:
    yield make(3, 5), 1, False, True
    yield make(5, 3), 0, True, True


def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:  # noqa: A002
    """Values in rising (or falling) order along `dim`, and their indices, as a pair (values, indices).

    >>> import tensorplay as tp
    >>> tp.sort(tp.tensor([3, 1, 2])).indices.tolist()
    [1, 2, 0]

    Always stable. NaN counts as the largest value.
    """
    return named_pair("sort", *sort_op(input, dim, descending, stable))


def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:  # noqa: A002
    """The indices that sort the tensor along `dim`.

    >>> import tensorplay as tp
    >>> tp.argsort(tp.tensor([3, 1, 2])).tolist()
    [1, 2, 0]
    """
    return sort_op(input, dim, descending, stable)[1]


def msort(input: Tensor) -> Tensor:  # noqa: A002
    """Sorted along dimension 0.

    >>> import tensorplay as tp
    >>> tp.msort(tp.tensor([3, 1, 2])).tolist()
    [1, 2, 3]
    """
    return sort_op(input, 0, False, True)[0]


# ---- topk -----------------------------------------------------------------------------------------------------------
topk_op = op("topk(Tensor input, int k, int dim, bool largest, bool sorted) -> (Tensor, Tensor)", tags=(PRIMITIVE,),
             doc="(the k largest or smallest values along dim, their indices).")


@topk_op.meta
def _(source: Layout, k: int, dim: int, largest: bool, sorted: bool) -> tuple:  # noqa: A002
    ordered_only("topk", source)
    d = normalize_dim(dim, source.ndim, "topk")
    size = source.shape[d] if source.ndim else 1
    if not 0 <= k <= size:
        raise ShapeError(f"topk: k={k} is outside 0..{size}, the size of dimension {d} of input"
                         f"{shape_text(source.shape)}")
    shape = source.shape[:d] + (k,) + source.shape[d + 1:] if source.ndim else ()
    return source.with_shape(shape), source.with_shape(shape).with_dtype(tp.int64)


@topk_op.decomposition
def _(input: Tensor, k: int, dim: int, largest: bool, sorted: bool) -> tuple:  # noqa: A002
    topk_op.op.rule("meta")(input.layout, k, dim, largest, sorted)
    values, index = sort_op(input, dim, largest, True)
    if not input.layout.ndim:
        return values, index
    return values.narrow(dim, 0, k).contiguous(), index.narrow(dim, 0, k).contiguous()


topk_op.vjp(lambda grads, outputs, dim, input_layout: _picked_grad(grads, outputs, dim, input_layout))


@topk_op.samples
def _(make: Any) -> Iterator:
    yield make(3, 5), 2, 1, True, True
    yield make(5, 3), 3, 0, False, True


def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:  # noqa: A002
    """The k largest (or smallest) values along `dim` and their indices, as a pair (values, indices).

    >>> import tensorplay as tp
    >>> tp.topk(tp.tensor([1., 9., 4.]), 2).values.tolist()
    [9.0, 4.0]
    """
    return named_pair("topk", *topk_op(input, k, dim, largest, sorted))


def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:  # noqa: A002
    """The k-th smallest value along `dim` (k from 1) and its index.

    >>> import tensorplay as tp
    >>> tp.kthvalue(tp.tensor([3, 1, 2]), 2).values.item()
    2
    """
    size = input.size(dim) if input.layout.ndim else 1
    if not 1 <= k <= size:
        raise ShapeError(f"kthvalue: k={k} is outside 1..{size}")
    values, index = sort_op(input, dim, False, True)
    if not input.layout.ndim:
        return named_pair("kthvalue", values, index)
    values, index = values.narrow(dim, k - 1, 1), index.narrow(dim, k - 1, 1)
    return named_pair("kthvalue", *((values, index) if keepdim else (values.squeeze(dim), index.squeeze(dim))))


def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:  # noqa: A002
    """The lower median of all elements; with `dim` a pair (values, indices). NaN wins.

    >>> import tensorplay as tp
    >>> tp.median(tp.tensor([3, 1, 2])).item()
    2
    """
    x = input.reshape(-1) if dim is None else input
    d = 0 if dim is None else dim
    size = x.size(d) if x.layout.ndim else 1
    if size == 0:
        return x.new_full((), float("nan"))
    values, index = sort_op(x, d, False, True)
    if x.layout.ndim:
        middle = values.narrow(d, (size - 1) // 2, 1)
        middle_index = index.narrow(d, (size - 1) // 2, 1)
        if x.dtype.category == 2:
            last, last_index = values.narrow(d, size - 1, 1), index.narrow(d, size - 1, 1)
            middle_index = tp.where(last != last, last_index, middle_index)
            middle = tp.where(last != last, last, middle)
        values, index = middle, middle_index
        if not keepdim or dim is None:
            values, index = values.squeeze(d), index.squeeze(d)
    return values if dim is None else named_pair("median", values, index)


# ---- searchsorted ---------------------------------------------------------------------------------------------------
searchsorted_op = op("searchsorted(Tensor sorted_sequence, Tensor values, bool right) -> Tensor",
                     tags=(PRIMITIVE, NONDIFFERENTIABLE),
                     doc="Positions at which values go into the rising last dimension; `right`: behind equal ones.")


@searchsorted_op.meta
def _(sequence: Layout, values: Layout, right: bool) -> Layout:
    ordered_only("searchsorted", sequence, values)
    if sequence.ndim != 1 and sequence.shape[:-1] != values.shape[:-1]:
        raise ShapeError(f"searchsorted: sorted_sequence{shape_text(sequence.shape)} must have one dimension, or the "
                         f"leading sizes of values{shape_text(values.shape)}")
    return values.with_dtype(tp.int64)


@searchsorted_op.decomposition
def _(sequence: Tensor, values: Tensor, right: bool) -> Tensor:
    searchsorted_op.op.rule("meta")(sequence.layout, values.layout, right)
    size = sequence.layout.shape[-1]
    low = tp.zeros_like(values, dtype=tp.int64)
    high = tp.full_like(low, size)
    if size == 0:
        return low
    flat = sequence.layout.ndim == 1
    for _ in range(size.bit_length()):
        middle = tp.floor_divide(low + high, 2)
        at = tp.minimum(middle, size - 1)
        found = tp.gather(sequence, 0, at.reshape(-1)).reshape(at.layout.shape) if flat else tp.gather(sequence, -1, at)
        below = found <= values if right else found < values
        if values.dtype.category == 2:  # NaN is the largest
            nan = values != values
            below = tp.logical_or(below, tp.logical_and(nan, tp.ones_like(nan) if right else found == found))
        active = low < high
        low = tp.where(tp.logical_and(active, below), middle + 1, low)
        high = tp.where(tp.logical_and(active, tp.logical_not(below)), middle, high)
    return low


@searchsorted_op.samples
def _(make: Any) -> Iterator:
    yield make(7).sort(0)[0], make(3, 4), False
    yield make(3, 6).sort(1)[0], make(3, 2), True


def searchsorted(sorted_sequence: Tensor, input: Any, *, out_int32: bool = False, right: bool = False,  # noqa: A002
                 side: str | None = None, sorter: Tensor | None = None) -> Tensor:
    """The positions at which `input` would be inserted to keep the order.

    >>> import tensorplay as tp
    >>> tp.searchsorted(tp.tensor([1, 3, 5]), tp.tensor([3, 4])).tolist()
    [1, 2]
    """
    if side not in (None, "left", "right"):
        raise ArgumentError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    if sorter is not None:
        sorted_sequence = tp.gather(sorted_sequence, -1, sorter)
    values = input if isinstance(input, Tensor) else tp.tensor(input, dtype=sorted_sequence.dtype,
                                                               device=sorted_sequence.device)
    found = searchsorted_op(sorted_sequence, values, right or side == "right")
    return found.to(tp.int32) if out_int32 else found


def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:  # noqa: A002
    """The number of the interval between `boundaries` that each value lies in.

    >>> import tensorplay as tp
    >>> tp.bucketize(tp.tensor([1, 4]), tp.tensor([2, 5])).tolist()
    [0, 1]
    """
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


FUNCTIONS = ("sort", "argsort", "msort", "topk", "kthvalue", "median", "searchsorted", "bucketize")
METHODS = ("sort", "argsort", "msort", "topk", "kthvalue", "median")
