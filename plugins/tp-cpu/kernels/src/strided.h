// Elementwise iteration over up to five operands of any layout.
//
// A kernel is a loop over contiguous arrays and knows nothing else. The plan aligns the operands to the output's shape,
// drops and merges dimensions, and cuts the elements into chunks for the thread pool; inside a chunk an operand that is
// not contiguous passes through a small buffer in the first-level cache, a 16-bit float is widened on the way.
#pragma once
#include "dtype.h"

namespace TPK_ISA_NS {

constexpr int kMaxDims = 16;
constexpr int kMaxOperands = 5;
constexpr int64_t kBlock = 512;     // elements that pass through a buffer at once
constexpr int64_t kShortRow = 48;   // shorter rows are gathered together into one block
constexpr int64_t kGrain = 32768;   // elements of a chunk when an element costs about a nanosecond or less
constexpr int64_t kGrainMath = 8192;  // for exp, tanh and the like
constexpr int64_t kGrainSlow = 2048;  // for functions of the C library

// data[0..n_out) are outputs. Bit k of `scalars` says that operand k is one element for the whole loop.
typedef void (*Loop)(const void* context, int64_t n, char* const* data, unsigned scalars);

struct Kernel {
  Loop loop;
  const void* context;
  int64_t grain;
  int n_out;
  bool takes_scalars;  // the loop looks at `scalars`; otherwise a scalar is spread out in a buffer
};

struct Plan {
  int n_operands, ndim;
  int64_t numel;
  int64_t shape[kMaxDims];
  int64_t stride[kMaxOperands][kMaxDims];  // bytes
  char* data[kMaxOperands];
  int size[kMaxOperands];    // bytes of an element in memory
  int widen[kMaxOperands];   // TPK_F16 or TPK_BF16: the loop sees float; 0: as it is
  bool linear[kMaxOperands]; // element i of the iteration is at data + i * size
};

// Merges neighbouring dimensions that every operand walks through in one stride.
static inline void collapse(Plan& plan) {
  int kept = 0;
  for (int d = 1; d < plan.ndim; d++) {
    bool merge = true;
    for (int k = 0; k < plan.n_operands; k++)
      merge = merge && plan.stride[k][kept] == plan.stride[k][d] * plan.shape[d];
    if (merge) plan.shape[kept] *= plan.shape[d];
    else plan.shape[++kept] = plan.shape[d];
    for (int k = 0; k < plan.n_operands; k++) plan.stride[k][kept] = plan.stride[k][d];
  }
  if (plan.ndim > 0) plan.ndim = kept + 1;
}

// Puts the dimensions into the order in which the output lies in memory.
static inline void sort_dimensions(Plan& plan) {
  auto distance = [&](int d) { int64_t s = plan.stride[0][d]; return s < 0 ? -s : s; };
  for (int i = 1; i < plan.ndim; i++)
    for (int d = i; d > 0 && distance(d - 1) < distance(d); d--) {
      int64_t size = plan.shape[d];
      plan.shape[d] = plan.shape[d - 1], plan.shape[d - 1] = size;
      for (int k = 0; k < plan.n_operands; k++) {
        int64_t stride = plan.stride[k][d];
        plan.stride[k][d] = plan.stride[k][d - 1], plan.stride[k][d - 1] = stride;
      }
    }
}

static inline bool place_operand(Plan& plan, int k, const tpk_tensor& operand, const tpk_tensor& out, int ndim_out) {
  plan.data[k] = static_cast<char*>(operand.data);
  plan.size[k] = itemsize(operand.dtype);
  plan.widen[k] = 0;
  int kept = 0;
  for (int d = 0; d < ndim_out; d++) {
    int own = d - (ndim_out - operand.ndim);
    int64_t size = own >= 0 ? operand.shape[own] : 1;
    if (size != out.shape[d] && size != 1) return false;
    if (out.shape[d] == 1) continue;
    plan.shape[kept] = out.shape[d];
    plan.stride[k][kept++] = size == 1 ? 0 : operand.strides[own] * plan.size[k];
  }
  plan.ndim = kept;
  return true;
}

// operands[0] is the output whose shape counts. False: the operands do not fit together (or have too many dimensions).
static inline bool make_plan(Plan& plan, const tpk_tensor* const* operands, int n) {
  const tpk_tensor& out = *operands[0];
  plan.n_operands = n;
  plan.numel = out.numel;
  bool contiguous = true;
  for (int k = 0; k < n; k++) {
    if (operands[k]->ndim < 0 || operands[k]->ndim > out.ndim) return false;
    contiguous = contiguous && operands[k]->contiguous && operands[k]->numel == out.numel;
  }
  if (contiguous) {
    plan.ndim = 1;
    plan.shape[0] = out.numel;
    for (int k = 0; k < n; k++) {
      plan.data[k] = static_cast<char*>(operands[k]->data);
      plan.size[k] = itemsize(operands[k]->dtype);
      plan.stride[k][0] = plan.size[k];
      plan.widen[k] = 0;
      plan.linear[k] = true;
    }
    return true;
  }
  if (out.ndim > kMaxDims) return false;
  for (int k = 0; k < n; k++)
    if (!place_operand(plan, k, *operands[k], out, out.ndim)) return false;
  sort_dimensions(plan);
  collapse(plan);
  if (plan.ndim == 0) {
    plan.ndim = 1;
    plan.shape[0] = plan.numel;
    for (int k = 0; k < n; k++) plan.stride[k][0] = plan.size[k];
  }
  for (int k = 0; k < n; k++) {
    int64_t expected = plan.size[k];
    plan.linear[k] = true;
    for (int d = plan.ndim - 1; d >= 0; expected *= plan.shape[d--])
      plan.linear[k] = plan.linear[k] && plan.stride[k][d] == expected;
  }
  return true;
}

template <class T>
static inline void move_strided(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    T value;
    memcpy(&value, from + i * from_stride, sizeof(T));
    memcpy(to + i * to_stride, &value, sizeof(T));
  }
}
struct Pair { uint64_t low, high; };

