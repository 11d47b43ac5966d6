// From a call to a kernel run: what every elementwise family needs.
#pragma once
#include <type_traits>

#include "strided.h"

namespace TPK_ISA_NS {

// A division by zero is noted here by the loops and reported at the end.
struct Params {
  double a, b;   // attributes of the operator
  bool has_a, has_b;
  int* failed;
};

struct Choice {
  Loop loop;           // nullptr: not for this dtype
  int64_t grain;
  bool takes_scalars;
};

static inline int loop_dtype(int dtype) { return is_half(dtype) ? TPK_F32 : dtype; }

// Runs a kernel whose operands are out[0..n_out) and then in[0..n_in).
static inline int run_elementwise(const tpk_call* call, const Choice& choice, const Params& params) {
  if (!choice.loop || call->n_in + call->n_out > kMaxOperands) return TPK_UNSUPPORTED;
  const tpk_tensor* operands[kMaxOperands];
  for (int k = 0; k < call->n_out; k++) operands[k] = &call->out[k];
  for (int k = 0; k < call->n_in; k++) operands[call->n_out + k] = &call->in[k];
  Plan plan;
  if (!make_plan(plan, operands, call->n_out + call->n_in)) return TPK_UNSUPPORTED;
  widen_halves(plan, operands);
  Kernel kernel = {choice.loop, &params, choice.grain, call->n_out, choice.takes_scalars};
  run_plan(plan, kernel);
  return TPK_OK;
}

static inline int fail(const tpk_call* call, const char* text) {
  strncpy(call->error, text, 255);
  call->error[255] = 0;
  return TPK_ERROR;
}

static inline bool same_dtypes(const tpk_call* call, int first, int count) {
  for (int k = first + 1; k < first + count; k++)
    if (call->in[k].dtype != call->in[first].dtype) return false;
  return true;
}

// Loops. Out may be one of the inputs, element for element, hence ivdep.
template <class Op, class T, class R>
static void unary_loop(const void*, int64_t n, char* const* data, unsigned) {
  R* out = reinterpret_cast<R*>(data[0]);
  const T* x = reinterpret_cast<const T*>(data[1]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) out[i] = Op::apply(x[i]);
}

template <class Op, class T, class R>
static void binary_loop(const void*, int64_t n, char* const* data, unsigned) {
  R* out = reinterpret_cast<R*>(data[0]);
  const T* x = reinterpret_cast<const T*>(data[1]);
  const T* y = reinterpret_cast<const T*>(data[2]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) out[i] = Op::apply(x[i], y[i]);
}

// The same with a variant for a scalar on either side (bit k of `scalars` is operand k).
template <class Op, class T, class R>
static void binary_loop_scalars(const void* context, int64_t n, char* const* data, unsigned scalars) {
  if (scalars == 0) return binary_loop<Op, T, R>(context, n, data, 0);
  R* out = reinterpret_cast<R*>(data[0]);
  const T* x = reinterpret_cast<const T*>(data[1]);
  const T* y = reinterpret_cast<const T*>(data[2]);
  const T first = x[0], second = y[0];
  if (scalars == 4) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) out[i] = Op::apply(x[i], second);
  } else if (scalars == 2) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) out[i] = Op::apply(first, y[i]);
  } else {
    const R value = Op::apply(first, second);
    for (int64_t i = 0; i < n; i++) out[i] = value;
  }
}

template <class Op, class T, class R>
static void ternary_loop(const void*, int64_t n, char* const* data, unsigned) {
  R* out = reinterpret_cast<R*>(data[0]);
  const T* x = reinterpret_cast<const T*>(data[1]);
  const T* y = reinterpret_cast<const T*>(data[2]);
  const T* z = reinterpret_cast<const T*>(data[3]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) out[i] = Op::apply(x[i], y[i], z[i]);
}

// Integers compute in unsigned arithmetic, which wraps; floats as they are.
template <class T, bool integer = std::is_integral<T>::value> struct WrapType { typedef T type; };
template <class T> struct WrapType<T, true> {
  typedef typename std::conditional<sizeof(T) == 8, uint64_t, uint32_t>::type type;
};
template <class T> using Wrap = typename WrapType<T>::type;

}  // namespace TPK_ISA_NS
