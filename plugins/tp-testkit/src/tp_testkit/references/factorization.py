"""References of matrix factorizations: LAPACK in float64, matrix by matrix."""
from __future__ import annotations

import numpy as np
from scipy import linalg


def each_matrix(function):
    """A function of matrices, for batches of them; attributes come after the arrays."""

    def batched(*args):
        arrays = [one for one in args if isinstance(one, np.ndarray)]
        rest = args[len(arrays):]
        batch = np.broadcast_shapes(*[one.shape[:-2] for one in arrays])
        wide = [np.broadcast_to(one, batch + one.shape[-2:]) for one in arrays]
        results = [function(*[one[at] for one in wide], *rest) for at in np.ndindex(*batch)]
        if not isinstance(results[0], tuple):
            return np.stack(results).reshape(batch + results[0].shape)
        return tuple([np.stack(parts).reshape(batch + parts[0].shape) for parts in zip(*results)])

    return batched


def cholesky(x, check):
    return np.linalg.cholesky(x), np.zeros(x.shape[:-2], np.int32)


@each_matrix
def triangular_solve(x, other, upper, unitriangular):
    return linalg.solve_triangular(x, other, lower=not upper, unit_diagonal=unitriangular)


@each_matrix
def lu(x):
    factors, swaps = linalg.lu_factor(x)
    order = np.arange(x.shape[0])
    for i, j in enumerate(swaps):
        order[[i, j]] = order[[j, i]]
    return factors, swaps.astype(np.int32) + 1, order


def det_forward(x):
    factors, _, order = lu(x)
    return np.linalg.det(x), factors, order


def qr(x, complete):
    return tuple(np.linalg.qr(x, "complete" if complete else "reduced"))


def eigh(x, upper):
    return tuple(np.linalg.eigh(x, "U" if upper else "L"))


def eig(x):
    values, vectors = np.linalg.eig(x)
    return values.astype(complex), vectors.astype(complex)


def svd(x, full_matrices):
    return tuple(np.linalg.svd(x, full_matrices))


FACTORIZATION = {
    "cholesky": cholesky, "triangular_solve": triangular_solve, "lu": lu, "qr": qr, "eigh": eigh, "eig": eig,
    "svd": svd, "inv": np.linalg.inv, "solve": np.linalg.solve, "det_forward": det_forward,
    "pinv": lambda x, atol, rtol, hermitian: np.linalg.pinv(x, max(rtol, 1e-15), hermitian),
}
