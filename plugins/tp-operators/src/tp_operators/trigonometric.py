"""Circular and hyperbolic functions and their inverses, atan2, hypot, sinc, degrees."""
from __future__ import annotations

import math

from tensorplay.library import ELEMENTWISE, FLOAT, PRIMITIVE, Tensor, op

from ._operands import BOOL, COMPLEX, FLOATING, accept, in_floats, is_double
from ._samples import sample_binary, sample_unary
from ._series import is_negative, polynomial, with_sign_of
from .arithmetic import conjugate, div_op
from .comparison import maximum, minimum
from .exponential import exp, expm1, log, log1p, rsqrt, sqrt
from .selection import where_op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BEYOND = 2.0 ** 28  # above it, 1 + x * x is x * x in every dtype


def _unary(name: str, sentence: str, example: str, low: float = -2, high: float = 2, tags: tuple = (PRIMITIVE,)) -> Any:
    made = op(f"{name}(Operand input) -> Tensor", tags=(ELEMENTWISE, *tags), promotion=FLOAT, doc=f"""{sentence}.

>>> import tensorplay as tp
>>> {example}
""")
    sample_unary(made, low, high)
    return made


# ---- sin, cos, tan --------------------------------------------------------------------------------------------------
sin = _unary("sin", "The sine of an angle in radians", "tp.sin(tp.tensor([0.])).tolist()\n[0.0]", -4, 4)
cos = _unary("cos", "The cosine of an angle in radians", "tp.cos(tp.tensor([0.])).tolist()\n[1.0]", -4, 4)
tan = _unary("tan", "The tangent of an angle in radians", "tp.tan(tp.tensor([0.])).tolist()\n[0.0]", -1.3, 1.3)
sin.vjp(input=lambda grad, input: grad * conjugate(cos(input)))
cos.vjp(input=lambda grad, input: grad * conjugate(-sin(input)))
tan.vjp(input=lambda grad, output: grad * conjugate(output * output + 1))
in_floats(tan, COMPLEX)(lambda input: sin(input) / cos(input))

# ---- inverse --------------------------------------------------------------------------------------------------------
atan = _unary("atan", "The angle in (-pi/2, pi/2) whose tangent is input", "tp.atan(tp.tensor([0.])).tolist()\n[0.0]")
asin = _unary("asin", "The angle in [-pi/2, pi/2] whose sine is input; NaN outside [-1, 1]",
              "tp.asin(tp.tensor([0., 2.])).tolist()\n[0.0, nan]", -0.9, 0.9)
acos = _unary("acos", "The angle in [0, pi] whose cosine is input; NaN outside [-1, 1]",
              "tp.acos(tp.tensor([1., 2.])).tolist()\n[0.0, nan]", -0.9, 0.9)
atan.vjp(input=lambda grad, input: grad / conjugate(input * input + 1))
asin.vjp(input=lambda grad, input: grad * conjugate(rsqrt(1 - input * input)))
acos.vjp(input=lambda grad, input: grad * conjugate(-rsqrt(1 - input * input)))
arctan, arcsin, arccos = atan, asin, acos

# Taylor's series, for |x| <= tan(pi / 8): the first term left out is below half an ulp.
ATAN_SERIES = tuple([(-1) ** k / (2 * k + 1) for k in range(1, 22)])


def _atan_of_fraction(ratio: Tensor) -> Tensor:
    """atan for 0 <= ratio <= 1: pi / 4 is taken off above tan(pi / 8)."""
    above = ratio > math.tan(math.pi / 8)
    x = where_op(above, (ratio - 1) / (ratio + 1), ratio)
    square = x * x
    angle = x + x * (square * polynomial(square, ATAN_SERIES if is_double(x) else ATAN_SERIES[:9]))
    return where_op(above, angle + math.pi / 4, angle)


@in_floats(atan)
def _atan(input: Tensor) -> Tensor:  # noqa: A002
    size = input.abs()
    large = size > 1
    angle = _atan_of_fraction(where_op(large, 1 / size, size))
    return with_sign_of(where_op(large, math.pi / 2 - angle, angle), input)


