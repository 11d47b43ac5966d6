"""Tensors put together: cat, stack, repeat, flip, roll, triangles."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import (
    ArgumentError,
    Layout,
    ShapeError,
    Tensor,
    ValueRangeError,
    as_shape,
    layout,
    normalize_dim,
    normalize_dims,
    op,
    promote_types,
    shape_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

cat_op = op("cat(Tensor[] tensors, int dim=0) -> Tensor")


@cat_op.meta
def _(tensors: Any, dim: int) -> Layout:
    if not tensors:
        raise ArgumentError("cat: needs at least one tensor, got an empty list")
    kept = [t for t in tensors if t.shape != (0,)] or list(tensors[:1])
    first = kept[0]
    d = normalize_dim(dim, first.ndim, "cat")
    if not first.ndim:
        raise ShapeError("cat: 0-d tensors cannot be joined; use stack")
    dtype = first.dtype
    for i, other in enumerate(kept):
        if other.ndim != first.ndim or other.shape[:d] + other.shape[d + 1:] != first.shape[:d] + first.shape[d + 1:]:
            raise ShapeError(f"cat: tensor {i} has shape {shape_text(other.shape)}, the first "
                             f"{shape_text(first.shape)}; all sizes but that of dimension {d} must be equal")
    for other in tensors:
        dtype = promote_types(dtype, other.dtype)
    total = 0
    for other in kept:
        total += other.shape[d]
    return layout(first.shape[:d] + (total,) + first.shape[d + 1:], dtype, first.device)


@cat_op.decomposition
def _(tensors: Any, dim: int) -> Tensor:
    result = cat_op.op.rule("meta")([t.layout for t in tensors], dim)
    out = tp.empty(result.shape, dtype=result.dtype, device=result.device)
    d = normalize_dim(dim, result.ndim, "cat")
    start = 0
    for one in tensors:
        if one.layout.shape != (0,):
            tp.write_(tp.narrow(out, d, start, one.layout.shape[d]), one)
            start += one.layout.shape[d]
    return out


def _cat_grad(grad: Tensor, tensors_layouts: Any, dim: int) -> tuple:
    d = normalize_dim(dim, grad.layout.ndim, "cat")
    pieces, start = [], 0
    for one in tensors_layouts:
        if one.shape == (0,):
            pieces.append(None)
            continue
        pieces.append(tp.narrow(grad, d, start, one.shape[d]))
        start += one.shape[d]
    return (tuple(pieces),)


cat_op.vjp(lambda grad, tensors_layout, dim: _cat_grad(grad, tensors_layout, dim))


@cat_op.samples
def _(make: Any) -> Iterator:
    yield [make(2, 3), make(4, 3)], 0
    yield [make(2, 3), make(2, 1), make(2, 2)], -1


def cat(tensors: Any, dim: int = 0, *, out: Tensor | None = None, axis: int | None = None) -> Tensor:
    """Tensors joined along an existing dimension.

    >>> import tensorplay as tp
    >>> tp.cat([tp.ones(2), tp.zeros(1)]).tolist()
    [1.0, 1.0, 0.0]

    Raises ShapeError naming the tensor whose other sizes differ.
    """
    tensors = list(tensors)
    if tensors and any([t.layout.dtype is not tensors[0].layout.dtype for t in tensors if isinstance(t, Tensor)]):
        dtype = cat_op.op.rule("meta")([t.layout for t in tensors], dim if axis is None else axis).dtype
        tensors = [t.to(dtype) for t in tensors]
    return cat_op(tensors, dim if axis is None else axis, out=out)


cat.op = cat_op.op  # type: ignore[attr-defined]
concat = concatenate = cat


def stack(tensors: Any, dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors of one shape joined along a new dimension.

    >>> import tensorplay as tp
    >>> tp.stack([tp.zeros(2), tp.ones(2)]).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    tensors = list(tensors)
    if not tensors:
        raise ArgumentError("stack: needs at least one tensor, got an empty list")
    for i, one in enumerate(tensors):
        if one.layout.shape != tensors[0].layout.shape:
            raise ShapeError(f"stack: tensor {i} has shape {shape_text(one.layout.shape)}, the first "
                             f"{shape_text(tensors[0].layout.shape)}; all must be equal")
    d = normalize_dim(dim, tensors[0].layout.ndim + 1, "stack")
    return cat([t.unsqueeze(d) for t in tensors], d, out=out)


def hstack(tensors: Any) -> Tensor:
    """Joined side by side: along dimension 1, or 0 for vectors.

    >>> import tensorplay as tp
    >>> tp.hstack([tp.tensor([1, 2]), tp.tensor([3])]).tolist()
    [1, 2, 3]
    """
    tensors = [t if t.layout.ndim else t.reshape(1) for t in tensors]
    return cat(tensors, 0 if tensors[0].layout.ndim == 1 else 1)


def vstack(tensors: Any) -> Tensor:
    """Joined on top of each other; vectors become rows.

    >>> import tensorplay as tp
    >>> tp.vstack([tp.tensor([1, 2]), tp.tensor([3, 4])]).tolist()
    [[1, 2], [3, 4]]
    """
    return cat([t.reshape(1, -1) if t.layout.ndim < 2 else t for t in tensors], 0)


def tile(input: Tensor, *dims: Any) -> Tensor:  # noqa: A002
    """The tensor repeated; missing repetitions on the left are 1.

    >>> import tensorplay as tp
    >>> tp.tile(tp.tensor([1, 2]), (2, 2)).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    counts = as_shape(dims[0] if len(dims) == 1 else dims)
    return repeat(input, (1,) * (input.layout.ndim - len(counts)) + counts)


