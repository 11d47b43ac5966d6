"""Why a call runs what it runs: every link of the chain that `_resolve.device_kernel` follows, with file and line."""
from __future__ import annotations

from . import _device, _fallback, _ops, _resolve
from ._errors import ArgumentError, TensorPlayError
from ._modes import DispatchMode
from ._op import OPS, VIEW, Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_SYMBOLS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "//": "floor_divide", "%": "remainder", "**": "pow",
            "@": "matmul", "&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor", "<": "lt", "<=": "le", ">": "gt",
            ">=": "ge", "==": "eq", "!=": "ne", "UNARY_NEGATIVE": "neg", "UNARY_INVERT": "bitwise_not",
            "BINARY_ADD": "add", "BINARY_SUBTRACT": "sub", "BINARY_MULTIPLY": "mul", "BINARY_TRUE_DIVIDE": "div",
            "BINARY_FLOOR_DIVIDE": "floor_divide", "BINARY_MODULO": "remainder", "BINARY_POWER": "pow",
            "BINARY_MATRIX_MULTIPLY": "matmul", "BINARY_AND": "bitwise_and", "BINARY_OR": "bitwise_or"}


class Chain:
    """The links for one operator on one device: (what, where or "", note), and the index of the one that runs."""

    def __init__(self, op: Op, device: str) -> None:
        self.op = op
        self.device = device
        self.links: list[tuple[str, str, str]] = []
        self.taken: int | None = None
        self.runs: Any = None  # the function of the link that runs

    def add(self, what: str, function: Any, note: str = "", taken: bool = True) -> None:
        if function is not None and taken and self.taken is None:
            self.taken, self.runs = len(self.links), function
        self.links.append((what, "" if function is None else location(function), note))

    @property
    def outcome(self) -> str:
        return "missing" if self.taken is None else self.links[self.taken][0]

    def __str__(self) -> str:
        lines = [self.op.schema.text, f"  defined at {short_path(*self.op.location)}" + _rules(self.op),
                 f"  on device {self.device!r}{_provider(self.device)}:"]
        width = max([len(where) for _, where, _ in self.links] + [4])
        for i, (what, where, note) in enumerate(self.links):
            mark = "  <- runs" if i == self.taken else ""
            lines.append(f"    {i + 1}. {what:24} {where or 'none':{width}}  {note}{mark}".rstrip())
            if i == self.taken and what.endswith("decomposition"):
                lines += [f"         {text}" for text in _called(self)]
        if self.taken is None:
            lines.append(f"    {len(self.links) + 1}. {'error':24} {self.op.name} cannot run here")
        vjp = self.op.rule("vjp")
        if vjp is not None:
            places = list(vjp.values()) if isinstance(vjp, dict) else [vjp]
            lines.append(f"  gradient: vjp at {', '.join(dict.fromkeys(map(location, places)))}")
        return "\n".join(lines)


def chain(op: Op, device: str) -> Chain:
    """What `op` goes through on a device. Raises DeviceUnavailable or PluginError if there is no such device."""
    found = Chain(op, device)
    driver = _device._drivers.get(device) or _device.load_driver(device)
    if VIEW in op.tags:
        found.add("view of the same memory", op.rule("meta"), "layout from meta")
        return found
    kernel = _resolve.registered_kernel(op, device, driver)
    fused = getattr(kernel, "fuse", None) is not None
    found.add("fused kernel", kernel if fused else None, "switched off by TP_GENERIC" if fused and _resolve.GENERIC
              else "", not _resolve.GENERIC)
    generic = kernel is not None and (not fused or _resolve.GENERIC)
    found.add("kernel", kernel if generic else None, "after meta and allocation" if generic else "")
    found.add("device's decomposition", _resolve.device_decomposition(op, device, driver))
    found.add("common decomposition", op.rule("decomposition"))
    if device not in ("cpu", "meta"):
        policy = _fallback.policy()
        calls = _fallback.counts.get((op.name, device), 0)
        found.add("host fallback", _on_cpu(op), f"TP_FALLBACK={policy}, {calls} calls so far", policy != "error")
    return found


def _on_cpu(op: Op) -> Any:
    try:
        return _resolve.find(op, _device.key_bit("cpu"))
    except TensorPlayError:
        return None


def _rules(op: Op) -> str:
    return "".join([f"; {', '.join(sorted(names))}" for names in (op.tags, set(op.rules)) if names])


def _provider(device: str) -> str:
    driver = _device._drivers.get(device)
    return f" ({type(driver).__module__}.{type(driver).__qualname__})" if driver is not None else ""


def _called(parent: Chain) -> Iterator[str]:
    """One line for each operator that a decomposition's code names, with what it comes down to."""
    for op in called_ops(parent.runs):
        if op is not parent.op:
            child = chain(op, parent.device)
            where = "" if child.taken is None else child.links[child.taken][1]
            yield f"{op.name:22} {child.outcome:24} {where}".rstrip()


