"""tensorplay.linalg and torch's top-level names against NumPy, and the gradients of compositions."""
from __future__ import annotations

import numpy as np
import pytest

import tensorplay as tp
from tensorplay.autograd import gradcheck, gradgradcheck
from tensorplay.library import ShapeError

DTYPES = (np.float64, np.complex128)


def matrices(*shape: int, dtype: type = np.float64, seed: int = 0) -> np.ndarray:
    source = np.random.RandomState(seed)
    x = source.uniform(-1, 1, shape)
    return x + 1j * source.uniform(-1, 1, shape) if dtype is np.complex128 else x


def definite(*shape: int, dtype: type = np.float64) -> np.ndarray:
    x = matrices(*shape, dtype=dtype)
    return x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(shape[-1])


def close(got: object, wanted: object) -> None:
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-9, atol=1e-9)


def T(x: np.ndarray) -> tp.Tensor:
    return tp.from_numpy(np.ascontiguousarray(x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (0, 2, 2)])
def test_square_matrices(shape: tuple, dtype: type) -> None:
    x = matrices(*shape, dtype=dtype) + 3 * np.eye(shape[-1])
    close(tp.linalg.det(T(x)), np.linalg.det(x))
    sign, size = tp.linalg.slogdet(T(x))
    close(sign, np.linalg.slogdet(x)[0]), close(size, np.linalg.slogdet(x)[1])
    close(tp.linalg.inv(T(x)), np.linalg.inv(x))
    close(tp.linalg.inv_ex(T(x)).inverse, np.linalg.inv(x))
    b = matrices(*shape[:-1], 2, dtype=dtype, seed=1)
    close(tp.linalg.solve(T(x), T(b)), np.linalg.solve(x, b))
    close(tp.linalg.solve(T(x), T(np.swapaxes(b, -1, -2)), left=False) @ T(x), np.swapaxes(b, -1, -2))
    for n in (-2, 0, 1, 5):
        close(tp.linalg.matrix_power(T(x), n), np.linalg.matrix_power(x, n))
    factors = tp.linalg.lu_factor(T(x))
    close(tp.linalg.lu_solve(*factors, T(b)), np.linalg.solve(x, b))
    close(tp.linalg.lu_solve(*factors, T(b), adjoint=True), np.linalg.solve(np.conj(np.swapaxes(x, -1, -2)), b))
    close(tp.linalg.lu_solve(*factors, T(np.swapaxes(b, -1, -2)), left=False) @ T(x), np.swapaxes(b, -1, -2))
    p, lower, upper = tp.lu_unpack(*factors)
    close(p @ lower @ upper, x)


def test_vectors_to_the_right() -> None:
    x, b = matrices(2, 3, 3) + 3 * np.eye(3), matrices(2, 3, seed=1)
    close(tp.linalg.solve(T(x), T(b)), np.linalg.solve(x, b[..., None])[..., 0])
    close(tp.linalg.solve(T(x[0]), T(b[0])), np.linalg.solve(x[0], b[0]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 5, 3), (2, 3, 5)])
def test_factorizations_multiply_back(shape: tuple, dtype: type) -> None:
    x = matrices(*shape, dtype=dtype)
    for full in (False, True):
        u, s, vh = tp.linalg.svd(T(x), full_matrices=full)
        k = min(shape[-2:])
        close((u[..., :k] * s.unsqueeze(-2).to(u.dtype)) @ vh[..., :k, :], x)
        close(u.mH @ u, np.broadcast_to(np.eye(u.shape[-1]), (*shape[:-2], u.shape[-1], u.shape[-1])))
        q, r = tp.linalg.qr(T(x), "complete" if full else "reduced")
        close(q @ r, x)
        close(r.tril(-1), np.zeros(r.shape))
    close(tp.linalg.svdvals(T(x)), np.linalg.svd(x, compute_uv=False))
    close(tp.linalg.pinv(T(x)), np.linalg.pinv(x))
    close(tp.svd(T(x)).V, tp.linalg.svd(T(x), full_matrices=False).Vh.mH.numpy())
    assert tp.linalg.matrix_rank(T(x)).tolist() == np.linalg.matrix_rank(x).tolist()
    assert tp.linalg.qr(T(x), "r").Q.shape == (0,)