def repeat(input: Tensor, *repeats: Any) -> Tensor:  # noqa: A002
    """Copies of the tensor along each dimension.

    >>> import tensorplay as tp
    >>> tp.tensor([1, 2]).repeat(2, 2).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    counts = as_shape(repeats[0] if len(repeats) == 1 else repeats)
    if len(counts) < input.layout.ndim:
        raise ShapeError(f"repeat: {len(counts)} repetitions for a tensor with {input.layout.ndim} dimensions")
    if min(counts, default=0) < 0:
        raise ValueRangeError(f"repeat: repetitions must not be negative, got {list(counts)}")
    shape = (1,) * (len(counts) - input.layout.ndim) + input.layout.shape
    wide = input.reshape(tuple([n for size in shape for n in (1, size)]))
    spread = wide.expand(tuple([n for count, size in zip(counts, shape) for n in (count, size)]))
    return _own(spread.reshape(tuple([count * size for count, size in zip(counts, shape)])), input)


def _own(result: Tensor, source: Tensor) -> Tensor:
    """A copy where reshape gave a view: repeating promises memory of one's own."""
    return result.clone() if result.storage is source.storage else result


def repeat_interleave(input: Tensor, repeats: Any, dim: int | None = None, *,  # noqa: A002
                      output_size: int | None = None) -> Tensor:
    """Each element repeated: [a, b] -> [a, a, b, b]. `repeats` is a number or a tensor with one for each entry.

    >>> import tensorplay as tp
    >>> tp.repeat_interleave(tp.tensor([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    """
    x = input.reshape(-1) if dim is None else input
    d = normalize_dim(0 if dim is None else dim, x.layout.ndim, "repeat_interleave")
    if isinstance(repeats, Tensor) and repeats.layout.numel == 1:
        repeats = int(repeats.item())
    if min([repeats] if isinstance(repeats, int) else repeats.tolist() if isinstance(repeats, Tensor) else repeats,
           default=0) < 0:
        raise ValueRangeError(f"repeat_interleave: repeats must not be negative, got {repeats}")
    if isinstance(repeats, int):
        wide = x.unsqueeze(d + 1)
        shape = list(wide.layout.shape)
        shape[d + 1] = repeats
        spread = wide.expand(tuple(shape)).reshape(x.layout.shape[:d] + (-1,) + x.layout.shape[d + 1:]) \
            if x.layout.numel and repeats else x.narrow(d, 0, 0)
        return _own(spread, input)
    counts = repeats.tolist() if isinstance(repeats, Tensor) else list(repeats)
    if len(counts) != x.layout.shape[d]:
        raise ShapeError(f"repeat_interleave: {len(counts)} repeats for dimension {d} of size {x.layout.shape[d]}")
    index = [i for i, n in enumerate(counts) for _ in range(n)]
    return tp.index_select(x, d, tp.tensor(index, dtype=tp.int64, device=x.device))


