"""Running sums, products and extremes along a dimension."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import PRIMITIVE, Layout, Tensor, as_dtype, normalize_dim, op

from ._order import named_pair, ordered_only

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _scan_meta(name: str) -> Callable:
    def meta(source: Layout, dim: int, dtype: Any) -> Layout:
        normalize_dim(dim, source.ndim, name)
        if dtype is None:
            dtype = tp.int64 if source.dtype.category < 2 else source.dtype
        return source.with_dtype(as_dtype(dtype))

    return meta


cumsum = op("cumsum(Tensor input, int dim, *, dtype? dtype=None) -> Tensor", tags=(PRIMITIVE,), doc="""Running sums
along `dim`; integers are summed in int64.

>>> import tensorplay as tp
>>> tp.tensor([1, 2, 3]).cumsum(0).tolist()
[1, 3, 6]
""")
cumsum.meta(_scan_meta("cumsum"))
cumsum.vjp(input=lambda grad, dim: cumsum(grad.flip(dim), dim).flip(dim) if grad.layout.ndim else grad)
cumsum.samples(lambda make: iter([(make(3, 4), 1, None), (make(3, 4), 0, None), (make(), 0, None)]))

cumprod = op("cumprod(Tensor input, int dim, *, dtype? dtype=None) -> Tensor", tags=(PRIMITIVE,),
             doc="""Running products along `dim`; integers are multiplied in int64.

>>> import tensorplay as tp
>>> tp.cumprod(tp.tensor([2, 3, 4]), 0).tolist()
[2, 6, 24]
""")
cumprod.meta(_scan_meta("cumprod"))


def log_step_scan(combine: Callable, x: Tensor, dim: int) -> Tensor:
    """Hillis and Steele's scan: in step k every entry takes in the one 2^k before it."""
    size = x.layout.shape[dim]
    reach = 1
    while reach < size:
        head, tail = x.narrow(dim, 0, reach), x.narrow(dim, reach, size - reach)
        x = tp.cat([head, combine(x.narrow(dim, 0, size - reach), tail)], dim)
        reach *= 2
    return x


@cumprod.decomposition
def _(input: Tensor, dim: int, dtype: Any) -> Tensor:  # noqa: A002
    result = _scan_meta("cumprod")(input.layout, dim, dtype)
    x = input.to(result.dtype)
    if not x.layout.ndim:
        return x.clone()
    d = normalize_dim(dim, x.layout.ndim)
    return log_step_scan(tp.mul, x, d) if x.layout.shape[d] > 1 else x.clone()


def _cumprod_grad(grad: Tensor, input: Tensor, output: Tensor, dim: int) -> Tensor:  # noqa: A002
    """sum over j >= i of grad[j] * product of input[k <= j, k != i]; without dividing, so zeros are right."""
    if not input.layout.ndim:
        return grad
    x, g = input.movedim(dim, -1), grad.movedim(dim, -1)
    n = x.layout.shape[-1]
    columns = []
    one = tp.ones((*x.layout.shape[:-1], 1), dtype=x.dtype, device=x.device)
    before = tp.cat([one, cumprod(x[..., :-1], -1)], -1) if n > 1 else one
    for i in range(n):
        after = tp.cat([one, cumprod(x[..., i + 1:], -1)], -1) if i + 1 < n else one
        columns.append((g[..., i:] * after).sum(-1) * before[..., i])
    return tp.stack(columns, -1).movedim(-1, dim) if columns else tp.zeros_like(input)


cumprod.vjp(input=_cumprod_grad)
cumprod.samples(lambda make: iter([(make(3, 4), 1, None), (make(3, 4), 0, None)]))


def _extreme_scan(name: str, better: str) -> Callable:
    made = op(f"{name}(Tensor input, int dim) -> (Tensor, Tensor)", tags=(PRIMITIVE,),
              doc=f"Running {'maxima' if name == 'cummax' else 'minima'} along `dim` and their indices (the last of "
                  f"equal ones); NaN wins.")

    @made.meta
    def _(source: Layout, dim: int) -> tuple:
        normalize_dim(dim, source.ndim, name)
        ordered_only(name, source)
        return source.dense(), source.with_dtype(tp.int64)

    @made.decomposition
    def _(input: Tensor, dim: int) -> tuple:  # noqa: A002
        if not input.layout.ndim:
            return input.clone(), tp.zeros_like(input, dtype=tp.int64)
        d = normalize_dim(dim, input.layout.ndim, name)
        size = input.layout.shape[d]
        shape = (size,) + (1,) * (input.layout.ndim - d - 1)
        index = tp.arange(size, device=input.device).reshape(shape).expand(input.layout.shape).clone()
        values, reach = input.clone(), 1
        while reach < size:
            old_v, new_v = values.narrow(d, 0, size - reach), values.narrow(d, reach, size - reach)
            old_i, new_i = index.narrow(d, 0, size - reach), index.narrow(d, reach, size - reach)
            keep = getattr(tp, better)(new_v, old_v)
            if input.dtype.category == 2:
                keep = tp.logical_or(tp.logical_and(keep, old_v == old_v), new_v != new_v)
            values = tp.cat([values.narrow(d, 0, reach), tp.where(keep, new_v, old_v)], d)
            index = tp.cat([index.narrow(d, 0, reach), tp.where(keep, new_i, old_i)], d)
            reach *= 2
        return values, index

    made.vjp(lambda grads, outputs, dim, input_layout: (tp.scatter_add(
        tp.zeros(input_layout.shape, dtype=outputs[0].dtype, device=outputs[0].device), dim, outputs[1], grads[0])
        if grads[0] is not None else None,))
    made.samples(lambda make: iter([(make(3, 4), 1), (make(3, 4), 0)]))
    return made


cummax_op, cummin_op = _extreme_scan("cummax", "ge"), _extreme_scan("cummin", "le")


def cummax(input: Tensor, dim: int) -> tuple:  # noqa: A002
    """Running maxima along `dim`, with their indices, as a named pair (values, indices).

    >>> import tensorplay as tp
    >>> tp.cummax(tp.tensor([1, 3, 2]), 0).values.tolist()
    [1, 3, 3]
    """
    return named_pair("cummax", *cummax_op(input, dim))


def cummin(input: Tensor, dim: int) -> tuple:  # noqa: A002
    """Running minima along `dim`, with their indices, as a named pair (values, indices).

    >>> import tensorplay as tp
    >>> tp.cummin(tp.tensor([3, 1, 2]), 0).values.tolist()
    [3, 1, 1]
    """
    return named_pair("cummin", *cummin_op(input, dim))


def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None,  # noqa: A002
         append: Tensor | None = None) -> Tensor:
    """Differences of neighbours along `dim`, n times.

    >>> import tensorplay as tp
    >>> tp.diff(tp.tensor([1, 4, 9])).tolist()
    [3, 5]
    """
    x = tp.cat([t for t in (prepend, input, append) if t is not None], dim) if prepend is not None or \
        append is not None else input
    for _ in range(n):
        size = x.size(dim)
        if size == 0:
            break
        upper, lower = x.narrow(dim, 1, size - 1), x.narrow(dim, 0, size - 1)
        x = tp.logical_xor(upper, lower) if x.dtype is tp.bool else upper - lower
    return x


FUNCTIONS = ("cumsum", "cumprod", "cummax", "cummin", "diff")
METHODS = FUNCTIONS
INPLACE = ("cumsum_", "cumprod_")
