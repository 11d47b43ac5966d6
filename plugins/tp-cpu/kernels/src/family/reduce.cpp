// sum, mean, amax, amin, prod, any, all (arg_reduce.h: argmax, argmin).
#include <cmath>

#include "arg_reduce.h"
#include "dtype.h"
#include "fold.h"

namespace TPK_ISA_NS {
namespace {

// The type in which sums and products of T are formed: float sums inside a block of rows stay float.
template <class T> struct Wide { typedef int64_t Lane; typedef int64_t Acc; };
template <> struct Wide<float> { typedef float Lane; typedef double Acc; };
template <> struct Wide<double> { typedef double Lane; typedef double Acc; };

template <class T> inline int64_t widened(T x) { return x; }
inline int64_t widened(Bool x) { return x.byte != 0; }
inline float widened(float x) { return x; }
inline double widened(double x) { return x; }

// Unsigned arithmetic: integer overflow wraps, as in torch.
inline int64_t wrap_add(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }
inline int64_t wrap_mul(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }

template <class T> inline int64_t sum_of(const T* x, int64_t n) {
  int64_t total = 0;
  for (int64_t i = 0; i < n; i++) total = wrap_add(total, widened(x[i]));
  return total;
}
inline double sum_of(const float* x, int64_t n) { return sum_row(x, n); }
inline double sum_of(const double* x, int64_t n) { return sum_row(x, n); }

template <class In> struct SumFold {
  typedef typename Wide<In>::Lane Lane;
  typedef typename Wide<In>::Acc Acc;
  typedef typename VectorStep<In, SumStep>::Choice Vectors;
  static inline Lane lane(In x) { return widened(x); }
  static inline Lane identity() { return 0; }
  static inline float step(float a, float b) { return a + b; }
  static inline double step(double a, double b) { return a + b; }
  static inline int64_t step(int64_t a, int64_t b) { return wrap_add(a, b); }
  static inline Acc merge(Acc a, Acc b) { return step(a, b); }
  static inline Acc row(const In* x, int64_t n) { return sum_of(x, n); }
};

// Products of floats are formed in double: a partial product may be larger than the result.
template <class In> struct ProdFold {
  typedef typename Wide<In>::Acc Acc;
  typedef Acc Lane;
  typedef ScalarStep Vectors;
  static inline Lane lane(In x) { return widened(x); }
  static inline Lane identity() { return 1; }
  static inline double step(double a, double b) { return a * b; }
  static inline int64_t step(int64_t a, int64_t b) { return wrap_mul(a, b); }
  static inline Acc merge(Acc a, Acc b) { return step(a, b); }
  static inline Acc row(const In* x, int64_t n) {
    // One accumulator: GCC 12 vectorises a group of integer products (-O3, x86-64-v3 and v4) to a wrong result.
    Acc total = identity();
    for (int64_t i = 0; i < n; i++) total = step(total, lane(x[i]));
    return total;
  }
};

template <class T> struct Plain { typedef T Value; };
template <> struct Plain<Bool> { typedef uint8_t Value; };
template <class T> inline T plain(T x) { return x; }
inline uint8_t plain(Bool x) { return x.byte != 0; }

template <class T> struct Bounds {
  static constexpr T lowest() { return T(-1) < T(0) ? T(uint64_t(1) << (8 * sizeof(T) - 1)) : T(0); }
  static constexpr T highest() { return T(~lowest()); }
};
template <> struct Bounds<float> {
  static float lowest() { return -HUGE_VALF; }
  static float highest() { return HUGE_VALF; }
};
template <> struct Bounds<double> {
  static double lowest() { return -HUGE_VAL; }
  static double highest() { return HUGE_VAL; }
};

template <class Step> inline float extreme_of(const float* x, int64_t n) { return extreme_row<Step>(x, n); }
template <class Step> inline double extreme_of(const double* x, int64_t n) { return extreme_row<Step>(x, n); }
template <class Step, class T> inline typename Plain<T>::Value extreme_of(const T* x, int64_t n) {
  typename Plain<T>::Value best = plain(x[0]);
  for (int64_t i = 1; i < n; i++) best = Step::step(best, plain(x[i]));
  return best;
}

template <class In, class Step, bool maximum> struct ExtremeFold {
  typedef typename Plain<In>::Value Lane;
  typedef Lane Acc;
  typedef typename VectorStep<In, Step>::Choice Vectors;
  static inline Lane lane(In x) { return plain(x); }
  static inline Lane identity() { return maximum ? Bounds<Lane>::lowest() : Bounds<Lane>::highest(); }
  static inline Lane step(Lane a, Lane b) { return Step::step(a, b); }
  static inline Acc merge(Acc a, Acc b) { return Step::step(a, b); }
  static inline Acc row(const In* x, int64_t n) { return extreme_of<Step>(x, n); }
};
template <class In> using MaxFold = ExtremeFold<In, MaxStep, true>;
template <class In> using MinFold = ExtremeFold<In, MinStep, false>;

template <class T> inline uint8_t truth(T x) { return x != T(0); }
inline uint8_t truth(Bool x) { return x.byte != 0; }

template <class In, bool any> struct TruthFold {
  typedef uint8_t Lane;
  typedef uint8_t Acc;
  typedef ScalarStep Vectors;
  static inline Lane lane(In x) { return truth(x); }
  static inline Lane identity() { return any ? 0 : 1; }
  static inline Lane step(Lane a, Lane b) { return any ? a | b : a & b; }
  static inline Acc merge(Acc a, Acc b) { return step(a, b); }
  static inline Acc row(const In* x, int64_t n) {
    Lane total = identity();
    for (int64_t i = 0; i < n; i++) total = step(total, truth(x[i]));
    return total;
  }
};
template <class In> using AnyFold = TruthFold<In, true>;
template <class In> using AllFold = TruthFold<In, false>;

#define FOLD_INTS(X, ...) TPK_INTS(X, __VA_ARGS__) TPK_SMALL_INTS(X, __VA_ARGS__) X(TPK_BOOL, Bool, __VA_ARGS__)
#define FOLD_TO_INT64(code, type, fold) case code: return fold_groups<fold, type, int64_t>(call, groups, 1);

template <template <class> class Op> int accumulate(const tpk_call* call, bool mean) {
  Groups groups;
  const int from = call->in[0].dtype, to = call->out[0].dtype;
  if (!find_groups(call->in[0], call->attr[0], groups)) return TPK_UNSUPPORTED;
  double divisor = mean ? static_cast<double>(groups.inputs_per_output) : 1;
  if (from == TPK_F32 && to == TPK_F32) return fold_groups<Op, float, float>(call, groups, divisor);
  if (from == TPK_F32 && to == TPK_F64) return fold_groups<Op, float, double>(call, groups, divisor);
  if (from == TPK_F64 && to == TPK_F64) return fold_groups<Op, double, double>(call, groups, divisor);
  if (to != TPK_I64 || mean) return TPK_UNSUPPORTED;
  switch (from) { FOLD_INTS(FOLD_TO_INT64, Op) }
  return TPK_UNSUPPORTED;
}

int sum(const tpk_call* call) { return accumulate<SumFold>(call, false); }
int mean(const tpk_call* call) { return accumulate<SumFold>(call, true); }
int prod(const tpk_call* call) { return accumulate<ProdFold>(call, false); }

#define FOLD_TO_SAME(code, type, fold) case code: return fold_groups<fold, type, Plain<type>::Value>(call, groups, 1);

template <template <class> class Op> int extreme(const tpk_call* call) {
  Groups groups;
  if (!find_groups(call->in[0], call->attr[0], groups)) return TPK_UNSUPPORTED;
  if (call->out[0].dtype != call->in[0].dtype) return TPK_UNSUPPORTED;
  if (groups.inputs_per_output == 0 && groups.outputs > 0) return TPK_UNSUPPORTED;  // refused by the operator's meta
  switch (call->in[0].dtype) { FOLD_INTS(FOLD_TO_SAME, Op) TPK_FLOATS(FOLD_TO_SAME, Op) }
  return TPK_UNSUPPORTED;
}

int amax(const tpk_call* call) { return extreme<MaxFold>(call); }
int amin(const tpk_call* call) { return extreme<MinFold>(call); }

#define FOLD_TO_TRUTH(code, type, fold) case code: return fold_groups<fold, type, uint8_t>(call, groups, 1);
// Whether an integer is 0 depends on its bytes, not on its sign.
#define TRUTH_INTS(X, ...) X(TPK_BOOL, Bool, __VA_ARGS__) X(TPK_U8, Bool, __VA_ARGS__) X(TPK_I8, Bool, __VA_ARGS__) \
  X(TPK_I16, int16_t, __VA_ARGS__) X(TPK_I32, int32_t, __VA_ARGS__) X(TPK_I64, int64_t, __VA_ARGS__)

template <template <class> class Op> int truth_of(const tpk_call* call) {
  Groups groups;
  if (!find_groups(call->in[0], call->attr[0], groups)) return TPK_UNSUPPORTED;
  if (call->out[0].dtype != TPK_BOOL && call->out[0].dtype != TPK_U8) return TPK_UNSUPPORTED;
  switch (call->in[0].dtype) { TRUTH_INTS(FOLD_TO_TRUTH, Op) TPK_FLOATS(FOLD_TO_TRUTH, Op) }
  return TPK_UNSUPPORTED;
}

int any(const tpk_call* call) { return truth_of<AnyFold>(call); }
int all(const tpk_call* call) { return truth_of<AllFold>(call); }

#define ARG_CASE(code, type, step) case code: \
  return arg_axis<step>(static_cast<const type*>(in.data), static_cast<int64_t*>(call->out[0].data), axis, call);

template <class Step> int arg_extreme(const tpk_call* call) {
  const tpk_tensor& in = call->in[0];
  Axis axis = {1, in.numel, 1};
  if (!is_none(call->attr[0]) && !find_axis(in, call->attr[0].i, axis)) return TPK_UNSUPPORTED;
  if (call->out[0].dtype != TPK_I64) return TPK_UNSUPPORTED;
  if (axis.outer * axis.inner == 0) return TPK_OK;
  if (axis.size == 0) return TPK_UNSUPPORTED;  // refused by the operator's meta
  switch (in.dtype) { TPK_FLOATS(ARG_CASE, Step) TPK_INTS(ARG_CASE, Step) TPK_SMALL_INTS(ARG_CASE, Step) }
  return TPK_UNSUPPORTED;
}

int argmax(const tpk_call* call) { return arg_extreme<MaxStep>(call); }
int argmin(const tpk_call* call) { return arg_extreme<MinStep>(call); }

}  // namespace
}  // namespace TPK_ISA_NS

using namespace TPK_ISA_NS;
TPK_FAMILY(reduce){
    {"sum", sum, TPK_CONTIGUOUS},       {"mean", mean, TPK_CONTIGUOUS},     {"amax", amax, TPK_CONTIGUOUS},
    {"amin", amin, TPK_CONTIGUOUS},     {"prod", prod, TPK_CONTIGUOUS},     {"argmax", argmax, TPK_CONTIGUOUS},
    {"argmin", argmin, TPK_CONTIGUOUS}, {"any", any, TPK_CONTIGUOUS},       {"all", all, TPK_CONTIGUOUS},
    {nullptr, nullptr, 0},
};
