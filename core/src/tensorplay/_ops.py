"""Where operator functions and methods come from: a generated index says which module of an operator set defines a
name; the module is imported when the name is first used, and its methods are bound to Tensor."""
from __future__ import annotations

from ._errors import MissingAttributeError, MissingPluginError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._op import Op

# Python's operators: the function, and whether the operands change places.
DUNDERS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder",
    "pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}
COMPARISONS = {"lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "eq": "eq", "ne": "ne"}
UNARY = {"neg": "neg", "abs": "abs", "invert": "bitwise_not"}

_sources: list[Any] = []  # index modules of operator sets: FUNCTIONS and METHODS map names to module names
_loaded = False


def sources() -> list[Any]:
    """The indexes of all operator sets; the in-tree one is known by name, the others come from entry points."""
    global _loaded
    if not _loaded:
        _loaded = True
        try:
            from tp_operators import _index
        except ImportError as error:
            if error.name not in ("tp_operators", "tp_operators._index"):
                raise
        else:
            _sources.append(_index)
    return _sources


def find_function(name: str, table: str = "FUNCTIONS") -> Callable | None:
    """The public function of that name (or of `tensorplay.nn.functional`: table NN_FUNCTIONS), or None."""
    for source in sources():
        module = getattr(source, table).get(name)
        if module is not None:
            return getattr(_import(module), name)
    return find_function(name, table) if load_plugin_sets() else None


def find_operator(name: str) -> Op | None:
    """The registered operator of that name. An index that has it among its OPERATORS says which module to load."""
    from ._op import OPS

    if name not in OPS:
        for source in sources():
            module = getattr(source, "OPERATORS", {}).get(name)
            if module is not None:
                _import(module)
                break
    return OPS.get(name)


def load_plugin_sets() -> bool:
    """Load the operator sets of other distributions (group `tensorplay.ops`), when a function's name is found nowhere
    else; then their methods are on Tensor too. Says whether there were new ones; those that fail are left out, and
    `tp doctor` shows why."""
    from ._plugins import operator_sets
    from ._tensor import Tensor

    new = operator_sets()
    _sources.extend(new)
    for source in new:
        install_methods(Tensor, source)
    return bool(new)


def method_names() -> list[str]:
    return [name for source in sources() for name in source.METHODS]


def bind_method(cls: type, name: str) -> None:
    """Set the method on the Tensor class, or say what is missing."""
    from ._tensor import Tensor

    for source in sources():
        entry = source.METHODS.get(name)
        if entry is not None:
            module, attribute = entry
            value = getattr(_import(module), attribute)
            if name.endswith("_") and not attribute.endswith("_"):
                from ._inplace import make_inplace

                value = make_inplace(value)
            setattr(Tensor, name, value)
            return
    if load_plugin_sets():
        return bind_method(cls, name)
    if not sources():
        raise MissingAttributeError(f"Tensor.{name} needs an operator library, and tp-operators is not installed: "
                                    f"pip install tp-operators")
    from difflib import get_close_matches

    close = get_close_matches(name, method_names() + dir(Tensor), 1)
    raise AttributeError(f"'{cls.__name__}' object has no attribute {name!r}" +
                         (f"; did you mean {close[0]!r}?" if close else ""))


def _import(module: str) -> Any:
    import sys

    __import__(module)  # waits while another thread is importing it
    return sys.modules[module]


_required: dict[str, Callable] = {}


def require(name: str) -> Callable:
    """The operator function that core itself needs, or the designed error."""
    found = _required.get(name)
    if found is None:
        found = find_function(name)
        if found is None:
            raise MissingPluginError(f"{name} is provided by tp-operators, which is not installed: "
                                     f"pip install tp-operators")
        _required[name] = found
    return found


class Unbound:
    """Stands on Tensor for a method whose module is not loaded yet; the first use puts the method in its place."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, cls: type) -> Any:
        bind_method(cls, self.name)
        return getattr(cls if instance is None else instance, self.name)


def install_placeholders(cls: type) -> None:
    """Give Tensor a placeholder for every operator method. Only without any operator library does it get a
    `__getattr__`, which says what is missing: one would slow every attribute read down."""
    for source in sources():
        install_methods(cls, source)
    if not _sources:
        def missing(self: Any, name: str) -> Any:
            if name[:2] != "__":
                bind_method(type(self), name)
            raise AttributeError(f"'Tensor' object has no attribute {name!r}")

        cls.__getattr__ = missing  # type: ignore[attr-defined]
    for dunder, name in {**DUNDERS, **COMPARISONS, **UNARY}.items():
        _placeholder(cls, f"__{dunder}__", name, "plain")
    for dunder, name in DUNDERS.items():
        _placeholder(cls, f"__r{dunder}__", name, "reflected")
        _placeholder(cls, f"__i{dunder}__", name, "inplace")


def install_methods(cls: type, source: Any) -> None:
    for name in source.METHODS:
        if name not in cls.__dict__:
            setattr(cls, name, Unbound(name))


def _placeholder(cls: type, dunder: str, name: str, kind: str) -> None:
    def first_use(self: Any, *other: Any) -> Any:
        function = require(name)
        setattr(cls, dunder, _operator(dunder, function, kind))
        return getattr(cls, dunder)(self, *other)

    setattr(cls, dunder, first_use)


def _operator(dunder: str, function: Callable, kind: str) -> Callable:
    if kind == "reflected":
        return lambda self, other: function(other, self)  # noqa: E731
    if kind == "inplace":
        from ._inplace import make_inplace

        return make_inplace(function)
    if dunder in ("__eq__", "__ne__"):
        from ._tensor import Tensor

        function = function.op.call if hasattr(function, "op") else function

        def compare(self: Any, other: Any) -> Any:
            if isinstance(other, (Tensor, int, float, complex)) or getattr(other, "ndim", None) == 0:
                return function(self, other)
            return NotImplemented

        return compare
    return function.op.call if hasattr(function, "op") else function  # the operator itself: no frame in between
