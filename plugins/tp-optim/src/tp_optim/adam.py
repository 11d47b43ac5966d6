"""Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019)."""
from __future__ import annotations

import tensorplay as tp

from .optimizer import Optimizer, Selection, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tensorplay import Tensor


class Adam(Optimizer):
    """Steps scaled by running averages of the gradient and of its square; weight decay is added to the gradient.

    >>> import tensorplay as tp
    >>> w = tp.nn.Parameter(tp.tensor([1.0]))
    >>> optimizer = tp.optim.Adam([w], lr=0.1)
    >>> (w * w).sum().backward(); optimizer.step(); round(w.item(), 4)
    0.9
    """

    decoupled = False

    def __init__(self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, amsgrad: bool = False, *, foreach: Any = None, maximize: bool = False,
                 capturable: bool = False, differentiable: bool = False, fused: Any = None,
                 decoupled_weight_decay: bool = False) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                                  "amsgrad": amsgrad, "maximize": maximize, "foreach": foreach,
                                  "capturable": capturable, "differentiable": differentiable, "fused": fused,
                                  "decoupled_weight_decay": decoupled_weight_decay or self.decoupled})

    def start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """The state of a parameter before its first step."""
        state = {"step": 0, "exp_avg": tp.zeros_like(param), "exp_avg_sq": tp.zeros_like(param)}
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = tp.zeros_like(param)
        return state

    def update(self, group: dict[str, Any], selection: Selection) -> None:
        beta1, beta2 = group["betas"]
        for step, part in selection.by_step():
            tp.adamw_step(part.params, part.grads, part.of("exp_avg"), part.of("exp_avg_sq"),
                          part.of("max_exp_avg_sq") if group["amsgrad"] else [], number(group["lr"]), float(beta1),
                          float(beta2), float(group["eps"]), float(group["weight_decay"]), 1 - beta1 ** step,
                          1 - beta2 ** step, group["decoupled_weight_decay"], group["maximize"], group["amsgrad"])


class AdamW(Adam):
    """Adam with weight decay applied to the parameter itself.

    >>> import tensorplay as tp
    >>> model = tp.nn.Linear(2, 1)
    >>> optimizer = tp.optim.AdamW(model.parameters(), lr=3e-4)
    >>> model(tp.ones(1, 2)).sum().backward(); optimizer.step()
    """

    decoupled = True

    def __init__(self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, amsgrad: bool = False, *, foreach: Any = None, maximize: bool = False,
                 capturable: bool = False, differentiable: bool = False, fused: Any = None) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
                         capturable=capturable, differentiable=differentiable, fused=fused)
