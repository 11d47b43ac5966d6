"""Comparisons and everything decided by them: eq to ge, isclose, isnan and friends, maximum and minimum."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import (
    COMPARE,
    ELEMENTWISE,
    NONDIFFERENTIABLE,
    PRIMITIVE,
    DeviceError,
    DTypeError,
    Tensor,
    ValueRangeError,
    op,
)

from ._operands import BOOL, COMPLEX, FLOATING, accept
from ._samples import sample_binary, sample_unary
from .creation import full_like
from .selection import where_op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

TEST = (ELEMENTWISE, NONDIFFERENTIABLE)
INFINITY = float("inf")


def _comparison(name: str, sign: str, example: str, tags: tuple = TEST, ordered: bool = True) -> Any:
    """An operator with two operands and a bool result."""
    made = op(f"{name}(Operand input, Operand other) -> Tensor", tags=tags, promotion=COMPARE, doc=f"""\
input {sign} other, elementwise, as bool.

>>> import tensorplay as tp
>>> tp.{name}(tp.tensor([1, 2, 3]), 2).tolist()
{example}

The operands broadcast and promote. Comparisons with NaN are False, except ne.
{"Complex operands are refused." * ordered}
""")
    accept(made, BOOL, FLOATING if ordered else COMPLEX)
    sample_binary(made, number=0.5)
    return made


eq = _comparison("eq", "==", "[False, True, False]", (*TEST, PRIMITIVE), ordered=False)
lt = _comparison("lt", "<", "[True, False, False]", (*TEST, PRIMITIVE))
le = _comparison("le", "<=", "[True, True, False]", (*TEST, PRIMITIVE))
ne = _comparison("ne", "!=", "[True, False, True]", ordered=False)
gt = _comparison("gt", ">", "[False, False, True]")
ge = _comparison("ge", ">=", "[False, True, True]")
le.decomposition(lambda input, other: lt(input, other) | eq(input, other))
ne.decomposition(lambda input, other: ~eq(input, other))
gt.decomposition(lambda input, other: lt(other, input))
ge.decomposition(lambda input, other: le(other, input))
not_equal, less, less_equal, greater, greater_equal = ne, lt, le, gt, ge

# ---- closeness ------------------------------------------------------------------------------------------------------
isclose = op("isclose(Operand input, Operand other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) "
             "-> Tensor", tags=TEST, promotion=COMPARE, doc="""|input - other| <= atol + rtol * |other|, elementwise.

>>> import tensorplay as tp
>>> tp.isclose(tp.tensor([1., 2.]), tp.tensor([1.000001, 2.1])).tolist()
[True, False]

Infinities are close to themselves only; NaN is close to NaN with `equal_nan`. Raises ValueRangeError for a negative
tolerance.
""")


@isclose.decomposition
def _(input: Any, other: Any, rtol: float, atol: float, equal_nan: bool) -> Tensor:  # noqa: A002
    if rtol < 0 or atol < 0:
        raise ValueRangeError(f"isclose: tolerances must not be negative, got rtol={rtol}, atol={atol}")
    close = eq(input, other)
    if equal_nan:
        close = close | ne(input, input) & ne(other, other)
    input, other = _in_floats(input), _in_floats(other)  # noqa: A001
    distance = abs(input - other)
    return close | (distance <= atol + abs(rtol * other)) & (distance < INFINITY)


def _in_floats(value: Any) -> Any:
    """Differences of integers may overflow."""
    return value.to(tp.get_default_dtype()) if isinstance(value, Tensor) and _whole(value) else value


@isclose.samples
def _(make: Any) -> Iterator:
    x = make(3, 4)
    yield x, x + make(3, 4, low=0, high=1e-5)
    yield x, 0.5, 0.1, 0.1, True


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08,  # noqa: A002
             equal_nan: bool = False) -> bool:
    """Whether all elements are close, as `isclose` says.

    >>> import tensorplay as tp
    >>> tp.allclose(tp.tensor([1.]), tp.tensor([1.0000001]))
    True
    """
    return bool(isclose(input, other, rtol, atol, equal_nan).all().item())


def equal(input: Tensor, other: Tensor) -> bool:  # noqa: A002
    """Whether both have the same shape and values. Raises for different dtypes or devices.

    >>> import tensorplay as tp
    >>> tp.equal(tp.tensor([1, 2]), tp.tensor([1, 2])), tp.equal(tp.tensor([1]), tp.tensor([1, 1]))
    (True, False)
    """
    if input.layout.device is not other.layout.device:
        raise DeviceError(f"equal: input is on {input.layout.device} but other is on {other.layout.device}")
    if input.layout.dtype is not other.layout.dtype:
        raise DTypeError(f"equal: input is {input.layout.dtype.name} but other is {other.layout.dtype.name}")
    return input.layout.shape == other.layout.shape and bool(eq(input, other).all().item())


# ---- kinds of numbers -----------------------------------------------------------------------------------------------


def _kind(name: str, sentence: str, example: str, real: bool = False) -> Any:
    made = op(f"{name}(Operand input) -> Tensor", tags=TEST, promotion=COMPARE, doc=f"""{sentence}, elementwise, as
bool.