def flip(input: Tensor, *axes: Any, dims: Any = None) -> Tensor:  # noqa: A002
    """A copy with the order of the entries reversed along dimensions: flip(x, 0, 1), flip(x, (0, 1)) or dims=.

    >>> import tensorplay as tp
    >>> tp.flip(tp.tensor([[1., 2.], [3., 4.]]), (0,)).tolist()
    [[3.0, 4.0], [1.0, 2.0]]
    """
    listed = axes if dims is None else (dims,)
    listed = listed[0] if len(listed) == 1 and isinstance(listed[0], (tuple, list)) else listed
    turned = input
    for d in normalize_dims(tuple(listed), input.layout.ndim, "flip"):
        turned = tp.slice_backwards(turned, d) if input.layout.ndim else turned
    return turned.clone()


def fliplr(input: Tensor) -> Tensor:  # noqa: A002
    """Reversed along dimension 1.

    >>> import tensorplay as tp
    >>> tp.fliplr(tp.tensor([[1., 2.], [3., 4.]])).tolist()
    [[2.0, 1.0], [4.0, 3.0]]
    """
    return flip(input, 1)


def flipud(input: Tensor) -> Tensor:  # noqa: A002
    """Reversed along dimension 0.

    >>> import tensorplay as tp
    >>> tp.flipud(tp.tensor([[1., 2.], [3., 4.]])).tolist()
    [[3.0, 4.0], [1.0, 2.0]]
    """
    return flip(input, 0)


def slice_backwards(input: Tensor, dim: int) -> Tensor:  # noqa: A002
    """A view that reads a dimension from its end."""
    from .parts import slice_op

    return slice_op(input, dim, None, None, -1)


def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:  # noqa: A002
    """Entries moved along `dims`; those pushed out at the end come back at the start.

    >>> import tensorplay as tp
    >>> tp.roll(tp.arange(4), 1).tolist()
    [3, 0, 1, 2]
    """
    if dims is None or dims == () or dims == []:
        return roll(input.reshape(-1), shifts, 0).reshape(input.layout.shape)
    shifts, dims = as_shape(shifts), as_shape(dims)
    if len(shifts) != len(dims):
        raise ArgumentError(f"roll: {len(shifts)} shifts for {len(dims)} dims")
    result = input
    for shift, dim in zip(shifts, dims):
        dim = normalize_dim(dim, input.layout.ndim, "roll")
        size = input.layout.shape[dim]
        cut = -shift % size if size else 0
        result = cat([result.narrow(dim, cut, size - cut), result.narrow(dim, 0, cut)], dim) if cut else result
    return result.clone() if result is input else result


# ---- triangles ------------------------------------------------------------------------------------------------------


