"""The linear algebra that torch has at its top level and as methods; `tensorplay.linalg` has the rest."""
from __future__ import annotations

from collections import namedtuple

import tensorplay as tp
from tensorplay.library import ArgumentError, ShapeError, Tensor, shape_text

from . import linalg
from .factorization import lower_upper, rows_back, unit
from .solving import order_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SVD = namedtuple("SVD", ("U", "S", "V"))  # noqa: PYI024
TriangularSolution = namedtuple("TriangularSolution", ("solution", "cloned_coefficient"))  # noqa: PYI024
PLU = namedtuple("PLU", ("P", "L", "U"))  # noqa: PYI024

det, slogdet, logdet = linalg.det, linalg.slogdet, linalg.logdet
matrix_power, matrix_exp = linalg.matrix_power, linalg.matrix_exp


def cholesky(input: Tensor, upper: bool = False) -> Tensor:  # noqa: A002
    """`linalg.cholesky` with torch's older signature.

    >>> import tensorplay as tp
    >>> tp.cholesky(tp.tensor([[4., 2.], [2., 5.]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    return linalg.cholesky(input, upper=upper)


def cholesky_solve(input: Tensor, L: Tensor, upper: bool = False) -> Tensor:  # noqa: A002
    """X with A @ X = input, from A's Cholesky factor.

    >>> import tensorplay as tp
    >>> tp.cholesky_solve(tp.tensor([[4.]]), tp.tensor([[2.]])).tolist()
    [[1.0]]
    """
    lower = L.mH if upper else L
    half = linalg.solve_triangular(lower, input, upper=False)
    return linalg.solve_triangular(lower.mH, half, upper=True)


def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:  # noqa: A002
    """The inverse of A, from its Cholesky factor.

    >>> import tensorplay as tp
    >>> tp.cholesky_inverse(tp.tensor([[2.]])).tolist()
    [[0.25]]
    """
    return cholesky_solve(unit(input, input.layout.shape[-1]).expand(input.layout.shape), input, upper)


def qr(input: Tensor, some: bool = True) -> Any:  # noqa: A002
    """`linalg.qr` with torch's older signature.

    >>> import tensorplay as tp
    >>> [x.shape for x in tp.qr(tp.ones(3, 2))]
    [tensorplay.Size([3, 2]), tensorplay.Size([2, 2])]
    """
    return linalg.qr(input, "reduced" if some else "complete")


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:  # noqa: A002
    """(U, S, V) with input = U @ diag(S) @ V.mH; `linalg.svd` gives V.mH instead.

    >>> import tensorplay as tp
    >>> [x.shape for x in tp.svd(tp.ones(3, 2))]
    [tensorplay.Size([3, 2]), tensorplay.Size([2]), tensorplay.Size([2, 2])]
    """
    u, s, vh = linalg.svd(input, full_matrices=not some)
    if not compute_uv:
        return SVD(tp.zeros_like(u), s, tp.zeros_like(vh.mH))
    return SVD(u, s, vh.mH)


def inverse(input: Tensor) -> Tensor:  # noqa: A002
    """The inverse of square matrices; see linalg.inv.

    >>> import tensorplay as tp
    >>> tp.inverse(tp.tensor([[2., 0.], [0., 4.]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return linalg.inv(input)


def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:  # noqa: A002
    """The pseudoinverse; see linalg.pinv.

    >>> import tensorplay as tp
    >>> tp.pinverse(tp.ones(2, 3)).shape
    tensorplay.Size([3, 2])
    """
    return linalg.pinv(input, rcond=rcond)


def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:  # noqa: A002
    """X with A @ X = input, from `linalg.lu_factor(A)`.

    >>> import tensorplay as tp
    >>> tp.lu_solve(tp.ones(2, 1), *tp.linalg.lu_factor(tp.eye(2))).tolist()
    [[1.0], [1.0]]
    """
    return linalg.lu_solve(LU_data, LU_pivots, input)


def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """(P, L, U) from what `linalg.lu_factor` gives; what is not asked for is empty.

    >>> import tensorplay as tp
    >>> [x.shape for x in tp.lu_unpack(*tp.linalg.lu_factor(tp.eye(2)))]
    [tensorplay.Size([2, 2]), tensorplay.Size([2, 2]), tensorplay.Size([2, 2])]
    """
    empty = LU_data.new_zeros((0,))
    lower, upper = lower_upper(LU_data) if unpack_data else (empty, empty)
    if not unpack_pivots:
        return PLU(empty, lower, upper)
    rows = LU_data.layout.shape[-2]
    one = unit(LU_data, rows).expand((*LU_data.layout.shape[:-2], rows, rows))
    return PLU(rows_back(one, order_of(LU_pivots, rows)), lower, upper)


def triangular_solve(b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False,
                     unitriangular: bool = False) -> Any:
    """(X with A @ X = b, A), torch's older form of `linalg.solve_triangular`.

    >>> import tensorplay as tp
    >>> tp.triangular_solve(tp.ones(1, 1), tp.tensor([[2.]]))[0].tolist()
    [[0.5]]
    """
    matrix = A.mT if transpose else A
    return TriangularSolution(linalg.solve_triangular(matrix, b, upper=upper != transpose, unitriangular=unitriangular),
                              A)


def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:  # noqa: A002
    """The cross product along `dim`, by default the first dimension of size 3.

    >>> import tensorplay as tp
    >>> tp.cross(tp.tensor([1., 0., 0.]), tp.tensor([0., 1., 0.])).tolist()
    [0.0, 0.0, 1.0]
    """
    if dim is None:
        shape = tp.broadcast_tensors(input, other)[0].layout.shape
        if 3 not in shape:
            raise ShapeError(f"cross: no dimension of {shape_text(shape)} has size 3")
        dim = shape.index(3)
    return linalg.cross(input, other, dim=dim)


def kron(input: Tensor, other: Tensor) -> Tensor:  # noqa: A002
    """The Kronecker product: every element of `input` times all of `other`.

    >>> import tensorplay as tp
    >>> tp.kron(tp.tensor([1, 2]), tp.tensor([1, 10])).tolist()
    [1, 10, 2, 20]
    """
    ndim = max(input.layout.ndim, other.layout.ndim)
    first, second = ((1,) * (ndim - x.layout.ndim) + x.layout.shape for x in (input, other))
    wide = [n for size in first for n in (size, 1)]
    tall = [n for size in second for n in (1, size)]
    return (input.reshape(wide) * other.reshape(tall)).reshape([a * b for a, b in zip(first, second)])


def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:  # noqa: A002
    """The p-norm of input - other.

    >>> import tensorplay as tp
    >>> tp.dist(tp.tensor([0., 0.]), tp.tensor([3., 4.])).item()
    5.0
    """
    if p is None:
        raise ArgumentError("dist: p must be a number")
    return linalg.vector_norm(input - other, p)


FUNCTIONS = ("cholesky", "cholesky_solve", "cholesky_inverse", "qr", "svd", "inverse", "pinverse", "lu_solve",
             "lu_unpack", "triangular_solve", "cross", "kron", "dist", "det", "slogdet", "logdet", "matrix_power")
METHODS = tuple([name for name in FUNCTIONS if name not in ("lu_unpack",)])
