// Reductions of a contiguous array seen as [outer, size, inner] over its middle dimension, for any fold.
//
// A fold Op<In> says: Lane, the type in which neighbouring elements meet; Acc, the type in which blocks meet;
// lane(x), identity(), step(lane, lane), row(x, n), merge(acc, acc); Vectors, its step on vectors of floats or
// ScalarStep. Work is cut by sizes alone.
#pragma once
#include "axes.h"
#include "parallel.h"
#include "vec.h"

namespace TPK_ISA_NS {

constexpr int64_t kFoldWork = 65536;  // elements of a task
constexpr int64_t kFoldTile = 512;    // columns of a task
constexpr int64_t kFoldRows = 64;     // rows whose sum may stay in lanes

struct ScalarStep {};
template <class Step> struct Vectorised {};
template <class In, class Step> struct VectorStep { typedef ScalarStep Choice; };
template <class Step> struct VectorStep<float, Step> { typedef Vectorised<Step> Choice; };
template <class Step> struct VectorStep<double, Step> { typedef Vectorised<Step> Choice; };

static inline double divided(double a, double divisor) { return a / divisor; }
static inline int64_t divided(int64_t a, double) { return a; }
static inline float divided(float a, double) { return a; }
static inline int32_t divided(int32_t a, double) { return a; }
static inline int16_t divided(int16_t a, double) { return a; }
static inline int8_t divided(int8_t a, double) { return a; }
static inline uint8_t divided(uint8_t a, double) { return a; }

// lane[j] meets x[r * stride + j] for every row: one row after the other (the compiler vectorises integers),
template <class O, class In>
static inline void meet_rows(const In* x, int64_t rows, int64_t stride, int64_t width, typename O::Lane* lane,
                             ScalarStep) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t j = 0; j < width; j++) lane[j] = O::step(lane[j], O::lane(x[r * stride + j]));
}
// or eight rows in a tree, so that the lanes are loaded and stored less often.
template <class O, class In, class Step>
static inline void meet_rows(const In* x, int64_t rows, int64_t stride, int64_t width, In* lane, Vectorised<Step>) {
  int64_t r = 0;
  for (; r + 8 <= rows; r += 8) {
    each_vector<In>(width, [=](auto tag, int64_t j) {
      typedef decltype(tag) V;
      const In* p = x + r * stride + j;
      V a = Step::step(Step::step(load<V>(p), load<V>(p + stride)),
                       Step::step(load<V>(p + 2 * stride), load<V>(p + 3 * stride)));
      p += 4 * stride;
      V b = Step::step(Step::step(load<V>(p), load<V>(p + stride)),
                       Step::step(load<V>(p + 2 * stride), load<V>(p + 3 * stride)));
      store(lane + j, Step::step(load<V>(lane + j), Step::step(a, b)));
    });
  }
  for (; r < rows; r++)
    each_vector<In>(width, [=](auto tag, int64_t j) {
      typedef decltype(tag) V;
      store(lane + j, Step::step(load<V>(lane + j), load<V>(x + r * stride + j)));
    });
}

// acc[j] = fold of x[r * stride + j] over the rows, for j < width <= kFoldTile.
template <class O, class In>
static inline void fold_columns(const In* x, int64_t rows, int64_t stride, int64_t width, typename O::Acc* acc) {
  typename O::Lane lane[kFoldTile];
  for (int64_t j = 0; j < width; j++) acc[j] = O::identity();
  for (int64_t r = 0; r < rows; r += kFoldRows) {
    for (int64_t j = 0; j < width; j++) lane[j] = O::identity();
    meet_rows<O>(x + r * stride, smaller(kFoldRows, rows - r), stride, width, lane, typename O::Vectors());
    for (int64_t j = 0; j < width; j++) acc[j] = O::merge(acc[j], lane[j]);
  }
}

// Few columns without a gap between the rows: several rows side by side make one row that fills vectors.
template <class O, class In>
static inline void fold_tile(const In* x, int64_t rows, int64_t stride, int64_t width, typename O::Acc* acc) {
  int64_t together = width < 32 && stride == width ? 64 / width : 1;
  if (together == 1 || rows < 8 * together) return fold_columns<O>(x, rows, stride, width, acc);
  typename O::Acc wide[kFoldTile], rest[kFoldTile];
  int64_t wide_rows = rows / together, done = wide_rows * together;
  fold_columns<O>(x, wide_rows, stride * together, width * together, wide);
  fold_columns<O>(x + done * stride, rows - done, stride, width, rest);
  for (int64_t j = 0; j < width; j++) {
    acc[j] = wide[j];
    for (int64_t k = 1; k < together; k++) acc[j] = O::merge(acc[j], wide[k * width + j]);
    acc[j] = O::merge(acc[j], rest[j]);
  }
}

