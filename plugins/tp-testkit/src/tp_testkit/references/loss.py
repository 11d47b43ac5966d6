"""References of cross entropy, row by row."""
from __future__ import annotations

import numpy as np
from scipy import special


def _target(classes, target, ignore_index, smoothing, weight):
    """(wanted distribution times class weights, weight of the row) of one row."""
    if target == ignore_index:
        return np.zeros(classes), 0.0
    weight = np.ones(classes) if weight is None else weight
    wanted = weight * smoothing / classes
    wanted[target] += (1 - smoothing) * weight[target]
    return wanted, weight[target]


def cross_entropy_forward(x, target, weight, reduction, ignore_index, smoothing):
    rows = [_target(x.shape[1], t, ignore_index, smoothing, weight) for t in target]
    losses = np.array([-(wanted * special.log_softmax(row)).sum() for row, (wanted, _) in zip(x, rows)])
    total = np.array(sum([scale for _, scale in rows]), dtype=float)
    loss = losses if reduction == "none" else losses.sum() / (total if reduction == "mean" else 1)
    return loss, special.logsumexp(x, axis=1), total


def cross_entropy_backward(grad, x, target, weight, logsumexp, total, reduction, ignore_index, smoothing):
    out = np.zeros(x.shape)
    for i, row in enumerate(x):
        wanted, _ = _target(x.shape[1], target[i], ignore_index, smoothing, weight)
        seed = grad[i] if reduction == "none" else grad / total if reduction == "mean" else grad
        out[i] = seed * (np.exp(row - logsumexp[i]) * wanted.sum() - wanted)
    return out


LOSS = {"cross_entropy_forward": cross_entropy_forward, "cross_entropy_backward": cross_entropy_backward}
