"""Designed errors: a class, the offending operands, the next step, and where in the user's program it happened.

An error carries `modules` (the path of nn modules it passed through, innermost last) and `where` (the first line
outside TensorPlay); `str(error)` shows both after the message.
"""
from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OWN_PACKAGES = ("tensorplay.", "tp_", "importlib.", "_frozen_importlib", "contextlib")  # they call us back


def user_frame(depth: int = 1) -> Any:
    """The nearest caller that is not part of TensorPlay, or None."""
    frame: Any = sys._getframe(depth + 1)
    while frame is not None:
        name = frame.f_globals.get("__name__") or ""
        if name != "tensorplay" and not name.startswith(OWN_PACKAGES):
            return frame
        frame = frame.f_back
    return None


def user_line() -> str | None:
    """The `file:line` of the nearest caller that is not part of TensorPlay."""
    frame = user_frame()
    return frame and f"{frame.f_code.co_filename.rsplit('/', 1)[-1]}:{frame.f_lineno}"


class TensorPlayError(Exception):
    """Base of every error that TensorPlay designs."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.modules: list[str] = []
        self.where = user_line()

    def __str__(self) -> str:
        places = []
        if self.modules:
            places.append("module " + ".".join(reversed(self.modules)))
        if self.where:
            places.append(self.where)
        return f"{self.message} ({', '.join(places)})" if places else self.message


class ShapeError(TensorPlayError, RuntimeError, ValueError):
    """Shapes that do not go together."""


class DTypeError(TensorPlayError, RuntimeError, TypeError):
    """A dtype that the operation does not take."""


class DeviceError(TensorPlayError, RuntimeError):
    """Operands on different devices, or a device that does not do this."""


class DeviceUnavailable(DeviceError):
    """The device exists as a plugin (or is a known name) but cannot be used; says why and what to do."""


class ArgumentError(TensorPlayError, TypeError):
    """A missing, unknown or wrongly typed argument."""


class ValueRangeError(TensorPlayError, ValueError, RuntimeError):
    """An argument of the right type with a value that makes no sense."""


class DivisionByZeroError(ValueRangeError, ZeroDivisionError):
    """Integer division or remainder by zero."""


class DimError(TensorPlayError, IndexError):
    """A dimension outside the tensor's."""


class IndexRangeError(TensorPlayError, IndexError):
    """An index outside the indexed dimension."""


class MemoryLimitError(TensorPlayError, RuntimeError, MemoryError):
    """More memory than there is."""


class NotSupported(TensorPlayError, NotImplementedError):
    """No kernel, decomposition or formula for this; says what is missing."""


class AutogradError(TensorPlayError, RuntimeError):
    """Misuse of gradients: no graph, freed graph, changed saved tensor, in-place on a leaf."""


class PluginError(TensorPlayError):
    """A plugin that is missing, refused or failed."""


class MissingPluginError(PluginError):
    """A distribution that provides this is not installed."""


class MissingModuleError(MissingPluginError, ModuleNotFoundError):
    """The same, for an import; no class can be an ImportError and an AttributeError at once."""


class MissingAttributeError(MissingPluginError, AttributeError):
    """The same, for an attribute, so that `hasattr` answers False."""


class ConflictError(PluginError):
    """Two distributions provide the same name."""


def shape_text(shape: tuple) -> str:
    """A shape as errors write it: `[8, 64]`."""
    return "[" + ", ".join(map(str, shape)) + "]"
