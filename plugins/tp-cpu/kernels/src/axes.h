// The dimensions an operator works along, from its attributes.
#pragma once
#include <cstdarg>
#include <cstdio>

#include "isa.h"

namespace TPK_ISA_NS {

// TPK_ERROR with a text for the caller.
__attribute__((format(printf, 2, 3))) static inline int fail(const tpk_call* call, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (call->error) vsnprintf(call->error, 256, format, arguments);
  va_end(arguments);
  return TPK_ERROR;
}

static inline bool is_none(const tpk_attr& attr) { return attr.kind == TPK_ATTR_NONE; }

// A contiguous tensor seen as [outer, size, inner] around one dimension.
struct Axis { int64_t outer, size, inner; };

// False: the dimension does not exist. A 0-d tensor has one dimension of size 1.
static inline bool find_axis(const tpk_tensor& t, int64_t dim, Axis& axis, int* position = nullptr) {
  int ndim = t.ndim > 0 ? t.ndim : 1;
  if (dim < 0) dim += ndim;
  if (dim < 0 || dim >= ndim) return false;
  if (position) *position = static_cast<int>(dim);
  axis = {1, t.ndim > 0 ? t.shape[dim] : 1, 1};
  for (int d = 0; d < t.ndim; d++) {
    if (d < dim) axis.outer *= t.shape[d];
    if (d > dim) axis.inner *= t.shape[d];
  }
  return true;
}

constexpr int kMaxReducedDims = 64;

// Neighbouring dimensions that are both reduced or both kept, merged; dimensions of size 1 are left out.
struct Groups {
  int count = 0;
  int64_t size[kMaxReducedDims];
  bool reduced[kMaxReducedDims];
  int64_t outputs = 1, inputs_per_output = 1;
};

// `dims`: NONE or an empty list (all dimensions), an int, or a list of ints.
static inline bool find_groups(const tpk_tensor& t, const tpk_attr& dims, Groups& groups) {
  if (t.ndim > kMaxReducedDims) return false;
  const int64_t* list = dims.kind == TPK_ATTR_INTS ? dims.list : &dims.i;
  int n = dims.kind == TPK_ATTR_INTS ? dims.n : is_none(dims) ? 0 : 1;
  uint64_t mask = n == 0 ? ~uint64_t(0) : 0;
  for (int i = 0; i < n; i++) {
    int64_t dim = list[i] < 0 ? list[i] + t.ndim : list[i];
    if (t.ndim == 0 && (list[i] == 0 || list[i] == -1)) continue;
    if (dim < 0 || dim >= t.ndim) return false;
    mask |= uint64_t(1) << dim;
  }
  for (int d = 0; d < t.ndim; d++) {
    if (t.shape[d] == 1) continue;
    bool reduced = mask >> d & 1;
    (reduced ? groups.inputs_per_output : groups.outputs) *= t.shape[d];
    if (groups.count > 0 && groups.reduced[groups.count - 1] == reduced) {
      groups.size[groups.count - 1] *= t.shape[d];
      continue;
    }
    groups.size[groups.count] = t.shape[d];
    groups.reduced[groups.count++] = reduced;
  }
  return true;
}

}  // namespace TPK_ISA_NS
