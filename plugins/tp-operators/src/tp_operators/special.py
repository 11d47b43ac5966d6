"""Error functions, gamma functions, the logistic function and its inverse, entropy."""
from __future__ import annotations

import math

from tensorplay.library import ELEMENTWISE, FLOAT, PRIMITIVE, Tensor, ValueRangeError, op

from ._operands import BOOL, FLOATING, accept, in_floats, is_double
from ._samples import sample_binary, sample_unary
from ._series import chebyshev, polynomial, with_sign_of
from .arithmetic import conjugate
from .comparison import minimum
from .creation import full_like, zeros_like
from .exponential import exp, log, log1p, sqrt
from .rounding import floor, round_op
from .selection import where_op
from .trigonometric import sin, tan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

REAL = (ELEMENTWISE, PRIMITIVE)
ROOT_PI = math.sqrt(math.pi)

# ---- erf, erfc ------------------------------------------------------------------------------------------------------
erf = op("erf(Operand input) -> Tensor", tags=REAL, promotion=FLOAT, doc="""The error function: 2 / sqrt(pi) times
the integral of exp(-t * t) from 0 to input.

>>> import tensorplay as tp
>>> tp.erf(tp.tensor([0., float('inf')])).tolist()
[0.0, 1.0]
""")
erfc = op("erfc(Operand input) -> Tensor", tags=(ELEMENTWISE,), promotion=FLOAT,
          doc="""1 - erf(input), accurate where erf is close to 1.

>>> import tensorplay as tp
>>> tp.erfc(tp.tensor([0., float('inf')])).tolist()
[1.0, 0.0]
""")
erf.vjp(input=lambda grad, input: grad * exp(-(input * input)) * (2 / ROOT_PI))
erfc.vjp(input=lambda grad, input: grad * exp(-(input * input)) * (-2 / ROOT_PI))

# Maclaurin's series of erf(x) / x in x * x, for |x| <= 1.
ERF_SERIES = tuple([2 / ROOT_PI * (-1) ** k / (math.factorial(k) * (2 * k + 1)) for k in range(19)])
# Chebyshev series in (3 - x) / (3 + x) of exp(x * x) * erfc(x) * (3 + x) / 3 for x >= 0, by interpolation at 64
# Chebyshev points in 60-digit arithmetic; the first twelve are enough for float32.
ERFC_SERIES = (
    0.47114607466029065, 0.37715894969156579, 0.11803603344749545, 0.028362346699695152, 0.0048717577576055464,
    0.00045985238787654428, -2.1430222381053152e-5, -1.3014473699241349e-5, -8.8092835828535136e-7,
    2.7464800479702845e-7, 4.4159918992237855e-8, -6.3984083855754828e-9, -1.6768357212484644e-9,
    1.9473354700890024e-10, 6.2474413034693895e-11, -8.1245575522444957e-12, -2.3303146132225657e-12,
    4.191038539225333e-13, 8.1933352688130299e-14, -2.3352472107929263e-14, -2.2442585649165364e-15,
    1.2811435298050506e-15, 1.1054582965396302e-18, -6.4457951356490397e-17, 6.5251759755384865e-18)


def _erf_near_zero(x: Tensor) -> Tensor:
    return x * polynomial(x * x, ERF_SERIES if is_double(x) else ERF_SERIES[:11])


def _erfc_positive(x: Tensor) -> Tensor:
    """erfc for x >= 0. The square is split, so that its rounding does not become the exponential's."""
    x = minimum(x, 30.0)
    head = floor(x * 64) * (1 / 64)
    fraction = 3 / (3 + x)
    scaled = chebyshev((3 - x) / (3 + x), ERFC_SERIES if is_double(x) else ERFC_SERIES[:12])
    return exp(-(head * head)) * exp((head - x) * (head + x)) * (scaled * fraction)


