// Rotary embedding, halves form: out1 = x1 * cos - x2 * sin, out2 = x2 * cos + x1 * sin. Inputs may have any strides
// (heads split from one projection need no copy), the output is contiguous.
#pragma once
#include "parallel.h"
#include "vec.h"

namespace TPK_ISA_NS {

constexpr int kRotaryDims = 16;

static inline bool rotary_shapes_fit(const tpk_call* call) {
  const tpk_tensor &x = call->in[0], &out = call->out[0];
  if (x.ndim < 2 || x.ndim > kRotaryDims || out.ndim != x.ndim || x.shape[x.ndim - 1] % 2 != 0) return false;
  for (int k = 1; k < 3; k++) {
    const tpk_tensor& table = call->in[k];
    if (table.ndim < 1 || table.ndim > x.ndim || table.shape[table.ndim - 1] != x.shape[x.ndim - 1] / 2) return false;
    for (int d = 0; d < table.ndim - 1; d++) {
      int64_t size = table.shape[d];
      if (size != 1 && size != x.shape[d + x.ndim - table.ndim]) return false;
    }
  }
  return true;
}

// Strides of a table along the leading dimensions of x; 0 where it is broadcast.
static inline void rotary_strides(const tpk_tensor& table, int ndim, int64_t* strides) {
  for (int d = 0; d < ndim - 1; d++) {
    int own = d - (ndim - table.ndim);
    strides[d] = own >= 0 && table.shape[own] != 1 ? table.strides[own] : 0;
  }
}

template <class T> static inline void rotate_row(const T* x, const T* cosine, const T* sine, T* out, int64_t half) {
  each_vector<T>(half, [=](auto tag, int64_t j) {
    typedef decltype(tag) V;
    V a = load<V>(x + j), b = load<V>(x + half + j), c = load<V>(cosine + j), s = load<V>(sine + j);
    store(out + j, a * c - b * s);
    store(out + half + j, b * c + a * s);
  });
}
// The usual head of 16: a half is known to be 8, whatever the width of a vector.
template <class T> static inline void rotate_row_8(const T* x, const T* cosine, const T* sine, T* out) {
  T low[8], high[8];
  for (int j = 0; j < 8; j++) low[j] = x[j] * cosine[j] - x[8 + j] * sine[j];
  for (int j = 0; j < 8; j++) high[j] = x[8 + j] * cosine[j] + x[j] * sine[j];
  memcpy(out, low, sizeof(low));
  memcpy(out + 8, high, sizeof(high));
}

template <class T> static inline int rotate_halves(const tpk_call* call) {
  const tpk_tensor& x = call->in[0];
  const int last = x.ndim - 1;
  const int64_t width = x.shape[last], half = width / 2;
  if (x.numel == 0) return TPK_OK;
  const int64_t step[3] = {x.strides[last], call->in[1].strides[call->in[1].ndim - 1],
                           call->in[2].strides[call->in[2].ndim - 1]};
  const bool dense = (step[0] == 1 && step[1] == 1 && step[2] == 1) || (width == 2 && step[0] == 1);
  int64_t strides[3][kRotaryDims];
  for (int d = 0; d < last; d++) strides[0][d] = x.strides[d];
  rotary_strides(call->in[1], x.ndim, strides[1]);
  rotary_strides(call->in[2], x.ndim, strides[2]);
  T* out = static_cast<T*>(call->out[0].data);
  parallel_for(x.numel / width, items_per_chunk(32768, width), [&](int64_t begin, int64_t end) {
    int64_t index[kRotaryDims], rest = begin;
    const T* p[3];
    for (int k = 0; k < 3; k++) p[k] = static_cast<const T*>(call->in[k].data);
    for (int d = last - 1; d >= 0; rest /= x.shape[d--]) {
      index[d] = rest % x.shape[d];
      for (int k = 0; k < 3; k++) p[k] += index[d] * strides[k][d];
    }
    for (int64_t row = begin; row < end; row++) {
      T* to = out + row * width;
      if (dense && half == 8) rotate_row_8(p[0], p[1], p[2], to);
      else if (dense) rotate_row(p[0], p[1], p[2], to, half);
      else
        for (int64_t j = 0; j < half; j++) {
          T a = p[0][j * step[0]], b = p[0][(half + j) * step[0]], c = p[1][j * step[1]], s = p[2][j * step[2]];
          to[j] = a * c - b * s;
          to[half + j] = b * c + a * s;
        }
      for (int d = last - 1; d >= 0; d--) {  // the next row
        bool carry = ++index[d] == x.shape[d];
        int64_t steps = carry ? 1 - x.shape[d] : 1;
        for (int k = 0; k < 3; k++) p[k] += steps * strides[k][d];
        if (!carry) break;
        index[d] = 0;
      }
    }
  });
  return TPK_OK;
}

}  // namespace TPK_ISA_NS
