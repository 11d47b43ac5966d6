"""Sums, means, extremes and other reductions over one, several or all dimensions."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import (
    NONDIFFERENTIABLE,
    PRIMITIVE,
    DTypeError,
    IndexRangeError,
    Layout,
    Tensor,
    as_dtype,
    layout,
    normalize_dim,
    normalize_dims,
    op,
)

from ._order import named_pair, ordered_only

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def reduced_shape(source: Layout, dims: tuple, keepdim: bool) -> tuple:
    if keepdim:
        return tuple([1 if i in dims else n for i, n in enumerate(source.shape)])
    return tuple([n for i, n in enumerate(source.shape) if i not in dims])


def all_dims(dim: Any, ndim: int, name: str) -> tuple:
    """None and an empty list mean every dimension, as in torch's sum."""
    return tuple(range(ndim)) if dim is None or dim == () or dim == [] else normalize_dims(dim, ndim, name)


def restore(grad: Tensor, source: Layout, dim: Any, keepdim: bool) -> Tensor:
    """A reduction's gradient with the reduced dimensions back, as size 1."""
    if keepdim or dim is None:  # one number reads in any shape
        return grad
    return grad.reshape(reduced_shape(source, all_dims(dim, source.ndim, "grad"), True))


# ---- sum, mean ------------------------------------------------------------------------------------------------------
SUM = "(Tensor input, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor"
sum_op = op(f"sum{SUM}", tags=(PRIMITIVE,))


@sum_op.meta
def _(source: Layout, dim: Any, keepdim: bool, dtype: Any) -> Layout:
    if dtype is None:
        dtype = tp.int64 if source.dtype.category < 2 else source.dtype
    return layout(reduced_shape(source, all_dims(dim, source.ndim, "sum"), keepdim), as_dtype(dtype), source.device)


sum_op.vjp(input=lambda grad, input_layout, dim, keepdim: restore(grad, input_layout, dim, keepdim).expand(
    input_layout.shape))


def reduction_samples(make: Any) -> Iterator:
    yield make(3, 4), None, False
    yield make(3, 4, 5), 1, False
    yield make(3, 4, 5), (0, -1), True


sum_op.samples(reduction_samples)


def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None,  # noqa: A001,A002
        out: Tensor | None = None, axis: Any = None, keepdims: bool | None = None) -> Tensor:
    """The sum over `dim` (all dimensions if None); integers are summed in int64.

    >>> import tensorplay as tp
    >>> tp.ones(2, 3).sum(0).tolist()
    [2.0, 2.0, 2.0]
    """
    dim, keepdim = dim if axis is None else axis, keepdim if keepdims is None else keepdims
    if out is not None:
        return sum_op(input, dim, keepdim, dtype, out=out)
    return sum_op(input, dim, keepdim, dtype)


sum.op = sum_op.op  # type: ignore[attr-defined]

mean_op = op(f"mean{SUM}")


@mean_op.meta
def _(source: Layout, dim: Any, keepdim: bool, dtype: Any) -> Layout:
    result = as_dtype(dtype) if dtype is not None else source.dtype
    if result.category < 2:
        raise DTypeError(f"mean: the result of averaging {source.dtype.name} is not an integer; use x.float().mean() "
                         f"or give a floating point dtype")
    return layout(reduced_shape(source, all_dims(dim, source.ndim, "mean"), keepdim), result, source.device)


def count(source: Layout, dim: Any) -> int:
    total = 1
    for d in all_dims(dim, source.ndim, "mean") if source.ndim else ():
        total *= source.shape[d]
    return total


@mean_op.decomposition
def _(input: Tensor, dim: Any, keepdim: bool, dtype: Any) -> Tensor:  # noqa: A002
    mean_op.op.rule("meta")(input.layout, dim, keepdim, dtype)
    total = sum_op(input, dim, keepdim, dtype)
    n = count(input.layout, dim)
    return total / n if n else total * float("nan")


