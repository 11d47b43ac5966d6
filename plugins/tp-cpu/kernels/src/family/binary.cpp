// Operators of two and three tensors.
#include "binary_ops.h"

namespace TPK_ISA_NS {
namespace {

// ---- choice of the loop ----

template <class Op> Loop float_loop(int dtype) {
  switch (dtype) {
    case TPK_F32: return binary_loop<Op, float, float>;
    case TPK_F64: return binary_loop<Op, double, double>;
    default: return nullptr;
  }
}
template <class Op> Choice cheap_loop(int dtype) {
  switch (dtype) {
    case TPK_F32: return {binary_loop_scalars<Op, float, float>, kGrain, true};
    case TPK_F64: return {binary_loop_scalars<Op, double, double>, kGrain, true};
#define TPK_CASE(code, type, unused) case code: return {binary_loop<Op, type, type>, kGrain, false};
    TPK_INTS(TPK_CASE, )
    TPK_SMALL_INTS(TPK_CASE, )
#undef TPK_CASE
    default: return {nullptr, kGrain, false};
  }
}
template <class Op> Loop integer_loop(int dtype) {
  switch (dtype == TPK_BOOL ? TPK_U8 : dtype) {
#define TPK_CASE(code, type, unused) case code: return binary_loop<Op, type, type>;
    TPK_INTS(TPK_CASE, )
    TPK_SMALL_INTS(TPK_CASE, )
#undef TPK_CASE
    default: return nullptr;
  }
}
template <class Op> Choice test_loop(int dtype) {
  switch (dtype == TPK_BOOL ? TPK_U8 : dtype) {
    case TPK_F32: return {binary_loop_scalars<Op, float, uint8_t>, kGrain, true};
    case TPK_F64: return {binary_loop<Op, double, uint8_t>, kGrain, false};
#define TPK_CASE(code, type, unused) case code: return {binary_loop<Op, type, uint8_t>, kGrain, false};
    TPK_INTS(TPK_CASE, )
    TPK_SMALL_INTS(TPK_CASE, )
#undef TPK_CASE
    default: return {nullptr, kGrain, false};
  }
}

// ---- kernels ----

bool one_dtype(const tpk_call* call) {
  return same_dtypes(call, 0, call->n_in) && call->out[0].dtype == call->in[0].dtype;
}
int run_same(const tpk_call* call, const Choice& choice, const Params& params = {}) {
  return one_dtype(call) ? run_elementwise(call, choice, params) : TPK_UNSUPPORTED;
}

// On bools the operator is `Logic`.
template <class Op, class Logic> int numbers(const tpk_call* call) {
  int dtype = loop_dtype(call->in[0].dtype);
  if (dtype == TPK_BOOL) return run_same(call, {integer_loop<Logic>(dtype), kGrain, false});
  return run_same(call, cheap_loop<Op>(dtype));
}
int sub(const tpk_call* call) { return run_same(call, cheap_loop<Sub>(loop_dtype(call->in[0].dtype))); }
int div(const tpk_call* call) {
  int dtype = loop_dtype(call->in[0].dtype);
  if (dtype == TPK_F32) return run_same(call, {binary_loop_scalars<Div, float, float>, kGrain, true});
  return run_same(call, {float_loop<Div>(dtype), kGrain, false});
}
template <class Op, int64_t grain> int floats(const tpk_call* call) {
  return run_same(call, {float_loop<Op>(loop_dtype(call->in[0].dtype)), grain, false});
}
template <class Op> int test(const tpk_call* call) {
  if (!same_dtypes(call, 0, 2) || call->out[0].dtype != TPK_BOOL) return TPK_UNSUPPORTED;
  return run_elementwise(call, test_loop<Op>(loop_dtype(call->in[0].dtype)), {});
}
template <class Op> int bits(const tpk_call* call) {
  return run_same(call, {integer_loop<Op>(call->in[0].dtype), kGrain, false});
}
template <class Op> int shift(const tpk_call* call) {
  return call->in[0].dtype == TPK_BOOL ? TPK_UNSUPPORTED : bits<Op>(call);
}

// Integer division: a divisor of 0 is noted and skipped.
template <class Op, class T> void checked_loop(const void* context, int64_t n, char* const* data, unsigned) {
  T* out = reinterpret_cast<T*>(data[0]);
  const T* x = reinterpret_cast<const T*>(data[1]);
  const T* y = reinterpret_cast<const T*>(data[2]);
  bool failed = false;
  for (int64_t i = 0; i < n; i++) {
    failed |= y[i] == 0;
    out[i] = y[i] == 0 ? 0 : Op::apply(x[i], y[i]);
  }
  if (failed) __atomic_store_n(static_cast<const Params*>(context)->failed, 1, __ATOMIC_RELAXED);
}
// fmod of float32 through float64: with a quotient below 2^28 every step but the division is exact, and that cannot
// round across an integer. A block with a larger quotient, a 0, inf or NaN takes the C library.
template <class Op> void float_division_loop(const void*, int64_t n, char* const* data, unsigned) {
  float* out = reinterpret_cast<float*>(data[0]);
  const float *x = reinterpret_cast<const float*>(data[1]), *y = reinterpret_cast<const float*>(data[2]);
  float rest[256];
  for (int64_t begin = 0; begin < n; begin += 256, out += 256, x += 256, y += 256) {
    int64_t count = n - begin < 256 ? n - begin : 256;
    int odd = 0;
    for (int64_t i = 0; i < count; i++) {
      double quotient = static_cast<double>(x[i]) / static_cast<double>(y[i]);
      odd |= !(__builtin_fabs(quotient) < 0x1p28);
      double exact = static_cast<double>(x[i]) - __builtin_trunc(quotient) * static_cast<double>(y[i]);
      rest[i] = __builtin_copysignf(static_cast<float>(exact), x[i]);
    }
    if (odd)
      for (int64_t i = 0; i < count; i++) rest[i] = fmodf(x[i], y[i]);
#pragma GCC ivdep
    for (int64_t i = 0; i < count; i++) out[i] = Op::of_rest(x[i], y[i], rest[i]);
  }
}
template <class Op> int division(const tpk_call* call) {
  int dtype = loop_dtype(call->in[0].dtype), failed = 0;
  Params params = {};
  params.failed = &failed;
  int status = TPK_UNSUPPORTED;
  switch (dtype) {
#define TPK_CASE(code, type, unused) \
    case code: status = run_same(call, {checked_loop<Op, type>, kGrainMath, false}, params); break;
    TPK_INTS(TPK_CASE, )
    TPK_SMALL_INTS(TPK_CASE, )
#undef TPK_CASE
    case TPK_F32: status = run_same(call, {float_division_loop<Op>, kGrainMath, false}); break;
    case TPK_F64: status = run_same(call, {binary_loop<Op, double, double>, kGrainMath, false}); break;
    default: break;
  }
  return failed ? fail(call, "division by zero") : status;
}

// A scalar exponent that has a short form takes it.
template <class T> void pow_loop(const void* context, int64_t n, char* const* data, unsigned scalars) {
  T* out = reinterpret_cast<T*>(data[0]);
  const T* x = reinterpret_cast<const T*>(data[1]);
  const T exponent = *reinterpret_cast<const T*>(data[2]);
  if (scalars == 4 && exponent == 2) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) out[i] = x[i] * x[i];
  } else if (scalars == 4 && exponent == 3) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) out[i] = x[i] * x[i] * x[i];
  } else if (scalars == 4 && exponent == -1) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) out[i] = 1 / x[i];
  } else {
    binary_loop_scalars<Pow, T, T>(context, n, data, scalars);
  }
}
int pow(const tpk_call* call) {
  int dtype = loop_dtype(call->in[0].dtype);
  bool simple = call->in[1].numel == 1;
  switch (dtype) {
    case TPK_F32: return run_same(call, {pow_loop<float>, simple ? kGrainMath : kGrainSlow, true});
    case TPK_F64: return run_same(call, {pow_loop<double>, simple ? kGrainMath : kGrainSlow, true});
    case TPK_BOOL: return TPK_UNSUPPORTED;
    default: return run_same(call, {integer_loop<Pow>(dtype), kGrainMath, false});
  }
}

