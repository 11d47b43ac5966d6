"""References of reading and writing by index."""
from __future__ import annotations

import numpy as np


def gather(x, dim, index):
    if not x.ndim:
        return np.broadcast_to(x, index.shape).copy()
    return np.array([x[_moved(at, dim, index[at])] for at in np.ndindex(index.shape)],
                    dtype=x.dtype).reshape(index.shape)


def _moved(at, dim, place):
    """The index tuple `at` with `place` along `dim`."""
    at = list(at)
    at[dim] = int(place)
    return tuple(at)


def _scattered(combine):
    def reference(x, dim, index, src):
        out = x.copy()
        for at in np.ndindex(index.shape):
            place = _moved(at, dim, index[at]) if x.ndim else ()
            out[place] = combine(out[place], src[at])
        return out

    return reference


_MODES = {"set": _scattered(lambda old, new: new), "add": _scattered(lambda old, new: old + new),
          "mul": _scattered(lambda old, new: old * new), "max": _scattered(np.maximum), "min": _scattered(np.minimum)}


def scatter(x, dim, index, src, mode):
    return _MODES[mode](x, dim, index, src)


def index_select(x, dim, index):
    return np.take(x, index, axis=dim) if x.ndim else np.take(x, 0)


def _index(indices, dims, ndim):
    found = [slice(None)] * ndim
    for index, dim in zip(indices, dims):
        found[dim] = index
    return tuple(found)


def index_get(x, indices, dims):
    return x[_index(indices, dims, x.ndim)]


def index_put(x, indices, values, dims, accumulate):
    out = x.copy()
    place = _index(indices, dims, x.ndim)
    if accumulate:
        np.add.at(out, place, values)
    else:
        out[place] = values
    return out


def nonzero(x):
    return np.argwhere(x).astype(np.int64)


def embedding(weight, indices, padding_idx=None):
    return weight[indices]


def embedding_backward(grad, indices, rows, padding_idx):
    table = np.zeros((rows, grad.shape[-1]), dtype=grad.dtype)
    for at in np.ndindex(indices.shape):
        if indices[at] != padding_idx:
            table[indices[at]] += grad[at]
    return table


INDEXING = {
    "gather": gather, "scatter": scatter, "scatter_reduce": scatter, "index_select": index_select,
    "index_get": index_get, "index_put": index_put, "nonzero": nonzero, "embedding": embedding,
    "embedding_padded": embedding, "embedding_backward": embedding_backward,
}
