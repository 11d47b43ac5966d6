// What the unary operators do to one element. float has its own vector math; double takes the C library.
#pragma once
#include <cmath>

#include "activation_math.h"
#include "elementwise.h"

namespace TPK_ISA_NS {

struct Neg {
  template <class T> static T apply(T x) { return static_cast<T>(0 - static_cast<Wrap<T>>(x)); }
  static float apply(float x) { return -x; }
  static double apply(double x) { return -x; }
};
struct Abs {
  template <class T> static T apply(T x) { return x < 0 ? Neg::apply(x) : x; }
  static float apply(float x) { return __builtin_fabsf(x); }
  static double apply(double x) { return __builtin_fabs(x); }
};
struct Square {
  template <class T> static T apply(T x) {
    return static_cast<T>(static_cast<Wrap<T>>(x) * static_cast<Wrap<T>>(x));
  }
};
struct Sign {  // NaN gives 0
  template <class T> static T apply(T x) { return static_cast<T>((x > 0) - (x < 0)); }
};
struct Relu {  // NaN stays
  template <class T> static T apply(T x) { return x < 0 ? 0 : x; }
};
struct BitwiseNot { template <class T> static T apply(T x) { return static_cast<T>(~x); } };
struct LogicalNot { template <class T> static uint8_t apply(T x) { return x == 0; } };
struct IsNan { template <class T> static uint8_t apply(T x) { return x != x; } };
struct IsInf {
  template <class T> static uint8_t apply(T x) { return Abs::apply(x) == static_cast<T>(__builtin_inf()); }
};
struct IsFinite {
  template <class T> static uint8_t apply(T x) { return Abs::apply(x) < static_cast<T>(__builtin_inf()); }
};

#define TPK_FLOAT_OP(Name, single, wide) struct Name { \
  static float apply(float x) { return single; } \
  static double apply(double x) { return wide; } };

// of the hardware
TPK_FLOAT_OP(Sqrt, __builtin_sqrtf(x), __builtin_sqrt(x))
TPK_FLOAT_OP(Reciprocal, 1.0f / x, 1.0 / x)
TPK_FLOAT_OP(Rsqrt, 1.0f / __builtin_sqrtf(x), 1.0 / __builtin_sqrt(x))
TPK_FLOAT_OP(Floor, __builtin_floorf(x), __builtin_floor(x))
TPK_FLOAT_OP(Ceil, __builtin_ceilf(x), __builtin_ceil(x))
TPK_FLOAT_OP(Trunc, __builtin_truncf(x), __builtin_trunc(x))
TPK_FLOAT_OP(Round, __builtin_rintf(x), __builtin_rint(x))

static inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
// s (1 - s) without the cancellation; 0 where exp(-x) overflows
static inline double sigmoid_slope(double x) {
  double e = std::exp(-x), s = 1.0 / (1.0 + e), slope = e * s * s;
  return slope > 0 ? slope : 0;
}
static inline double gelu(double x) { return 0.5 * x * (1.0 + std::erf(x * 0.70710678118654752440)); }
static inline double gelu_tanh(double x) {
  return x * sigmoid(x * (1.59576912160573071176 + 0.0713548162726008997 * x * x));
}

// own vector math
TPK_FLOAT_OP(Exp, exp_f32(x), std::exp(x))
TPK_FLOAT_OP(ExpNegated, exp_negated_f32(x), std::exp(-x))
TPK_FLOAT_OP(Exp2, exp2_f32(x), std::exp2(x))
TPK_FLOAT_OP(Expm1, expm1_f32(x), std::expm1(x))
TPK_FLOAT_OP(Log, log_f32(x), std::log(x))
TPK_FLOAT_OP(Log2, log2_f32(x), std::log2(x))
TPK_FLOAT_OP(Log10, log10_f32(x), std::log10(x))
TPK_FLOAT_OP(Log1p, log1p_f32(x), std::log1p(x))
TPK_FLOAT_OP(Tanh, tanh_f32(x), std::tanh(x))
TPK_FLOAT_OP(Erf, erf_f32(x), std::erf(x))
TPK_FLOAT_OP(Erfc, erfc_f32(x), std::erfc(x))
TPK_FLOAT_OP(Sinh, sinh_f32(x), std::sinh(x))
TPK_FLOAT_OP(Cosh, cosh_f32(x), std::cosh(x))
TPK_FLOAT_OP(Asin, asin_f32(x), std::asin(x))
TPK_FLOAT_OP(Acos, acos_f32(x), std::acos(x))
TPK_FLOAT_OP(Atan, atan_f32(x), std::atan(x))
TPK_FLOAT_OP(Sigmoid, sigmoid_f32(x), sigmoid(x))
TPK_FLOAT_OP(Silu, silu_f32(x), x * sigmoid(x))
TPK_FLOAT_OP(Gelu, gelu_f32(x), gelu(x))
TPK_FLOAT_OP(GeluTanh, gelu_tanh_f32(x), gelu_tanh(x))
// for arguments below kTrigLimit
TPK_FLOAT_OP(SmallSin, sin_f32(x), std::sin(x))
TPK_FLOAT_OP(SmallCos, cos_f32(x), std::cos(x))
TPK_FLOAT_OP(SmallTan, tan_f32(x), std::tan(x))

