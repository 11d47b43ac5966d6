"""Variance, norms and log-sum-exp: composites of reductions."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import ArgumentError, DTypeError, Layout, Tensor, op

from ._order import ordered_only
from .reduction import all_dims, amax, count, mean, reduced_shape, restore, sum_op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def _correction(unbiased: Any, correction: Any) -> float:
    if correction is not None:
        return correction
    return 0 if unbiased is False else 1


def var(input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,  # noqa: A002
        correction: float | None = None) -> Tensor:
    """The variance: the mean squared distance from the mean, divided by n - correction (1 unless given).

    >>> import tensorplay as tp
    >>> tp.tensor([1., 2., 3.]).var().item()
    1.0
    """
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if input.dtype.category < 2:
        raise DTypeError(f"var: needs a floating point tensor, got {input.dtype.name}; use x.float()")
    centre = input - mean(input, dim, True)
    squares = (centre * centre.conj()).real if input.dtype.is_complex else centre * centre
    n = count(input.layout, dim) - _correction(unbiased, correction)
    total = sum_op(squares, dim, keepdim, None)
    return total / (n if n > 0 else 0)


def std(input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,  # noqa: A002
        correction: float | None = None) -> Tensor:
    """The standard deviation: the square root of `var`.

    >>> import tensorplay as tp
    >>> tp.std(tp.tensor([1., 2., 3.])).item()
    1.0
    """
    return var(input, dim, unbiased, keepdim, correction=correction).sqrt()


def var_mean(input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,  # noqa: A002
             correction: float | None = None) -> tuple:
    """(variance, mean).

    >>> import tensorplay as tp
    >>> [x.item() for x in tp.var_mean(tp.tensor([1., 2., 3.]))]
    [1.0, 2.0]
    """
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    return var(input, dim, unbiased, keepdim, correction=correction), mean(input, dim, keepdim)


def std_mean(input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,  # noqa: A002
             correction: float | None = None) -> tuple:
    """(standard deviation, mean).

    >>> import tensorplay as tp
    >>> [x.item() for x in tp.std_mean(tp.tensor([1., 2., 3.]))]
    [1.0, 2.0]
    """
    variance, average = var_mean(input, dim, unbiased, keepdim, correction=correction)
    return variance.sqrt(), average


logsumexp = op("logsumexp(Tensor input, int[] dim, bool keepdim=False) -> Tensor",
               doc="""log(sum(exp(input))) along `dim`, without overflow.

>>> import tensorplay as tp
>>> tp.zeros(4).logsumexp(0).item() == tp.tensor(4.).log().item()
True
""")


@logsumexp.meta
def _(source: Layout, dim: Any, keepdim: bool) -> Layout:
    ordered_only("logsumexp", source)
    dtype = source.dtype if source.dtype.category >= 2 else tp.get_default_dtype()
    return source.with_shape(reduced_shape(source, all_dims(dim, source.ndim, "logsumexp"), keepdim)).with_dtype(dtype)


@logsumexp.decomposition
def _(input: Tensor, dim: Any, keepdim: bool) -> Tensor:  # noqa: A002
    ordered_only("logsumexp", input.layout)
    x = input if input.dtype.category >= 2 else input.to(tp.get_default_dtype())
    if x.layout.numel == 0:
        return sum_op(x.exp(), dim, keepdim, None).log()
    top = amax(x, dim, True)
    top = tp.where(top.abs() == float("inf"), tp.zeros_like(top), top)
    total = sum_op((x - top).exp(), dim, True, None).log() + top
    shape = reduced_shape(x.layout, all_dims(dim, x.layout.ndim, "logsumexp"), keepdim)
    return total if keepdim else total.reshape(shape)


logsumexp.vjp(input=lambda grad, input, output, dim, keepdim: restore(grad, input.layout, dim, keepdim) * (
    input - restore(output, input.layout, dim, keepdim)).exp())


@logsumexp.samples
def _(make: Any) -> Iterator:
    yield make(3, 4), (1,), False
    yield make(3, 4), (0, 1), True


def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:  # noqa: A002
    """The p-norm of the elements along `dim` ('fro' is p = 2).

    >>> import tensorplay as tp
    >>> tp.tensor([3., 4.]).norm().item()
    5.0
    """
    x = (input if dtype is None else input.to(dtype)).abs()
    if x.dtype.category < 2:
        raise DTypeError(f"norm: needs a floating point tensor, got {input.dtype.name}; use x.float()")
    if p in ("fro", 2, None):
        return _root_of_squares(x, dim, keepdim)
    if p == float("inf"):
        return amax(x, () if dim is None else dim, keepdim)
    if p == -float("inf"):
        return x.amin(() if dim is None else dim, keepdim)
    if p == 0:
        return sum_op((x != 0).to(x.dtype), dim, keepdim, None)
    if p == 1:
        return sum_op(x, dim, keepdim, None)
    if p == "nuc":
        return tp.linalg.matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    if not isinstance(p, (int, float)):
        raise ArgumentError(f"norm: p must be a number, 'fro', 'nuc' or infinity, got {p!r}")
    limit = 0.0 if p > 0 else float("inf")  # what 0 ** p is, and what the sum is where the norm is 0
    total = sum_op(_power_but(x, 0.0, p, limit), dim, keepdim, None)
    return _power_but(total, limit, 1 / p, 0.0)


def _power_but(x: Tensor, where: float, exponent: float, result: float) -> Tensor:
    """x ** exponent, and where x is `where` a given result with a gradient of 0."""
    special = x == where
    return tp.where(special, result, tp.where(special, 1.0, x) ** exponent)


root_of_squares = op("root_of_squares(Tensor input, int[]? dim=None, bool keepdim=False) -> Tensor",
                     doc="The 2-norm; its gradient is 0, not NaN, where the norm is 0.")


@root_of_squares.meta
def _(source: Layout, dim: Any, keepdim: bool) -> Layout:
    if source.dtype.category != 2:
        raise DTypeError(f"root_of_squares: input must be floating point, got {source.dtype.name}; use x.abs().float()")
    return source.with_shape(reduced_shape(source, all_dims(dim, source.ndim, "norm"), keepdim))


@root_of_squares.decomposition
def _(input: Tensor, dim: Any, keepdim: bool) -> Tensor:  # noqa: A002
    root_of_squares.op.rule("meta")(input.layout, dim, keepdim)
    return sum_op(input * input, dim, keepdim, None).sqrt()


def _root_grad(grad: Tensor, input: Tensor, output: Tensor, dim: Any, keepdim: bool) -> Tensor:  # noqa: A002
    length = restore(output, input.layout, dim, keepdim)
    direction = input / tp.where(length == 0, tp.ones_like(length), length)
    return restore(grad, input.layout, dim, keepdim) * direction


root_of_squares.vjp(input=_root_grad)
root_of_squares.samples(lambda make: iter([(make(3, 4), None, False), (make(3, 4), (1,), True)]))
_root_of_squares = root_of_squares

FUNCTIONS = ("var", "std", "var_mean", "std_mean", "logsumexp", "norm")
METHODS = ("var", "std", "logsumexp", "norm")
