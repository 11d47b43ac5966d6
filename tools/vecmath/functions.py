"""The vector math functions as programs (see ``program.py``); the coefficients come from ``fit.py``.

All of them are branch-free, so that a compiler can vectorise a loop over them, and stay accurate with and without fused
multiply-add: wherever a product must be exact, the constant has enough trailing zeros.
"""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path

from program import Function, Value, absolute, bits, call, constant, convert, define, polynomial, select, sign_bit

_TEXT = json.loads(Path(__file__).with_name("coefficients.json").read_text())
COEFFICIENTS = {name: [float.fromhex(text) for text in texts] for name, texts in _TEXT.items()}

LOG2_E = math.log2(math.e)
LN2_HIGH = float.fromhex("0x1.62e4p-1")  # 15 bits: times an integer of up to 9 bits it is exact in float32
LN2_LOW = float.fromhex("0x1.7f7d1cf79abcap-20")  # ln 2 - LN2_HIGH
LOG10_2_HIGH = float.fromhex("0x1.3440p-2")
LOG10_2_LOW = math.log10(2) - LOG10_2_HIGH
ROUND = float(3 << 22)  # adding it rounds a float32 to an integer, which then stands in the lowest bits
ROUND_DOUBLE = float(3 << 51)
PI_2_HIGH = float.fromhex("0x1.921fb544p+0")  # 31 bits: times an integer of up to 22 bits it is exact in float64
PI_2_LOW = float.fromhex("0x1.0b4611a626331p-34")
_DOUBLE_200 = struct.unpack("<Q", struct.pack("<d", 200.0))[0]
TRIG_LIMIT = 1048576.0


def _power_of_two(n: Value) -> Value:
    """2^n for -126 <= n <= 128 (2^128 is inf); n as u32 of which only the lowest 9 bits matter."""
    return bits((n << 23) + 0x3F800000, "f32")


def _reduce_exp(x: Value) -> tuple[Value, Value]:
    """(n, r) with x = n ln 2 + r, n <= 128 (so that r may be large); n as in `_power_of_two`."""
    limit = bits_of(ROUND) + 128
    shifted = bits(x * LOG2_E + ROUND, "i32")
    shifted = select(shifted < limit, shifted, constant("i32", limit))  # as integers: one instruction
    whole = bits(shifted, "f32") - ROUND
    r = (x - whole * LN2_HIGH) - whole * LN2_LOW
    return bits(shifted, "u32"), r


def _at_least(x: Value, low: float) -> Value:
    """NaN stays NaN."""
    return select(x < low, constant("f32", low), x)


def bits_of(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0]


def _exp_core(r: Value) -> Value:
    return (r * r * polynomial(r, COEFFICIENTS["exp"]) + r) + 1.0


def _scale(value: Value, n: Value) -> Value:
    """value * 2^n in two exact steps, so that the result may be subnormal or overflow."""
    half = (n << 22) & 0xFF800000  # floor(n / 2), in the place of the exponent
    return value * bits(half + 0x3F800000, "f32") * bits(((n << 23) - half) + 0x3F800000, "f32")


def _exp(x: Value) -> Value:
    n, r = _reduce_exp(_at_least(x, -104.0))
    return _scale(_exp_core(r), n)


def _exp_bounded(x: Value) -> Value:
    """One scaling step; from x = 88.4 on inf, and where x > 89 r is large, but that is inf all the same."""
    n, r = _reduce_exp(x)
    return _exp_core(r) * _power_of_two(n)


def _exp2(x: Value) -> Value:
    x = _at_least(x, -151.0)
    x = select(x > 129.0, constant("f32", 129.0), x)
    shifted = x + ROUND
    n = bits(shifted, "u32")
    fraction = x - (shifted - ROUND)
    # fraction * ln 2 in two parts; the small one joins as exp(r + c) = exp(r) (1 + c)
    high = float.fromhex("0x1.62e43p-1")
    r = fraction * high
    return _scale(_exp_core(r + fraction * (math.log(2) - high)), n)


def _expm1_core(r: Value) -> Value:
    return r + r * r * polynomial(r, COEFFICIENTS["expm1"])


def _expm1(x: Value) -> Value:
    n, r = _reduce_exp(_at_least(x, -18.0))
    half = _power_of_two(n - 1)  # half the scale: 2^128 is no float32
    result = (half * _expm1_core(r) + (half - 0.5)) * 2.0
    return select(absolute(x) < 2.0**-25, x, result)


