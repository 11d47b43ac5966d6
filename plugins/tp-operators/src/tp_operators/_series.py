"""Pieces of the defaults of floating point functions: polynomials, Chebyshev series, signs that survive zeros."""
from __future__ import annotations

from tensorplay.library import Tensor

from .selection import where_op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """coefficients[0] + coefficients[1] * x + ..., by Horner's rule."""
    result: Any = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        result = x * result + coefficient
    return result


def chebyshev(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """The sum of coefficients[k] * T_k(x) for x in [-1, 1], by Clenshaw's recurrence."""
    twice = x + x
    current: Any = coefficients[-1]
    later: Any = 0.0
    for coefficient in reversed(coefficients[1:-1]):
        current, later = twice * current - later + coefficient, current
    return x * current - later + coefficients[0]


def is_negative(x: Tensor) -> Tensor:
    """Whether the sign bit is set; 1 / x tells the two zeros apart. False for NaN."""
    return (x < 0) | (1.0 / x < 0)


def with_sign_of(magnitude: Tensor, x: Tensor) -> Tensor:
    """`magnitude` (not negative), negated where `x` is negative or -0."""
    return where_op(is_negative(x), -magnitude, magnitude)
