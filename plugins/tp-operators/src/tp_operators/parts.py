"""Views of a part of a tensor: one position, a slice, a diagonal, an index, overlapping windows, pieces."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import (
    ArgumentError,
    Layout,
    ShapeError,
    Tensor,
    ValueRangeError,
    as_int,
    as_shape,
    op,
    shape_text,
    view_of_index,
    views,
)

from .views import reshape, view_op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# ---- parts ----------------------------------------------------------------------------------------------------------
place_view = op("place_view(Tensor grad, str kind, any args, int[] shape) -> Tensor",
                doc="Zeros of `shape` with `grad` where the view (kind, args) reads: the gradient of that view.")
place_view.vjp(grad=lambda grad, kind, args: _PARTS[kind](grad, *args))


@place_view.meta
def _(grad: Layout, kind: str, args: Any, shape: tuple) -> Layout:
    return grad.with_shape(tuple(shape))


@place_view.decomposition
def _(grad: Tensor, kind: str, args: Any, shape: tuple) -> Tensor:
    result = tp.zeros(tuple(shape), dtype=grad.dtype, device=grad.device)
    tp.write_(_PARTS[kind](result, *args), grad)
    return result


@place_view.samples
def _(make: Any) -> Iterator:
    yield make(3), "select", (1, -1), (3, 4)
    yield make(2, 4), "slice", (0, 1, 4, 2), (5, 4)
    yield make(2), "diagonal", (1, 0, 1), (3, 3)


select = view_op("select(Tensor input, int dim, int index) -> Tensor", views.select, """Position `index` of dimension
`dim`, which goes away.

>>> import tensorplay as tp
>>> tp.select(tp.tensor([[1, 2], [3, 4]]), 1, 0).tolist()
[1, 3]
""")
select.vjp(input=lambda grad, dim, index, input_layout: place_view(grad, "select", (dim, index), input_layout.shape))


@select.samples
def _(make: Any) -> Iterator:
    yield make(3, 4), 1, -1


slice_op = view_op("slice(Tensor input, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
                   views.slice_dim)
slice_op.vjp(input=lambda grad, dim, start, end, step, input_layout:
             place_view(grad, "slice", (dim, start, end, step), input_layout.shape))


@slice_op.samples
def _(make: Any) -> Iterator:
    yield make(5, 4), 0, 1, 4, 2
    yield make(5, 4), 1, None, None, -1


index_view = view_op("index_view(Tensor input, any spec) -> Tensor", view_of_index,
                     "What an index of ints, slices, None and `...` selects; `spec` is such an index, normalised.")
index_view.vjp(input=lambda grad, spec, input_layout: place_view(grad, "index", (spec,), input_layout.shape))


@index_view.samples
def _(make: Any) -> Iterator:
    yield make(5, 4), (("int", 1), ("slice", None, None, -2))
    yield make(5, 4), (("slice", 1, 4, None), ("new",), ("int", -1))


diagonal = view_op("diagonal(Tensor input, int offset=0, int dim1=0, int dim2=1) -> Tensor", views.diagonal, """The
diagonal of two dimensions, `offset` above the main one, as the last dimension.

>>> import tensorplay as tp
>>> tp.diagonal(tp.tensor([[1, 2], [3, 4]])).tolist()
[1, 4]
""")
diagonal.vjp(input=lambda grad, offset, dim1, dim2, input_layout:
             place_view(grad, "diagonal", (offset, dim1, dim2), input_layout.shape))


@diagonal.samples
def _(make: Any) -> Iterator:
    yield make(3, 4), 0, 0, 1
    yield make(2, 3, 4), -1, 1, 2


_PARTS = {"select": select, "slice": slice_op, "index": index_view, "diagonal": diagonal}


def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:  # noqa: A002
    """`length` entries of a dimension from `start` on.

    >>> import tensorplay as tp
    >>> tp.arange(5).narrow(0, 1, 3).tolist()
    [1, 2, 3]
    """
    size = input.size(dim)
    start = as_int(start, "narrow: start")
    start = start + size if start < 0 else start
    if length < 0 or not 0 <= start <= size - length:
        raise ShapeError(f"narrow: {length} entries from {start} on do not lie within dimension {dim} of size {size}")
    return slice_op(input, dim, start, start + length, 1)


# ---- overlapping windows --------------------------------------------------------------------------------------------
place_windows = op("place_windows(Tensor grad, str kind, any args, int[] shape) -> Tensor",
                   doc="Like place_view for views that read an element several times: their gradients add up.")
place_windows.vjp(grad=lambda grad, kind, args: _WINDOWS[kind](grad, *args))


@place_windows.meta
def _(grad: Layout, kind: str, args: Any, shape: tuple) -> Layout:
    return grad.with_shape(tuple(shape))


@place_windows.decomposition
def _(grad: Tensor, kind: str, args: Any, shape: tuple) -> Tensor:
    total = 1
    for size in shape:
        total *= size
    positions = _WINDOWS[kind](tp.arange(total, device=grad.device).reshape(tuple(shape)), *args)
    flat = tp.zeros((total,), dtype=grad.dtype, device=grad.device)
    return reshape(tp.scatter_add(flat, 0, reshape(positions, (-1,)), reshape(grad, (-1,))), tuple(shape))


@place_windows.samples
def _(make: Any) -> Iterator:
    yield make(3, 3), "unfold", (0, 3, 2), (7,)
    yield make(3, 4), "as_strided", ((3, 4), (2, 1), 1), (12,)


as_strided_op = view_op("as_strided(Tensor input, int[] size, int[] stride, int storage_offset=0) -> Tensor",
                        views.as_strided)
as_strided_op.vjp(input=lambda grad, size, stride, storage_offset, input_layout: place_windows(
    grad, "as_strided", (size, stride, storage_offset), input_layout.shape))


@as_strided_op.samples
def _(make: Any) -> Iterator:
    yield make(12), (3, 4), (2, 1), 1


def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:  # noqa: A002
    """Any shape and strides (in elements) over the tensor's memory, beginning at its element number `storage_offset`,
    or where the tensor itself begins.

    >>> import tensorplay as tp
    >>> tp.arange(6).as_strided((2, 2), (3, 1), 1).tolist()
    [[1, 2], [4, 5]]

    Raises ValueRangeError for elements outside the tensor's memory.
    """
    shape, strides = as_shape(size), as_shape(stride, "stride")
    start = input.offset if storage_offset is None else as_int(storage_offset, "as_strided: storage_offset")
    reach = [(n - 1) * step for n, step in zip(shape, strides)]
    lowest, highest = start + sum([r for r in reach if r < 0]), start + sum([r for r in reach if r > 0])
    count = input.storage.nbytes // input.layout.dtype.itemsize
    if 0 not in shape and not 0 <= lowest <= highest < count:
        raise ValueRangeError(f"as_strided: size {shape_text(shape)} with strides {strides} from element {start} on "
                              f"reaches outside the tensor's memory of {count} elements")
    return as_strided_op(input, shape, strides, start - input.offset)


as_strided.op = as_strided_op.op  # type: ignore[attr-defined]


unfold = view_op("unfold(Tensor input, int dimension, int size, int step) -> Tensor", views.unfold, """All windows of
`size` elements, every `step`, along a dimension; the elements of a window become the last dimension.