int gelu_backward(const tpk_call* call) {
  if (call->n_attr < 1 || !call->attr[0].text) return TPK_UNSUPPORTED;
  return strcmp(call->attr[0].text, "tanh") ? floats<GeluBackward, kGrainMath>(call)
                                            : floats<GeluTanhBackward, kGrainMath>(call);
}

// ---- with attributes ----

template <class T> void axpy_loop(const void* context, int64_t n, char* const* data, unsigned) {
  const T alpha = static_cast<T>(static_cast<const Params*>(context)->a);
  T* out = reinterpret_cast<T*>(data[0]);
  const T *x = reinterpret_cast<const T*>(data[1]), *y = reinterpret_cast<const T*>(data[2]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) out[i] = x[i] + alpha * y[i];
}
template <class T> void addcmul_loop(const void* context, int64_t n, char* const* data, unsigned) {
  const T value = static_cast<T>(static_cast<const Params*>(context)->a);
  T* out = reinterpret_cast<T*>(data[0]);
  const T *x = reinterpret_cast<const T*>(data[1]), *y = reinterpret_cast<const T*>(data[2]);
  const T* z = reinterpret_cast<const T*>(data[3]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) out[i] = x[i] + value * y[i] * z[i];
}
template <class T> void addcdiv_loop(const void* context, int64_t n, char* const* data, unsigned) {
  const T value = static_cast<T>(static_cast<const Params*>(context)->a);
  T* out = reinterpret_cast<T*>(data[0]);
  const T *x = reinterpret_cast<const T*>(data[1]), *y = reinterpret_cast<const T*>(data[2]);
  const T* z = reinterpret_cast<const T*>(data[3]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) out[i] = x[i] + value * (y[i] / z[i]);
}
template <Loop single, Loop wide> int with_factor(const tpk_call* call) {
  if (call->n_attr < 1) return TPK_UNSUPPORTED;
  Params params = {};
  params.a = call->attr[0].d;
  int dtype = loop_dtype(call->in[0].dtype);
  Loop loop = dtype == TPK_F32 ? single : dtype == TPK_F64 ? wide : nullptr;
  return run_same(call, {loop, kGrain, false}, params);
}

