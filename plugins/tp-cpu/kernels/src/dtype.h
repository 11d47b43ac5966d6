// Element types: sizes, 16-bit floats, and switches over dtypes.
#pragma once
#include <cstdint>
#include <cstring>
#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "isa.h"

namespace TPK_ISA_NS {

struct Half { uint16_t bits; };
struct BFloat { uint16_t bits; };
template <class T> struct Complex { T re, im; };
// A bool is read as "not 0", whatever byte is stored.
struct Bool { uint8_t byte; };

static inline int itemsize(int dtype) {
  static const int8_t sizes[15] = {1, 1, 1, 2, 4, 8, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  return dtype >= 0 && dtype < 15 ? sizes[dtype] : 0;
}
static inline bool is_float(int dtype) { return dtype >= TPK_F16 && dtype <= TPK_F64; }
static inline bool is_half(int dtype) { return dtype == TPK_F16 || dtype == TPK_BF16; }
static inline bool is_integer(int dtype) { return dtype >= TPK_U8 && dtype <= TPK_U64; }

template <class To, class From> static inline To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast keeps the size");
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}

// float16 <-> float32, branch-free so that the loops vectorise on every instruction set. A subnormal float16 is made by
// float32 arithmetic around a magic number, which also does the rounding to nearest even.
static inline float half_to_float(uint16_t half) {
  uint32_t shifted = static_cast<uint32_t>(half) << 16;
  uint32_t sign = shifted & 0x80000000u;
  uint32_t two_w = shifted + shifted;
  float normal = bit_cast<float>((two_w >> 4) + 0x70000000u) * 0x1.0p-112f;
  float subnormal = bit_cast<float>((two_w >> 17) | (126u << 23)) - 0.5f;
  return bit_cast<float>(sign | (two_w < (1u << 27) ? bit_cast<uint32_t>(subnormal) : bit_cast<uint32_t>(normal)));
}
static inline uint16_t float_to_half(float value) {
  uint32_t w = bit_cast<uint32_t>(value);
  float scaled = (bit_cast<float>(w & 0x7fffffffu) * 0x1.0p+112f) * 0x1.0p-110f;
  uint32_t two_w = w + w;
  uint32_t sign = w & 0x80000000u;
  uint32_t bias = two_w & 0xff000000u;
  bias = bias < 0x71000000u ? 0x71000000u : bias;
  uint32_t bits = bit_cast<uint32_t>(bit_cast<float>((bias >> 1) + 0x07800000u) + scaled);
  uint32_t finite = ((bits >> 13) & 0x7c00u) + (bits & 0x0fffu);
  return static_cast<uint16_t>((sign >> 16) | (two_w > 0xff000000u ? 0x7e00u : finite));
}
static inline float bfloat_to_float(uint16_t bits) { return bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
static inline uint16_t float_to_bfloat(float value) {
  uint32_t w = bit_cast<uint32_t>(value);
  uint32_t rounded = (w + 0x7fffu + ((w >> 16) & 1u)) >> 16;
  return static_cast<uint16_t>((w & 0x7fffffffu) > 0x7f800000u ? ((w >> 16) | 0x40u) : rounded);
}

static inline void half_to_float_n(int dtype, const uint16_t* from, float* to, int64_t n) {
  if (dtype == TPK_F16) {
    int64_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8)
      _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
#endif
    for (; i < n; i++) to[i] = half_to_float(from[i]);
    return;
  }
  for (int64_t i = 0; i < n; i++) to[i] = bfloat_to_float(from[i]);
}
static inline void float_to_half_n(int dtype, const float* from, uint16_t* to, int64_t n) {
  if (dtype == TPK_F16) {
    int64_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), 0));
#endif
    for (; i < n; i++) to[i] = float_to_half(from[i]);
    return;
  }
  for (int64_t i = 0; i < n; i++) to[i] = float_to_bfloat(from[i]);
}

}  // namespace TPK_ISA_NS

// switch (dtype) { TPK_FLOATS(TPK_RETURN_CASE, f) }: each case runs the macro with (dtype code, C++ type, extra).
#define TPK_FLOATS(X, ...) X(TPK_F32, float, __VA_ARGS__) X(TPK_F64, double, __VA_ARGS__)
#define TPK_INTS(X, ...) X(TPK_I64, int64_t, __VA_ARGS__) X(TPK_I32, int32_t, __VA_ARGS__) \
  X(TPK_U8, uint8_t, __VA_ARGS__)
#define TPK_SMALL_INTS(X, ...) X(TPK_I8, int8_t, __VA_ARGS__) X(TPK_I16, int16_t, __VA_ARGS__)
#define TPK_UNSIGNED(X, ...) X(TPK_U16, uint16_t, __VA_ARGS__) X(TPK_U32, uint32_t, __VA_ARGS__) \
  X(TPK_U64, uint64_t, __VA_ARGS__)
// unsigned integers that move elements of 1, 2, 4 and 8 bytes
#define TPK_BY_SIZE(X, ...) X(1, uint8_t, __VA_ARGS__) X(2, uint16_t, __VA_ARGS__) X(4, uint32_t, __VA_ARGS__) \
  X(8, uint64_t, __VA_ARGS__)
