"""Reading and writing along a dimension by index: gather, scatter, index_select."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import (
    PRIMITIVE,
    ArgumentError,
    DTypeError,
    Layout,
    ShapeError,
    Tensor,
    normalize_dim,
    op,
    shape_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def check_index_dtype(name: str, index: Layout) -> None:
    if index.dtype not in (tp.int64, tp.int32):
        raise DTypeError(f"{name}: index must be int64 (or int32), got {index.dtype.name}; convert with .long()")


# ---- gather, scatter ------------------------------------------------------------------------------------------------
gather = op("gather(Tensor input, int dim, Tensor index) -> Tensor", tags=(PRIMITIVE,), doc="""Elements picked along
`dim`: out[i][j] = input[index[i][j]][j] for dim 0. `index` has input's number of dimensions.

>>> import tensorplay as tp
>>> tp.gather(tp.tensor([[1, 2], [3, 4]]), 1, tp.tensor([[1], [0]])).tolist()
[[2], [3]]

Raises IndexRangeError for an index outside 0..size-1.
""")


def _check_along(name: str, input: Layout, dim: int, index: Layout) -> int:  # noqa: A002
    check_index_dtype(name, index)
    d = normalize_dim(dim, input.ndim, name)
    if max(input.ndim, 1) != max(index.ndim, 1):
        raise ShapeError(f"{name}: index{shape_text(index.shape)} must have as many dimensions as "
                         f"input{shape_text(input.shape)}")
    for i, (size, limit) in enumerate(zip(index.shape, input.shape)):
        if i != d and size > limit:
            raise ShapeError(f"{name}: index{shape_text(index.shape)} is larger than input{shape_text(input.shape)} in "
                             f"dimension {i}")
    return d


@gather.meta
def _(input: Layout, dim: int, index: Layout) -> Layout:  # noqa: A002
    _check_along("gather", input, dim, index)
    return input.with_shape(index.shape)


gather.vjp(input=lambda grad, dim, index, input_layout: scatter_op(
    tp.zeros(input_layout.shape, dtype=grad.dtype, device=grad.device), dim, index, grad, "add"))


@gather.samples
def _(make: Any) -> Iterator:
    yield make(3, 4), 1, make.integers((3, 2), 0, 4)
    yield make(3, 4), 0, make.integers((2, 4), 0, 3)


scatter_op = op("scatter(Tensor input, int dim, Tensor index, Tensor src, str mode) -> Tensor", tags=(PRIMITIVE,),
                doc="`input` with src written ('set') or added ('add') where index says: the inverse of gather.")


@scatter_op.meta
def _(input: Layout, dim: int, index: Layout, src: Layout, mode: str) -> Layout:  # noqa: A002
    _check_along("scatter", input, dim, index)
    if src.dtype is not input.dtype:
        raise DTypeError(f"scatter: src is {src.dtype.name} but input is {input.dtype.name}; they must be the same")
    for i, (size, limit) in enumerate(zip(index.shape, src.shape)):
        if size > limit:
            raise ShapeError(f"scatter: index{shape_text(index.shape)} is larger than src{shape_text(src.shape)} in "
                             f"dimension {i}")
    return input.dense()


def _at(src: Tensor, index: Tensor) -> Tensor:
    """The part of src that index covers."""
    for d, size in enumerate(index.layout.shape):
        if src.layout.shape[d] != size:
            src = src.narrow(d, 0, size)
    return src


def _scatter_input_grad(grad: Tensor, dim: int, index: Tensor, mode: str) -> Tensor:
    if mode == "add":
        return grad
    zero = tp.zeros(index.layout.shape, dtype=grad.dtype, device=grad.device)
    return scatter_op(grad, dim, index, zero, "set")


def _scatter_src_grad(grad: Tensor, dim: int, index: Tensor, src_layout: Layout) -> Tensor:
    picked = gather(grad, dim, index)
    if src_layout.shape == picked.layout.shape:
        return picked
    whole = tp.zeros(src_layout.shape, dtype=grad.dtype, device=grad.device)
    return tp.place_view(picked, "index", (tuple([("slice", 0, n, None) for n in picked.layout.shape]),),
                         whole.layout.shape)


scatter_op.vjp(input=_scatter_input_grad, src=_scatter_src_grad)


@scatter_op.samples
def _(make: Any) -> Iterator:
    yield make(3, 5), 1, make.permutation((3, 4), 5), make(3, 4), "set"
    yield make(3, 5), 0, make.integers((6, 5), 0, 3), make(6, 5), "add"


def scatter(input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None,  # noqa: A002
            reduce: str | None = None) -> Tensor:
    """`input` with `src` (a tensor or number) written where `index` says along `dim`.

    >>> import tensorplay as tp
    >>> tp.scatter(tp.zeros(3), 0, tp.tensor([2, 0]), tp.tensor([5., 7.])).tolist()
    [7.0, 0.0, 5.0]

    `reduce` 'add' or 'multiply' combines with what is there.
    """
    source = value if src is None else src
    if not isinstance(source, Tensor):
        source = tp.full(index.layout.shape, source, dtype=input.dtype, device=input.device)
    if reduce == "multiply":
        return scatter_reduce(input, dim, index, source, "prod")
    if reduce not in (None, "add"):
        raise ArgumentError(f"scatter: reduce must be None, 'add' or 'multiply', got {reduce!r}")
    return scatter_op(input, dim, index, source, "set" if reduce is None else "add")


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:  # noqa: A002
    """`input` with `src` added where `index` says along `dim`; repeated indices add up.

    >>> import tensorplay as tp
    >>> tp.scatter_add(tp.zeros(3), 0, tp.tensor([0, 0, 2]), tp.ones(3)).tolist()
    [2.0, 0.0, 1.0]
    """
    return scatter_op(input, dim, index, src, "add")


scatter_reduce_op = op("scatter_reduce(Tensor input, int dim, Tensor index, Tensor src, str mode) -> Tensor",
                       tags=(PRIMITIVE,), doc="`input` combined with src by 'mul', 'max' or 'min' where index says.")


@scatter_reduce_op.meta
def _(input: Layout, dim: int, index: Layout, src: Layout, mode: str) -> Layout:  # noqa: A002
    _check_along("scatter_reduce", input, dim, index)
    return input.dense()


@scatter_reduce_op.decomposition
def _(input: Tensor, dim: int, index: Tensor, src: Tensor, mode: str) -> Tensor:  # noqa: A002
    """One round for each time that an index occurs: in a round every target is met at most once."""
    d = normalize_dim(dim, input.layout.ndim, "scatter_reduce")
    src = _at(src, index)
    combine = {"mul": tp.mul, "max": tp.maximum, "min": tp.minimum}[mode]
    result = input.clone()
    for i in range(index.layout.shape[d] if index.layout.ndim else 1):
        at = index.narrow(d, i, 1) if index.layout.ndim else index
        result = scatter_op(result, d, at, combine(gather(result, d, at), src.narrow(d, i, 1) if index.layout.ndim
                                                   else src), "set")
    return result


@scatter_reduce_op.samples
def _(make: Any) -> Iterator:
    for mode in ("mul", "max", "min"):
        yield make(3, 5), 1, make.integers((3, 6), 0, 5), make(3, 6), mode


def scatter_reduce(input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *,  # noqa: A002
                   include_self: bool = True) -> Tensor:
    """`input` combined with `src` where `index` says; reduce is 'sum', 'prod', 'mean', 'amax' or 'amin'.

    >>> import tensorplay as tp
    >>> tp.scatter_reduce(tp.ones(2), 0, tp.tensor([0, 0]), tp.tensor([3., 4.]), 'prod').tolist()
    [12.0, 1.0]
    """
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise ArgumentError(f"scatter_reduce: reduce must be sum, prod, mean, amax or amin, got {reduce!r}")
    base = input
    if not include_self:
        start = {"sum": 0, "mean": 0, "prod": 1}.get(reduce)
        if start is None:
            limit = float("inf") if input.dtype.category == 2 else tp.iinfo(input.dtype).max
            start = (-limit if reduce == "amax" else limit) if input.dtype.category == 2 else \
                (tp.iinfo(input.dtype).min if reduce == "amax" else limit)
        base = scatter(input, dim, index, value=start)
    if reduce in ("sum", "mean"):
        total = scatter_add(base, dim, index, src)
        if reduce == "sum":
            return total
        one = tp.ones_like(src)
        number = scatter_add(tp.ones_like(input) if include_self else scatter(tp.ones_like(input), dim, index, value=0),
                             dim, index, one)
        return total / number if input.dtype.category >= 2 else tp.floor_divide(total, number)
    return scatter_reduce_op(base, dim, index, src, {"prod": "mul", "amax": "max", "amin": "min"}[reduce])


# ---- index_select ---------------------------------------------------------------------------------------------------
index_select = op("index_select(Tensor input, int dim, Tensor index) -> Tensor", doc="""Slices of `input` along `dim` in
the order of the 1-d `index`.

