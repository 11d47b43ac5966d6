// gather, scatter, index_select, cat, tril, triu. Elements are moved by size, so every dtype works; scatter's 'add'
// adds in the element's own type, in the order of the indices.
#include "axes.h"
#include "dtype.h"
#include "indices.h"
#include "parallel.h"
#include "strided.h"

namespace TPK_ISA_NS {
namespace {

constexpr int64_t kMoveWork = 32768;   // elements of a chunk
constexpr int64_t kMoveBytes = 131072; // bytes of a chunk where whole runs are moved

int out_of_range(const tpk_call* call, const char* op, int64_t index, int dim, int64_t size) {
  return fail(call, "%s: index %lld is out of range for dimension %d of size %lld", op, static_cast<long long>(index),
              dim, static_cast<long long>(size));
}

// Elements of `index` and its counterpart are visited row by row along the last dimension. A 0-d tensor is one row.
struct Walk {
  int ndim, dim;
  int64_t rows, width;
  const int64_t* shape;
};

int64_t stride_of(const tpk_tensor& t, int d) { return d >= 0 && d < t.ndim ? t.strides[d] : 0; }

Walk walk_over(const tpk_tensor& index, int dim) {
  int64_t width = index.ndim > 0 ? index.shape[index.ndim - 1] : 1;
  return {index.ndim, dim, width > 0 ? index.numel / width : 0, width, index.shape};
}

// Element offset of a row, leaving out dimension `without` (-1: none).
int64_t row_offset(const Walk& walk, int64_t row, const tpk_tensor& t, int without) {
  int64_t offset = 0;
  for (int d = walk.ndim - 2; d >= 0; row /= walk.shape[d--])
    if (d != without) offset += row % walk.shape[d] * stride_of(t, d);
  return offset;
}

int check_indices(const tpk_call* call, const char* op, const tpk_tensor& index, const Walk& walk, int64_t size) {
  const int64_t step = stride_of(index, walk.ndim - 1);
  for (int64_t row = 0; row < walk.rows; row++) {
    const int64_t* p = static_cast<const int64_t*>(index.data) + row_offset(walk, row, index, -1);
    const int64_t at = first_outside(p, step, walk.width, size);
    if (at >= 0) return out_of_range(call, op, p[at * step], walk.dim, size);
  }
  return TPK_OK;
}

// False where index does not fit into t outside `dim`.
bool index_fits(const tpk_tensor& index, const tpk_tensor& t, int dim) {
  if (index.dtype != TPK_I64 || index.ndim != t.ndim) return false;
  for (int d = 0; d < t.ndim; d++)
    if (d != dim && index.shape[d] > t.shape[d]) return false;
  return true;
}

template <class E> int gather_elements(const tpk_call* call, const Walk& walk, int64_t along) {
  const tpk_tensor &input = call->in[0], &index = call->in[1];
  const int last = walk.ndim - 1;
  const int64_t step = walk.dim == last ? 0 : stride_of(input, last), index_step = stride_of(index, last);
  E* out = static_cast<E*>(call->out[0].data);
  parallel_for(walk.rows, items_per_chunk(kMoveWork, walk.width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
      const E* from = static_cast<const E*>(input.data) + row_offset(walk, row, input, walk.dim);
      const int64_t* p = static_cast<const int64_t*>(index.data) + row_offset(walk, row, index, -1);
      E* to = out + row * walk.width;
      if (along == 1 && index_step == 1 && step == 0)
        for (int64_t j = 0; j < walk.width; j++) to[j] = from[p[j]];
      else
        for (int64_t j = 0; j < walk.width; j++) to[j] = from[p[j * index_step] * along + j * step];
    }
  });
  return TPK_OK;
}

#define GATHER_CASE(code, type, unused) case code: return gather_elements<type>(call, walk, along);

int gather(const tpk_call* call) {
  const tpk_tensor &input = call->in[0], &index = call->in[1];
  Axis axis;
  int dim = 0;
  if (!find_axis(input, call->attr[0].i, axis, &dim) || !index_fits(index, input, dim)) return TPK_UNSUPPORTED;
  if (call->out[0].dtype != input.dtype || call->out[0].numel != index.numel) return TPK_UNSUPPORTED;
  const Walk walk = walk_over(index, dim);
  if (int status = check_indices(call, "gather", index, walk, axis.size)) return status;
  const int64_t along = stride_of(input, dim);
  switch (itemsize(input.dtype)) { TPK_BY_SIZE(GATHER_CASE, ) GATHER_CASE(16, Pair, ) }
  return TPK_UNSUPPORTED;
}

template <class E> struct Assign { static inline void apply(E& to, E from) { to = from; } };
template <class E> struct Accumulate { static inline void apply(E& to, E from) { to = static_cast<E>(to + from); } };
// Integers wrap.
template <> struct Accumulate<int32_t> {
  static inline void apply(int32_t& to, int32_t from) { to = int32_t(uint32_t(to) + uint32_t(from)); }
};
template <> struct Accumulate<int64_t> {
  static inline void apply(int64_t& to, int64_t from) { to = int64_t(uint64_t(to) + uint64_t(from)); }
};

// Slices before `dim` are independent of each other; within one, indices are taken in order.
template <class Op, class E> int scatter_elements(const tpk_call* call, const Walk& walk) {
  const tpk_tensor &index = call->in[1], &src = call->in[2], &out = call->out[0];
  const int last = walk.ndim - 1;
  const int64_t along = out.ndim > 0 ? stride_of(out, walk.dim) : 1;
  const int64_t step = walk.dim == last ? 0 : stride_of(out, last);
  const int64_t index_step = stride_of(index, last), src_step = stride_of(src, last);
  int64_t slices = 1;
  for (int d = 0; d < walk.dim && d < last; d++) slices *= walk.shape[d];
  const int64_t rows = slices > 0 ? walk.rows / slices : 0;
  parallel_for(slices, items_per_chunk(kMoveWork, rows * walk.width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin * rows; row < end * rows; row++) {
      E* to = static_cast<E*>(out.data) + row_offset(walk, row, out, walk.dim);
      const E* from = static_cast<const E*>(src.data) + row_offset(walk, row, src, -1);
      const int64_t* p = static_cast<const int64_t*>(index.data) + row_offset(walk, row, index, -1);
      for (int64_t j = 0; j < walk.width; j++)
        Op::apply(to[p[j * index_step] * along + j * step], from[j * src_step]);
    }
  });
  return TPK_OK;
}

