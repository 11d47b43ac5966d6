"""References of scaled dot-product attention and rotary embedding, head by head."""
from __future__ import annotations

import numpy as np
from scipy import special


def _scores(query, key, mask, causal, scale):
    """The scores of one head [T, S], -inf where a key is hidden."""
    scores = query @ key.T * scale
    if causal is not None:
        hidden = np.arange(key.shape[0]) > np.arange(query.shape[0])[:, None] + causal
        scores = np.where(hidden, -np.inf, scores)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype.kind == "b" else scores + mask
    return scores


def _weights(scores):
    weights = special.softmax(scores, axis=-1)
    return np.where(np.isneginf(scores.max(-1, keepdims=True)), 0, weights)  # a row that sees no key


def _heads(query, key, mask):
    """(batch, query head, key head, mask of that head) for all heads."""
    (b, h, t, _), (_, k, s, _) = query.shape, key.shape
    wide = None if mask is None else np.broadcast_to(mask, (b, h, t, s))
    for i in range(b):
        for j in range(h):
            yield i, j, j // (h // k), None if wide is None else wide[i, j]


def scaled_dot_product_forward(query, key, value, mask, causal, scale):
    out = np.zeros((*query.shape[:3], value.shape[3]))
    lse = np.zeros(query.shape[:3])
    for i, j, k, part in _heads(query, key, mask):
        scores = _scores(query[i, j], key[i, k], part, causal, scale)
        out[i, j] = _weights(scores) @ value[i, k]
        lse[i, j] = special.logsumexp(scores, axis=-1)
    return out, lse


def scaled_dot_product_backward(grad, query, key, value, mask, out, lse, causal, scale):
    dquery, dkey, dvalue = np.zeros(query.shape), np.zeros(key.shape), np.zeros(value.shape)
    for i, j, k, part in _heads(query, key, mask):
        weights = _weights(_scores(query[i, j], key[i, k], part, causal, scale))
        dweights = grad[i, j] @ value[i, k].T
        dscores = weights * (dweights - (weights * dweights).sum(-1, keepdims=True)) * scale
        dquery[i, j] += dscores @ key[i, k]
        dkey[i, k] += dscores.T @ query[i, j]
        dvalue[i, k] += weights.T @ grad[i, j]
    return dquery, dkey, dvalue


def rope(x, cos, sin):
    """Pairs (x1, x2) as complex numbers, turned by cos + i sin."""
    half = x.shape[-1] // 2
    turned = (x[..., :half] + 1j * x[..., half:]) * (cos + 1j * sin)
    return np.concatenate([turned.real, turned.imag], -1)


ATTENTION = {"scaled_dot_product_forward": scaled_dot_product_forward,
             "scaled_dot_product_backward": scaled_dot_product_backward, "rope": rope}
