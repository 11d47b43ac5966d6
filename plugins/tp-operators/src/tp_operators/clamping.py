"""Values limited to a range: clamp with numbers or tensors as bounds."""
from __future__ import annotations

from builtins import max as larger
from builtins import min as smaller

import tensorplay as tp
from tensorplay.library import ELEMENTWISE, ArgumentError, Tensor, op, result_dtype

from ._operands import BOOL, FLOATING, INTEGER, accept
from .comparison import maximum, minimum
from .selection import where_op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

clamp_scalar = op("clamp_scalar(Operand input, Number? min=None, Number? max=None) -> Tensor", tags=(ELEMENTWISE,))
accept(clamp_scalar, INTEGER, FLOATING)


def _limited(input: Tensor, min: Any, max: Any) -> Tensor:  # noqa: A002
    result = input if min is None else maximum(input, min)
    return result if max is None else minimum(result, max)


clamp_scalar.decomposition(_limited)

def _clamp_mask(input: Tensor, min: Any, max: Any) -> Tensor:  # noqa: A002
    """Where the result is the input itself, so that the gradient passes."""
    if min is None:
        return input <= max
    return input >= min if max is None else (input >= min) & (input <= max)


clamp_scalar.vjp(input=lambda grad, input, min, max: where_op(_clamp_mask(input, min, max), grad, 0))


@clamp_scalar.samples
def _(make: Any) -> Iterator:
    yield make(3, 4), -0.5, 1.0
    yield make(3, 4), None, 0.25
    yield make(3, 4), 0.25, None


clamp_tensor = op("clamp_tensor(Operand input, Operand? min=None, Operand? max=None) -> Tensor", tags=(ELEMENTWISE,))
accept(clamp_tensor, BOOL, FLOATING)
clamp_tensor.decomposition(_limited)


@clamp_tensor.vjp
def _(grad: Tensor, input: Tensor, min: Any, max: Any) -> tuple:  # noqa: A002
    inside = where_op(_clamp_mask(input, min, max), grad, 0)
    # torch's rule: below min the gradient goes to min, above max (and where min > max) to max.
    low = high = None
    if isinstance(min, Tensor):
        below = input < min if max is None else (input < min) & (min < max)
        low = where_op(below, grad, 0)
    if isinstance(max, Tensor):
        above = input > max if min is None else (input > max) | (max < min)
        high = where_op(above, grad, 0)
    return inside, low, high


@clamp_tensor.samples
def _(make: Any) -> Iterator:
    yield make(3, 4), make(3, 4, low=-1, high=-0.2), make(4, low=0.2, high=1)
    yield make(3, 4), None, make(4)


def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:  # noqa: A002
    """`input` limited to [min, max]; each bound is a number, a tensor that broadcasts, or None.

    >>> import tensorplay as tp
    >>> tp.clamp(tp.tensor([-1., 0.5, 3.]), 0, 1).tolist()
    [0.0, 0.5, 1.0]

    NaN stays NaN; where min > max the result is max. Raises ArgumentError if both bounds are None.
    """
    if min is None and max is None:
        raise ArgumentError("clamp: at least one of min and max must be given")
    named = {} if out is None else {"out": out}
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        return clamp_tensor(input, min, max, **named)
    if isinstance(input, Tensor) and input.layout.dtype.category < FLOATING:
        input, min, max = _integer_bounds(input, min, max)  # noqa: A001
    return clamp_scalar(input, min, max, **named)


clamp.op = clamp_scalar.op  # type: ignore[attr-defined]


def _integer_bounds(input: Tensor, min: Any, max: Any) -> tuple:  # noqa: A002
    """A float bound makes the result a float; an int bound beyond the dtype's range becomes the range's end."""
    dtype = result_dtype((input.layout, *[bound for bound in (min, max) if bound is not None]))
    if dtype.category == INTEGER:
        limits = tp.iinfo(dtype)
        min = None if min is None else smaller(larger(min, limits.min), limits.max)  # noqa: A001
        max = None if max is None else smaller(larger(max, limits.min), limits.max)  # noqa: A001
    return input.to(dtype), min, max


def clamp_min(input: Tensor, min: Any, *, out: Tensor | None = None) -> Tensor:  # noqa: A002
    """`input`, at least `min`.

    >>> import tensorplay as tp
    >>> tp.clamp_min(tp.tensor([-1., 2.]), 0).tolist()
    [0.0, 2.0]
    """
    return clamp(input, min, None, out=out)


def clamp_max(input: Tensor, max: Any, *, out: Tensor | None = None) -> Tensor:  # noqa: A002
    """`input`, at most `max`.

    >>> import tensorplay as tp
    >>> tp.clamp_max(tp.tensor([-1., 2.]), 0).tolist()
    [-1.0, 0.0]
    """
    return clamp(input, None, max, out=out)


clip = clamp

FUNCTIONS = ("clamp", "clamp_min", "clamp_max")
ALIASES = {"clip": "clamp"}
METHODS = (*FUNCTIONS, "clip")
INPLACE = ("clamp_", "clip_", "clamp_min_", "clamp_max_")
