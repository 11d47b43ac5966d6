// Serial matrix products for float and double: packed and blocked in general, streaming for a few rows.
#include "blas.h"
#include "parallel.h"
#include "tile.h"

namespace TPK_ISA_NS {
namespace {

constexpr int kTileVectors = 2;
constexpr int64_t kDepth = 256;      // a panel of b (kDepth x 2 vectors) stays in L1
constexpr int64_t kRowsBlock = kTileRows * 16;
constexpr int64_t kColumnsBlock = 1024;
constexpr int kSkinnyRows = 4;

template <class T> struct Operand {
  const T* data;
  int64_t row, column; // strides
};

template <class T> constexpr int64_t kPanel = kTileVectors * lanes_of<T>();

// Panels of kTileRows rows, stored depth by depth; rows that do not exist are zero.
template <class T>
void pack_a(const Operand<T>& a, int64_t rows, int64_t depth, T alpha, T* __restrict out) {
  for (int64_t i = 0; i < rows; i += kTileRows) {
    const int64_t live = rows - i < kTileRows ? rows - i : kTileRows;
    const T* source = a.data + i * a.row;
    if (live < kTileRows) memset(out, 0, sizeof(T) * size_t(kTileRows * depth));
    if (a.column == 1) {
      for (int64_t r = 0; r < live; r++)
        for (int64_t p = 0; p < depth; p++) out[p * kTileRows + r] = alpha * source[r * a.row + p];
    } else {
      for (int64_t p = 0; p < depth; p++)
        for (int64_t r = 0; r < live; r++) out[p * kTileRows + r] = alpha * source[r * a.row + p * a.column];
    }
    out += kTileRows * depth;
  }
}

template <class T>
void pack_b(const Operand<T>& b, int64_t depth, int64_t columns, T* __restrict out) {
  constexpr int64_t width = kPanel<T>;
  for (int64_t j = 0; j < columns; j += width) {
    const int64_t live = columns - j < width ? columns - j : width;
    const T* source = b.data + j * b.column;
    if (live < width) memset(out, 0, sizeof(T) * size_t(width * depth));
    if (b.column == 1) {
      for (int64_t p = 0; p < depth; p++) memcpy(out + p * width, source + p * b.row, sizeof(T) * size_t(live));
    } else {
      for (int64_t c = 0; c < live; c++)
        for (int64_t p = 0; p < depth; p++) out[p * width + c] = source[c * b.column + p * b.row];
    }
    out += width * depth;
  }
}

template <class T>
void full_tile(int64_t depth, const T* a, const T* b, T* c, int64_t ldc) {
  tile<T, kTileRows, kTileVectors, 1, kTileRows, true>(depth, a, 1, kTileRows, b, kPanel<T>, c, ldc);
}

template <class T>
void edge_tile(int64_t depth, const T* a, const T* b, T* c, int64_t ldc, int64_t rows, int64_t columns) {
  alignas(64) T whole[kTileRows * kPanel<T>];
  tile<T, kTileRows, kTileVectors, 1, kTileRows, false>(depth, a, 1, kTileRows, b, kPanel<T>, whole, kPanel<T>);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) c[i * ldc + j] += whole[i * kPanel<T> + j];
}

template <class T>
void scale(int64_t m, int64_t n, T beta, T* c, int64_t ldc) {
  if (beta == T(1)) return;
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) c[i * ldc + j] = beta == T(0) ? T(0) : beta * c[i * ldc + j]; // 0 * NaN stays out
}

template <class T>
void block(int64_t rows, int64_t columns, int64_t depth, const T* a, const T* b, T* c, int64_t ldc) {
  for (int64_t j = 0; j < columns; j += kPanel<T>)
    for (int64_t i = 0; i < rows; i += kTileRows) {
      const T* panel_a = a + i * depth;
      const T* panel_b = b + j * depth;
      T* target = c + i * ldc + j;
      if (rows - i >= kTileRows && columns - j >= kPanel<T>) full_tile(depth, panel_a, panel_b, target, ldc);
      else
        edge_tile(depth, panel_a, panel_b, target, ldc, rows - i < kTileRows ? rows - i : kTileRows,
                  columns - j < kPanel<T> ? columns - j : kPanel<T>);
    }
}

int64_t round_up(int64_t x, int64_t step) { return (x + step - 1) / step * step; }

template <class T>
int gemm(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b,
         int64_t ldb, T beta, T* c, int64_t ldc) {
  const int64_t depth_block = smaller(k, kDepth);
  Workspace<T> packed_a(round_up(smaller(m, kRowsBlock), kTileRows) * depth_block);
  Workspace<T> packed_b(round_up(smaller(n, kColumnsBlock), kPanel<T>) * depth_block);
  if (!packed_a.data || !packed_b.data) return 1;
  scale(m, n, beta, c, ldc);
  const Operand<T> whole_a = {a, trans_a ? 1 : lda, trans_a ? lda : 1};
  const Operand<T> whole_b = {b, trans_b ? 1 : ldb, trans_b ? ldb : 1};
  for (int64_t j = 0; j < n; j += kColumnsBlock)
    for (int64_t p = 0; p < k; p += kDepth) {
      const int64_t columns = smaller(n - j, kColumnsBlock), depth = smaller(k - p, kDepth);
      pack_b<T>({whole_b.data + p * whole_b.row + j * whole_b.column, whole_b.row, whole_b.column}, depth, columns,
                packed_b.data);
      for (int64_t i = 0; i < m; i += kRowsBlock) {
        const int64_t rows = smaller(m - i, kRowsBlock);
        pack_a<T>({whole_a.data + i * whole_a.row + p * whole_a.column, whole_a.row, whole_a.column}, rows, depth,
                  alpha, packed_a.data);
        block(rows, columns, depth, packed_a.data, packed_b.data, c + i * ldc + j, ldc);
      }
    }
  return 0;
}

