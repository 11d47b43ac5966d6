"""Anomaly mode: every node remembers the line that made it, and a NaN in a gradient is an error that names the line."""
from __future__ import annotations

from contextvars import ContextVar

from tensorplay.library import NO_GRAD, AutogradError, Tensor, mask_bits, user_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._node import Node

_mode: ContextVar[tuple] = ContextVar("tensorplay_anomaly", default=(False, True))  # on, check for NaN


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on here."""
    return _mode.get()[0]


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode looks for NaN in gradients."""
    return _mode.get()[1]


class set_detect_anomaly:
    """`set_detect_anomaly(True)`, at once or as a context manager."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.previous = _mode.get()
        _switch((bool(mode), bool(check_nan)))

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _switch(self.previous)


class detect_anomaly:
    """`with tp.autograd.detect_anomaly():` around forward and backward. A NaN in a gradient raises AutogradError with
    the line of the forward pass whose gradient it is. Slow: for finding mistakes.

    >>> import tensorplay as tp
    >>> x = tp.zeros(1, requires_grad=True)
    >>> with tp.autograd.detect_anomaly():
    ...     y = (x.sqrt() * 0).sum()
    ...     y.backward()
    Traceback (most recent call last):
        ...
    tensorplay._errors.AutogradError: SqrtBackward0 ...
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan

    def __enter__(self) -> None:
        self.previous = _mode.get()
        _switch((True, self.check_nan))

    def __exit__(self, *exc: object) -> None:
        _switch(self.previous)


def _switch(mode: tuple) -> None:
    from ._record import watch

    watch(mode[0] - _mode.get()[0])
    _mode.set(mode)


def remember_line(node: Node, extra_of: Callable) -> None:
    if is_anomaly_enabled():
        from sys import _getframe
        from traceback import extract_stack

        extra = extra_of(node)
        extra.line = user_line()
        extra.trace = extract_stack(_getframe(2))


def check_finite(node: Node, results: Any, gradient: Any) -> None:
    """Raise at the first node whose gradients have a NaN: later ones merely pass it on."""
    if not is_anomaly_check_nan_enabled():
        return
    for number, result in enumerate(results):
        if isinstance(result, Tensor) and has_nan(result):
            line = node.extra.line if node.extra is not None else None
            where = f"it was recorded at {line}" if line else \
                "its forward line is unknown: run the forward pass inside detect_anomaly() too"
            error = AutogradError(f"{node.recipe.name} returned NaN as the gradient of its input {number}; {where}")
            if line and hasattr(error, "add_note"):
                error.add_note("The forward pass was here:\n" + "".join(node.extra.trace.format()))
            raise error


def has_nan(tensor: Tensor) -> bool:
    if tensor.layout.numel == 0 or tensor.layout.device.type == "meta" or tensor.layout.dtype.category < 2:
        return False
    with mask_bits(add=NO_GRAD):
        return bool((tensor != tensor).any().item())