mean_op.vjp(input=lambda grad, input_layout, dim, keepdim: (
    restore(grad, input_layout, dim, keepdim) * (1 / (count(input_layout, dim) or 1))).expand(input_layout.shape))
mean_op.samples(reduction_samples)


def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None,  # noqa: A002
         out: Tensor | None = None, axis: Any = None) -> Tensor:
    """The average over `dim` (all dimensions if None); floating point only.

    >>> import tensorplay as tp
    >>> tp.tensor([1., 2., 6.]).mean().item()
    3.0
    """
    return mean_op(input, dim if axis is None else axis, keepdim, dtype, out=out)


mean.op = mean_op.op  # type: ignore[attr-defined]

# ---- extremes -------------------------------------------------------------------------------------------------------


def extreme_meta(name: str) -> Any:
    def meta(source: Layout, dim: Any, keepdim: bool) -> Layout:
        dims = all_dims(dim, source.ndim, name)
        for d in dims:
            if source.ndim and source.shape[d] == 0:
                raise IndexRangeError(f"{name}: dimension {d} has size 0, so there is no value to choose; "
                                      f"shape {list(source.shape)}")
        ordered_only(name, source)
        return layout(reduced_shape(source, dims, keepdim), source.dtype, source.device)

    return meta


def _extreme_grad(grad: Tensor, input: Tensor, output: Tensor, dim: Any, keepdim: bool) -> Tensor:  # noqa: A002
    """Shared evenly between ties, as torch's amax does."""
    best = restore(output, input.layout, dim, keepdim)
    mask = (input == best).to(grad.dtype)
    ties = sum_op(mask, dim if dim not in ((), []) else None, True, None)
    return restore(grad, input.layout, dim, keepdim) / ties * mask


amax = op("amax(Tensor input, int[] dim=(), bool keepdim=False) -> Tensor", tags=(PRIMITIVE,), doc="""The largest value
along `dim` (all dimensions if empty); NaN wins. Gradients are shared between ties.

>>> import tensorplay as tp
>>> tp.tensor([[1., 5.], [7., 2.]]).amax(1).tolist()
[5.0, 7.0]
""")
amax.meta(extreme_meta("amax"))
amax.vjp(input=_extreme_grad)
amax.samples(lambda make: iter([(make(3, 4), (1,), False), (make(3, 4), (), False)]))

amin = op("amin(Tensor input, int[] dim=(), bool keepdim=False) -> Tensor", tags=(PRIMITIVE,), doc="""The smallest value
along `dim` (all dimensions if empty); NaN wins. Gradients are shared between ties.

>>> import tensorplay as tp
>>> tp.tensor([[1., 5.], [7., 2.]]).amin(1).tolist()
[1.0, 2.0]
""")
amin.meta(extreme_meta("amin"))
amin.vjp(input=_extreme_grad)
amin.samples(lambda make: iter([(make(3, 4), (1,), False), (make(3, 4), (), False)]))


@amin.decomposition
def _(input: Tensor, dim: Any, keepdim: bool) -> Tensor:  # noqa: A002
    ordered_only("amin", input.layout)
    if input.dtype.category == 2:
        return -amax(-input, dim, keepdim)
    return ~amax(~input, dim, keepdim)  # the complement reverses the order of integers, minimum and unsigned included


def arg_meta(name: str) -> Any:
    def meta(source: Layout, dim: Any, keepdim: bool) -> Layout:
        ordered_only(name, source)
        if dim is None:
            if source.numel == 0:
                raise IndexRangeError(f"{name}: the tensor has no elements; give a dim with a size above 0")
            return layout((1,) * source.ndim if keepdim else (), tp.int64, source.device)
        d = normalize_dim(dim, source.ndim, name)
        if source.ndim and source.shape[d] == 0:
            raise IndexRangeError(f"{name}: dimension {d} has size 0; shape {list(source.shape)}")
        return layout(reduced_shape(source, (d,) if source.ndim else (), keepdim), tp.int64, source.device)

    return meta


