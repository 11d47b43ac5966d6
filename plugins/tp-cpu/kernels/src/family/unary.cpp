// Operators of one tensor.
#include "unary_ops.h"

namespace TPK_ISA_NS {
namespace {

template <class Op> Loop float_loop(int dtype) {
  switch (dtype) {
#define TPK_CASE(code, type, unused) case code: return unary_loop<Op, type, type>;
    TPK_FLOATS(TPK_CASE, )
    default: return nullptr;
  }
}
template <class Op> Loop integer_loop(int dtype) {
  switch (dtype) {
    TPK_INTS(TPK_CASE, )
    TPK_SMALL_INTS(TPK_CASE, )
#undef TPK_CASE
    default: return nullptr;
  }
}
template <class Op> Loop float_test(int dtype) {
  switch (dtype) {
#define TPK_CASE(code, type, unused) case code: return unary_loop<Op, type, uint8_t>;
    TPK_FLOATS(TPK_CASE, )
    default: return nullptr;
  }
}
template <class Op> Loop any_test(int dtype) {
  if (dtype == TPK_BOOL) dtype = TPK_U8;
  switch (dtype) {
    TPK_INTS(TPK_CASE, )
    TPK_SMALL_INTS(TPK_CASE, )
#undef TPK_CASE
    default: return float_test<Op>(dtype);
  }
}

// out has the input's dtype
int run_same(const tpk_call* call, Loop loop, int64_t grain) {
  if (call->in[0].dtype != call->out[0].dtype) return TPK_UNSUPPORTED;
  return run_elementwise(call, {loop, grain, false}, {});
}
template <class Op, int64_t grain> int floats(const tpk_call* call) {
  return run_same(call, float_loop<Op>(loop_dtype(call->in[0].dtype)), grain);
}
template <class Op> int numbers(const tpk_call* call) {
  int dtype = loop_dtype(call->in[0].dtype);
  return run_same(call, is_float(dtype) ? float_loop<Op>(dtype) : integer_loop<Op>(dtype), kGrain);
}
template <Loop (*choose)(int)> int test(const tpk_call* call) {
  if (call->out[0].dtype != TPK_BOOL) return TPK_UNSUPPORTED;
  return run_elementwise(call, {choose(loop_dtype(call->in[0].dtype)), kGrain, false}, {});
}
template <class Op> int hardware_math(const tpk_call* call) { return floats<Op, kGrain>(call); }
template <class Op> int vector_math(const tpk_call* call) { return floats<Op, kGrainMath>(call); }
template <class Op> int library_math(const tpk_call* call) { return floats<Op, kGrainSlow>(call); }

int bitwise_not(const tpk_call* call) {
  int dtype = call->in[0].dtype;
  return run_same(call, dtype == TPK_BOOL ? any_test<LogicalNot>(dtype) : integer_loop<BitwiseNot>(dtype), kGrain);
}

// sin, cos and tan: the vector version reaches to kTrigLimit; a block with a larger value takes the C library.
template <class Small, class Any>
void trig_loop(const void*, int64_t n, char* const* data, unsigned) {
  float* out = reinterpret_cast<float*>(data[0]);
  const float* x = reinterpret_cast<const float*>(data[1]);
  for (int64_t begin = 0; begin < n; begin += 256) {
    int64_t end = begin + 256 < n ? begin + 256 : n;
    int large = 0;
    for (int64_t i = begin; i < end; i++) large |= !(__builtin_fabsf(x[i]) < kTrigLimit);
    if (large) {
      for (int64_t i = begin; i < end; i++) out[i] = Any::apply(x[i]);
    } else {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; i++) out[i] = Small::apply(x[i]);
    }
  }
}
template <class Small, class Any> int trig(const tpk_call* call) {
  int dtype = loop_dtype(call->in[0].dtype);
  return run_same(call, dtype == TPK_F32 ? trig_loop<Small, Any> : float_loop<Any>(dtype), kGrainMath);
}

int gelu(const tpk_call* call) {
  if (call->n_attr < 1 || !call->attr[0].text) return TPK_UNSUPPORTED;
  return strcmp(call->attr[0].text, "tanh") ? vector_math<Gelu>(call) : vector_math<GeluTanh>(call);
}

}  // namespace
}  // namespace TPK_ISA_NS

using namespace TPK_ISA_NS;
#define TPK_ROW(name, kernel) {name, kernel, TPK_ELEMENTWISE}

TPK_FAMILY(unary){
  TPK_ROW("neg", numbers<Neg>), TPK_ROW("abs", numbers<Abs>), TPK_ROW("square", numbers<Square>),
  TPK_ROW("sign", numbers<Sign>), TPK_ROW("relu", numbers<Relu>), TPK_ROW("bitwise_not", bitwise_not),
  TPK_ROW("logical_not", test<any_test<LogicalNot>>), TPK_ROW("isnan", test<float_test<IsNan>>),
  TPK_ROW("isinf", test<float_test<IsInf>>), TPK_ROW("isfinite", test<float_test<IsFinite>>),
  TPK_ROW("sqrt", hardware_math<Sqrt>), TPK_ROW("reciprocal", hardware_math<Reciprocal>),
  TPK_ROW("rsqrt", hardware_math<Rsqrt>),
  TPK_ROW("floor", hardware_math<Floor>), TPK_ROW("ceil", hardware_math<Ceil>), TPK_ROW("trunc", hardware_math<Trunc>),
  TPK_ROW("round", hardware_math<Round>),
  TPK_ROW("exp", vector_math<Exp>), TPK_ROW("exp2", vector_math<Exp2>), TPK_ROW("expm1", vector_math<Expm1>),
  TPK_ROW("log", vector_math<Log>), TPK_ROW("log2", vector_math<Log2>), TPK_ROW("log10", vector_math<Log10>),
  TPK_ROW("log1p", vector_math<Log1p>), TPK_ROW("tanh", vector_math<Tanh>), TPK_ROW("erf", vector_math<Erf>),
  TPK_ROW("sigmoid", vector_math<Sigmoid>), TPK_ROW("silu", vector_math<Silu>), TPK_ROW("gelu", gelu),
  {"sin", trig<SmallSin, Sin>, TPK_ELEMENTWISE}, {"cos", trig<SmallCos, Cos>, TPK_ELEMENTWISE},
  {"tan", trig<SmallTan, Tan>, TPK_ELEMENTWISE}, TPK_ROW("sinh", vector_math<Sinh>),
  TPK_ROW("cosh", vector_math<Cosh>), TPK_ROW("asin", vector_math<Asin>), TPK_ROW("acos", vector_math<Acos>),
  TPK_ROW("atan", vector_math<Atan>),
  TPK_ROW("asinh", library_math<Asinh>), TPK_ROW("acosh", library_math<Acosh>), TPK_ROW("atanh", library_math<Atanh>),
  TPK_ROW("erfc", vector_math<Erfc>), TPK_ROW("erfinv", library_math<Erfinv>),
  TPK_ROW("lgamma", library_math<Lgamma>), TPK_ROW("digamma", library_math<Digamma>),
  {nullptr, nullptr, 0},
};
