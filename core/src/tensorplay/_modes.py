"""Grad modes, user modes and Tensor subclasses: everything that adds a bit to a call's key set."""
from __future__ import annotations

from contextvars import ContextVar

from ._keys import AUTOGRAD, INFERENCE, MODE, NO_GRAD, SUBCLASS, TRACE, mode_mask, modes
from ._op import Op
from ._resolve import register_builder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class _Switch:
    """A context manager and decorator that changes bits of the mode mask."""

    add = 0
    remove = 0

    def __init__(self) -> None:
        self.previous: list[int] = []

    def __enter__(self) -> Any:
        self.previous.append(modes())
        mode_mask.set((modes() | self.add) & ~self.remove)
        return self

    def __exit__(self, *exc: object) -> None:
        mode_mask.set(self.previous.pop())

    def __call__(self, function: Callable) -> Callable:
        from functools import wraps
        from inspect import isgeneratorfunction

        add, remove = self.add, self.remove

        def fresh() -> _Switch:
            switch = _Switch()
            switch.add, switch.remove = add, remove
            return switch

        if isgeneratorfunction(function):
            @wraps(function)
            def wrapped(*args: Any, **named: Any) -> Any:
                generator = function(*args, **named)
                step, arguments = generator.send, (None,)
                while True:
                    try:
                        with fresh():  # only while the generator itself runs, not while it waits
                            value = step(*arguments)
                    except StopIteration as stop:
                        return stop.value
                    try:
                        step, arguments = generator.send, ((yield value),)
                    except GeneratorExit:
                        with fresh():
                            generator.close()
                        raise
                    except BaseException as problem:
                        step, arguments = generator.throw, (problem,)
        else:
            @wraps(function)
            def wrapped(*args: Any, **named: Any) -> Any:
                with fresh():
                    return function(*args, **named)
        return wrapped


class no_grad(_Switch):
    """`with tp.no_grad():` or `@tp.no_grad()`: operations are not recorded.

    >>> import tensorplay as tp
    >>> with tp.no_grad():
    ...     tp.is_grad_enabled()
    False
    """

    add = NO_GRAD

    def __new__(cls, function: Callable | None = None) -> Any:
        made = object.__new__(cls)
        if function is not None:  # @tp.no_grad without brackets
            made.__init__()
            return made(function)
        return made


class enable_grad(no_grad):
    """`with tp.enable_grad():` records again inside `no_grad`."""

    add = 0
    remove = NO_GRAD | INFERENCE


class inference_mode(_Switch):
    """`with tp.inference_mode():` no recording, for good: `enable_grad` inside is for the next block only."""

    def __new__(cls, mode: Any = True) -> Any:
        return cls()(mode) if callable(mode) else object.__new__(cls)  # @tp.inference_mode without brackets

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.add = NO_GRAD | INFERENCE if mode else 0
        self.remove = 0 if mode else NO_GRAD | INFERENCE


class set_grad_enabled(_Switch):
    """`tp.set_grad_enabled(flag)`, at once or as a context manager."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.previous.append(modes())
        self.add, self.remove = (0, NO_GRAD) if mode else (NO_GRAD, 0)
        mode_mask.set((modes() | self.add) & ~self.remove)

    def __enter__(self) -> Any:
        mode_mask.set((modes() | self.add) & ~self.remove)
        return self

    def __call__(self, function: Callable) -> Callable:
        if self.previous:
            mode_mask.set(self.previous.pop())  # as a decorator it changes the calls, not what follows
        return super().__call__(function)


def is_grad_enabled() -> bool:
    """Whether operations are recorded for gradients here."""
    return not modes() & NO_GRAD


def is_inference_mode_enabled() -> bool:
    """Whether `inference_mode` is on here."""
    return modes() & INFERENCE != 0


_stack: ContextVar[tuple] = ContextVar("tensorplay_mode_stack", default=())


class DispatchMode:
    """Sees every operator call inside its `with` block.

    Override `__tensorplay_dispatch__(op, args)`; `op.call(*args)` inside it goes on to the next mode or the device.
    With `below_autograd = True` (a tracer) it sees what really runs, backward included; with False, what was called.

    >>> import tensorplay as tp
    >>> class Count(tp.DispatchMode):
    ...     calls = 0
    ...     def __tensorplay_dispatch__(self, op, args):
    ...         self.calls += 1
    ...         return op.call(*args)
    >>> with Count() as count:
    ...     _ = tp.ones(2) + tp.ones(2)
    >>> count.calls >= 1
    True
    """

    below_autograd = True

    def __tensorplay_dispatch__(self, op: Op, args: tuple) -> Any:
        return op.call(*args)

    def __enter__(self) -> Any:
        _stack.set((*_stack.get(), self))
        mode_mask.set(modes() | (TRACE if self.below_autograd else MODE))
        return self

    def __exit__(self, *exc: object) -> None:
        _stack.set(_without(_stack.get(), self))
        mode_mask.set(modes() & ~(TRACE | MODE) | _bits(_stack.get()))


def _without(stack: tuple, mode: Any) -> tuple:
    """The stack without the innermost entry of `mode`, which may have been entered twice."""
    for i in range(len(stack) - 1, -1, -1):
        if stack[i] is mode:
            return stack[:i] + stack[i + 1:]
    return stack


def _bits(stack: tuple) -> int:
    bits = 0
    for mode in stack:
        bits |= TRACE if mode.below_autograd else MODE
    return bits


def _mode_builder(key: int) -> Callable:
    below = key == TRACE

    def build(op: Op, keyset: int) -> Callable:
        def kernel(*args: Any) -> Any:
            stack = _stack.get()
            mode = next((m for m in reversed(stack) if m.below_autograd == below), None)
            rest = _without(stack, mode)
            mask = modes()
            _stack.set(rest)
            mode_mask.set(mask & ~(TRACE | MODE) | _bits(rest) | (NO_GRAD if below else 0))
            try:
                return op.call(*args) if mode is None else mode.__tensorplay_dispatch__(op, args)
            finally:
                _stack.set(stack)
                mode_mask.set(mask)

        return kernel

    return build


def subclass_defined(cls: type) -> None:
    """A subclass takes part in dispatch only if it says how: `__tensorplay_function__(cls, function, types, args)`."""
    from ._tensor import subclass_keys

    subclass_keys[cls] = SUBCLASS if hasattr(cls, "__tensorplay_function__") else 0


def _subclass_builder(op: Op, keyset: int) -> Callable:
    def kernel(*args: Any) -> Any:
        from ._tensor import Tensor

        flat = [t for arg in args for t in (arg if arg.__class__ in (list, tuple) else (arg,)) if isinstance(t, Tensor)]
        types = tuple(dict.fromkeys([type(t) for t in flat if type(t) is not Tensor]))
        for cls in sorted(types, key=lambda c: -len(c.__mro__)):
            handler = getattr(cls, "__tensorplay_function__", None)
            if handler is not None:
                result = handler(op.call, types, args)
                if result is not NotImplemented:
                    return result
        from ._errors import NotSupported

        raise NotSupported(f"{op.name}: no __tensorplay_function__ of {', '.join([c.__name__ for c in types])} "
                           f"handles this operator")

    return kernel


register_builder(TRACE, _mode_builder(TRACE))
register_builder(MODE, _mode_builder(MODE))
register_builder(SUBCLASS, _subclass_builder)

__all__ = ["AUTOGRAD", "DispatchMode", "enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]
