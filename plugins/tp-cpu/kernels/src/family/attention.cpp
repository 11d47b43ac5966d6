// scaled_dot_product_forward and _backward for float32 and float64.
#include "attention_few.h"

#include <cstdio>
#include <cstring>

namespace TPK_ISA_NS {
namespace {

constexpr int64_t kTaskFlops = 2000000; // what a chunk of the pool should at least cost
constexpr int64_t kFewQueries = 8;      // up to here a block of 32 lanes is mostly empty
constexpr int64_t kWantedTasks = 8;     // backward: keys are cut in parts until there are so many tasks
constexpr int64_t kSmallestPart = 256;  // but not in parts smaller than this

template <class T> struct Running { // softmax so far, per lane
  alignas(64) T peak[kQueries], total[kQueries], fade[kQueries];
};

// Turns the scores of `count` keys into weights relative to the new peak; `fade` is what earlier weights shrink by.
template <class T> void update(Running<T>* running, int64_t count, T* __restrict s) {
  alignas(64) T peak[kQueries], shift[kQueries], total[kQueries];
  for (int i = 0; i < kQueries; i++) peak[i] = running->peak[i];
  for (int64_t j = 0; j < count; j++)
    for (int i = 0; i < kQueries; i++) peak[i] = s[j * kQueries + i] > peak[i] ? s[j * kQueries + i] : peak[i];
  for (int i = 0; i < kQueries; i++) {
    shift[i] = peak[i] == -T(__builtin_inf()) ? T(0) : peak[i]; // nothing visible yet: weights are exp2(-inf) = 0
    running->fade[i] = power_of_two(running->peak[i] - shift[i]);
    running->peak[i] = peak[i];
    total[i] = running->total[i] * running->fade[i];
  }
  for (int64_t j = 0; j < count; j++)
    for (int i = 0; i < kQueries; i++) {
      const T weight = power_of_two(s[j * kQueries + i] - shift[i]);
      s[j * kQueries + i] = weight;
      total[i] += weight;
    }
  for (int i = 0; i < kQueries; i++) running->total[i] = total[i];
}

template <class T>
void forward_block(const Attention<T>& a, const Block<T>& block, T* packed, T* s, T* sum, const Heads<T>& out, T* lse) {
  Running<T> running;
  for (int i = 0; i < kQueries; i++) running.peak[i] = -T(__builtin_inf()), running.total[i] = 0;
  memset(sum, 0, sizeof(T) * size_t(a.width * kQueries));
  pack_lanes(block, a.query, a.depth, T(a.scale * kLog2E), packed);
  for (int64_t first = 0; first <= block.farthest; first += kKeys) {
    const int64_t count = smaller(kKeys, block.farthest + 1 - first);
    score_block(a, block, packed, first, count, s);
    update(&running, count, s);
    if (first)
      for (int64_t e = 0; e < a.width; e++)
        for (int i = 0; i < kQueries; i++) sum[e * kQueries + i] *= running.fade[i];
    multiply_lanes<T, 1, 0, true>(a.width, count, a.value.at(block.batch, block.key_head, first), 1, a.value.row, s,
                                  sum);
  }
  T inverse[kQueries];
  for (int i = 0; i < kQueries; i++) inverse[i] = running.total[i] == T(0) ? T(0) : T(1) / running.total[i];
  unpack_lanes(block, out, a.width, inverse, sum);
  for (int i = 0; i < block.live; i++)
    lse[(block.batch * a.heads + block.head[i]) * a.queries + block.position[i]] =
        running.total[i] == T(0) ? -T(__builtin_inf())
                                 : T((double(running.peak[i]) + log2(double(running.total[i]))) * kLn2);
}

template <class T> int forward_few(const Attention<T>& a, const Heads<T>& out, T* lse) {
  int failed = 0;
  const int64_t work = a.rows() * a.keys * (a.depth + a.width); // bound by memory: fewer operations in the same time
  parallel_for(a.batches * a.key_heads, items_per_chunk(kTaskFlops / 8, work), [&](int64_t begin, int64_t end) {
    Workspace<T> scores(kFewRows * a.keys);
    if (!scores.data) {
      __atomic_store_n(&failed, 1, __ATOMIC_RELAXED);
      return;
    }
    for (int64_t i = begin; i < end; i++) few_rows(a, i / a.key_heads, i % a.key_heads, scores.data, out, lse);
  });
  return failed;
}

template <class T> int forward(const Attention<T>& a, const tpk_call* call) {
  const Heads<T> out = {static_cast<T*>(call->out[0].data), a.heads * a.queries * a.width, a.queries * a.width,
                        a.width};
  T* lse = static_cast<T*>(call->out[1].data);
  if (a.rows() <= kFewQueries) return forward_few(a, out, lse);
  const int64_t blocks = a.row_blocks();
  const int64_t flops = 2 * kQueries * a.keys * (a.depth + a.width);
  int failed = 0;
  parallel_for(a.batches * a.key_heads * blocks, items_per_chunk(kTaskFlops, flops), [&](int64_t begin, int64_t end) {
    Workspace<T> scratch(kQueries * (a.depth + a.width + kKeys));
    if (!scratch.data) {
      __atomic_store_n(&failed, 1, __ATOMIC_RELAXED);
      return;
    }
    T* s = scratch.data;
    T* packed = s + kKeys * kQueries;
    Block<T> block;
    for (int64_t i = begin; i < end; i++) {
      const int64_t head = i / blocks;
      block.set(a, head / a.key_heads, head % a.key_heads, i % blocks * kQueries);
      forward_block(a, block, packed, s, packed + a.depth * kQueries, out, lse);
    }
  });
  return failed;
}

// What one task of the backward pass works in; all blocks are multiples of 64 bytes.
template <class T> struct BackwardScratch {
  T *weights, *slopes, *query_lanes, *query_rows, *grad_lanes, *grad_rows, *dquery;
  static int64_t elements(int64_t d, int64_t e, int64_t dp, int64_t ep) {
    return kQueries * (2 * kKeys + 2 * d + dp + e + ep);
  }
  BackwardScratch(T* p, int64_t d, int64_t e, int64_t dp, int64_t ep) {
    weights = p, p += kKeys * kQueries;
    slopes = p, p += kKeys * kQueries;
    query_lanes = p, p += d * kQueries;
    dquery = p, p += d * kQueries;
    query_rows = p, p += dp * kQueries;
    grad_lanes = p, p += e * kQueries;
    grad_rows = p;
    (void)ep;
  }
};

template <class T> struct Backward {
  Attention<T> a;
  Heads<const T> grad, out;
  const T* lse;
  Heads<T> dquery;
  T *dkey, *dvalue;  // dense outputs
  T* dquery_parts;   // dense [parts - 1][batch, head, query, depth]
  int64_t parts, part_keys, depth_padded, width_padded;
};

template <class T> int64_t padded(int64_t columns) { return ceil_div(columns, lanes_of<T>()) * lanes_of<T>(); }

template <class T>
void pack_rows(const Block<T>& block, const Heads<const T>& source, int64_t columns, int64_t stride, T* out) {
  memset(out, 0, sizeof(T) * size_t(kQueries * stride));
  for (int i = 0; i < block.live; i++)
    memcpy(out + i * stride, source.at(block.batch, block.head[i], block.position[i]), sizeof(T) * size_t(columns));
}

// Per lane: logsumexp in powers of two (inf: no weight at all), and the sum of grad * out.
template <class T> void lane_terms(const Backward<T>& p, const Block<T>& block, T* shift, T* delta) {
  for (int i = 0; i < kQueries; i++) {
    shift[i] = T(__builtin_inf()), delta[i] = 0;
    if (i >= block.live) continue;
    const T lse = p.lse[(block.batch * p.a.heads + block.head[i]) * p.a.queries + block.position[i]];
    if (lse != -T(__builtin_inf())) shift[i] = T(double(lse) * kLog2E);
    const T* grad = p.grad.at(block.batch, block.head[i], block.position[i]);
    const T* out = p.out.at(block.batch, block.head[i], block.position[i]);
    delta[i] = T(sum_terms<T>(p.a.width, [=](auto tag, int64_t j) {
      return load<decltype(tag)>(grad + j) * load<decltype(tag)>(out + j);
    }));
  }
}

// One block of queries against keys [begin, end); dk and dv start at key `begin`.
template <class T>
void backward_block(const Backward<T>& p, const Block<T>& block, BackwardScratch<T>& w, int64_t begin, int64_t end,
                    T* dk, T* dv) {
  const Attention<T>& a = p.a;
  alignas(64) T shift[kQueries], delta[kQueries];
  const T scale = T(a.scale);
  pack_lanes(block, a.query, a.depth, T(a.scale * kLog2E), w.query_lanes);
  pack_lanes(block, p.grad, a.width, T(1), w.grad_lanes);
  pack_rows(block, a.query, a.depth, p.depth_padded, w.query_rows);
  pack_rows(block, p.grad, a.width, p.width_padded, w.grad_rows);
  lane_terms(p, block, shift, delta);
  for (int64_t first = begin; first < end; first += kKeys) {
    const int64_t count = smaller(kKeys, end - first);
    score_block(a, block, w.query_lanes, first, count, w.weights);
    multiply_lanes<T, 0, 1, false>(count, a.width, a.value.at(block.batch, block.key_head, first), a.value.row, 1,
                                   w.grad_lanes, w.slopes);
    for (int64_t j = 0; j < count; j++) {
      T* __restrict weight = w.weights + j * kQueries;
      T* __restrict slope = w.slopes + j * kQueries;
      for (int i = 0; i < kQueries; i++) {
        weight[i] = power_of_two(weight[i] - shift[i]);
        slope[i] = weight[i] * (slope[i] - delta[i]) * scale;
      }
    }
    fold_queries(count, w.weights, w.grad_rows, p.width_padded, dv + (first - begin) * p.width_padded);
    fold_queries(count, w.slopes, w.query_rows, p.depth_padded, dk + (first - begin) * p.depth_padded);
    multiply_lanes<T, 1, 0, true>(a.depth, count, a.key.at(block.batch, block.key_head, first), 1, a.key.row, w.slopes,
                                  w.dquery);
  }
}

template <class T> struct Accumulator { // rows padded to whole vectors: the output itself when it has such rows
  Workspace<T> own;
  T* target;
  T* rows;
  int64_t count, columns, stride;
  Accumulator(T* target, int64_t count, int64_t columns)
      : own(padded<T>(columns) == columns ? 0 : count * padded<T>(columns)), target(target), count(count),
        columns(columns), stride(padded<T>(columns)) {
    rows = stride == columns ? target : own.data;
    if (rows) memset(rows, 0, sizeof(T) * size_t(count * stride));
  }
  void finish() {
    if (rows == target) return;
    for (int64_t i = 0; i < count; i++) memcpy(target + i * columns, rows + i * stride, sizeof(T) * size_t(columns));
  }
};

// All queries that share a head of keys, against one part of those keys.
template <class T> bool backward_task(const Backward<T>& p, int64_t head, int64_t part) {
  const Attention<T>& a = p.a;
  const int64_t begin = part * p.part_keys, end = smaller(a.keys, begin + p.part_keys);
  Accumulator<T> dk(p.dkey + (head * a.keys + begin) * a.depth, end - begin, a.depth);
  Accumulator<T> dv(p.dvalue + (head * a.keys + begin) * a.width, end - begin, a.width);
  Workspace<T> memory(BackwardScratch<T>::elements(a.depth, a.width, p.depth_padded, p.width_padded));
  if (!dk.rows || !dv.rows || !memory.data) return false;
  BackwardScratch<T> scratch(memory.data, a.depth, a.width, p.depth_padded, p.width_padded);
  Heads<T> dquery = p.dquery;
  if (part) dquery.data = p.dquery_parts + (part - 1) * a.batches * a.heads * a.queries * a.depth;
  T ones[kQueries];
  for (int i = 0; i < kQueries; i++) ones[i] = 1;
  Block<T> block;
  for (int64_t first = 0; first < a.rows(); first += kQueries) {
    block.set(a, head / a.key_heads, head % a.key_heads, first);
    memset(scratch.dquery, 0, sizeof(T) * size_t(a.depth * kQueries));
    const int64_t last = smaller(end, block.farthest + 1);
    if (last > begin) backward_block(p, block, scratch, begin, last, dk.rows, dv.rows);
    unpack_lanes(block, dquery, a.depth, ones, scratch.dquery);
  }
  dk.finish();
  dv.finish();
  return true;
}

template <class T> int run_backward(Backward<T>& p) {
  const Attention<T>& a = p.a;
  const int64_t heads = a.batches * a.key_heads, elements = a.batches * a.heads * a.queries * a.depth;
  p.parts = 1;
  while (heads * p.parts < kWantedTasks && a.keys >= 2 * kSmallestPart * p.parts) p.parts *= 2;
  p.part_keys = ceil_div(ceil_div(a.keys, p.parts), kKeys) * kKeys;
  p.parts = ceil_div(a.keys, p.part_keys);
  Workspace<T> partial((p.parts - 1) * elements);
  if (!partial.data) return 1;
  p.dquery_parts = partial.data;
  int failed = 0;
  const int64_t flops = 5 * a.rows() * p.part_keys * (a.depth + a.width);
  parallel_for(heads * p.parts, items_per_chunk(kTaskFlops, flops), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++)
      if (!backward_task(p, i / p.parts, i % p.parts)) __atomic_store_n(&failed, 1, __ATOMIC_RELAXED);
  });
  parallel_for(p.parts > 1 ? elements : 0, 32768, [&](int64_t begin, int64_t end) {
    for (int64_t part = 0; part + 1 < p.parts; part++)
      for (int64_t i = begin; i < end; i++) p.dquery.data[i] += partial.data[part * elements + i];
  });
  return failed;
}