def called_ops(function: Any) -> list[Op]:
    """The operators that a function's code names, in order: calls, methods and Python's operators."""
    import dis

    names: dict[str, None] = {}
    pending = [getattr(function, "__code__", None)]
    while pending:
        code = pending.pop()
        for step in dis.get_instructions(code) if code is not None else ():
            if step.opname in ("LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD"):
                names[step.argval] = None
            elif hasattr(step.argval, "co_code"):
                pending.append(step.argval)
            elif step.opname in _SYMBOLS:  # Python 3.10
                names[_SYMBOLS[step.opname]] = None
            elif step.opname in ("BINARY_OP", "COMPARE_OP") and step.argrepr in _SYMBOLS:
                names[_SYMBOLS[step.argrepr]] = None
    variables = getattr(function, "__globals__", {})
    found = [getattr(variables.get(name), "op", None) or _operator(name) for name in names]
    return list(dict.fromkeys([op for op in found if isinstance(op, Op)]))


def _operator(name: str) -> Op | None:
    try:
        return getattr(_ops.find_function(name), "op", None) or _ops.find_operator(name)
    except (TensorPlayError, ImportError, AttributeError):
        return None


def find_op(name: str) -> Op:
    """The operator of that name, its module loaded; ArgumentError names close matches."""
    found = _operator(name)
    if found is None:
        from difflib import get_close_matches

        known = {*OPS, *[n for s in _ops.sources() for n in (*s.FUNCTIONS, *getattr(s, "OPERATORS", ()))]}
        close = get_close_matches(name, sorted(known), 3)
        function = _ops.find_function(name) if name.isidentifier() else None
        hint = f"; it is a function at {location(function)}, not one operator" if function is not None else \
            f"; did you mean {' or '.join(map(repr, close))}?" if close else "; `tp ops` lists them" if _ops.sources() \
            else "; operators are provided by tp-operators, which is not installed: pip install tp-operators"
        raise ArgumentError(f"there is no operator {name!r}{hint}")
    return found


def location(function: Any) -> str:
    """`package/file.py:line` of a Python function; the name of a native one."""
    given = getattr(function, "location", None)
    if isinstance(given, str):
        return given
    while hasattr(function, "__wrapped__") or hasattr(function, "func"):
        function = getattr(function, "__wrapped__", None) or function.func
    code = getattr(function, "__code__", None) or getattr(vars(type(function)).get("__call__"), "__code__", None)
    if code is None:
        module = getattr(function, "__module__", None) or type(function).__module__
        return f"{module}.{getattr(function, '__qualname__', type(function).__qualname__)} (native)"
    return short_path(code.co_filename, code.co_firstlineno)


def short_path(file: str, line: int) -> str:
    """Files of TensorPlay's packages begin at the package; a user's file keeps its whole path."""
    import os

    folder = os.path.dirname(file)
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder = os.path.dirname(folder)
    inside = os.path.relpath(file, folder) if folder and os.path.dirname(file) != folder else file
    return f"{inside}:{line}"


class Explanation:
    """What ran: `chains` in order of first use, `counts` of each, and the call's `result`. Prints as text."""

    def __init__(self, chains: list[Chain], counts: list[int], result: Any = None) -> None:
        self.chains = chains
        self.counts = counts
        self.result = result

    def __repr__(self) -> str:
        if not self.chains:
            return "no operator ran"
        return "\n\n".join([(f"{count} x " if count > 1 else "") + str(one)
                            for one, count in zip(self.chains, self.counts)])


class _Recorder(DispatchMode):
    def __init__(self) -> None:
        self.calls: dict[tuple[Op, str], int] = {}

    def __tensorplay_dispatch__(self, op: Op, args: tuple) -> Any:
        flat = [one for arg in args for one in (arg if isinstance(arg, (list, tuple)) else (arg,))]
        device = next((one.device for one in flat if hasattr(one, "layout")), None) or \
            next((one for one in flat if isinstance(one, _device.Device)), None)
        if device is not None:
            self.calls[op, device.type] = self.calls.get((op, device.type), 0) + 1
        return op.call(*args)


def explain(function: Callable | str, *args: Any, device: Any = None, **named: Any) -> Explanation:
    """What a call runs, operator by operator: `print(tp.explain(f, x, y))`. It is really called, backward included.

    An operator or its name without arguments, `tp.explain("gelu", device="refdev")`, is explained without a call.
    """
    if isinstance(function, str) or (hasattr(function, "op") and not args and not named):
        op = find_op(function) if isinstance(function, str) else function.op
        return Explanation([chain(op, _device.as_device(device).type)], [1])
    if device is not None:
        named["device"] = device
    with _Recorder() as recorder:
        result = function(*args, **named)
    return Explanation([chain(op, kind) for op, kind in recorder.calls], list(recorder.calls.values()), result)


def load_all() -> list[str]:
    """Import every operator module; returns what could not be imported."""
    failed = []
    for source in _ops.sources():
        for module in sorted({*source.FUNCTIONS.values(), *getattr(source, "OPERATORS", {}).values()}):
            try:
                __import__(module)
            except Exception as error:
                failed.append(f"{module}: {type(error).__name__}: {error}")
    return failed


def coverage(device: str) -> str:
    """How a device runs the operators that are loaded, in one line."""
    outcomes = {op.name: chain(op, device).outcome for op in list(OPS.values())}
    kinds = list(outcomes.values())
    own = kinds.count("fused kernel") + kinds.count("kernel")
    host = kinds.count("host fallback")
    missing = [name for name, kind in outcomes.items() if kind == "missing"]
    return (f"{own} kernels, {len(kinds) - own - host - len(missing)} derived, {host} on the host, {len(missing)} "
            f"missing of {len(kinds)}" + (f": {', '.join(missing[:8])}" if missing else "")
            + (", ..." if len(missing) > 8 else ""))
