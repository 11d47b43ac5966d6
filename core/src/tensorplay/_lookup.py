"""Attributes of `tensorplay` that are not there yet: core's lazy names, operators, namespaces; or what to install."""
from __future__ import annotations

import sys

from . import _namespaces, _ops
from ._errors import MissingAttributeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def find(name: str) -> Any:
    """The value of `tensorplay.<name>`; AttributeError or MissingAttributeError with the next step."""
    root: Any = sys.modules["tensorplay"]
    if name in root._LAZY:
        module = __import__(f"tensorplay.{root._LAZY[name]}", fromlist=[name])
        return getattr(module, name)
    if name == "library":
        return __import__("tensorplay.library", fromlist=["_"])
    if name in _namespaces.IN_TREE:
        return _namespaces.attribute(name)
    if name[:1] == "_":  # `from . import _module` asks first
        raise AttributeError(name)
    function = _ops.find_function(name)
    if function is not None:
        return function
    if name == "ops":
        return OperatorNamespace("")
    if _namespaces.provides(name):  # last, since it may read the metadata of everything installed
        return _namespaces.attribute(name)
    raise _unknown(name)


def _unknown(name: str) -> AttributeError:
    if not _ops.sources():
        return MissingAttributeError(f"tensorplay.{name}: operators are provided by tp-operators, which is not "
                                     f"installed: pip install tp-operators")
    from difflib import get_close_matches

    close = get_close_matches(name, names(), 1)
    return AttributeError(f"module 'tensorplay' has no attribute {name!r}" +
                          (f"; did you mean {close[0]!r}?" if close else ""))


def names() -> list[str]:
    root: Any = sys.modules["tensorplay"]
    return [*root._LAZY, *[name for source in _ops.sources() for name in source.FUNCTIONS], "library", "ops"]


class OperatorNamespace:
    """`tp.ops.mine.double` calls the registered operator `mine::double`; `tp.ops.add` calls `add`."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        from ._op import OPS

        full = f"{self._prefix}{name}"
        op = _ops.find_operator(full)
        if op is None and not self._prefix:
            _ops.find_function(name)  # of an operator set whose index lists functions only
            op = OPS.get(full)
        if op is not None:
            return op.call
        if not self._prefix and any([known.startswith(f"{name}::") for known in OPS]):
            return OperatorNamespace(f"{name}::")
        raise AttributeError(f"no operator {full!r} is registered")