template <class T> bool heads_of(const tpk_tensor& t, Heads<const T>* out) {
  *out = {static_cast<const T*>(t.data), t.strides[0], t.strides[1], t.strides[2]};
  return t.strides[3] == 1 || t.shape[3] == 1;
}

// False: not for this kernel (16-bit floats, columns that are not adjacent).
template <class T>
bool describe(const tpk_tensor* qkv, const tpk_tensor& mask, const tpk_attr& causal, double scale, Attention<T>* a) {
  for (int i = 0; i < 3; i++)
    if (qkv[i].ndim != 4 || qkv[i].dtype != qkv[0].dtype) return false;
  if (!heads_of(qkv[0], &a->query) || !heads_of(qkv[1], &a->key) || !heads_of(qkv[2], &a->value)) return false;
  a->batches = qkv[0].shape[0], a->heads = qkv[0].shape[1], a->queries = qkv[0].shape[2], a->depth = qkv[0].shape[3];
  a->key_heads = qkv[1].shape[1], a->keys = qkv[1].shape[2], a->width = qkv[2].shape[3];
  if (!a->key_heads || a->heads % a->key_heads) return false;
  a->group = a->heads / a->key_heads;
  a->mask = mask.ndim >= 0 ? &mask : nullptr;
  if (a->mask) {
    if (mask.ndim > 4 || (mask.dtype != TPK_BOOL && mask.dtype != qkv[0].dtype)) return false;
    for (int d = 0; d < 4; d++) {
      const int own = d - (4 - mask.ndim);
      a->mask_stride[d] = own < 0 || mask.shape[own] == 1 ? 0 : mask.strides[own];
    }
  }
  a->causal = causal.kind != TPK_ATTR_NONE;
  a->diagonal = causal.i;
  a->scale = scale;
  return true;
}

