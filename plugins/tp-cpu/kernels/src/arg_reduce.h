// argmax and argmin of a contiguous array seen as [outer, size, inner]: the first position of the extreme value,
// or of the first NaN.
#pragma once
#include "axes.h"
#include "parallel.h"
#include "vec.h"

namespace TPK_ISA_NS {

constexpr int64_t kArgWork = 65536;  // elements of a task
constexpr int64_t kArgTile = 256;    // columns of a task

template <class Step> struct Better;
template <> struct Better<MaxStep> {
  template <class T> static inline bool than(T x, T best) { return (x > best) | ((x != x) & (best == best)); }
};
template <> struct Better<MinStep> {
  template <class T> static inline bool than(T x, T best) { return (x < best) | ((x != x) & (best == best)); }
};

template <class Step> static inline float extreme_value(const float* x, int64_t n) { return extreme_row<Step>(x, n); }
template <class Step> static inline double extreme_value(const double* x, int64_t n) { return extreme_row<Step>(x, n); }
template <class Step, class T> static inline T extreme_value(const T* x, int64_t n) {
  T best = x[0];
  for (int64_t i = 1; i < n; i++) best = Step::step(best, x[i]);
  return best;
}

// The first position of `value` (which is there), or of the first NaN when it is one.
template <class T> static inline int64_t first_position(const T* x, int64_t n, T value) {
  const bool nan = value != value;
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    int hit = 0;
    for (int64_t k = 0; k < 64; k++) hit |= nan ? x[i + k] != x[i + k] : x[i + k] == value;
    if (hit) break;
  }
  for (; i < n; i++)
    if (nan ? x[i] != x[i] : x[i] == value) return i;
  return 0;
}

template <class Step, class T>
static inline int arg_rows(const T* x, int64_t* out, int64_t outer, int64_t size, const tpk_call* call) {
  const int64_t chunks = ceil_div(size, kArgWork);
  if (chunks == 1) {
    parallel_for(outer, items_per_chunk(kArgWork, size), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++)
        out[i] = first_position(x + i * size, size, extreme_value<Step>(x + i * size, size));
    });
    return TPK_OK;
  }
  Workspace<int64_t> part(outer * chunks);
  if (!part.data) return fail(call, "out of memory");
  parallel_for(outer * chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; task++) {
      int64_t start = task % chunks * kArgWork, n = smaller(kArgWork, size - start);
      const T* p = x + task / chunks * size + start;
      part.data[task] = start + first_position(p, n, extreme_value<Step>(p, n));
    }
  });
  for (int64_t i = 0; i < outer; i++) {
    const T* row = x + i * size;
    int64_t best = part.data[i * chunks];
    for (int64_t c = 1; c < chunks; c++)
      if (Better<Step>::than(row[part.data[i * chunks + c]], row[best])) best = part.data[i * chunks + c];
    out[i] = best;
  }
  return TPK_OK;
}

// Positions are kept as int32 as long as they fit, so that they are as wide as the commonest element.
template <class Step, class Index, class T>
static inline void arg_columns(const T* x, int64_t rows, int64_t stride, int64_t width, int64_t* out) {
  T best[kArgTile];
  Index at[kArgTile];
  for (int64_t j = 0; j < width; j++) best[j] = x[j], at[j] = 0;
  for (int64_t r = 1; r < rows; r++) {
    const T* row = x + r * stride;
    for (int64_t j = 0; j < width; j++) {
      bool better = Better<Step>::than(row[j], best[j]);
      best[j] = better ? row[j] : best[j];
      at[j] = better ? static_cast<Index>(r) : at[j];
    }
  }
  for (int64_t j = 0; j < width; j++) out[j] = at[j];
}

template <class Step, class T>
static inline int arg_axis(const T* x, int64_t* out, const Axis& axis, const tpk_call* call) {
  const int64_t inner = axis.inner, size = axis.size;
  if (inner == 1) return arg_rows<Step>(x, out, axis.outer, size, call);
  const int64_t tile = smaller(inner, kArgTile), tiles = ceil_div(inner, tile);
  parallel_for(axis.outer * tiles, items_per_chunk(kArgWork, size * tile), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; task++) {
      int64_t o = task / tiles, column = task % tiles * tile;
      const T* p = x + o * size * inner + column;
      int64_t* to = out + o * inner + column;
      int64_t width = smaller(tile, inner - column);
      if (size <= INT32_MAX) arg_columns<Step, int32_t>(p, size, inner, width, to);
      else arg_columns<Step, int64_t>(p, size, inner, width, to);
    }
  });
  return TPK_OK;
}

}  // namespace TPK_ISA_NS
