// Attention for a handful of queries per head of keys (decoding): lanes hold columns instead of queries, every key and
// value is read once from where it lies, and the scores of all keys are kept.
#pragma once
#include "attention.h"

namespace TPK_ISA_NS {

constexpr int kFewRows = 4;

// scores[r * keys + j] = query r . key j for keys [0, count)
template <class T, int R>
static inline void few_scores(const Attention<T>& a, const T* const* query, const T* key, int64_t count, T* scores) {
  constexpr int64_t N = lanes_of<T>();
  constexpr int at_once = 4;
  const T factor = T(a.scale * kLog2E);
  const int64_t whole = a.depth / N * N;
  for (int64_t j = 0; j < count; j += at_once) {
    const T* rows[at_once]; // the last keys may be computed twice
    for (int u = 0; u < at_once; u++) rows[u] = key + smaller(j + u, count - 1) * a.key.row;
    vec<T> sum[R][at_once] = {};
    for (int64_t d = 0; d < whole; d += N) {
#pragma GCC unroll 4
      for (int u = 0; u < at_once; u++) {
        const vec<T> right = load<vec<T>>(rows[u] + d);
#pragma GCC unroll 4
        for (int r = 0; r < R; r++) sum[r][u] += load<vec<T>>(query[r] + d) * right;
      }
    }
    for (int u = 0; u < at_once && j + u < count; u++)
      for (int r = 0; r < R; r++) {
        T total = fold_lanes<SumStep, T>(sum[r][u]);
        for (int64_t d = whole; d < a.depth; d++) total += query[r][d] * rows[u][d];
        scores[r * a.keys + j + u] = factor * total;
      }
  }
}

// out[r][e] = sum over keys of weight[r][j] * value[j][e], for NV vectors of columns
template <class T, int R, int NV>
static inline void few_values(const Attention<T>& a, const T* value, int64_t count, const T* weights, const T* inverse,
                              T* const* out, int64_t e) {
  vec<T> sum[R][NV] = {};
  accumulate<T, R, NV, 0, 1>(count, weights, a.keys, 1, value + e, a.value.row, sum);
  for (int r = 0; r < R; r++)
    for (int v = 0; v < NV; v++) store(out[r] + e + v * lanes_of<T>(), sum[r][v] * inverse[r]);
}

template <class T, int R>
static inline void few_outputs(const Attention<T>& a, const T* value, int64_t count, const T* weights, const T* inverse,
                               T* const* out) {
  constexpr int64_t N = lanes_of<T>();
  int64_t e = 0;
  for (; e + 4 * N <= a.width; e += 4 * N) few_values<T, R, 4>(a, value, count, weights, inverse, out, e);
  for (; e + N <= a.width; e += N) few_values<T, R, 1>(a, value, count, weights, inverse, out, e);
  for (; e < a.width; e++)
    for (int r = 0; r < R; r++) {
      T sum = 0;
      for (int64_t j = 0; j < count; j++) sum += weights[r * a.keys + j] * value[j * a.value.row + e];
      out[r][e] = sum * inverse[r];
    }
}

// The score of one query: mask, limit, softmax in place; returns 1 / total (0 when nothing is visible).
template <class T>
static inline T few_softmax(const Attention<T>& a, int64_t batch, int64_t head, int64_t position, int64_t count, T* s,
                            T* lse) {
  const T nothing = -T(__builtin_inf());
  if (a.mask) {
    const int64_t offset = batch * a.mask_stride[0] + head * a.mask_stride[1] + position * a.mask_stride[2];
    for (int64_t j = 0; j < count; j++) {
      const int64_t at = offset + j * a.mask_stride[3];
      if (a.mask->dtype != TPK_BOOL) s[j] += static_cast<const T*>(a.mask->data)[at] * T(kLog2E);
      else if (!static_cast<const uint8_t*>(a.mask->data)[at]) s[j] = nothing;
    }
  }
  if (a.causal)
    for (int64_t j = larger(0, position + a.diagonal + 1); j < count; j++) s[j] = nothing;
  T peak = nothing;
  for (int64_t j = 0; j < count; j++) peak = s[j] > peak ? s[j] : peak;
  const T shift = peak == nothing ? T(0) : peak;
  for (int64_t j = 0; j < count; j++) s[j] = power_of_two(s[j] - shift);
  const double total = sum_row(s, count);
  *lse = total == 0 ? nothing : T((double(peak) + log2(total)) * kLn2);
  return total == 0 ? T(0) : T(1 / total);
}

// Rows [first, first + R) of those that share head `key_head` of keys. `scores` holds R * keys elements.
template <class T, int R>
static inline void few_block(const Attention<T>& a, int64_t batch, int64_t key_head, int64_t first, T* scores,
                             const Heads<T>& out, T* lse) {
  const T* query[R];
  T* target[R];
  T inverse[R];
  int64_t count = 0;
  for (int r = 0; r < R; r++) {
    const int64_t head = key_head * a.group + (first + r) / a.queries, position = (first + r) % a.queries;
    query[r] = a.query.at(batch, head, position);
    target[r] = out.at(batch, head, position);
    count = larger(count, a.causal ? smaller(a.keys, position + a.diagonal + 1) : a.keys);
  }
  few_scores<T, R>(a, query, a.key.at(batch, key_head, 0), count, scores);
  for (int r = 0; r < R; r++) {
    const int64_t head = key_head * a.group + (first + r) / a.queries, position = (first + r) % a.queries;
    inverse[r] = few_softmax(a, batch, head, position, count, scores + r * a.keys,
                             lse + (batch * a.heads + head) * a.queries + position);
  }
  few_outputs<T, R>(a, a.value.at(batch, key_head, 0), count, scores, inverse, target);
}

template <class T>
static inline void few_rows(const Attention<T>& a, int64_t batch, int64_t key_head, T* scores, const Heads<T>& out,
                            T* lse) {
  for (int64_t first = 0; first < a.rows(); first += kFewRows) switch (smaller(a.rows() - first, kFewRows)) {
      case 1: few_block<T, 1>(a, batch, key_head, first, scores, out, lse); break;
      case 2: few_block<T, 2>(a, batch, key_head, first, scores, out, lse); break;
      case 3: few_block<T, 3>(a, batch, key_head, first, scores, out, lse); break;
      default: few_block<T, 4>(a, batch, key_head, first, scores, out, lse);
    }
}

}  // namespace TPK_ISA_NS
