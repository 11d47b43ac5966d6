// cross_entropy from logits: log-softmax and negative log likelihood in one pass each way (float32, float64).
#include <cmath>

#include "axes.h"
#include "dtype.h"
#include "exponential.h"

namespace TPK_ISA_NS {
namespace {

constexpr int64_t kLossWork = 16384;  // elements of a chunk

enum Reduction { kNone, kMean, kSum };

struct Setting {
  int64_t rows, classes, ignore_index;
  Reduction reduction;
  double smoothing;
  const int64_t* target;
};

// attr: reduction, ignore_index, label_smoothing
bool read_setting(const tpk_call* call, const tpk_tensor& input, const tpk_tensor& target, Setting& s) {
  const char* reduction = call->attr[0].text;
  if (input.ndim != 2 || target.dtype != TPK_I64 || target.numel != input.shape[0] || !reduction) return false;
  s = {input.shape[0], input.shape[1], call->attr[1].i, kNone, call->attr[2].d,
       static_cast<const int64_t*>(target.data)};
  if (!strcmp(reduction, "mean")) s.reduction = kMean;
  else if (!strcmp(reduction, "sum")) s.reduction = kSum;
  else if (strcmp(reduction, "none")) return false;
  return true;
}

int check_targets(const tpk_call* call, const Setting& s) {
  for (int64_t i = 0; i < s.rows; i++)
    if ((s.target[i] < 0 || s.target[i] >= s.classes) && s.target[i] != s.ignore_index)
      return fail(call, "cross_entropy: target %lld at position %lld is outside 0..%lld",
                  static_cast<long long>(s.target[i]), static_cast<long long>(i),
                  static_cast<long long>(s.classes - 1));
  return TPK_OK;
}

template <class T> const T* weight_of(const tpk_tensor& t) {
  return t.ndim < 0 ? nullptr : static_cast<const T*>(t.data);
}

// The loss of one row; with smoothing, every class takes its share smoothing / classes.
template <class T>
double row_loss(const T* x, int64_t target, T logsumexp, const T* weight, double weight_sum, const Setting& s) {
  const double own = (weight ? double(weight[target]) : 1) * (double(logsumexp) - double(x[target]));
  if (s.smoothing == 0) return own;
  const double spread = sum_terms<T>(s.classes, [=](auto tag, int64_t j) {
    typedef decltype(tag) V;
    return weight ? load<V>(x + j) * load<V>(weight + j) : load<V>(x + j);
  });
  const double all = weight_sum * double(logsumexp) - spread;
  return own * (1 - s.smoothing) + all * (s.smoothing / static_cast<double>(s.classes));
}

template <class T> int forward(const tpk_call* call, const Setting& s) {
  const T *input = static_cast<const T*>(call->in[0].data), *weight = weight_of<T>(call->in[2]);
  T *loss = static_cast<T*>(call->out[0].data), *logsumexp = static_cast<T*>(call->out[1].data);
  const double weight_sum = weight ? sum_row(weight, s.classes) : static_cast<double>(s.classes);
  Workspace<double> each(s.rows);
  if (!each.data) return fail(call, "out of memory");
  parallel_for(s.rows, items_per_chunk(kLossWork, s.classes), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const T* x = input + i * s.classes;
      T top = extreme_row<MaxStep>(x, s.classes);
      logsumexp[i] = static_cast<T>(double(top) + double(logarithm(static_cast<T>(exp_sum(x, top, s.classes)))));
      const bool ignored = s.target[i] == s.ignore_index;
      each.data[i] = ignored ? 0 : row_loss(x, s.target[i], logsumexp[i], weight, weight_sum, s);
      if (s.reduction == kNone) loss[i] = static_cast<T>(each.data[i]);
    }
  });
  double total = 0, total_weight = 0;
  for (int64_t i = 0; i < s.rows; i++) {
    total += each.data[i];
    if (s.target[i] != s.ignore_index) total_weight += weight ? double(weight[s.target[i]]) : 1;
  }
  if (s.reduction != kNone) loss[0] = static_cast<T>(s.reduction == kMean ? total / total_weight : total);
  static_cast<T*>(call->out[2].data)[0] = static_cast<T>(total_weight);
  return TPK_OK;
}

