"""Pseudoinverses and ranks, by singular values or by the eigenvalues of Hermitian matrices."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import Layout, Tensor, op

from .factorization import eigh_op, need_matrices, svd_op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def _spectrum(A: Tensor, hermitian: bool) -> tuple:
    """(U, S, Vh); by eigenvalues for Hermitian matrices."""
    if not hermitian:
        return svd_op(A, False)
    values, vectors = eigh_op(A, False)
    return vectors * tp.sgn(values).unsqueeze(-2), tp.abs(values), vectors.mH


def _limits(A: Tensor, atol: Any, rtol: Any) -> tuple:
    """Without any, singular values up to epsilon times the larger size and the largest of them count as 0."""
    if rtol is None:
        given = isinstance(atol, Tensor) or (atol is not None and atol > 0)
        rtol = 0.0 if given else max(A.layout.shape[-2:]) * tp.finfo(A.dtype).eps
    return tuple([one.to(A.dtype.to_real()).unsqueeze(-1) if isinstance(one, Tensor) else float(one)
                  for one in (0.0 if atol is None else atol, rtol)])


def _kept(s: Tensor, atol: Any, rtol: Any) -> Tensor:
    """Which singular values count: those above max(atol, rtol * the largest)."""
    return (s > s.amax(-1, keepdim=True) * rtol) & (s > atol)


# ---- pinv -----------------------------------------------------------------------------------------------------------
pinv_op = op("pinv(Tensor input, float atol, float rtol, bool hermitian) -> Tensor",
             doc="The pseudoinverse; singular values up to max(atol, rtol * the largest) count as 0.")


@pinv_op.meta
def _(input: Layout, atol: float, rtol: float, hermitian: bool) -> Layout:  # noqa: A002
    need_matrices("pinv", input, square=hermitian)
    return input.with_shape(input.shape[:-2] + input.shape[:-3:-1])


@pinv_op.decomposition
def _(input: Tensor, atol: float, rtol: float, hermitian: bool) -> Tensor:  # noqa: A002
    pinv_op.op.rule("meta")(input.layout, atol, rtol, hermitian)
    return _inverted(input, atol, rtol, hermitian)


def _inverted(A: Tensor, atol: Any, rtol: Any, hermitian: bool) -> Tensor:
    if not A.layout.numel:
        return A.mH.clone()
    u, s, vh = _spectrum(A, hermitian)
    kept = _kept(s, atol, rtol)
    inverse = tp.where(kept, 1 / tp.where(kept, s, 1), 0)
    return tp.matmul(vh.mH * inverse.unsqueeze(-2).to(A.dtype), u.mH)


def _pinv_grad(grad: Tensor, input: Tensor, output: Tensor) -> Tensor:  # noqa: A002
    """Golub and Pereyra, "The differentiation of pseudo-inverses", 1973; holds where the rank is constant."""
    left = tp.matmul(grad.mH, output)
    outer = tp.matmul(left, output.mH)
    return (outer - tp.matmul(tp.matmul(input, output), outer) - tp.matmul(output, left).mH
            + tp.matmul(tp.matmul(output.mH, output), grad.mH - tp.matmul(left, input)))


pinv_op.vjp(input=_pinv_grad)


@pinv_op.samples
def _(make: Any) -> Iterator:
    for shape in ((3, 3), (2, 4, 3), (2, 5)):
        yield make(*shape), 0.0, 1e-6, False


def pinv(A: Tensor, *, atol: Any = None, rtol: Any = None, rcond: Any = None, hermitian: bool = False) -> Tensor:
    """The Moore-Penrose pseudoinverse; singular values up to max(atol, rtol * the largest) count as 0. Both may be
    tensors, one number for each matrix.

    >>> import tensorplay as tp
    >>> tp.linalg.pinv(tp.tensor([[2., 0.], [0., 0.]])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    limits = _limits(A, atol, rcond if rtol is None else rtol)
    return (_inverted if any([isinstance(one, Tensor) for one in limits]) else pinv_op)(A, *limits, hermitian)


def matrix_rank(A: Tensor, tol: Any = None, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """The number of singular values above max(atol, rtol * the largest)."""
    if not A.layout.numel:
        return tp.zeros(A.layout.shape[:-2], dtype=tp.int64, device=A.device)
    s = _spectrum(A, hermitian)[1]
    if tol is not None:
        return (s > (tol.unsqueeze(-1) if isinstance(tol, Tensor) else tol)).sum(-1)
    return _kept(s, *_limits(A, atol, rtol)).sum(-1)
