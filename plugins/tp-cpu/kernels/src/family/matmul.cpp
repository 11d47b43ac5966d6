// matmul and linear: broadcast batches of products, each handed to the GEMM seam (floats) or multiplied here
// (integers).
#include "matrix.h"

namespace TPK_ISA_NS {
namespace {

constexpr int kMaxBatchDims = 14;
constexpr int64_t kBatchFlops = 2000000; // products smaller than this are grouped into one chunk

// A product of two stacks of matrices. Strides of the operands per batch dimension, 0 where they broadcast.
struct Batched {
  int64_t m, n, k, count;
  int dims;
  int64_t size[kMaxBatchDims], x_stride[kMaxBatchDims], y_stride[kMaxBatchDims];
  MatrixView x, y;
  int dtype;
};

int64_t batch_offset(const Batched& b, const int64_t* stride, int64_t index) {
  int64_t offset = 0;
  for (int d = b.dims - 1; d >= 0; d--) {
    offset += index % b.size[d] * stride[d];
    index /= b.size[d];
  }
  return offset;
}

int64_t aligned_stride(const tpk_tensor& t, int batch_dims, int d, int dims) {
  const int own = d - (dims - batch_dims);
  return own < 0 || t.shape[own] == 1 ? 0 : t.strides[own];
}

bool describe(const tpk_tensor& x, const tpk_tensor& y, Batched* b) {
  const bool x_row = x.ndim == 1, y_column = y.ndim == 1;
  const int xb = x_row ? 0 : x.ndim - 2, yb = y_column ? 0 : y.ndim - 2;
  b->dims = xb > yb ? xb : yb;
  if (b->dims > kMaxBatchDims || x.ndim < 1 || y.ndim < 1) return false;
  b->dtype = x.dtype;
  b->m = x_row ? 1 : x.shape[xb];
  b->k = x.shape[x.ndim - 1];
  b->n = y_column ? 1 : y.shape[yb + 1];
  b->x = {x.data, b->m, b->k, x_row ? b->k : x.strides[xb], x.strides[x.ndim - 1]};
  b->y = {y.data, b->k, b->n, y.strides[yb], y_column ? 1 : y.strides[yb + 1]};
  b->count = 1;
  for (int d = 0; d < b->dims; d++) {
    const int xd = d - (b->dims - xb), yd = d - (b->dims - yb);
    const int64_t x_size = xd < 0 ? 1 : x.shape[xd], y_size = yd < 0 ? 1 : y.shape[yd];
    b->size[d] = x_size == 1 ? y_size : x_size;
    b->x_stride[d] = aligned_stride(x, xb, d, b->dims);
    b->y_stride[d] = aligned_stride(y, yb, d, b->dims);
    b->count *= b->size[d];
  }
  return true;
}

// Batch dimensions that only x has are more rows, when one stride walks through them all.
void fold_batches_into_rows(Batched* b) {
  while (b->dims > 0) {
    const int d = b->dims - 1;
    const bool adjacent = b->m == 1 || b->size[d] == 1 || b->x_stride[d] == b->m * b->x.row_stride;
    if (b->y_stride[d] != 0 || !adjacent || (b->x_stride[d] == 0 && b->size[d] != 1)) return;
    if (b->m == 1) b->x.row_stride = b->x_stride[d];
    b->m *= b->size[d];
    b->x.rows = b->m;
    b->count /= b->size[d] ? b->size[d] : 1;
    b->dims--;
  }
}

template <class T> void multiply_integers(const MatrixView& x, const MatrixView& y, T* c) {
  const T* a = static_cast<const T*>(x.data);
  const T* b = static_cast<const T*>(y.data);
  for (int64_t i = 0; i < x.rows; i++) {
    T* row = c + i * y.columns;
    for (int64_t j = 0; j < y.columns; j++) row[j] = 0;
    for (int64_t p = 0; p < x.columns; p++) {
      const T scalar = a[i * x.row_stride + p * x.column_stride];
      const T* line = b + p * y.row_stride;
      // Unsigned 64-bit arithmetic wraps; its low bits are those of every integer type.
      for (int64_t j = 0; j < y.columns; j++)
        row[j] = T(uint64_t(row[j]) + uint64_t(scalar) * uint64_t(line[j * y.column_stride]));
    }
  }
}

int multiply_one(int dtype, const MatrixView& x, const MatrixView& y, void* c) {
  switch (dtype) {
    case TPK_F32: return multiply<float>(x, y, static_cast<float*>(c), y.columns, false);
    case TPK_F64: return multiply<double>(x, y, static_cast<double*>(c), y.columns, false);
    case TPK_F16:
    case TPK_BF16: return multiply_halves(dtype, x, y, static_cast<uint16_t*>(c), nullptr);
#define CASE(code, T, unused) case code: multiply_integers<T>(x, y, static_cast<T*>(c)); return TPK_OK;
      TPK_INTS(CASE, 0) TPK_SMALL_INTS(CASE, 0) TPK_UNSIGNED(CASE, 0)
#undef CASE
    default: return TPK_UNSUPPORTED;
  }
}

bool known_dtype(int dtype) { return is_integer(dtype) || is_float(dtype); }

int matmul(const tpk_call* call) {
  const tpk_tensor& x = call->in[0];
  const tpk_tensor& y = call->in[1];
  const tpk_tensor& out = call->out[0];
  Batched b;
  if (!known_dtype(x.dtype) || x.dtype != y.dtype || out.dtype != x.dtype || !describe(x, y, &b))
    return TPK_UNSUPPORTED;
  if (out.numel == 0) return TPK_OK;
  fold_batches_into_rows(&b);
  const int64_t bytes = itemsize(x.dtype), step = b.m * b.n * bytes;
  char* target = static_cast<char*>(out.data);
  if (b.count == 1) return out_of_memory_or_ok(call, multiply_one(b.dtype, b.x, b.y, target));
  int failed = 0;
  const int64_t grain = items_per_chunk(kBatchFlops, 2 * b.m * b.n * b.k);
  parallel_for(b.count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      MatrixView left = b.x, right = b.y;
      left.data = static_cast<char*>(b.x.data) + batch_offset(b, b.x_stride, i) * bytes;
      right.data = static_cast<char*>(b.y.data) + batch_offset(b, b.y_stride, i) * bytes;
      if (multiply_one(b.dtype, left, right, target + i * step)) __atomic_store_n(&failed, 1, __ATOMIC_RELAXED);
    }
  });
  return out_of_memory_or_ok(call, failed);
}

