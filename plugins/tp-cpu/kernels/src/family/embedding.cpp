// embedding (any dtype) and its backward, whose sums are formed in the order of the indices.
#include "axes.h"
#include "dtype.h"
#include "indices.h"
#include "parallel.h"
#include "vec.h"

namespace TPK_ISA_NS {
namespace {

constexpr int64_t kEmbeddingBytes = 131072;  // bytes of a chunk
constexpr int64_t kShares = 16;              // most parts of the table in the backward
constexpr int64_t kShareWork = 65536;        // least gradient elements for each

int check_indices(const tpk_call* call, const int64_t* index, int64_t n, int64_t rows) {
  const int64_t at = first_outside(index, 1, n, rows);
  if (at < 0) return TPK_OK;
  return fail(call, "embedding: index %lld at position %lld is outside 0..%lld (the table has %lld rows)",
              static_cast<long long>(index[at]), static_cast<long long>(at), static_cast<long long>(rows - 1),
              static_cast<long long>(rows));
}

int embedding(const tpk_call* call) {
  const tpk_tensor &weight = call->in[0], &indices = call->in[1];
  if (weight.ndim != 2 || indices.dtype != TPK_I64 || call->out[0].dtype != weight.dtype) return TPK_UNSUPPORTED;
  const int64_t* index = static_cast<const int64_t*>(indices.data);
  if (int status = check_indices(call, index, indices.numel, weight.shape[0])) return status;
  const int64_t bytes = weight.shape[1] * itemsize(weight.dtype);
  const char* table = static_cast<const char*>(weight.data);
  char* out = static_cast<char*>(call->out[0].data);
  if (bytes == 0) return TPK_OK;
  parallel_for(indices.numel, items_per_chunk(kEmbeddingBytes, bytes), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) memcpy(out + i * bytes, table + index[i] * bytes, static_cast<size_t>(bytes));
  });
  return TPK_OK;
}

// Every share of the table's rows goes through all indices: no two write to one row, and the order does not change.
template <class T>
int embedding_gradient(const tpk_call* call, const int64_t* index, int64_t n, int64_t rows, int64_t padding) {
  const int64_t width = call->out[0].shape[1];
  const T* grad = static_cast<const T*>(call->in[0].data);
  T* out = static_cast<T*>(call->out[0].data);
  const int64_t shares = larger(1, smaller(smaller(kShares, rows), n * width / kShareWork));
  const int64_t share = ceil_div(rows, shares);
  parallel_for(shares, 1, [&](int64_t begin, int64_t end) {
    const int64_t low = smaller(rows, begin * share), high = smaller(rows, end * share);
    memset(out + low * width, 0, static_cast<size_t>((high - low) * width) * sizeof(T));
    for (int64_t i = 0; i < n; i++) {
      if (index[i] < low || index[i] >= high || index[i] == padding) continue;
      const T* from = grad + i * width;
      T* to = out + index[i] * width;
      each_vector<T>(width, [=](auto tag, int64_t j) {
        typedef decltype(tag) V;
        store(to + j, load<V>(to + j) + load<V>(from + j));
      });
    }
  });
  return TPK_OK;
}

// attr: num_embeddings, padding_idx
int embedding_backward(const tpk_call* call) {
  const tpk_tensor &grad = call->in[0], &indices = call->in[1], &out = call->out[0];
  if (indices.dtype != TPK_I64 || out.ndim != 2 || grad.dtype != out.dtype) return TPK_UNSUPPORTED;
  if (grad.dtype != TPK_F32 && grad.dtype != TPK_F64) return TPK_UNSUPPORTED;
  const int64_t rows = out.shape[0];
  if (grad.numel != indices.numel * out.shape[1]) return TPK_UNSUPPORTED;
  const int64_t* index = static_cast<const int64_t*>(indices.data);
  if (int status = check_indices(call, index, indices.numel, rows)) return status;
  int64_t padding = is_none(call->attr[1]) ? -1 : call->attr[1].i;
  if (padding < 0 && !is_none(call->attr[1])) padding += rows;
  if (out.numel == 0) return TPK_OK;
  return grad.dtype == TPK_F32 ? embedding_gradient<float>(call, index, indices.numel, rows, padding)
                               : embedding_gradient<double>(call, index, indices.numel, rows, padding);
}

}  // namespace
}  // namespace TPK_ISA_NS

using namespace TPK_ISA_NS;
TPK_FAMILY(embedding){
    {"embedding", embedding, TPK_CONTIGUOUS},
    {"embedding_backward", embedding_backward, TPK_CONTIGUOUS},
    {nullptr, nullptr, 0},
};
