"""References of convolutions: one output element at a time."""
from __future__ import annotations

import numpy as np


def windows(shape, weight_shape, stride, padding, dilation):
    """For each output position: (its index, the slices of the padded input that the kernel covers)."""
    counts = [(n + 2 * p - d * (k - 1) - 1) // s + 1
              for n, k, s, p, d in zip(shape[2:], weight_shape[2:], stride, padding, dilation)]
    for at in np.ndindex(*counts):
        yield at, tuple([slice(i * s, i * s + d * (k - 1) + 1, d)
                         for i, k, s, d in zip(at, weight_shape[2:], stride, dilation)])


def padded(x, padding):
    return np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in padding]])


def parts(groups, inputs, outputs):
    """(channels in, channels out) of each group."""
    for g in range(groups):
        yield (slice(g * inputs // groups, (g + 1) * inputs // groups),
               slice(g * outputs // groups, (g + 1) * outputs // groups))


def conv(x, weight, bias, stride, padding, dilation, groups):
    wide, cells = padded(x, padding), list(windows(x.shape, weight.shape, stride, padding, dilation))
    counts = tuple([n + 1 for n in max([at for at, _ in cells])])
    out = np.zeros((x.shape[0], weight.shape[0], *counts), np.result_type(x, weight))
    for of, to in parts(groups, x.shape[1], weight.shape[0]):
        for at, place in cells:
            seen = wide[(slice(None), of, *place)].reshape(x.shape[0], -1)
            out[(slice(None), to, *at)] = seen @ weight[to].reshape(seen.shape[1] and to.stop - to.start, -1).T
    return out if bias is None else out + bias.reshape(-1, *[1] * len(counts))


def conv_backward_input(grad, weight, input_shape, stride, padding, dilation, groups):
    wide = padded(np.zeros(input_shape, np.result_type(grad, weight)), padding)
    for of, to in parts(groups, input_shape[1], weight.shape[0]):
        for at, place in windows(input_shape, weight.shape, stride, padding, dilation):
            wide[(slice(None), of, *place)] += np.tensordot(grad[(slice(None), to, *at)], weight[to], 1)
    inside = tuple([slice(p, p + n) for p, n in zip(padding, input_shape[2:])])
    return wide[(slice(None), slice(None), *inside)]


def conv_backward_weight(grad, x, weight_shape, stride, padding, dilation, groups):
    wide = padded(x, padding)
    out = np.zeros(weight_shape, np.result_type(grad, x))
    for of, to in parts(groups, x.shape[1], weight_shape[0]):
        for at, place in windows(x.shape, weight_shape, stride, padding, dilation):
            out[to] += np.tensordot(grad[(slice(None), to, *at)], wide[(slice(None), of, *place)], (0, 0))
    return out


CONVOLUTION = {"conv": conv, "conv_backward_input": conv_backward_input, "conv_backward_weight": conv_backward_weight}
