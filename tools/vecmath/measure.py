"""Measures the error of every function without fused multiply-add, in units in the last place of float32.

The reference is the C library's double precision. The kernels' own test does the same with each instruction set.
"""

from __future__ import annotations

import math

import numpy as np
from functions import ELEMENTARY, TRIG_LIMIT
from program import evaluate

SCALAR = {"exp": math.exp, "exp2": math.exp2 if hasattr(math, "exp2") else lambda x: 2.0**x, "expm1": math.expm1,
          "log": math.log, "log2": math.log2, "log10": math.log10, "log1p": math.log1p, "tanh": math.tanh,
          "erf": math.erf, "erfc": math.erfc, "tan": math.tan, "atan": math.atan, "asin": math.asin,
          "acos": math.acos, "sinh": math.sinh, "cosh": math.cosh, "sin": math.sin, "cos": math.cos,
          "sigmoid": lambda x: 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x))}
RANGES = {"exp": (-87.3, 88.7), "exp2": (-126, 127.9), "expm1": (-20, 88.7), "log": (1e-45, 3e38),
          "log2": (1e-45, 3e38), "log10": (1e-45, 3e38), "log1p": (-0.999999, 1e30), "tanh": (-12, 12),
          "erf": (-6, 6), "erfc": (-6, 9.2), "tan": (-TRIG_LIMIT, TRIG_LIMIT), "atan": (-1e30, 1e30),
          "asin": (-1, 1), "acos": (-1, 1), "sinh": (-89.4, 89.4), "cosh": (-89.4, 89.4),
          "sin": (-TRIG_LIMIT, TRIG_LIMIT), "cos": (-TRIG_LIMIT, TRIG_LIMIT), "sigmoid": (-87, 20)}


def samples(low: float, high: float, count: int = 200_000) -> np.ndarray:
    """Uniform values of the range, uniform bit patterns within it, and values around 0 and 1."""
    random = np.random.default_rng(1)
    uniform = random.uniform(low, high, count)
    patterns = random.integers(0, 1 << 32, 4 * count, dtype=np.uint32).view(np.float32).astype(np.float64)
    near = np.concatenate([random.uniform(-2, 2, count), 1 + random.uniform(-0.5, 1, count)])
    everything = np.concatenate([uniform, patterns, near])
    return everything[(everything >= low) & (everything <= high)].astype(np.float32)


def ulp_error(result: np.ndarray, exact: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.frexp(np.abs(exact))[1] - 24, -149)
        return np.abs(result.astype(np.float64) - exact) / np.ldexp(1.0, exponent)


def main() -> None:
    for function in ELEMENTARY:
        name = function.name.removesuffix("_f32")
        if name not in SCALAR:
            continue
        x = samples(*RANGES[name])
        exact = np.array([SCALAR[name](float(v)) for v in x])
        error = ulp_error(evaluate(function, x), exact)
        worst = int(np.nanargmax(error))
        print(f"{name:8} max {error[worst]:.3f} ulp at {x[worst]!r}, mean {np.nanmean(error):.3f}")


if __name__ == "__main__":
    main()
