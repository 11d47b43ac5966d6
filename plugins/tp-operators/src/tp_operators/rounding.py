"""Rounding and signs: floor, ceil, trunc, round, frac, abs, sign, copysign, nextafter."""
from __future__ import annotations

from tensorplay.library import (
    COMPARE,
    ELEMENTWISE,
    FLOAT,
    NONDIFFERENTIABLE,
    PRIMITIVE,
    Layout,
    Tensor,
    elementwise_meta,
    op,
)

from ._operands import BOOL, FLOATING, INTEGER, accept, in_floats
from ._samples import sample_binary, sample_unary
from ._series import is_negative, with_sign_of
from .creation import zeros_like
from .selection import where_op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

UNARY = (ELEMENTWISE, PRIMITIVE)


def _flat(grad: Tensor) -> Tensor:
    """The gradient of a step function."""
    return zeros_like(grad)


def _whole_kept(formula: Callable) -> Callable:
    """A rounding default: integers are copied."""
    return lambda input: formula(input) if input.layout.dtype.category >= FLOATING else input.clone()


# ---- floor, ceil, trunc ---------------------------------------------------------------------------------------------
floor = op("floor(Operand input) -> Tensor", tags=UNARY, doc="""The largest integer that is not above input, in
input's dtype.

>>> import tensorplay as tp
>>> tp.floor(tp.tensor([1.5, -1.5])).tolist()
[1.0, -2.0]
""")
ceil = op("ceil(Operand input) -> Tensor", tags=UNARY, doc="""The smallest integer that is not below input, in
input's dtype.

>>> import tensorplay as tp
>>> tp.ceil(tp.tensor([1.5, -1.5])).tolist()
[2.0, -1.0]
""")
ceil.decomposition(_whole_kept(lambda input: -floor(-input)))

trunc = op("trunc(Operand input) -> Tensor", tags=UNARY, doc="""input without its fraction: rounded towards zero.

>>> import tensorplay as tp
>>> tp.trunc(tp.tensor([1.5, -1.5])).tolist()
[1.0, -1.0]
""")
trunc.decomposition(_whole_kept(lambda input: where_op(input < 0, -floor(-input), floor(input))))
fix = trunc

# ---- round ----------------------------------------------------------------------------------------------------------
round_op = op("round(Operand input) -> Tensor", tags=UNARY)


def _round_half_even(input: Tensor) -> Tensor:  # noqa: A002
    size = input.abs()
    whole = floor(size)
    rest = size - whole  # exact, as size >= 0
    odd = whole - 2 * floor(whole * 0.5) == 1
    up = (rest > 0.5) | (rest == 0.5) & odd
    return with_sign_of(whole + up.to(input.layout.dtype), input)


round_op.decomposition(_whole_kept(_round_half_even))


def round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:  # noqa: A001,A002
    """The nearest integer, the even one of two equally near; with `decimals`, the nearest multiple of 10**-decimals.

    >>> import tensorplay as tp
    >>> tp.round(tp.tensor([0.5, 1.5, -1.2])).tolist(), tp.round(tp.tensor([1234.]), decimals=-2).tolist()
    ([0.0, 2.0, -1.0], [1200.0])
    """
    if decimals == 0:
        return round_op(input, out)
    scale = 10.0 ** (decimals if decimals > 0 else -decimals)
    rounded = round_op(input * scale) / scale if decimals > 0 else round_op(input / scale) * scale
    if out is None:
        return rounded
    out.copy_(rounded)
    return out


round.op = round_op.op  # type: ignore[attr-defined]

frac = op("frac(Operand input) -> Tensor", tags=(ELEMENTWISE,), doc="""input - trunc(input): the fraction, with
input's sign.

>>> import tensorplay as tp
>>> tp.frac(tp.tensor([1.5, -1.25])).tolist()
[0.5, -0.25]
""")
frac.decomposition(lambda input: input - trunc(input))
frac.vjp(input=lambda grad: grad)
accept(frac, FLOATING, FLOATING)

for _made in (floor, ceil, trunc, round_op):
    _made.vjp(input=_flat)
    accept(_made, INTEGER, FLOATING)
for _made in (floor, ceil, trunc, round_op, frac):
    sample_unary(_made, low=-5.3, high=5.3)

