// Rendered by tools/vecmath/render.py from tools/vecmath/functions.py: do not edit.
// Branch-free scalar functions that vectorise inside a loop; accurate with and without fused multiply-add.
#pragma once
#include "vecmath.h"

namespace TPK_ISA_NS {

// x sigmoid(x)
TPK_INLINE float silu_f32(float x) {
  return x / (exp_negated_f32(x) + 1.0f);
}

// d silu / d x
TPK_INLINE float silu_derivative_f32(float x) {
  const float v0 = exp_negated_f32(x);
  const float v1 = 1.0f / (v0 + 1.0f);
  const float v2 = (v0 * v1) * v1;
  return v1 + ((v2 > 0.0f) ? (x * v2) : 0.0f);
}

// x Phi(x)
TPK_INLINE float gelu_f32(float x) {
  const float v0 = (x * x) * -0x1.0p-1f;
  const float v1 = exp_bounded_f32((v0 < -88.0f) ? -88.0f : v0);
  const float v2 = bit_cast<float>(bit_cast<uint32_t>(x) & 0x7fffffffu);
  const float v3 = (v2 < 0x1.2p+2f) ? v2 : 0x1.2p+2f;
  const float v4 = (-0x1.0eb188p-22f * v3) + 0x1.b07f84p-18f;
  const float v5 = (((v4 * v3) + -0x1.36f4dep-14f) * v3) + 0x1.0d9c86p-11f;
  const float v6 = (((v5 * v3) + -0x1.41394ap-9f) * v3) + 0x1.1ef3bcp-7f;
  const float v7 = (((v6 * v3) + -0x1.9cd5cep-6f) * v3) + 0x1.f9c1ep-5f;
  const float v8 = (((v7 * v3) + -0x1.0fd6bep-3f) * v3) + 0x1.ffea46p-3f;
  const float v9 = (((v8 * v3) + -0x1.98839cp-2f) * v3) + 0x1.fffffep-2f;
  const float v10 = v1 * v9;
  return x * ((x < 0.0f) ? v10 : (1.0f - v10));
}

// d gelu / d x
TPK_INLINE float gelu_derivative_f32(float x) {
  const float v0 = (x * x) * -0x1.0p-1f;
  const float v1 = exp_bounded_f32((v0 < -88.0f) ? -88.0f : v0);
  const float v2 = bit_cast<float>(bit_cast<uint32_t>(x) & 0x7fffffffu);
  const float v3 = (v2 < 0x1.2p+2f) ? v2 : 0x1.2p+2f;
  const float v4 = (-0x1.0eb188p-22f * v3) + 0x1.b07f84p-18f;
  const float v5 = (((v4 * v3) + -0x1.36f4dep-14f) * v3) + 0x1.0d9c86p-11f;
  const float v6 = (((v5 * v3) + -0x1.41394ap-9f) * v3) + 0x1.1ef3bcp-7f;
  const float v7 = (((v6 * v3) + -0x1.9cd5cep-6f) * v3) + 0x1.f9c1ep-5f;
  const float v8 = (((v7 * v3) + -0x1.0fd6bep-3f) * v3) + 0x1.ffea46p-3f;
  const float v9 = (((v8 * v3) + -0x1.98839cp-2f) * v3) + 0x1.fffffep-2f;
  const float v10 = v1 * v9;
  const float v11 = (v1 > 0.0f) ? (x * (v1 * 0x1.988454p-2f)) : 0.0f;
  const float v12 = ((x < 0.0f) ? v10 : (1.0f - v10)) + v11;
  return v12;
}

// gelu, tanh approximation
TPK_INLINE float gelu_tanh_f32(float x) {
  const float v0 = ((x * x) * 0x1.2444f2p-4f) + 0x1.988454p+0f;
  return x / (exp_negated_f32(x * v0) + 1.0f);
}

// d gelu_tanh / d x
TPK_INLINE float gelu_tanh_derivative_f32(float x) {
  const float v0 = x * x;
  const float v1 = (v0 * 0x1.2444f2p-4f) + 0x1.988454p+0f;
  const float v2 = exp_negated_f32(x * v1);
  const float v3 = 1.0f / (v2 + 1.0f);
  const float v4 = (v2 * v3) * v3;
  const float v5 = (v0 * 0x1.b6676cp-3f) + 0x1.988454p+0f;
  const float v6 = v3 + ((v4 > 0.0f) ? ((x * v5) * v4) : 0.0f);
  return v6;
}

}  // namespace TPK_ISA_NS
