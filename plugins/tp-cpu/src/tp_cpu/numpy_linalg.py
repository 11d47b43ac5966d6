"""Matrix factorizations and Fourier transforms through NumPy's LAPACK and pocketfft, always in double precision; what
NumPy lacks (lu, triangular systems) is written out."""
from __future__ import annotations

from typing import Any

import numpy as np

from tensorplay.library import Tensor, ValueRangeError

from .numpy_arrays import store, wide_values

BLOCK = 64


def adjoint(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


def positions(wrong: np.ndarray) -> str:
    """Which matrix of a batch, for an error message."""
    return f"matrix {[int(i) for i in np.argwhere(wrong)[0]]} of the batch" if wrong.ndim else "the matrix"


# ---- cholesky --------------------------------------------------------------------------------------------------------
def cholesky(outs: tuple, x: Tensor, check: bool) -> None:
    matrices = wide_values(x)
    info = np.zeros(matrices.shape[:-2], np.int32)
    try:
        lower = np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        lower = np.zeros_like(matrices)
        for at in np.ndindex(*info.shape):
            info[at] = definite_factor(matrices[at], lower[at])
    if check and info.any():
        raise ValueRangeError(f"cholesky: {positions(info != 0)} is not positive definite (its leading block of order "
                              f"{int(info[info != 0].flat[0])} is not)")
    store(outs[0], lower)
    store(outs[1], info)


def definite_factor(matrix: np.ndarray, out: np.ndarray) -> int:
    """Write the factor; 0, or the order of the first leading block that has none, factored as far as it goes."""
    try:
        out[...] = np.linalg.cholesky(matrix)
        return 0
    except np.linalg.LinAlgError:
        pass
    for order in range(1, len(matrix) + 1):
        try:
            out[:order, :order] = np.linalg.cholesky(matrix[:order, :order])
        except np.linalg.LinAlgError:
            return order
    return 0


# ---- triangular systems ----------------------------------------------------------------------------------------------
def solve_triangle(matrix: np.ndarray, other: np.ndarray, upper: bool, unitriangular: bool) -> np.ndarray:
    """By substitution; whole blocks at a time take what is already known into account."""
    size = matrix.shape[-1]
    result = np.array(other, dtype=np.result_type(matrix, other))
    starts = range(0, size, BLOCK)
    with np.errstate(all="ignore"):
        for start in reversed(starts) if upper else starts:
            end = min(start + BLOCK, size)
            known = slice(end, size) if upper else slice(0, start)
            result[..., start:end, :] -= matrix[..., start:end, known] @ result[..., known, :]
            for i in reversed(range(start, end)) if upper else range(start, end):
                near = slice(i + 1, end) if upper else slice(start, i)
                row = result[..., i:i + 1, :] - matrix[..., i:i + 1, near] @ result[..., near, :]
                result[..., i:i + 1, :] = row if unitriangular else row / matrix[..., i:i + 1, i:i + 1]
    return result


def triangular_solve(out: Tensor, x: Tensor, other: Tensor, upper: bool, unitriangular: bool) -> None:
    store(out, solve_triangle(wide_values(x), wide_values(other), upper, unitriangular))


# ---- lu, solve, inverse ----------------------------------------------------------------------------------------------
def lu(outs: tuple, x: Tensor) -> None:
    """Gauss with row pivots, a column at a time for all matrices of the batch."""
    packed = np.array(wide_values(x))
    rows, columns = packed.shape[-2:]
    batch = packed.reshape(int(np.prod(packed.shape[:-2])), rows, columns)
    which = np.arange(len(batch))
    pivots = np.zeros((len(batch), min(rows, columns)), np.int32)
    order = np.tile(np.arange(rows), (len(batch), 1))
    with np.errstate(all="ignore"):
        for k in range(min(rows, columns)):
            best = k + np.argmax(pivot_size(batch[:, k:, k]), axis=1)
            pivots[:, k] = best + 1
            for rowed in (batch, order):
                rowed[which, k], rowed[which, best] = rowed[which, best], rowed[which, k]
            head = batch[:, k, k][:, None]
            batch[:, k + 1:, k] = np.where(head == 0, 0, batch[:, k + 1:, k] / head)
            batch[:, k + 1:, k + 1:] -= batch[:, k + 1:, k:k + 1] * batch[:, k:k + 1, k + 1:]
    store(outs[0], batch.reshape(packed.shape))
    store(outs[1], pivots.reshape(outs[1].layout.shape))
    store(outs[2], order.reshape(outs[2].layout.shape))


def pivot_size(x: np.ndarray) -> np.ndarray:
    """By what LAPACK chooses: |re| + |im| of complex numbers."""
    return np.abs(x.real) + np.abs(x.imag) if x.dtype.kind == "c" else np.abs(x)


def refuse_singular(name: str, matrices: np.ndarray) -> None:
    signs = np.linalg.det(matrices) if matrices.size else np.ones(matrices.shape[:-2])
    wrong = (signs == 0) | ~np.isfinite(signs)
    raise ValueRangeError(f"{name}: {positions(wrong) if wrong.any() else 'a matrix'} is singular, so it has no "
                          f"inverse; tp.linalg.pinv gives the pseudoinverse")


def solve(out: Tensor, x: Tensor, other: Tensor) -> None:
    matrices, right = wide_values(x), wide_values(other)
    try:
        store(out, np.linalg.solve(matrices, right))
    except np.linalg.LinAlgError:
        refuse_singular("solve", matrices)


def inv(out: Tensor, x: Tensor) -> None:
    matrices = wide_values(x)
    try:
        store(out, np.linalg.inv(matrices))
    except np.linalg.LinAlgError:
        refuse_singular("inv", matrices)


# ---- qr, eigenvalues, svd --------------------------------------------------------------------------------------------
def identities(out: Tensor) -> np.ndarray:
    """What an orthonormal factor of a matrix without elements is."""
    return np.broadcast_to(np.eye(*out.layout.shape[-2:]), out.layout.shape)


def qr(outs: tuple, x: Tensor, complete: bool) -> None:
    if not x.layout.numel:
        store(outs[0], identities(outs[0]))
        store(outs[1], np.zeros(()))
        return
    for out, result in zip(outs, np.linalg.qr(wide_values(x), "complete" if complete else "reduced")):
        store(out, result)


def converged(name: str, function: Any, *args: Any) -> Any:
    try:
        return function(*args)
    except np.linalg.LinAlgError as problem:
        raise ValueRangeError(f"{name}: {problem}; are all elements finite?") from None


def eigh(outs: tuple, x: Tensor, upper: bool) -> None:
    if x.layout.numel:
        for out, result in zip(outs, converged("eigh", np.linalg.eigh, wide_values(x), "U" if upper else "L")):
            store(out, result)


def eig(outs: tuple, x: Tensor) -> None:
    if x.layout.numel:
        for out, result in zip(outs, converged("eig", np.linalg.eig, wide_values(x))):
            store(out, result)


def svd(outs: tuple, x: Tensor, full_matrices: bool) -> None:
    if not x.layout.numel:
        store(outs[0], identities(outs[0]))
        store(outs[2], identities(outs[2]))
        return
    for out, result in zip(outs, converged("svd", np.linalg.svd, wide_values(x), full_matrices)):
        store(out, result)


# ---- Fourier transforms ----------------------------------------------------------------------------------------------
def fft(out: Tensor, x: Tensor, dim: int, inverse: bool) -> None:
    """Unscaled in both directions."""
    array = wide_values(x)
    if array.size:
        store(out, np.fft.ifft(array, axis=dim, norm="forward") if inverse else np.fft.fft(array, axis=dim))


KERNELS = {
    "cholesky": cholesky, "triangular_solve": triangular_solve, "lu": lu, "qr": qr, "eigh": eigh, "eig": eig,
    "svd": svd, "solve": solve, "inv": inv, "fft": fft,
}