template <class T> inline void put(T* c, T value, T alpha, T beta) {
  *c = beta == T(0) ? alpha * value : alpha * value + beta * *c;
}

// MR rows of a times NB rows of b: dot products along the depth, which is adjacent in both.
template <class T, int MR, int NB>
void dots(int64_t k, T alpha, const T* a, int64_t lda, const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
  vec<T> acc[MR][NB] = {};
  int64_t p = 0;
  for (; p + lanes_of<T>() <= k; p += lanes_of<T>()) {
    vec<T> left[MR];
#pragma GCC unroll 8
    for (int i = 0; i < MR; i++) left[i] = load<vec<T>>(a + i * lda + p);
#pragma GCC unroll 8
    for (int j = 0; j < NB; j++) {
      const vec<T> right = load<vec<T>>(b + j * ldb + p);
#pragma GCC unroll 8
      for (int i = 0; i < MR; i++) acc[i][j] += left[i] * right;
    }
  }
  for (int i = 0; i < MR; i++)
    for (int j = 0; j < NB; j++) {
      T total = fold_lanes<SumStep, T>(acc[i][j]);
      for (int64_t q = p; q < k; q++) total += a[i * lda + q] * b[j * ldb + q];
      put(c + i * ldc + j, total, alpha, beta);
    }
}

template <class T, int MR>
void skinny_dots(int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b, int64_t ldb, T beta, T* c,
                 int64_t ldc) {
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) dots<T, MR, 4>(k, alpha, a, lda, b + j * ldb, ldb, beta, c + j, ldc);
  for (; j < n; j++) dots<T, MR, 1>(k, alpha, a, lda, b + j * ldb, ldb, beta, c + j, ldc);
}

template <class T, int MR, int NV>
void strip(int64_t k, T alpha, const T* a, int64_t lda, const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
  vec<T> acc[MR][NV] = {};
  accumulate<T, MR, NV, 0, 1>(k, a, lda, 1, b, ldb, acc);
  for (int i = 0; i < MR; i++)
    for (int v = 0; v < NV; v++) {
      T* target = c + i * ldc + v * lanes_of<T>();
      store(target, beta == T(0) ? alpha * acc[i][v] : alpha * acc[i][v] + beta * load<vec<T>>(target));
    }
}

// b is row-major: strips of adjacent columns, each read once from top to bottom.
template <class T, int MR>
void skinny_strips(int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b, int64_t ldb, T beta, T* c,
                   int64_t ldc) {
  constexpr int lanes = int(lanes_of<T>()), wide = MR == 1 ? 8 : MR == 2 ? 4 : 2;
  int64_t j = 0;
  for (; j + wide * lanes <= n; j += wide * lanes)
    strip<T, MR, wide>(k, alpha, a, lda, b + j, ldb, beta, c + j, ldc);
  for (; j + lanes <= n; j += lanes) strip<T, MR, 1>(k, alpha, a, lda, b + j, ldb, beta, c + j, ldc);
  const int64_t rest = n - j;
  if (!rest) return;
  for (int i = 0; i < MR; i++) {
    T total[lanes] = {};
    for (int64_t p = 0; p < k; p++)
      for (int64_t q = 0; q < rest; q++) total[q] += a[i * lda + p] * b[p * ldb + j + q];
    for (int64_t q = 0; q < rest; q++) put(c + i * ldc + j + q, total[q], alpha, beta);
  }
}

template <class T, int MR>
void skinny_rows(int trans_b, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b, int64_t ldb, T beta,
                 T* c, int64_t ldc) {
  if (trans_b) skinny_dots<T, MR>(n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  else skinny_strips<T, MR>(n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

template <class T>
void skinny(int trans_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b, int64_t ldb,
            T beta, T* c, int64_t ldc) {
  for (int64_t i = 0; i < m; i += kSkinnyRows, a += kSkinnyRows * lda, c += kSkinnyRows * ldc) {
    switch (smaller(m - i, kSkinnyRows)) {
      case 1: skinny_rows<T, 1>(trans_b, n, k, alpha, a, lda, b, ldb, beta, c, ldc); break;
      case 2: skinny_rows<T, 2>(trans_b, n, k, alpha, a, lda, b, ldb, beta, c, ldc); break;
      case 3: skinny_rows<T, 3>(trans_b, n, k, alpha, a, lda, b, ldb, beta, c, ldc); break;
      default: skinny_rows<T, 4>(trans_b, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    }
  }
}

}  // namespace
}  // namespace TPK_ISA_NS

#define TPK_GEMM_KERNELS TPK_JOIN(tpk_gemm_kernels_, TPK_ISA_SUFFIX)
extern const tpk_gemm_kernels TPK_GEMM_KERNELS;
const tpk_gemm_kernels TPK_GEMM_KERNELS = {TPK_ISA_NS::gemm<float>, TPK_ISA_NS::gemm<double>,
                                           TPK_ISA_NS::skinny<float>, TPK_ISA_NS::skinny<double>};