def _split(x: Value) -> tuple[Value, Value]:
    """(e, m): x = 2^e m with m in [sqrt(1/2), sqrt(2)) for a positive normal x; e as u32."""
    sqrt_half = bits_of(math.sqrt(0.5))
    shifted = bits(x, "u32") - sqrt_half
    e = bits(bits(shifted, "i32") >> 23, "u32")
    return e, bits((shifted & 0x007FFFFF) + sqrt_half, "f32")


def _log_core(f: Value) -> Value:
    """log(1 + f) - f."""
    square = f * f
    return square * f * polynomial(f, COEFFICIENTS["log"]) - square * 0.5


def _log_special(x: Value, result: Value) -> Value:
    """x < 0 and NaN: NaN; 0: -inf; inf: inf."""
    result = select(x < math.inf, result, x)
    result = select(x.equals(0.0), constant("f32", -math.inf), result)
    return select(x < 0.0, constant("f32", math.nan), result)


def _normalise(x: Value) -> tuple[Value, Value, Value]:
    """(e as f32, f, is subnormal) with x = 2^e (1 + f)."""
    tiny = x < 2.0**-126
    e, m = _split(select(tiny, x * 2.0**23, x))
    e = convert(bits(e - select(tiny, constant("u32", 23), constant("u32", 0)), "i32"), "f32")
    return e, m - 1.0, tiny


def _log(x: Value) -> Value:
    e, f, _ = _normalise(x)
    return _log_special(x, (_log_core(f) + e * LN2_LOW + f) + e * LN2_HIGH)


def _log2(x: Value) -> Value:
    e, f, _ = _normalise(x)
    # log2(e) = 1.4375 + rest: f times the short part loses little
    rest = LOG2_E - 1.4375
    core = _log_core(f)
    return _log_special(x, ((core * rest + f * rest) + core * 1.4375) + f * 1.4375 + e)


def _log10(x: Value) -> Value:
    e, f, _ = _normalise(x)
    log10_e, high = math.log10(math.e), 0.43359375
    core = _log_core(f)
    small = (core * (log10_e - high) + f * (log10_e - high)) + e * LOG10_2_LOW
    return _log_special(x, ((small + core * high) + f * high) + e * LOG10_2_HIGH)


def _log1p(x: Value) -> Value:
    u = x + 1.0
    e, m = _split(u)
    is_near = e.equals(0)
    f = select(is_near, x, m - 1.0)
    # what 1 + x lost, relative to u
    lost = select(absolute(x) < 1.0, x - (u - 1.0), 1.0 - (u - x))
    correction = select(is_near, constant("f32", 0.0), lost / u)
    e = convert(bits(e, "i32"), "f32")
    result = (_log_core(f) + (e * LN2_LOW + correction) + f) + e * LN2_HIGH
    result = _log_special(u, result)
    return select(absolute(x) < 2.0**-25, x, result)


def _with_sign(x: Value, magnitude: Value) -> Value:
    return bits(bits(magnitude, "u32") | sign_bit(x), "f32")


def _tanh(x: Value) -> Value:
    t = absolute(x)
    square = t * t
    small = t + t * square * polynomial(square, COEFFICIENTS["tanh"])
    e = call(EXP_BOUNDED, 2.0 * select(t < 10.0, t, 10.0))
    large = 1.0 - 2.0 / (e + 1.0)
    result = select(t < 0.625, small, large)
    return _with_sign(x, select(t.equals(t), result, t))


def _erf_small(x: Value) -> Value:
    """For |x| < 0.9375."""
    return x + x * polynomial(x * x, COEFFICIENTS["erf_small"])


def _erf(x: Value) -> Value:
    t = absolute(x)
    small = _erf_small(t)
    bounded = select(t < 4.0, t, 4.0)
    exponent = bounded + bounded * polynomial(bounded, COEFFICIENTS["erf_large"])
    large = 1.0 - call(EXP_BOUNDED, -exponent)
    result = select(t < 0.9375, small, large)
    return _with_sign(x, select(t.equals(t), result, t))


def _sigmoid(x: Value) -> Value:
    """A result below 2^-126 is 0."""
    return 1.0 / (call(EXP_NEGATED, x) + 1.0)