@in_floats(erf)
def _erf(input: Tensor) -> Tensor:  # noqa: A002
    size = input.abs()
    return with_sign_of(where_op(size < 1, _erf_near_zero(size), 1 - _erfc_positive(size)), input)


@in_floats(erfc)
def _(input: Tensor) -> Tensor:  # noqa: A002
    tail = _erfc_positive(input.abs())
    tail = where_op(input < 0, 2 - tail, tail)
    return where_op(input.abs() < 0.5, 1 - _erf_near_zero(input), tail)


# ---- erfinv ---------------------------------------------------------------------------------------------------------
erfinv = op("erfinv(Operand input) -> Tensor", tags=REAL, promotion=FLOAT, doc="""The number whose erf is input:
infinite at -1 and 1, NaN outside.

>>> import tensorplay as tp
>>> tp.erfinv(tp.tensor([0., 1.])).tolist()
[0.0, inf]
""")
erfinv.vjp(input=lambda grad, output: grad * exp(output * output) * (ROOT_PI / 2))


@in_floats(erfinv)
def _(input: Tensor) -> Tensor:  # noqa: A002
    """S. Winitzki's approximation, then Halley's method on erf, near 1 on erfc."""
    size = input.abs()
    rest = 1 - size
    weight = -log1p(-(size * size))
    middle = 2 / (math.pi * 0.147) - weight * 0.5
    ratio = weight * (1 / 0.147)
    root = sqrt(middle * middle + ratio)
    x = sqrt(where_op(middle > 0, ratio / (root + middle), root - middle))  # both equal; each where it does not cancel
    for _ in range(3 if is_double(input) else 2):
        error = where_op(size < 0.65, _erf(x) - size, rest - _erfc_positive(x))
        step = error * (ROOT_PI / 2) * exp(x * x)
        x = x - step / (1 + x * step)
    return with_sign_of(where_op(size == 1, float("inf"), x), input)


# ---- lgamma, digamma, trigamma --------------------------------------------------------------------------------------
lgamma = op("lgamma(Operand input) -> Tensor", tags=REAL, promotion=FLOAT, doc="""The logarithm of |gamma(input)|;
inf at 0, -1, -2, ...

>>> import tensorplay as tp
>>> tp.lgamma(tp.tensor([1., 0.])).tolist()
[0.0, inf]

Between its poles below 0, where it crosses zero, the absolute error is that of the numbers it is a difference of.
""")
lgamma.vjp(input=lambda grad, input: grad * digamma(input))

# lgamma(2 + z) = z * (1 - Euler's constant + sum of (-1)**k * (zeta(k) - 1) / k * z**(k - 1)), for |z| <= 1/2.
LGAMMA_SERIES = (
    0.42278433509846714, 0.32246703342411322, -0.067352301053198095, 0.020580808427784548, -0.0073855510286739853,
    0.0028905103307415233, -0.001192753911703261, 0.00050966952474304242, -0.00022315475845357938,
    9.9457512781808534e-5, -4.4926236738133142e-5, 2.0507212775670692e-5, -9.4394882752683959e-6,
    4.3748667899074878e-6, -2.0392157538013662e-6, 9.5514121304074198e-7, -4.492469198764566e-7,
    2.1207184805554666e-7, -1.00432248239681e-7, 4.7698101693639806e-8, -2.2711094608943165e-8,
    1.0838659214896954e-8, -5.1834750419700467e-9, 2.4836745438024783e-9, -1.1921401405860912e-9,
    5.731367241678862e-10, -2.7595228851242331e-10, 1.3304764374244489e-10)
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)  # B2, B4, ...
STIRLING = tuple([b / ((2 * k + 2) * (2 * k + 1)) for k, b in enumerate(BERNOULLI)])


