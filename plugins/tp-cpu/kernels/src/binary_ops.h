// What the operators of two and three tensors do to one element.
#pragma once
#include "unary_ops.h"

namespace TPK_ISA_NS {

#define TPK_WRAPPING(Name, sign) struct Name { \
  template <class T> static T apply(T x, T y) { \
    return static_cast<T>(static_cast<Wrap<T>>(x) sign static_cast<Wrap<T>>(y)); \
  } };
TPK_WRAPPING(Add, +)
TPK_WRAPPING(Sub, -)
TPK_WRAPPING(Mul, *)
#undef TPK_WRAPPING
struct Div { template <class T> static T apply(T x, T y) { return x / y; } };
struct Maximum {  // a NaN on either side wins
  template <class T> static T apply(T x, T y) { return x > y || x != x ? x : y; }
};
struct Minimum {
  template <class T> static T apply(T x, T y) { return x < y || x != x ? x : y; }
};
struct Atan2 {
  static float apply(float x, float y) { return atan2_f32(x, y); }
  static double apply(double x, double y) { return std::atan2(x, y); }
};

#define TPK_COMPARISON(Name, sign) struct Name { \
  template <class T> static uint8_t apply(T x, T y) { return x sign y; } };
TPK_COMPARISON(Eq, ==)
TPK_COMPARISON(Ne, !=)
TPK_COMPARISON(Lt, <)
TPK_COMPARISON(Le, <=)
TPK_COMPARISON(Gt, >)
TPK_COMPARISON(Ge, >=)
#undef TPK_COMPARISON
struct LogicalAnd { template <class T> static uint8_t apply(T x, T y) { return (x != 0) & (y != 0); } };
struct LogicalOr { template <class T> static uint8_t apply(T x, T y) { return (x != 0) | (y != 0); } };
struct LogicalXor { template <class T> static uint8_t apply(T x, T y) { return (x != 0) ^ (y != 0); } };
struct BitwiseAnd { template <class T> static T apply(T x, T y) { return x & y; } };
struct BitwiseOr { template <class T> static T apply(T x, T y) { return x | y; } };
struct BitwiseXor { template <class T> static T apply(T x, T y) { return x ^ y; } };

// Counts outside 0..bits-1 shift everything out: 0, or the sign to the right.
struct ShiftLeft {
  template <class T> static T apply(T x, T count) {
    constexpr T bits = sizeof(T) * 8;
    bool inside = count >= 0 && count < bits;
    return inside ? static_cast<T>(static_cast<Wrap<T>>(x) << (inside ? count : 0)) : 0;
  }
};
struct ShiftRight {
  template <class T> static T apply(T x, T count) {
    constexpr T bits = sizeof(T) * 8;
    return x >> (count >= 0 && count < bits ? count : bits - 1) >> (sizeof(T) == 1 && count >= bits ? 1 : 0);
  }
};

// Division of integers by 0 is an error that the loop notes; the smallest integer by -1 wraps.
struct Quotient {
  template <class T> static T apply(T x, T y) {
    if (y == static_cast<T>(-1) && std::is_signed<T>::value) return Neg::apply(x);
    T quotient = static_cast<T>(x / y);
    return static_cast<T>(quotient - ((x % y != 0) && ((x < 0) != (y < 0))));
  }
};
struct FloorDiv {
  template <class T> static T apply(T x, T y) { return Quotient::apply(x, y); }
  static float apply(float x, float y) { return of_rest(x, y, fmodf(x, y)); }
  static double apply(double x, double y) { return of_rest(x, y, std::fmod(x, y)); }

  // from rest = fmod(x, y), without branches
  static float of_rest(float x, float y, float rest) { return of_floats(x, y, rest, __builtin_floorf); }
  static double of_rest(double x, double y, double rest) { return of_floats(x, y, rest, __builtin_floor); }

