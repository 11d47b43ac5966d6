"""Bounds on gradients: `tensorplay.nn.utils.clip_grad_norm_` and `clip_grad_value_`."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import AutogradError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tensorplay import Tensor


def _gradients(parameters: Any) -> list:
    listed = [parameters] if isinstance(parameters, tp.Tensor) else list(parameters)
    return [p.grad for p in listed if p.grad is not None]


def get_total_norm(tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Tensor:
    """The norm of all tensors seen as one vector."""
    with tp.no_grad():
        norms = [tp.norm(t.detach(), norm_type) for t in tensors]
        if not norms:
            return tp.tensor(0.0)
        total = tp.norm(tp.stack(norms), norm_type)
    if error_if_nonfinite and not bool(tp.isfinite(total)):
        raise AutogradError(f"the total norm of the gradients is {total.item()}; a gradient is infinite or NaN "
                            f"(tp.autograd.set_detect_anomaly(True) finds where)")
    return total


def clip_grad_norm_(parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
                    foreach: Any = None) -> Tensor:
    """Scale all gradients so that their total norm is at most `max_norm`; returns the norm before.

    >>> import tensorplay as tp
    >>> p = tp.nn.Parameter(tp.ones(2)); p.grad = tp.tensor([3., 4.])
    >>> tp.nn.utils.clip_grad_norm_([p], 1.0).item(), p.grad.norm().item() <= 1.0
    (5.0, True)
    """
    grads = _gradients(parameters)
    total = get_total_norm(grads, norm_type, error_if_nonfinite)
    with tp.no_grad():
        factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
        for grad in grads:
            grad.mul_(factor.to(grad.dtype))
    return total


def clip_grad_value_(parameters: Any, clip_value: float, foreach: Any = None) -> None:
    """Clamp every gradient element to [-clip_value, clip_value]."""
    with tp.no_grad():
        for grad in _gradients(parameters):
            grad.clamp_(-clip_value, clip_value)
