// Optimizer steps over all parameters in one parallel region. The arithmetic is that of torch's single-tensor steps,
// in the parameter's own precision and in the same order; scalars are formed in double and rounded once.
#include <cmath>

#include "axes.h"
#include "parallel.h"
#include "vec.h"

namespace TPK_ISA_NS {
namespace {

constexpr int64_t kStepWork = 16384;  // elements of a chunk
constexpr int64_t kAhead = 256;       // elements: four streams are too many for the processor's own prefetching

template <class T> inline void fetch_ahead(const T* p) { __builtin_prefetch(p + kAhead); }

// `lists` lists of n tensors each, in call->in one after another. False unless tensor i of every list matches.
bool lists_match(const tpk_call* call, int64_t n, int lists) {
  if (n < 0 || call->n_in != n * lists) return false;
  for (int64_t i = 0; i < n; i++)
    for (int k = 0; k < lists; k++) {
      const tpk_tensor& t = call->in[k * n + i];
      if (!t.contiguous || t.dtype != call->in[0].dtype || t.numel != call->in[i].numel) return false;
    }
  return n == 0 || call->in[0].dtype == TPK_F32 || call->in[0].dtype == TPK_F64;
}

// step(i, begin, end): elements [begin, end) of parameter i. The parameters are cut as one long array.
template <class Step> void over_parameters(const tpk_call* call, int64_t n, const Step& step) {
  int64_t total = 0;
  for (int64_t i = 0; i < n; i++) total += call->in[i].numel;
  parallel_for(total, kStepWork, [&](int64_t begin, int64_t end) {
    int64_t i = 0, first = 0;
    while (first + call->in[i].numel <= begin) first += call->in[i++].numel;
    for (; begin < end; i++) {
      const int64_t size = call->in[i].numel, last = smaller(end - first, size);
      if (last > begin - first) step(i, begin - first, last);
      first += size;
      begin = larger(begin, first);
    }
  });
}

template <class T> T* data_of(const tpk_call* call, int64_t k) { return static_cast<T*>(call->in[k].data); }

template <class T> struct AdamScalars {
  T weight_decay, keep, beta2, mean_weight, square_weight, root_correction, eps, step_size;
  bool decoupled, decay, maximize;
};

template <class T> AdamScalars<T> adam_scalars(const tpk_attr* attr) {
  const double lr = attr[1].d, beta1 = attr[2].d, beta2 = attr[3].d, weight_decay = attr[5].d;
  return {T(weight_decay), T(1 - lr * weight_decay), T(beta2), T(1 - beta1), T(1 - beta2), T(sqrt(attr[7].d)),
          T(attr[4].d), T(-(lr / attr[6].d)), attr[8].i != 0, weight_decay != 0, attr[9].i != 0};
}

// torch's lerp takes the nearer end as its base.
template <bool near_start, class V, class T> inline V lerp(V start, V end, T weight) {
  return near_start ? start + (end - start) * weight : end - (end - start) * (1 - weight);
}

template <bool amsgrad, bool near_start, class T>
void adam_elements(const AdamScalars<T>& s, T* param, const T* grad, T* mean, T* square, T* largest, int64_t n) {
  each_vector<T>(n, [=](auto tag, int64_t j) {
    typedef decltype(tag) V;
    fetch_ahead(param + j), fetch_ahead(grad + j), fetch_ahead(mean + j), fetch_ahead(square + j);
    V p = load<V>(param + j), g = load<V>(grad + j);
    if (s.maximize) g = -g;
    if (s.decay && s.decoupled) p = p * s.keep;
    if (s.decay && !s.decoupled) g = g + p * s.weight_decay;
    V m = lerp<near_start>(load<V>(mean + j), g, s.mean_weight);
    V v = load<V>(square + j) * s.beta2 + g * g * s.square_weight;
    store(mean + j, m);
    store(square + j, v);
    if (amsgrad) {
      v = MaxStep::step(load<V>(largest + j), v);
      store(largest + j, v);
    }
    V denominator = root_of(v) / s.root_correction + s.eps;
    store(param + j, p + m * s.step_size / denominator);
  });
}

template <class T> int adam_all(const tpk_call* call, int64_t n, bool amsgrad) {
  const AdamScalars<T> s = adam_scalars<T>(call->attr);
  const bool near_start = s.mean_weight < T(0.5);
  over_parameters(call, n, [&](int64_t i, int64_t begin, int64_t end) {
    T *param = data_of<T>(call, i) + begin, *mean = data_of<T>(call, 2 * n + i) + begin;
    const T* grad = data_of<T>(call, n + i) + begin;
    T *square = data_of<T>(call, 3 * n + i) + begin, *largest = amsgrad ? data_of<T>(call, 4 * n + i) + begin : nullptr;
    if (amsgrad && near_start) adam_elements<true, true>(s, param, grad, mean, square, largest, end - begin);
    else if (amsgrad) adam_elements<true, false>(s, param, grad, mean, square, largest, end - begin);
    else if (near_start) adam_elements<false, true>(s, param, grad, mean, square, largest, end - begin);
    else adam_elements<false, false>(s, param, grad, mean, square, largest, end - begin);
  });
  return TPK_OK;
}

// attr: n, lr, beta1, beta2, eps, weight_decay, bias_correction1, bias_correction2, decoupled, maximize, amsgrad
int adamw_step(const tpk_call* call) {
  const int64_t n = call->attr[0].i;
  const bool amsgrad = call->attr[10].i != 0;
  if (!lists_match(call, n, amsgrad ? 5 : 4)) return TPK_UNSUPPORTED;
  if (n == 0) return TPK_OK;
  return call->in[0].dtype == TPK_F32 ? adam_all<float>(call, n, amsgrad) : adam_all<double>(call, n, amsgrad);
}

template <class T> struct SgdScalars {
  T lr, momentum, undamped, weight_decay;
  bool decay, nesterov, maximize, first;
};

// buffer is NULL without momentum.
template <class T> void sgd_elements(const SgdScalars<T>& s, T* param, const T* grad, T* buffer, int64_t n) {
  each_vector<T>(n, [=](auto tag, int64_t j) {
    typedef decltype(tag) V;
    V p = load<V>(param + j), g = load<V>(grad + j);
    if (s.maximize) g = -g;
    if (s.decay) g = g + p * s.weight_decay;
    if (buffer) {
      V b = s.first ? g : load<V>(buffer + j) * s.momentum + g * s.undamped;
      store(buffer + j, b);
      g = s.nesterov ? g + b * s.momentum : b;
    }
    store(param + j, p - g * s.lr);
  });
}

template <class T> int sgd_all(const tpk_call* call, int64_t n, bool buffered) {
  const tpk_attr* attr = call->attr;
  const SgdScalars<T> s = {T(attr[1].d), T(attr[2].d), T(1 - attr[3].d), T(attr[4].d),
                           attr[4].d != 0, attr[5].i != 0, attr[6].i != 0, attr[7].i != 0};
  over_parameters(call, n, [&](int64_t i, int64_t begin, int64_t end) {
    T* buffer = buffered ? data_of<T>(call, 2 * n + i) + begin : nullptr;
    sgd_elements(s, data_of<T>(call, i) + begin, data_of<T>(call, n + i) + begin, buffer, end - begin);
  });
  return TPK_OK;
}

// attr: n, lr, momentum, dampening, weight_decay, nesterov, maximize, first
int sgd_step(const tpk_call* call) {
  const int64_t n = call->attr[0].i;
  const bool momentum = call->attr[2].d != 0, buffers = n > 0 && call->n_in == 3 * n;
  if (!lists_match(call, n, buffers ? 3 : 2) || (momentum && n > 0 && !buffers)) return TPK_UNSUPPORTED;
  if (n == 0) return TPK_OK;
  return call->in[0].dtype == TPK_F32 ? sgd_all<float>(call, n, momentum) : sgd_all<double>(call, n, momentum);
}

}  // namespace
}  // namespace TPK_ISA_NS

using namespace TPK_ISA_NS;
TPK_FAMILY(optimizer){
    {"adamw_step", adamw_step, TPK_MUTATES}, {"sgd_step", sgd_step, TPK_MUTATES}, {nullptr, nullptr, 0}};
