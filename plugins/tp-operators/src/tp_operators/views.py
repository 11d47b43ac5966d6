"""Views: other shapes and strides over the same memory. The layouts are computed by core; here they become operators
with gradients."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import (
    VIEW,
    ArgumentError,
    ShapeError,
    Tensor,
    as_shape,
    normalize_dim,
    normalize_dims,
    op,
    shape_text,
    views,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def sizes(args: tuple) -> tuple:
    """`f(2, 3)`, `f((2, 3))` and `f([2, 3])` all mean (2, 3)."""
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        args = args[0]
    return as_shape(tuple(args))


def view_op(schema: str, meta: Any, doc: str = "") -> Any:
    made = op(schema, tags=(VIEW,), doc=doc)
    made.meta(meta)
    return made


# ---- shape ----------------------------------------------------------------------------------------------------------
view_shape = view_op("view(Tensor input, int[] size) -> Tensor", views.view)
view_shape.vjp(input=lambda grad, input_layout: reshape(grad, input_layout.shape))


@view_shape.samples
def _(make: Any) -> Iterator:
    yield make(2, 6), (3, 4)
    yield make(2, 6), (-1,)


def view(input: Tensor, *size: Any) -> Tensor:  # noqa: A002
    """The same memory in another shape; ShapeError if that needs a copy (reshape makes one).

    >>> import tensorplay as tp
    >>> tp.arange(6).view(2, -1).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    if len(size) == 1 and hasattr(size[0], "itemsize"):
        from .memory import bitcast

        return bitcast(input, size[0])
    return view_shape(input, sizes(size))


def reshape(input: Tensor, *shape: Any) -> Tensor:  # noqa: A002
    """The same elements in another shape: a view where possible, else a copy. One size may be -1.

    >>> import tensorplay as tp
    >>> tp.arange(6).reshape(3, 2).shape
    tensorplay.Size([3, 2])

    Raises ShapeError if the number of elements differs.
    """
    target = shape[0] if len(shape) == 1 and shape[0].__class__ is tuple else sizes(shape)
    source = input.layout
    if not source.contiguous and views.reshape(source, target, "reshape") is None:
        input = tp.copy_strided(input)  # noqa: A001
    return view_shape(input, target)


def view_as(input: Tensor, other: Tensor) -> Tensor:  # noqa: A002
    """The same memory in the shape of `other`.

    >>> import tensorplay as tp
    >>> tp.ones(6).view_as(tp.ones(2, 3)).shape
    tensorplay.Size([2, 3])
    """
    return view_shape(input, other.layout.shape)


def reshape_as(input: Tensor, other: Tensor) -> Tensor:  # noqa: A002
    """The same elements in the shape of `other`.

    >>> import tensorplay as tp
    >>> tp.ones(6).reshape_as(tp.ones(2, 3)).shape
    tensorplay.Size([2, 3])
    """
    return reshape(input, other.layout.shape)


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:  # noqa: A002
    """Dimensions start_dim to end_dim as one.

    >>> import tensorplay as tp
    >>> tp.ones(2, 3, 4).flatten(1).shape
    tensorplay.Size([2, 12])
    """
    shape = input.layout.shape
    first, last = normalize_dim(start_dim, len(shape), "flatten"), normalize_dim(end_dim, len(shape), "flatten")
    if first > last:
        raise ArgumentError(f"flatten: start_dim {start_dim} comes after end_dim {end_dim}")
    total = 1
    for size in shape[first:last + 1]:
        total *= size
    return reshape(input, shape[:first] + (total,) + shape[last + 1:])


def unflatten(input: Tensor, dim: int, size: Any) -> Tensor:  # noqa: A002
    """One dimension as several; one of their sizes may be -1.

    >>> import tensorplay as tp
    >>> tp.ones(6, 2).unflatten(0, (2, 3)).shape
    tensorplay.Size([2, 3, 2])
    """
    shape = input.layout.shape
    place = normalize_dim(dim, len(shape), "unflatten")
    parts = views.infer_size(as_shape(size), shape[place], "unflatten", (shape[place],))
    return view_shape(input, shape[:place] + parts + shape[place + 1:])