def _triangle(name: str) -> Any:
    side, shown = ("lower", "[[1, 0], [1, 1]]") if name == "tril" else ("upper", "[[1, 1], [0, 1]]")
    made = op(f"{name}(Tensor input, int diagonal=0) -> Tensor",
              doc=f"""The {side} triangle of each matrix, the rest 0; `diagonal` moves the border up.

>>> import tensorplay as tp
>>> tp.{name}(tp.ones(2, 2, dtype=tp.int64)).tolist()
{shown}
""")

    @made.meta
    def _(source: Layout, diagonal: int) -> Layout:
        if source.ndim < 2:
            raise ShapeError(f"{name}: needs at least two dimensions, got {shape_text(source.shape)}")
        return source.dense()

    @made.decomposition
    def _(input: Tensor, diagonal: int) -> Tensor:  # noqa: A002
        made.op.rule("meta")(input.layout, diagonal)
        rows, columns = input.layout.shape[-2:]
        distance = tp.arange(columns, device=input.device) - tp.arange(rows, device=input.device).unsqueeze(1)
        keep = distance <= diagonal if name == "tril" else distance >= diagonal
        return tp.where(keep, input, tp.zeros((), dtype=input.dtype, device=input.device))

    made.vjp(input=lambda grad, diagonal: made(grad, diagonal))
    made.samples(lambda make: iter([(make(3, 4), 0), (make(2, 4, 3), -1), (make(3, 3), 1)]))
    return made


tril, triu = _triangle("tril"), _triangle("triu")


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple:
    """Coordinates of a grid from the coordinates of its axes.

    >>> import tensorplay as tp
    >>> [x.tolist() for x in tp.meshgrid(tp.tensor([1, 2]), tp.tensor([3, 4]), indexing='ij')]
    [[[1, 1], [2, 2]], [[3, 4], [3, 4]]]
    """
    listed = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    axes = [t.reshape(-1) for t in listed]
    if indexing not in ("ij", "xy"):
        raise ArgumentError(f"meshgrid: indexing must be 'ij' or 'xy', got {indexing!r}")
    swap = indexing == "xy" and len(axes) >= 2
    if swap:
        axes[0], axes[1] = axes[1], axes[0]
    shape = tuple([t.layout.numel for t in axes])
    grids = [t.reshape((1,) * i + (-1,) + (1,) * (len(axes) - i - 1)).expand(shape) for i, t in enumerate(axes)]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:  # noqa: A002
    """Matrices of zeros with the last dimension on a diagonal.

    >>> import tensorplay as tp
    >>> tp.diag_embed(tp.tensor([1, 2]), 1).tolist()
    [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    """
    size = input.layout.shape[-1] + abs(offset)
    d1, d2 = normalize_dim(dim1, input.layout.ndim + 1, "diag_embed"), normalize_dim(dim2, input.layout.ndim + 1,
                                                                                     "diag_embed")
    shape = list(input.layout.shape[:-1])
    for d in sorted((d1, d2)):
        shape.insert(d, size)
    return tp.place_view(input, "diagonal", (offset, d1, d2), tuple(shape))


def diag(input: Tensor, diagonal: int = 0) -> Tensor:  # noqa: A002
    """The diagonal of a matrix, or a matrix with this diagonal.

    >>> import tensorplay as tp
    >>> tp.diag(tp.tensor([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    return diag_embed(input, diagonal) if input.layout.ndim == 1 else tp.diagonal(input, diagonal).clone()


def trace(input: Tensor) -> Tensor:  # noqa: A002
    """The sum of the diagonal of a matrix.

    >>> import tensorplay as tp
    >>> tp.trace(tp.tensor([[1., 2.], [3., 4.]])).item()
    5.0
    """
    return tp.diagonal(input).sum()


FUNCTIONS = ("cat", "stack", "hstack", "vstack", "tile", "repeat_interleave", "flip", "fliplr", "flipud", "roll",
             "tril", "triu", "meshgrid", "diag_embed", "diag", "trace", "slice_backwards")
ALIASES = {"concat": "cat", "concatenate": "cat"}
METHODS = ("repeat", "tile", "repeat_interleave", "flip", "fliplr", "flipud", "roll", "tril", "triu", "diag_embed",
           "diag", "trace")
INPLACE = ("tril_", "triu_")
