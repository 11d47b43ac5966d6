// softmax, log_softmax and their backwards along any dimension (float32, float64); rope.
#include "axes.h"
#include "dtype.h"
#include "exponential.h"
#include "rotary.h"

namespace TPK_ISA_NS {
namespace {

constexpr int64_t kRowWork = 16384;   // elements of a chunk
constexpr int64_t kColumnTile = 128;  // columns that are worked on together when the dimension is not the last

struct Softmax {
  template <class T> static inline void row(const T* x, T* out, int64_t n) {
    double total = exp_row(x, extreme_row<MaxStep>(x, n), n, out);
    T scale = static_cast<T>(1 / total);
    each_vector<T>(n, [=](auto tag, int64_t j) { store(out + j, load<decltype(tag)>(out + j) * scale); });
  }
  // value = exp(x - max)
  template <class T> static inline T finish(T, T, T value, T inverse, T) { return value * inverse; }
};
struct LogSoftmax {
  template <class T> static inline void row(const T* x, T* out, int64_t n) {
    T top = extreme_row<MaxStep>(x, n);
    T log_total = static_cast<T>(log(exp_sum(x, top, n)));
    each_vector<T>(n, [=](auto tag, int64_t j) { store(out + j, load<decltype(tag)>(x + j) - top - log_total); });
  }
  template <class T> static inline T finish(T x, T top, T, T, T log_total) { return x - top - log_total; }
};

template <class Op, class T>
void softmax_columns(const T* x, T* out, int64_t size, int64_t stride, int64_t width) {
  T top[kColumnTile], inverse[kColumnTile], log_total[kColumnTile];
  double total[kColumnTile];
  for (int64_t j = 0; j < width; j++) top[j] = x[j], total[j] = 0;
  for (int64_t r = 1; r < size; r++)
    for (int64_t j = 0; j < width; j++) top[j] = MaxStep::step(top[j], x[r * stride + j]);
  for (int64_t r = 0; r < size; r++) {
    const T* from = x + r * stride;
    T* to = out + r * stride;
    for (int64_t j = 0; j < width; j++) to[j] = exponential_below(from[j] - top[j]);
    for (int64_t j = 0; j < width; j++) total[j] += to[j];
  }
  for (int64_t j = 0; j < width; j++) {
    inverse[j] = static_cast<T>(1 / total[j]);
    log_total[j] = static_cast<T>(log(total[j]));
  }
  for (int64_t r = 0; r < size; r++) {
    const T* from = x + r * stride;
    T* to = out + r * stride;
    for (int64_t j = 0; j < width; j++) to[j] = Op::finish(from[j], top[j], to[j], inverse[j], log_total[j]);
  }
}

// work(start, width): a row that starts at element `start` (inner == 1), or `width` neighbouring columns.
template <class Work> void along_axis(const Axis& axis, int64_t tile_size, const Work& work) {
  const int64_t inner = axis.inner, tile = smaller(inner, tile_size), tiles = ceil_div(inner, tile);
  parallel_for(axis.outer * tiles, items_per_chunk(kRowWork, axis.size * tile), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; task++) {
      int64_t column = task % tiles * tile;
      work(task / tiles * axis.size * inner + column, smaller(tile, inner - column));
    }
  });
}

template <class Op, class T> int softmax_axis(const tpk_call* call, const Axis& axis) {
  const T* x = static_cast<const T*>(call->in[0].data);
  T* out = static_cast<T*>(call->out[0].data);
  along_axis(axis, kColumnTile, [&](int64_t start, int64_t width) {
    if (axis.inner == 1) Op::row(x + start, out + start, axis.size);
    else softmax_columns<Op>(x + start, out + start, axis.size, axis.inner, width);
  });
  return TPK_OK;
}

template <class Op> int softmax_forward(const tpk_call* call) {
  Axis axis;
  if (!find_axis(call->in[0], call->attr[0].i, axis)) return TPK_UNSUPPORTED;
  if (call->in[0].dtype != call->out[0].dtype) return TPK_UNSUPPORTED;
  if (call->in[0].dtype != TPK_F32 && call->in[0].dtype != TPK_F64) return TPK_UNSUPPORTED;
  if (call->in[0].numel == 0) return TPK_OK;
  return call->in[0].dtype == TPK_F32 ? softmax_axis<Op, float>(call, axis) : softmax_axis<Op, double>(call, axis);
}

int softmax(const tpk_call* call) { return softmax_forward<Softmax>(call); }
int log_softmax(const tpk_call* call) { return softmax_forward<LogSoftmax>(call); }