// of the C library, one element at a time
TPK_FLOAT_OP(Sin, sinf(x), std::sin(x))
TPK_FLOAT_OP(Cos, cosf(x), std::cos(x))
TPK_FLOAT_OP(Tan, tanf(x), std::tan(x))
TPK_FLOAT_OP(Asinh, asinhf(x), std::asinh(x))
TPK_FLOAT_OP(Acosh, acoshf(x), std::acosh(x))
TPK_FLOAT_OP(Atanh, atanhf(x), std::atanh(x))

static inline double log_gamma(double x) {
#if defined(__GLIBC__)
  int sign;  // lgamma itself writes a global
  return lgamma_r(x, &sign);
#else
  return std::lgamma(x);
#endif
}

// Reflection for x < 0, recurrence up to 10, then the asymptotic series (its error there is below 1e-16).
static inline double digamma(double x) {
  if (x == 0) return std::copysign(HUGE_VAL, -x);
  double reflection = 0;
  if (x < 0) {
    double nearest = std::round(x);  // the distance to it is exact, also just below 0
    if (x == nearest) return NAN;
    reflection = -M_PI / std::tan(M_PI * (x - nearest));
    x = 1 - x;
  }
  double shift = 0;
  for (; x < 10; x += 1) shift -= 1 / x;
  double s = 1 / (x * x);
  static const double terms[7] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12};
  double series = 0;
  for (int i = 6; i >= 0; i--) series = s * (terms[i] + series);
  return reflection + shift + std::log(x) - 0.5 / x - (x < 1e8 ? series : 0);
}

// Giles' approximation, then two Newton steps on erf (on erfc where erf is close to 1).
static inline double erfinv(double y) {
  double size = std::fabs(y);
  if (!(size < 1)) return size == 1 ? std::copysign(HUGE_VAL, y) : NAN;
  double w = -std::log((1 - size) * (1 + size)), x;
  if (w < 5) {
    static const double near[9] = {1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087,
                                   -4.39150654e-06, -3.5233877e-06, 3.43273939e-07, 2.81022636e-08};
    x = near[8];
    for (int i = 7; i >= 0; i--) x = x * (w - 2.5) + near[i];
  } else {
    static const double far[9] = {2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773,
                                  -0.00367342844, 0.00134934322, 0.000100950558, -0.000200214257};
    double t = std::sqrt(w) - 3;
    if (t > 2.5) t = 2.5;
    x = far[8];
    for (int i = 7; i >= 0; i--) x = x * t + far[i];
  }
  x *= size;
  for (int i = 0; i < (w < 30 ? 3 : 7); i++) {  // beyond the range of the fit it starts further off
    double error = size < 0.5 ? std::erf(x) - size : (1 - size) - std::erfc(x);
    double step = error * 0.88622692545275801365 * std::exp(x * x);
    x -= step / (1 + x * step);
  }
  return std::copysign(x, y);
}

TPK_FLOAT_OP(Erfinv, static_cast<float>(erfinv(x)), erfinv(x))
TPK_FLOAT_OP(Lgamma, static_cast<float>(log_gamma(x)), log_gamma(x))
TPK_FLOAT_OP(Digamma, static_cast<float>(digamma(x)), digamma(x))
#undef TPK_FLOAT_OP

}  // namespace TPK_ISA_NS
