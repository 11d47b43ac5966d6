"""Exponentials, logarithms, roots and reciprocals.

The defaults of the standard primitives stay within a few ulp of the exact value in their own dtype, provided that the
device's exp, log, sqrt, pow and div do.
"""
from __future__ import annotations

import math

from tensorplay.library import ELEMENTWISE, FLOAT, PRIMITIVE, Tensor, op

from ._operands import COMPLEX, FLOATING, accept, in_floats
from ._samples import sample_binary, sample_unary
from .arithmetic import conjugate, div_op
from .comparison import eq, maximum, minimum
from .selection import where_op

UNARY = (ELEMENTWISE, PRIMITIVE)
LN2 = math.log(2)

# ---- exp, exp2, expm1 -----------------------------------------------------------------------------------------------
exp = op("exp(Operand input) -> Tensor", tags=UNARY, promotion=FLOAT, doc="""e to the power of input.

>>> import tensorplay as tp
>>> tp.exp(tp.tensor([0., float('-inf')])).tolist()
[1.0, 0.0]
""")
exp.vjp(input=lambda grad, output: grad * conjugate(output))
sample_unary(exp)

exp2 = op("exp2(Operand input) -> Tensor", tags=UNARY, promotion=FLOAT, doc="""2 to the power of input.

>>> import tensorplay as tp
>>> tp.exp2(tp.tensor([3, -1])).tolist()
[8.0, 0.5]
""")
exp2.vjp(input=lambda grad, output: grad * conjugate(output) * LN2)
sample_unary(exp2)


@in_floats(exp2)
def _(input: Tensor) -> Tensor:  # noqa: A002
    x = maximum(minimum(input, 2200.0), -2200.0)  # beyond every dtype's range, where inf - inf cannot arise
    whole = (x + 0.5).floor()
    half = (whole * 0.5).floor()  # 2 ** whole in two steps: it may overflow or vanish where the result does not
    return ((x - whole) * LN2).exp() * 2.0 ** half * 2.0 ** (whole - half)


expm1 = op("expm1(Operand input) -> Tensor", tags=UNARY, promotion=FLOAT, doc="""exp(input) - 1, exact for small
input too.

>>> import tensorplay as tp
>>> round(tp.expm1(tp.tensor(1e-10)).item(), 16)
1e-10
""")
expm1.vjp(input=lambda grad, output: grad * conjugate(output + 1))
sample_unary(expm1)


@in_floats(expm1)
def _(input: Tensor) -> Tensor:  # noqa: A002
    """W. Kahan's correction: the rounding error of exp(x) is undone by dividing by its logarithm."""
    power = input.exp()
    less = power - 1
    small = where_op(power == 1, input, less * input / power.log())
    return where_op(input.abs() < 1, small, less)


# ---- logarithms -----------------------------------------------------------------------------------------------------
log = op("log(Operand input) -> Tensor", tags=UNARY, promotion=FLOAT, doc="""The natural logarithm: NaN below 0, -inf
at 0.

>>> import tensorplay as tp
>>> tp.log(tp.tensor([1., 0.])).tolist()
[0.0, -inf]
""")
log.vjp(input=lambda grad, input: grad / conjugate(input))
sample_unary(log, low=0.2, high=3)

log2 = op("log2(Operand input) -> Tensor", tags=UNARY, promotion=FLOAT, doc="""The logarithm to base 2; exact for
powers of 2.

>>> import tensorplay as tp
>>> tp.log2(tp.tensor([8., 0.25])).tolist()
[3.0, -2.0]
""")
log2.vjp(input=lambda grad, input: grad / conjugate(input * LN2))
sample_unary(log2, low=0.2, high=3)

log10 = op("log10(Operand input) -> Tensor", tags=(ELEMENTWISE,), promotion=FLOAT,
           doc="""The logarithm to base 10; exact for powers of 10.

>>> import tensorplay as tp
>>> tp.log10(tp.tensor([1000., 1.])).tolist()
[3.0, 0.0]
""")
log10.vjp(input=lambda grad, input: grad / conjugate(input * math.log(10)))
sample_unary(log10, low=0.2, high=3)


def _logarithm(input: Tensor, base: float) -> Tensor:  # noqa: A002
    estimate = input.log() * (1 / math.log(base))
    whole = (estimate + 0.5).floor()
    exact = (base ** whole == input) & (abs(whole - estimate) < 0.01)  # a denormal power is not exact
    return where_op(exact, whole, estimate)


in_floats(log2)(lambda input: _logarithm(input, 2.0))
in_floats(log10)(lambda input: _logarithm(input, 10.0))

log1p = op("log1p(Operand input) -> Tensor", tags=UNARY, promotion=FLOAT, doc="""log(1 + input), exact for small
input too.

>>> import tensorplay as tp
>>> tp.log1p(tp.tensor([0., -1.])).tolist()
[0.0, -inf]
""")
log1p.vjp(input=lambda grad, input: grad / conjugate(input + 1))
sample_unary(log1p, low=-0.8, high=3)


@in_floats(log1p)
def _(input: Tensor) -> Tensor:  # noqa: A002
    """W. Kahan's correction: the rounding error of 1 + x is undone by dividing by what is left of x."""
    more = input + 1
    result = more.log()
    small = where_op(more == 1, input, result * input / (more - 1))
    return where_op(input < 1, small, result)


