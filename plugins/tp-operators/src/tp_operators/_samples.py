"""Example inputs for whole groups of elementwise operators."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def sample_unary(function: Any, low: float = -2, high: float = 2, dtype: Any = None) -> None:
    """A matrix, a 0-d tensor and a transposed one, with values in [low, high]."""

    def samples(make: Any) -> Iterator:
        yield (make(3, 4, low=low, high=high, dtype=dtype),)
        yield (make(low=low, high=high, dtype=dtype),)
        yield (make(4, 2, low=low, high=high, dtype=dtype).t(),)

    function.samples(samples)


def sample_binary(function: Any, low: float = -2, high: float = 2, dtype: Any = None, other: tuple | None = None,
                  number: Any = None) -> None:
    """Equal shapes, broadcasting shapes, and a number if one is given; `other` is the second operand's range."""
    other_low, other_high = other or (low, high)

    def samples(make: Any) -> Iterator:
        first = make(3, 4, low=low, high=high, dtype=dtype)
        yield first, make(3, 4, low=other_low, high=other_high, dtype=dtype)
        yield first, make(4, low=other_low, high=other_high, dtype=dtype)
        yield make(2, 1, 3, low=low, high=high, dtype=dtype), make(4, 1, low=other_low, high=other_high, dtype=dtype)
        if number is not None:
            yield first, number

    function.samples(samples)