def _exp_negated(x: Value) -> Value:
    return call(EXP_BOUNDED, -select(x > 88.0, constant("f32", 88.0), x))


def _sigmoid_slope(x: Value) -> tuple[Value, Value]:
    """(s, s (1 - s)): 1 - s is exp(-x) s, which stays accurate where s is close to 1; NaN where exp(-x) is inf."""
    e = call(EXP_NEGATED, x)
    s = 1.0 / (e + 1.0)
    return s, e * s * s


def _silu(x: Value) -> Value:
    return x / (call(EXP_NEGATED, x) + 1.0)


def _quadrant(x: Value) -> tuple[Value, Value]:
    """(q, r): x = q pi/2 + r for |x| < TRIG_LIMIT, through float64; q as u32."""
    wide = convert(x, "f64")
    shifted = wide * (2 / math.pi) + ROUND_DOUBLE
    n = shifted - ROUND_DOUBLE
    r = (wide - n * PI_2_HIGH) - n * PI_2_LOW
    return bits(convert(n, "i32"), "u32"), convert(r, "f32")


def _sin_cos(q: Value, r: Value) -> Value:
    """sin(r + q pi/2)."""
    s = r * r
    sine = r + r * s * polynomial(s, COEFFICIENTS["sin"])
    cosine = (1.0 - 0.5 * s) + s * s * polynomial(s, COEFFICIENTS["cos"])
    odd = (q & 1).equals(1)
    return bits(bits(select(odd, cosine, sine), "u32") ^ ((q & 2) << 30), "f32")


def _sin(x: Value) -> Value:
    q, r = _quadrant(x)
    return select(absolute(x) < 2.0**-12, x, _sin_cos(q, r))


def _cos(x: Value) -> Value:
    q, r = _quadrant(x)
    return _sin_cos(q + 1, r)


def _normal(x: Value) -> tuple[Value, Value]:
    """(Phi(x), exp(-x^2 / 2)): one exponential gives both; past |x| = 4.5 Phi(-|x|) < 4e-6 only keeps its order."""
    t = absolute(x)
    e = call(EXP_BOUNDED, _at_least(x * x * -0.5, -88.0))  # at -88 it is 0
    tail = e * polynomial(select(t < 4.5, t, 4.5), COEFFICIENTS["mills"])
    return select(x < 0.0, tail, 1.0 - tail), e


def _tan(x: Value) -> Value:
    q, r = _quadrant(x)
    sine, cosine = _sin_cos(q, r), _sin_cos(q + 1, r)
    return select(absolute(x) < 2.0**-12, x, sine / cosine)


def _atan_core(z: Value) -> Value:
    """atan(z) for 0 <= z <= 1."""
    s = z * z
    return z + z * s * polynomial(s, COEFFICIENTS["atan"])


def _reflect(condition: Value, angle: Value, whole: float) -> Value:
    """whole - angle where the condition holds; `whole` in two parts."""
    high = math.floor(whole * 2**20) / 2**20
    return select(condition, constant("f32", high) - (angle - (whole - high)), angle)


def _atan(x: Value) -> Value:
    t = absolute(x)
    large = t > 1.0
    result = _reflect(large, _atan_core(select(large, 1.0 / t, t)), math.pi / 2)
    return _with_sign(x, result)


def _atan2(y: Value, x: Value) -> Value:
    top, bottom = absolute(y), absolute(x)
    swap = top > bottom
    small, large = select(swap, bottom, top), select(swap, top, bottom)
    ratio = small / large
    ratio = select(small.equals(large), constant("f32", 1.0), ratio)  # also inf / inf
    ratio = select(large.equals(0.0), constant("f32", 0.0), ratio)
    angle = _reflect(swap, _atan_core(ratio), math.pi / 2)
    angle = _reflect(sign_bit(x) > 0, angle, math.pi)
    angle = select(x.equals(x), angle, x)
    return select(y.equals(y), _with_sign(y, angle), y)


def _asin_parts(x: Value) -> tuple[Value, Value, Value]:
    """(|x| > 1/2, p, |x|): p is asin |x|, or half of acos |x| in the first case."""
    t = absolute(x)
    large = t > 0.5
    z = select(large, 0.5 * (1.0 - t), t * t)
    root = select(large, z.sqrt(), t)
    return large, root + root * z * polynomial(z, COEFFICIENTS["asin"]), t


