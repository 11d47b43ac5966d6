"""Choosing between values and mixing them: where, lerp, fused multiply-adds, masked_fill, nan_to_num."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import (
    ELEMENTWISE,
    NONDIFFERENTIABLE,
    PRIMITIVE,
    ArgumentError,
    DTypeError,
    Tensor,
    elementwise_meta,
    op,
)

from ._operands import COMPLEX, FLOATING, INTEGER, accept, in_floats, operands
from .arithmetic import conjugate, div_op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# ---- where ----------------------------------------------------------------------------------------------------------
where_op = op("where(Tensor condition, Operand input, Operand other) -> Tensor", tags=(ELEMENTWISE, PRIMITIVE))
where_op.vjp(input=lambda grad, condition: where_op(condition, grad, 0),
             other=lambda grad, condition: where_op(condition, 0, grad))
_where_meta = elementwise_meta(where_op.op)


@where_op.meta
def _(condition: Any, input: Any, other: Any) -> Any:  # noqa: A002
    if condition.dtype is not tp.bool:
        raise DTypeError(f"where: condition must be bool, got {condition.dtype.name}; compare it, e.g. condition != 0")
    return _where_meta(condition, input, other)


@where_op.samples
def _(make: Any) -> Iterator:
    condition = make(3, 4) > 0
    yield condition, make(3, 4), make(3, 4)
    yield condition, make(4), make(3, 1)
    yield condition, make(3, 4), 0.5


def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Tensor | None = None) -> Any:  # noqa: A002
    """`input` where `condition` is True, else `other`; with one argument, the indices at which it is not zero.

    >>> import tensorplay as tp
    >>> tp.where(tp.tensor([True, False]), tp.tensor([1., 2.]), 0).tolist()
    [1.0, 0.0]
    >>> tp.where(tp.tensor([0, 3, 4]))[0].tolist()
    [1, 2]

    The three broadcast, `input` and `other` promote. Raises DTypeError for a condition that is not bool.
    """
    if input is None and other is None:
        return nonzero_columns(condition)
    if input is None or other is None:
        raise ArgumentError("where: give both input and other, or neither")
    return where_op(condition, input, other) if out is None else where_op(condition, input, other, out=out)


where.op = where_op.op  # type: ignore[attr-defined]


def nonzero_columns(condition: Tensor) -> tuple:
    """One index tensor for each dimension."""
    found = condition.nonzero() if condition.layout.ndim else condition.reshape(1).nonzero()
    return tuple([found[:, i] for i in range(max(condition.layout.ndim, 1))])


def where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """`x.where(condition, other)`: this tensor where `condition` is True, else `other`."""
    return where_op(condition, self, other)


# ---- lerp, fma, addcmul, addcdiv ------------------------------------------------------------------------------------
lerp = op("lerp(Operand input, Operand end, Operand weight) -> Tensor", tags=(ELEMENTWISE,),
          doc="""input + weight * (end - input), exact at weights 0 and 1.

>>> import tensorplay as tp
>>> tp.lerp(tp.tensor([0., 2.]), tp.tensor([4., 4.]), 0.25).tolist()
[1.0, 2.5]

Needs floating point operands (DTypeError); the three broadcast.
""")
accept(lerp, FLOATING)


@in_floats(lerp, COMPLEX)
def _(input: Tensor, end: Tensor, weight: Tensor) -> Tensor:  # noqa: A002
    span = end - input
    return where_op(abs(weight) < 0.5, input + weight * span, end - span * (1 - weight))


lerp.vjp(input=lambda grad, weight: grad * conjugate(1 - weight), end=lambda grad, weight: grad * conjugate(weight),
         weight=lambda grad, input, end: grad * conjugate(end - input))


@lerp.samples
def _(make: Any) -> Iterator:
    yield make(3, 4), make(3, 4), make(3, 4, low=0, high=1)
    yield make(3, 4), make(4), 0.75


fma = op("fma(Operand input, Operand other, Operand addend) -> Tensor", tags=(ELEMENTWISE, PRIMITIVE),
         doc="""input * other + addend, elementwise. Devices may round once or twice.

>>> import tensorplay as tp
>>> tp.fma(tp.tensor([2., 3.]), tp.tensor([4., 5.]), 1).tolist()
[9.0, 16.0]
""")
fma.vjp(input=lambda grad, other: grad * conjugate(other), other=lambda grad, input: grad * conjugate(input),
        addend=lambda grad: grad)


@fma.decomposition
def _(input: Any, other: Any, addend: Any) -> Tensor:  # noqa: A002
    (input, other, addend), _ = operands(fma.op, (input, other, addend))  # noqa: A001
    return input * other + addend


@fma.samples
def _(make: Any) -> Iterator:
    yield make(3, 4), make(3, 4), make(3, 4)
    yield make(3, 1), make(4), 0.5


addcmul = op("addcmul(Operand input, Operand tensor1, Operand tensor2, *, Number value=1) -> Tensor",
             tags=(ELEMENTWISE,), doc="""input + value * tensor1 * tensor2.

