"""References of the elementwise operators: `ELEMENTWISE[name](*arguments)` with NumPy arrays, in float64 or integers.

Arguments come by position in the operator's schema order, attributes included. Where NumPy and torch differ (the sign
of NaN, remainders that are zero), torch's answer is given here.
"""
from __future__ import annotations

import math

import numpy as np
from scipy import special


def floor_div(x, y):
    """Python's floor of the quotient; 0 gives inf or NaN as true division does."""
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype.kind != "f" and y.dtype.kind != "f":
        return np.floor_divide(x, y)
    return np.where(y == 0, np.true_divide(x, y), np.floor_divide(x, y))


def trunc_divide(x, y):
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype.kind == "f" or y.dtype.kind == "f":
        return np.trunc(np.true_divide(x, y))
    quotient = np.floor_divide(x, y)
    return quotient + ((quotient * y != x) & ((x < 0) != (y < 0))).astype(quotient.dtype)


def remainder(x, y):
    x, y = np.asarray(x), np.asarray(y)
    rest = np.fmod(x, y)
    return np.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)


def shift_left(x, count):
    x, bits = np.asarray(x), np.asarray(x).dtype.itemsize * 8
    inside = (np.asarray(count) >= 0) & (np.asarray(count) < bits)
    return np.where(inside, np.left_shift(x, np.where(inside, count, 0).astype(x.dtype)), 0).astype(x.dtype)


def shift_right(x, count):
    x, bits = np.asarray(x), np.asarray(x).dtype.itemsize * 8
    inside = (np.asarray(count) >= 0) & (np.asarray(count) < bits)
    out = np.where(x < 0, -1, 0).astype(x.dtype) if x.dtype.kind == "i" else np.zeros_like(x)
    return np.where(inside, np.right_shift(x, np.where(inside, count, 0).astype(x.dtype)), out)


def sign(x):
    x = np.asarray(x)
    return ((x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)).astype(x.dtype) if x.dtype.kind != "b" else x


def round_decimals(x, decimals=0):
    return np.round(x, decimals)


def lgamma(x):
    """The C library's, which is right at denormals and near its zeros; inf where Python refuses."""
    return np.vectorize(_lgamma, otypes=[np.float64])(x)


def _lgamma(x):
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return math.inf


def digamma(x):
    """-inf at 0, inf at -0, NaN at the other poles. SciPy's is wrong beside the poles: the reflection formula there."""
    x = np.asarray(x, dtype=np.float64)
    turn = np.pi * (x - np.round(x))
    below = special.digamma(1 - x) - np.pi / np.tan(np.where(turn == 0, np.nan, turn))
    return np.where(x == 0, -1 / x, np.where(x < 0, below, special.digamma(x)))


def erfinv(x):
    return np.copysign(special.erfinv(x), x)


def xlogy(x, y):
    return special.xlogy(x, y)


def logit(x, eps=None):
    return special.logit(x if eps is None else np.clip(x, eps, 1 - eps))


def heaviside(x, values):
    x = np.asarray(x)
    return np.where(x == 0, values, (x > 0).astype(x.dtype))


def clamp(x, low=None, high=None):
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def nan_to_num(x, nan=None, posinf=None, neginf=None):
    return np.nan_to_num(x, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)


def sigmoid(x):
    if np.iscomplexobj(x):
        return 1 / (1 + np.exp(-x))
    power = np.exp(-np.abs(x))
    return np.where(np.asarray(x) < 0, power, 1) / (1 + power)


def erfc(x):
    """SciPy's erfc, but above 1 with the square split in two: there exp(-x * x) loses digits."""
    head = np.floor(np.minimum(np.abs(x), 30) * 64) / 64
    rest = np.minimum(np.abs(x), 30) - head
    tail = np.exp(-head * head) * np.exp(-rest * (2 * head + rest)) * special.erfcx(np.abs(x))
    return np.where(np.asarray(x) > 1, tail, special.erfc(x))


def log_sigmoid(x):
    return special.log_expit(x)


def normal_distribution(x):
    return special.ndtr(x)


def normal_density(x):
    return np.exp(-0.5 * np.square(x)) / np.sqrt(2 * np.pi)


def gelu(x, approximate="none"):
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))
    return x * normal_distribution(x)


def gelu_backward(grad, x, approximate="none"):
    if approximate == "tanh":
        bend = np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3))
        slope = np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * x ** 2)
        return grad * (0.5 * (1 + bend) + 0.5 * x * (1 - bend ** 2) * slope)
    return grad * (normal_distribution(x) + x * normal_density(x))