@in_floats(asin)
def _(input: Tensor) -> Tensor:  # noqa: A002
    return atan(input / sqrt((1 - input) * (1 + input)))


@in_floats(acos)
def _(input: Tensor) -> Tensor:  # noqa: A002
    return atan(sqrt((1 - input) / (1 + input))) * 2


atan2 = op("atan2(Operand input, Operand other) -> Tensor", tags=(ELEMENTWISE, PRIMITIVE), promotion=FLOAT,
           doc="""The angle of the point (other, input) from the first axis, in [-pi, pi]; signs of zeros count.

>>> import tensorplay as tp
>>> tp.atan2(tp.tensor([0., -0.]), tp.tensor([1., -1.])).tolist()
[0.0, -3.1415927410125732]
""")
arctan2 = atan2
atan2.vjp(input=lambda grad, input, other: grad * div_op(other, input * input + other * other),
          other=lambda grad, input, other: grad * div_op(-1 * input, input * input + other * other))
accept(atan2, BOOL, FLOATING)
sample_binary(atan2, number=0.5)


@in_floats(atan2)
def _(input: Tensor, other: Tensor) -> Tensor:  # noqa: A002
    rise, run = input.abs(), other.abs()
    longer = maximum(rise, run)
    ratio = where_op(rise == run, 1.0, minimum(rise, run) / longer)
    ratio = where_op(longer == 0, 0.0, ratio)
    angle = _atan_of_fraction(ratio)
    angle = where_op(rise > run, math.pi / 2 - angle, angle)
    return with_sign_of(where_op(is_negative(other), math.pi - angle, angle), input)


# ---- hyperbolic -----------------------------------------------------------------------------------------------------
tanh = _unary("tanh", "The hyperbolic tangent", "tp.tanh(tp.tensor([0., float('inf')])).tolist()\n[0.0, 1.0]")
tanh.vjp(input=lambda grad, output: tanh_backward(grad, output))
tanh_backward = op("tanh_backward(Operand grad, Operand output) -> Tensor", tags=(ELEMENTWISE,),
                   doc="grad * (1 - output ** 2): what tanh's input gets.")
tanh_backward.decomposition(lambda grad, output: grad * conjugate(1 - output * output))
sample_binary(tanh_backward, low=-0.9, high=0.9)

sinh = _unary("sinh", "The hyperbolic sine", "tp.sinh(tp.tensor([0.])).tolist()\n[0.0]")
cosh = _unary("cosh", "The hyperbolic cosine", "tp.cosh(tp.tensor([0.])).tolist()\n[1.0]")
sinh.vjp(input=lambda grad, input: grad * conjugate(cosh(input)))
cosh.vjp(input=lambda grad, input: grad * conjugate(sinh(input)))


def _half_exp(size: Tensor) -> Tensor:
    """exp(size) / 2 where exp(size) itself may overflow."""
    root = exp(size * 0.5)
    return root * 0.5 * root


@in_floats(sinh)
def _(input: Tensor) -> Tensor:  # noqa: A002
    size = input.abs()
    less = expm1(size)
    small = (less + less / (less + 1)) * 0.5
    return with_sign_of(where_op(size < 20, small, _half_exp(size)), input)


@in_floats(cosh)
def _(input: Tensor) -> Tensor:  # noqa: A002
    size = input.abs()
    power = exp(size)
    return where_op(size < 20, power * 0.5 + 0.5 / power, _half_exp(size))


asinh = _unary("asinh", "The inverse hyperbolic sine", "tp.asinh(tp.tensor([0.])).tolist()\n[0.0]")
acosh = _unary("acosh", "The inverse hyperbolic cosine; NaN below 1",
               "tp.acosh(tp.tensor([1., 0.])).tolist()\n[0.0, nan]", 1.2, 4)
atanh = _unary("atanh", "The inverse hyperbolic tangent; NaN outside [-1, 1]",
               "tp.atanh(tp.tensor([0., 1.])).tolist()\n[0.0, inf]", -0.9, 0.9)
