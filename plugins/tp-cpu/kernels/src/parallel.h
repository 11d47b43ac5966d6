// tpk_parallel for a lambda, and work memory that is given back at the end of the scope.
#pragma once
#include "isa.h"

namespace TPK_ISA_NS {

// body(begin, end)
template <class Body> static inline void parallel_for(int64_t n, int64_t grain, const Body& body) {
  tpk_parallel(n, grain, [](void* context, int64_t begin, int64_t end) {
    (*static_cast<const Body*>(context))(begin, end);
  }, const_cast<Body*>(&body));
}

static inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

// How many items of `elements` elements each make a chunk of about `work` elements.
static inline int64_t items_per_chunk(int64_t work, int64_t elements) {
  return larger(1, work / larger(1, elements));
}

// Uninitialised elements from the caching allocator; `data` is NULL when there is no memory.
template <class T> struct Workspace {
  T* data;
  size_t nbytes;
  explicit Workspace(int64_t count) : nbytes(static_cast<size_t>(larger(1, count)) * sizeof(T)) {
    data = static_cast<T*>(tpk_alloc(nbytes));
  }
  ~Workspace() { if (data) tpk_free(data, nbytes); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
};

}  // namespace TPK_ISA_NS
