"""`tensorplay.linalg`: linear algebra with torch's names, on the factorizations and solvers. Leading dimensions are
batches everywhere."""
from __future__ import annotations

from collections import namedtuple

import tensorplay as tp
from tensorplay.library import (
    ArgumentError,
    ShapeError,
    Tensor,
    as_int,
    broadcast_shapes,
    shape_text,
)

from .factorization import (
    cholesky_op,
    eig_op,
    eigh_op,
    lower_upper,
    lu_op,
    qr_op,
    rows_back,
    svd_op,
    triangular_solve_op,
    unit,
)
from .matrix_functions import (
    cross,
    householder_product,
    matrix_exp,
    multi_dot,
    tensorinv,
    tensorsolve,
    vander,
    vecdot,
)
from .matrix_norms import cond, matrix_norm, norm, vector_norm
from .pseudoinverse import matrix_rank, pinv
from .solving import det_forward, inv_op, lu_apply, order_of, solve_op, swaps_sign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

QR = namedtuple("QR", ("Q", "R"))  # noqa: PYI024
SVD = namedtuple("SVD", ("U", "S", "Vh"))  # noqa: PYI024
Eigen = namedtuple("Eigen", ("eigenvalues", "eigenvectors"))  # noqa: PYI024
SignLog = namedtuple("SignLog", ("sign", "logabsdet"))  # noqa: PYI024
PLU = namedtuple("PLU", ("P", "L", "U"))  # noqa: PYI024
Factors = namedtuple("Factors", ("LU", "pivots"))  # noqa: PYI024
FactorsInfo = namedtuple("FactorsInfo", ("LU", "pivots", "info"))  # noqa: PYI024
WithInfo = namedtuple("WithInfo", ("result", "info"))  # noqa: PYI024
CholeskyInfo = namedtuple("CholeskyInfo", ("L", "info"))  # noqa: PYI024
LeastSquares = namedtuple("LeastSquares", ("solution", "residuals", "rank", "singular_values"))  # noqa: PYI024
InverseInfo = namedtuple("InverseInfo", ("inverse", "info"))  # noqa: PYI024


# ---- factorizations -------------------------------------------------------------------------------------------------
def cholesky(input: Tensor, *, upper: bool = False) -> Tensor:  # noqa: A002
    """L, lower triangular with a positive diagonal, with L @ L.mH = input; its conjugate transpose with `upper`.

    >>> import tensorplay as tp
    >>> tp.linalg.cholesky(tp.tensor([[4., 2.], [2., 5.]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]

    Raises ValueRangeError for a matrix that is not positive definite.
    """
    return cholesky_op(input.mH, True)[0].mH if upper else cholesky_op(input, True)[0]


def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:  # noqa: A002
    """`cholesky` that does not raise: (L, the order of the first leading block that is not positive definite, or 0)."""
    lower, info = cholesky_op(input.mH if upper else input, check_errors)
    return CholeskyInfo(lower.mH if upper else lower, info)


def qr(A: Tensor, mode: str = "reduced") -> Any:
    """(Q, R) with orthonormal columns in Q and R upper triangular; mode 'reduced', 'complete' or 'r' (R only).

    >>> import tensorplay as tp
    >>> q, r = tp.linalg.qr(tp.tensor([[3., 1.], [4., 2.]])); (q @ r).round(decimals=4).tolist()
    [[3.0, 1.0], [4.0, 2.0]]
    """
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f"qr: mode must be 'reduced', 'complete' or 'r', got {mode!r}")
    q, r = qr_op(A, mode == "complete")
    return QR(q.new_zeros((0,)) if mode == "r" else q, r)


def svd(A: Tensor, full_matrices: bool = True) -> Any:
    """(U, S, Vh) with A = U @ diag(S) @ Vh and S falling.

    >>> import tensorplay as tp
    >>> tp.linalg.svd(tp.tensor([[3., 0.], [0., -2.]])).S.tolist()
    [3.0, 2.0]

    With `full_matrices` U and Vh are square; their columns and rows beyond S have no gradient.
    """
    return SVD(*svd_op(A, full_matrices))


def svdvals(A: Tensor) -> Tensor:
    """The singular values, falling."""
    return svd_op(A, False)[1]


def _triangle(name: str, UPLO: str) -> bool:
    if UPLO.upper() not in ("L", "U"):
        raise ArgumentError(f"{name}: UPLO must be 'L' or 'U', got {UPLO!r}")
    return UPLO.upper() == "U"


