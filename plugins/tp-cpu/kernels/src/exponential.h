// Rows of exponentials and their sums: what softmax and cross entropy are made of.
#pragma once
#include <cmath>

#include "parallel.h"
#include "vec.h"
#include "vecmath.h"

namespace TPK_ISA_NS {

constexpr int64_t kExpPiece = 16;   // an incomplete piece is padded, so that a short row costs one vector
constexpr int64_t kExpBlock = 1024; // elements whose exponentials are added before the cache forgets them

static inline float exponential(float x) { return exp_f32(x); }
static inline double exponential(double x) { return exp(x); }
// For x <= 0, as a row minus its maximum is: half the work, and 0 where the result would be subnormal.
static inline float exponential_below(float x) {
  const float value = exp_bounded_f32(x);
  return x < -87.0f ? 0.0f : value;
}
static inline double exponential_below(double x) { return exp(x); }
static inline float logarithm(float x) { return log_f32(x); }
static inline double logarithm(double x) { return log(x); }

// out[j] = exp(x[j] - shift), x[j] <= shift but for rounding
template <class T> static inline void exp_piece(const T* x, T shift, int64_t n, T* out) {
  const int64_t whole = n / kExpPiece * kExpPiece;
  for (int64_t j = 0; j < whole; j++) out[j] = exponential_below(x[j] - shift);
  if (whole == n) return;
  T padded[kExpPiece];
  for (int64_t k = 0; k < kExpPiece; k++) padded[k] = shift;
  memcpy(padded, x + whole, static_cast<size_t>(n - whole) * sizeof(T));
  for (int64_t k = 0; k < kExpPiece; k++) padded[k] = exponential_below(padded[k] - shift);
  memcpy(out + whole, padded, static_cast<size_t>(n - whole) * sizeof(T));
}

// The same, and their sum.
template <class T> static inline double exp_row(const T* x, T shift, int64_t n, T* out) {
  double total = 0;
  for (int64_t j = 0; j < n; j += kExpBlock) {
    int64_t piece = smaller(kExpBlock, n - j);
    exp_piece(x + j, shift, piece, out + j);
    total += sum_row(out + j, piece);
  }
  return total;
}

// The sum alone.
template <class T> static inline double exp_sum(const T* x, T shift, int64_t n) {
  T buffer[kExpBlock];
  double total = 0;
  for (int64_t j = 0; j < n; j += kExpBlock) total += exp_row(x + j, shift, smaller(kExpBlock, n - j), buffer);
  return total;
}

}  // namespace TPK_ISA_NS
