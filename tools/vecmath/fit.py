"""Fits the polynomials of ``functions.py`` and writes ``coefficients.json``.

Each fit is a weighted minimax fit (Lawson's iteration over a dense grid of Chebyshev points, targets from mpmath), then
the coefficients are rounded to float32 one by one, lowest first, refitting the rest each time.
Run ``python fit.py`` to reproduce the file; it needs NumPy and mpmath.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import mpmath as mp
import numpy as np

mp.mp.prec = 200
COEFFICIENTS = Path(__file__).with_name("coefficients.json")


def chebyshev_points(low: float, high: float, n: int) -> np.ndarray:
    k = np.arange(n, dtype=np.longdouble)
    return (low + high) / 2 + (high - low) / 2 * np.cos((2 * k + 1) * np.longdouble(np.pi) / (2 * n))


def minimax(x: np.ndarray, y: np.ndarray, weight: np.ndarray, degrees: list[int]) -> np.ndarray:
    """Coefficients for ``x**degrees`` that nearly minimise the largest ``weight * error``."""
    basis = np.stack([x**d for d in degrees], axis=1)
    scale = np.abs(basis).max(axis=0)
    lawson = np.ones(len(x), dtype=np.longdouble)
    best, best_error = None, np.inf
    for _ in range(60):
        root = np.sqrt(lawson) * weight
        matrix, target = (basis / scale * root[:, None]), y * root
        solution = _least_squares(matrix, target) / scale
        error = np.abs((basis @ solution - y) * weight)
        if error.max() < best_error:
            best, best_error = solution, error.max()
        lawson = lawson * np.maximum(error, error.max() * np.longdouble(1e-6))
        lawson /= lawson.mean()
    return best


def _least_squares(matrix: np.ndarray, target: np.ndarray) -> np.ndarray:
    """QR by modified Gram-Schmidt in extended precision (numpy.linalg only knows double)."""
    n = matrix.shape[1]
    q, r = matrix.copy(), np.zeros((n, n), dtype=np.longdouble)
    rhs = np.zeros(n, dtype=np.longdouble)
    residual = target.copy()
    for i in range(n):
        for j in range(i):
            extra = q[:, j] @ q[:, i]
            r[j, i] += extra
            q[:, i] -= extra * q[:, j]
        r[i, i] = np.sqrt(q[:, i] @ q[:, i])
        q[:, i] /= r[i, i]
        rhs[i] = q[:, i] @ residual
        residual -= rhs[i] * q[:, i]
    solution = np.zeros(n, dtype=np.longdouble)
    for i in reversed(range(n)):
        solution[i] = (rhs[i] - r[i, i + 1:] @ solution[i + 1:]) / r[i, i]
    return solution


def rounded(x: np.ndarray, y: np.ndarray, weight: np.ndarray, degree: int, kind: type = np.float32) -> list[float]:
    """``minimax`` with coefficients that are exact in ``kind``."""
    fixed: list[float] = []
    rest = y.copy()
    for d in range(degree + 1):
        coefficient = kind(minimax(x, rest, weight, list(range(d, degree + 1)))[0])
        fixed.append(float(coefficient))
        rest = rest - np.longdouble(coefficient) * x**d
    return fixed


def fit(target: Callable, size: Callable, low: float, high: float, degree: int,
        kind: type = np.float32) -> list[float]:
    """p with p(x) ~ target(x), the error of p weighted by ``size(x)``: its effect relative to the function's result."""
    x = chebyshev_points(low, high, 400)
    exact = [mp.mpf(np.format_float_scientific(v, unique=True)) for v in x]
    y = np.array([_long(target(v)) for v in exact])
    weight = np.array([_long(size(v)) for v in exact])
    return rounded(x, y, weight, degree, kind)


def _long(value: mp.mpf) -> np.longdouble:
    return np.longdouble(mp.nstr(value, 25))


