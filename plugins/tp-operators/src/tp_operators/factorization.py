"""Matrix factorizations, batched over leading dimensions: cholesky, lu, qr, eigh, eig, svd, and triangular systems.

Devices without kernels for them compute on the host. Gradients follow the formulas of Giles, "Collected matrix
derivative results" (2008), and Seeger et al., "Auto-differentiating linear algebra" (2017), with adjoints for complex
matrices. `mH` is the conjugate transpose.
"""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import (
    PRIMITIVE,
    DTypeError,
    Layout,
    NotSupported,
    ShapeError,
    Tensor,
    layout,
    op,
    shape_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


# ---- shapes and parts -----------------------------------------------------------------------------------------------
def need_matrices(name: str, source: Layout, square: bool = False) -> None:
    if source.dtype not in (tp.float32, tp.float64, tp.complex64, tp.complex128):
        raise DTypeError(f"{name}: takes float32, float64 or complex matrices, got {source.dtype.name}; convert with "
                         f".float()")
    if source.ndim < 2:
        raise ShapeError(f"{name}: needs at least two dimensions, got input{shape_text(source.shape)}")
    if square and source.shape[-1] != source.shape[-2]:
        raise ShapeError(f"{name}: the matrices must be square, got input{shape_text(source.shape)}")


def _like(source: Layout, *sizes: int, dtype: Any = None) -> Layout:
    """Results with the same batch dimensions and other last ones."""
    return layout(source.shape[:-2] + sizes, dtype or source.dtype, source.device)


def unit(x: Tensor, size: int) -> Tensor:
    """The identity in the dtype and on the device of `x`."""
    return tp.eye(size, dtype=x.dtype, device=x.device)


def solve_adjoint(matrix: Tensor, other: Tensor, upper: bool, unitriangular: bool = False) -> Tensor:
    """matrix.mH^-1 @ other for a triangular matrix."""
    return triangular_solve_op(matrix.mH, other, not upper, unitriangular)


def right_solve_adjoint(other: Tensor, matrix: Tensor, upper: bool) -> Tensor:
    """other @ matrix.mH^-1 for a triangular matrix."""
    return triangular_solve_op(matrix, other.mH, upper, False).mH


def halved_diagonal(x: Tensor) -> Tensor:
    """The lower triangle, its diagonal halved."""
    return x.tril() - 0.5 * tp.diag_embed(tp.diagonal(x, 0, -2, -1))


def skew(x: Tensor) -> Tensor:
    return x - x.mH


def differences(values: Tensor) -> Tensor:
    """values[j] - values[i] off the diagonal, 1 on it."""
    return values.unsqueeze(-2) - values.unsqueeze(-1) + tp.eye(values.layout.shape[-1], dtype=values.dtype,
                                                                device=values.device)


# ---- cholesky -------------------------------------------------------------------------------------------------------
cholesky_op = op("cholesky(Tensor input, bool check) -> (Tensor, Tensor)", tags=(PRIMITIVE,),
                 doc="(L with L @ L.mH = input, which is read below its diagonal only; 0, or with check False the "
                     "order of the first leading block that is not positive definite).")


@cholesky_op.meta
def _(input: Layout, check: bool) -> tuple:  # noqa: A002
    need_matrices("cholesky", input, square=True)
    return input.dense(), layout(input.shape[:-2], tp.int32, input.device)


def _cholesky_grad(grad: Tensor, lower: Tensor) -> Tensor:
    inner = halved_diagonal(tp.matmul(lower.mH, grad))
    half = solve_adjoint(lower, 0.5 * (inner + inner.mH), False)
    return solve_adjoint(lower, half.mH, False).mH


cholesky_op.vjp(lambda grads, outputs: (None if grads[0] is None else _cholesky_grad(grads[0], outputs[0]),))


@cholesky_op.samples
def _(make: Any) -> Iterator:
    for shape in ((3, 3), (2, 4, 4)):
        x = make(*shape)
        yield tp.matmul(x, x.mH) + unit(x, shape[-1]), True


# ---- triangular systems ---------------------------------------------------------------------------------------------
triangular_solve_op = op("triangular_solve(Tensor input, Tensor other, bool upper, bool unitriangular) -> Tensor",
                         tags=(PRIMITIVE,), doc="X with input @ X = other; only a triangle of input is read, and with "
                                                "unitriangular its diagonal counts as 1.")


@triangular_solve_op.meta
def _(input: Layout, other: Layout, upper: bool, unitriangular: bool) -> Layout:  # noqa: A002
    need_matrices("triangular_solve", input, square=True)
    if other.dtype is not input.dtype:
        raise DTypeError(f"triangular_solve: input is {input.dtype.name} but other is {other.dtype.name}; convert one "
                         f"of them")
    if other.ndim != input.ndim or other.shape[:-1] != input.shape[:-1]:
        raise ShapeError(f"triangular_solve: input{shape_text(input.shape)} @ X = other{shape_text(other.shape)}: "
                         f"other must have {input.shape[-1]} rows and the same batch dimensions")
    return other.dense()


def _triangle_grad(grad_other: Tensor, output: Tensor, upper: bool, unitriangular: bool) -> Tensor:
    whole = -tp.matmul(grad_other, output.mH)
    inset = 1 if unitriangular else 0
    return whole.triu(inset) if upper else whole.tril(-inset)


triangular_solve_op.vjp(
    input=lambda grad, input, output, upper, unitriangular: _triangle_grad(
        solve_adjoint(input, grad, upper, unitriangular), output, upper, unitriangular),
    other=lambda grad, input, upper, unitriangular: solve_adjoint(input, grad, upper, unitriangular))


@triangular_solve_op.samples
def _(make: Any) -> Iterator:
    for shape, upper, unitriangular in (((3, 3), True, False), ((2, 4, 4), False, True)):
        x = make(*shape)
        yield x + 4 * unit(x, shape[-1]), make(*shape[:-1], 2), upper, unitriangular


# ---- lu -------------------------------------------------------------------------------------------------------------
lu_op = op("lu(Tensor input) -> (Tensor, Tensor, Tensor)", tags=(PRIMITIVE,),
           doc="(L below the diagonal and U on and above it, the row that each step swapped with, counted from 1, the "
               "order of input's rows that L @ U gives).")


@lu_op.meta
def _(input: Layout) -> tuple:  # noqa: A002
    need_matrices("lu", input)
    rows, columns = input.shape[-2:]
    return (input.dense(), _like(input, min(rows, columns), dtype=tp.int32), _like(input, rows, dtype=tp.int64))


def lower_upper(packed: Tensor) -> tuple:
    """(L, U) from their packed form."""
    rows, columns = packed.layout.shape[-2:]
    k = min(rows, columns)
    one = tp.eye(rows, k, dtype=packed.dtype, device=packed.device)
    return packed.narrow(-1, 0, k).tril(-1) + one, packed.narrow(-2, 0, k).triu()


def rows_back(x: Tensor, order: Tensor) -> Tensor:
    """The rows of `x`, which are in `order`, in their original places."""
    place = tp.argsort(order, -1).unsqueeze(-1).expand(x.layout.shape)
    return tp.gather(x, -2, place)


def rows_in_order(x: Tensor, order: Tensor) -> Tensor:
    return tp.gather(x, -2, order.unsqueeze(-1).expand(x.layout.shape))


def _lu_grad(grad: Tensor, packed: Tensor, order: Tensor) -> Tensor:
    """Through X = L^-1 P^T dA: dL = L tril(X U^-1, -1), dU = triu(X U^-1) U, and the parts beyond the square."""
    rows, columns = packed.layout.shape[-2:]
    k = min(rows, columns)
    lower, upper = lower_upper(packed)
    grad_lower, grad_upper = grad.narrow(-1, 0, k).tril(-1), grad.narrow(-2, 0, k).triu()
    top, square = lower.narrow(-2, 0, k), upper.narrow(-1, 0, k)
    below = tp.matmul(top.mH, grad_lower.narrow(-2, 0, k))
    above = tp.matmul(grad_upper.narrow(-1, 0, k), square.mH)
    if columns > k:
        beyond = grad_upper.narrow(-1, k, columns - k)
        below = below - tp.matmul(beyond, upper.narrow(-1, k, columns - k).mH)
    if rows > k:
        under = grad_lower.narrow(-2, k, rows - k)
        above = above - tp.matmul(lower.narrow(-2, k, rows - k).mH, under)
    inner = right_solve_adjoint(below.tril(-1) + above.triu(), square, True)
    if columns > k:
        inner = tp.cat([inner, beyond], -1)
    result = solve_adjoint(top, inner, False, True)
    if rows > k:
        result = tp.cat([result, right_solve_adjoint(under, square, True)], -2)
    return rows_back(result, order)


lu_op.vjp(lambda grads, outputs: (None if grads[0] is None else _lu_grad(grads[0], outputs[0], outputs[2]),))


@lu_op.samples
def _(make: Any) -> Iterator:
    for shape in ((3, 3), (2, 4, 3), (2, 5)):
        yield (make(*shape),)


# ---- qr -------------------------------------------------------------------------------------------------------------
qr_op = op("qr(Tensor input, bool complete) -> (Tensor, Tensor)", tags=(PRIMITIVE,),
           doc="(Q with orthonormal columns, R upper triangular) with Q @ R = input; `complete`: Q is square.")


@qr_op.meta
def _(input: Layout, complete: bool) -> tuple:  # noqa: A002
    need_matrices("qr", input)
    rows, columns = input.shape[-2:]
    k = rows if complete else min(rows, columns)
    return _like(input, rows, k), _like(input, k, columns)


def _or_zero(grad: Tensor | None, output: Tensor) -> Tensor:
    return tp.zeros_like(output) if grad is None else grad


def _qr_grad(grads: tuple, outputs: tuple) -> Tensor:
    q, r = outputs
    grad_q, grad_r = _or_zero(grads[0], q), _or_zero(grads[1], r)
    rows, columns = q.layout.shape[-2], r.layout.shape[-1]
    k = q.layout.shape[-1]
    if k == rows and rows <= columns:
        inner = tp.matmul(q.mH, grad_q) - tp.matmul(grad_r, r.mH)
        turned = skew(inner)
        low = turned.tril() - 0.5 * tp.diag_embed(tp.diagonal(turned, 0, -2, -1))
        low = right_solve_adjoint(low, r.narrow(-1, 0, k), True)
        if columns > k:
            low = tp.cat([low, tp.zeros_like(r.narrow(-1, k, columns - k))], -1)
        return tp.matmul(q, grad_r + low)
    if k > columns:
        raise NotSupported("qr: with mode='complete' and more rows than columns there is no gradient, as the "
                           "additional columns of Q are arbitrary; use mode='reduced'")
    inner = (tp.matmul(grad_r, r.mH) - tp.matmul(q.mH, grad_q)).triu()
    both = inner + inner.mH - 0.5 * tp.diag_embed(tp.diagonal(inner + inner.mH, 0, -2, -1))
    return right_solve_adjoint(grad_q + tp.matmul(q, both), r, True)


qr_op.vjp(lambda grads, outputs: (_qr_grad(grads, outputs),))


@qr_op.samples
def _(make: Any) -> Iterator:
    for shape, complete in (((3, 3), False), ((2, 4, 3), False), ((2, 5), True)):
        yield make(*shape), complete


# ---- eigenvalues ----------------------------------------------------------------------------------------------------
eigh_op = op("eigh(Tensor input, bool upper) -> (Tensor, Tensor)", tags=(PRIMITIVE,),
             doc="(eigenvalues in rising order, eigenvectors as columns) of Hermitian matrices; one triangle is read.")
eig_op = op("eig(Tensor input) -> (Tensor, Tensor)", tags=(PRIMITIVE,),
            doc="(complex eigenvalues, eigenvectors of length 1 as columns) of square matrices.")


@eigh_op.meta
def _(input: Layout, upper: bool) -> tuple:  # noqa: A002
    need_matrices("eigh", input, square=True)
    return _like(input, input.shape[-1], dtype=input.dtype.to_real()), input.dense()


@eig_op.meta
def _(input: Layout) -> tuple:  # noqa: A002
    need_matrices("eig", input, square=True)
    complex_dtype = input.dtype.to_complex()
    return _like(input, input.shape[-1], dtype=complex_dtype), input.with_dtype(complex_dtype)


def _eigh_grad(grads: tuple, outputs: tuple) -> Tensor | None:
    values, vectors = outputs
    inner = None if grads[0] is None else tp.diag_embed(grads[0].to(vectors.dtype))
    if grads[1] is not None:
        turned = 0.5 * skew(tp.matmul(vectors.mH, grads[1]))
        turned = (turned - tp.diag_embed(tp.diagonal(turned, 0, -2, -1))) / differences(values)
        inner = turned if inner is None else inner + turned
    return None if inner is None else tp.matmul(tp.matmul(vectors, inner), vectors.mH)


def _eig_grad(grads: tuple, outputs: tuple) -> Tensor | None:
    values, vectors = outputs
    inner = None if grads[0] is None else tp.diag_embed(grads[0])
    if grads[1] is not None:
        turned = tp.matmul(vectors.mH, grads[1])
        own = tp.diagonal(turned, 0, -2, -1).real.to(vectors.dtype)
        turned = (turned - tp.matmul(vectors.mH, vectors) * own.unsqueeze(-2)) / differences(values).conj()
        turned = turned - tp.diag_embed(tp.diagonal(turned, 0, -2, -1))
        inner = turned if inner is None else inner + turned
    if inner is None:
        return None
    from .solving import solve_op

    return solve_op(vectors.mH, tp.matmul(inner, vectors.mH))


eigh_op.vjp(lambda grads, outputs: (_eigh_grad(grads, outputs),))
eig_op.vjp(lambda grads, outputs: (_eig_grad(grads, outputs),))


@eigh_op.samples
def _(make: Any) -> Iterator:
    for shape, upper in (((3, 3), False), ((2, 4, 4), True)):
        x = make(*shape)
        yield x + x.mH, upper


@eig_op.samples
def _(make: Any) -> Iterator:
    yield (make(3, 3),)
    yield (make(2, 4, 4),)


# ---- svd ------------------------------------------------------------------------------------------------------------
svd_op = op("svd(Tensor input, bool full_matrices) -> (Tensor, Tensor, Tensor)", tags=(PRIMITIVE,),
            doc="(U, S in falling order, Vh) with input = U @ diag(S) @ Vh.")


@svd_op.meta
def _(input: Layout, full_matrices: bool) -> tuple:  # noqa: A002
    need_matrices("svd", input)
    rows, columns = input.shape[-2:]
    k = min(rows, columns)
    return (_like(input, rows, rows if full_matrices else k), _like(input, k, dtype=input.dtype.to_real()),
            _like(input, columns if full_matrices else k, columns))


def _svd_grad(grads: tuple, outputs: tuple) -> Tensor:
    s = outputs[1]
    k = s.layout.shape[-1]
    u, vh = outputs[0].narrow(-1, 0, k), outputs[2].narrow(-2, 0, k)
    gaps = differences(s * s)
    row, column = s.unsqueeze(-2), s.unsqueeze(-1)
    inner = tp.diag_embed(_or_zero(grads[1], s).to(u.dtype))
    outside = None
    if grads[0] is not None:
        grad_u = grads[0].narrow(-1, 0, k)
        turned = tp.matmul(u.mH, grad_u)
        inner = inner + skew(turned) / gaps * row
        if u.dtype.is_complex:
            inner = inner + tp.diag_embed(tp.diagonal(skew(turned), 0, -2, -1) * (0.5 / s))
        if u.layout.shape[-2] > k:
            outside = tp.matmul((grad_u - tp.matmul(u, turned)) / row, vh)
    if grads[2] is not None:
        grad_vh = grads[2].narrow(-2, 0, k)
        turned = tp.matmul(vh, grad_vh.mH)
        inner = inner + column * (skew(turned) / gaps)
        if vh.layout.shape[-1] > k:
            beyond = tp.matmul(u, (grad_vh - tp.matmul(turned.mH, vh)) / column)
            outside = beyond if outside is None else outside + beyond
    result = tp.matmul(tp.matmul(u, inner), vh)
    return result if outside is None else result + outside


svd_op.vjp(lambda grads, outputs: (_svd_grad(grads, outputs),))


@svd_op.samples
def _(make: Any) -> Iterator:
    for shape, full in (((3, 3), False), ((2, 4, 3), False), ((2, 3), True)):
        yield make(*shape), full
