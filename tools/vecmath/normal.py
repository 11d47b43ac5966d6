"""The inverse normal distribution as tables: random bits become normal numbers with shifts, a gather, * and +.

An odd number v of W bits stands for the tail probability p = v / 2^(W + 1) in (0, 1/2). Its leading zeros say in which
octave it lies, the next bits in which part of the octave, the rest is the position t in [-1/2, 1/2) inside the part,
as a signed integer. Each part has a polynomial for z = -Phi^-1(p) whose coefficients already contain the scale of t.
``random_numbers.py`` shows the algorithm step by step.
"""

from __future__ import annotations

from dataclasses import dataclass

import mpmath as mp
import numpy as np
from fit import rounded


@dataclass(frozen=True)
class Layout:
    word_bits: int      # W
    part_bits: int      # log2 of the parts of an octave
    position_bits: int  # bits of t that are used
    degree: int
    kind: type


FLOAT32 = Layout(word_bits=32, part_bits=4, position_bits=24, degree=3, kind=np.float32)
FLOAT64 = Layout(word_bits=64, part_bits=2, position_bits=53, degree=7, kind=np.float64)


def quantile(p: mp.mpf) -> mp.mpf:
    """z with P(Z > z) = p, by Newton's method on the logarithm of the tail."""
    z = mp.sqrt(-2 * mp.log(p)) if p < 0.1 else (mp.mpf("0.5") - p) * mp.sqrt(2 * mp.pi)
    for _ in range(60):
        tail = mp.erfc(z / mp.sqrt(2)) / 2
        step = mp.log(tail / p) * tail * mp.sqrt(2 * mp.pi) * mp.exp(z * z / 2)
        z += step
        if abs(step) < mp.mpf(10) ** -30:
            return z
    raise ArithmeticError(f"no quantile for {p}")


def fit_part(layout: Layout, octave: int, part: int) -> tuple[list[float], float]:
    """The coefficients of one part and the largest error of the unrounded polynomial at the fitted points."""
    count = 1 << layout.part_bits
    nodes = layout.degree * 2 + 5
    k = np.arange(nodes, dtype=np.longdouble)
    t = np.cos((2 * k + 1) * np.longdouble(np.pi) / (2 * nodes)) / 2
    half_unit = mp.mpf(1) / (mp.mpf(2) ** (octave + 2))  # p of the octave's lower end
    exact = [mp.mpf(np.format_float_scientific(v, unique=True)) for v in t]
    z = [quantile(half_unit * (1 + (part + mp.mpf("0.5") + v) / count)) for v in exact]
    y = np.array([np.longdouble(mp.nstr(v, 25)) for v in z])
    coefficients = rounded(t, y, np.ones(nodes, dtype=np.longdouble), layout.degree, layout.kind)
    value = sum(np.longdouble(c) * t**d for d, c in enumerate(coefficients))
    scaled = [float(layout.kind(c * 2.0 ** (-layout.position_bits * d))) for d, c in enumerate(coefficients)]
    return scaled, float(np.abs(value - y).max())


def table(layout: Layout) -> tuple[list[list[float]], float]:
    """rows[octave << part_bits | part] = coefficients, lowest first; and the largest error."""
    mp.mp.prec = 120
    rows, worst = [], 0.0
    for octave in range(layout.word_bits):
        for part in range(1 << layout.part_bits):
            coefficients, error = fit_part(layout, octave, part)
            rows.append(coefficients)
            worst = max(worst, error)
    return rows, worst


def bit_patterns(layout: Layout, rows: list[list[float]]) -> list[list[int]]:
    """The coefficients' bits, one list per degree."""
    unsigned = np.uint32 if layout.kind is np.float32 else np.uint64
    return [[int(np.array(row[d], layout.kind).view(unsigned)) for row in rows] for d in range(layout.degree + 1)]
