"""The operands of elementwise operators: which dtypes an operator takes, and in which dtype its default computes."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import DTypeError, NotSupported, Tensor, compute_dtype, elementwise_meta

from .creation import full_op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

BOOL, INTEGER, FLOATING, COMPLEX = range(4)  # DType.category
KINDS = ("bool", "integer", "floating point", "complex")


def accept(function: Any, lowest: int = BOOL, highest: int = COMPLEX) -> None:
    """Make an elementwise operator refuse operands of other kinds, by name: in its meta, and before its default."""
    op = function.op
    base = elementwise_meta(op)

    def check(args: tuple) -> None:
        kind = compute_dtype(op, args).category
        if not lowest <= kind <= highest:
            taken = " or ".join(KINDS[lowest:highest + 1])
            found = ", ".join([f"{p.name} is {a.dtype.name}" for p, a in zip(op.schema.parameters, args)
                               if p.is_tensor and hasattr(a, "dtype")])
            raise DTypeError(f"{op.name}: takes {taken} operands, but {found}; {_advice(kind, lowest, highest)}")

    def meta(*args: Any) -> Any:
        check(args)
        return base(*args)

    def checked(formula: Callable) -> Callable:
        def decomposition(*args: Any) -> Any:
            check(args)
            return formula(*args)

        decomposition.__wrapped__ = formula  # type: ignore[attr-defined]
        return decomposition

    function.meta(meta)
    register = function.decomposition
    if "decomposition" in op.rules:
        register(checked(op.rules["decomposition"]))
    function.decomposition = lambda formula: register(checked(formula))


def _advice(kind: int, lowest: int, highest: int) -> str:
    if lowest >= FLOATING:
        return "convert with .float()"
    if kind == COMPLEX:
        return "work on .real and .imag"
    return "convert with .long()" if highest == INTEGER else "convert with .int()"


def operands(op: Any, args: tuple) -> tuple[list, Any]:
    """The arguments with every operand a tensor of the dtype in which the operator computes, and that dtype."""
    dtype = compute_dtype(op, args)
    device = next(a for a in args if isinstance(a, Tensor)).layout.device
    values = []
    for parameter, value in zip(op.schema.parameters, args):
        if parameter.type == "Operand" and value is not None:
            value = value.to(dtype) if isinstance(value, Tensor) else full_op((), _wrapped(value, dtype), dtype, device)
        values.append(value)
    return values, dtype


def _wrapped(number: Any, dtype: Any) -> Any:
    """-1 is the largest number of an unsigned dtype."""
    return number + (1 << 8 * dtype.itemsize) if dtype.category == INTEGER and not dtype.is_signed and number < 0 \
        else number


def in_floats(function: Any, highest: int = FLOATING) -> Callable:
    """`@in_floats(op)` registers the decorated formula as the op's default. It gets its operands as tensors of one
    floating point dtype; float16 and bfloat16 are computed in float32, as native kernels do. With `highest` COMPLEX
    the formula holds for complex numbers too."""
    op = function.op

    def decorate(formula: Callable) -> Callable:
        def decomposition(*args: Any) -> Any:
            values, dtype = operands(op, args)
            if not FLOATING <= dtype.category <= highest:
                raise NotSupported(f"{op.name}: no kernel for {dtype.name} on this device, and its default is for "
                                   f"floating point dtypes")
            if dtype.itemsize > 2:
                return formula(*values)
            return formula(*[v.float() if isinstance(v, Tensor) else v for v in values]).to(dtype)

        decomposition.__wrapped__ = formula  # type: ignore[attr-defined]
        function.decomposition(decomposition)
        return formula

    return decorate


def is_double(x: Tensor) -> bool:
    return x.layout.dtype is tp.float64