#define SCATTER_SET(code, type, unused) case code: return scatter_elements<Assign<type>, type>(call, walk);
#define SCATTER_ADD(code, type, unused) case code: return scatter_elements<Accumulate<type>, type>(call, walk);

bool adds_natively(int dtype) {
  return dtype == TPK_F32 || dtype == TPK_F64 || (dtype >= TPK_U8 && dtype <= TPK_I64);
}

// attr: dim, mode
int scatter(const tpk_call* call) {
  const tpk_tensor &input = call->in[0], &index = call->in[1], &src = call->in[2], &out = call->out[0];
  const char* mode = call->attr[1].text;
  Axis axis;
  int dim = 0;
  if (!mode || !find_axis(input, call->attr[0].i, axis, &dim)) return TPK_UNSUPPORTED;
  if (!index_fits(index, input, dim)) return TPK_UNSUPPORTED;
  if (src.dtype != input.dtype || out.dtype != input.dtype || out.numel != input.numel) return TPK_UNSUPPORTED;
  if (src.ndim != 0 && src.ndim != index.ndim) return TPK_UNSUPPORTED;
  for (int d = 0; d < src.ndim; d++)
    if (src.shape[d] < index.shape[d]) return TPK_UNSUPPORTED;
  const bool add = !strcmp(mode, "add");
  if (!add && strcmp(mode, "set")) return TPK_UNSUPPORTED;
  if (add && !adds_natively(input.dtype)) return TPK_UNSUPPORTED;
  const Walk walk = walk_over(index, dim);
  if (int status = check_indices(call, "scatter", index, walk, axis.size)) return status;
  if (input.numel > 0 && out.data != input.data)
    memcpy(out.data, input.data, static_cast<size_t>(input.numel * itemsize(input.dtype)));
  if (add) switch (input.dtype) { TPK_FLOATS(SCATTER_ADD, ) TPK_INTS(SCATTER_ADD, ) TPK_SMALL_INTS(SCATTER_ADD, ) }
  switch (itemsize(input.dtype)) { TPK_BY_SIZE(SCATTER_SET, ) SCATTER_SET(16, Pair, ) }
  return TPK_UNSUPPORTED;
}

int index_select(const tpk_call* call) {
  const tpk_tensor &input = call->in[0], &index = call->in[1];
  Axis axis;
  int dim = 0;
  if (!find_axis(input, call->attr[0].i, axis, &dim)) return TPK_UNSUPPORTED;
  if (index.dtype != TPK_I64 || index.ndim > 1) return TPK_UNSUPPORTED;
  if (call->out[0].dtype != input.dtype) return TPK_UNSUPPORTED;
  const int64_t* p = static_cast<const int64_t*>(index.data);
  const int64_t n = index.numel, bytes = axis.inner * itemsize(input.dtype);
  const int64_t at = first_outside(p, 1, n, axis.size);
  if (at >= 0) return out_of_range(call, "index_select", p[at], dim, axis.size);
  const char* from = static_cast<const char*>(input.data);
  char* out = static_cast<char*>(call->out[0].data);
  if (bytes == 0 || n == 0) return TPK_OK;
  parallel_for(axis.outer * n, items_per_chunk(kMoveBytes, bytes), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++)
      move_elements(itemsize(input.dtype), out + i * bytes, itemsize(input.dtype),
                    from + (i / n * axis.size + p[i % n]) * bytes, itemsize(input.dtype), axis.inner);
  });
  return TPK_OK;
}

