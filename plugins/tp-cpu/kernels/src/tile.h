// The register tile on which every matrix product here is built.
#pragma once
#include "vec.h"

#define TPK_ALWAYS_INLINE static inline __attribute__((always_inline))

namespace TPK_ISA_NS {

// Rows of the large tile: with two vectors of columns, accumulators, a row of b and one broadcast fit the registers.
#if defined(__AVX512F__)
constexpr int kTileRows = 12;
#elif defined(__AVX2__)
constexpr int kTileRows = 6;
#else
constexpr int kTileRows = 4;
#endif

// acc[i][v] += sum over p of a(i, p) * b[p][v]. Element (i, p) of a stands at a[i * rs + p * cs]; RS and CS fix a
// stride at compile time, 0 leaves it to the argument. Rows of b are `ldb` apart, columns adjacent.
template <class T, int MR, int NV, int RS, int CS>
TPK_ALWAYS_INLINE void accumulate(int64_t k, const T* a, int64_t rs, int64_t cs, const T* b, int64_t ldb,
                                  vec<T> (&acc)[MR][NV]) {
  if (RS) rs = RS;
  if (CS) cs = CS;
  for (int64_t p = 0; p < k; p++) {
    vec<T> row[NV];
#pragma GCC unroll 8
    for (int v = 0; v < NV; v++) row[v] = load<vec<T>>(b + v * lanes_of<T>());
#pragma GCC unroll 16
    for (int i = 0; i < MR; i++) {
      const T scalar = a[i * rs];
#pragma GCC unroll 8
      for (int v = 0; v < NV; v++) acc[i][v] += scalar * row[v];
    }
    a += cs;
    b += ldb;
  }
}

// c (MR rows of NV vectors, rows ldc apart) = the product above, or += with ADD.
template <class T, int MR, int NV, int RS, int CS, bool ADD>
TPK_ALWAYS_INLINE void tile(int64_t k, const T* a, int64_t rs, int64_t cs, const T* b, int64_t ldb, T* c,
                            int64_t ldc) {
  vec<T> acc[MR][NV];
#pragma GCC unroll 16
  for (int i = 0; i < MR; i++)
#pragma GCC unroll 8
    for (int v = 0; v < NV; v++) {
      if (ADD) acc[i][v] = load<vec<T>>(c + i * ldc + v * lanes_of<T>());
      else acc[i][v] = vec<T>{};
    }
  accumulate<T, MR, NV, RS, CS>(k, a, rs, cs, b, ldb, acc);
#pragma GCC unroll 16
  for (int i = 0; i < MR; i++)
#pragma GCC unroll 8
    for (int v = 0; v < NV; v++) store(c + i * ldc + v * lanes_of<T>(), acc[i][v]);
}

}  // namespace TPK_ISA_NS