def ravel(input: Tensor) -> Tensor:  # noqa: A002
    """All elements in one dimension.

    >>> import tensorplay as tp
    >>> tp.ravel(tp.tensor([[1., 2.], [3., 4.]])).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    return reshape(input, (-1,))


# ---- order of dimensions --------------------------------------------------------------------------------------------
permute_op = view_op("permute(Tensor input, int[] dims) -> Tensor", views.permute)


def _inverse_permute(grad: Tensor, dims: Any) -> Tensor:
    order = normalize_dims(dims, grad.layout.ndim)
    return permute_op(grad, tuple([order.index(i) for i in range(len(order))]))


permute_op.vjp(input=_inverse_permute)


@permute_op.samples
def _(make: Any) -> Iterator:
    yield make(2, 3, 4), (2, 0, 1)


def permute(input: Tensor, *dims: Any) -> Tensor:  # noqa: A002
    """The dimensions in another order.

    >>> import tensorplay as tp
    >>> tp.ones(2, 3, 4).permute(2, 0, 1).shape
    tensorplay.Size([4, 2, 3])
    """
    return permute_op(input, sizes(dims))


permute.op = permute_op.op  # type: ignore[attr-defined]

transpose = view_op("transpose(Tensor input, int dim0, int dim1) -> Tensor", views.transpose)
transpose.vjp(input=lambda grad, dim0, dim1: transpose(grad, dim0, dim1))
transpose.__doc__ = """Two dimensions exchanged.

>>> import tensorplay as tp
>>> tp.ones(2, 3).transpose(0, 1).shape
tensorplay.Size([3, 2])
"""


@transpose.samples
def _(make: Any) -> Iterator:
    yield make(2, 3, 4), 0, -1


def t(input: Tensor) -> Tensor:  # noqa: A002
    """The transpose of a matrix; tensors with fewer than two dimensions as they are.

    >>> import tensorplay as tp
    >>> tp.t(tp.tensor([[1., 2.], [3., 4.]])).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    if input.layout.ndim > 2:
        raise ShapeError(f"t: expects at most two dimensions, got {shape_text(input.layout.shape)}; use mT or permute")
    return transpose(input, 0, 1) if input.layout.ndim == 2 else permute_op(input, tuple(range(input.layout.ndim)))


def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:  # noqa: A002
    """Dimensions moved from `source` to `destination`, the others in their order.

    >>> import tensorplay as tp
    >>> tp.ones(2, 3, 4).movedim(0, -1).shape
    tensorplay.Size([3, 4, 2])
    """
    ndim = input.layout.ndim
    from_dims, to_dims = normalize_dims(source, ndim, "movedim"), normalize_dims(destination, ndim, "movedim")
    if len(from_dims) != len(to_dims):
        raise ArgumentError(f"movedim: {len(from_dims)} sources but {len(to_dims)} destinations")
    rest = [d for d in range(ndim) if d not in from_dims]
    order = [from_dims[to_dims.index(i)] if i in to_dims else rest.pop(0) for i in range(ndim)]
    return permute_op(input, tuple(order))


swapaxes = swapdims = transpose
moveaxis = movedim


def matrix_transpose(input: Tensor) -> Tensor:  # noqa: A002
    return transpose(input, -2, -1)


def adjoint(input: Tensor) -> Tensor:  # noqa: A002
    """The conjugate transpose of the last two dimensions.

    >>> import tensorplay as tp
    >>> tp.adjoint(tp.tensor([[1j, 2], [3, 4]])).tolist()
    [[-1j, (3-0j)], [(2-0j), (4-0j)]]
    """
    from .arithmetic import conjugate

    return conjugate(transpose(input, -2, -1))


