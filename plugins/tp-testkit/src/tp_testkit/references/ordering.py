"""References of sorting, the largest k and binary search. NaN counts as the largest value."""
from __future__ import annotations

import numpy as np


def _keys(x):
    """Numbers that are ordered as torch orders the values: NaN above infinity."""
    if x.dtype.kind == "c":
        raise TypeError("complex numbers have no order")
    unique = np.unique(x[~np.isnan(x)] if x.dtype.kind == "f" else x)
    keys = np.searchsorted(unique, x)
    return np.where(np.isnan(x), len(unique), keys) if x.dtype.kind == "f" else keys


def sort(x, dim, descending, stable):
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    keys = _keys(x)
    order = np.argsort(-keys if descending else keys, axis=dim, kind="stable")
    return np.take_along_axis(x, order, dim), order


def topk(x, k, dim, largest, sorted_):
    values, order = sort(x, dim, largest, True)
    if not x.ndim:
        return values, order
    return np.take(values, range(k), axis=dim), np.take(order, range(k), axis=dim)


def searchsorted(sequence, values, right):
    side = "right" if right else "left"
    if sequence.dtype.kind == "c":
        raise TypeError("complex numbers have no order")
    if sequence.ndim == 1:
        return np.asarray(np.searchsorted(sequence, values, side))
    return np.array([np.searchsorted(row, wanted, side) for row, wanted in
                     zip(sequence.reshape(-1, sequence.shape[-1]), values.reshape(-1, values.shape[-1]))]
                    ).reshape(values.shape)


ORDERING = {"sort": sort, "topk": topk, "searchsorted": searchsorted}
