"""Arithmetic of refdev: IEEE 754's answers where Python raises, and integers that wrap around."""
from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

INF, NAN = math.inf, math.nan


def real_or_complex(real: Callable, complex_function: Callable) -> Callable:
    """A function of a number; where Python refuses an argument (an infinity, a branch point) the answer is NaN."""

    def function(x: Any) -> Any:
        try:
            return complex_function(x) if x.__class__ is complex else real(x)
        except (ValueError, OverflowError, ZeroDivisionError):
            return complex(NAN, NAN) if x.__class__ is complex else NAN

    return function


def exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return INF


def log(x: float) -> float:
    return -INF if x == 0 else math.log(x)


def sqrt(x: float) -> float:
    return x if x == 0 else math.sqrt(x)  # the root of -0 is -0


def complex_exp(x: complex) -> complex:
    return exp(x.real) * complex(math.cos(x.imag), math.sin(x.imag)) if x.imag else complex(exp(x.real), x.imag)


def complex_log(x: complex) -> complex:
    return complex(-INF, cmath.phase(x)) if x == 0 else cmath.log(x)


def floor(x: Any) -> Any:
    return x if x.__class__ is int or x == 0 or not math.isfinite(x) else float(math.floor(x))


def divide(x: Any, y: Any) -> Any:
    if y != 0:
        try:
            return x / y
        except OverflowError:
            return complex(NAN, NAN)
    if x.__class__ is complex:
        return complex(divide(x.real, 0.0), divide(x.imag, 0.0))
    return NAN if x == 0 or x != x else math.copysign(INF, x) * math.copysign(1.0, y)


def floor_divide(x: Any, y: Any) -> Any:
    """Python's floor of the quotient; integers refuse 0, floats divide by it."""
    if x.__class__ is not float:
        return x // y
    return x // y if y != 0 else divide(x, y)


def power(x: Any, y: Any) -> Any:
    if x.__class__ is float:
        try:
            return math.pow(x, y)
        except ValueError:  # a negative base with a fraction, or 0 to a negative power
            return NAN if x != 0 else math.copysign(INF, x) if y % 2 == 1 else INF
        except OverflowError:
            return -INF if x < 0 and y % 2 == 1 else INF
    try:
        return x ** y
    except (ZeroDivisionError, OverflowError):
        return complex(NAN, NAN)


def larger(x: Any, y: Any) -> Any:
    return x if x > y or x != x else y


def smaller(x: Any, y: Any) -> Any:
    return x if x < y or x != x else y


def total(values: list) -> Any:
    """The sum, rounded once; integers and infinities too."""
    if values and values[0].__class__ is float:
        try:
            return math.fsum(values)
        except (OverflowError, ValueError):  # the sum is too large, or holds infinities of both signs
            pass
    return sum(values)


def dot(row: list, column: list) -> Any:
    return total([a * b for a, b in zip(row, column)])


def best_index(values: list) -> int:
    """The first of the largest; the first NaN if there is one."""
    best = 0
    for i, value in enumerate(values):
        if value != value:
            return i
        if value > values[best]:
            best = i
    return best


def truncated(x: Any) -> int:
    """A number as an integer; what has none becomes the most negative one, as on most processors."""
    return int(x) if math.isfinite(x) else -(1 << 63)


def wrapped(values: list, bits: int, signed: bool) -> list:
    """Integers brought into the range of a dtype, modulo 2 to the number of bits."""
    low, size = -(1 << bits - 1) if signed else 0, 1 << bits
    if not values or low <= min(values) and max(values) < low + size:
        return values
    return [(value - low) % size + low for value in values]