// The rows of the output, each a copy of the bias, to which the product is then added.
template <class T> void spread_bias(const tpk_tensor& bias, T* out, int64_t rows, int64_t columns) {
  const T* source = static_cast<const T*>(bias.data);
  const int64_t stride = bias.strides[0];
  parallel_for(rows, items_per_chunk(65536, columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      T* row = out + i * columns;
      if (stride == 1) memcpy(row, source, size_t(columns) * sizeof(T));
      else
        for (int64_t j = 0; j < columns; j++) row[j] = source[j * stride];
    }
  });
}

template <class T>
int linear_of(const MatrixView& x, const MatrixView& weight, const tpk_tensor* bias, const tpk_tensor& out) {
  T* target = static_cast<T*>(out.data);
  if (bias) spread_bias<T>(*bias, target, x.rows, weight.columns);
  return multiply<T>(x, weight, target, weight.columns, bias != nullptr);
}

// All leading dimensions are rows; false when no single stride walks through them.
bool rows_of(const tpk_tensor& t, MatrixView* view) {
  const int last = t.ndim - 1;
  int64_t rows = 1, stride = t.shape[last];
  for (int d = last - 1; d >= 0; d--) {
    if (t.shape[d] == 1) continue;
    if (rows == 1) stride = t.strides[d];
    else if (t.strides[d] != stride * rows) return false;
    rows *= t.shape[d];
  }
  *view = {t.data, rows, t.shape[last], stride, t.strides[last]};
  return true;
}

int linear(const tpk_call* call) {
  const tpk_tensor& input = call->in[0];
  const tpk_tensor& weight = call->in[1];
  const tpk_tensor* bias = call->n_in > 2 && call->in[2].ndim >= 0 ? &call->in[2] : nullptr;
  const tpk_tensor& out = call->out[0];
  if (input.ndim < 1 || weight.ndim != 2 || (bias && bias->ndim != 1)) return TPK_UNSUPPORTED;
  const int dtype = input.dtype;
  if (weight.dtype != dtype || out.dtype != dtype || (bias && bias->dtype != dtype)) return TPK_UNSUPPORTED;
  if (out.numel == 0) return TPK_OK;
  MatrixView x;
  if (!rows_of(input, &x)) return TPK_UNSUPPORTED;
  const MatrixView transposed = {weight.data, weight.shape[1], weight.shape[0], weight.strides[1], weight.strides[0]};
  switch (dtype) {
    case TPK_F32: return out_of_memory_or_ok(call, linear_of<float>(x, transposed, bias, out));
    case TPK_F64: return out_of_memory_or_ok(call, linear_of<double>(x, transposed, bias, out));
    case TPK_F16:
    case TPK_BF16:
      return out_of_memory_or_ok(call, multiply_halves(dtype, x, transposed, static_cast<uint16_t*>(out.data), bias));
    default: return TPK_UNSUPPORTED;
  }
}

}  // namespace
}  // namespace TPK_ISA_NS

TPK_FAMILY(matmul){
    {"matmul", TPK_ISA_NS::matmul, 0},
    {"linear", TPK_ISA_NS::linear, 0},
    {nullptr, nullptr, 0}};