>>> import tensorplay as tp
>>> tp.index_select(tp.tensor([10, 20, 30]), 0, tp.tensor([2, 0])).tolist()
[30, 10]
""")


@index_select.meta
def _(input: Layout, dim: int, index: Layout) -> Layout:  # noqa: A002
    check_index_dtype("index_select", index)
    d = normalize_dim(dim, input.ndim, "index_select")
    if index.ndim > 1:
        raise ShapeError(f"index_select: index must have one dimension, got index{shape_text(index.shape)}")
    return input.with_shape(input.shape[:d] + (index.numel,) + input.shape[d + 1:]) if input.ndim else input.dense()


@index_select.decomposition
def _(input: Tensor, dim: int, index: Tensor) -> Tensor:  # noqa: A002
    result = index_select.op.rule("meta")(input.layout, dim, index.layout)
    index = index.to(tp.int64)
    if not input.layout.ndim:
        return gather(input.reshape(1), 0, index.reshape(-1)).reshape(())
    d = normalize_dim(dim, input.layout.ndim, "index_select")
    wide = index.reshape((-1,) + (1,) * (input.layout.ndim - d - 1)).expand(result.shape)
    return gather(input, d, wide)


index_select.vjp(input=lambda grad, dim, index, input_layout: index_add(
    tp.zeros(input_layout.shape, dtype=grad.dtype, device=grad.device), dim, index, grad))


@index_select.samples
def _(make: Any) -> Iterator:
    yield make(3, 4), 1, make.integers((5,), 0, 4)
    yield make(3, 4), 0, make.integers((2,), 0, 3)


def _wide_index(input: Tensor, dim: int, index: Tensor, source: Tensor) -> tuple:  # noqa: A002
    d = normalize_dim(dim, input.layout.ndim, "index_add")
    return d, index.to(tp.int64).reshape((-1,) + (1,) * (input.layout.ndim - d - 1)).expand(source.layout.shape)


def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:  # noqa: A002
    """`input` with slices of `source` added at the given positions of `dim`.

    >>> import tensorplay as tp
    >>> tp.index_add(tp.zeros(3), 0, tp.tensor([0, 0]), tp.tensor([1., 2.])).tolist()
    [3.0, 0.0, 0.0]
    """
    source = source if alpha == 1 else source * alpha
    if not input.layout.ndim:
        return input + source.sum()
    d, wide = _wide_index(input, dim, index, source)
    return scatter_op(input, d, wide, source, "add")


def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:  # noqa: A002
    """`input` with slices replaced by those of `source`.

    >>> import tensorplay as tp
    >>> tp.index_copy(tp.zeros(3), 0, tp.tensor([2, 0]), tp.tensor([1., 2.])).tolist()
    [2.0, 0.0, 1.0]
    """
    if not input.layout.ndim:
        return source.reshape(())
    d, wide = _wide_index(input, dim, index, source)
    return scatter_op(input, d, wide, source, "set")


def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:  # noqa: A002
    """`input` with slices along `dim` filled with one value.

    >>> import tensorplay as tp
    >>> tp.index_fill(tp.zeros(3), 0, tp.tensor([0, 2]), 5.0).tolist()
    [5.0, 0.0, 5.0]
    """
    d = normalize_dim(dim, input.layout.ndim, "index_fill")
    shape = input.layout.shape[:d] + (index.layout.numel,) + input.layout.shape[d + 1:]
    value = value if isinstance(value, Tensor) else tp.full((), value, dtype=input.dtype, device=input.device)
    return index_copy(input, dim, index, value.expand(shape))


FUNCTIONS = ("gather", "scatter", "scatter_add", "scatter_reduce", "index_select", "index_add", "index_copy",
             "index_fill")
METHODS = FUNCTIONS
INPLACE = ("scatter_", "scatter_add_", "scatter_reduce_", "index_add_", "index_copy_", "index_fill_")