def _asin(x: Value) -> Value:
    large, p, _ = _asin_parts(x)
    return _with_sign(x, _reflect(large, select(large, 2.0 * p, p), math.pi / 2))


def _acos(x: Value) -> Value:
    large, p, _ = _asin_parts(x)
    double = _reflect(x < 0.0, 2.0 * p, math.pi)
    half = math.floor(math.pi / 2 * 2**20) / 2**20
    return select(large, double, constant("f32", half) - (_with_sign_of(x, p) - (math.pi / 2 - half)))


def _with_sign_of(x: Value, value: Value) -> Value:
    return bits(bits(value, "u32") ^ sign_bit(x), "f32")


def _half_exp(t: Value) -> tuple[Value, Value]:
    """(exp(t) / 2, exp(-t) / 2) for t >= 0, as squares of exp(t / 2) so that the first overflows late."""
    root = call(EXP, 0.5 * t)
    return (0.5 * root) * root, 0.5 / root / root


def _sinh(x: Value) -> Value:
    t = absolute(x)
    up, down = _half_exp(t)
    s = t * t
    small = t + t * s * polynomial(s, COEFFICIENTS["sinh"])
    return _with_sign(x, select(t < 1.0, small, up - down))


def _cosh(x: Value) -> Value:
    up, down = _half_exp(absolute(x))
    return up + down


def _erfc(x: Value) -> Value:
    t = absolute(x)
    t = select(t > 10.1, constant("f32", 10.1), t)
    # exp(-t^2) with the square in two parts: `high` has 12 bits
    high = bits(bits(t, "u32") & 0xFFFFF000, "f32")
    low = (t - high) * (t + high)
    e = call(EXP, -(high * high))
    tail = e * polynomial((t - 4.0) / (t + 4.0), COEFFICIENTS["erfc"]) / (2.0 * t + 1.0)
    tail = tail - tail * low * polynomial(low, [1.0, -1 / 2, 1 / 6, -1 / 24, 1 / 120])
    result = select(t < 0.65, 1.0 - _erf_small(x), select(x < 0.0, 2.0 - tail, tail))
    return select(x.equals(x), result, x)


def _pow(x: Value, y: Value) -> Value:
    """2^(y log2 |x|) in float64, then the cases of IEEE 754."""
    size = absolute(x)
    e, f, _ = _normalise(size)
    f = convert(f, "f64")
    s = f / (f + 2.0)
    log = convert(e, "f64") + s * polynomial(s * s, COEFFICIENTS["log2_wide"])
    log = select(size < math.inf, log, convert(size, "f64"))
    log = select(size.equals(0.0), constant("f64", -math.inf), log)
    exponent = convert(y, "f64") * log
    # one select for both ends: two make GCC 12 branch
    pattern = bits(exponent, "u64")
    limit = bits((pattern & (1 << 63)) | _DOUBLE_200, "f64")
    exponent = select(bits(pattern & ((1 << 63) - 1), "f64") > 200.0, limit, exponent)
    shifted = exponent + ROUND_DOUBLE
    power = polynomial(exponent - (shifted - ROUND_DOUBLE), COEFFICIENTS["exp2_wide"])
    scale = bits((bits(shifted, "u64") << 52) + 0x3FF0000000000000, "f64")
    result = convert(power * scale, "f32")
    # y as an integer; from 2^24 on every float32 is an even one
    wide = convert(y, "f64")
    rounded = wide + ROUND_DOUBLE
    whole = (rounded - ROUND_DOUBLE).equals(wide)
    odd = convert(bits(rounded, "u64"), "u32") << 31
    odd = select(absolute(y) < 2.0**24, odd, constant("u32", 0))
    # a NaN among x and y comes through the arithmetic, except where the clamps above saw it as a number
    is_one = size.equals(1.0) & y.equals(y) & (whole | (x > 0.0))
    is_one = is_one | x.equals(1.0) | y.equals(0.0)
    is_nan = (x < 0.0) & (size < math.inf) & _not(whole)
    result = select(is_one, constant("f32", 1.0), result)
    nan = select(is_nan, constant("u32", 0x7FC00000), constant("u32", 0))
    return bits(bits(result, "u32") | (odd & sign_bit(x)) | nan, "f32")


def _not(condition: Value) -> Value:
    return condition.equals(constant("b", False))


def _gelu(x: Value) -> Value:
    return x * _normal(x)[0]