// n elements of `size` bytes; strides in bytes.
static inline void move_elements(int size, char* to, int64_t to_stride, const char* from, int64_t from_stride,
                                 int64_t n) {
  if (to_stride == size && from_stride == size) {
    memcpy(to, from, static_cast<size_t>(n * size));
    return;
  }
  switch (size) {
#define TPK_MOVE(code, type, contiguous_to) case code: \
    if (to_stride == code && from_stride == 0) move_strided<type>(to, code, from, 0, n); \
    else if (to_stride == code) move_strided<type>(to, code, from, from_stride, n); \
    else move_strided<type>(to, to_stride, from, from_stride, n); \
    return;
    TPK_BY_SIZE(TPK_MOVE, )
#undef TPK_MOVE
    default: move_strided<Pair>(to, to_stride, from, from_stride, n);
  }
}

// Where in the iteration a flat position is.
struct Position { int64_t index[kMaxDims]; };

static inline void locate(const Plan& plan, int64_t flat, Position& at) {
  for (int d = plan.ndim - 1; d > 0; d--) {
    at.index[d] = flat % plan.shape[d];
    flat /= plan.shape[d];
  }
  at.index[0] = flat;
}
static inline char* address(const Plan& plan, int k, const Position& at) {
  char* p = plan.data[k];
  for (int d = 0; d < plan.ndim; d++) p += at.index[d] * plan.stride[k][d];
  return p;
}
static inline void next_row(const Plan& plan, Position& at) {
  int d = plan.ndim - 1;
  at.index[d] = 0;
  while (--d >= 0) {
    if (++at.index[d] < plan.shape[d]) return;
    at.index[d] = 0;
  }
}

// Repeats the first row of `buffer` until it holds `rows` of them.
static inline void repeat_row(char* buffer, int64_t row_bytes, int64_t rows) {
  for (int64_t done = 1; done < rows;) {
    int64_t more = done < rows - done ? done : rows - done;
    memcpy(buffer + done * row_bytes, buffer, static_cast<size_t>(more * row_bytes));
    done += more;
  }
}

// Moves n elements of operand k from position `at` on into `buffer`, or (scatter) from the buffer to there.
static inline void move_block(const Plan& plan, int k, Position at, int64_t n, char* buffer, bool scatter) {
  int last = plan.ndim - 1, size = plan.size[k];
  while (n > 0) {
    if (last > 0 && plan.stride[k][last - 1] == 0 && at.index[last] == 0 && n >= 2 * plan.shape[last] && !scatter) {
      int64_t row = plan.shape[last], rows = plan.shape[last - 1] - at.index[last - 1];
      if (rows > n / row) rows = n / row;
      move_elements(size, buffer, size, address(plan, k, at), plan.stride[k][last], row);
      repeat_row(buffer, row * size, rows);
      buffer += rows * row * size;
      n -= rows * row;
      at.index[last - 1] += rows - 1;
      next_row(plan, at);
      continue;
    }
    int64_t piece = plan.shape[last] - at.index[last];
    if (piece > n) piece = n;
    char* p = address(plan, k, at);
    if (scatter) move_elements(size, p, plan.stride[k][last], buffer, size, piece);
    else move_elements(size, buffer, size, p, plan.stride[k][last], piece);
    buffer += piece * size;
    n -= piece;
    next_row(plan, at);
  }
}

struct Buffers {
  alignas(64) char loop[kMaxOperands][kBlock * 16];  // what the loop sees
  alignas(64) uint16_t narrow[kBlock];              // 16-bit floats on their way
};