>>> import tensorplay as tp
>>> tp.tensor([1, 2, 3, 4]).unfold(0, 2, 1).tolist()
[[1, 2], [2, 3], [3, 4]]
""")
unfold.vjp(input=lambda grad, dimension, size, step, input_layout: place_windows(
    grad, "unfold", (dimension, size, step), input_layout.shape))


@unfold.samples
def _(make: Any) -> Iterator:
    yield make(7), 0, 3, 2
    yield make(2, 5), 1, 2, 1


_WINDOWS = {"as_strided": as_strided_op, "unfold": unfold}

# ---- splitting ------------------------------------------------------------------------------------------------------


def unbind(input: Tensor, dim: int = 0) -> tuple:  # noqa: A002
    """The slices along a dimension, without it.

    >>> import tensorplay as tp
    >>> [x.tolist() for x in tp.tensor([[1., 2.], [3., 4.]]).unbind()]
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return tuple([select(input, dim, i) for i in range(input.size(dim))])


def split(input: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple:  # noqa: A002
    """Parts of a size (the last may be smaller), or of the sizes in a list.

    >>> import tensorplay as tp
    >>> [p.tolist() for p in tp.arange(5).split(2)]
    [[0, 1], [2, 3], [4]]
    """
    total = input.size(dim)
    if isinstance(split_size_or_sections, (list, tuple)):
        sections = list(split_size_or_sections)
        if sum(sections) != total or any([n < 0 for n in sections]):
            raise ShapeError(f"split: sections {sections} must add up to {total}, the size of dimension {dim}")
    else:
        size = as_int(split_size_or_sections, "split: split_size")
        if size <= 0:
            raise ArgumentError(f"split: split_size must be positive, got {size}")
        sections = [min(size, total - i) for i in range(0, total, size)] or [0]
    starts = [sum(sections[:i]) for i in range(len(sections))]
    return tuple([slice_op(input, dim, start, start + n, 1) for start, n in zip(starts, sections)])


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple:  # noqa: A002
    """At most `chunks` parts of equal size (the last may be smaller).

    >>> import tensorplay as tp
    >>> [x.tolist() for x in tp.arange(5).chunk(2)]
    [[0, 1, 2], [3, 4]]
    """
    if chunks <= 0:
        raise ArgumentError(f"chunk: chunks must be positive, got {chunks}")
    total = input.size(dim)
    return split(input, max(-(-total // chunks), 1), dim)


def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple:  # noqa: A002
    """`n` parts whose sizes differ by at most one, or parts cut at the given indices.

    >>> import tensorplay as tp
    >>> [x.tolist() for x in tp.arange(5).tensor_split(2)]
    [[0, 1, 2], [3, 4]]
    """
    total = input.size(dim)
    if isinstance(indices_or_sections, int):
        size, extra = divmod(total, indices_or_sections)
        cuts = [size * i + min(i, extra) for i in range(1, indices_or_sections)]
    else:
        cuts = [int(i) for i in indices_or_sections]
    return tuple([slice_op(input, dim, a, b, 1) for a, b in zip([0, *cuts], [*cuts, total])])


FUNCTIONS = ("select", "narrow", "diagonal", "index_view", "place_view", "as_strided", "unbind", "split", "chunk",
             "tensor_split")
METHODS = ("select", "narrow", "diagonal", "as_strided", "unfold", "unbind", "split", "chunk", "tensor_split")
