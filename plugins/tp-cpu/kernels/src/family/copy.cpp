// copy (any layout, any dtype) and cast (any dtype to any other).
#include "elementwise.h"

namespace TPK_ISA_NS {
namespace {

// ---- copy ----

template <class T> void copy_loop(const void*, int64_t n, char* const* data, unsigned) {
  memmove(data[0], data[1], static_cast<size_t>(n) * sizeof(T));
}

typedef uint32_t Quad __attribute__((vector_size(16)));

// A 4 x 4 block of 4-byte elements, transposed in registers.
inline void transpose_4x4(const char* from, int64_t from_stride, char* to, int64_t to_stride) {
  Quad row[4], pair[4];
  for (int i = 0; i < 4; i++) memcpy(&row[i], from + i * from_stride, 16);
  pair[0] = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
  pair[1] = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
  pair[2] = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
  pair[3] = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
  row[0] = __builtin_shufflevector(pair[0], pair[2], 0, 1, 4, 5);
  row[1] = __builtin_shufflevector(pair[0], pair[2], 2, 3, 6, 7);
  row[2] = __builtin_shufflevector(pair[1], pair[3], 0, 1, 4, 5);
  row[3] = __builtin_shufflevector(pair[1], pair[3], 2, 3, 6, 7);
  for (int i = 0; i < 4; i++) memcpy(to + i * to_stride, &row[i], 16);
}

// to[r][c] = from[c][r] for r < rows, c < columns: `from` is contiguous along r, `to` along c. Strides in bytes.
template <class T>
void transpose_tile(const char* from, int64_t from_stride, char* to, int64_t to_stride, int64_t rows,
                    int64_t columns) {
  int64_t r = 0;
  if (sizeof(T) == 4) {
    int64_t whole = columns / 4 * 4;
    for (; r + 4 <= rows; r += 4) {
      for (int64_t c = 0; c < whole; c += 4)
        transpose_4x4(from + c * from_stride + r * 4, from_stride, to + r * to_stride + c * 4, to_stride);
      for (int64_t c = whole; c < columns; c++)
        for (int64_t i = r; i < r + 4; i++) memcpy(to + i * to_stride + c * 4, from + c * from_stride + i * 4, 4);
    }
  }
  for (; r < rows; r++)
    for (int64_t c = 0; c < columns; c++)
      memcpy(to + r * to_stride + c * static_cast<int64_t>(sizeof(T)),
             from + c * from_stride + r * static_cast<int64_t>(sizeof(T)), sizeof(T));
}

constexpr int64_t kTile = 32;

struct Transpose {
  const Plan* plan;
  int fast;                    // the dimension along which the input is contiguous
  int64_t row_tiles, column_tiles;
};

void tile(const Plan& plan, const char* from, int64_t from_stride, char* to, int64_t to_stride, int64_t rows,
          int64_t columns) {
  switch (plan.size[0]) {
    case 1: return transpose_tile<uint8_t>(from, from_stride, to, to_stride, rows, columns);
    case 2: return transpose_tile<uint16_t>(from, from_stride, to, to_stride, rows, columns);
    case 4: return transpose_tile<uint32_t>(from, from_stride, to, to_stride, rows, columns);
    case 8: return transpose_tile<uint64_t>(from, from_stride, to, to_stride, rows, columns);
    default: return transpose_tile<Pair>(from, from_stride, to, to_stride, rows, columns);
  }
}

void transpose_range(void* context, int64_t begin, int64_t end) {
  const Transpose& job = *static_cast<const Transpose*>(context);
  const Plan& plan = *job.plan;
  const int last = plan.ndim - 1;
  for (int64_t flat = begin; flat < end; flat++) {
    int64_t rest = flat / job.column_tiles;
    int64_t column = flat % job.column_tiles * kTile, row = rest % job.row_tiles * kTile;
    rest /= job.row_tiles;
    char* to = plan.data[0];
    const char* from = plan.data[1];
    for (int d = last - 1; d >= 0; d--) {
      if (d == job.fast) continue;
      int64_t index = rest % plan.shape[d];
      rest /= plan.shape[d];
      to += index * plan.stride[0][d];
      from += index * plan.stride[1][d];
    }
    to += row * plan.stride[0][job.fast] + column * plan.stride[0][last];
    from += row * plan.stride[1][job.fast] + column * plan.stride[1][last];
    int64_t rows = plan.shape[job.fast] - row, columns = plan.shape[last] - column;
    tile(plan, from, plan.stride[1][last], to, plan.stride[0][job.fast], rows < kTile ? rows : kTile,
         columns < kTile ? columns : kTile);
  }
}

// The dimension along which the input is contiguous, when that is not the output's and both are long enough; or -1.
int transposed_dimension(const Plan& plan) {
  const int last = plan.ndim - 1;
  if (last < 1 || plan.stride[0][last] != plan.size[0] || plan.stride[1][last] == plan.size[1]) return -1;
  if (plan.shape[last] < 4 || plan.stride[1][last] == 0) return -1;
  for (int d = 0; d < last; d++)
    if (plan.stride[1][d] == plan.size[1] && plan.shape[d] >= 4) return d;
  return -1;
}

bool copy_transposed(const Plan& plan) {
  int fast = transposed_dimension(plan);
  if (fast < 0) return false;
  const int last = plan.ndim - 1;
  Transpose job = {&plan, fast, (plan.shape[fast] + kTile - 1) / kTile, (plan.shape[last] + kTile - 1) / kTile};
  int64_t tiles = job.row_tiles * job.column_tiles;
  for (int d = 0; d < last; d++)
    if (d != fast) tiles *= plan.shape[d];
  tpk_parallel(tiles, 1 + kGrain / (kTile * kTile), transpose_range, &job);
  return true;
}

Loop copy_loop_for(int size) {
  switch (size) {
    case 1: return copy_loop<uint8_t>;
    case 2: return copy_loop<uint16_t>;
    case 4: return copy_loop<uint32_t>;
    case 8: return copy_loop<uint64_t>;
    default: return copy_loop<Pair>;
  }
}

int copy(const tpk_call* call) {
  const tpk_tensor* operands[2] = {&call->out[0], &call->in[0]};
  if (operands[0]->dtype != operands[1]->dtype) return TPK_UNSUPPORTED;
  Plan plan;
  if (!make_plan(plan, operands, 2)) return TPK_UNSUPPORTED;
  if (plan.numel == 0 || copy_transposed(plan)) return TPK_OK;
  run_plan(plan, {copy_loop_for(plan.size[0]), nullptr, kGrain, 1, false});
  return TPK_OK;
}

// ---- cast ----

// A float becomes an integer by way of a wide one, so that vectors and scalars agree on values out of range.
template <class To, class From, bool to_int, bool from_float> struct Convert {
  static To apply(From value) { return static_cast<To>(value); }
};
template <class To, class From> struct Convert<To, From, true, true> {
  static To apply(From value) {
    if (sizeof(To) < 4 || std::is_same<To, int32_t>::value) return static_cast<To>(static_cast<int32_t>(value));
    const From limit = static_cast<From>(0x1p63);
    if (std::is_same<To, uint64_t>::value && value >= limit)
      return static_cast<To>(static_cast<uint64_t>(static_cast<int64_t>(value - limit)) + (1ull << 63));
    return static_cast<To>(static_cast<int64_t>(value));
  }
};

template <class To, class From> struct Cast {
  static To apply(From value) {
    return Convert<To, From, std::is_integral<To>::value, std::is_floating_point<From>::value>::apply(value);
  }
};
template <class From> struct Cast<Bool, From> {
  static Bool apply(From value) { return {static_cast<uint8_t>(value != 0)}; }
};
template <class To> struct Cast<To, Bool> {
  static To apply(Bool value) { return static_cast<To>(value.byte != 0); }
};
template <> struct Cast<Bool, Bool> {
  static Bool apply(Bool value) { return {static_cast<uint8_t>(value.byte != 0)}; }
};
template <int dtype> void narrow_loop(const void*, int64_t n, char* const* data, unsigned) {
  float_to_half_n(dtype, reinterpret_cast<const float*>(data[1]), reinterpret_cast<uint16_t*>(data[0]), n);
}
template <int dtype> void widen_loop(const void*, int64_t n, char* const* data, unsigned) {
  half_to_float_n(dtype, reinterpret_cast<const uint16_t*>(data[1]), reinterpret_cast<float*>(data[0]), n);
}

#define TPK_ALL_TYPES(X, ...) TPK_FLOATS(X, __VA_ARGS__) TPK_INTS(X, __VA_ARGS__) TPK_SMALL_INTS(X, __VA_ARGS__) \
  TPK_UNSIGNED(X, __VA_ARGS__) X(TPK_BOOL, Bool, __VA_ARGS__)

template <class From> Loop cast_to(int dtype) {
  switch (dtype) {
#define TPK_CASE(code, type, unused) case code: return unary_loop<Cast<type, From>, From, type>;
    TPK_ALL_TYPES(TPK_CASE, )
#undef TPK_CASE
    default: return nullptr;
  }
}

Loop cast_loop(int from, int to) {
  switch (from) {
#define TPK_CASE(code, type, unused) case code: return cast_to<type>(to);
    TPK_ALL_TYPES(TPK_CASE, )
#undef TPK_CASE
    default: return nullptr;
  }
}

// float32 and a 16-bit float, without a detour through a buffer.
Loop half_loop(int from, int to) {
  if (from == TPK_F32 && to == TPK_F16) return narrow_loop<TPK_F16>;
  if (from == TPK_F32 && to == TPK_BF16) return narrow_loop<TPK_BF16>;
  if (from == TPK_F16 && to == TPK_F32) return widen_loop<TPK_F16>;
  if (from == TPK_BF16 && to == TPK_F32) return widen_loop<TPK_BF16>;
  return nullptr;
}

int cast_real(const tpk_tensor& out, const tpk_tensor& in) {
  const tpk_tensor* operands[2] = {&out, &in};
  Plan plan;
  if (!make_plan(plan, operands, 2)) return TPK_UNSUPPORTED;
  Loop loop = half_loop(in.dtype, out.dtype);
  if (!loop) {
    widen_halves(plan, operands);
    loop = cast_loop(loop_dtype(in.dtype), loop_dtype(out.dtype));
  }
  if (!loop) return TPK_UNSUPPORTED;
  run_plan(plan, {loop, nullptr, kGrain, 1, false});
  return TPK_OK;
}

// The real (0) or imaginary (1) parts of a complex tensor as a tensor of floats.
tpk_tensor part(const tpk_tensor& complex, int which, int64_t* strides) {
  tpk_tensor result = complex;
  result.dtype = complex.dtype == TPK_C64 ? TPK_F32 : TPK_F64;
  result.data = static_cast<char*>(complex.data) + which * itemsize(result.dtype);
  for (int d = 0; d < complex.ndim; d++) strides[d] = 2 * complex.strides[d];
  result.strides = strides;
  result.contiguous = complex.numel <= 1;
  return result;
}

int cast(const tpk_call* call) {
  const tpk_tensor &in = call->in[0], &out = call->out[0];
  if (in.dtype == out.dtype) return copy(call);
  bool from_complex = in.dtype >= TPK_C64, to_complex = out.dtype >= TPK_C64;
  if (!from_complex && !to_complex) return cast_real(out, in);
  if (in.ndim > kMaxDims || out.ndim > kMaxDims || in.ndim < 0) return TPK_UNSUPPORTED;
  if (from_complex && out.dtype == TPK_BOOL) return TPK_UNSUPPORTED;  // true when either part is not 0
  static const char zero[16] = {};
  int64_t in_strides[kMaxDims], out_strides[kMaxDims];
  for (int which = 0; which < (to_complex ? 2 : 1); which++) {
    tpk_tensor to = to_complex ? part(out, which, out_strides) : out;
    tpk_tensor from = from_complex ? part(in, which, in_strides) : in;
    if (which == 1 && !from_complex) {
      from.data = const_cast<char*>(zero);
      from.ndim = 0, from.numel = 1, from.contiguous = 1;
    }
    int status = cast_real(to, from);
    if (status != TPK_OK) return status;
  }
  return TPK_OK;
}

}  // namespace
}  // namespace TPK_ISA_NS

TPK_FAMILY(copy){
  {"copy", TPK_ISA_NS::copy, TPK_ELEMENTWISE},
  {"cast", TPK_ISA_NS::cast, TPK_ELEMENTWISE},
  {nullptr, nullptr, 0},
};