// The kernel over n elements from `at` on, n <= kBlock; some operand needs a buffer.
static inline void run_block(const Plan& plan, const Kernel& kernel, const Position& at, int64_t n, bool one_row,
                             Buffers& buffers) {
  char* pointers[kMaxOperands];
  unsigned scalars = 0;
  int last = plan.ndim - 1;
  for (int k = 0; k < plan.n_operands; k++) {
    bool direct = plan.linear[k] || (one_row && plan.stride[k][last] == plan.size[k]);
    pointers[k] = direct ? address(plan, k, at) : buffers.loop[k];
    if (direct && !plan.widen[k]) continue;
    if (k >= kernel.n_out && kernel.takes_scalars && one_row && !plan.widen[k] && plan.stride[k][last] == 0) {
      pointers[k] = address(plan, k, at);
      scalars |= 1u << k;
    } else if (k >= kernel.n_out && plan.widen[k]) {
      const uint16_t* narrow = reinterpret_cast<const uint16_t*>(pointers[k]);
      if (!direct) move_block(plan, k, at, n, reinterpret_cast<char*>(buffers.narrow), false), narrow = buffers.narrow;
      half_to_float_n(plan.widen[k], narrow, reinterpret_cast<float*>(buffers.loop[k]), n);
      pointers[k] = buffers.loop[k];
    } else if (k >= kernel.n_out) {
      move_block(plan, k, at, n, buffers.loop[k], false);
    } else {
      pointers[k] = buffers.loop[k];
    }
  }
  kernel.loop(kernel.context, n, pointers, scalars);
  for (int k = 0; k < kernel.n_out; k++) {
    if (pointers[k] != buffers.loop[k]) continue;
    char* from = buffers.loop[k];
    if (plan.widen[k]) {
      float_to_half_n(plan.widen[k], reinterpret_cast<float*>(from), buffers.narrow, n);
      from = reinterpret_cast<char*>(buffers.narrow);
    }
    move_block(plan, k, at, n, from, true);
  }
}

// Rows that go straight to the loop: along the last dimension every operand is contiguous or a scalar.
static inline void run_rows(const Plan& plan, const Kernel& kernel, int64_t begin, int64_t end) {
  const int last = plan.ndim - 1, outer = last - 1;
  unsigned scalars = 0;
  Position at;
  locate(plan, begin, at);
  char* pointers[kMaxOperands];
  for (int k = 0; k < plan.n_operands; k++) {
    pointers[k] = address(plan, k, at);
    if (plan.stride[k][last] == 0) scalars |= 1u << k;
  }
  while (true) {
    int64_t skipped = at.index[last], n = plan.shape[last] - skipped;
    if (n > end - begin) n = end - begin;
    kernel.loop(kernel.context, n, pointers, scalars);
    begin += n;
    if (begin == end) return;
    if (at.index[outer] + 1 < plan.shape[outer]) {
      at.index[outer]++, at.index[last] = 0;
      for (int k = 0; k < plan.n_operands; k++)
        pointers[k] += plan.stride[k][outer] - skipped * plan.stride[k][last];
    } else {
      next_row(plan, at);
      for (int k = 0; k < plan.n_operands; k++) pointers[k] = address(plan, k, at);
    }
  }
}

struct Run { const Plan* plan; const Kernel* kernel; };

static inline void run_range(void* context, int64_t begin, int64_t end) {
  const Run& run = *static_cast<const Run*>(context);
  const Plan& plan = *run.plan;
  bool direct = true;
  for (int k = 0; k < plan.n_operands; k++) direct = direct && plan.linear[k] && !plan.widen[k];
  if (direct) {
    char* pointers[kMaxOperands];
    for (int k = 0; k < plan.n_operands; k++) pointers[k] = plan.data[k] + begin * plan.size[k];
    run.kernel->loop(run.kernel->context, end - begin, pointers, 0);
    return;
  }
  int last = plan.ndim - 1;
  bool by_row = plan.ndim == 1 || plan.shape[last] >= kShortRow;
  bool straight = by_row;
  for (int k = 0; k < plan.n_operands; k++) {
    bool scalar = k >= run.kernel->n_out && run.kernel->takes_scalars && plan.stride[k][last] == 0;
    straight = straight && !plan.widen[k] && (scalar || plan.stride[k][last] == plan.size[k]);
  }
  if (straight) return run_rows(plan, *run.kernel, begin, end);
  Buffers buffers;
  Position at;
  locate(plan, begin, at);
  while (begin < end) {
    int64_t n = end - begin, row = plan.shape[last] - at.index[last];
    if (by_row && n > row) n = row;
    if (n > kBlock) n = kBlock;
    run_block(plan, *run.kernel, at, n, by_row, buffers);
    begin += n;
    if (!by_row) locate(plan, begin, at);
    else if (n == row) next_row(plan, at);
    else at.index[last] += n;
  }
}

static inline void run_plan(const Plan& plan, const Kernel& kernel) {
  if (plan.numel == 0) return;
  Run run = {&plan, &kernel};
  tpk_parallel(plan.numel, kernel.grain, run_range, &run);
}

// 16-bit float operands are seen by the loop as float.
static inline void widen_halves(Plan& plan, const tpk_tensor* const* operands) {
  for (int k = 0; k < plan.n_operands; k++)
    if (is_half(operands[k]->dtype)) plan.widen[k] = operands[k]->dtype;
}

}  // namespace TPK_ISA_NS
