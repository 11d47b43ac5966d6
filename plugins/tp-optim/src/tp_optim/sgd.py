"""Stochastic gradient descent."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import ValueRangeError

from .optimizer import Optimizer, Selection, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class SGD(Optimizer):
    """param -= lr * grad, with optional momentum, Nesterov momentum and weight decay.

    >>> import tensorplay as tp
    >>> w = tp.nn.Parameter(tp.tensor([1.0]))
    >>> optimizer = tp.optim.SGD([w], lr=0.5)
    >>> (w * w).sum().backward(); optimizer.step(); w.tolist()
    [0.0]
    """

    def __init__(self, params: Any, lr: float = 1e-3, momentum: float = 0, dampening: float = 0,
                 weight_decay: float = 0, nesterov: bool = False, *, maximize: bool = False, foreach: Any = None,
                 differentiable: bool = False, fused: Any = None) -> None:
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueRangeError("SGD: nesterov needs a positive momentum and no dampening")
        super().__init__(params, {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
                                  "nesterov": nesterov, "maximize": maximize, "foreach": foreach,
                                  "differentiable": differentiable, "fused": fused})

    def update(self, group: dict[str, Any], selection: Selection) -> None:
        momentum = group["momentum"]
        arguments = (number(group["lr"]), float(momentum), float(group["dampening"]), float(group["weight_decay"]),
                     group["nesterov"], group["maximize"])
        if not momentum:
            tp.sgd_step(selection.params, selection.grads, [], *arguments, False)
            return
        fresh = [i for i, state in enumerate(selection.states) if state.get("momentum_buffer") is None]
        for i in fresh:
            selection.states[i]["momentum_buffer"] = tp.zeros_like(selection.params[i])
        if not fresh:
            tp.sgd_step(selection.params, selection.grads, selection.of("momentum_buffer"), *arguments, False)
            return
        for places, first in ((fresh, True), ([i for i in range(len(selection.params)) if i not in fresh], False)):
            if places:
                tp.sgd_step([selection.params[i] for i in places], [selection.grads[i] for i in places],
                            [selection.states[i]["momentum_buffer"] for i in places], *arguments, first)