# ---- abs, sign ------------------------------------------------------------------------------------------------------
abs = op("abs(Operand input) -> Tensor", tags=UNARY, doc="""The size without the sign; real for complex tensors.

>>> import tensorplay as tp
>>> tp.abs(tp.tensor([-1., 2.])).tolist()
[1.0, 2.0]

The smallest integer stays itself, as its negative does not fit.
""")
absolute = abs
abs.vjp(input=lambda grad, input: grad * sgn(input))
sample_unary(abs)
_abs_meta = elementwise_meta(abs.op)


@abs.meta
def _(input: Layout) -> Layout:  # noqa: A002
    result = _abs_meta(input)
    return result.with_dtype(result.dtype.to_real())


sign = op("sign(Operand input) -> Tensor", tags=UNARY, doc="""-1, 0 or 1 by the sign of input; 0 for NaN.

>>> import tensorplay as tp
>>> tp.sign(tp.tensor([-3., 0., 5.])).tolist()
[-1.0, 0.0, 1.0]

Complex tensors are refused; see sgn.
""")
sign.vjp(input=_flat)
accept(sign, BOOL, FLOATING)
sample_unary(sign)


@sign.decomposition
def _(input: Tensor) -> Tensor:  # noqa: A002
    dtype = input.layout.dtype
    above = (input > 0).to(dtype)
    return above if not dtype.is_signed else above - (input < 0).to(dtype)


def sgn(input: Tensor) -> Tensor:  # noqa: A002
    """`sign`, and for complex tensors input / |input| (0 where it is 0).

    >>> import tensorplay as tp
    >>> tp.sgn(tp.tensor([4j])).tolist()
    [1j]
    """
    if not input.layout.dtype.is_complex:
        return sign(input)
    size = abs(input)
    return where_op(size == 0, 0, input / where_op(size == 0, 1, size))


# ---- sign bits ------------------------------------------------------------------------------------------------------
signbit = op("signbit(Operand input) -> Tensor", tags=(ELEMENTWISE, NONDIFFERENTIABLE), promotion=COMPARE,
             doc="""Whether the sign bit is set: negative, or -0. False for NaN on devices without a kernel for it.

>>> import tensorplay as tp
>>> tp.signbit(tp.tensor([-1., -0., 0.])).tolist()
[True, True, False]
""")
signbit.decomposition(lambda input: is_negative(input) if input.layout.dtype.category >= FLOATING else input < 0)
accept(signbit, BOOL, FLOATING)
sample_unary(signbit)

copysign = op("copysign(Operand input, Operand other) -> Tensor", tags=(ELEMENTWISE,), promotion=FLOAT,
              doc="""The size of input with the sign of other, whose zeros have one too.

>>> import tensorplay as tp
>>> tp.copysign(tp.tensor([1., -2.]), -0.).tolist()
[-1.0, -2.0]
""")
copysign.vjp(input=lambda grad, input, other: grad * sign(input) * copysign(sign(input), other),
             other=lambda grad: zeros_like(grad))
accept(copysign, BOOL, FLOATING)
sample_binary(copysign, number=-0.5)


@in_floats(copysign)
def _(input: Tensor, other: Tensor) -> Tensor:  # noqa: A002
    return with_sign_of(abs(input), other)


nextafter = op("nextafter(Operand input, Operand other) -> Tensor", tags=(ELEMENTWISE, PRIMITIVE, NONDIFFERENTIABLE),
               doc="""The next number of the dtype after input in the direction of other.

>>> import tensorplay as tp
>>> (tp.nextafter(tp.tensor([1.]), tp.tensor([2.])) - 1).tolist()
[1.1920928955078125e-07]

No default: a device without it computes it on the CPU.
""")
accept(nextafter, FLOATING, FLOATING)
sample_binary(nextafter)

FUNCTIONS = ("floor", "ceil", "trunc", "round", "frac", "abs", "sign", "sgn", "signbit", "copysign", "nextafter")
ALIASES = {"absolute": "abs", "fix": "trunc"}
METHODS = (*FUNCTIONS, *ALIASES)
INPLACE = tuple([f"{name}_" for name in METHODS if name != "signbit"])
