"""References of reductions, statistics and scans."""
from __future__ import annotations

import numpy as np
from scipy import special


def axes(dim):
    """NumPy's axis: None for all dimensions, as an empty tuple says too."""
    return None if dim is None or (isinstance(dim, (tuple, list)) and not dim) else \
        tuple(dim) if isinstance(dim, (tuple, list)) else dim


def shaped(x, dim):
    """A 0-d array has a dimension 0 for reductions."""
    return x.reshape(1) if not x.ndim and axes(dim) is not None else x


def unshaped(result, x):
    return np.asarray(result).reshape(()) if not x.ndim else result


def accumulated(x, dtype):
    """Integers are accumulated in int64."""
    return x.astype(dtype if dtype is not None else np.int64 if x.dtype.kind in "bui" else x.dtype)


def sum_(x, dim=None, keepdim=False, dtype=None):
    return unshaped(accumulated(shaped(x, dim), dtype).sum(axis=axes(dim), keepdims=keepdim), x)


def mean(x, dim=None, keepdim=False, dtype=None):
    x = x if dtype is None else x.astype(dtype)
    if x.dtype.kind in "bui":
        raise TypeError("integers have no mean")
    wide = shaped(x, dim)
    count = x.size if axes(dim) is None else np.prod([wide.shape[d] for d in np.atleast_1d(axes(dim))], dtype=int)
    return unshaped(wide.sum(axis=axes(dim), keepdims=keepdim) / (count if count else np.nan), x)


def prod(x, dim=None, keepdim=False, dtype=None):
    return accumulated(x, dtype).prod(axis=dim if x.ndim else None, keepdims=keepdim)


def extreme(function):
    def reference(x, dim=(), keepdim=False):
        if x.dtype.kind == "c":
            raise TypeError("complex numbers have no order")
        return unshaped(function(shaped(x, dim), axis=axes(dim), keepdims=keepdim), x)

    return reference


def arg_extreme(function):
    def reference(x, dim=None, keepdim=False):
        if x.dtype.kind == "c":
            raise TypeError("complex numbers have no order")
        return np.asarray(function(x, axis=dim if x.ndim else None, keepdims=keepdim))

    return reference


def truth(function):
    def reference(x, dim=None, keepdim=False):
        result = unshaped(function(shaped(x, dim) != 0, axis=axes(dim), keepdims=keepdim), x)
        return np.asarray(result, dtype=np.uint8 if x.dtype == np.uint8 else bool)

    return reference


def logsumexp(x, dim, keepdim=False):
    wide = shaped(x if x.dtype.kind in "fc" else x.astype(float), dim)
    if x.size == 0:
        return np.log(np.exp(wide).sum(axis=axes(dim), keepdims=keepdim))
    return unshaped(special.logsumexp(wide, axis=axes(dim), keepdims=keepdim), x)


def root_of_squares(x, dim=None, keepdim=False):
    if x.dtype.kind not in "f":
        raise TypeError("a norm is of floating point numbers")
    return unshaped(np.sqrt(np.square(shaped(x, dim)).sum(axis=axes(dim), keepdims=keepdim)), x)


# ---- scans -----------------------------------------------------------------------------------------------------------
def cumsum(x, dim, dtype=None):
    x = accumulated(x, dtype)
    return np.cumsum(x, axis=dim) if x.ndim else x


def cumprod(x, dim, dtype=None):
    x = accumulated(x, dtype)
    return np.cumprod(x, axis=dim) if x.ndim else x


def extreme_scan(better):
    """Walks along the dimension; the last of equal ones counts, and NaN stays once it is met."""

    def reference(x, dim):
        if x.dtype.kind == "c":
            raise TypeError("complex numbers have no order")
        if not x.ndim:
            return x.copy(), np.zeros((), np.int64)
        rows = np.moveaxis(x, dim, -1)
        values, places = rows.copy(), np.zeros(rows.shape, np.int64)
        for k in range(1, rows.shape[-1]):
            new, old = rows[..., k], values[..., k - 1]
            take = (better(new, old) & ~np.isnan(old)) | np.isnan(new) if x.dtype.kind == "f" else better(new, old)
            values[..., k] = np.where(take, new, old)
            places[..., k] = np.where(take, k, places[..., k - 1])
        return np.moveaxis(values, -1, dim), np.moveaxis(places, -1, dim)

    return reference


REDUCTION = {
    "sum": sum_, "mean": mean, "prod": prod, "amax": extreme(np.max), "amin": extreme(np.min),
    "argmax": arg_extreme(np.argmax), "argmin": arg_extreme(np.argmin), "any": truth(np.any), "all": truth(np.all),
    "logsumexp": logsumexp, "root_of_squares": root_of_squares, "cumsum": cumsum, "cumprod": cumprod,
    "cummax": extreme_scan(np.greater_equal), "cummin": extreme_scan(np.less_equal),
}