argmax = op("argmax(Tensor input, int? dim=None, bool keepdim=False) -> Tensor", tags=(PRIMITIVE, NONDIFFERENTIABLE),
            doc="""The index of the largest value along `dim`, or in the flattened tensor; the first of equal ones.

>>> import tensorplay as tp
>>> tp.tensor([1., 9., 9.]).argmax().item()
1
""")
argmax.meta(arg_meta("argmax"))
argmax.samples(lambda make: iter([(make(3, 4), None, False), (make(3, 4), 1, True)]))

argmin = op("argmin(Tensor input, int? dim=None, bool keepdim=False) -> Tensor", tags=(PRIMITIVE, NONDIFFERENTIABLE),
            doc="""The index of the smallest value along `dim`, or in the flattened tensor; the first of equal ones.

>>> import tensorplay as tp
>>> tp.argmin(tp.tensor([3, 1, 1])).item()
1
""")
argmin.meta(arg_meta("argmin"))
argmin.samples(lambda make: iter([(make(3, 4), None, False), (make(3, 4), 1, True)]))


@argmin.decomposition
def _(input: Tensor, dim: Any, keepdim: bool) -> Tensor:  # noqa: A002
    ordered_only("argmin", input.layout)
    return argmax(-input if input.dtype.category == 2 else ~input, dim, keepdim)


def _extreme_with_indices(name: str, input: Tensor, dim: Any, keepdim: bool) -> Any:  # noqa: A002

    if input.dtype.is_complex:
        raise DTypeError(f"{name}: complex numbers have no order; use x.abs()")
    if not input.layout.ndim:
        normalize_dim(dim, 0, name)
        return named_pair(name, input.clone(), (argmax if name == "max" else argmin)(input))
    index = (argmax if name == "max" else argmin)(input, dim, True)
    values = tp.gather(input, dim, index)
    return named_pair(name, values, index) if keepdim else named_pair(name, values.squeeze(dim), index.squeeze(dim))


