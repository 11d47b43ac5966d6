// Rendered by tools/vecmath/render.py from tools/vecmath/functions.py: do not edit.
// Branch-free scalar functions that vectorise inside a loop; accurate with and without fused multiply-add.
#pragma once
#include "dtype.h"

#define TPK_INLINE static inline __attribute__((always_inline, unused))

namespace TPK_ISA_NS {
// sin, cos and tan are for smaller |x| than this; beyond it take the C library's.
constexpr float kTrigLimit = 0x1.0p+20f;
}  // namespace TPK_ISA_NS

namespace TPK_ISA_NS {

// exp(x)
TPK_INLINE float exp_f32(float x) {
  const float v0 = (x < -104.0f) ? -104.0f : x;
  const int32_t v1 = bit_cast<int32_t>((v0 * 0x1.715476p+0f) + 0x1.8p+23f);
  const int32_t v2 = (v1 < 0x4b400080) ? v1 : 0x4b400080;
  const float v3 = bit_cast<float>(v2) - 0x1.8p+23f;
  const float v4 = (v0 - (v3 * 0x1.62e4p-1f)) - (v3 * 0x1.7f7d1cp-20f);
  const float v5 = ((0x1.6a496p-10f * v4) + 0x1.1239ap-7f) * v4;
  const float v6 = ((v5 + 0x1.5558b4p-5f) * v4) + 0x1.555492p-3f;
  const float v7 = (v4 * v4) * ((v6 * v4) + 0x1.fffffcp-2f);
  const uint32_t v8 = bit_cast<uint32_t>(v2);
  const uint32_t v9 = (v8 << 22) & 0xff800000u;
  const float v10 = ((v7 + v4) + 1.0f) * bit_cast<float>(v9 + 0x3f800000u);
  const float v11 = bit_cast<float>(((v8 << 23) - v9) + 0x3f800000u);
  return v10 * v11;
}

// exp(x) for x >= -88; from 88.4 on inf, below -87.7 0
TPK_INLINE float exp_bounded_f32(float x) {
  const int32_t v0 = bit_cast<int32_t>((x * 0x1.715476p+0f) + 0x1.8p+23f);
  const int32_t v1 = (v0 < 0x4b400080) ? v0 : 0x4b400080;
  const float v2 = bit_cast<float>(v1) - 0x1.8p+23f;
  const float v3 = (x - (v2 * 0x1.62e4p-1f)) - (v2 * 0x1.7f7d1cp-20f);
  const float v4 = ((0x1.6a496p-10f * v3) + 0x1.1239ap-7f) * v3;
  const float v5 = ((v4 + 0x1.5558b4p-5f) * v3) + 0x1.555492p-3f;
  const float v6 = (v3 * v3) * ((v5 * v3) + 0x1.fffffcp-2f);
  const uint32_t v7 = (bit_cast<uint32_t>(v1) << 23) + 0x3f800000u;
  const float v8 = ((v6 + v3) + 1.0f) * bit_cast<float>(v7);
  return v8;
}

// exp(-x) for sigmoids: 0 for x >= 88, inf for x < -88.4
TPK_INLINE float exp_negated_f32(float x) {
  const float v0 = exp_bounded_f32(-((x > 88.0f) ? 88.0f : x));
  return v0;
}

// 2^x
TPK_INLINE float exp2_f32(float x) {
  const float v0 = (x < -151.0f) ? -151.0f : x;
  const float v1 = (v0 > 129.0f) ? 129.0f : v0;
  const float v2 = v1 + 0x1.8p+23f;
  const float v3 = v1 - (v2 - 0x1.8p+23f);
  const float v4 = (v3 * 0x1.62e43p-1f) + (v3 * -0x1.05c61p-29f);
  const float v5 = ((0x1.6a496p-10f * v4) + 0x1.1239ap-7f) * v4;
  const float v6 = ((v5 + 0x1.5558b4p-5f) * v4) + 0x1.555492p-3f;
  const float v7 = (v4 * v4) * ((v6 * v4) + 0x1.fffffcp-2f);
  const uint32_t v8 = bit_cast<uint32_t>(v2);
  const uint32_t v9 = (v8 << 22) & 0xff800000u;
  const float v10 = ((v7 + v4) + 1.0f) * bit_cast<float>(v9 + 0x3f800000u);
  const float v11 = bit_cast<float>(((v8 << 23) - v9) + 0x3f800000u);
  return v10 * v11;
}

// exp(x) - 1
TPK_INLINE float expm1_f32(float x) {
  const float v0 = bit_cast<float>(bit_cast<uint32_t>(x) & 0x7fffffffu);
  const float v1 = (x < -18.0f) ? -18.0f : x;
  const int32_t v2 = bit_cast<int32_t>((v1 * 0x1.715476p+0f) + 0x1.8p+23f);
  const int32_t v3 = (v2 < 0x4b400080) ? v2 : 0x4b400080;
  const uint32_t v4 = ((bit_cast<uint32_t>(v3) - 1u) << 23) + 0x3f800000u;
  const float v5 = bit_cast<float>(v4);
  const float v6 = bit_cast<float>(v3) - 0x1.8p+23f;
  const float v7 = (v1 - (v6 * 0x1.62e4p-1f)) - (v6 * 0x1.7f7d1cp-20f);
  const float v8 = (0x1.9e77eep-13f * v7) + 0x1.6d3a5ep-10f;
  const float v9 = (((v8 * v7) + 0x1.1112d6p-7f) * v7) + 0x1.5554f8p-5f;
  const float v10 = (((v9 * v7) + 0x1.555554p-3f) * v7) + 0x1.0p-1f;
  const float v11 = (v5 * (v7 + ((v7 * v7) * v10))) + (v5 - 0x1.0p-1f);
  return (v0 < 0x1.0p-25f) ? x : (v11 * 2.0f);
}

// log(x)
TPK_INLINE float log_f32(float x) {
  const bool v0 = x < 0x1.0p-126f;
  const uint32_t v1 = bit_cast<uint32_t>(v0 ? (x * 0x1.0p+23f) : x);
  const uint32_t v2 = v1 - 0x3f3504f3u;
  const float v3 = bit_cast<float>((v2 & 0x7fffffu) + 0x3f3504f3u);
  const float v4 = v3 - 1.0f;
  const float v5 = v4 * v4;
  const float v6 = (0x1.14760cp-4f * v4) + -0x1.de02bcp-4f;
  const float v7 = (((v6 * v4) + 0x1.e6bf3ap-4f) * v4) + -0x1.fc2886p-4f;
  const float v8 = (((v7 * v4) + 0x1.233ba8p-3f) * v4) + -0x1.555c46p-3f;
  const float v9 = (((v8 * v4) + 0x1.99a476p-3f) * v4) + -0x1.000006p-2f;
  const float v10 = (v5 * v4) * ((v9 * v4) + 0x1.555548p-2f);
  const uint32_t v11 = bit_cast<uint32_t>(bit_cast<int32_t>(v2) >> 23);
  const int32_t v12 = bit_cast<int32_t>(v11 - (v0 ? 23u : 0u));
  const float v13 = static_cast<float>(v12);
  const float v14 = (v10 - (v5 * 0x1.0p-1f)) + (v13 * 0x1.7f7d1cp-20f);
  const float v15 = (x < __builtin_inff()) ? ((v14 + v4) + (v13 * 0x1.62e4p-1f)) : x;
  const float v16 = (x < 0.0f) ? __builtin_nanf("") : ((x == 0.0f) ? -__builtin_inff() : v15);
  return v16;
}

// log2(x)
TPK_INLINE float log2_f32(float x) {
  const bool v0 = x < 0x1.0p-126f;
  const uint32_t v1 = bit_cast<uint32_t>(v0 ? (x * 0x1.0p+23f) : x);
  const uint32_t v2 = v1 - 0x3f3504f3u;
  const float v3 = bit_cast<float>((v2 & 0x7fffffu) + 0x3f3504f3u);
  const float v4 = v3 - 1.0f;
  const float v5 = v4 * v4;
  const float v6 = (0x1.14760cp-4f * v4) + -0x1.de02bcp-4f;
  const float v7 = (((v6 * v4) + 0x1.e6bf3ap-4f) * v4) + -0x1.fc2886p-4f;
  const float v8 = (((v7 * v4) + 0x1.233ba8p-3f) * v4) + -0x1.555c46p-3f;
  const float v9 = (((v8 * v4) + 0x1.99a476p-3f) * v4) + -0x1.000006p-2f;
  const float v10 = (v5 * v4) * ((v9 * v4) + 0x1.555548p-2f);
  const float v11 = v10 - (v5 * 0x1.0p-1f);
  const float v12 = (v11 * 0x1.547652p-8f) + (v4 * 0x1.547652p-8f);
  const float v13 = (v12 + (v11 * 0x1.7p+0f)) + (v4 * 0x1.7p+0f);
  const uint32_t v14 = bit_cast<uint32_t>(bit_cast<int32_t>(v2) >> 23);
  const int32_t v15 = bit_cast<int32_t>(v14 - (v0 ? 23u : 0u));
  const float v16 = (x < __builtin_inff()) ? (v13 + static_cast<float>(v15)) : x;
  const float v17 = (x < 0.0f) ? __builtin_nanf("") : ((x == 0.0f) ? -__builtin_inff() : v16);
  return v17;
}

// log10(x)
TPK_INLINE float log10_f32(float x) {
  const bool v0 = x < 0x1.0p-126f;
  const uint32_t v1 = bit_cast<uint32_t>(v0 ? (x * 0x1.0p+23f) : x);
  const uint32_t v2 = v1 - 0x3f3504f3u;
  const float v3 = bit_cast<float>((v2 & 0x7fffffu) + 0x3f3504f3u);
  const float v4 = v3 - 1.0f;
  const float v5 = v4 * v4;
  const float v6 = (0x1.14760cp-4f * v4) + -0x1.de02bcp-4f;
  const float v7 = (((v6 * v4) + 0x1.e6bf3ap-4f) * v4) + -0x1.fc2886p-4f;
  const float v8 = (((v7 * v4) + 0x1.233ba8p-3f) * v4) + -0x1.555c46p-3f;
  const float v9 = (((v8 * v4) + 0x1.99a476p-3f) * v4) + -0x1.000006p-2f;
  const float v10 = (v5 * v4) * ((v9 * v4) + 0x1.555548p-2f);
  const float v11 = v10 - (v5 * 0x1.0p-1f);
  const float v12 = (v11 * 0x1.6f62a4p-11f) + (v4 * 0x1.6f62a4p-11f);
  const uint32_t v13 = bit_cast<uint32_t>(bit_cast<int32_t>(v2) >> 23);
  const int32_t v14 = bit_cast<int32_t>(v13 - (v0 ? 23u : 0u));
  const float v15 = static_cast<float>(v14);
  const float v16 = (v12 + (v15 * 0x1.3509f8p-18f)) + (v11 * 0x1.bcp-2f);
  const float v17 = (v16 + (v4 * 0x1.bcp-2f)) + (v15 * 0x1.344p-2f);
  const float v18 = (x == 0.0f) ? -__builtin_inff() : ((x < __builtin_inff()) ? v17 : x);
  return (x < 0.0f) ? __builtin_nanf("") : v18;
}

// log(1 + x)
TPK_INLINE float log1p_f32(float x) {
  const float v0 = bit_cast<float>(bit_cast<uint32_t>(x) & 0x7fffffffu);
  const float v1 = x + 1.0f;
  const uint32_t v2 = bit_cast<uint32_t>(v1) - 0x3f3504f3u;
  const uint32_t v3 = bit_cast<uint32_t>(bit_cast<int32_t>(v2) >> 23);
  const bool v4 = v3 == 0u;
  const float v5 = bit_cast<float>((v2 & 0x7fffffu) + 0x3f3504f3u);
  const float v6 = v4 ? x : (v5 - 1.0f);
  const float v7 = v6 * v6;
  const float v8 = (0x1.14760cp-4f * v6) + -0x1.de02bcp-4f;
  const float v9 = (((v8 * v6) + 0x1.e6bf3ap-4f) * v6) + -0x1.fc2886p-4f;
  const float v10 = (((v9 * v6) + 0x1.233ba8p-3f) * v6) + -0x1.555c46p-3f;
  const float v11 = (((v10 * v6) + 0x1.99a476p-3f) * v6) + -0x1.000006p-2f;
  const float v12 = (v7 * v6) * ((v11 * v6) + 0x1.555548p-2f);
  const float v13 = static_cast<float>(bit_cast<int32_t>(v3));
  const float v14 = bit_cast<float>(bit_cast<uint32_t>(x) & 0x7fffffffu);
  const float v15 = (v14 < 1.0f) ? (x - (v1 - 1.0f)) : (1.0f - (v1 - x));
  const float v16 = (v13 * 0x1.7f7d1cp-20f) + (v4 ? 0.0f : (v15 / v1));
  const float v17 = (((v12 - (v7 * 0x1.0p-1f)) + v16) + v6) + (v13 * 0x1.62e4p-1f);
  const float v18 = (v1 == 0.0f) ? -__builtin_inff() : ((v1 < __builtin_inff()) ? v17 : v1);
  const float v19 = (v1 < 0.0f) ? __builtin_nanf("") : v18;
  return (v0 < 0x1.0p-25f) ? x : v19;
}

// tanh(x)
TPK_INLINE float tanh_f32(float x) {
  const float v0 = bit_cast<float>(bit_cast<uint32_t>(x) & 0x7fffffffu);
  const float v1 = v0 * v0;
  const float v2 = (-0x1.76922ap-8f * v1) + 0x1.52509ep-6f;
  const float v3 = (((v2 * v1) + -0x1.b8434p-5f) * v1) + 0x1.11076p-3f;
  const float v4 = (v0 * v1) * ((v3 * v1) + -0x1.555534p-2f);
  const float v5 = exp_bounded_f32(2.0f * ((v0 < 10.0f) ? v0 : 10.0f));
  const float v6 = (v0 < 0x1.4p-1f) ? (v0 + v4) : (1.0f - (2.0f / (v5 + 1.0f)));
  const uint32_t v7 = bit_cast<uint32_t>((v0 == v0) ? v6 : v0);
  const uint32_t v8 = v7 | (bit_cast<uint32_t>(x) & 0x80000000u);
  return bit_cast<float>(v8);
}

// erf(x)
TPK_INLINE float erf_f32(float x) {
  const float v0 = bit_cast<float>(bit_cast<uint32_t>(x) & 0x7fffffffu);
  const float v1 = v0 * v0;
  const float v2 = (0x1.4e7d38p-14f * v1) + -0x1.a5c636p-11f;
  const float v3 = (((v2 * v1) + 0x1.544332p-8f) * v1) + -0x1.b80088p-6f;
  const float v4 = (((v3 * v1) + 0x1.ce2d6p-4f) * v1) + -0x1.81274p-2f;
  const float v5 = v0 + (v0 * ((v4 * v1) + 0x1.06eba8p-3f));
  const float v6 = (v0 < 4.0f) ? v0 : 4.0f;
  const float v7 = (0x1.377e82p-18f * v6) + -0x1.6011dap-15f;
  const float v8 = (((v7 * v6) + -0x1.1d175ap-14f) * v6) + 0x1.86b64cp-9f;
  const float v9 = (((v8 * v6) + -0x1.74d64p-6f) * v6) + 0x1.af796ap-4f;
  const float v10 = (((v9 * v6) + 0x1.456b7p-1f) * v6) + 0x1.074aa8p-3f;
  const float v11 = 1.0f - exp_bounded_f32(-(v6 + (v6 * v10)));
  const float v12 = (v0 == v0) ? ((v0 < 0x1.ep-1f) ? v5 : v11) : v0;
  const uint32_t v13 = bit_cast<uint32_t>(v12) | (bit_cast<uint32_t>(x) & 0x80000000u);
  return bit_cast<float>(v13);
}

// 1 / (1 + exp(-x))
TPK_INLINE float sigmoid_f32(float x) {
  return 1.0f / (exp_negated_f32(x) + 1.0f);
}

// sin(x) for |x| < TRIG_LIMIT
TPK_INLINE float sin_f32(float x) {
  const float v0 = bit_cast<float>(bit_cast<uint32_t>(x) & 0x7fffffffu);
  const double v1 = static_cast<double>(x);
  const double v2 = (v1 * 0x1.45f306dc9c883p-1) + 0x1.8p+52;
  const double v3 = v2 - 0x1.8p+52;
  const uint32_t v4 = bit_cast<uint32_t>(static_cast<int32_t>(v3));
  const double v5 = (v1 - (v3 * 0x1.921fb544p+0)) - (v3 * 0x1.0b4611a626331p-34);
  const float v6 = static_cast<float>(v5);
  const float v7 = v6 * v6;
  const float v8 = (0x1.99e816p-16f * v7) + -0x1.6c0c28p-10f;
  const float v9 = (v7 * v7) * ((v8 * v7) + 0x1.55554ap-5f);
  const float v10 = (0x1.7ccf12p-19f * v7) + -0x1.a05ba8p-13f;
  const float v11 = (((v10 * v7) + 0x1.111176p-7f) * v7) + -0x1.555556p-3f;
  const float v12 = ((v4 & 1u) == 1u) ? ((1.0f - (0x1.0p-1f * v7)) + v9) : (v6 + ((v6 * v7) * v11));
  const uint32_t v13 = bit_cast<uint32_t>(v12) ^ ((v4 & 2u) << 30);
  const float v14 = (v0 < 0x1.0p-12f) ? x : bit_cast<float>(v13);
  return v14;
}

// cos(x) for |x| < TRIG_LIMIT
TPK_INLINE float cos_f32(float x) {
  const double v0 = static_cast<double>(x);
  const double v1 = (v0 * 0x1.45f306dc9c883p-1) + 0x1.8p+52;
  const double v2 = v1 - 0x1.8p+52;
  const uint32_t v3 = bit_cast<uint32_t>(static_cast<int32_t>(v2));
  const uint32_t v4 = v3 + 1u;
  const double v5 = (v0 - (v2 * 0x1.921fb544p+0)) - (v2 * 0x1.0b4611a626331p-34);
  const float v6 = static_cast<float>(v5);
  const float v7 = v6 * v6;
  const float v8 = (0x1.99e816p-16f * v7) + -0x1.6c0c28p-10f;
  const float v9 = (v7 * v7) * ((v8 * v7) + 0x1.55554ap-5f);
  const float v10 = (0x1.7ccf12p-19f * v7) + -0x1.a05ba8p-13f;
  const float v11 = (((v10 * v7) + 0x1.111176p-7f) * v7) + -0x1.555556p-3f;
  const float v12 = ((v4 & 1u) == 1u) ? ((1.0f - (0x1.0p-1f * v7)) + v9) : (v6 + ((v6 * v7) * v11));
  const uint32_t v13 = bit_cast<uint32_t>(v12) ^ ((v4 & 2u) << 30);
  return bit_cast<float>(v13);
}

// tan(x) for |x| < TRIG_LIMIT
TPK_INLINE float tan_f32(float x) {
  const float v0 = bit_cast<float>(bit_cast<uint32_t>(x) & 0x7fffffffu);
  const double v1 = static_cast<double>(x);
  const double v2 = (v1 * 0x1.45f306dc9c883p-1) + 0x1.8p+52;
  const double v3 = v2 - 0x1.8p+52;
  const uint32_t v4 = bit_cast<uint32_t>(static_cast<int32_t>(v3));
  const double v5 = (v1 - (v3 * 0x1.921fb544p+0)) - (v3 * 0x1.0b4611a626331p-34);
  const float v6 = static_cast<float>(v5);
  const float v7 = v6 * v6;
  const float v8 = (0x1.99e816p-16f * v7) + -0x1.6c0c28p-10f;
  const float v9 = (v7 * v7) * ((v8 * v7) + 0x1.55554ap-5f);
  const float v10 = (0x1.7ccf12p-19f * v7) + -0x1.a05ba8p-13f;
  const float v11 = (((v10 * v7) + 0x1.111176p-7f) * v7) + -0x1.555556p-3f;
  const float v12 = ((v4 & 1u) == 1u) ? ((1.0f - (0x1.0p-1f * v7)) + v9) : (v6 + ((v6 * v7) * v11));
  const uint32_t v13 = bit_cast<uint32_t>(v12) ^ ((v4 & 2u) << 30);
  const uint32_t v14 = v4 + 1u;
  const float v15 = v6 * v6;
  const float v16 = (0x1.99e816p-16f * v15) + -0x1.6c0c28p-10f;
  const float v17 = (v15 * v15) * ((v16 * v15) + 0x1.55554ap-5f);
  const float v18 = (0x1.7ccf12p-19f * v15) + -0x1.a05ba8p-13f;
  const float v19 = (((v18 * v15) + 0x1.111176p-7f) * v15) + -0x1.555556p-3f;
  const float v20 = ((v14 & 1u) == 1u) ? ((1.0f - (0x1.0p-1f * v15)) + v17) : (v6 + ((v6 * v15) * v19));
  const uint32_t v21 = bit_cast<uint32_t>(v20) ^ ((v14 & 2u) << 30);
  const float v22 = bit_cast<float>(v13) / bit_cast<float>(v21);
  return (v0 < 0x1.0p-12f) ? x : v22;
}

// atan(x)
TPK_INLINE float atan_f32(float x) {
  const float v0 = bit_cast<float>(bit_cast<uint32_t>(x) & 0x7fffffffu);
  const bool v1 = v0 > 1.0f;
  const float v2 = v1 ? (1.0f / v0) : v0;
  const float v3 = v2 * v2;
  const float v4 = (-0x1.ddfe6ep-10f * v3) + 0x1.6a0162p-7f;
  const float v5 = (((v4 * v3) + -0x1.016dcp-5f) * v3) + 0x1.dccd22p-5f;
  const float v6 = (((v5 * v3) + -0x1.58c954p-4f) * v3) + 0x1.c0cbfep-4f;
  const float v7 = (((v6 * v3) + -0x1.24265ap-3f) * v3) + 0x1.999268p-3f;
  const float v8 = (v2 * v3) * ((v7 * v3) + -0x1.55554p-2f);
  const float v9 = v2 + v8;
  const float v10 = 0x1.921fbp+0f - (v9 - 0x1.5110b4p-22f);
  const uint32_t v11 = bit_cast<uint32_t>(v1 ? v10 : v9) | (bit_cast<uint32_t>(x) & 0x80000000u);
  return bit_cast<float>(v11);
}

// atan2(x, y): the angle of the point (y, x)
TPK_INLINE float atan2_f32(float x, float y) {
  const bool v0 = (bit_cast<uint32_t>(y) & 0x80000000u) > 0u;
  const float v1 = bit_cast<float>(bit_cast<uint32_t>(x) & 0x7fffffffu);
  const float v2 = bit_cast<float>(bit_cast<uint32_t>(y) & 0x7fffffffu);
  const bool v3 = v1 > v2;
  const float v4 = v3 ? v1 : v2;
  const float v5 = v3 ? v2 : v1;
  const float v6 = (v4 == 0.0f) ? 0.0f : ((v5 == v4) ? 1.0f : (v5 / v4));
  const float v7 = v6 * v6;
  const float v8 = (-0x1.ddfe6ep-10f * v7) + 0x1.6a0162p-7f;
  const float v9 = (((v8 * v7) + -0x1.016dcp-5f) * v7) + 0x1.dccd22p-5f;
  const float v10 = (((v9 * v7) + -0x1.58c954p-4f) * v7) + 0x1.c0cbfep-4f;
  const float v11 = (((v10 * v7) + -0x1.24265ap-3f) * v7) + 0x1.999268p-3f;
  const float v12 = (v6 * v7) * ((v11 * v7) + -0x1.55554p-2f);
  const float v13 = v6 + v12;
  const float v14 = 0x1.921fbp+0f - (v13 - 0x1.5110b4p-22f);
  const float v15 = v3 ? v14 : v13;
  const float v16 = 0x1.921fbp+1f - (v15 - 0x1.5110b4p-21f);
  const uint32_t v17 = bit_cast<uint32_t>((y == y) ? (v0 ? v16 : v15) : y);
  const uint32_t v18 = v17 | (bit_cast<uint32_t>(x) & 0x80000000u);
  return (x == x) ? bit_cast<float>(v18) : x;
}

// asin(x)
TPK_INLINE float asin_f32(float x) {
  const float v0 = bit_cast<float>(bit_cast<uint32_t>(x) & 0x7fffffffu);
  const bool v1 = v0 > 0x1.0p-1f;
  const float v2 = v1 ? (0x1.0p-1f * (1.0f - v0)) : (v0 * v0);
  const float v3 = v1 ? __builtin_sqrtf(v2) : v0;
  const float v4 = ((0x1.34287p-5f * v2) + 0x1.d6a41ap-7f) * v2;
  const float v5 = ((v4 + 0x1.04be64p-5f) * v2) + 0x1.6ca912p-5f;
  const float v6 = (((v5 * v2) + 0x1.3338a6p-4f) * v2) + 0x1.55554cp-3f;
  const float v7 = v3 + ((v3 * v2) * v6);
  const float v8 = v1 ? (2.0f * v7) : v7;
  const float v9 = 0x1.921fbp+0f - (v8 - 0x1.5110b4p-22f);
  const uint32_t v10 = bit_cast<uint32_t>(v1 ? v9 : v8) | (bit_cast<uint32_t>(x) & 0x80000000u);
  return bit_cast<float>(v10);
}

// acos(x)
TPK_INLINE float acos_f32(float x) {
  const float v0 = bit_cast<float>(bit_cast<uint32_t>(x) & 0x7fffffffu);
  const bool v1 = v0 > 0x1.0p-1f;
  const float v2 = v1 ? (0x1.0p-1f * (1.0f - v0)) : (v0 * v0);
  const float v3 = v1 ? __builtin_sqrtf(v2) : v0;
  const float v4 = ((0x1.34287p-5f * v2) + 0x1.d6a41ap-7f) * v2;
  const float v5 = ((v4 + 0x1.04be64p-5f) * v2) + 0x1.6ca912p-5f;
  const float v6 = (((v5 * v2) + 0x1.3338a6p-4f) * v2) + 0x1.55554cp-3f;
  const float v7 = v3 + ((v3 * v2) * v6);
  const float v8 = 2.0f * v7;
  const float v9 = 0x1.921fbp+1f - (v8 - 0x1.5110b4p-21f);
  const uint32_t v10 = bit_cast<uint32_t>(v7) ^ (bit_cast<uint32_t>(x) & 0x80000000u);
  const float v11 = bit_cast<float>(v10) - 0x1.5110b4p-22f;
  const float v12 = v1 ? ((x < 0.0f) ? v9 : v8) : (0x1.921fbp+0f - v11);
  return v12;
}

// sinh(x)
TPK_INLINE float sinh_f32(float x) {
  const float v0 = bit_cast<float>(bit_cast<uint32_t>(x) & 0x7fffffffu);
  const float v1 = v0 * v0;
  const float v2 = (0x1.75a6f4p-19f * v1) + 0x1.a02156p-13f;
  const float v3 = (((v2 * v1) + 0x1.1110e2p-7f) * v1) + 0x1.555556p-3f;
  const float v4 = exp_f32(0x1.0p-1f * v0);
  const float v5 = ((0x1.0p-1f * v4) * v4) - ((0x1.0p-1f / v4) / v4);
  const float v6 = (v0 < 1.0f) ? (v0 + ((v0 * v1) * v3)) : v5;
  const uint32_t v7 = bit_cast<uint32_t>(v6) | (bit_cast<uint32_t>(x) & 0x80000000u);
  return bit_cast<float>(v7);
}

// cosh(x)
TPK_INLINE float cosh_f32(float x) {
  const float v0 = bit_cast<float>(bit_cast<uint32_t>(x) & 0x7fffffffu);
  const float v1 = exp_f32(0x1.0p-1f * v0);
  const float v2 = ((0x1.0p-1f * v1) * v1) + ((0x1.0p-1f / v1) / v1);
  return v2;
}

// 1 - erf(x)
TPK_INLINE float erfc_f32(float x) {
  const float v0 = bit_cast<float>(bit_cast<uint32_t>(x) & 0x7fffffffu);
  const float v1 = (v0 > 0x1.433334p+3f) ? 0x1.433334p+3f : v0;
  const float v2 = x * x;
  const float v3 = (0x1.4e7d38p-14f * v2) + -0x1.a5c636p-11f;
  const float v4 = (((v3 * v2) + 0x1.544332p-8f) * v2) + -0x1.b80088p-6f;
  const float v5 = (((v4 * v2) + 0x1.ce2d6p-4f) * v2) + -0x1.81274p-2f;
  const float v6 = x + (x * ((v5 * v2) + 0x1.06eba8p-3f));
  const float v7 = bit_cast<float>(bit_cast<uint32_t>(v1) & 0xfffff000u);
  const float v8 = (v1 - 4.0f) / (v1 + 4.0f);
  const float v9 = (0x1.118e48p-10f * v8) + 0x1.e76ed6p-8f;
  const float v10 = (((v9 * v8) + -0x1.fff3fp-7f) * v8) + 0x1.29729ap-5f;
  const float v11 = (((v10 * v8) + -0x1.118ff4p-4f) * v8) + 0x1.804614p-4f;
  const float v12 = (((v11 * v8) + -0x1.9d8d76p-4f) * v8) + 0x1.16eb2ap-4f;
  const float v13 = (((v12 * v8) + 0x1.f7d55ap-7f) * v8) + -0x1.1df1aep-3f;
  const float v14 = exp_f32(-(v7 * v7)) * ((v13 * v8) + 0x1.3ba592p+0f);
  const float v15 = v14 / ((2.0f * v1) + 1.0f);
  const float v16 = (v1 - v7) * (v1 + v7);
  const float v17 = (0x1.111112p-7f * v16) + -0x1.555556p-5f;
  const float v18 = (((v17 * v16) + 0x1.555556p-3f) * v16) + -0x1.0p-1f;
  const float v19 = v15 - ((v15 * v16) * ((v18 * v16) + 1.0f));
  const float v20 = (v1 < 0x1.4cccccp-1f) ? (1.0f - v6) : ((x < 0.0f) ? (2.0f - v19) : v19);
  return (x == x) ? v20 : x;
}

// x^y
TPK_INLINE float pow_f32(float x, float y) {
  const float v0 = bit_cast<float>(bit_cast<uint32_t>(x) & 0x7fffffffu);
  const double v1 = static_cast<double>(y);
  const double v2 = v1 + 0x1.8p+52;
  const bool v3 = (v2 - 0x1.8p+52) == v1;
  const bool v4 = ((v0 == 1.0f) & (y == y)) & (v3 | (x > 0.0f));
  const bool v5 = v0 < 0x1.0p-126f;
  const uint32_t v6 = bit_cast<uint32_t>(v5 ? (v0 * 0x1.0p+23f) : v0);
  const uint32_t v7 = v6 - 0x3f3504f3u;
  const uint32_t v8 = bit_cast<uint32_t>(bit_cast<int32_t>(v7) >> 23);
  const float v9 = static_cast<float>(bit_cast<int32_t>(v8 - (v5 ? 23u : 0u)));
  const float v10 = bit_cast<float>((v7 & 0x7fffffu) + 0x3f3504f3u);
  const double v11 = static_cast<double>(v10 - 1.0f);
  const double v12 = v11 / (v11 + 2.0);
  const double v13 = v12 * v12;
  const double v14 = (0x1.21bec6f6a93b5p-2 * v13) + 0x1.479466657a07bp-2;
  const double v15 = ((v14 * v13) + 0x1.a61a346a28854p-2) * v13;
  const double v16 = ((v15 + 0x1.2776c28c6a22fp-1) * v13) + 0x1.ec709dc542233p-1;
  const double v17 = v12 * ((v16 * v13) + 0x1.71547652b824ep+1);
  const double v18 = (v0 < __builtin_inff()) ? (static_cast<double>(v9) + v17) : static_cast<double>(v0);
  const double v19 = static_cast<double>(y) * ((v0 == 0.0f) ? -__builtin_inf() : v18);
  const uint64_t v20 = bit_cast<uint64_t>(v19);
  const double v21 = bit_cast<double>(v20 & 0x7fffffffffffffffull);
  const uint64_t v22 = (v20 & 0x8000000000000000ull) | 0x4069000000000000ull;
  const double v23 = (v21 > 200.0) ? bit_cast<double>(v22) : v19;
  const double v24 = v23 + 0x1.8p+52;
  const double v25 = v23 - (v24 - 0x1.8p+52);
  const double v26 = (0x1.41d32c281c729p-13 * v25) + 0x1.5f456a71984a2p-10;
  const double v27 = ((v26 * v25) + 0x1.3b2dbbca39399p-7) * v25;
  const double v28 = ((v27 + 0x1.c6aed4b978795p-5) * v25) + 0x1.ebfbdadca316dp-3;
  const double v29 = ((v28 * v25) + 0x1.62e430c7e8fc3p-1) * v25;
  const uint64_t v30 = (bit_cast<uint64_t>(v24) << 52) + 0x3ff0000000000000ull;
  const double v31 = (v29 + 0x1.000000026155ep+0) * bit_cast<double>(v30);
  const float v32 = ((v4 | (x == 1.0f)) | (y == 0.0f)) ? 1.0f : static_cast<float>(v31);
  const float v33 = bit_cast<float>(bit_cast<uint32_t>(y) & 0x7fffffffu);
  const uint32_t v34 = static_cast<uint32_t>(bit_cast<uint64_t>(v2));
  const uint32_t v35 = ((v33 < 0x1.0p+24f) ? (v34 << 31) : 0u) & (bit_cast<uint32_t>(x) & 0x80000000u);
  const bool v36 = ((x < 0.0f) & (v0 < __builtin_inff())) & (v3 == false);
  const uint32_t v37 = (bit_cast<uint32_t>(v32) | v35) | (v36 ? 0x7fc00000u : 0u);
  return bit_cast<float>(v37);
}

}  // namespace TPK_ISA_NS