 private:
  template <class T, class Floor> static T of_floats(T x, T y, T rest, Floor floor) {
    T quotient = (x - rest) / y;
    quotient -= rest != 0 && (y < 0) != (rest < 0) ? static_cast<T>(1) : static_cast<T>(0);
    T whole = floor(quotient);
    whole += quotient - whole > static_cast<T>(0.5) ? static_cast<T>(1) : static_cast<T>(0);
    T exact = x / y;
    T zero = exact < 0 || 1 / exact < 0 ? -static_cast<T>(0) : static_cast<T>(0);
    return y == 0 ? exact : quotient == 0 ? zero : whole;
  }
};
struct Remainder {  // has the sign of the divisor
  template <class T> static T apply(T x, T y) {
    if (y == static_cast<T>(-1) && std::is_signed<T>::value) return 0;
    T rest = static_cast<T>(x % y);
    return static_cast<T>(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
  }
  static float apply(float x, float y) { return of_rest(x, y, fmodf(x, y)); }
  static double apply(double x, double y) { return of_rest(x, y, std::fmod(x, y)); }
  template <class T> static T of_rest(T, T y, T rest) { return rest != 0 && (y < 0) != (rest < 0) ? rest + y : rest; }
};
struct Fmod {
  template <class T> static T apply(T x, T y) {
    return y == static_cast<T>(-1) && std::is_signed<T>::value ? 0 : static_cast<T>(x % y);
  }
  static float apply(float x, float y) { return fmodf(x, y); }
  static double apply(double x, double y) { return std::fmod(x, y); }
  template <class T> static T of_rest(T, T, T rest) { return rest; }
};

struct Pow {
  static float apply(float x, float y) { return pow_f32(x, y); }
  static double apply(double x, double y) { return std::pow(x, y); }
  // A negative power of an integer is 0 unless the base is 1 or -1 (and 0 for base 0).
  template <class T> static T apply(T x, T y) {
    if (y < 0) return x == 1 ? 1 : x == static_cast<T>(-1) ? (y & 1 ? static_cast<T>(-1) : 1) : 0;
    Wrap<T> result = 1, base = static_cast<Wrap<T>>(x);
    for (; y != 0; y = static_cast<T>(y >> 1), base *= base)
      if (y & 1) result *= base;
    return static_cast<T>(result);
  }
};

// ---- derivatives and fused forms ----

static inline double gelu_derivative(double x) {
  double density = std::exp(-0.5 * x * x) * 0.39894228040143267794;
  return 0.5 * (1.0 + std::erf(x * 0.70710678118654752440)) + (density > 0 ? x * density : 0);
}
static inline double gelu_tanh_derivative(double x) {
  double u = x * (1.59576912160573071176 + 0.0713548162726008997 * x * x), slope = sigmoid_slope(u);
  return sigmoid(u) + (slope > 0 ? x * (1.59576912160573071176 + 3 * 0.0713548162726008997 * x * x) * slope : 0);
}
static inline double silu_derivative(double x) {
  double slope = sigmoid_slope(x);
  return sigmoid(x) + (slope > 0 ? x * slope : 0);
}

#define TPK_FLOAT_OP(Name, single, wide) struct Name { \
  static float apply(float x, float y) { return single; } \
  static double apply(double x, double y) { return wide; } };
TPK_FLOAT_OP(GeluBackward, x * gelu_derivative_f32(y), x * gelu_derivative(y))
TPK_FLOAT_OP(GeluTanhBackward, x * gelu_tanh_derivative_f32(y), x * gelu_tanh_derivative(y))
TPK_FLOAT_OP(SiluBackward, x * silu_derivative_f32(y), x * silu_derivative(y))
TPK_FLOAT_OP(ReluBackward, y <= 0 ? 0 : x, y <= 0 ? 0 : x)
TPK_FLOAT_OP(SigmoidBackward, x * ((1 - y) * y), x * ((1 - y) * y))
TPK_FLOAT_OP(TanhBackward, x * (1 - y * y), x * (1 - y * y))
TPK_FLOAT_OP(Swiglu, silu_f32(x) * y, x * sigmoid(x) * y)
#undef TPK_FLOAT_OP

struct Fma { template <class T> static T apply(T x, T y, T z) { return x * y + z; } };
struct Lerp {
  template <class T> static T apply(T start, T end, T weight) {
    T range = end - start;
    return weight < static_cast<T>(0.5) ? start + weight * range : end - range * (1 - weight);
  }
};

}  // namespace TPK_ISA_NS