def _gelu_tanh(x: Value) -> Value:
    """0.5 x (1 + tanh u) is x sigmoid(2 u)."""
    k = 2 * math.sqrt(2 / math.pi)
    return x / (call(EXP_NEGATED, x * (x * x * (0.044715 * k) + k)) + 1.0)


def _gelu_derivative(x: Value) -> Value:
    cdf, e = _normal(x)
    return cdf + select(e > 0.0, x * (e * (1 / math.sqrt(2 * math.pi))), 0.0)


def _gelu_tanh_derivative(x: Value) -> Value:
    k = 2 * math.sqrt(2 / math.pi)
    square = x * x
    s, slope = _sigmoid_slope(x * (square * (0.044715 * k) + k))
    inner = x * (square * (3 * 0.044715 * k) + k)
    return s + select(slope > 0.0, inner * slope, 0.0)


def _silu_derivative(x: Value) -> Value:
    s, slope = _sigmoid_slope(x)
    return s + select(slope > 0.0, x * slope, 0.0)


EXP = define("exp_f32", "exp(x)", _exp, "f32")
EXP_BOUNDED = define("exp_bounded_f32", "exp(x) for x >= -88; from 88.4 on inf, below -87.7 0", _exp_bounded, "f32")
EXP_NEGATED = define("exp_negated_f32", "exp(-x) for sigmoids: 0 for x >= 88, inf for x < -88.4",
                     _exp_negated, "f32")
EXP2 = define("exp2_f32", "2^x", _exp2, "f32")
EXPM1 = define("expm1_f32", "exp(x) - 1", _expm1, "f32")
LOG = define("log_f32", "log(x)", _log, "f32")
LOG2 = define("log2_f32", "log2(x)", _log2, "f32")
LOG10 = define("log10_f32", "log10(x)", _log10, "f32")
LOG1P = define("log1p_f32", "log(1 + x)", _log1p, "f32")
TANH = define("tanh_f32", "tanh(x)", _tanh, "f32")
ERF = define("erf_f32", "erf(x)", _erf, "f32")
SIGMOID = define("sigmoid_f32", "1 / (1 + exp(-x))", _sigmoid, "f32")
SIN = define("sin_f32", "sin(x) for |x| < TRIG_LIMIT", _sin, "f32")
COS = define("cos_f32", "cos(x) for |x| < TRIG_LIMIT", _cos, "f32")
TAN = define("tan_f32", "tan(x) for |x| < TRIG_LIMIT", _tan, "f32")
ATAN = define("atan_f32", "atan(x)", _atan, "f32")
ATAN2 = define("atan2_f32", "atan2(x, y): the angle of the point (y, x)", _atan2, "f32", "f32")
ASIN = define("asin_f32", "asin(x)", _asin, "f32")
ACOS = define("acos_f32", "acos(x)", _acos, "f32")
SINH = define("sinh_f32", "sinh(x)", _sinh, "f32")
COSH = define("cosh_f32", "cosh(x)", _cosh, "f32")
ERFC = define("erfc_f32", "1 - erf(x)", _erfc, "f32")
POW = define("pow_f32", "x^y", _pow, "f32", "f32")
SILU = define("silu_f32", "x sigmoid(x)", _silu, "f32")
SILU_DERIVATIVE = define("silu_derivative_f32", "d silu / d x", _silu_derivative, "f32")
GELU = define("gelu_f32", "x Phi(x)", _gelu, "f32")
GELU_DERIVATIVE = define("gelu_derivative_f32", "d gelu / d x", _gelu_derivative, "f32")
GELU_TANH = define("gelu_tanh_f32", "gelu, tanh approximation", _gelu_tanh, "f32")
GELU_TANH_DERIVATIVE = define("gelu_tanh_derivative_f32", "d gelu_tanh / d x", _gelu_tanh_derivative, "f32")

ELEMENTARY: tuple[Function, ...] = (
    EXP, EXP_BOUNDED, EXP_NEGATED, EXP2, EXPM1, LOG, LOG2, LOG10, LOG1P, TANH, ERF, SIGMOID, SIN, COS, TAN, ATAN, ATAN2,
    ASIN, ACOS, SINH, COSH, ERFC, POW)
ACTIVATIONS: tuple[Function, ...] = (SILU, SILU_DERIVATIVE, GELU, GELU_DERIVATIVE, GELU_TANH, GELU_TANH_DERIVATIVE)
