// Scaled dot product attention in blocks: what its forward and backward passes share.
//
// One lane of a vector is one query. Scores of a block stand as [key][query], so the softmax over keys needs no
// operation across lanes, keys and values are read where the caller has them, and no product has ragged columns. The
// query heads of a group share their keys: their rows are simply more queries.
#pragma once
#include <cmath>

#include "parallel.h"
#include "tile.h"
#include "vecmath.h"

namespace TPK_ISA_NS {

constexpr int kQueries = 32; // queries of a block
constexpr int kKeys = 64;    // keys of a block
constexpr int kRowsInTile = kTileRows > 8 ? 8 : 4;
constexpr double kLog2E = 1.4426950408889634074, kLn2 = 0.69314718055994530942;

static inline float power_of_two(float x) { return exp2_f32(x); }
static inline double power_of_two(double x) { return exp2(x); }

// A tensor [batch, head, row, column] whose columns are adjacent.
template <class T> struct Heads {
  T* data;
  int64_t batch, head, row; // strides
  T* at(int64_t b, int64_t h, int64_t t) const { return data + b * batch + h * head + t * row; }
};

template <class T> struct Attention {
  Heads<const T> query, key, value;
  int64_t batches, heads, key_heads, group, queries, keys, depth, width; // depth of keys, width of values
  const tpk_tensor* mask; // NULL, or broadcastable to [batch, head, query, key]
  int64_t mask_stride[4];
  bool causal;
  int64_t diagonal; // query i sees keys up to i + diagonal
  double scale;

  int64_t rows() const { return group * queries; } // queries that share a head of keys
  int64_t row_blocks() const { return ceil_div(rows(), kQueries); }
};

// The queries of a block: lane i is row first + i among those that share head `key_head` of keys.
template <class T> struct Block {
  int64_t batch, key_head, first;
  int live; // lanes in use
  int64_t head[kQueries], position[kQueries];
  alignas(64) T last_key[kQueries]; // the last key this lane sees, -1: none
  int64_t nearest, farthest;        // smallest and largest of last_key

  void set(const Attention<T>& a, int64_t batch_, int64_t key_head_, int64_t first_) {
    batch = batch_, key_head = key_head_, first = first_;
    live = int(smaller(kQueries, a.rows() - first));
    nearest = a.keys - 1, farthest = -1;
    for (int i = 0; i < kQueries; i++) {
      const int64_t row = first + (i < live ? i : 0);
      head[i] = key_head * a.group + row / a.queries;
      position[i] = row % a.queries;
      int64_t last = a.causal ? position[i] + a.diagonal : a.keys - 1;
      last = larger(-1, smaller(last, a.keys - 1));
      last_key[i] = T(last);
      nearest = smaller(nearest, last), farthest = larger(farthest, last);
    }
  }
};

// out[column][lane] = factor * source row of the lane; lanes out of use are zero.
template <class T>
static inline void pack_lanes(const Block<T>& block, const Heads<const T>& source, int64_t columns, T factor,
                              T* __restrict out) {
  const T* rows[kQueries];
  for (int i = 0; i < kQueries; i++) rows[i] = source.at(block.batch, block.head[i], block.position[i]);
  for (int i = 0; i < block.live; i++)
    for (int64_t c = 0; c < columns; c++) out[c * kQueries + i] = factor * rows[i][c];
  for (int i = block.live; i < kQueries; i++)
    for (int64_t c = 0; c < columns; c++) out[c * kQueries + i] = 0;
}

// The reverse, to rows of any layout; lane i is multiplied by factor[i].
template <class T>
static inline void unpack_lanes(const Block<T>& block, const Heads<T>& target, int64_t columns, const T* factor,
                                const T* __restrict lanes) {
  for (int i = 0; i < block.live; i++) {
    T* row = target.at(block.batch, block.head[i], block.position[i]);
    for (int64_t c = 0; c < columns; c++) row[c] = factor[i] * lanes[c * kQueries + i];
  }
}

// c [m][lanes] = or += a [m, k] b [k][lanes]
template <class T, int RS, int CS, bool ADD>
static inline void multiply_lanes(int64_t m, int64_t k, const T* a, int64_t rs, int64_t cs, const T* b, T* c) {
  constexpr int lanes = int(lanes_of<T>());
  for (int v = 0; v < kQueries; v += 2 * lanes) {
    int64_t i = 0;
    for (; i + kRowsInTile <= m; i += kRowsInTile)
      tile<T, kRowsInTile, 2, RS, CS, ADD>(k, a + i * rs, rs, cs, b + v, kQueries, c + i * kQueries + v, kQueries);
    for (; i < m; i++)
      tile<T, 1, 2, RS, CS, ADD>(k, a + i * rs, rs, cs, b + v, kQueries, c + i * kQueries + v, kQueries);
  }
}

// c [m][columns] += lanes [m][lanes] rows [lanes][columns]; columns is a multiple of the vector.
template <class T, int NV>
static inline void fold_lanes_columns(int64_t m, const T* lanes, const T* rows, int64_t columns, T* c) {
  int64_t i = 0;
  for (; i + kRowsInTile <= m; i += kRowsInTile)
    tile<T, kRowsInTile, NV, kQueries, 1, true>(kQueries, lanes + i * kQueries, kQueries, 1, rows, columns,
                                                c + i * columns, columns);
  for (; i < m; i++)
    tile<T, 1, NV, kQueries, 1, true>(kQueries, lanes + i * kQueries, kQueries, 1, rows, columns, c + i * columns,
                                      columns);
}

template <class T> static inline void fold_queries(int64_t m, const T* lanes, const T* rows, int64_t columns, T* c) {
  constexpr int64_t N = lanes_of<T>();
  int64_t j = 0;
  for (; j + 2 * N <= columns; j += 2 * N) fold_lanes_columns<T, 2>(m, lanes, rows + j, columns, c + j);
  for (; j < columns; j += N) fold_lanes_columns<T, 1>(m, lanes, rows + j, columns, c + j);
}

template <class T>
static inline void apply_mask(const Attention<T>& a, const Block<T>& block, int64_t first, int64_t count, T* s) {
  const bool keep = a.mask->dtype == TPK_BOOL;
  for (int i = 0; i < block.live; i++) {
    const int64_t offset = block.batch * a.mask_stride[0] + block.head[i] * a.mask_stride[1] +
                           block.position[i] * a.mask_stride[2] + first * a.mask_stride[3];
    if (keep) {
      const uint8_t* row = static_cast<const uint8_t*>(a.mask->data) + offset;
      for (int64_t j = 0; j < count; j++)
        if (!row[j * a.mask_stride[3]]) s[j * kQueries + i] = -T(__builtin_inf());
    } else {
      const T* row = static_cast<const T*>(a.mask->data) + offset;
      for (int64_t j = 0; j < count; j++) s[j * kQueries + i] += row[j * a.mask_stride[3]] * T(kLog2E);
    }
  }
}

// Scores times log2(e) of keys [first, first + count): -inf where a lane may not look. `packed` are the scaled queries.
template <class T>
static inline void score_block(const Attention<T>& a, const Block<T>& block, const T* packed, int64_t first,
                               int64_t count, T* __restrict s) {
  const T* key = a.key.at(block.batch, block.key_head, first);
  multiply_lanes<T, 0, 1, false>(count, a.depth, key, a.key.row, 1, packed, s);
  if (a.mask) apply_mask(a, block, first, count, s);
  if (first + count - 1 <= block.nearest) return;
  for (int64_t j = 0; j < count; j++) {
    const T position = T(first + j);
    for (int i = 0; i < kQueries; i++)
      s[j * kQueries + i] = position <= block.last_key[i] ? s[j * kQueries + i] : -T(__builtin_inf());
  }
}

}  // namespace TPK_ISA_NS