def _lgamma_positive(x: Tensor) -> Tensor:
    """The series around 2 for x < 8.5, to which gamma(x + 1) = x * gamma(x) leads; Stirling's series above."""
    near, product = x, full_like(x, 1)
    for _ in range(6):
        far = near >= 2.5
        near = where_op(far, near - 1, near)
        product = where_op(far, product * near, product)
    tiny, low = x < 0.5, x < 1.5
    z = where_op(tiny, x, where_op(low, x - 1, near - 2))
    series = z * polynomial(z, LGAMMA_SERIES if is_double(x) else LGAMMA_SERIES[:12])
    correction = log(where_op(tiny, x * (x + 1), where_op(low, x, product)))
    inverse = 1 / x
    stirling = (x - 0.5) * (log(x) - 1) + (0.5 * math.log(2 * math.pi) - 0.5) + inverse * polynomial(
        inverse * inverse, STIRLING if is_double(x) else STIRLING[:4])
    return where_op(x < 8.5, where_op(low, series - correction, series + correction), stirling)


@in_floats(lgamma)
def _(input: Tensor) -> Tensor:  # noqa: A002
    """Below 0 by Euler's reflection formula."""
    size = input.abs()
    below = input < 0
    value = _lgamma_positive(where_op(below, 1 - input, input))
    fraction = size - floor(size)
    reflected = log(math.pi / sin(minimum(fraction, 1 - fraction) * math.pi)) - value
    reflected = where_op(size < 1e-17, -log(size), reflected)  # where pi / x might overflow
    result = where_op(below, reflected, value)
    return where_op((size == float("inf")) | below & (fraction == 0), float("inf"), result)


digamma = op("digamma(Operand input) -> Tensor", tags=REAL, promotion=FLOAT, doc="""The derivative of lgamma; NaN at
-1, -2, ..., infinite at 0.

>>> import tensorplay as tp
>>> round(tp.digamma(tp.tensor([1.])).item(), 4)
-0.5772
""")
digamma.vjp(input=lambda grad, input: grad * trigamma(input))
DIGAMMA = tuple([b / (2 * k + 2) for k, b in enumerate(BERNOULLI)])


def _raised(x: Tensor, power: int) -> tuple[Tensor, Tensor]:
    """x raised by whole steps to where asymptotic series converge, and the sum of 1 / x**power over the steps."""
    bound = 10 if is_double(x) else 6
    total = zeros_like(x)
    for _ in range(bound):
        low = x < bound
        term = 1 / x if power == 1 else 1 / (x * x)
        total = where_op(low, total + term, total)
        x = where_op(low, x + 1, x)
    return x, total


def _position(input: Tensor) -> Tensor:  # noqa: A002
    """The distance to the nearest integer, with sign, in radians of half a turn; NaN at the poles."""
    distance = input - round_op(input)
    return where_op(distance == 0, float("nan"), distance * math.pi)


@in_floats(digamma)
def _(input: Tensor) -> Tensor:  # noqa: A002
    below = input < 0
    x, steps = _raised(where_op(below, 1 - input, input), 1)
    inverse = 1 / x
    square = inverse * inverse
    value = log(x) - inverse * 0.5 - square * polynomial(square, DIGAMMA if is_double(x) else DIGAMMA[:4]) - steps
    value = where_op(below, value - math.pi / tan(_position(input)), value)
    return where_op(input == 0, -1 / input, value)


trigamma = op("trigamma(Operand input) -> Tensor", tags=(ELEMENTWISE,), promotion=FLOAT,
              doc="The derivative of digamma; inf at 0, NaN at -1, -2, ...")


@in_floats(trigamma)
def _(input: Tensor) -> Tensor:  # noqa: A002
    below = input < 0
    x, steps = _raised(where_op(below, 1 - input, input), 2)
    inverse = 1 / x
    square = inverse * inverse
    value = inverse + square * 0.5 + inverse * square * polynomial(square, BERNOULLI if is_double(x) else BERNOULLI[:4])
    value = value + steps
    turn = math.pi / sin(_position(where_op(below, input, 0.5)))
    return where_op(below, turn * turn - value, value)


