// Strided matrices in front of the GEMM seam: what the library can read goes there as it is, the rest is copied first.
#pragma once
#include <cstdio>

#include "dtype.h"
#include "parallel.h"

namespace TPK_ISA_NS {

struct MatrixView {
  void* data;
  int64_t rows, columns, row_stride, column_stride; // strides in elements
};

static inline int seam(int ta, int tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                       int64_t ldb, float beta, float* c, int64_t ldc) {
  return tpk_sgemm(ta, tb, m, n, k, 1.0f, a, lda, b, ldb, beta, c, ldc);
}
static inline int seam(int ta, int tb, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* b,
                       int64_t ldb, double beta, double* c, int64_t ldc) {
  return tpk_dgemm(ta, tb, m, n, k, 1.0, a, lda, b, ldb, beta, c, ldc);
}

// A matrix as the seam takes it. A dimension of size 1 has no meaningful stride, so any is fine there.
template <class T> struct Operand {
  const T* data = nullptr;
  int transposed = 0;
  int64_t ld = 0;

  bool set(const MatrixView& v) {
    data = static_cast<const T*>(v.data);
    if ((v.column_stride == 1 || v.columns == 1) && (v.row_stride >= larger(1, v.columns) || v.rows == 1)) {
      transposed = 0;
      ld = v.rows == 1 ? larger(1, v.columns) : v.row_stride;
      return true;
    }
    if ((v.row_stride == 1 || v.rows == 1) && (v.column_stride >= larger(1, v.rows) || v.columns == 1)) {
      transposed = 1;
      ld = v.columns == 1 ? larger(1, v.rows) : v.column_stride;
      return true;
    }
    return false;
  }
};

template <class T> static inline void pack_rows(const MatrixView& v, T* out) {
  const T* source = static_cast<const T*>(v.data);
  for (int64_t i = 0; i < v.rows; i++)
    for (int64_t j = 0; j < v.columns; j++)
      out[i * v.columns + j] = source[i * v.row_stride + j * v.column_stride];
}

// c (rows ldc apart) = or += x y. TPK_ERROR: no memory for a copy.
template <class T>
static inline int multiply(const MatrixView& x, const MatrixView& y, T* c, int64_t ldc, bool add) {
  Operand<T> left, right;
  const bool x_plain = left.set(x), y_plain = right.set(y);
  Workspace<T> x_copy(x_plain ? 0 : x.rows * x.columns), y_copy(y_plain ? 0 : y.rows * y.columns);
  if (!x_copy.data || !y_copy.data) return TPK_ERROR;
  if (!x_plain) {
    pack_rows(x, x_copy.data);
    left.set({x_copy.data, x.rows, x.columns, x.columns, 1});
  }
  if (!y_plain) {
    pack_rows(y, y_copy.data);
    right.set({y_copy.data, y.rows, y.columns, y.columns, 1});
  }
  return seam(left.transposed, right.transposed, x.rows, y.columns, x.columns, left.data, left.ld, right.data,
              right.ld, T(add ? 1 : 0), c, ldc) ? TPK_ERROR : TPK_OK;
}

static inline void widen_rows(int dtype, const MatrixView& v, float* out) {
  const uint16_t* source = static_cast<const uint16_t*>(v.data);
  for (int64_t i = 0; i < v.rows; i++) {
    const uint16_t* row = source + i * v.row_stride;
    if (v.column_stride == 1) half_to_float_n(dtype, row, out + i * v.columns, v.columns);
    else
      for (int64_t j = 0; j < v.columns; j++)
        half_to_float_n(dtype, row + j * v.column_stride, out + i * v.columns + j, 1);
  }
}

// 16-bit floats: widened, multiplied in float32, rounded once. `bias` may be NULL.
static inline int multiply_halves(int dtype, const MatrixView& x, const MatrixView& y, uint16_t* c,
                                  const tpk_tensor* bias) {
  Workspace<float> left(x.rows * x.columns), right(y.rows * y.columns), product(x.rows * y.columns);
  if (!left.data || !right.data || !product.data) return TPK_ERROR;
  // A transposed operand is widened in the order in which it lies, and read transposed.
  const bool flip = y.row_stride == 1 && y.column_stride != 1;
  const MatrixView lying = flip ? MatrixView{y.data, y.columns, y.rows, y.column_stride, y.row_stride} : y;
  widen_rows(dtype, x, left.data);
  widen_rows(dtype, lying, right.data);
  if (bias)
    for (int64_t i = 0; i < x.rows; i++)
      widen_rows(dtype, {bias->data, 1, y.columns, 0, bias->strides[0]}, product.data + i * y.columns);
  const MatrixView wide_y = flip ? MatrixView{right.data, y.rows, y.columns, 1, y.rows}
                                 : MatrixView{right.data, y.rows, y.columns, y.columns, 1};
  const int status = multiply<float>({left.data, x.rows, x.columns, x.columns, 1}, wide_y, product.data, y.columns,
                                     bias != nullptr);
  if (status == TPK_OK) float_to_half_n(dtype, product.data, c, x.rows * y.columns);
  return status;
}

static inline int out_of_memory_or_ok(const tpk_call* call, int status) {
  if (status == TPK_ERROR) snprintf(call->error, 256, "out of memory for the work space of a matrix product");
  return status;
}

}  // namespace TPK_ISA_NS