// NaN in the input stays; bounds that are absent do nothing.
template <class T> void clamp_loop(const void* context, int64_t n, char* const* data, unsigned) {
  const Params& params = *static_cast<const Params*>(context);
  const T low = static_cast<T>(params.a), high = static_cast<T>(params.b);
  T* out = reinterpret_cast<T*>(data[0]);
  const T* x = reinterpret_cast<const T*>(data[1]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) {
    T value = x[i] < low ? low : x[i];
    out[i] = value > high ? high : value;
  }
}
// A bound as a value that fits into the dtype, or false (fractional or out of range for an integer: not here).
template <class T> bool bound(const tpk_attr& attr, double absent, double& value) {
  value = attr.kind == TPK_ATTR_NONE ? absent : attr.d;
  if (std::is_floating_point<T>::value || attr.kind == TPK_ATTR_NONE) return true;
  return value == std::floor(value) && std::fabs(value) < 0x1p53 && value >= -0x1p63 &&
         static_cast<double>(static_cast<T>(static_cast<int64_t>(value))) == value;
}
template <class T> int clamp_as(const tpk_call* call, double lowest, double highest) {
  Params params = {};
  if (!bound<T>(call->attr[0], lowest, params.a) || !bound<T>(call->attr[1], highest, params.b)) return TPK_UNSUPPORTED;
  return run_same(call, {clamp_loop<T>, kGrain, false}, params);
}
int clamp_scalar(const tpk_call* call) {
  if (call->n_attr < 2) return TPK_UNSUPPORTED;
  const double infinity = __builtin_inf();
  switch (loop_dtype(call->in[0].dtype)) {
    case TPK_F32: return clamp_as<float>(call, -infinity, infinity);
    case TPK_F64: return clamp_as<double>(call, -infinity, infinity);
    case TPK_I32: return clamp_as<int32_t>(call, -0x1p31, 0x1p31 - 1);
    case TPK_U8: return clamp_as<uint8_t>(call, 0, 255);
    case TPK_I64:  // 2^63 - 1 is no double
      if (call->attr[0].kind == TPK_ATTR_NONE || call->attr[1].kind == TPK_ATTR_NONE) return TPK_UNSUPPORTED;
      return clamp_as<int64_t>(call, 0, 0);
    default: return TPK_UNSUPPORTED;
  }
}

// ---- three tensors ----

template <class T> void where_loop(const void*, int64_t n, char* const* data, unsigned) {
  T* out = reinterpret_cast<T*>(data[0]);
  const uint8_t* condition = reinterpret_cast<const uint8_t*>(data[1]);
  const T *x = reinterpret_cast<const T*>(data[2]), *y = reinterpret_cast<const T*>(data[3]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) out[i] = condition[i] ? x[i] : y[i];
}
int where(const tpk_call* call) {
  if (call->in[0].dtype != TPK_BOOL || !same_dtypes(call, 1, 2) || call->out[0].dtype != call->in[1].dtype)
    return TPK_UNSUPPORTED;
  const tpk_tensor* operands[4] = {&call->out[0], &call->in[0], &call->in[1], &call->in[2]};
  Plan plan;
  if (!make_plan(plan, operands, 4)) return TPK_UNSUPPORTED;
  Loop loop = where_loop<Pair>;
  switch (plan.size[0]) {
#define TPK_CASE(code, type, unused) case code: loop = where_loop<type>; break;
    TPK_BY_SIZE(TPK_CASE, )
#undef TPK_CASE
    default: break;
  }
  run_plan(plan, {loop, nullptr, kGrain, 1, false});
  return TPK_OK;
}

