// Inside of the GEMM seam: the serial kernels of one instruction set, and the library opened at run time.
#pragma once
#include "tpk.h"

// Serial products of one instruction set (isa/gemm.cpp). Return 0, or 1 when scratch memory ran out.
struct tpk_gemm_kernels {
  int (*sgemm)(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
               const float* b, int64_t ldb, float beta, float* c, int64_t ldc);
  int (*dgemm)(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, double alpha, const double* a, int64_t lda,
               const double* b, int64_t ldb, double beta, double* c, int64_t ldc);
  // Few rows: no packing, b is streamed once. a is row-major.
  void (*sgemm_skinny)(int trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
                       const float* b, int64_t ldb, float beta, float* c, int64_t ldc);
  void (*dgemm_skinny)(int trans_b, int64_t m, int64_t n, int64_t k, double alpha, const double* a, int64_t lda,
                       const double* b, int64_t ldb, double beta, double* c, int64_t ldc);
};

// The library (onednn.cpp or openblas.cpp, one of them is built). Everything here opens it on first use and returns
// false when there is none or it cannot do this; the caller then uses the kernels above.
bool tpk_library_sgemm(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
                       int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc);
bool tpk_library_dgemm(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, double alpha, const double* a,
                       int64_t lda, const double* b, int64_t ldb, double beta, double* c, int64_t ldc);

// Opens `name`: the path that was set, else beside this module, else by the loader's rules. NULL when not found.
void* tpk_open_library(const char* name);
// For tpk_blas_name(); called once, by whoever opened the library.
void tpk_set_blas_name(const char* name);