template <class O, class In, class Out>
static inline int fold_rows(const In* x, Out* out, int64_t outer, int64_t size, double divisor, const tpk_call* call) {
  typedef typename O::Acc Acc;
  int64_t chunks = larger(1, ceil_div(size, kFoldWork));
  if (chunks == 1) {
    parallel_for(outer, items_per_chunk(kFoldWork, size), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) out[i] = static_cast<Out>(divided(O::row(x + i * size, size), divisor));
    });
    return TPK_OK;
  }
  Workspace<Acc> part(outer * chunks);
  if (!part.data) return fail(call, "out of memory");
  parallel_for(outer * chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; task++) {
      int64_t start = task % chunks * kFoldWork;
      part.data[task] = O::row(x + task / chunks * size + start, smaller(kFoldWork, size - start));
    }
  });
  for (int64_t i = 0; i < outer; i++) {
    Acc acc = part.data[i * chunks];
    for (int64_t c = 1; c < chunks; c++) acc = O::merge(acc, part.data[i * chunks + c]);
    out[i] = static_cast<Out>(divided(acc, divisor));
  }
  return TPK_OK;
}

template <class O, class In, class Out>
static inline int fold_middle(const In* x, Out* out, const Axis& axis, double divisor, const tpk_call* call) {
  typedef typename O::Acc Acc;
  const int64_t inner = axis.inner, size = axis.size;
  const int64_t tile = smaller(inner, kFoldTile), tiles = ceil_div(inner, tile);
  const int64_t step = ceil_div(items_per_chunk(kFoldWork, tile), kFoldRows) * kFoldRows;
  const int64_t chunks = larger(1, ceil_div(size, step));
  Workspace<Acc> part(chunks > 1 ? axis.outer * chunks * inner : 0);
  if (!part.data) return fail(call, "out of memory");
  int64_t grain = items_per_chunk(kFoldWork, smaller(size, step) * tile);
  parallel_for(axis.outer * chunks * tiles, grain, [&](int64_t begin, int64_t end) {
    Acc acc[kFoldTile];
    for (int64_t task = begin; task < end; task++) {
      int64_t column = task % tiles * tile, chunk = task / tiles % chunks, o = task / tiles / chunks;
      int64_t width = smaller(tile, inner - column), start = chunk * step;
      Acc* to = chunks > 1 ? part.data + (o * chunks + chunk) * inner + column : acc;
      fold_tile<O>(x + (o * size + start) * inner + column, smaller(step, size - start), inner, width, to);
      if (chunks == 1)
        for (int64_t j = 0; j < width; j++) out[o * inner + column + j] = static_cast<Out>(divided(acc[j], divisor));
    }
  });
  if (chunks == 1) return TPK_OK;
  parallel_for(axis.outer * inner, items_per_chunk(kFoldWork, chunks), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const Acc* p = part.data + i / inner * chunks * inner + i % inner;
      Acc total = p[0];
      for (int64_t c = 1; c < chunks; c++) total = O::merge(total, p[c * inner]);
      out[i] = static_cast<Out>(divided(total, divisor));
    }
  });
  return TPK_OK;
}

template <class O, class In, class Out>
static inline int fold_axis(const In* x, Out* out, const Axis& axis, double divisor, const tpk_call* call) {
  if (axis.inner == 1) return fold_rows<O>(x, out, axis.outer, axis.size, divisor, call);
  return fold_middle<O>(x, out, axis, divisor, call);
}

// The innermost reduced group of dimensions as an axis; the group is then gone.
static inline Axis take_last_reduced(Groups& groups) {
  int g = groups.count - 1;
  Axis axis = {1, 1, 1};
  for (; !groups.reduced[g]; g--) axis.inner *= groups.size[g];
  axis.size = groups.size[g];
  for (int k = 0; k < g; k++) axis.outer *= groups.size[k];
  groups.count--;
  for (int k = g; k < groups.count; k++) {
    groups.size[k] = groups.size[k + 1];
    groups.reduced[k] = groups.reduced[k + 1];
  }
  return axis;
}

// Reduces one group after the other, the innermost first; in between the values are kept as Acc.
template <template <class> class Op, class In, class Out>
static inline int fold_groups(const tpk_call* call, Groups groups, double divisor) {
  typedef typename Op<In>::Acc Acc;
  const In* x = static_cast<const In*>(call->in[0].data);
  Out* out = static_cast<Out*>(call->out[0].data);
  if (groups.outputs == 0) return TPK_OK;
  int remaining = 0;
  for (int g = 0; g < groups.count; g++) remaining += groups.reduced[g];
  if (remaining == 0) return fold_axis<Op<In>>(x, out, {groups.outputs, 1, 1}, divisor, call);
  Axis axis = take_last_reduced(groups);
  if (--remaining == 0) return fold_axis<Op<In>>(x, out, axis, divisor, call);
  Workspace<Acc> first(axis.outer * axis.inner), second(axis.outer * axis.inner);
  if (!first.data || !second.data) return fail(call, "out of memory");
  Acc *from = first.data, *to = second.data;
  int status = fold_axis<Op<In>>(x, from, axis, 1, call);
  while (status == TPK_OK) {
    axis = take_last_reduced(groups);
    if (--remaining == 0) return fold_axis<Op<Acc>>(from, out, axis, divisor, call);
    status = fold_axis<Op<Acc>>(from, to, axis, 1, call);
    Acc* swap = from;
    from = to, to = swap;
  }
  return status;
}

}  // namespace TPK_ISA_NS
