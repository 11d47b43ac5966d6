"""Optimizer steps over many tensors at once: one call updates all parameters of a group."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import NONDIFFERENTIABLE, ShapeError, Tensor, op, shape_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

sgd_step = op("sgd_step(Tensor(a!)[] params, Tensor[] grads, Tensor(a!)[] momentum_buffers, float lr, float momentum, "
              "float dampening, float weight_decay, bool nesterov, bool maximize, bool first) -> ()",
              tags=(NONDIFFERENTIABLE,), doc="torch.optim.SGD's update. `momentum_buffers` is empty without momentum.")
adamw_step = op("adamw_step(Tensor(a!)[] params, Tensor[] grads, Tensor(a!)[] exp_avgs, Tensor(a!)[] exp_avg_sqs, "
                "Tensor(a!)[] max_exp_avg_sqs, float lr, float beta1, float beta2, float eps, float weight_decay, "
                "float bias_correction1, float bias_correction2, bool decoupled, bool maximize, bool amsgrad) -> ()",
                tags=(NONDIFFERENTIABLE,),
                doc="Adam's (decoupled=False) and AdamW's update, Loshchilov and Hutter 2019.")


@sgd_step.meta
def _(params: list, grads: list, *rest: Any) -> None:
    _check("sgd_step", params, grads)


@adamw_step.meta
def _(params: list, grads: list, *rest: Any) -> None:
    _check("adamw_step", params, grads)


def _check(name: str, params: list, grads: list) -> None:
    if len(params) != len(grads):
        raise ShapeError(f"{name}: {len(params)} parameters but {len(grads)} gradients")
    for i, (param, grad) in enumerate(zip(params, grads)):
        if param.shape != grad.shape:
            raise ShapeError(f"{name}: parameter {i} has shape {shape_text(param.shape)}, its gradient "
                             f"{shape_text(grad.shape)}")


@sgd_step.decomposition
def _(params: Any, grads: Any, momentum_buffers: Any, lr: float, momentum: float, dampening: float,
      weight_decay: float, nesterov: bool, maximize: bool, first: bool) -> None:
    for i, (param, grad) in enumerate(zip(params, grads)):
        grad = -grad if maximize else grad
        if weight_decay:
            grad = grad + param * weight_decay
        if momentum:
            buffer = momentum_buffers[i]
            buffer.copy_(grad if first else buffer * momentum + grad * (1 - dampening))
            grad = grad + buffer * momentum if nesterov else buffer
        param.copy_(param - grad * lr)


@adamw_step.decomposition
def _(params: Any, grads: Any, exp_avgs: Any, exp_avg_sqs: Any, max_exp_avg_sqs: Any, lr: float, beta1: float,
      beta2: float, eps: float, weight_decay: float, bias_correction1: float, bias_correction2: float,
      decoupled: bool, maximize: bool, amsgrad: bool) -> None:
    for i, (param, grad, average, square) in enumerate(zip(params, grads, exp_avgs, exp_avg_sqs)):
        grad = -grad if maximize else grad
        value = param
        if weight_decay and decoupled:
            value = param * (1 - lr * weight_decay)
        elif weight_decay:
            grad = grad + param * weight_decay
        average.copy_(average + (grad - average) * (1 - beta1))
        square.copy_(square * beta2 + grad * grad * (1 - beta2))
        top = square
        if amsgrad:
            top = max_exp_avg_sqs[i]
            top.copy_(_maximum(top, square))
        denominator = top.sqrt() / bias_correction2 ** 0.5 + eps
        param.copy_(value - average / denominator * (lr / bias_correction1))


def _maximum(first: Tensor, second: Tensor) -> Tensor:
    return tp.maximum(first, second)


def _group(make: Any, low: float = -2) -> list:
    return [make(3, 4, low=low), make(5, low=low)]


@sgd_step.samples
def _(make: Any) -> Iterator:
    yield _group(make), _group(make), [], 0.1, 0.0, 0.0, 0.0, False, False, False
    yield _group(make), _group(make), _group(make), 0.1, 0.9, 0.2, 0.01, False, True, False
    yield _group(make), _group(make), _group(make), 0.1, 0.9, 0.0, 0.01, True, False, True


@adamw_step.samples
def _(make: Any) -> Iterator:
    def state() -> tuple:
        return _group(make), _group(make), _group(make), _group(make, low=0)

    yield *state(), [], 0.01, 0.9, 0.99, 1e-8, 0.1, 0.19, 0.0199, True, False, False
    yield *state(), _group(make, low=0), 0.01, 0.9, 0.99, 1e-8, 0.1, 0.19, 0.0199, False, True, True


FUNCTIONS = ("sgd_step", "adamw_step")
