"""References of creation, copies, views and joining."""
from __future__ import annotations

import numpy as np


def full(size, value, dtype, device):
    return np.full(size, value, dtype=dtype)


def iota(count, start, step, dtype, device):
    return np.array([start + i * step for i in range(count)]).astype(dtype)


def cast(x, dtype):
    if dtype.kind == "b":
        return x != 0
    return (x.real if x.dtype.kind == "c" and dtype.kind != "c" else x).astype(dtype)


def copy(x, source):
    return np.broadcast_to(cast(source, x.dtype), x.shape)


# ---- views -----------------------------------------------------------------------------------------------------------
def squeeze(x, dim=None):
    if dim is None:
        return np.squeeze(x)
    dims = [d % x.ndim for d in np.atleast_1d(dim)] if x.ndim else []
    return np.squeeze(x, axis=tuple([d for d in dims if x.shape[d] == 1]))


def expand(x, size):
    size = [x.shape[i - len(size) + x.ndim] if n == -1 else n for i, n in enumerate(size)]
    return np.broadcast_to(x, size)


def select(x, dim, index):
    return np.take(x, index, axis=dim)


def slice_(x, dim=0, start=None, end=None, step=1):
    return np.moveaxis(np.moveaxis(x, dim, 0)[start:end:step], 0, dim)


def index_view(x, spec):
    parts = {"int": lambda i: i, "slice": slice, "new": lambda: None, "all": lambda: slice(None)}
    return x[tuple([parts[kind](*rest) for kind, *rest in spec])]


def as_strided(x, size, stride, offset=0):
    flat = x.reshape(-1)
    return np.array([flat[offset + sum([i * s for i, s in zip(at, stride)])] for at in np.ndindex(*size)],
                    dtype=x.dtype).reshape(size)


def unfold(x, dimension, size, step):
    if not x.ndim:
        return x.reshape(1)[:size]
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis=dimension)
    return np.moveaxis(np.moveaxis(windows, dimension, 0)[::step], 0, dimension)


_VIEWS = {"select": select, "slice": slice_, "index": index_view,
          "diagonal": lambda x, *rest: np.diagonal(x, *rest), "as_strided": as_strided, "unfold": unfold}


def placed(grad, kind, args, shape):
    """The gradient of a view: positions are viewed the same way, and each element of grad is added at its position."""
    out = np.zeros(int(np.prod(shape)), dtype=grad.dtype)
    positions = _VIEWS[kind](np.arange(out.size).reshape(shape), *args)
    np.add.at(out, positions.reshape(-1), grad.reshape(-1))
    return out.reshape(shape)


# ---- joining ---------------------------------------------------------------------------------------------------------
def cat(tensors, dim=0):
    return np.concatenate([x for x in tensors if x.shape != (0,)] or tensors[:1], axis=dim)


SHAPES = {
    "full": full, "iota": iota, "cast": cast, "copy_strided": lambda x: x, "device_put": lambda x, device: x,
    "copy": copy, "write_": copy, "view": np.reshape, "permute": np.transpose, "transpose": lambda x, a, b:
    np.swapaxes(x, a, b) if x.ndim else x, "squeeze": squeeze, "unsqueeze": np.expand_dims, "expand": expand,
    "select": select, "slice": slice_, "index_view": index_view, "diagonal": _VIEWS["diagonal"],
    "as_strided": as_strided, "unfold": unfold, "place_view": placed, "place_windows": placed, "cat": cat,
    "tril": np.tril, "triu": np.triu,
}
