"""References of matrix products."""
from __future__ import annotations

from itertools import pairwise

import numpy as np


def matmul(x, y):
    if x.dtype.kind == "b":
        return (x.astype(int) @ y.astype(int)) != 0
    return x @ y


def linear(x, weight, bias=None):
    product = matmul(x, weight.T)
    return product if bias is None else product + bias


def dot_general(x, y, contract1, contract2, batch1=(), batch2=()):
    """By letters: numpy.einsum with one letter for each dimension, the same for those that go together."""
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    first = [next(letters) for _ in range(x.ndim)]
    second = [next(letters) for _ in range(y.ndim)]
    for mine, yours in (*zip(contract1, contract2), *zip(batch1, batch2)):
        second[yours] = first[mine]
    batch = [first[d] for d in batch1]
    rest1 = [c for c in first if c not in batch and c not in [first[d] for d in contract1]]
    rest2 = [c for c in second if c not in batch and c not in [second[d] for d in contract2]]
    result = np.einsum(f"{''.join(first)},{''.join(second)}->{''.join(batch + rest1 + rest2)}", x, y)
    return result


def grouped_matmul(x, weights, offsets):
    return np.concatenate([matmul(x[a:b], weights[g]) for g, (a, b) in enumerate(pairwise(offsets))])


def quant_matmul(x, y, x_scale, y_scale):
    if x.dtype != np.int8:
        raise TypeError("quant_matmul is of int8")
    return (x.astype(np.int32) @ y.astype(np.int32)) * (x_scale * y_scale)


PRODUCTS = {"matmul": matmul, "linear": linear, "dot_general": dot_general, "grouped_matmul": grouped_matmul,
            "quant_matmul": quant_matmul}