int finish(const tpk_call* call, int failed) {
  if (!failed) return TPK_OK;
  snprintf(call->error, 256, "scaled_dot_product: out of memory for the work space");
  return TPK_ERROR;
}

template <class T> int forward_of(const tpk_call* call) {
  Attention<T> a;
  if (!describe(call->in, call->in[3], call->attr[0], call->attr[1].d, &a)) return TPK_UNSUPPORTED;
  return finish(call, forward(a, call));
}

template <class T> int backward_of(const tpk_call* call) {
  Backward<T> p;
  if (!describe(call->in + 1, call->in[4], call->attr[0], call->attr[1].d, &p.a)) return TPK_UNSUPPORTED;
  const tpk_tensor &grad = call->in[0], &out = call->in[5], &lse = call->in[6];
  if (grad.dtype != call->in[1].dtype || out.dtype != grad.dtype || lse.dtype != grad.dtype) return TPK_UNSUPPORTED;
  if (!heads_of(grad, &p.grad) || !heads_of(out, &p.out) || !lse.contiguous) return TPK_UNSUPPORTED;
  const Attention<T>& a = p.a;
  p.lse = static_cast<const T*>(lse.data);
  p.dquery = {static_cast<T*>(call->out[0].data), a.heads * a.queries * a.depth, a.queries * a.depth, a.depth};
  p.dkey = static_cast<T*>(call->out[1].data);
  p.dvalue = static_cast<T*>(call->out[2].data);
  p.depth_padded = padded<T>(a.depth), p.width_padded = padded<T>(a.width);
  if (!a.keys || !a.queries) { // nothing to add up
    for (int i = 0; i < 3; i++) memset(call->out[i].data, 0, sizeof(T) * size_t(call->out[i].numel));
    return TPK_OK;
  }
  return finish(call, run_backward(p));
}

int scaled_dot_product_forward(const tpk_call* call) {
  if (call->in[0].dtype == TPK_F32 && call->out[1].dtype == TPK_F32) return forward_of<float>(call);
  if (call->in[0].dtype == TPK_F64 && call->out[1].dtype == TPK_F64) return forward_of<double>(call);
  return TPK_UNSUPPORTED;
}

int scaled_dot_product_backward(const tpk_call* call) {
  if (call->in[0].dtype == TPK_F32) return backward_of<float>(call);
  if (call->in[0].dtype == TPK_F64) return backward_of<double>(call);
  return TPK_UNSUPPORTED;
}

}  // namespace
}  // namespace TPK_ISA_NS

TPK_FAMILY(attention){
    {"scaled_dot_product_forward", TPK_ISA_NS::scaled_dot_product_forward, 0},
    {"scaled_dot_product_backward", TPK_ISA_NS::scaled_dot_product_backward, 0},
    {nullptr, nullptr, 0}};