def silu(x):
    return x * sigmoid(x)


def silu_backward(grad, x):
    s = sigmoid(x)
    return grad * s * (1 + x * (1 - s))


def swiglu(gate, up):
    return silu(gate) * up


def swiglu_backward(grad, gate, up):
    return silu_backward(grad * up, gate), grad * silu(gate)


def elu(x, alpha=1.0, scale=1.0, input_scale=1.0):
    return scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) * input_scale))


def softplus(x, beta=1.0, threshold=20.0):
    return np.where(x * beta > threshold, x, np.logaddexp(0, x * beta) / beta)


def hardtanh(x, low=-1.0, high=1.0):
    return np.clip(x, low, high).astype(np.asarray(x).dtype)


def soft_shrink(x, lambd=0.5):
    return np.sign(x) * np.maximum(np.abs(x) - lambd, 0)


def logical(function):
    return lambda x, y: function(np.asarray(x) != 0, np.asarray(y) != 0)


ARITHMETIC = {
    "neg": np.negative, "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide, "pow": np.power,
    "square": np.square, "floor_div": floor_div, "trunc_divide": trunc_divide, "remainder": remainder,
    "fmod": np.fmod,
}
EXPONENTIAL = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / np.asarray(x),
    "logaddexp": np.logaddexp, "logaddexp2": np.logaddexp2, "xlogy": xlogy, "xlog1py": special.xlog1py,
}
TRIGONOMETRIC = {
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "hypot": np.hypot, "sinc": np.sinc, "deg2rad": np.deg2rad, "rad2deg": np.rad2deg,
    "tanh_backward": lambda grad, output: grad * (1 - output ** 2),
}
ROUNDING = {
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": round_decimals, "frac": lambda x: x - np.trunc(x),
    "abs": np.abs, "sign": sign, "signbit": np.signbit, "copysign": np.copysign, "nextafter": np.nextafter,
}
COMPARISON = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "isclose": np.isclose, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "isposinf": np.isposinf,
    "isneginf": np.isneginf, "maximum": np.maximum, "minimum": np.minimum, "fmax": np.fmax, "fmin": np.fmin,
}
BITWISE = {
    "bitwise_not": np.bitwise_not, "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor, "shift_left": shift_left, "shift_right": shift_right,
    "logical_not": np.logical_not, "logical_and": logical(np.logical_and), "logical_or": logical(np.logical_or),
    "logical_xor": logical(np.logical_xor),
}
SELECTION = {
    "where": np.where, "clamp_scalar": clamp, "clamp_tensor": clamp,
    "lerp": lambda x, end, weight: x + weight * (end - x),
    "fma": lambda x, y, z: x * y + z, "addcmul": lambda x, y, z, value=1: x + value * y * z,
    "addcdiv": lambda x, y, z, value=1: x + value * y / z, "nan_to_num": nan_to_num, "heaviside": heaviside,
}
SPECIAL = {
    "erf": special.erf, "erfc": erfc, "erfinv": erfinv, "lgamma": lgamma, "digamma": digamma,
    "trigamma": lambda x: special.polygamma(1, x), "sigmoid": sigmoid, "logit": logit, "entr": special.entr,
    "sigmoid_backward": lambda grad, output: grad * (1 - output) * output,
}
ACTIVATION = {
    "relu": lambda x: np.maximum(x, 0), "relu_backward": lambda grad, output: np.where(output <= 0, 0, grad),
    "gelu": gelu, "gelu_backward": gelu_backward, "silu": silu, "silu_backward": silu_backward, "swiglu": swiglu,
    "swiglu_backward": swiglu_backward, "elu": elu, "softplus": softplus,
    "mish": lambda x: x * np.tanh(softplus(x)), "logsigmoid": log_sigmoid, "softsign": lambda x: x / (1 + np.abs(x)),
    "tanhshrink": lambda x: x - np.tanh(x), "leaky_relu": lambda x, slope=0.01: np.where(x > 0, x, slope * x),
    "hardtanh": hardtanh, "hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "threshold": lambda x, bound, value: np.where(x <= bound, value, x).astype(x.dtype),
    "hardshrink": lambda x, lambd=0.5: np.where(np.abs(x) <= lambd, 0, x), "softshrink": soft_shrink,
}
ELEMENTWISE = {**ARITHMETIC, **EXPONENTIAL, **TRIGONOMETRIC, **ROUNDING, **COMPARISON, **BITWISE, **SELECTION,
               **SPECIAL, **ACTIVATION}
