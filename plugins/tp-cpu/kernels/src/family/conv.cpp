// conv and its two gradients: the library for float32 where it can, im2col and the GEMM seam for the rest.
#include "convolution.h"

#include <cstdio>
#include <cstring>

#include "matrix.h"

namespace TPK_ISA_NS {
namespace {

// Missing spatial dimensions come first, with size 1. False: more than three, or lists of the wrong length.
bool describe(const int64_t* input, const int64_t* weight, const int64_t* out, int ndim, const tpk_attr* attr,
              tpk_convolution* c) {
  const int spatial = ndim - 2, skip = 3 - spatial;
  if (spatial < 1 || spatial > 3 || attr[0].n != spatial || attr[1].n != spatial || attr[2].n != spatial) return false;
  c->groups = attr[3].i;
  c->batch = input[0], c->in_channels = input[1], c->out_channels = out[1];
  if (c->groups < 1 || c->in_channels % c->groups || c->out_channels % c->groups) return false;
  for (int d = 0; d < 3; d++) {
    const bool real = d >= skip;
    const int s = d - skip;
    c->in[d] = real ? input[2 + s] : 1, c->kernel[d] = real ? weight[2 + s] : 1, c->out[d] = real ? out[2 + s] : 1;
    c->stride[d] = real ? attr[0].list[s] : 1, c->padding[d] = real ? attr[1].list[s] : 0;
    c->dilation[d] = real ? attr[2].list[s] : 1;
  }
  return true;
}

struct Sizes {
  int64_t in, kernel, out, group_in, group_out;
  explicit Sizes(const tpk_convolution& c)
      : in(c.in[0] * c.in[1] * c.in[2]), kernel(c.kernel[0] * c.kernel[1] * c.kernel[2]),
        out(c.out[0] * c.out[1] * c.out[2]), group_in(c.in_channels / c.groups), group_out(c.out_channels / c.groups) {}
  int64_t column_rows() const { return group_in * kernel; }
};

// visit(row of the columns, first column, first element of the channel or -1, step, first and last column inside) for
// every line of output positions along the last axis.
template <class Visit> void each_line(const tpk_convolution& c, const Sizes& s, const Visit& visit) {
  for (int64_t row = 0; row < s.column_rows(); row++) {
    const int64_t tap = row % s.kernel, kx = tap % c.kernel[2], ky = tap / c.kernel[2] % c.kernel[1];
    const int64_t kz = tap / (c.kernel[2] * c.kernel[1]), channel = row / s.kernel;
    const int64_t shift = kx * c.dilation[2] - c.padding[2]; // x = column * stride + shift
    const int64_t begin = shift >= 0 ? 0 : ceil_div(-shift, c.stride[2]);
    const int64_t end = c.in[2] - shift <= 0 ? 0 : smaller(c.out[2], ceil_div(c.in[2] - shift, c.stride[2]));
    for (int64_t oz = 0; oz < c.out[0]; oz++)
      for (int64_t oy = 0; oy < c.out[1]; oy++) {
        const int64_t z = oz * c.stride[0] - c.padding[0] + kz * c.dilation[0];
        const int64_t y = oy * c.stride[1] - c.padding[1] + ky * c.dilation[1];
        const bool inside = z >= 0 && z < c.in[0] && y >= 0 && y < c.in[1] && begin < end;
        const int64_t source = channel * s.in + (z * c.in[1] + y) * c.in[2] + shift;
        visit(row * s.out + (oz * c.out[1] + oy) * c.out[2], source, inside ? begin : 0, inside ? end : 0);
      }
  }
}

template <class T> void image_to_columns(const tpk_convolution& c, const Sizes& s, const T* image, T* columns) {
  each_line(c, s, [&](int64_t line, int64_t source, int64_t begin, int64_t end) {
    for (int64_t x = 0; x < begin; x++) columns[line + x] = 0;
    for (int64_t x = begin; x < end; x++) columns[line + x] = image[source + x * c.stride[2]];
    for (int64_t x = end; x < c.out[2]; x++) columns[line + x] = 0;
  });
}

template <class T> void add_columns_to_image(const tpk_convolution& c, const Sizes& s, const T* columns, T* image) {
  each_line(c, s, [&](int64_t line, int64_t source, int64_t begin, int64_t end) {
    for (int64_t x = begin; x < end; x++) image[source + x * c.stride[2]] += columns[line + x];
  });
}

// body(image number, group, columns) over the batch, each chunk with columns of its own. 1 when memory ran out.
template <class T, class Body> int each_image(const tpk_convolution& c, const Sizes& s, const Body& body) {
  int failed = 0;
  const int64_t work = s.group_out * s.column_rows() * s.out;
  parallel_for(c.batch * c.groups, items_per_chunk(1000000, work), [&](int64_t begin, int64_t end) {
    Workspace<T> columns(s.column_rows() * s.out);
    bool good = columns.data != nullptr;
    for (int64_t i = begin; i < end && good; i++) good = body(i / c.groups, i % c.groups, columns.data) == 0;
    if (!good) __atomic_store_n(&failed, 1, __ATOMIC_RELAXED);
  });
  return failed;
}

template <class T>
int forward(const tpk_convolution& c, const T* input, const T* weight, const T* bias, T* out) {
  const Sizes s(c);
  const int64_t rows = s.column_rows();
  return each_image<T>(c, s, [&](int64_t n, int64_t g, T* columns) {
    image_to_columns(c, s, input + (n * c.in_channels + g * s.group_in) * s.in, columns);
    T* target = out + (n * c.out_channels + g * s.group_out) * s.out;
    for (int64_t o = 0; bias && o < s.group_out; o++)
      for (int64_t p = 0; p < s.out; p++) target[o * s.out + p] = bias[g * s.group_out + o];
    return seam(0, 0, s.group_out, s.out, rows, weight + g * s.group_out * rows, rows, columns, s.out, T(bias ? 1 : 0),
                target, s.out);
  });
}

template <class T> int backward_input(const tpk_convolution& c, const T* grad, const T* weight, T* dinput) {
  const Sizes s(c);
  const int64_t rows = s.column_rows();
  return each_image<T>(c, s, [&](int64_t n, int64_t g, T* columns) {
    T* target = dinput + (n * c.in_channels + g * s.group_in) * s.in;
    memset(target, 0, sizeof(T) * size_t(s.group_in * s.in));
    const int status = seam(1, 0, rows, s.out, s.group_out, weight + g * s.group_out * rows, rows,
                            grad + (n * c.out_channels + g * s.group_out) * s.out, s.out, T(0), columns, s.out);
    if (!status) add_columns_to_image(c, s, columns, target);
    return status;
  });
}

// Image after image into the same sum; the products split themselves over the pool.
template <class T> int backward_weight(const tpk_convolution& c, const T* grad, const T* input, T* dweight) {
  const Sizes s(c);
  const int64_t rows = s.column_rows();
  Workspace<T> columns(rows * s.out);
  if (!columns.data) return 1;
  if (!c.batch) memset(dweight, 0, sizeof(T) * size_t(c.out_channels * rows));
  for (int64_t n = 0; n < c.batch; n++)
    for (int64_t g = 0; g < c.groups; g++) {
      image_to_columns(c, s, input + (n * c.in_channels + g * s.group_in) * s.in, columns.data);
      if (seam(0, 1, s.group_out, rows, s.out, grad + (n * c.out_channels + g * s.group_out) * s.out, s.out,
               columns.data, s.out, T(n ? 1 : 0), dweight + g * s.group_out * rows, rows))
        return 1;
    }
  return 0;
}

bool library(const tpk_convolution& c, const float* x, const float* w, const float* bias, float* out) {
  return tpk_library_conv(c, x, w, bias, out);
}
bool library(const tpk_convolution&, const double*, const double*, const double*, double*) { return false; }
bool library_input(const tpk_convolution& c, const float* grad, const float* w, float* dx) {
  return tpk_library_conv_backward_input(c, grad, w, dx);
}
bool library_input(const tpk_convolution&, const double*, const double*, double*) { return false; }
bool library_weight(const tpk_convolution& c, const float* grad, const float* x, float* dw) {
  return tpk_library_conv_backward_weight(c, grad, x, dw);
}
bool library_weight(const tpk_convolution&, const double*, const double*, double*) { return false; }

template <class T> const T* data(const tpk_tensor& t) { return t.ndim < 0 ? nullptr : static_cast<const T*>(t.data); }

int finish(const tpk_call* call, int failed) {
  if (!failed) return TPK_OK;
  snprintf(call->error, 256, "conv: out of memory for the work space");
  return TPK_ERROR;
}

bool empty(const tpk_convolution& c) {
  const Sizes s(c);
  return !c.batch || !c.in_channels || !c.out_channels || !s.in || !s.out || !s.kernel;
}

template <class T> int conv_of(const tpk_call* call, const tpk_convolution& c) {
  const T *x = data<T>(call->in[0]), *w = data<T>(call->in[1]), *bias = data<T>(call->in[2]);
  T* out = static_cast<T*>(call->out[0].data);
  if (!empty(c) && library(c, x, w, bias, out)) return TPK_OK;
  return finish(call, forward(c, x, w, bias, out));
}

template <class T> int backward_input_of(const tpk_call* call, const tpk_convolution& c) {
  const T *grad = data<T>(call->in[0]), *w = data<T>(call->in[1]);
  T* dx = static_cast<T*>(call->out[0].data);
  if (!empty(c) && library_input(c, grad, w, dx)) return TPK_OK;
  return finish(call, backward_input(c, grad, w, dx));
}

template <class T> int backward_weight_of(const tpk_call* call, const tpk_convolution& c) {
  const T *grad = data<T>(call->in[0]), *x = data<T>(call->in[1]);
  T* dw = static_cast<T*>(call->out[0].data);
  if (!empty(c) && library_weight(c, grad, x, dw)) return TPK_OK;
  return finish(call, backward_weight(c, grad, x, dw));
}

bool one_dtype(const tpk_call* call) {
  for (int i = 0; i < call->n_in; i++)
    if (call->in[i].ndim >= 0 && (call->in[i].dtype != call->out[0].dtype || !call->in[i].contiguous)) return false;
  return true;
}

#define TPK_BY_DTYPE(function) \
  call->out[0].dtype == TPK_F32 ? function<float>(call, c) : call->out[0].dtype == TPK_F64 ? function<double>(call, c) \
                                                                                          : TPK_UNSUPPORTED

int conv(const tpk_call* call) {
  const tpk_tensor &x = call->in[0], &w = call->in[1], &out = call->out[0];
  tpk_convolution c;
  if (!one_dtype(call) || w.ndim != x.ndim || out.ndim != x.ndim) return TPK_UNSUPPORTED;
  if (!describe(x.shape, w.shape, out.shape, x.ndim, call->attr, &c)) return TPK_UNSUPPORTED;
  return TPK_BY_DTYPE(conv_of);
}

int conv_backward_input(const tpk_call* call) {
  const tpk_tensor &grad = call->in[0], &w = call->in[1], &dx = call->out[0];
  tpk_convolution c;
  if (!one_dtype(call) || w.ndim != grad.ndim || dx.ndim != grad.ndim) return TPK_UNSUPPORTED;
  if (!describe(dx.shape, w.shape, grad.shape, grad.ndim, call->attr + 1, &c)) return TPK_UNSUPPORTED;
  return TPK_BY_DTYPE(backward_input_of);
}

int conv_backward_weight(const tpk_call* call) {
  const tpk_tensor &grad = call->in[0], &x = call->in[1], &dw = call->out[0];
  tpk_convolution c;
  if (!one_dtype(call) || x.ndim != grad.ndim || dw.ndim != grad.ndim) return TPK_UNSUPPORTED;
  if (!describe(x.shape, dw.shape, grad.shape, grad.ndim, call->attr + 1, &c)) return TPK_UNSUPPORTED;
  return TPK_BY_DTYPE(backward_weight_of);
}

}  // namespace
}  // namespace TPK_ISA_NS

TPK_FAMILY(conv){
    {"conv", TPK_ISA_NS::conv, TPK_CONTIGUOUS},
    {"conv_backward_input", TPK_ISA_NS::conv_backward_input, TPK_CONTIGUOUS},
    {"conv_backward_weight", TPK_ISA_NS::conv_backward_weight, TPK_CONTIGUOUS},
    {nullptr, nullptr, 0}};
