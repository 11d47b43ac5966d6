"""Op: one operator and all its rules; and the registry of operators.

An op is made with `tensorplay.library.op(schema)`, which returns the function that users call. The rules hang on that
function as decorators: meta, decomposition, vjp, jvp, vmap, lower, samples, kernel(device). A call ends in
`table[key set]`, filled by `_resolve.resolve` on the first call with a key set and cleared when a rule is registered.
"""
from __future__ import annotations

import os
import sys
from _thread import RLock

from ._errors import ArgumentError, ConflictError
from ._schema import Schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# What an op is; tags let core derive rules that all ops of a kind share.
ELEMENTWISE = "elementwise"          # out[i] depends on the operands' element i; operands broadcast
VIEW = "view"                        # the result shares the input's storage; meta returns (layout, offset change)
RETYPES = "retypes"                  # a view with another dtype: the offset counts elements of another size
FACTORY = "factory"                  # makes a tensor from no tensor; has dtype and device parameters
NONDIFFERENTIABLE = "nondifferentiable"  # its results never require grad
RANDOM = "random"                    # depends on a generator
DATA_DEPENDENT = "data_dependent"    # the result's shape depends on values; has no meta
PRIMITIVE = "primitive"              # one of the 96 that devices implement or derive

# How an elementwise op's operands get one dtype, and what its result has.
SAME = "same"        # promoted dtype in and out
FLOAT = "float"      # integers become the default floating point dtype
COMPARE = "compare"  # promoted dtype in, bool out


def held_over_fork(lock: Any) -> Any:
    """The lock, taken around every fork, so that no child is born with it held by a thread that it does not have."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock


lock = held_over_fork(RLock())  # registering and resolving exclude each other, so that no stale kernel enters a table
OPS: dict[str, Op] = {}
pending_kernels: dict[str, dict[str, Callable]] = {}  # op name -> device -> kernel, registered before the op was loaded


class Op:
    """One operator: its schema, rules and kernels, and `table`, from key sets to kernels."""

    __slots__ = ("name", "schema", "tags", "promotion", "doc", "call", "table", "kernels", "device_decompositions",
                 "rules", "key_kernels", "location", "elementwise", "__weakref__")

    def __init__(self, schema: str, tags: tuple, promotion: str, doc: str, location: tuple[str, int]) -> None:
        self.schema = Schema(schema)
        self.name = self.schema.name
        self.tags = frozenset(tags)
        self.elementwise = ELEMENTWISE in self.tags
        self.promotion = promotion
        self.doc = doc
        self.location = location
        self.table: dict[int, Callable] = {}            # key set -> kernel; a cache
        self.kernels: dict[str, Callable] = {}          # device type -> kernel(out, *args), or a fused native kernel
        self.device_decompositions: dict[str, Callable] = {}
        self.key_kernels: dict[int, Callable] = {}      # functionality key -> builder(op, keyset)
        self.rules: dict[str, Any] = {}                 # "meta", "decomposition", "vjp", ... -> function
        self.call: Callable = _uncallable

    def __repr__(self) -> str:
        return f"<op {self.schema.text}>"

    def set_rule(self, kind: str, rule: Any) -> Any:
        """Register a rule ("meta", "vjp", ...) and forget what calls were resolved to."""
        with lock:
            self.rules[kind] = rule
            self.table.clear()
        return rule

    def rule(self, kind: str) -> Any:
        """The rule of that kind, or None."""
        return self.rules.get(kind)

    def add_kernel(self, device: str, kernel: Callable) -> None:
        """Register a device's kernel and forget what calls were resolved to."""
        with lock:
            self.kernels[device] = kernel
            self.table.clear()

    def resolve(self, keyset: int) -> Callable:
        """The kernel for a key set that `table` does not have yet."""
        from ._resolve import resolve

        return resolve(self, keyset)


def _uncallable(*args: object, **named: object) -> None:
    raise ArgumentError("this operator is still being registered")


def make_op(schema: str, tags: tuple = (), promotion: str = SAME, doc: str = "", replace: bool = False,
            depth: int = 2) -> Callable:
    """Register an operator and return the function that calls it."""
    from ._calls import make_call

    frame = sys._getframe(depth)
    made = Op(schema, tags, promotion, doc, (frame.f_code.co_filename, frame.f_lineno))
    with lock:
        known = OPS.get(made.name)
        if known is not None and not replace and known.location != made.location:
            raise ConflictError(f"operator {made.name!r} is already registered at {known.location[0]}:"
                                f"{known.location[1]}; use another namespace ('mine::{made.name}') or replace=True")
        OPS[made.name] = made
        made.kernels.update(pending_kernels.get(made.name, ()))
        made.call = make_call(made)
    return _as_function(made, frame.f_globals.get("__name__", ""))


def _as_function(made: Op, module: str) -> Callable:
    call: Any = made.call
    call.op = made
    call.__name__ = call.__qualname__ = made.name.rpartition("::")[2]
    call.__module__ = module
    call.__doc__ = made.doc or made.schema.text
    for kind in ("meta", "decomposition", "jvp", "vmap", "lower", "samples"):
        setattr(call, kind, _decorator(made, kind))
    call.vjp = _vjp_decorator(made)
    call.kernel = _kernel_decorator(made)
    return call


def _decorator(made: Op, kind: str) -> Callable:
    def decorate(rule: Any) -> Any:
        return made.set_rule(kind, rule)

    return decorate


def _vjp_decorator(made: Op) -> Callable:
    """`@op.vjp` takes one formula for all inputs; `op.vjp(x=lambda grad, y: ..., y=...)` one for each input."""

    def vjp(rule: Any = None, **by_input: Callable) -> Any:
        if rule is None:
            names = [p.name for p in made.schema.parameters if p.is_tensor]
            unknown = [name for name in by_input if name not in names]
            if unknown:
                raise ArgumentError(f"{made.name}.vjp: no tensor argument {unknown[0]!r}; it has {', '.join(names)}")
            rule = by_input
        return made.set_rule("vjp", rule)

    return vjp


def _kernel_decorator(made: Op) -> Callable:
    def kernel(*devices: str) -> Callable:
        def decorate(function: Callable) -> Callable:
            for device in devices:
                made.add_kernel(device, function)
            return function

        return decorate

    return kernel


def register_kernels(device: str, kernels: dict[str, Callable]) -> None:
    """Give a device kernels by operator name, also for operators that are not loaded yet."""
    with lock:
        for name, kernel in kernels.items():
            pending_kernels.setdefault(name, {})[device] = kernel
            if name in OPS:
                OPS[name].add_kernel(device, kernel)


def clear_tables() -> None:
    """Forget every resolved kernel; after a device, a mode builder or a policy has changed."""
    with lock:
        for known in OPS.values():
            known.table.clear()