def max(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:  # noqa: A001,A002
    """The largest value; with `dim` a pair (values, indices) along it; with a tensor the elementwise maximum.

    >>> import tensorplay as tp
    >>> tp.tensor([[1., 5.], [7., 2.]]).max(1).indices.tolist()
    [1, 0]
    """
    if isinstance(dim, Tensor):
        return tp.maximum(input, dim)
    return amax(input) if dim is None else _extreme_with_indices("max", input, dim, keepdim)


def min(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:  # noqa: A001,A002
    """The smallest value; with `dim` a pair (values, indices) along it; with a tensor the elementwise minimum.

    >>> import tensorplay as tp
    >>> tp.min(tp.tensor([3., 1., 2.])).item()
    1.0
    """
    if isinstance(dim, Tensor):
        return tp.minimum(input, dim)
    return amin(input) if dim is None else _extreme_with_indices("min", input, dim, keepdim)


def aminmax(input: Tensor, *, dim: Any = None, keepdim: bool = False) -> tuple:  # noqa: A002
    """(smallest, largest) along `dim` or of all elements.

    >>> import tensorplay as tp
    >>> [x.item() for x in tp.aminmax(tp.tensor([3., 1., 2.]))]
    [1.0, 3.0]
    """
    dims = () if dim is None else (dim,)
    return amin(input, dims, keepdim), amax(input, dims, keepdim)


# ---- any, all, prod -------------------------------------------------------------------------------------------------


def truth_meta(source: Layout, dim: Any, keepdim: bool) -> Layout:
    return layout(reduced_shape(source, all_dims(dim, source.ndim, "any"), keepdim),
                  tp.uint8 if source.dtype is tp.uint8 else tp.bool, source.device)


any_op = op("any(Tensor input, int[]? dim=None, bool keepdim=False) -> Tensor", tags=(PRIMITIVE, NONDIFFERENTIABLE),
            doc="Whether any element along `dim` is not zero (NaN counts).")
any_op.meta(truth_meta)
any_op.samples(reduction_samples)


@any_op.decomposition
def _(input: Tensor, dim: Any, keepdim: bool) -> Tensor:  # noqa: A002
    dims = all_dims(dim, input.layout.ndim, "any")
    result = sum_op((input != 0).to(tp.int32), dims or None, keepdim, tp.int64) != 0 if dims else input != 0
    return result.to(tp.uint8) if input.dtype is tp.uint8 else result


all_op = op("all(Tensor input, int[]? dim=None, bool keepdim=False) -> Tensor", tags=(NONDIFFERENTIABLE,),
            doc="""Whether all elements along `dim` are not zero.

>>> import tensorplay as tp
>>> tp.all(tp.tensor([[1, 0], [1, 1]]), 1).tolist()
[False, True]
""")
all_op.meta(truth_meta)
all_op.samples(reduction_samples)


@all_op.decomposition
def _(input: Tensor, dim: Any, keepdim: bool) -> Tensor:  # noqa: A002
    result = any_op(input == 0, dim, keepdim).logical_not()
    return result.to(tp.uint8) if input.dtype is tp.uint8 else result


globals()["any"], globals()["all"] = any_op, all_op

prod_op = op("prod(Tensor input, int? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor", tags=(PRIMITIVE,),
             doc="""The product along `dim` or of all elements; integers are multiplied in int64.

>>> import tensorplay as tp
>>> tp.prod(tp.tensor([2, 3, 4])).item()
24
""")


@prod_op.meta
def _(source: Layout, dim: Any, keepdim: bool, dtype: Any) -> Layout:
    if dtype is None:
        dtype = tp.int64 if source.dtype.category < 2 else source.dtype
    dims = tuple(range(source.ndim)) if dim is None else (normalize_dim(dim, source.ndim, "prod"),)
    return layout(reduced_shape(source, dims if source.ndim else (), keepdim), as_dtype(dtype), source.device)


@prod_op.decomposition
def _(input: Tensor, dim: Any, keepdim: bool, dtype: Any) -> Tensor:  # noqa: A002
    """Halves multiplied until one factor is left: exact for integers, rounding grows with the logarithm of the size."""
    result = prod_op.op.rule("meta")(input.layout, dim, keepdim, dtype)
    x = input.to(result.dtype)
    x = x.reshape(-1) if dim is None else x.movedim(dim, -1) if x.layout.ndim else x.reshape(1)
    while x.layout.shape[-1] > 1:
        half = x.layout.shape[-1] // 2
        product = x[..., :half] * x[..., half:2 * half]
        x = tp.cat([product, x[..., 2 * half:]], -1) if x.layout.shape[-1] % 2 else product
    x = x[..., 0] if x.layout.shape[-1] else tp.ones(x.layout.shape[:-1], dtype=result.dtype, device=result.device)
    return x.reshape(result.shape)


def _prod_grad(grad: Tensor, input: Tensor, dim: Any, keepdim: bool) -> Tensor:  # noqa: A002
    """For each element the product of the others: exclusive products from both sides, so zeros are right."""

    source = input.layout
    x = input.reshape(-1) if dim is None or not source.ndim else input.movedim(dim, -1)
    n = x.layout.shape[-1]
    one = tp.ones((*x.layout.shape[:-1], 1), dtype=x.dtype, device=x.device)
    if n == 0:
        return tp.zeros_like(input)
    left = tp.cat([one, tp.cumprod(x[..., :-1], -1)], -1)
    right = tp.cat([one, tp.cumprod(x[..., 1:].flip(-1), -1)], -1).flip(-1)
    others = left * right
    back = others.reshape(source.shape) if dim is None or not source.ndim else others.movedim(-1, dim)
    return restore(grad, source, None if dim is None else (dim,), keepdim) * back


prod_op.vjp(input=_prod_grad)
prod_op.samples(lambda make: iter([(make(3, 4), None, False, None), (make(3, 5), 1, True, None)]))
prod = prod_op

FUNCTIONS = ("sum", "mean", "amax", "amin", "argmax", "argmin", "max", "min", "aminmax", "any", "all", "prod")
METHODS = FUNCTIONS
