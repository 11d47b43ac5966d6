"""References of complex numbers, and of views with another dtype, for which arrays come in the tensors' own dtypes."""
from __future__ import annotations

import numpy as np


def bitcast(x, dtype):
    return np.ascontiguousarray(x).view(dtype)


def view_as_complex(x):
    return x[..., 0] + 1j * x[..., 1]


def fft(x, dim, inverse):
    """By its definition, as a product with the matrix of the roots of 1."""
    n = x.shape[dim]
    turns = np.outer(np.arange(n), np.arange(n)) % n / n
    roots = np.exp((2j if inverse else -2j) * np.pi * turns)
    return np.moveaxis(np.moveaxis(x, dim, -1) @ roots, -1, dim)


COMPLEX_NUMBERS = {
    "bitcast": bitcast, "real": np.real, "imag": np.imag, "angle": np.angle, "fft": fft,
    "conj": lambda x: np.conj(x) if x.dtype.kind == "c" else x,
    "view_as_real": lambda x: np.stack([x.real, x.imag], -1), "view_as_complex": view_as_complex,
}