def polygamma(n: int, input: Tensor) -> Tensor:  # noqa: A002
    """The n-th derivative of digamma, for n = 0 and 1.

    >>> import tensorplay as tp
    >>> round(tp.polygamma(1, tp.tensor([1.])).item(), 4)
    1.6449
    """
    if n not in (0, 1):
        raise ValueRangeError(f"polygamma: only n = 0 and n = 1 are there, got {n}")
    return trigamma(input) if n else digamma(input)


# ---- sigmoid, logit -------------------------------------------------------------------------------------------------
sigmoid = op("sigmoid(Operand input) -> Tensor", tags=(ELEMENTWISE,), promotion=FLOAT,
             doc="""The logistic function 1 / (1 + exp(-input)).

>>> import tensorplay as tp
>>> tp.sigmoid(tp.tensor([0., float('-inf')])).tolist()
[0.5, 0.0]
""")
expit = sigmoid
sigmoid.vjp(input=lambda grad, output: sigmoid_backward(grad, output))
sigmoid_backward = op("sigmoid_backward(Operand grad, Operand output) -> Tensor", tags=(ELEMENTWISE,),
                      doc="grad * (1 - output) * output: what sigmoid's input gets.")
sigmoid_backward.decomposition(lambda grad, output: grad * conjugate((1 - output) * output))
sample_binary(sigmoid_backward, low=0.1, high=0.9)
sample_unary(sigmoid)


@in_floats(sigmoid)
def _(input: Tensor) -> Tensor:  # noqa: A002
    power = exp(-abs(input))
    return where_op(input < 0, power, 1) / (power + 1)


logit = op("logit(Operand input, float? eps=None) -> Tensor", tags=(ELEMENTWISE,), promotion=FLOAT,
           doc="""log(input / (1 - input)), the inverse of sigmoid; with `eps`, input is first limited to [eps, 1 -
eps].

>>> import tensorplay as tp
>>> tp.logit(tp.tensor([0.5, 1.])).tolist()
[0.0, inf]
""")


@in_floats(logit)
def _(input: Tensor, eps: float | None) -> Tensor:  # noqa: A002
    x = input if eps is None else input.clamp(eps, 1 - eps)
    return log(x / (1 - x))


@logit.samples
def _(make: Any) -> Iterator:
    yield (make(3, 4, low=0.1, high=0.9),)
    yield make(3, 4, low=-0.5, high=1.5), 0.2


entr = op("entr(Operand input) -> Tensor", tags=(ELEMENTWISE,), promotion=FLOAT,
          doc="""-input * log(input), 0 at 0, -inf below.

>>> import tensorplay as tp
>>> tp.entr(tp.tensor([0., 1., -1.])).tolist()
[0.0, -0.0, -inf]
""")
entr.vjp(input=lambda grad, input: grad * (-log(input) - 1))


@in_floats(entr)
def _(input: Tensor) -> Tensor:  # noqa: A002
    return where_op(input == 0, 0, where_op(input < 0, float("-inf"), -input * log(input)))


for _made in (erf, erfc):
    sample_unary(_made)
sample_unary(erfinv, low=-0.9, high=0.9)
for _made in (lgamma, digamma, trigamma, entr):
    sample_unary(_made, low=0.3, high=4)
for _made in (erf, erfc, erfinv, lgamma, digamma, trigamma, logit, entr):
    accept(_made, BOOL, FLOATING)

FUNCTIONS = ("erf", "erfc", "erfinv", "lgamma", "digamma", "polygamma", "sigmoid", "logit", "entr")
ALIASES = {"expit": "sigmoid"}
NN_FUNCTIONS = ("sigmoid",)
METHODS = ("erf", "erfc", "erfinv", "lgamma", "digamma", "sigmoid", "logit")
INPLACE = tuple([f"{name}_" for name in METHODS])
