// The functions of oneDNN that are used, as pointers found at run time; types come from its headers.
#pragma once
#include <oneapi/dnnl/dnnl.h>

#include <csignal>
#include <type_traits>

#define TPK_ONEDNN_FUNCTIONS(X) \
  X(version) X(sgemm) X(engine_create) X(stream_create) X(stream_destroy) \
  X(memory_desc_create_with_tag) X(memory_desc_destroy) X(memory_desc_equal) \
  X(memory_desc_get_size) X(memory_create) X(memory_destroy) \
  X(primitive_attr_create) X(primitive_attr_destroy) X(primitive_attr_set_scratchpad_mode) \
  X(convolution_forward_primitive_desc_create) X(convolution_backward_data_primitive_desc_create) \
  X(convolution_backward_weights_primitive_desc_create) X(reorder_primitive_desc_create) \
  X(primitive_desc_query_md) X(primitive_desc_destroy) X(primitive_create) X(primitive_destroy) X(primitive_execute)

struct OneDnn {
#define TPK_DECLARE(name) decltype(&dnnl_##name) name;
  TPK_ONEDNN_FUNCTIONS(TPK_DECLARE)
#undef TPK_DECLARE
  int (*get_threads)();
  void (*set_threads)(int);
};

const OneDnn* tpk_onednn(); // NULL when the library is not there

// While it lives, the library uses the calling thread only and no signal handler runs on it: the generated sgemm code of
// oneDNN 3.2 keeps data below the stack pointer, where a handler's frame overwrites it (then sgemm frees or writes through
// a wrong pointer). Signals that arrive meanwhile are delivered afterwards. Restores what the program had set.
struct OneThread {
  explicit OneThread(const OneDnn* library);
  ~OneThread();
  const OneDnn* library;
  int before;
  sigset_t signals;
};
