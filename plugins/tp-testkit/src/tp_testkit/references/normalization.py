"""References of softmax and of layer and root mean square normalisation."""
from __future__ import annotations

import numpy as np
from scipy import special


def floats(x, dtype=None):
    return x.astype(dtype if dtype is not None else x.dtype if x.dtype.kind in "fc" else np.float64)


def softmax(x, dim, dtype=None):
    x = floats(x, dtype)
    if x.dtype.kind == "c":
        raise TypeError("complex numbers have no order")
    return (special.softmax(x, axis=dim) if x.size else x) if x.ndim else np.ones(())


def log_softmax(x, dim, dtype=None):
    x = floats(x, dtype)
    if x.dtype.kind == "c":
        raise TypeError("complex numbers have no order")
    return (special.log_softmax(x, axis=dim) if x.size else x) if x.ndim else np.zeros(())


def softmax_backward(grad, output, dim):
    """The Jacobian of a row is diag(p) - p p'."""
    g, p = np.moveaxis(grad, dim, -1), np.moveaxis(output, dim, -1)
    jacobian = p[..., :, None] * np.eye(p.shape[-1]) - p[..., :, None] * p[..., None, :]
    return np.moveaxis((jacobian @ g[..., None])[..., 0], -1, dim)


def log_softmax_backward(grad, output, dim):
    return grad - np.exp(output) * grad.sum(axis=dim, keepdims=True)


def _rows(x, shape):
    """(matrix with a row for each normalisation, leading sizes)."""
    lead = x.shape[:x.ndim - len(shape)]
    return x.reshape(lead + (int(np.prod(shape)),)), lead


def layer_norm_forward(x, shape, weight, bias, eps):
    rows, _ = _rows(x, shape)
    mean, rstd = rows.mean(-1), 1 / np.sqrt(rows.var(-1) + eps)
    out = ((rows - mean[..., None]) * rstd[..., None]).reshape(x.shape)
    out = out if weight is None else out * weight
    return out if bias is None else out + bias, mean, rstd


def _through(scaled, normal, rstd, centred):
    """The gradient of a row x through (x - mean) * rstd (or x * rstd), by its Jacobian."""
    n = normal.shape[-1]
    inner = np.eye(n) - normal[..., :, None] * normal[..., None, :] / n - (1 / n if centred else 0)
    return (scaled[..., None, :] @ inner)[..., 0, :] * rstd[..., None]


def layer_norm_backward(grad, x, mean, rstd, weight, shape):
    rows, lead = _rows(x, shape)
    normal = (rows - mean[..., None]) * rstd[..., None]
    dinput = _through(_rows(grad if weight is None else grad * weight, shape)[0], normal, rstd, True)
    over = tuple(range(len(lead)))
    return (dinput.reshape(x.shape), (grad * normal.reshape(x.shape)).sum(axis=over), grad.sum(axis=over))


def rms_norm_forward(x, shape, weight, eps):
    rows, _ = _rows(x, shape)
    rstd = 1 / np.sqrt(np.square(rows).mean(-1) + eps)
    out = (rows * rstd[..., None]).reshape(x.shape)
    return out if weight is None else out * weight, rstd


def rms_norm_backward(grad, x, rstd, weight, shape):
    rows, lead = _rows(x, shape)
    normal = rows * rstd[..., None]
    dinput = _through(_rows(grad if weight is None else grad * weight, shape)[0], normal, rstd, False)
    return dinput.reshape(x.shape), (grad * normal.reshape(x.shape)).sum(axis=tuple(range(len(lead))))


NORMALIZATION = {
    "softmax": softmax, "log_softmax": log_softmax, "softmax_backward": softmax_backward,
    "log_softmax_backward": log_softmax_backward, "layer_norm_forward": layer_norm_forward,
    "layer_norm_backward": layer_norm_backward, "rms_norm_forward": rms_norm_forward,
    "rms_norm_backward": rms_norm_backward,
}