template <class Op> int ternary(const tpk_call* call) {
  int dtype = loop_dtype(call->in[0].dtype);
  Loop loop = dtype == TPK_F32   ? ternary_loop<Op, float, float>
              : dtype == TPK_F64 ? ternary_loop<Op, double, double>
                                 : static_cast<Loop>(nullptr);
  return run_same(call, {loop, kGrain, false});
}

// (dgate, dup) from (grad, gate, up)
template <class T> void swiglu_backward_loop(const void*, int64_t n, char* const* data, unsigned) {
  T *dgate = reinterpret_cast<T*>(data[0]), *dup = reinterpret_cast<T*>(data[1]);
  const T* grad = reinterpret_cast<const T*>(data[2]);
  const T *gate = reinterpret_cast<const T*>(data[3]), *up = reinterpret_cast<const T*>(data[4]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) {
    T g = grad[i], x = gate[i], e = ExpNegated::apply(x), s = 1 / (1 + e), slope = e * s * s;
    T derivative = s + (slope > 0 ? x * slope : 0);
    dgate[i] = g * up[i] * derivative;
    dup[i] = g * (x * s);
  }
}
int swiglu_backward(const tpk_call* call) {
  if (call->n_out != 2 || call->out[1].dtype != call->out[0].dtype) return TPK_UNSUPPORTED;
  int dtype = loop_dtype(call->in[0].dtype);
  Loop loop = dtype == TPK_F32   ? swiglu_backward_loop<float>
              : dtype == TPK_F64 ? swiglu_backward_loop<double>
                                 : static_cast<Loop>(nullptr);
  return run_same(call, {loop, kGrainMath, false});
}

}  // namespace
}  // namespace TPK_ISA_NS

using namespace TPK_ISA_NS;
#define TPK_ROW(name, ...) {name, __VA_ARGS__, TPK_ELEMENTWISE}

TPK_FAMILY(binary){
  TPK_ROW("add", numbers<Add, BitwiseOr>), TPK_ROW("sub", TPK_ISA_NS::sub),
  TPK_ROW("mul", numbers<Mul, BitwiseAnd>), TPK_ROW("div", TPK_ISA_NS::div),
  TPK_ROW("maximum", numbers<Maximum, BitwiseOr>), TPK_ROW("minimum", numbers<Minimum, BitwiseAnd>),
  TPK_ROW("floor_div", division<FloorDiv>), TPK_ROW("remainder", division<Remainder>),
  TPK_ROW("fmod", division<Fmod>), TPK_ROW("pow", TPK_ISA_NS::pow), TPK_ROW("atan2", floats<Atan2, kGrainSlow>),
  TPK_ROW("eq", test<Eq>), TPK_ROW("ne", test<Ne>), TPK_ROW("lt", test<Lt>), TPK_ROW("le", test<Le>),
  TPK_ROW("gt", test<Gt>), TPK_ROW("ge", test<Ge>), TPK_ROW("logical_and", test<LogicalAnd>),
  TPK_ROW("logical_or", test<LogicalOr>), TPK_ROW("logical_xor", test<LogicalXor>),
  TPK_ROW("bitwise_and", bits<BitwiseAnd>), TPK_ROW("bitwise_or", bits<BitwiseOr>),
  TPK_ROW("bitwise_xor", bits<BitwiseXor>), TPK_ROW("shift_left", shift<ShiftLeft>),
  TPK_ROW("shift_right", shift<ShiftRight>), TPK_ROW("gelu_backward", gelu_backward),
  TPK_ROW("silu_backward", floats<SiluBackward, kGrainMath>), TPK_ROW("relu_backward", floats<ReluBackward, kGrain>),
  TPK_ROW("sigmoid_backward", floats<SigmoidBackward, kGrain>),
  TPK_ROW("tanh_backward", floats<TanhBackward, kGrain>), TPK_ROW("swiglu", floats<Swiglu, kGrainMath>),
  TPK_ROW("axpy", with_factor<axpy_loop<float>, axpy_loop<double>>),
  TPK_ROW("addcmul", with_factor<addcmul_loop<float>, addcmul_loop<double>>),
  TPK_ROW("addcdiv", with_factor<addcdiv_loop<float>, addcdiv_loop<double>>),
  TPK_ROW("clamp_scalar", clamp_scalar), TPK_ROW("where", where), TPK_ROW("fma", ternary<Fma>),
  TPK_ROW("lerp", ternary<Lerp>), TPK_ROW("swiglu_backward", swiglu_backward),
  {nullptr, nullptr, 0},
};
