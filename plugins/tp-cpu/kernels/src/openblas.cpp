// OpenBLAS as scipy packages it (32-bit integers, names prefixed with scipy_), opened at run time and kept to one
// thread: our pool does the splitting.
#include <dlfcn.h>

#include <climits>
#include <cstdio>
#include <initializer_list>
#include <type_traits>

#include "blas.h"

namespace {

constexpr int kRowMajor = 101, kNoTrans = 111, kTrans = 112; // CBLAS_ORDER and CBLAS_TRANSPOSE

struct OpenBlas {
  void (*sgemm)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
  void (*dgemm)(int, int, int, int, int, int, double, const double*, int, const double*, int, double, double*, int);
  void (*set_threads)(int);
  char* (*config)(void);
};

OpenBlas* open_library() {
  static OpenBlas functions;
  void* handle = tpk_open_library("libscipy_openblas.so");
  bool complete = handle != nullptr;
  const auto find = [&](auto& target, const char* name) {
    void* address = complete ? dlsym(handle, name) : nullptr;
    target = reinterpret_cast<std::remove_reference_t<decltype(target)>>(address);
    complete = complete && address;
  };
  find(functions.sgemm, "scipy_cblas_sgemm");
  find(functions.dgemm, "scipy_cblas_dgemm");
  find(functions.set_threads, "scipy_openblas_set_num_threads");
  find(functions.config, "scipy_openblas_get_config");
  if (!complete) {
    tpk_set_blas_name("built-in");
    return nullptr;
  }
  functions.set_threads(1);
  char version[32] = "", name[64];
  sscanf(functions.config(), "OpenBLAS %31s", version);
  snprintf(name, sizeof name, "openblas %s", version);
  tpk_set_blas_name(name);
  return &functions;
}

const OpenBlas* library_for(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc) {
  static const OpenBlas* const library = open_library();
  for (int64_t size : {m, n, k, lda, ldb, ldc})
    if (size > INT_MAX) return nullptr;
  return library;
}

}  // namespace

bool tpk_library_sgemm(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
                       int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  const OpenBlas* library = library_for(m, n, k, lda, ldb, ldc);
  if (!library) return false;
  library->sgemm(kRowMajor, trans_a ? kTrans : kNoTrans, trans_b ? kTrans : kNoTrans, int(m), int(n), int(k), alpha, a,
                 int(lda), b, int(ldb), beta, c, int(ldc));
  return true;
}

bool tpk_library_dgemm(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, double alpha, const double* a,
                       int64_t lda, const double* b, int64_t ldb, double beta, double* c, int64_t ldc) {
  const OpenBlas* library = library_for(m, n, k, lda, ldb, ldc);
  if (!library) return false;
  library->dgemm(kRowMajor, trans_a ? kTrans : kNoTrans, trans_b ? kTrans : kNoTrans, int(m), int(n), int(k), alpha, a,
                 int(lda), b, int(ldb), beta, c, int(ldc));
  return true;
}