def eigh(A: Tensor, UPLO: str = "L") -> Any:
    """(eigenvalues rising, eigenvectors as columns) of Hermitian matrices, whose lower or upper triangle is read.

    >>> import tensorplay as tp
    >>> tp.linalg.eigh(tp.tensor([[2., 0.], [0., 1.]])).eigenvalues.tolist()
    [1.0, 2.0]
    """
    return Eigen(*eigh_op(A, _triangle("eigh", UPLO)))


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of Hermitian matrices, rising."""
    return eigh_op(A, _triangle("eigvalsh", UPLO))[0]


def eig(A: Tensor) -> Any:
    """(complex eigenvalues, eigenvectors of length 1 as columns) of square matrices."""
    return Eigen(*eig_op(A))


def eigvals(A: Tensor) -> Tensor:
    """The complex eigenvalues of square matrices."""
    return eig_op(A)[0]


def lu(A: Tensor, *, pivot: bool = True) -> Any:
    """(P, L, U) with A = P @ L @ U."""
    _need_pivots("lu", pivot)
    packed, _, order = lu_op(A)
    one = unit(A, A.layout.shape[-2]).expand((*A.layout.shape[:-2], *[A.layout.shape[-2]] * 2))
    return PLU(rows_back(one, order), *lower_upper(packed))


def _need_pivots(name: str, pivot: bool) -> None:
    if not pivot:
        raise ArgumentError(f"{name}: there is no factorization without row pivots on the CPU; use pivot=True")


def lu_factor(A: Tensor, *, pivot: bool = True) -> Any:
    """(L below the diagonal and U on and above it, the row that each step swapped with, counted from 1)."""
    _need_pivots("lu_factor", pivot)
    return Factors(*lu_op(A)[:2])


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """`lu_factor`, and the number of the first pivot that is 0, or 0."""
    _need_pivots("lu_factor_ex", pivot)
    packed, pivots, _ = lu_op(A)
    return FactorsInfo(packed, pivots, _first_zero(packed))


def _first_zero(packed: Tensor) -> Tensor:
    """The number, from 1, of the first pivot of a packed factorization that is 0; 0 if none is."""
    zero = tp.diagonal(packed, 0, -2, -1) == 0
    if not zero.layout.shape[-1]:
        return tp.zeros(zero.layout.shape[:-1], dtype=tp.int32, device=packed.device)
    return tp.where(zero.any(-1), tp.argmax(zero.to(tp.int32), -1) + 1, 0).to(tp.int32)


def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """X with A @ X = B (with `left` False X @ A = B; with `adjoint` A.mH for A), from `lu_factor(A)`."""
    if not left:
        return lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH
    batch = broadcast_shapes(LU.layout.shape[:-2], B.layout.shape[:-2])
    packed, other = (x.expand(batch + x.layout.shape[-2:]) for x in (LU, B))
    order = order_of(pivots, LU.layout.shape[-1]).expand(batch + LU.layout.shape[-1:])
    if not adjoint:
        return lu_apply(packed, order, other)
    half = triangular_solve_op(packed.mH, other, False, False)
    return rows_back(triangular_solve_op(packed.mH, half, True, True), order)


# ---- systems and inverses -------------------------------------------------------------------------------------------
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X with A @ X = B, or X @ A = B with `left` False; B may be a vector (or a batch of them).

    >>> import tensorplay as tp
    >>> tp.linalg.solve(tp.tensor([[2., 0.], [0., 4.]]), tp.tensor([2., 2.])).tolist()
    [1.0, 0.5]

    Raises ValueRangeError for a singular matrix.
    """
    vector = B.layout.ndim == 1 or (A.layout.ndim - 1 == B.layout.ndim and B.layout.shape == A.layout.shape[:-1])
    other = B.unsqueeze(-1) if vector else B
    if not left:
        return solve(A.mT, other if vector else other.mT).mT if not vector else solve(A.mT, B)
    if A.layout.ndim < 2:
        raise ShapeError(f"solve: A must be a matrix or a batch of them, got A{shape_text(A.layout.shape)}")
    batch = broadcast_shapes(A.layout.shape[:-2], other.layout.shape[:-2])
    result = solve_op(A.expand(batch + A.layout.shape[-2:]), other.expand(batch + other.layout.shape[-2:]))
    return result.squeeze(-1) if vector else result


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """(solve's result, the number of the first zero pivot or 0)."""
    return WithInfo(solve(A, B, left=left), _first_zero(lu_op(A.detach())[0]))