asinh.vjp(input=lambda grad, input: grad * conjugate(rsqrt(input * input + 1)))
acosh.vjp(input=lambda grad, input: grad * conjugate(rsqrt(input - 1) * rsqrt(input + 1)))
atanh.vjp(input=lambda grad, input: grad / conjugate(1 - input * input))
arcsinh, arccosh, arctanh = asinh, acosh, atanh


@in_floats(asinh)
def _(input: Tensor) -> Tensor:  # noqa: A002
    size = input.abs()
    square = size * size
    small = log1p(size + square / (1 + sqrt(square + 1)))
    return with_sign_of(where_op(size < BEYOND, small, log(size) + math.log(2)), input)


@in_floats(acosh)
def _(input: Tensor) -> Tensor:  # noqa: A002
    less = input - 1
    small = log1p(less + sqrt(less) * sqrt(input + 1))
    return where_op(input < BEYOND, small, log(input) + math.log(2))


@in_floats(atanh)
def _(input: Tensor) -> Tensor:  # noqa: A002
    size = input.abs()
    return with_sign_of(log1p(size / (1 - size) * 2) * 0.5, input)


# ---- lengths, sinc, degrees -----------------------------------------------------------------------------------------
hypot = op("hypot(Operand input, Operand other) -> Tensor", tags=(ELEMENTWISE,), promotion=FLOAT,
           doc="""sqrt(input ** 2 + other ** 2) without overflow; inf if either is infinite.

>>> import tensorplay as tp
>>> tp.hypot(tp.tensor([3.]), tp.tensor([4.])).tolist()
[5.0]
""")
accept(hypot, BOOL, FLOATING)
sample_binary(hypot, low=0.3, high=2, number=0.5)


@in_floats(hypot)
def _(input: Tensor, other: Tensor) -> Tensor:  # noqa: A002
    first, second = input.abs(), other.abs()
    longer, shorter = maximum(first, second), minimum(first, second)
    ratio = where_op(longer == 0, 0, shorter / longer)
    length = longer * sqrt(ratio * ratio + 1)
    infinite = (first == float("inf")) | (second == float("inf"))
    return where_op(infinite, float("inf"), length)


def _direction(grad: Tensor, side: Tensor, output: Tensor) -> Tensor:
    """grad * side / output, 0 at the origin."""
    return grad * side / where_op(output == 0, 1, output)


hypot.vjp(input=lambda grad, input, output: _direction(grad, input, output),
          other=lambda grad, other, output: _direction(grad, other, output))

sinc = _unary("sinc", "sin(pi * input) / (pi * input), and 1 at 0", "tp.sinc(tp.tensor([0.])).tolist()\n[1.0]", 0.2, 2,
              tags=())


@in_floats(sinc, COMPLEX)
def _(input: Tensor) -> Tensor:  # noqa: A002
    zero = input == 0
    angle = where_op(zero, 1, input) * math.pi
    return where_op(zero, 1, sin(angle) / angle)


deg2rad = _unary("deg2rad", "Degrees as radians",
                 "tp.deg2rad(tp.tensor([180.])).tolist()\n[3.1415927410125732]", tags=())
rad2deg = _unary("rad2deg", "Radians as degrees", "tp.rad2deg(tp.tensor([0.])).tolist()\n[0.0]", tags=())
deg2rad.decomposition(lambda input: input * (math.pi / 180))
rad2deg.decomposition(lambda input: input * (180 / math.pi))
for _made in (deg2rad, rad2deg):
    accept(_made, BOOL, FLOATING)

FUNCTIONS = ("sin", "cos", "tan", "atan", "asin", "acos", "atan2", "tanh", "sinh", "cosh", "asinh", "acosh", "atanh",
             "hypot", "sinc", "deg2rad", "rad2deg")
ALIASES = {"arctan": "atan", "arcsin": "asin", "arccos": "acos", "arctan2": "atan2", "arcsinh": "asinh",
           "arccosh": "acosh", "arctanh": "atanh"}
NN_FUNCTIONS = ("tanh",)
METHODS = (*FUNCTIONS, *ALIASES)
INPLACE = tuple([f"{name}_" for name in METHODS])