>>> import tensorplay as tp
>>> tp.{name}(tp.tensor([1., float('nan'), float('inf'), -float('inf')])).tolist()
{example}
""")
    accept(made, BOOL, FLOATING if real else COMPLEX)
    sample_unary(made)
    return made


isnan = _kind("isnan", "Whether it is NaN", "[False, True, False, False]")
isinf = _kind("isinf", "Whether it is infinite", "[False, False, True, True]")
isfinite = _kind("isfinite", "Whether it is neither infinite nor NaN", "[True, False, False, False]")
isposinf = _kind("isposinf", "Whether it is inf", "[False, False, True, False]", real=True)
isneginf = _kind("isneginf", "Whether it is -inf", "[False, False, False, True]", real=True)


def _whole(input: Tensor) -> bool:  # noqa: A002
    return input.layout.dtype.category < FLOATING


def _constant(input: Tensor, value: bool) -> Tensor:  # noqa: A002
    return full_like(input, value, dtype=tp.bool)


def _size(input: Tensor) -> Tensor:  # noqa: A002
    """A real number that is infinite or NaN exactly where the input is."""
    return input.real.abs() + input.imag.abs() if input.layout.dtype.is_complex else input.abs()


isnan.decomposition(lambda input: ne(input, input))
isposinf.decomposition(lambda input: _constant(input, False) if _whole(input) else eq(input, INFINITY))
isneginf.decomposition(lambda input: _constant(input, False) if _whole(input) else eq(input, -INFINITY))


@isinf.decomposition
def _(input: Tensor) -> Tensor:  # noqa: A002
    if _whole(input):
        return _constant(input, False)
    if input.layout.dtype.is_complex:
        return eq(input.real.abs(), INFINITY) | eq(input.imag.abs(), INFINITY)
    return eq(input.abs(), INFINITY)


@isfinite.decomposition
def _(input: Tensor) -> Tensor:  # noqa: A002
    return _constant(input, True) if _whole(input) else eq(_size(input) * 0.0, 0.0)


# ---- maximum, minimum -----------------------------------------------------------------------------------------------
maximum = op("maximum(Operand input, Operand other) -> Tensor", tags=(ELEMENTWISE, PRIMITIVE),
             doc="""The larger of two, elementwise; NaN if either is NaN.

>>> import tensorplay as tp
>>> tp.maximum(tp.tensor([1., 5.]), 3).tolist()
[3.0, 5.0]

Where both are equal, each gets half of the gradient.
""")
minimum = op("minimum(Operand input, Operand other) -> Tensor", tags=(ELEMENTWISE, PRIMITIVE),
             doc="""The smaller of two, elementwise; NaN if either is NaN.

>>> import tensorplay as tp
>>> tp.minimum(tp.tensor([1., 5.]), 3).tolist()
[1.0, 3.0]

Where both are equal, each gets half of the gradient.
""")


def _share(grad: Tensor, mine: Any, theirs: Any, lost: Tensor) -> Tensor:
    """The gradient of the operand `mine`: none where it lost, half in a tie."""
    return where_op(eq(mine, theirs), grad * 0.5, where_op(lost, 0, grad))


maximum.vjp(input=lambda grad, input, other: _share(grad, input, other, lt(input, other)),
            other=lambda grad, input, other: _share(grad, other, input, lt(other, input)))
minimum.vjp(input=lambda grad, input, other: _share(grad, input, other, lt(other, input)),
            other=lambda grad, input, other: _share(grad, other, input, lt(input, other)))

fmax = op("fmax(Operand input, Operand other) -> Tensor", tags=(ELEMENTWISE,),
          doc="""The larger of two, elementwise; a NaN counts only if both are NaN.

>>> import tensorplay as tp
>>> tp.fmax(tp.tensor([float('nan'), 5.]), 3).tolist()
[3.0, 5.0]
""")
fmin = op("fmin(Operand input, Operand other) -> Tensor", tags=(ELEMENTWISE,),
          doc="""The smaller of two, elementwise; a NaN counts only if both are NaN.

>>> import tensorplay as tp
>>> tp.fmin(tp.tensor([float('nan'), 5.]), 3).tolist()
[3.0, 3.0]
""")


def _ignoring_nan(input: Any, other: Any, chosen: Tensor) -> Tensor:  # noqa: A002
    if chosen.layout.dtype.category < FLOATING:
        return chosen
    return where_op(ne(input, input), other, where_op(ne(other, other), input, chosen))


fmax.decomposition(lambda input, other: _ignoring_nan(input, other, maximum(input, other)))
fmin.decomposition(lambda input, other: _ignoring_nan(input, other, minimum(input, other)))
for _made in (maximum, minimum, fmax, fmin):
    accept(_made, BOOL, FLOATING)
    sample_binary(_made, number=0.5)

FUNCTIONS = ("eq", "ne", "lt", "le", "gt", "ge", "isclose", "allclose", "equal", "isnan", "isinf", "isfinite",
             "isposinf", "isneginf", "maximum", "minimum", "fmax", "fmin")
ALIASES = {"not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge"}
METHODS = (*FUNCTIONS, *ALIASES)
INPLACE = tuple([f"{name}_" for name in ("eq", "ne", "lt", "le", "gt", "ge", *ALIASES)])
