"""torch's single-tensor updates of SGD, Adam and AdamW, written again in float64 NumPy."""
from __future__ import annotations

import numpy as np


def sgd(param, grad, state, *, lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False):
    grad = -grad if maximize else grad
    grad = grad + weight_decay * param
    if momentum:
        if "momentum_buffer" in state:
            state["momentum_buffer"] = momentum * state["momentum_buffer"] + (1 - dampening) * grad
        else:
            state["momentum_buffer"] = grad.copy()
        grad = grad + momentum * state["momentum_buffer"] if nesterov else state["momentum_buffer"]
    return param - lr * grad


def adam(param, grad, state, *, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False, maximize=False,
         decoupled_weight_decay=False):
    if not state:
        state.update(step=0, exp_avg=np.zeros_like(param), exp_avg_sq=np.zeros_like(param))
        if amsgrad:
            state["max_exp_avg_sq"] = np.zeros_like(param)
    state["step"] += 1
    grad = -grad if maximize else grad
    if decoupled_weight_decay:
        param = param * (1 - lr * weight_decay)
    else:
        grad = grad + weight_decay * param
    state["exp_avg"] = betas[0] * state["exp_avg"] + (1 - betas[0]) * grad
    state["exp_avg_sq"] = betas[1] * state["exp_avg_sq"] + (1 - betas[1]) * grad * grad
    second = state["exp_avg_sq"]
    if amsgrad:
        second = state["max_exp_avg_sq"] = np.maximum(state["max_exp_avg_sq"], second)
    correction1, correction2 = 1 - betas[0] ** state["step"], 1 - betas[1] ** state["step"]
    return param - lr / correction1 * state["exp_avg"] / (np.sqrt(second) / np.sqrt(correction2) + eps)


def adamw(param, grad, state, *, weight_decay=1e-2, **named):
    return adam(param, grad, state, weight_decay=weight_decay, **{**named, "decoupled_weight_decay": True})