# ---- sqrt, rsqrt, reciprocal ----------------------------------------------------------------------------------------
sqrt = op("sqrt(Operand input) -> Tensor", tags=UNARY, promotion=FLOAT, doc="""The square root: NaN below 0.

>>> import tensorplay as tp
>>> tp.sqrt(tp.tensor([4, 9])).tolist()
[2.0, 3.0]
""")
sqrt.vjp(input=lambda grad, output: grad / conjugate(output * 2))
sample_unary(sqrt, low=0.2, high=3)

rsqrt = op("rsqrt(Operand input) -> Tensor", tags=UNARY, promotion=FLOAT, doc="""1 / sqrt(input): inf at 0.

>>> import tensorplay as tp
>>> tp.rsqrt(tp.tensor([4., 0.])).tolist()
[0.5, inf]
""")
rsqrt.vjp(input=lambda grad, output: grad * conjugate(output * output * output * -0.5))
in_floats(rsqrt, COMPLEX)(lambda input: 1 / sqrt(input))
sample_unary(rsqrt, low=0.2, high=3)

reciprocal = op("reciprocal(Operand input) -> Tensor", tags=UNARY, promotion=FLOAT, doc="""1 / input: inf at 0.

>>> import tensorplay as tp
>>> tp.reciprocal(tp.tensor([4., -0.5])).tolist()
[0.25, -2.0]
""")
reciprocal.vjp(input=lambda grad, output: grad * conjugate(output * output * -1))
reciprocal.decomposition(lambda input: div_op(1, input))
sample_unary(reciprocal, low=0.3, high=3)

# ---- sums and products of logarithms --------------------------------------------------------------------------------
logaddexp = op("logaddexp(Operand input, Operand other) -> Tensor", tags=(ELEMENTWISE,), promotion=FLOAT,
               doc="""log(exp(input) + exp(other)) without overflow.

>>> import tensorplay as tp
>>> round(tp.logaddexp(tp.tensor(1000.), tp.tensor(1000.)).item(), 3)
1000.693
""")
logaddexp2 = op("logaddexp2(Operand input, Operand other) -> Tensor", tags=(ELEMENTWISE,), promotion=FLOAT,
                doc="""log2(2 ** input + 2 ** other) without overflow.

>>> import tensorplay as tp
>>> tp.logaddexp2(tp.tensor([3., 500.]), tp.tensor([3., 500.])).tolist()
[4.0, 501.0]
""")


@in_floats(logaddexp)
def _(input: Tensor, other: Tensor) -> Tensor:  # noqa: A002
    sum = maximum(input, other) + log1p(exp(-abs(input - other)))
    return where_op(input == other, input + LN2, sum)  # equal infinities have no difference


@in_floats(logaddexp2)
def _(input: Tensor, other: Tensor) -> Tensor:  # noqa: A002
    sum = maximum(input, other) + log1p(exp2(-abs(input - other))) * (1 / LN2)
    return where_op(input == other, input + 1, sum)


def _weight(grad: Tensor, mine: Tensor, theirs: Tensor, base: float) -> Tensor:
    """grad * base**mine / (base**mine + base**theirs); half where both are the same infinity."""
    return where_op(eq(mine, theirs), grad * 0.5, grad / (base ** (theirs - mine) + 1))


logaddexp.vjp(input=lambda grad, input, other: _weight(grad, input, other, math.e),
              other=lambda grad, input, other: _weight(grad, other, input, math.e))
logaddexp2.vjp(input=lambda grad, input, other: _weight(grad, input, other, 2.0),
               other=lambda grad, input, other: _weight(grad, other, input, 2.0))

xlogy = op("xlogy(Operand input, Operand other) -> Tensor", tags=(ELEMENTWISE,), promotion=FLOAT,
           doc="""input * log(other), and 0 where input is 0 (NaN where other is NaN).

>>> import tensorplay as tp
>>> tp.xlogy(tp.tensor([0., 2.]), tp.tensor([0., 1.])).tolist()
[0.0, 0.0]
""")
xlogy.vjp(input=lambda grad, input, other: where_op(eq(input, 0) & (other <= 0), 0, xlogy(grad, other)),
          other=lambda grad, input, other: grad * div_op(input, other))


@in_floats(xlogy)
def _(input: Tensor, other: Tensor) -> Tensor:  # noqa: A002
    return where_op((input == 0) & (other == other), 0, input * other.log())


xlog1py = op("xlog1py(Operand input, Operand other) -> Tensor", tags=(ELEMENTWISE,), promotion=FLOAT,
             doc="""input * log1p(other), and 0 where input is 0 (NaN where other is NaN).

>>> import tensorplay as tp
>>> tp.xlog1py(tp.tensor([0., 2.]), tp.tensor([-1., 0.])).tolist()
[0.0, 0.0]
""")
xlog1py.vjp(input=lambda grad, input, other: where_op(eq(input, 0) & (other <= -1), 0, xlog1py(grad, other)),
            other=lambda grad, input, other: grad * div_op(input, other + 1))


@in_floats(xlog1py)
def _(input: Tensor, other: Tensor) -> Tensor:  # noqa: A002
    return where_op((input == 0) & (other == other), 0, input * other.log1p())


for _made in (logaddexp, logaddexp2):
    sample_binary(_made, number=0.5)
for _made in (xlogy, xlog1py):
    sample_binary(_made, low=0.2, high=3, number=0.5)
for _made in (logaddexp, logaddexp2, xlogy, xlog1py):
    accept(_made, highest=FLOATING)

FUNCTIONS = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "logaddexp",
             "logaddexp2", "xlogy", "xlog1py")
METHODS = FUNCTIONS[:-1]
INPLACE = tuple([f"{name}_" for name in METHODS if not name.startswith("logadd")])
