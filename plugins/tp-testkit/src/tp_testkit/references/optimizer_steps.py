"""References of optimizer steps: what is written, in the order of the arguments that are written to."""
from __future__ import annotations

import numpy as np


def sgd_step(params, grads, buffers, lr, momentum, dampening, weight_decay, nesterov, maximize, first):
    new_params, new_buffers = [], []
    for i, (param, grad) in enumerate(zip(params, grads)):
        grad = (-grad if maximize else grad) + weight_decay * param
        if momentum:
            buffer = grad if first else momentum * buffers[i] + (1 - dampening) * grad
            new_buffers.append(buffer)
            grad = grad + momentum * buffer if nesterov else buffer
        new_params.append(param - lr * grad)
    return (*new_params, *new_buffers)


def adamw_step(params, grads, averages, squares, tops, lr, beta1, beta2, eps, weight_decay, correction1, correction2,
               decoupled, maximize, amsgrad):
    written: list[list] = [[], [], [], []]
    for i, (param, grad) in enumerate(zip(params, grads)):
        grad = -grad if maximize else grad
        if decoupled:
            param = param * (1 - lr * weight_decay)
        else:
            grad = grad + weight_decay * param
        average = beta1 * averages[i] + (1 - beta1) * grad
        square = beta2 * squares[i] + (1 - beta2) * np.square(grad)
        top = np.maximum(tops[i], square) if amsgrad else square
        new = param - lr * (average / correction1) / (np.sqrt(top / correction2) + eps)
        for values, value in zip(written, (new, average, square, top)):
            values.append(value)
    return (*written[0], *written[1], *written[2], *(written[3] if amsgrad else ()))


OPTIMIZER_STEPS = {"sgd_step": sgd_step, "adamw_step": adamw_step}