@pytest.mark.parametrize("dtype", DTYPES)
def test_hermitian_and_definite_matrices(dtype: type) -> None:
    x = definite(2, 4, 4, dtype=dtype)
    for uplo in "LU":
        half = np.tril(x) if uplo == "L" else np.triu(x)
        values, vectors = tp.linalg.eigh(T(half), uplo)
        close(values, np.linalg.eigvalsh(x))
        close(T(x) @ vectors, (vectors * values.unsqueeze(-2).to(vectors.dtype)).numpy())
        close(tp.linalg.eigvalsh(T(half), uplo), np.linalg.eigvalsh(x))
    lower = tp.linalg.cholesky(T(x))
    close(lower, np.linalg.cholesky(x))
    close(tp.linalg.cholesky(T(x), upper=True), np.conj(np.swapaxes(np.linalg.cholesky(x), -1, -2)))
    b = matrices(2, 4, 3, dtype=dtype, seed=2)
    close(tp.cholesky_solve(T(b), lower), np.linalg.solve(x, b))
    close(tp.cholesky_inverse(lower.mH, upper=True), np.linalg.inv(x))
    close(tp.linalg.pinv(T(x), hermitian=True), np.linalg.inv(x))
    values, vectors = tp.linalg.eig(T(matrices(3, 3, dtype=dtype)))
    close(T(matrices(3, 3, dtype=dtype)).to(tp.complex128) @ vectors, (vectors * values).numpy())


@pytest.mark.parametrize("dtype", DTYPES)
def test_norms(dtype: type) -> None:
    x = matrices(3, 4, dtype=dtype)
    for kind in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        close(tp.linalg.matrix_norm(T(x), kind), np.linalg.norm(x, kind))
        close(tp.linalg.norm(T(x), kind), np.linalg.norm(x, kind))
        turned = T(np.stack([x, 2 * x])).movedim(0, 1)  # [3, 2, 4]
        close(tp.linalg.matrix_norm(turned, kind, (0, 2)), [np.linalg.norm(x, kind), np.linalg.norm(2 * x, kind)])
        assert tp.linalg.matrix_norm(turned, kind, (2, 0), keepdim=True).shape == (1, 2, 1)
    for kind in (0, 0.5, 1, 2, 3, -1, np.inf, -np.inf):
        close(tp.linalg.vector_norm(T(x), kind), np.linalg.norm(x.reshape(-1), kind))
        close(tp.linalg.vector_norm(T(x), kind, 1), np.linalg.norm(x, kind, 1))
    square = matrices(3, 3, dtype=dtype)
    for kind in (None, 1, 2, -2, np.inf, "fro"):
        close(tp.linalg.cond(T(square), kind), np.linalg.cond(square, kind))


@pytest.mark.parametrize("order", [0.5, 1, 2, 3, -1, float("inf")])
def test_norms_at_zero_have_no_nan_gradients(order: float) -> None:
    x = tp.zeros(3, dtype=tp.float64, requires_grad=True)
    tp.linalg.vector_norm(x, order).backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


def test_products_and_functions() -> None:
    a, b, c = matrices(2, 30), matrices(30, 3, seed=1), matrices(3, 5, seed=2)
    close(tp.linalg.multi_dot([T(a), T(b), T(c)]), a @ b @ c)
    close(tp.linalg.multi_dot([T(a[0]), T(b), T(c[:, 0])]), a[0] @ b @ c[:, 0])
    with pytest.raises(ShapeError, match="30"):
        tp.linalg.multi_dot([T(a), T(c)])
    close(tp.linalg.cross(T(c.T), T(c[::-1].T.copy())), np.cross(c.T, c[::-1].T))
    close(tp.linalg.vander(T(c)), np.stack([np.vander(row, increasing=True) for row in c]))
    close(tp.kron(T(a[:, :2]), T(c)), np.kron(a[:, :2], c))
    x = matrices(4, 4)
    close(tp.linalg.matrix_exp(T(x)) @ tp.linalg.matrix_exp(T(-x)), np.eye(4))
    values, vectors = np.linalg.eigh(x + x.T)
    close(tp.linalg.matrix_exp(T(5 * (x + x.T))) / np.exp(5 * values.max()),
          (vectors * np.exp(5 * (values - values.max()))) @ vectors.T)
    big = matrices(4, 6, 8, 3)
    close(tp.linalg.tensorinv(T(big)), np.linalg.tensorinv(big))
    close(tp.linalg.tensorsolve(T(big), T(matrices(4, 6))), np.linalg.tensorsolve(big, matrices(4, 6)))
    close(tp.linalg.tensorsolve(T(big.transpose(2, 0, 1, 3)), T(matrices(4, 6)), dims=(0,)),
          np.linalg.tensorsolve(big.transpose(2, 0, 1, 3), matrices(4, 6), axes=(0,)))
    h, tau = matrices(5, 3), matrices(3, seed=4)
    product = np.eye(5)
    for i in range(3):
        v = np.concatenate([np.zeros(i), [1.0], h[i + 1:, i]])
        product = product @ (np.eye(5) - tau[i] * np.outer(v, v))
    close(tp.linalg.householder_product(T(h), T(tau)), product[:, :3])


