"""Reading and writing at positions: x[tensors], masks, nonzero, take."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import (
    DATA_DEPENDENT,
    NONDIFFERENTIABLE,
    PRIMITIVE,
    Layout,
    ShapeError,
    Tensor,
    broadcast_shapes,
    normalize_dim,
    op,
    shape_text,
)

from .indexing import check_index_dtype, gather, index_select, scatter_op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# ---- x[tensors] -----------------------------------------------------------------------------------------------------
index_get = op("index_get(Tensor input, Tensor[] indices, int[] dims) -> Tensor", tags=(PRIMITIVE,),
               doc="Elements at broadcast integer indices along `dims`: x[i, j] with tensors i and j.")
index_put_op = op("index_put(Tensor input, Tensor[] indices, Tensor values, int[] dims, bool accumulate) -> Tensor",
                  tags=(PRIMITIVE,), doc="`input` with values written (or added) at broadcast integer indices.")


def _index_shape(input: Layout, indices: Any, dims: Any) -> tuple:  # noqa: A002
    """(broadcast index shape, where it goes in the result, sizes of the other dimensions)."""
    for index in indices:
        check_index_dtype("index", index)
    try:
        shape = broadcast_shapes(*[index.shape for index in indices])
    except ShapeError:
        raise ShapeError(f"index: index tensors of shapes {', '.join([shape_text(i.shape) for i in indices])} do not "
                         f"broadcast") from None
    together = list(dims) == list(range(dims[0], dims[0] + len(dims)))
    rest = tuple([n for i, n in enumerate(input.shape) if i not in dims])
    return shape, dims[0] if together else 0, rest


@index_get.meta
def _(input: Layout, indices: Any, dims: Any) -> Layout:  # noqa: A002
    shape, place, rest = _index_shape(input, indices, dims)
    return input.with_shape(rest[:place] + shape + rest[place:])


def _flat_positions(input: Layout, indices: Any, dims: Any, shape: tuple) -> Tensor:  # noqa: A002
    """Positions in the flattened indexed dimensions; negative indices count from the end, others are checked."""
    total: Any = None
    for index, dim in zip(indices, dims):
        size = input.shape[dim]
        index = index.to(tp.int64).expand(shape)
        index = tp.where(tp.bitwise_and(index < 0, index >= -size), index + size, index)
        # an index out of range must not wander into a neighbouring row: send it out of the whole range
        index = tp.where(tp.bitwise_or(index < 0, index >= size), tp.full_like(index, 1 << 40), index) \
            if len(dims) > 1 else index
        total = index if total is None else total * size + index
    return total


def _moved_front(input: Tensor, dims: Any) -> tuple:  # noqa: A002
    """(the tensor with the indexed dimensions flattened in front, the sizes of the others, the order used)."""
    rest = [i for i in range(input.layout.ndim) if i not in dims]
    sizes = tuple([input.layout.shape[i] for i in rest])
    turned = input.permute(tuple(dims) + tuple(rest))
    flat = 1
    for d in dims:
        flat *= input.layout.shape[d]
    return turned.reshape((flat,) + sizes), sizes, tuple(dims) + tuple(rest)


@index_get.decomposition
def _(input: Tensor, indices: Any, dims: Any) -> Tensor:  # noqa: A002
    shape, place, _ = _index_shape(input.layout, [i.layout for i in indices], dims)
    flat, sizes, _ = _moved_front(input, dims)
    picked = index_select(flat, 0, _flat_positions(input.layout, indices, dims, shape).reshape(-1))
    picked = picked.reshape(shape + sizes)
    if place == 0:
        return picked
    order = list(range(len(shape), len(shape) + place)) + list(range(len(shape))) + \
        list(range(len(shape) + place, len(shape) + len(sizes)))
    return picked.permute(tuple(order)).contiguous()


index_get.vjp(lambda grad, input_layout, indices, dims: (index_put_op(
    tp.zeros(input_layout.shape, dtype=grad.dtype, device=grad.device), indices, grad, dims, True), None))


@index_get.samples
def _(make: Any) -> Iterator:
    yield make(4, 5), [make.integers((3,), 0, 4)], (0,)
    yield make(4, 5, 6), [make.integers((2, 1), 0, 5), make.integers((3,), 0, 6)], (1, 2)
    yield make(4, 5, 6), [make.integers((3,), 0, 4), make.integers((3,), -6, 6)], (0, 2)


@index_put_op.meta
def _(input: Layout, indices: Any, values: Layout, dims: Any, accumulate: bool) -> Layout:  # noqa: A002
    shape, place, rest = _index_shape(input, indices, dims)
    wanted = rest[:place] + shape + rest[place:]
    if broadcast_shapes(values.shape, wanted) != wanted:
        raise ShapeError(f"index_put: values{shape_text(values.shape)} do not broadcast to the indexed "
                         f"{shape_text(wanted)}")
    return input.dense()


@index_put_op.decomposition
def _(input: Tensor, indices: Any, values: Tensor, dims: Any, accumulate: bool) -> Tensor:  # noqa: A002
    shape, place, rest = _index_shape(input.layout, [i.layout for i in indices], dims)
    flat, sizes, order = _moved_front(input, dims)
    values = values.expand(rest[:place] + shape + rest[place:])
    if place:
        front = list(range(place, place + len(shape))) + list(range(place)) + \
            list(range(place + len(shape), values.layout.ndim))
        values = values.permute(tuple(front))
    positions = _flat_positions(input.layout, indices, dims, shape).reshape((-1,) + (1,) * len(sizes))
    count = positions.layout.shape[0]
    changed = scatter_op(flat, 0, positions.expand((count,) + sizes), values.reshape((count,) + sizes),
                         "add" if accumulate else "set")
    back = changed.reshape(tuple([input.layout.shape[i] for i in order]))
    return back.permute(tuple([order.index(i) for i in range(len(order))])).contiguous()


def _put_input_grad(grad: Tensor, indices: Any, dims: Any, accumulate: bool) -> Tensor:
    return grad if accumulate else index_put_op(grad, indices, grad.new_zeros(()), dims, False)


index_put_op.vjp(lambda grad, indices, dims, accumulate, needs: (
    _put_input_grad(grad, indices, dims, accumulate) if needs[0] else None, None,
    index_get(grad, indices, dims) if needs[2] else None))


@index_put_op.samples
def _(make: Any) -> Iterator:
    yield make(4, 5), [make.permutation((3,), 4)], make(3, 5), (0,), False
    yield make(4, 5), [make.integers((6,), 0, 4), make.integers((6,), 0, 5)], make(6), (0, 1), True


def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: Any = False) -> Tensor:  # noqa: A002
    """`input` with `values` written (or added, with `accumulate`) at tensors of indices, one for a leading dimension.

    >>> import tensorplay as tp
    >>> tp.zeros(3).index_put((tp.tensor([0, 0]),), tp.tensor([1., 2.]), accumulate=True).tolist()
    [3.0, 0.0, 0.0]
    """
    dims = tuple(range(len(indices)))
    if accumulate.__class__ is tuple:  # x[:, i] = v names the dimensions itself
        dims, accumulate = accumulate, False
    from tensorplay.library import tensor_indices

    arrays, at = [], 0
    for index, dim in zip(indices, dims):
        at = dim if dims != tuple(range(len(indices))) else at
        arrays.append((at, index))
        at += index.layout.ndim if index.dtype is tp.bool else 1
    found, places = tensor_indices(input, arrays)
    return index_put_op(input, found, values.to(input.dtype), places, bool(accumulate))


# ---- masks and positions --------------------------------------------------------------------------------------------
nonzero_op = op("nonzero(Tensor input) -> Tensor", tags=(PRIMITIVE, NONDIFFERENTIABLE, DATA_DEPENDENT),
                doc="The indices of elements that are not zero, one row each. Reads values: the meta device refuses.")


@nonzero_op.decomposition
def _(input: Tensor) -> Tensor:  # noqa: A002
    shape = input.layout.shape
    flags = (input != 0).reshape(-1).to(tp.int64)
    total = int(flags.sum().item())
    positions = tp.cumsum(flags, 0) - 1
    spare = tp.full_like(positions, total)
    target = tp.where(flags == 1, positions, spare)
    count = flags.layout.numel
    found = scatter_op(tp.zeros(total + 1, dtype=tp.int64, device=input.device), 0, target,
                       tp.arange(count, device=input.device), "set")[:total]
    columns, rest = [], found
    for size in reversed(shape):
        columns.append(tp.remainder(rest, size))
        rest = tp.floor_divide(rest, size)
    return tp.stack(columns[::-1], 1) if columns else tp.zeros((total, 0), dtype=tp.int64, device=input.device)


@nonzero_op.samples
def _(make: Any) -> Iterator:
    yield (make(3, 4) > 0,)


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:  # noqa: A002
    """The indices of the elements that are not zero, [count, ndim], or one index tensor for each dimension.

    >>> import tensorplay as tp
    >>> tp.nonzero(tp.tensor([0, 3, 0, 4])).tolist()
    [[1], [3]]
    """
    if not as_tuple:
        return nonzero_op(input)
    found = nonzero_op(input if input.layout.ndim else input.reshape(1))
    return tuple([found[:, i] for i in range(found.layout.shape[1])])


def masked_select(input: Tensor, mask: Tensor) -> Tensor:  # noqa: A002
    """The elements where `mask` is True, in one dimension.

    >>> import tensorplay as tp
    >>> tp.masked_select(tp.tensor([1, 2, 3]), tp.tensor([True, False, True])).tolist()
    [1, 3]
    """
    shape = broadcast_shapes(input.layout.shape, mask.layout.shape)
    return input.expand(shape)[mask.expand(shape)]


def take(input: Tensor, index: Tensor) -> Tensor:  # noqa: A002
    """Elements of the flattened tensor.

    >>> import tensorplay as tp
    >>> tp.take(tp.tensor([[1., 2.], [3., 4.]]), tp.tensor([0, 3])).tolist()
    [1.0, 4.0]
    """
    return index_get(input.reshape(-1), [index], (0,))


def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:  # noqa: A002
    """`gather` with broadcasting; without `dim` over the flattened tensor.

    >>> import tensorplay as tp
    >>> tp.take_along_dim(tp.tensor([[1., 2.], [3., 4.]]), tp.tensor([[1], [0]]), 1).tolist()
    [[2.0], [3.0]]
    """
    if dim is None:
        return take_along_dim(input.reshape(-1), indices.reshape(-1), 0)
    d = normalize_dim(dim, input.layout.ndim, "take_along_dim")
    a = input.layout.shape[:d] + (1,) + input.layout.shape[d + 1:]
    b = indices.layout.shape[:d] + (1,) + indices.layout.shape[d + 1:]
    shape = broadcast_shapes(a, b)
    wide = shape[:d] + (indices.layout.shape[d],) + shape[d + 1:]
    full = shape[:d] + (input.layout.shape[d],) + shape[d + 1:]
    size = full[d] if full else 1
    return gather(input.expand(full), d, tp.where(indices < 0, indices + size, indices).expand(wide))


FUNCTIONS = ("index_get", "index_put", "nonzero", "masked_select", "take", "take_along_dim")
METHODS = FUNCTIONS[1:]
INPLACE = ("index_put_",)
