// sort (always stable) and topk along any dimension; NaN is the largest value.
#include "axes.h"
#include "dtype.h"
#include "parallel.h"
#include "sorting.h"

namespace TPK_ISA_NS {
namespace {

constexpr int64_t kSortWork = 4096;  // elements of a chunk
constexpr int64_t kKeyBlock = 256;   // keys made at once, before they meet the heap

struct Request {
  const tpk_call* call;
  Axis axis;
  int64_t kept;     // of each row: all of it, or k
  bool descending;
};

template <class T> using KeyOf = decltype(with_position(sort_key(T()), int64_t(0)));

// keys[i] for elements [begin, begin + n) of a row.
template <class T>
void make_keys(const T* row, int64_t stride, int64_t begin, int64_t n, bool descending, KeyOf<T>* keys) {
  const T* x = row + begin * stride;
  if (descending)
    for (int64_t i = 0; i < n; i++) keys[i] = with_position(~sort_key(x[i * stride]), begin + i);
  else
    for (int64_t i = 0; i < n; i++) keys[i] = with_position(sort_key(x[i * stride]), begin + i);
}

// keys[0..k) become the first k keys of the row in order; `spare` holds k keys.
template <class T> void select_keys(const T* row, const Request& r, KeyOf<T>* keys, KeyOf<T>* spare) {
  const int64_t n = r.axis.size, k = r.kept, stride = r.axis.inner;
  make_keys(row, stride, 0, k, r.descending, keys);
  make_heap_of(keys, k);
  KeyOf<T> block[kKeyBlock];
  for (int64_t begin = k; begin < n; begin += kKeyBlock) {
    const int64_t piece = smaller(kKeyBlock, n - begin);
    make_keys(row, stride, begin, piece, r.descending, block);
    for (int64_t i = 0; i < piece; i++)
      if (before(block[i], keys[0])) {
        keys[0] = block[i];
        sift_down(keys, k, 0);
      }
  }
  merge_sort(keys, spare, k);
}

template <class T> int order_rows(const Request& r) {
  typedef KeyOf<T> Key;
  const T* in = static_cast<const T*>(r.call->in[0].data);
  T* values = static_cast<T*>(r.call->out[0].data);
  int64_t* indices = static_cast<int64_t*>(r.call->out[1].data);
  const int64_t n = r.axis.size, inner = r.axis.inner, k = r.kept;
  const bool select = k <= n / 8;
  const int64_t room = select ? k : n;
  int failed = 0;
  parallel_for(r.axis.outer * inner, items_per_chunk(kSortWork, n), [&](int64_t begin, int64_t end) {
    Workspace<Key> keys(room), spare(room);
    if (!keys.data || !spare.data) {
      __atomic_store_n(&failed, 1, __ATOMIC_RELAXED);
      return;
    }
    for (int64_t task = begin; task < end; task++) {
      const T* row = in + task / inner * n * inner + task % inner;
      const int64_t to = task / inner * k * inner + task % inner;
      if (select) {
        select_keys(row, r, keys.data, spare.data);
      } else {
        make_keys(row, inner, 0, n, r.descending, keys.data);
        sort_keys(keys.data, spare.data, n);
      }
      for (int64_t i = 0; i < k; i++) {
        const int64_t position = position_of(keys.data[i]);
        values[to + i * inner] = row[position * inner];
        indices[to + i * inner] = position;
      }
    }
  });
  return failed ? fail(r.call, "out of memory") : TPK_OK;
}

#define ORDER_CASE(code, type, unused) case code: return order_rows<type>(request);

int order(const Request& request) {
  const tpk_tensor &in = request.call->in[0], *out = request.call->out;
  if (out[0].dtype != in.dtype || out[1].dtype != TPK_I64) return TPK_UNSUPPORTED;
  if (request.kept < 0 || request.kept > request.axis.size || request.axis.size > UINT32_MAX) return TPK_UNSUPPORTED;
  if (request.axis.outer * request.axis.inner * request.kept == 0) return TPK_OK;
  switch (in.dtype) {
    TPK_FLOATS(ORDER_CASE, ) TPK_INTS(ORDER_CASE, ) TPK_SMALL_INTS(ORDER_CASE, ) ORDER_CASE(TPK_BOOL, Bool, )
  }
  return TPK_UNSUPPORTED;
}

// attr: dim, descending, stable
int sort(const tpk_call* call) {
  Request request = {call, {}, 0, call->attr[1].i != 0};
  if (!find_axis(call->in[0], call->attr[0].i, request.axis)) return TPK_UNSUPPORTED;
  request.kept = request.axis.size;
  return order(request);
}

// attr: k, dim, largest, sorted
int topk(const tpk_call* call) {
  Request request = {call, {}, call->attr[0].i, call->attr[2].i != 0};
  if (!find_axis(call->in[0], call->attr[1].i, request.axis)) return TPK_UNSUPPORTED;
  return order(request);
}

}  // namespace
}  // namespace TPK_ISA_NS

using namespace TPK_ISA_NS;
TPK_FAMILY(order){{"sort", sort, TPK_CONTIGUOUS}, {"topk", topk, TPK_CONTIGUOUS}, {nullptr, nullptr, 0}};
