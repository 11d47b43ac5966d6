"""Norms of vectors and matrices, with torch's names for them."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import ArgumentError, DTypeError, ShapeError, Tensor, normalize_dims, shape_text

from .factorization import svd_op
from .solving import inv_op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INF = float("inf")


def _as_floating(name: str, x: Tensor, dtype: Any) -> Tensor:
    if dtype is not None:
        x = x.to(dtype)
    if x.dtype.category < 2:
        raise DTypeError(f"{name}: takes a floating point or complex tensor, got {x.dtype.name}; use x.float()")
    return x


def vector_norm(x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:  # noqa: A002
    """(sum of |x| ** ord) ** (1 / ord) along `dim`; ord inf and -inf are the extremes, 0 counts what is not 0.

    >>> import tensorplay as tp
    >>> tp.linalg.vector_norm(tp.tensor([3., -4.])).item()
    5.0
    """
    x = _as_floating("vector_norm", x, dtype)
    if dim is None:
        shape = (1,) * x.layout.ndim
        result = tp.norm(x.reshape(-1), float(ord), 0)
        return result.reshape(shape) if keepdim else result
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    return tp.norm(x, float(ord), tuple(dims) or None, keepdim)


def matrix_norm(A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *,  # noqa: A002
                dtype: Any = None) -> Tensor:
    """The norm of matrices along two dimensions: 'fro', 'nuc' (sum of singular values), 2, -2 (largest, smallest
    singular value), 1, -1 (largest, smallest column sum), inf, -inf (row sums).

    >>> import tensorplay as tp
    >>> tp.linalg.matrix_norm(tp.tensor([[1., -2.], [3., 4.]]), 1).item()
    6.0
    """
    A = _as_floating("matrix_norm", A, dtype)
    if A.layout.ndim < 2:
        raise ShapeError(f"matrix_norm: needs at least two dimensions, got A{shape_text(A.layout.shape)}")
    rows, columns = normalize_dims(tuple(dim), A.layout.ndim, "matrix_norm")
    if ord == "fro":
        return vector_norm(A, 2, (rows, columns), keepdim)
    if ord in (1, -1, INF, -INF):
        first, second = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = tp.abs(A).sum(first, True)
        result = sums.amax(second, True) if ord > 0 else sums.amin(second, True)
    elif ord in ("nuc", 2, -2):
        values = svd_op(A.movedim((rows, columns), (-2, -1)), False)[1]
        result = values.sum(-1) if ord == "nuc" else values.amax(-1) if ord == 2 else values.amin(-1)
        for d in sorted((rows, columns)):
            result = result.unsqueeze(d)
    else:
        raise ArgumentError(f"matrix_norm: ord must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {ord!r}")
    if keepdim:
        return result
    return result.squeeze(max(rows, columns)).squeeze(min(rows, columns))


def norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:  # noqa: A002
    """A vector norm, or with `ord` and a matrix (or two dimensions in `dim`) a matrix norm.

    >>> import tensorplay as tp
    >>> tp.linalg.norm(tp.tensor([[3., 0.], [0., 4.]])).item()
    5.0
    """
    if ord is not None and (isinstance(ord, str) or (dim is None and A.layout.ndim == 2)
                            or (isinstance(dim, (tuple, list)) and len(dim) == 2)):
        return matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    if ord is not None and dim is None and A.layout.ndim != 1:
        raise ShapeError(f"norm: with ord={ord!r} and no dim the tensor must have one or two dimensions, got "
                         f"A{shape_text(A.layout.shape)}")
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


def cond(A: Tensor, p: Any = None) -> Tensor:
    """The condition number: the ratio of the extreme singular values, or |A| * |A^-1| in another matrix norm.

    >>> import tensorplay as tp
    >>> tp.linalg.cond(tp.tensor([[4., 0.], [0., 2.]])).item()
    2.0
    """
    if p in (None, 2, -2):
        values = svd_op(A, False)[1]
        largest, smallest = values.amax(-1), values.amin(-1)
        return smallest / largest if p == -2 else largest / smallest
    return matrix_norm(A, p) * matrix_norm(inv_op(A), p)