>>> import tensorplay as tp
>>> tp.addcmul(tp.tensor([1.]), tp.tensor([2.]), tp.tensor([3.]), value=0.5).tolist()
[4.0]
""")
addcmul.vjp(input=lambda grad: grad, tensor1=lambda grad, tensor2, value: grad * conjugate(tensor2 * value),
            tensor2=lambda grad, tensor1, value: grad * conjugate(tensor1 * value))


@addcmul.decomposition
def _(input: Any, tensor1: Any, tensor2: Any, value: Any) -> Tensor:  # noqa: A002
    (input, tensor1, tensor2), dtype = operands(addcmul.op, (input, tensor1, tensor2))  # noqa: A001
    value = int(value) if dtype.category < FLOATING else value
    return input + (tensor1 * tensor2 if value == 1 else tensor1 * tensor2 * value)


addcdiv = op("addcdiv(Operand input, Operand tensor1, Operand tensor2, *, Number value=1) -> Tensor",
             tags=(ELEMENTWISE,), doc="""input + value * tensor1 / tensor2.

>>> import tensorplay as tp
>>> tp.addcdiv(tp.tensor([1.]), tp.tensor([3.]), tp.tensor([2.]), value=2).tolist()
[4.0]

Needs floating point operands (DTypeError).
""")
accept(addcdiv, FLOATING)
addcdiv.vjp(input=lambda grad: grad, tensor1=lambda grad, tensor2, value: grad * conjugate(div_op(value, tensor2)),
            tensor2=lambda grad, tensor1, tensor2, value:
            grad * conjugate(-value * div_op(div_op(tensor1, tensor2), tensor2)))


@in_floats(addcdiv, COMPLEX)
def _(input: Tensor, tensor1: Tensor, tensor2: Tensor, value: Any) -> Tensor:  # noqa: A002
    quotient = tensor1 / tensor2
    return input + (quotient if value == 1 else quotient * value)


def _addc_samples(make: Any) -> Iterator:
    yield make(3, 4), make(3, 4), make(3, 4, low=0.5, high=2)
    yield make(3, 4), make(4), make(3, 1, low=0.5, high=2), {"value": -0.5}


addcmul.samples(_addc_samples)
addcdiv.samples(_addc_samples)

# ---- masked_fill, nan_to_num, heaviside -----------------------------------------------------------------------------


def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:  # noqa: A002
    """`value` where the bool `mask` is True, else `input`; the dtype stays that of `input`.

    >>> import tensorplay as tp
    >>> tp.masked_fill(tp.tensor([1., 2.]), tp.tensor([True, False]), -9).tolist()
    [-9.0, 2.0]
    """
    if isinstance(value, Tensor):
        if value.layout.ndim:
            raise ArgumentError(f"masked_fill: value must be a number or a 0-d tensor, got shape "
                                f"{list(value.layout.shape)}; use where")
        value = value.to(input.layout.dtype)
    elif input.layout.dtype.category == INTEGER:
        value = int(value)
    elif input.layout.dtype.category < INTEGER:
        value = bool(value)
    return where_op(mask, value, input)


nan_to_num = op("nan_to_num(Operand input, Number? nan=None, Number? posinf=None, Number? neginf=None) -> Tensor",
                tags=(ELEMENTWISE,), doc="""NaN replaced by `nan` (0), inf by `posinf` and -inf by `neginf` (the
largest and smallest finite values).

>>> import tensorplay as tp
>>> tp.nan_to_num(tp.tensor([float('nan'), float('inf'), 1.]), posinf=9.).tolist()
[0.0, 9.0, 1.0]
""")


@nan_to_num.decomposition
def _(input: Tensor, nan: Any, posinf: Any, neginf: Any) -> Tensor:  # noqa: A002
    dtype = input.layout.dtype
    if dtype.category < FLOATING:
        return input.clone()
    limits = tp.finfo(dtype)
    result = where_op(input != input, 0.0 if nan is None else nan, input)
    result = where_op(result == float("inf"), limits.max if posinf is None else posinf, result)
    return where_op(result == float("-inf"), limits.min if neginf is None else neginf, result)


nan_to_num.vjp(input=lambda grad, input: where_op(input - input == 0, grad, 0))  # finite input


@nan_to_num.samples
def _(make: Any) -> Iterator:
    yield (make(3, 4),)
    yield make(3, 4) / (make(3, 4) > 0), 1.0, 2.0, 3.0


heaviside = op("heaviside(Operand input, Operand values) -> Tensor", tags=(ELEMENTWISE, NONDIFFERENTIABLE),
               doc="""0 where input is negative (or NaN), 1 where it is positive, `values` where it is 0.

>>> import tensorplay as tp
>>> tp.heaviside(tp.tensor([-1., 0., 2.]), tp.tensor(0.5)).tolist()
[0.0, 0.5, 1.0]
""")


@heaviside.decomposition
def _(input: Any, values: Any) -> Tensor:  # noqa: A002
    (input, values), dtype = operands(heaviside.op, (input, values))  # noqa: A001
    return where_op(input == 0, values, (input > 0).to(dtype))


accept(heaviside, highest=FLOATING)


@heaviside.samples
def _(make: Any) -> Iterator:
    yield make(3, 4), make(3, 4)
    yield make(3, 4), 0.5


FUNCTIONS = ("where", "lerp", "fma", "addcmul", "addcdiv", "masked_fill",
             "nan_to_num", "heaviside")
METHODS = {"where": "where_method", **{name: name for name in FUNCTIONS[1:] if name != "fma"}}
INPLACE = ("lerp_", "addcmul_", "addcdiv_", "masked_fill_",
           "nan_to_num_", "heaviside_")
