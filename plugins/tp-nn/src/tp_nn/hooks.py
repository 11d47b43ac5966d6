"""A module's hooks: functions called around forward and backward."""
from __future__ import annotations

from contextlib import suppress

import tensorplay as tp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Entry:
    """One registration; the same function may be registered twice."""

    __slots__ = ("function", "with_kwargs", "always_call")

    def __init__(self, function: Callable, with_kwargs: bool, always_call: bool) -> None:
        self.function = function
        self.with_kwargs = with_kwargs
        self.always_call = always_call

    def after_forward(self, module: Any, args: tuple, named: dict, output: Any) -> Any:
        if self.with_kwargs:
            return self.function(module, args, named, output)
        return self.function(module, args, output)


class Handle:
    """Takes a hook away again."""

    def __init__(self, hooks: list, entry: Entry) -> None:
        self.hooks = hooks
        self.entry = entry

    def remove(self) -> None:
        if self.entry in self.hooks:
            self.hooks.remove(self.entry)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class HookSet:
    """The hooks of one module, by kind."""

    def __init__(self) -> None:
        self.kinds: dict[str, list[Entry]] = {"forward_pre": [], "forward": [], "backward_pre": [], "backward": []}

    def add(self, kind: str, hook: Callable, prepend: bool, with_kwargs: bool, always_call: bool = False) -> Handle:
        entry = Entry(hook, with_kwargs, always_call)
        hooks = self.kinds[kind]
        hooks.insert(0 if prepend else len(hooks), entry)
        return Handle(hooks, entry)

    def call(self, module: Any, args: tuple, named: dict) -> Any:
        called: set = set()
        try:
            return self._call(module, args, named, called)
        except BaseException:
            for entry in list(self.kinds["forward"]):
                if entry.always_call and entry not in called:
                    with suppress(Exception):  # the first error is the one to report
                        entry.after_forward(module, args, named, None)
            raise

    def _call(self, module: Any, args: tuple, named: dict, called: set) -> Any:
        for entry in list(self.kinds["forward_pre"]):
            if entry.with_kwargs:
                result = entry.function(module, args, named)
                if result is not None:
                    args, named = result
                continue
            result = entry.function(module, args)
            if result is not None:
                args = result if isinstance(result, tuple) else (result,)
        backward = self.kinds["backward"] or self.kinds["backward_pre"]
        watch = BackwardWatch(self, module) if backward else None
        if watch is not None:
            args = watch.inputs(args)
        output = module.forward(*args, **named)
        for entry in list(self.kinds["forward"]):
            called.add(entry)
            result = entry.after_forward(module, args, named, output)
            if result is not None:
                output = result
        return output if watch is None else watch.outputs(output)


class BackwardWatch:
    """Collects the gradients at a module's borders: identity nodes around its inputs and outputs."""

    def __init__(self, hooks: HookSet, module: Any) -> None:
        self.hooks = hooks
        self.module = module
        self.grad_output: tuple = ()
        self.count = 0  # positional arguments, and which of them are tensors that gradients reach
        self.positions: list[int] = []

    def inputs(self, args: tuple) -> tuple:
        border = _border(self.leaving)
        positions = [i for i, a in enumerate(args) if isinstance(a, tp.Tensor)]
        self.count = len(args)
        if not any([args[i].requires_grad for i in positions]):
            return args
        self.positions = positions
        passed = border.apply(*[args[i] for i in positions])
        passed = passed if isinstance(passed, tuple) else (passed,)
        changed = list(args)
        for i, value in zip(positions, passed):
            changed[i] = value
        return tuple(changed)

    def outputs(self, output: Any) -> Any:
        single = isinstance(output, tp.Tensor)
        items = (output,) if single else output
        if not isinstance(items, tuple) or not any([isinstance(o, tp.Tensor) and o.requires_grad for o in items]):
            return output
        positions = [i for i, o in enumerate(items) if isinstance(o, tp.Tensor)]
        passed = _border(self.entering).apply(*[items[i] for i in positions])
        passed = passed if isinstance(passed, tuple) else (passed,)
        if single:
            return passed[0]
        changed = list(items)
        for i, value in zip(positions, passed):
            changed[i] = value
        return tuple(changed)

    def entering(self, grads: tuple) -> tuple:
        for entry in list(self.hooks.kinds["backward_pre"]):
            result = entry.function(self.module, grads)
            if result is not None:
                grads = result if isinstance(result, tuple) else (result,)
        self.grad_output = grads
        if not self.positions:  # no gradient will leave through an input, so this is the last chance
            self.leaving(())
        return grads

    def leaving(self, grads: tuple) -> tuple:
        shown: list = [None] * self.count
        for position, grad in zip(self.positions, grads):
            shown[position] = grad
        grad_input = tuple(shown)
        for entry in list(self.hooks.kinds["backward"]):
            result = entry.function(self.module, grad_input, self.grad_output)
            if result is not None:
                grad_input = result if isinstance(result, tuple) else (result,)
        return tuple([grad_input[position] for position in self.positions])


def _border(notice: Callable) -> Any:
    """An identity function of the graph that shows its gradients to `notice` and passes on what that returns."""
    from tensorplay.autograd import Function

    class Border(Function):
        @staticmethod
        def forward(ctx: Any, *tensors: Any) -> Any:
            passed = tuple([t.view_as(t) for t in tensors])
            return passed if len(passed) > 1 else passed[0]

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return notice(grads)

    return Border
