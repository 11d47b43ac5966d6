// No library: products and convolutions run on the kernels of this package alone.
#include "blas.h"

bool tpk_library_sgemm(int, int, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t, float,
                       float*, int64_t) {
  tpk_set_blas_name("built-in");
  return false;
}

bool tpk_library_dgemm(int, int, int64_t, int64_t, int64_t, double, const double*, int64_t, const double*, int64_t,
                       double, double*, int64_t) {
  return false;
}