T = property(lambda self: permute_op(self, tuple(range(self.layout.ndim))[::-1]), doc="All dimensions reversed.")
mT = property(matrix_transpose, doc="The last two dimensions exchanged.")
H = mH = property(adjoint, doc="The conjugate transpose.")

# ---- size 1 and repetition ------------------------------------------------------------------------------------------
squeeze_op = view_op("squeeze(Tensor input, int[]? dim=None) -> Tensor", views.squeeze, """Without the dimensions of
size 1, or without those in `dim` that have size 1.

>>> import tensorplay as tp
>>> tp.squeeze(tp.ones(2, 1, 3)).shape
tensorplay.Size([2, 3])
""")
squeeze_op.vjp(input=lambda grad, input_layout: reshape(grad, input_layout.shape))


@squeeze_op.samples
def _(make: Any) -> Iterator:
    yield make(2, 1, 3, 1), None
    yield make(2, 1, 3), 1


squeeze = squeeze_op
unsqueeze = view_op("unsqueeze(Tensor input, int dim) -> Tensor", views.unsqueeze, """A new dimension of size 1.

>>> import tensorplay as tp
>>> tp.unsqueeze(tp.ones(2, 3), -1).shape
tensorplay.Size([2, 3, 1])
""")
unsqueeze.vjp(input=lambda grad, input_layout: reshape(grad, input_layout.shape))


@unsqueeze.samples
def _(make: Any) -> Iterator:
    yield make(2, 3), 1
    yield make(2, 3), -1


expand_op = view_op("expand(Tensor input, int[] size) -> Tensor", views.expand)
expand_op.vjp(input=lambda grad: grad)  # the engine sums over what was repeated


@expand_op.samples
def _(make: Any) -> Iterator:
    yield make(3, 1), (2, 3, 4)


def expand(input: Tensor, *size: Any) -> Tensor:  # noqa: A002
    """Repeat dimensions of size 1 without copying; -1 keeps a size.

    >>> import tensorplay as tp
    >>> tp.tensor([[1], [2]]).expand(-1, 3).tolist()
    [[1, 1, 1], [2, 2, 2]]
    """
    return expand_op(input, sizes(size))


expand.op = expand_op.op  # type: ignore[attr-defined]


def expand_as(input: Tensor, other: Tensor) -> Tensor:  # noqa: A002
    """Expanded to the shape of `other`.

    >>> import tensorplay as tp
    >>> tp.ones(1, 2).expand_as(tp.ones(3, 2)).shape
    tensorplay.Size([3, 2])
    """
    return expand_op(input, other.layout.shape)


def broadcast_to(input: Tensor, size: Any) -> Tensor:  # noqa: A002
    """Expanded to `size`.

    >>> import tensorplay as tp
    >>> tp.broadcast_to(tp.tensor([1, 2]), (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    return expand_op(input, sizes((size,)))


def broadcast_tensors(*tensors: Tensor) -> tuple:
    """All tensors expanded to their common shape.

    >>> import tensorplay as tp
    >>> [x.shape for x in tp.broadcast_tensors(tp.ones(3, 1), tp.ones(2))]
    [tensorplay.Size([3, 2]), tensorplay.Size([3, 2])]
    """
    from tensorplay.library import broadcast_shapes

    shape = broadcast_shapes(*[x.layout.shape for x in tensors])
    return tuple([expand_op(x, shape) for x in tensors])


FUNCTIONS = ("reshape", "flatten", "unflatten", "ravel", "permute", "transpose", "t", "movedim", "squeeze", "unsqueeze",
             "broadcast_to", "broadcast_tensors", "adjoint")
ALIASES = {"swapaxes": "transpose", "swapdims": "transpose", "moveaxis": "movedim"}
METHODS = tuple([name for name in FUNCTIONS if name != "broadcast_tensors"]) + (
    *ALIASES, "view", "view_as", "reshape_as", "expand", "expand_as", "T", "mT", "H", "mH")
