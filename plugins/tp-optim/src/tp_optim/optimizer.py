"""Optimizer: parameter groups, state, and a step over all tensors of a group at once."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import ArgumentError, NotSupported, TensorPlayError, ValueRangeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tensorplay import Tensor


class OptimizerStateError(TensorPlayError, ValueError):
    """A state_dict that does not fit the optimizer."""


class Optimizer:
    """Base of all optimizers. A subclass says in `update(group, tensors)` what one step does to a group.

    `params` is an iterable of tensors, of (name, tensor) pairs, or of dicts with 'params' and settings of their own.
    """

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state: dict[Tensor, dict[str, Any]] = {}
        self.param_groups: list[dict[str, Any]] = []
        self._selected: dict[int, Selection] = {}
        if isinstance(params, tp.Tensor):
            raise ArgumentError("params must be an iterable of tensors or dicts, got a single Tensor; write [tensor]")
        groups = list(params)
        if not groups:
            raise ValueRangeError(f"{type(self).__name__} got an empty list of parameters")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Add parameters with settings of their own."""
        if not isinstance(group, dict) or "params" not in group:
            raise ArgumentError(f"a parameter group must be a dict with 'params', got {group!r:.80}")
        group = dict(group)
        params = group["params"]
        if isinstance(params, (set, frozenset)):
            raise ArgumentError("optimizer parameters must be in an order that stays the same, got a set; use a list")
        params = [params] if isinstance(params, tp.Tensor) else list(params)
        if params and isinstance(params[0], tuple):
            group["param_names"] = [name for name, _ in params]
            params = [param for _, param in params]
        known = {id(p) for g in self.param_groups for p in g["params"]}
        for param in params:
            if not isinstance(param, tp.Tensor):
                raise ArgumentError(f"optimizer parameters must be Tensors, got {type(param).__name__}")
            if not param.is_leaf:
                raise ValueRangeError("an optimizer cannot change a tensor that was computed; give it leaf tensors")
            if id(param) in known:
                raise ValueRangeError("a parameter appears in more than one group, or twice")
            known.add(id(param))
        group["params"] = params
        for name, value in self.defaults.items():
            group.setdefault(name, value)
        self.check(group)
        self.param_groups.append(group)

    def check(self, group: dict[str, Any]) -> None:
        """Refuse settings that make no sense."""
        for name in ("lr", "weight_decay", "eps", "momentum"):
            if name in group and not isinstance(group[name], tp.Tensor) and not group[name] >= 0:
                raise ValueRangeError(f"{type(self).__name__}: {name} must not be negative, got {group[name]}")
        if group.get("differentiable"):
            raise NotSupported(f"{type(self).__name__}: differentiable=True (gradients through the step) is not "
                               f"supported")
        for i, beta in enumerate(group.get("betas", ())):
            if not 0 <= beta < 1:
                raise ValueRangeError(f"{type(self).__name__}: betas[{i}] must be in [0, 1), got {beta}")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters (or set them to zero)."""
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none:
                    param.grad = None
                elif param.grad is not None:
                    param.grad.detach_().zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters by their gradients. `closure`, if given, computes the loss again and is returned."""
        loss = None
        if closure is not None:
            with tp.enable_grad():
                loss = closure()
        for index, group in enumerate(self.param_groups):
            selection = self._select(index, group)
            if selection.params:
                self.update(group, selection)
        return loss

    def update(self, group: dict[str, Any], selection: Selection) -> None:
        """One step of a group's parameters; every optimizer defines its own."""
        raise NotImplementedError(f"{type(self).__name__} has no update")

    def start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """The state of a parameter before its first step."""
        return {}

    def _select(self, index: int, group: dict[str, Any]) -> Selection:
        """The parameters that have gradients, with their state, as parallel lists; kept while they stay the same."""
        params = group["params"]
        grads = [param.grad for param in params]
        if None in [None if grad is None else 0 for grad in grads]:
            params = [param for param, grad in zip(params, grads) if grad is not None]
            grads = [grad for grad in grads if grad is not None]
        kept = self._selected.get(index)
        if kept is None or len(kept.params) != len(params) or any([a is not b for a, b in zip(kept.params, params)]) \
                or kept.states and self.state.get(params[0]) is not kept.states[0]:
            states = []
            for param in params:
                state = self.state.get(param)
                if not state:
                    state = self.state[param] = self.start(param, group)
                states.append(state)
            kept = self._selected[index] = Selection(list(params), states)
        kept.grads = grads
        return kept

    # ---- state ------------------------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """State by parameter number and groups with parameter numbers, as torch lays it out."""
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for param in group["params"]:
                numbers.setdefault(id(param), len(numbers))
            groups.append({**{k: v for k, v in group.items() if k != "params"},
                           "params": [numbers[id(p)] for p in group["params"]]})
        state = {numbers[id(param)]: {name: tp.tensor(float(value)) if name == "step" else value
                                      for name, value in values.items()}
                 for param, values in self.state.items() if values and id(param) in numbers}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a saved state; the groups must have the same numbers of parameters."""
        if not isinstance(state_dict, dict) or not {"state", "param_groups"} <= set(state_dict):
            got = list(state_dict) if isinstance(state_dict, dict) else type(state_dict).__name__
            raise ArgumentError(f"{type(self).__name__}.load_state_dict takes a dict with 'state' and 'param_groups', "
                                f"got {got}")
        groups = state_dict["param_groups"]
        sizes, own = [len(g["params"]) for g in groups], [len(g["params"]) for g in self.param_groups]
        if sizes != own:
            raise OptimizerStateError(f"{type(self).__name__}.load_state_dict: the state has groups of {sizes} "
                                      f"parameters, this optimizer has groups of {own}")
        params = {n: p for mine, theirs in zip(self.param_groups, groups)
                  for n, p in zip(theirs["params"], mine["params"])}
        restored = {}
        for number, values in state_dict["state"].items():
            param = params.get(number)
            if param is None:
                raise OptimizerStateError(f"{type(self).__name__}.load_state_dict: there is state for parameter "
                                          f"{number!r}, but the groups have {', '.join(map(str, params)) or 'none'}")
            for name, value in values.items():
                if isinstance(value, tp.Tensor) and name != "step" and value.shape != param.shape:
                    raise OptimizerStateError(f"{type(self).__name__}.load_state_dict: {name} of parameter {number} "
                                              f"has shape {list(value.shape)}, the parameter {list(param.shape)}")
            restored[param] = {name: _restored(name, value, param) for name, value in values.items()}
        for mine, theirs in zip(self.param_groups, groups):
            mine.update({k: v for k, v in theirs.items() if k != "params"})
        self.state = restored
        self._selected.clear()

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])


def _restored(name: str, value: Any, param: Tensor) -> Any:
    if name == "step":
        return int(value.item() if isinstance(value, tp.Tensor) else value)
    return value.detach().to(param.device, param.dtype).clone() if isinstance(value, tp.Tensor) else value


class Selection:
    """Parallel lists over the parameters of one step: params, grads, states, and per-state-name lists on demand."""

    __slots__ = ("params", "states", "grads", "lists")

    def __init__(self, params: list, states: list) -> None:
        self.params = params
        self.states = states
        self.grads: list = []
        self.lists: dict[str, list] = {}

    def of(self, name: str) -> list:
        """The state tensors of that name."""
        found = self.lists.get(name)
        if found is None:
            found = self.lists[name] = [state[name] for state in self.states]
        return found

    def by_step(self) -> list[tuple[int, Selection]]:
        """Count every step up and group the parameters by it: [(step, parameters)], usually a single group."""
        steps = set()
        for state in self.states:
            state["step"] += 1
            steps.add(state["step"])
        if len(steps) == 1:
            return [(steps.pop(), self)]
        parts = []
        for step in sorted(steps):
            places = [i for i, state in enumerate(self.states) if state["step"] == step]
            part = Selection([self.params[i] for i in places], [self.states[i] for i in places])
            part.grads = [self.grads[i] for i in places]
            parts.append((step, part))
        return parts


def number(value: Any) -> float:
    """A setting that may be a tensor, such as a learning rate."""
    return value.item() if isinstance(value, tp.Tensor) else value
