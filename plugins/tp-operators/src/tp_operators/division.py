"""Division that rounds, and what remains: floor_divide, trunc_divide, remainder, fmod.

Integer division by zero is refused by the kernels (ValueRangeError); the smallest integer divided by -1 wraps.
"""
from __future__ import annotations

from tensorplay.library import ELEMENTWISE, NONDIFFERENTIABLE, PRIMITIVE, Tensor, op

from ._operands import FLOATING, INTEGER, accept, is_double, operands
from ._samples import sample_binary
from ._series import is_negative
from .arithmetic import mul, neg
from .creation import full_like
from .rounding import trunc
from .selection import where_op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# ---- floor_div ------------------------------------------------------------------------------------------------------
floor_div = op("floor_div(Operand input, Operand other) -> Tensor", tags=(ELEMENTWISE, PRIMITIVE, NONDIFFERENTIABLE),
               doc="""The quotient rounded down, in the operands' dtype.

>>> import tensorplay as tp
>>> tp.floor_divide(tp.tensor([7, -7]), 2).tolist()
[3, -4]

Raises ValueRangeError when an integer is divided by zero; a float gives inf or NaN.
""")
floor_divide = floor_div

# ---- trunc_divide ---------------------------------------------------------------------------------------------------
trunc_divide = op("trunc_divide(Operand input, Operand other) -> Tensor", tags=(ELEMENTWISE, NONDIFFERENTIABLE),
                  doc="""The quotient rounded towards zero, in the operands' dtype.

>>> import tensorplay as tp
>>> tp.trunc_divide(tp.tensor([7, -7]), 2).tolist()
[3, -3]
""")


@trunc_divide.decomposition
def _(input: Any, other: Any) -> Tensor:  # noqa: A002
    (input, other), dtype = operands(trunc_divide.op, (input, other))  # noqa: A001
    if dtype.category >= FLOATING:
        return trunc(input / other)
    quotient = floor_div(input, other)
    inexact = (quotient * other != input) & ((input < 0) != (other < 0))
    return quotient + inexact.to(dtype)


# ---- fmod -----------------------------------------------------------------------------------------------------------
fmod = op("fmod(Operand input, Operand other) -> Tensor", tags=(ELEMENTWISE, PRIMITIVE),
          doc="""What remains of input / other rounded towards zero: it has the sign of `input`. Exact for floats.

>>> import tensorplay as tp
>>> tp.fmod(tp.tensor([7., -7.]), 3).tolist()
[1.0, -1.0]

Raises ValueRangeError when an integer is divided by zero; a float gives NaN.
""")
fmod.vjp(input=lambda grad: grad, other=lambda grad, input, other: neg(mul(grad, trunc_divide(input, other))))


@fmod.decomposition
def _(input: Any, other: Any) -> Tensor:  # noqa: A002
    (input, other), dtype = operands(fmod.op, (input, other))  # noqa: A001
    if dtype.category < FLOATING:
        return input - trunc_divide(input, other) * other
    if dtype.itemsize == 2:
        return _float_fmod(input.float(), other.float()).to(dtype)
    return _float_fmod(input, other)


def _float_fmod(x: Tensor, y: Tensor) -> Tensor:
    dividend, divisor = abs(x), abs(y)
    # A large divisor is scaled down, so that splitting it cannot overflow; a power of 2 loses nothing.
    limit, factor = (2.0 ** 512, 2.0 ** 64) if is_double(x) else (2.0 ** 64, 2.0 ** 32)
    large = divisor > limit
    rest = _long_division(where_op(large, dividend / factor, dividend), where_op(large, divisor / factor, divisor),
                          is_double(x))
    rest = where_op(dividend < divisor, dividend, where_op(large, rest * factor, rest))
    defined = (divisor > 0) & (dividend < float("inf"))
    rest = where_op(defined, rest, float("nan"))
    return where_op(is_negative(x), -rest, rest)


def _long_division(dividend: Tensor, divisor: Tensor, double: bool) -> Tensor:
    """Schoolbook division in base 2**digit, without rounding: the divisor is split in two halves (T. J. Dekker, 1971),
    so that a digit times a half is exact, and the differences are exact because they are multiples of the divisor's
    last bit and no larger than the divisor. `exponents` is what quotients of the dtype's numbers can reach."""
    digit, half, exponents, huge = (25, 27, 2098, 2.0 ** 990) if double else (11, 12, 277, 2.0 ** 110)
    carried = divisor * (2.0 ** half + 1)
    high = carried - (carried - divisor)
    parts = (divisor, high, divisor - high)
    room = where_op(dividend > huge, full_like(dividend, 0.5), 1.0)  # products close to the largest number may pass it
    multiples = [tuple([part * 2.0 ** digit * room for part in parts])]
    for _ in range(exponents // digit - 1):
        multiples.append(tuple([part * 2.0 ** digit for part in multiples[-1]]))
    rest = dividend * room
    for multiple in reversed(multiples):
        rest = _take_digit(rest, *multiple)
    rest = _take_digit(rest / room, *parts)
    return where_op(rest >= divisor, rest - divisor, rest)


def _take_digit(rest: Tensor, whole: Tensor, high: Tensor, low: Tensor) -> Tensor:
    """rest - floor(rest / whole) * whole; rest itself where this multiple of the divisor overflowed to infinity."""
    quotient = (rest / whole).floor()
    left = rest - quotient * high - quotient * low
    left = where_op(left < 0, left + whole, left)
    return where_op(left == left, left, rest)


# ---- remainder ------------------------------------------------------------------------------------------------------
remainder = op("remainder(Operand input, Operand other) -> Tensor", tags=(ELEMENTWISE, PRIMITIVE),
               doc="""What remains of input / other rounded down, as Python's %: it has the sign of `other`.

>>> import tensorplay as tp
>>> tp.remainder(tp.tensor([7., -7.]), 3).tolist()
[1.0, 2.0]

Raises ValueRangeError when an integer is divided by zero; a float gives NaN.
""")
remainder.vjp(input=lambda grad: grad, other=lambda grad, input, other: neg(mul(grad, floor_div(input, other))))


@remainder.decomposition
def _(input: Any, other: Any) -> Tensor:  # noqa: A002
    (input, other), dtype = operands(remainder.op, (input, other))  # noqa: A001
    if dtype.category < FLOATING:
        return input - floor_div(input, other) * other
    rest = fmod(input, other)
    return where_op((rest != 0) & ((rest < 0) != (other < 0)), rest + other, rest)


for _made in (floor_div, trunc_divide, remainder, fmod):
    accept(_made, INTEGER, FLOATING)
    sample_binary(_made, low=-9, high=9, other=(0.7, 3.1), number=2)

FUNCTIONS = ("floor_divide", "trunc_divide", "remainder", "fmod")
METHODS = ("floor_divide", "remainder", "fmod")
INPLACE = ("floor_divide_", "remainder_", "fmod_")
