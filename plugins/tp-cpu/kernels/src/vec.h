// Vectors of the widest registers of this instruction set (GCC and Clang vector extensions), and folds over rows.
//
// Nothing may be reassociated by the compiler here, so a sum that shall be fast has its accumulators written out. The
// grouping depends on the number of elements alone, never on addresses. A term is a generic lambda term(tag, j): it
// returns elements j, j+1, ... as the type of `tag`, a vector or a single element.
#pragma once
#include <cmath>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "isa.h"

#if defined(__AVX512F__)
#define TPK_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define TPK_VECTOR_BYTES 32
#else
#define TPK_VECTOR_BYTES 16
#endif

namespace TPK_ISA_NS {

template <class T> struct VectorOf { typedef T type __attribute__((vector_size(TPK_VECTOR_BYTES))); };
template <class T> using vec = typename VectorOf<T>::type;
template <class T> constexpr int64_t lanes_of() { return TPK_VECTOR_BYTES / static_cast<int64_t>(sizeof(T)); }

// V is vec<T> or T.
template <class V, class T> static inline V load(const T* p) {
  V v;
  memcpy(&v, p, sizeof(v));
  return v;
}
template <class V, class T> static inline void store(T* p, V v) { memcpy(p, &v, sizeof(v)); }

// Square roots: the vector extensions have no operator for them.
static inline float root_of(float x) { return sqrtf(x); }
static inline double root_of(double x) { return sqrt(x); }
#if defined(__AVX512F__)
static inline vec<float> root_of(vec<float> v) { return _mm512_maskz_sqrt_ps(0xffff, v); }
static inline vec<double> root_of(vec<double> v) { return _mm512_maskz_sqrt_pd(0xff, v); }
#elif defined(__AVX2__)
static inline vec<float> root_of(vec<float> v) { return _mm256_sqrt_ps(v); }
static inline vec<double> root_of(vec<double> v) { return _mm256_sqrt_pd(v); }
#elif defined(__x86_64__)
static inline vec<float> root_of(vec<float> v) { return _mm_sqrt_ps(v); }
static inline vec<double> root_of(vec<double> v) { return _mm_sqrt_pd(v); }
#else
static inline vec<float> root_of(vec<float> v) {
  for (int i = 0; i < lanes_of<float>(); i++) v[i] = sqrtf(v[i]);
  return v;
}
static inline vec<double> root_of(vec<double> v) {
  for (int i = 0; i < lanes_of<double>(); i++) v[i] = sqrt(v[i]);
  return v;
}
#endif

struct SumStep {
  template <class V> static inline V step(V a, V x) { return a + x; }
};
// A NaN stays: it replaces everything and nothing replaces it.
struct MaxStep {
  template <class V> static inline V step(V a, V x) { return ((x > a) | (x != x)) ? x : a; }
};
struct MinStep {
  template <class V> static inline V step(V a, V x) { return ((x < a) | (x != x)) ? x : a; }
};

template <class Op, class T> static inline T fold_lanes(vec<T> v) {
  T lane[lanes_of<T>()];
  memcpy(lane, &v, sizeof(v));
#pragma GCC unroll 8
  for (int64_t half = lanes_of<T>() / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; i++) lane[i] = Op::step(lane[i], lane[i + half]);
  return lane[0];
}

// op over the terms [begin, end), begin < end or T() + nothing for a sum.
template <class Op, class T, class Term>
static inline T fold_terms(T identity, int64_t begin, int64_t end, const Term& term) {
  constexpr int64_t N = lanes_of<T>();
  T total = identity;
  int64_t j = begin;
  if (end - begin >= N) {
    vec<T> tag = {};
    vec<T> a0 = term(tag, j);
    j += N;
    if (end - j >= 3 * N) {
      vec<T> a1 = term(tag, j), a2 = term(tag, j + N), a3 = term(tag, j + 2 * N);
      for (j += 3 * N; j + 4 * N <= end; j += 4 * N) {
        a0 = Op::step(a0, static_cast<vec<T>>(term(tag, j)));
        a1 = Op::step(a1, static_cast<vec<T>>(term(tag, j + N)));
        a2 = Op::step(a2, static_cast<vec<T>>(term(tag, j + 2 * N)));
        a3 = Op::step(a3, static_cast<vec<T>>(term(tag, j + 3 * N)));
      }
      a0 = Op::step(Op::step(a0, a1), Op::step(a2, a3));
    }
    for (; j + N <= end; j += N) a0 = Op::step(a0, static_cast<vec<T>>(term(tag, j)));
    total = fold_lanes<Op, T>(a0);
  }
  for (; j < end; j++) total = Op::step(total, static_cast<T>(term(T(), j)));
  return total;
}

// A float32 sum is made of blocks whose lanes add 16 elements each; the blocks are added in double.
template <class T, class Term> static inline double sum_terms(int64_t n, const Term& term) {
  constexpr int64_t block = 64 * lanes_of<T>();
  if (n <= block) return fold_terms<SumStep>(T(0), 0, n, term);
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += block)
    total += fold_terms<SumStep>(T(0), begin, begin + block < n ? begin + block : n, term);
  return total;
}
template <class T> static inline double sum_row(const T* x, int64_t n) {
  return sum_terms<T>(n, [=](auto tag, int64_t j) { return load<decltype(tag)>(x + j); });
}
// n >= 1
template <class Op, class T> static inline T extreme_row(const T* x, int64_t n) {
  return fold_terms<Op>(x[0], 0, n, [=](auto tag, int64_t j) { return load<decltype(tag)>(x + j); });
}

// apply(tag, j) for all j in [0, n): whole vectors first, the rest one by one.
template <class T, class Apply> static inline void each_vector(int64_t n, const Apply& apply) {
  constexpr int64_t N = lanes_of<T>();
  int64_t j = 0;
  for (; j + N <= n; j += N) apply(vec<T>{}, j);
  for (; j < n; j++) apply(T(), j);
}

}  // namespace TPK_ISA_NS