// One input into its slice of the output, whatever its strides.
bool copy_into_slice(const tpk_tensor& input, const tpk_tensor& out, int dim, int64_t start) {
  tpk_tensor slice = out;
  slice.shape = input.shape;
  slice.numel = input.numel;
  slice.contiguous = 0;
  slice.data = static_cast<char*>(out.data) + start * out.strides[dim] * itemsize(out.dtype);
  const tpk_tensor* operands[2] = {&slice, &input};
  const int size = itemsize(out.dtype);
  Plan plan;
  if (!make_plan(plan, operands, 2)) return false;
  const int last = plan.ndim - 1;
  const int64_t width = plan.shape[last];
  parallel_for(plan.numel / width, items_per_chunk(kMoveBytes, width * size), [&](int64_t begin, int64_t end) {
    Position at;
    locate(plan, begin * width, at);
    for (int64_t row = begin; row < end; row++, next_row(plan, at))
      move_elements(size, address(plan, 0, at), plan.stride[0][last], address(plan, 1, at), plan.stride[1][last],
                    width);
  });
  return true;
}

// Contiguous inputs: the output is written from its beginning to its end.
void join_rows(const tpk_call* call, const Axis& axis) {
  const int64_t size = itemsize(call->out[0].dtype), out_bytes = axis.size * axis.inner * size;
  parallel_for(axis.outer, items_per_chunk(kMoveBytes, out_bytes), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; o++) {
      char* to = static_cast<char*>(call->out[0].data) + o * out_bytes;
      for (int k = 0; k < call->n_in; k++) {
        const int64_t bytes = call->in[k].numel / axis.outer * size;
        if (bytes > 0) memcpy(to, static_cast<const char*>(call->in[k].data) + o * bytes, static_cast<size_t>(bytes));
        to += bytes;
      }
    }
  });
}

int cat(const tpk_call* call) {
  const tpk_tensor& out = call->out[0];
  Axis axis;
  int dim = 0;
  if (!find_axis(out, call->attr[0].i, axis, &dim) || out.ndim < 1 || out.ndim > kMaxDims) return TPK_UNSUPPORTED;
  int64_t total = 0;
  bool contiguous = true;
  for (int k = 0; k < call->n_in; k++) {
    const tpk_tensor& input = call->in[k];
    contiguous = contiguous && input.contiguous;
    if (input.dtype != out.dtype) return TPK_UNSUPPORTED;
    if (input.ndim == 1 && input.numel == 0) continue;  // fits everywhere, as in torch
    if (input.ndim != out.ndim) return TPK_UNSUPPORTED;
    for (int d = 0; d < out.ndim; d++)
      if (d != dim && input.shape[d] != out.shape[d]) return TPK_UNSUPPORTED;
    total += input.shape[dim];
  }
  if (total != axis.size) return TPK_UNSUPPORTED;
  if (contiguous) {
    join_rows(call, axis);
    return TPK_OK;
  }
  int64_t start = 0;
  for (int k = 0; k < call->n_in; k++) {
    const tpk_tensor& input = call->in[k];
    if (input.numel > 0 && !copy_into_slice(input, out, dim, start)) return TPK_UNSUPPORTED;
    if (input.ndim == out.ndim) start += input.shape[dim];
  }
  return TPK_OK;
}

// Row r of a matrix keeps the columns [first, last).
int keep_triangle(const tpk_call* call, bool lower) {
  const tpk_tensor &input = call->in[0], &out = call->out[0];
  if (input.ndim < 2 || out.dtype != input.dtype) return TPK_UNSUPPORTED;
  const int64_t rows = input.shape[input.ndim - 2], columns = input.shape[input.ndim - 1];
  const int64_t size = itemsize(input.dtype), diagonal = call->attr[0].i;
  if (input.numel == 0) return TPK_OK;
  parallel_for(input.numel / columns, items_per_chunk(kMoveWork, columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
      const char* from = static_cast<const char*>(input.data) + row * columns * size;
      char* to = static_cast<char*>(out.data) + row * columns * size;
      // Compared before adding: `diagonal` may be any 64-bit number.
      const int64_t r = row % rows, bound = lower ? r + 1 : r;
      int64_t edge = diagonal > columns ? columns : diagonal < -rows - 1 ? 0 : bound + diagonal;
      edge = larger(0, smaller(columns, edge));
      const int64_t first = lower ? 0 : edge, last = lower ? edge : columns;
      memset(to, 0, static_cast<size_t>(first * size));
      memcpy(to + first * size, from + first * size, static_cast<size_t>((last - first) * size));
      memset(to + last * size, 0, static_cast<size_t>((columns - last) * size));
    }
  });
  return TPK_OK;
}

int tril(const tpk_call* call) { return keep_triangle(call, true); }
int triu(const tpk_call* call) { return keep_triangle(call, false); }

}  // namespace
}  // namespace TPK_ISA_NS

using namespace TPK_ISA_NS;
TPK_FAMILY(index){
    {"gather", gather, 0},
    {"scatter", scatter, TPK_CONTIGUOUS},
    {"index_select", index_select, TPK_CONTIGUOUS},
    {"cat", cat, 0},
    {"tril", tril, TPK_CONTIGUOUS},
    {"triu", triu, TPK_CONTIGUOUS},
    {nullptr, nullptr, 0},
};