def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """X with A @ X = B, or X @ A = B with `left` False, where only a triangle of A counts."""
    if not left:
        return solve_triangular(A.mT, B.mT, upper=not upper, unitriangular=unitriangular).mT
    batch = broadcast_shapes(A.layout.shape[:-2], B.layout.shape[:-2])
    return triangular_solve_op(A.expand(batch + A.layout.shape[-2:]), B.expand(batch + B.layout.shape[-2:]), upper,
                               unitriangular)


def inv(A: Tensor) -> Tensor:
    """The inverse of square matrices. Raises ValueRangeError for a singular one.

    >>> import tensorplay as tp
    >>> tp.linalg.inv(tp.tensor([[2., 0.], [0., 4.]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return inv_op(A)


def inv_ex(A: Tensor, *, check_errors: bool = False) -> Any:
    """(the inverse, the number of the first zero pivot or 0)."""
    return InverseInfo(inv_op(A), _first_zero(lu_op(A.detach())[0]))


def det(A: Tensor) -> Tensor:
    """The determinant.

    >>> import tensorplay as tp
    >>> tp.linalg.det(tp.tensor([[2., 1.], [1., 4.]])).item()
    7.0
    """
    return det_forward(A)[0]


def slogdet(A: Tensor) -> Any:
    """(sign, log of the absolute value) of the determinant; (0, -inf) for singular matrices."""
    packed, pivots, _ = lu_op(A)
    diagonal_ = tp.diagonal(packed, 0, -2, -1)
    sign = swaps_sign(pivots, A.dtype) * tp.prod(tp.sgn(diagonal_), -1)
    return SignLog(sign, tp.log(tp.abs(diagonal_)).sum(-1))


def logdet(A: Tensor) -> Tensor:
    """The logarithm of the determinant; NaN if that is negative."""
    sign, size = slogdet(A)
    if A.dtype.is_complex:
        return size + tp.log(sign)
    return tp.where(sign < 0, float("nan"), size)


# ---- powers and products --------------------------------------------------------------------------------------------
def matrix_power(A: Tensor, n: int) -> Tensor:
    """A multiplied by itself n times; the inverse for n = -1.

    >>> import tensorplay as tp
    >>> tp.linalg.matrix_power(tp.tensor([[1., 1.], [0., 1.]]), 3).tolist()
    [[1.0, 3.0], [0.0, 1.0]]
    """
    n = as_int(n, "matrix_power: n")
    if A.layout.ndim < 2 or A.layout.shape[-1] != A.layout.shape[-2]:
        raise ShapeError(f"matrix_power: the matrices must be square, got A{shape_text(A.layout.shape)}")
    if n == 0:
        return tp.ops.copy(A, unit(A, A.layout.shape[-1]))  # which A requires, with a gradient of 0
    if n < 0:
        return matrix_power(inv_op(A), -n)
    result, square = None, A
    while n:
        if n & 1:
            result = square if result is None else tp.matmul(result, square)
        n >>= 1
        if n:
            square = tp.matmul(square, square)
    return result.clone() if result is A else result  # type: ignore[union-attr,return-value]


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of the matrices, as a view."""
    return tp.diagonal(A, offset, dim1, dim2)


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """(X with the least |A @ X - B|, squared residuals, rank, singular values).

    Every `driver` ('gelsy' by default, 'gels', 'gelsd', 'gelss') computes by singular values; which of the last three
    results are given and which are empty is as in torch.
    """
    vector = B.layout.ndim == A.layout.ndim - 1
    other = B.unsqueeze(-1) if vector else B
    limit = max(A.layout.shape[-2:]) * tp.finfo(A.dtype).eps if rcond is None else rcond
    solution = tp.matmul(pinv(A, rtol=limit), other)
    rank = matrix_rank(A.detach(), rtol=limit)
    rows, columns = A.layout.shape[-2:]
    values = svd_op(A.detach(), False)[1]
    residuals = values.new_zeros((0,))
    if driver not in (None, "gelsy") and rows > columns and bool((rank == columns).all()):
        residuals = tp.square(tp.abs(tp.matmul(A, solution) - other)).sum(-2)
    return LeastSquares(solution.squeeze(-1) if vector else solution, residuals,
                        rank.new_zeros((0,)) if driver == "gels" else rank,
                        values if driver in ("gelsd", "gelss") else values.new_zeros((0,)))


__all__ = [
    "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh",
    "householder_product", "inv", "inv_ex", "lstsq", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "matrix_exp",
    "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_ex",
    "solve_triangular", "svd", "svdvals", "tensorinv", "tensorsolve", "vander", "vecdot", "vector_norm",
]