def all_fits() -> dict[str, list[float]]:
    half_ln2 = float(mp.log(2) / 2) * 1.001
    low, high = float(mp.sqrt(0.5)) - 1, float(mp.sqrt(2)) - 1
    quarter = float(mp.pi / 4) * 1.001
    return {
        # exp(r) = 1 + r + r^2 p(r)
        "exp": fit(lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2 / mp.exp(r), -half_ln2, half_ln2, 4),
        # expm1(r) = r + r^2 p(r)
        "expm1": fit(lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2 / mp.expm1(r), -half_ln2, half_ln2, 5),
        # log(1 + f) = f - f^2/2 + f^3 p(f)
        "log": fit(lambda f: (mp.log1p(f) - f + f**2 / 2) / f**3, lambda f: f**3 / mp.log1p(f), low, high, 8),
        # tanh(x) = x + x^3 p(x^2), by s = x^2
        "tanh": fit(lambda s: (mp.tanh(mp.sqrt(s)) / mp.sqrt(s) - 1) / s, lambda s: s, 1e-9, 0.625**2, 4),
        # erf(x) = x + x p(x^2)
        "erf_small": fit(lambda s: mp.erf(mp.sqrt(s)) / mp.sqrt(s) - 1, lambda s: mp.mpf(1), 1e-9, 0.9375**2, 6),
        # erf(t) = 1 - exp(-t - t p(t))
        "erf_large": fit(lambda t: -mp.log(mp.erfc(t)) / t - 1, lambda t: t * mp.erfc(t), 0.93, 4.0, 7),
        # Phi(-t) = exp(-t^2 / 2) p(t); the weight keeps Phi accurate and the far tail good to 1e-4
        "mills": fit(lambda t: mp.exp(t * t / 2) * mp.erfc(t / mp.sqrt(2)) / 2,
                     lambda t: mp.exp(-t * t / 2) * (1 + mp.mpf("4e-4") / mp.erfc(t / mp.sqrt(2))), 0.0, 4.5, 11),
        # sin(r) = r + r^3 p(r^2), cos(r) = 1 - r^2/2 + r^4 p(r^2)
        "sin": fit(lambda s: (mp.sin(mp.sqrt(s)) / mp.sqrt(s) - 1) / s, lambda s: s, 1e-9, quarter**2, 3),
        "cos": fit(lambda s: (mp.cos(mp.sqrt(s)) - 1 + s / 2) / s**2, lambda s: s**2 / mp.cos(mp.sqrt(s)), 1e-9,
                   quarter**2, 2),
        # atan(z) = z + z^3 p(z^2), asin(z) = z + z^3 p(z^2), sinh(x) = x + x^3 p(x^2)
        "atan": fit(lambda s: (mp.atan(mp.sqrt(s)) / mp.sqrt(s) - 1) / s, lambda s: s, 1e-9, 1.0, 8),
        "asin": fit(lambda s: (mp.asin(mp.sqrt(s)) / mp.sqrt(s) - 1) / s, lambda s: s, 1e-9, 0.25, 5),
        "sinh": fit(lambda s: (mp.sinh(mp.sqrt(s)) / mp.sqrt(s) - 1) / s, lambda s: s, 1e-9, 1.0, 3),
        # erfc(t) = exp(-t^2) p(w) / (1 + 2 t), w = (t - 4) / (t + 4)
        "erfc": fit(_scaled_erfc, lambda w: 1 / _scaled_erfc(w), -1.0, 0.4334, 10),
        # in float64: log2(m) = s p(s^2) with s = (m - 1) / (m + 1); 2^f
        "log2_wide": fit(lambda s: mp.log((1 + mp.sqrt(s)) / (1 - mp.sqrt(s)), 2) / mp.sqrt(s), lambda s: mp.mpf(1),
                         1e-9, 0.0295, 5, np.float64),
        "exp2_wide": fit(lambda f: mp.mpf(2) ** f, lambda f: mp.mpf(2) ** -f, -0.5, 0.5, 6, np.float64),
    }


def _scaled_erfc(w: mp.mpf) -> mp.mpf:
    t = 4 * (1 + w) / (1 - w)
    return mp.exp(t * t) * mp.erfc(t) * (1 + 2 * t)


def main() -> None:
    fits = {name: [coefficient.hex() for coefficient in values] for name, values in all_fits().items()}
    COEFFICIENTS.write_text(json.dumps(fits, indent=1) + "\n")


if __name__ == "__main__":
    main()