// total: what the row adds up to; result: the gradient from the gradient, the output and that total.
struct SoftmaxBackward {
  template <class V> static inline V term(V grad, V output) { return grad * output; }
  template <class T> static inline void row(const T* grad, const T* output, T* out, int64_t n) {
    T total = static_cast<T>(sum_terms<T>(n, [=](auto tag, int64_t j) {
      typedef decltype(tag) V;
      return load<V>(grad + j) * load<V>(output + j);
    }));
    each_vector<T>(n, [=](auto tag, int64_t j) {
      typedef decltype(tag) V;
      store(out + j, load<V>(output + j) * (load<V>(grad + j) - total));
    });
  }
  template <class T> static inline T result(T grad, T output, T total) { return output * (grad - total); }
};
struct LogSoftmaxBackward {
  template <class V> static inline V term(V grad, V) { return grad; }
  template <class T> static inline void row(const T* grad, const T* output, T* out, int64_t n) {
    T total = static_cast<T>(sum_row(grad, n));
    for (int64_t j = 0; j < n; j++) out[j] = grad[j] - exponential(output[j]) * total;
  }
  template <class T> static inline T result(T grad, T output, T total) { return grad - exponential(output) * total; }
};

template <class Op, class T>
void backward_columns(const T* grad, const T* output, T* out, int64_t size, int64_t stride, int64_t width) {
  double sum[kColumnTile] = {};
  T total[kColumnTile];
  for (int64_t r = 0; r < size; r++)
    for (int64_t j = 0; j < width; j++) sum[j] += Op::term(grad[r * stride + j], output[r * stride + j]);
  for (int64_t j = 0; j < width; j++) total[j] = static_cast<T>(sum[j]);
  for (int64_t r = 0; r < size; r++)
    for (int64_t j = 0; j < width; j++)
      out[r * stride + j] = Op::result(grad[r * stride + j], output[r * stride + j], total[j]);
}

template <class Op, class T> int backward_axis(const tpk_call* call, const Axis& axis) {
  const T *grad = static_cast<const T*>(call->in[0].data), *output = static_cast<const T*>(call->in[1].data);
  T* out = static_cast<T*>(call->out[0].data);
  along_axis(axis, kColumnTile, [&](int64_t start, int64_t width) {
    if (axis.inner == 1) Op::row(grad + start, output + start, out + start, axis.size);
    else backward_columns<Op>(grad + start, output + start, out + start, axis.size, axis.inner, width);
  });
  return TPK_OK;
}

template <class Op> int backward(const tpk_call* call) {
  Axis axis;
  const tpk_tensor &grad = call->in[0], &output = call->in[1];
  if (!find_axis(output, call->attr[0].i, axis) || grad.numel != output.numel) return TPK_UNSUPPORTED;
  if (grad.dtype != output.dtype || call->out[0].dtype != output.dtype) return TPK_UNSUPPORTED;
  if (output.dtype != TPK_F32 && output.dtype != TPK_F64) return TPK_UNSUPPORTED;
  if (output.numel == 0) return TPK_OK;
  return output.dtype == TPK_F32 ? backward_axis<Op, float>(call, axis) : backward_axis<Op, double>(call, axis);
}

int softmax_backward(const tpk_call* call) { return backward<SoftmaxBackward>(call); }
int log_softmax_backward(const tpk_call* call) { return backward<LogSoftmaxBackward>(call); }

int rope(const tpk_call* call) {
  const int dtype = call->in[0].dtype;
  for (int k = 0; k < 3; k++)
    if (call->in[k].dtype != dtype) return TPK_UNSUPPORTED;
  if (call->out[0].dtype != dtype || !rotary_shapes_fit(call)) return TPK_UNSUPPORTED;
  if (dtype == TPK_F32) return rotate_halves<float>(call);
  if (dtype == TPK_F64) return rotate_halves<double>(call);
  return TPK_UNSUPPORTED;
}

}  // namespace
}  // namespace TPK_ISA_NS

using namespace TPK_ISA_NS;
TPK_FAMILY(rows){
    {"softmax", softmax, TPK_CONTIGUOUS},
    {"log_softmax", log_softmax, TPK_CONTIGUOUS},
    {"softmax_backward", softmax_backward, TPK_CONTIGUOUS},
    {"log_softmax_backward", log_softmax_backward, TPK_CONTIGUOUS},
    {"rope", rope, 0},
    {nullptr, nullptr, 0},
};
