// What every kernel test needs: a check that counts and prints failures, random data, tensors and calls by name.
#pragma once
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tpk.h"

namespace check {

inline int failures = 0;

__attribute__((format(printf, 2, 3))) inline void that(bool holds, const char* format, ...) {
  if (holds) return;
  if (++failures > 20) return; // one broken kernel would print thousands
  va_list arguments;
  va_start(arguments, format);
  std::fprintf(stderr, "FAILED: ");
  std::vfprintf(stderr, format, arguments);
  std::fprintf(stderr, "\n");
  va_end(arguments);
}

inline int finish(const char* name) {
  std::fprintf(stderr, "%s: %s (%d failures)\n", name, failures ? "FAILED" : "ok", failures);
  return failures ? 1 : 0;
}

inline void use_test_blas() {
  if (const char* path = std::getenv("TPK_TEST_BLAS")) tpk_set_blas_path(path);
}

// Small deterministic generator: xorshift64*, uniform in [-1, 1).
struct Random {
  uint64_t state = 0x9e3779b97f4a7c15ull;
  uint64_t next() {
    state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
    return state * 0x2545f4914f6cdd1dull;
  }
  double uniform() { return double(next() >> 11) * (2.0 / 9007199254740992.0) - 1.0; }
};

template <class T>
inline std::vector<T> random_vector(size_t n, uint64_t seed) {
  Random random;
  random.state += seed * 0x9e3779b97f4a7c15ull;
  std::vector<T> values(n);
  for (T& value : values) value = T(random.uniform());
  return values;
}

// A tensor that owns its shape and strides; `data` stays the caller's.
struct Tensor {
  std::vector<int64_t> shape, strides;
  void* data = nullptr;
  int32_t dtype = TPK_F32;
  bool absent = false;

  static Tensor none() {
    Tensor t;
    t.absent = true;
    return t;
  }
  static Tensor dense(void* data, std::vector<int64_t> shape, int dtype) {
    Tensor t;
    t.data = data;
    t.dtype = dtype;
    t.shape = shape;
    t.strides.assign(shape.size(), 1);
    for (int i = int(shape.size()) - 2; i >= 0; i--) t.strides[i] = t.strides[i + 1] * shape[i + 1];
    return t;
  }
  static Tensor strided(void* data, std::vector<int64_t> shape, std::vector<int64_t> strides, int dtype) {
    Tensor t = dense(data, shape, dtype);
    t.strides = strides;
    return t;
  }
  tpk_tensor view() const {
    if (absent) return {nullptr, nullptr, nullptr, 0, -1, 0, 0, 0};
    int64_t numel = 1, expected = 1;
    for (int64_t size : shape) numel *= size;
    bool contiguous = true;
    for (int i = int(shape.size()) - 1; i >= 0; i--) {
      if (shape[i] != 1 && strides[i] != expected) contiguous = false;
      expected *= shape[i];
    }
    return {data, shape.data(), strides.data(), numel, int32_t(shape.size()), dtype, contiguous || numel <= 1, 0};
  }
};

inline tpk_attr none() { return {TPK_ATTR_NONE, 0, 0, 0, nullptr, nullptr}; }
inline tpk_attr integer(int64_t i) { return {TPK_ATTR_INT, 0, i, double(i), nullptr, nullptr}; }
inline tpk_attr boolean(bool b) { return {TPK_ATTR_BOOL, 0, b, double(b), nullptr, nullptr}; }
inline tpk_attr real(double d) { return {TPK_ATTR_FLOAT, 0, 0, d, nullptr, nullptr}; }
inline tpk_attr text(const char* s) { return {TPK_ATTR_TEXT, 0, 0, 0, nullptr, s}; }
inline tpk_attr integers(const std::vector<int64_t>& v) {
  return {TPK_ATTR_INTS, int32_t(v.size()), 0, 0, v.data(), nullptr};
}

// Calls a kernel by name; -1 when the table has none. The error text is left in `error_text`.
inline std::string error_text;
inline int call(const char* name, const std::vector<Tensor>& in, const std::vector<Tensor>& out,
                const std::vector<tpk_attr>& attributes = {}) {
  const tpk_entry* entry = tpk_find(name);
  if (!entry) return -1;
  std::vector<tpk_tensor> in_views, out_views;
  for (const Tensor& t : in) in_views.push_back(t.view());
  for (const Tensor& t : out) out_views.push_back(t.view());
  char error[256] = "";
  tpk_call c = {in_views.data(), out_views.data(), attributes.data(), int32_t(in.size()), int32_t(out.size()),
                int32_t(attributes.size()), error};
  int status = entry->fn(&c);
  error_text = error;
  return status;
}

}  // namespace check