@pytest.mark.parametrize("driver", [None, "gels", "gelsd"])
def test_least_squares(driver: str | None) -> None:
    x, b = matrices(6, 3), matrices(6, 2, seed=1)
    found = tp.linalg.lstsq(T(x), T(b), driver=driver)
    solution, residuals, _, values = np.linalg.lstsq(x, b, rcond=None)
    close(found.solution, solution)
    close(found.residuals, residuals if driver else np.zeros(0))
    close(found.singular_values, values if driver == "gelsd" else np.zeros(0))


# ---- gradients of complex matrices: functions that do not depend on the phases of the vectors -----------------------
def leaf(x: np.ndarray) -> tp.Tensor:
    return T(x).requires_grad_()


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients(dtype: type) -> None:
    square = matrices(3, 3, dtype=dtype) + 2 * np.eye(3)
    weights = T(matrices(3, 3, seed=7))
    tall = matrices(4, 3, dtype=dtype)

    def hermitian(x: tp.Tensor) -> tp.Tensor:
        return x + x.mH

    def eigenvectors(x: tp.Tensor) -> tp.Tensor:
        values, vectors = tp.linalg.eig(x)
        return (vectors.abs() * weights).sum() + values.abs().sum()

    def svd_parts(x: tp.Tensor) -> tp.Tensor:
        u, s, vh = tp.linalg.svd(x, full_matrices=False)
        return (u.abs() ** 2 * T(matrices(*u.shape, seed=5))).sum() + (vh.abs() ** 2 * weights).sum() + (s ** 3).sum()

    cases = [(lambda x: tp.linalg.eigh(hermitian(x))[1].abs() ** 2, square), (eigenvectors, square),
             (lambda x: tp.linalg.cholesky(x @ x.mH + tp.eye(3, dtype=x.dtype)), square), (svd_parts, tall),
             (svd_parts, tall.conj().T[:3, :3]), (lambda x: tp.linalg.qr(x)[1], tall),
             (lambda x: tp.linalg.qr(x)[0], tall.conj().T.copy()), (tp.linalg.pinv, tall), (tp.linalg.det, square),
             (tp.linalg.inv, square), (lambda x: tp.linalg.solve(x, x.mH), square), (tp.linalg.matrix_exp, square),
             (lambda x: tp.linalg.slogdet(x)[1], square)]
    cases += [(lambda x, part=part: tp.linalg.lu(x)[part], x) for part in (1, 2) for x in (square, tall, tall.T.copy())]
    for call, x in cases:
        assert gradcheck(call, (leaf(x),)), call
    for call, x in cases[7:11]:
        assert gradgradcheck(call, (leaf(x),)), call


def test_determinant_of_a_singular_matrix_has_the_adjugate_as_gradient() -> None:
    x = leaf(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]) * np.array([1.0, 0.0, 1.0]))
    tp.linalg.det(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), [[0, -6, 0], [0, -12, 0], [0, -6, 0]] * np.array([1, -1, 1])
                               * np.array([[1], [-1], [1]]), atol=1e-6)


def test_complete_qr_of_tall_matrices_has_no_gradient() -> None:
    q, r = tp.linalg.qr(leaf(matrices(4, 2)), "complete")
    with pytest.raises(tp.library.NotSupported, match="mode='reduced'"):
        (q.sum() + r.sum()).backward()


def test_namespace_is_a_module() -> None:
    import tensorplay.linalg as module
    from tensorplay.linalg import inv

    assert module is tp.linalg and inv is tp.linalg.inv
    assert [name for name in module.__all__ if not callable(getattr(module, name, None))] == []