bool one_dtype(const tpk_call* call, int dtype, const tpk_tensor& weight, int64_t classes) {
  if (dtype != TPK_F32 && dtype != TPK_F64) return false;
  for (int k = 0; k < call->n_out; k++)
    if (call->out[k].dtype != dtype) return false;
  return weight.ndim < 0 || (weight.dtype == dtype && weight.numel == classes);
}

int cross_entropy_forward(const tpk_call* call) {
  Setting s;
  const tpk_tensor& input = call->in[0];
  if (!read_setting(call, input, call->in[1], s)) return TPK_UNSUPPORTED;
  if (!one_dtype(call, input.dtype, call->in[2], s.classes)) return TPK_UNSUPPORTED;
  if (s.classes == 0) return TPK_UNSUPPORTED;
  if (int status = check_targets(call, s)) return status;
  return input.dtype == TPK_F32 ? forward<float>(call, s) : forward<double>(call, s);
}

// dinput = own * (p - [class is the target]) + share * (p * weight_sum - weight), p = exp(input - logsumexp).
template <class T>
void backward_row(const T* x, T* dinput, int64_t target, T logsumexp, const T* weight, T own, T share, T weight_sum,
                  int64_t classes) {
  exp_piece(x, logsumexp, classes, dinput);
  const T factor = own + share * weight_sum;
  each_vector<T>(classes, [=](auto tag, int64_t j) {
    typedef decltype(tag) V;
    V value = load<V>(dinput + j) * factor;
    if (share != 0) value = weight ? value - load<V>(weight + j) * share : value - share;
    store(dinput + j, value);
  });
  dinput[target] -= own;
}

template <class T> int backward(const tpk_call* call, const Setting& s) {
  const T *grad = static_cast<const T*>(call->in[0].data), *input = static_cast<const T*>(call->in[1].data);
  const T *weight = weight_of<T>(call->in[3]), *logsumexp = static_cast<const T*>(call->in[4].data);
  T* dinput = static_cast<T*>(call->out[0].data);
  const double weight_sum = weight ? sum_row(weight, s.classes) : static_cast<double>(s.classes);
  const double divisor = s.reduction == kMean ? double(static_cast<const T*>(call->in[5].data)[0]) : 1;
  parallel_for(s.rows, items_per_chunk(kLossWork, s.classes), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      T* to = dinput + i * s.classes;
      const int64_t target = s.target[i];
      if (target == s.ignore_index) {
        memset(to, 0, static_cast<size_t>(s.classes) * sizeof(T));
        continue;
      }
      const double scale = double(grad[s.reduction == kNone ? i : 0]) / divisor;
      const double own = scale * (1 - s.smoothing) * (weight ? double(weight[target]) : 1);
      const double share = scale * s.smoothing / static_cast<double>(s.classes);
      backward_row(input + i * s.classes, to, target, logsumexp[i], weight, static_cast<T>(own),
                   static_cast<T>(share), static_cast<T>(weight_sum), s.classes);
    }
  });
  return TPK_OK;
}

int cross_entropy_backward(const tpk_call* call) {
  Setting s;
  const tpk_tensor &grad = call->in[0], &input = call->in[1];
  if (!read_setting(call, input, call->in[2], s)) return TPK_UNSUPPORTED;
  if (!one_dtype(call, input.dtype, call->in[3], s.classes) || grad.dtype != input.dtype) return TPK_UNSUPPORTED;
  if (grad.numel != (s.reduction == kNone ? s.rows : 1) || call->in[4].dtype != input.dtype ||
      call->in[5].dtype != input.dtype)
    return TPK_UNSUPPORTED;
  if (s.classes == 0) return TPK_UNSUPPORTED;
  if (int status = check_targets(call, s)) return status;
  return input.dtype == TPK_F32 ? backward<float>(call, s) : backward<double>(call, s);
}

}  // namespace
}  // namespace TPK_ISA_NS

using namespace TPK_ISA_NS;
TPK_FAMILY(loss){
    {"cross_entropy_forward", cross_entropy_forward, TPK_CONTIGUOUS},
    {"cross_entropy_backward", cross_entropy_backward, TPK_CONTIGUOUS},
    {nullptr, nullptr, 0},
};
