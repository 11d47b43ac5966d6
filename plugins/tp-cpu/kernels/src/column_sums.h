// Sums over rows that fall out of a pass over the rows, as the gradients of normalisation weights do.
#pragma once
#include "axes.h"
#include "parallel.h"

namespace TPK_ISA_NS {

constexpr int64_t kSumRows = 64;       // rows that are added in T before they go to a double
constexpr int64_t kSumWork = 32768;    // least elements of a block of rows
constexpr int64_t kSumBlocks = 64;     // most blocks

// visit(row, sums) adds to sums[k][0..width) for k < n <= 2; totals[k][j] becomes the sum over all rows.
template <class T, class Visit>
static inline int sum_over_rows(const tpk_call* call, int64_t count, int64_t width, T* const* totals, int n,
                                const Visit& visit) {
  int64_t block = larger(items_per_chunk(kSumWork, width), ceil_div(count, kSumBlocks));
  block = ceil_div(block, kSumRows) * kSumRows;
  const int64_t blocks = larger(1, ceil_div(count, block)), line = n * width;
  Workspace<double> wide(blocks * line);
  Workspace<T> narrow(blocks * line);
  if (!wide.data || !narrow.data) return fail(call, "out of memory");
  parallel_for(blocks, 1, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; b++) {
      double* to = wide.data + b * line;
      T* sums[2] = {narrow.data + b * line, narrow.data + b * line + (n - 1) * width};
      for (int64_t j = 0; j < line; j++) to[j] = 0;
      const int64_t end = smaller(count, (b + 1) * block);
      for (int64_t row = b * block; row < end;) {
        for (int64_t j = 0; j < line; j++) sums[0][j] = 0;
        for (int64_t stop = smaller(end, row + kSumRows); row < stop; row++) visit(row, sums);
        for (int64_t j = 0; j < line; j++) to[j] += sums[0][j];
      }
    }
  });
  for (int64_t j = 0; j < line; j++) {
    double total = 0;
    for (int64_t b = 0; b < blocks; b++) total += wide.data[b * line + j];
    totals[j / width][j % width] = static_cast<T>(total);
  }
  return TPK_OK;
}

}  // namespace TPK_ISA_NS
