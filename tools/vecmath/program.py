"""Straight-line programs over scalars: what a vector math function is, independent of any language.

A function is a graph of ``Value`` nodes built by ordinary Python expressions. Renderers walk the graph (``cpp.py``
writes C++); ``evaluate`` runs it with NumPy, one rounding per operation, which is what a machine without fused
multiply-add does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

NUMPY = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64,
         "b": np.bool_}


class Value:
    """One operation: ``op`` over ``args``; ``detail`` holds a constant, a parameter's index or a callee's name."""

    __slots__ = ("op", "type", "args", "detail")

    def __init__(self, op: str, type: str, args: tuple[Value, ...] = (), detail: object = None) -> None:
        self.op, self.type, self.args, self.detail = op, type, args, detail

    def _with(self, op: str, other: object, type: str | None = None, swap: bool = False) -> Value:
        other = other if isinstance(other, Value) else constant(self.type, other)
        assert other.type == self.type, (op, self.type, other.type)
        return Value(op, type or self.type, (other, self) if swap else (self, other))

    def __add__(self, other): return self._with("add", other)
    def __radd__(self, other): return self._with("add", other, swap=True)
    def __sub__(self, other): return self._with("sub", other)
    def __rsub__(self, other): return self._with("sub", other, swap=True)
    def __mul__(self, other): return self._with("mul", other)
    def __rmul__(self, other): return self._with("mul", other, swap=True)
    def __truediv__(self, other): return self._with("div", other)
    def __rtruediv__(self, other): return self._with("div", other, swap=True)
    def __lt__(self, other): return self._with("lt", other, "b")
    def __gt__(self, other): return self._with("gt", other, "b")
    def __and__(self, other): return self._with("and", other)
    def __or__(self, other): return self._with("or", other)
    def __xor__(self, other): return self._with("xor", other)

    def __lshift__(self, count: int) -> Value: return Value("shl", self.type, (self,), count)
    def __rshift__(self, count: int) -> Value: return Value("shr", self.type, (self,), count)
    def __neg__(self) -> Value: return Value("neg", self.type, (self,))

    def sqrt(self) -> Value: return Value("sqrt", self.type, (self,))
    def equals(self, other: object) -> Value: return self._with("eq", other, "b")


@dataclass(frozen=True)
class Function:
    name: str
    doc: str
    parameters: tuple[str, ...]  # types
    result: Value
    type: str


def constant(type: str, value: object) -> Value:
    return Value("constant", type, (), NUMPY[type](value))


def bits(value: Value, type: str) -> Value:
    """The same bits read as another type of the same size."""
    return Value("bits", type, (value,))


def convert(value: Value, type: str) -> Value:
    """The same number in another type (float to int truncates)."""
    return Value("convert", type, (value,))


def select(condition: Value, yes: Value, no: Value | float) -> Value:
    no = no if isinstance(no, Value) else constant(yes.type, no)
    return Value("select", yes.type, (condition, yes, no))


def call(function: Function, *args: Value) -> Value:
    return Value("call", function.type, args, function)


def define(name: str, doc: str, build: Callable[..., Value], *parameters: str) -> Function:
    args = tuple(Value("parameter", type, (), i) for i, type in enumerate(parameters))
    result = build(*args)
    return Function(name, doc, parameters, result, result.type)


def polynomial(x: Value, coefficients: list[float]) -> Value:
    """Horner's rule, lowest coefficient first."""
    result = constant(x.type, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = result * x + coefficient
    return result


def absolute(x: Value) -> Value:
    return bits(bits(x, "u32") & 0x7FFFFFFF, "f32")


def sign_bit(x: Value) -> Value:
    return bits(x, "u32") & 0x80000000


_BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "lt": np.less, "gt": np.greater,
           "eq": np.equal, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


def evaluate(function: Function, *args: np.ndarray) -> np.ndarray:
    """The function over arrays, every operation rounded on its own."""
    known: dict[int, np.ndarray] = {}

    def compute(value: Value) -> np.ndarray:
        if id(value) not in known:
            known[id(value)] = _apply(value, [compute(arg) for arg in value.args], args)
        return known[id(value)]

    with np.errstate(all="ignore"):
        return compute(function.result)


def _apply(value: Value, operands: list[np.ndarray], args: tuple[np.ndarray, ...]) -> np.ndarray:
    kind = NUMPY[value.type]
    if value.op == "constant":
        return value.detail
    if value.op == "parameter":
        return args[value.detail]
    if value.op in _BINARY:
        return _BINARY[value.op](*operands)
    if value.op == "shl":
        return np.left_shift(operands[0], kind(value.detail))
    if value.op == "shr":
        return np.right_shift(operands[0], kind(value.detail))
    if value.op == "sqrt":
        return np.sqrt(operands[0])
    if value.op == "neg":
        return np.negative(operands[0])
    if value.op == "bits":
        return np.asarray(operands[0]).view(kind)
    if value.op == "convert":
        return np.asarray(operands[0]).astype(kind)
    if value.op == "select":
        return np.where(*operands)
    if value.op == "call":
        return evaluate(value.detail, *operands)
    raise ValueError(value.op)
