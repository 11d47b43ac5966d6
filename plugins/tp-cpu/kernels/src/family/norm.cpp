// layer_norm and rms_norm, forward and backward, over the trailing dimensions (float32, float64).
#include <cfloat>
#include <cmath>

#include "axes.h"
#include "column_sums.h"
#include "dtype.h"
#include "parallel.h"
#include "vec.h"

namespace TPK_ISA_NS {
namespace {

constexpr int64_t kNormWork = 32768;  // elements of a chunk

struct Rows { int64_t count, width; };

// False: `shape` is not a list of trailing dimensions of t.
bool find_rows(const tpk_tensor& t, const tpk_attr& shape, Rows& rows) {
  if (shape.kind != TPK_ATTR_INTS || shape.n > t.ndim) return false;
  rows = {1, 1};
  for (int d = 0; d < t.ndim; d++) {
    int own = d - (t.ndim - shape.n);
    if (own >= 0 && shape.list[own] != t.shape[d]) return false;
    (own >= 0 ? rows.width : rows.count) *= t.shape[d];
  }
  return true;
}

bool all_of_dtype(const tpk_tensor* tensors, int n, int dtype) {
  for (int k = 0; k < n; k++)
    if (tensors[k].ndim >= 0 && tensors[k].dtype != dtype) return false;
  return true;
}
// Statistics and parameters have the dtype of the input.
bool one_dtype(const tpk_call* call) {
  const int dtype = call->in[0].dtype;
  if (dtype != TPK_F32 && dtype != TPK_F64) return false;
  return all_of_dtype(call->in, call->n_in, dtype) && all_of_dtype(call->out, call->n_out, dtype);
}

template <class T> const T* data_of(const tpk_tensor& t) {
  return t.ndim < 0 ? nullptr : static_cast<const T*>(t.data);
}

template <class T> struct Forward { const T *input, *weight, *bias; T *out, *mean, *rstd; int64_t width; double eps; };

template <class T> void layer_norm_row(const Forward<T>& f, int64_t row) {
  const T *x = f.input + row * f.width, *weight = f.weight, *bias = f.bias;
  T* out = f.out + row * f.width;
  const int64_t n = f.width;
  const T mean = static_cast<T>(sum_row(x, n) / static_cast<double>(n));
  const double variance = sum_terms<T>(n, [=](auto tag, int64_t j) {
    auto centred = load<decltype(tag)>(x + j) - mean;
    return centred * centred;
  }) / static_cast<double>(n);
  const T rstd = static_cast<T>(1 / sqrt(variance + f.eps));
  f.mean[row] = mean, f.rstd[row] = rstd;
  each_vector<T>(n, [=](auto tag, int64_t j) {
    typedef decltype(tag) V;
    V value = (load<V>(x + j) - mean) * rstd;
    if (weight) value = value * load<V>(weight + j);
    if (bias) value = value + load<V>(bias + j);
    store(out + j, value);
  });
}

template <class T> void rms_norm_row(const Forward<T>& f, int64_t row) {
  const T *x = f.input + row * f.width, *weight = f.weight;
  T* out = f.out + row * f.width;
  const int64_t n = f.width;
  const double square = sum_terms<T>(n, [=](auto tag, int64_t j) {
    auto value = load<decltype(tag)>(x + j);
    return value * value;
  }) / static_cast<double>(n);
  const T rstd = static_cast<T>(1 / sqrt(square + f.eps));
  f.rstd[row] = rstd;
  each_vector<T>(n, [=](auto tag, int64_t j) {
    typedef decltype(tag) V;
    V value = load<V>(x + j) * rstd;
    store(out + j, weight ? value * load<V>(weight + j) : value);
  });
}

template <class T> int run_forward(const tpk_call* call, const Rows& rows, bool centre) {
  const tpk_attr& eps = call->attr[1];
  const double least = sizeof(T) == 4 ? double(FLT_EPSILON) : DBL_EPSILON;
  Forward<T> f = {data_of<T>(call->in[0]), data_of<T>(call->in[1]), centre ? data_of<T>(call->in[2]) : nullptr,
                  static_cast<T*>(call->out[0].data), centre ? static_cast<T*>(call->out[1].data) : nullptr,
                  static_cast<T*>(call->out[centre ? 2 : 1].data), rows.width, is_none(eps) ? least : eps.d};
  parallel_for(rows.count, items_per_chunk(kNormWork, rows.width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
      if (centre) layer_norm_row(f, row);
      else rms_norm_row(f, row);
    }
  });
  return TPK_OK;
}

int forward(const tpk_call* call, bool centre) {
  Rows rows;
  if (!one_dtype(call) || !find_rows(call->in[0], call->attr[0], rows)) return TPK_UNSUPPORTED;
  for (int k = 1; k < call->n_in; k++)
    if (call->in[k].ndim >= 0 && call->in[k].numel != rows.width) return TPK_UNSUPPORTED;
  return call->in[0].dtype == TPK_F32 ? run_forward<float>(call, rows, centre)
                                      : run_forward<double>(call, rows, centre);
}

int layer_norm_forward(const tpk_call* call) { return forward(call, true); }
int rms_norm_forward(const tpk_call* call) { return forward(call, false); }

template <class T> struct Backward { const T *grad, *input, *mean, *rstd, *weight; T* dinput; int64_t width; };

// With h = (input - mean) * rstd and g = grad * weight: dinput = rstd * (g - mean(g) - h * mean(g * h)), and grad * h
// and grad are added to the rows' sums. Without centring, mean(g) and the mean are left out.
template <bool centre, bool weighted, class T>
void backward_row(const Backward<T>& b, int64_t row, T* dweight, T* dbias) {
  const int64_t n = b.width;
  const T *grad = b.grad + row * n, *x = b.input + row * n, *weight = b.weight;
  T* dinput = b.dinput + row * n;
  const T mean = centre ? b.mean[row] : T(0), rstd = b.rstd[row];
  const auto scaled = [=](auto tag, int64_t j) {
    typedef decltype(tag) V;
    V g = load<V>(grad + j);
    if (weighted) g = g * load<V>(weight + j);
    return g;
  };
  const auto normal = [=](auto tag, int64_t j) {
    auto value = load<decltype(tag)>(x + j);
    if (centre) value = value - mean;
    return value * rstd;
  };
  const T along = static_cast<T>(sum_terms<T>(n, [&](auto tag, int64_t j) {
    return scaled(tag, j) * normal(tag, j);
  }) / static_cast<double>(n));
  const T level = centre ? static_cast<T>(sum_terms<T>(n, scaled) / static_cast<double>(n)) : T(0);
  each_vector<T>(n, [&](auto tag, int64_t j) {
    typedef decltype(tag) V;
    V h = normal(tag, j), g = load<V>(grad + j);
    V change = scaled(tag, j) - h * along;
    if (centre) change = change - level;
    store(dinput + j, change * rstd);
    store(dweight + j, load<V>(dweight + j) + g * h);
    if (centre) store(dbias + j, load<V>(dbias + j) + g);
  });
}

template <bool centre, class T> int run_backward(const tpk_call* call, const Rows& rows) {
  Backward<T> b = {data_of<T>(call->in[0]), data_of<T>(call->in[1]), centre ? data_of<T>(call->in[2]) : nullptr,
                   data_of<T>(call->in[centre ? 3 : 2]), data_of<T>(call->in[centre ? 4 : 3]),
                   static_cast<T*>(call->out[0].data), rows.width};
  T* totals[2] = {static_cast<T*>(call->out[1].data), centre ? static_cast<T*>(call->out[2].data) : nullptr};
  return sum_over_rows<T>(call, rows.count, rows.width, totals, centre ? 2 : 1, [&](int64_t row, T* const* sums) {
    if (b.weight) backward_row<centre, true>(b, row, sums[0], sums[1]);
    else backward_row<centre, false>(b, row, sums[0], sums[1]);
  });
}

template <bool centre> int backward(const tpk_call* call) {
  Rows rows;
  const tpk_tensor& weight = call->in[centre ? 4 : 3];
  if (!one_dtype(call) || !find_rows(call->in[1], call->attr[0], rows)) return TPK_UNSUPPORTED;
  if (call->in[0].numel != call->in[1].numel) return TPK_UNSUPPORTED;
  if (weight.ndim >= 0 && weight.numel != rows.width) return TPK_UNSUPPORTED;
  return call->in[0].dtype == TPK_F32 ? run_backward<centre, float>(call, rows)
                                      : run_backward<centre, double>(call, rows);
}

int layer_norm_backward(const tpk_call* call) { return backward<true>(call); }
int rms_norm_backward(const tpk_call* call) { return backward<false>(call); }

}  // namespace
}  // namespace TPK_ISA_NS

using namespace TPK_ISA_NS;
TPK_FAMILY(norm){
    {"layer_norm_forward", layer_norm_forward, TPK_CONTIGUOUS},
    {"layer_norm_backward", layer_norm_backward, TPK_CONTIGUOUS},
    {"rms_norm_forward", rms_norm_forward, TPK_CONTIGUOUS},
    {"rms_norm_backward", rms_norm_backward, TPK_CONTIGUOUS},
    {nullptr, nullptr, 0},
};
