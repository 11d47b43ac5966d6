"""Reference of the discrete Fourier transform."""
from __future__ import annotations

import numpy as np


def fft(x, dim, inverse):
    return np.fft.ifft(x, axis=dim) * x.shape[dim] if inverse else np.fft.fft(x, axis=dim)


FOURIER = {"fft": fft}
