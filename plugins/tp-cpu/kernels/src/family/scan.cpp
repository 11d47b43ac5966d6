// cumsum and cumprod; floats are accumulated in double and rounded once per element, as in torch.
#include "axes.h"
#include "dtype.h"
#include "parallel.h"

namespace TPK_ISA_NS {
namespace {

constexpr int64_t kScanTile = 64;  // columns that are scanned together

template <class T> struct Running { typedef int64_t type; };
template <> struct Running<float> { typedef double type; };
template <> struct Running<double> { typedef double type; };

template <class T> inline T value_of(T x) { return x; }
inline int64_t value_of(Bool x) { return x.byte != 0; }

struct SumScan {
  static constexpr int start = 0;
  static inline double step(double a, double x) { return a + x; }
  static inline int64_t step(int64_t a, int64_t x) { return int64_t(uint64_t(a) + uint64_t(x)); }
};
struct ProdScan {
  static constexpr int start = 1;
  static inline double step(double a, double x) { return a * x; }
  static inline int64_t step(int64_t a, int64_t x) { return int64_t(uint64_t(a) * uint64_t(x)); }
};

template <class Op, class In, class Out> int scan_axis(const tpk_call* call, const Axis& axis) {
  typedef typename Running<In>::type Acc;
  const In* in = static_cast<const In*>(call->in[0].data);
  Out* out = static_cast<Out*>(call->out[0].data);
  const int64_t inner = axis.inner, size = axis.size;
  if (call->out[0].numel == 0) return TPK_OK;
  const int64_t tile = smaller(inner, kScanTile), tiles = ceil_div(inner, tile);
  parallel_for(axis.outer * tiles, items_per_chunk(16384, size * tile), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; task++) {
      int64_t start = task / tiles * size * inner + task % tiles * tile;
      int64_t width = smaller(tile, inner - task % tiles * tile);
      if (width == 1) {
        Acc acc = Op::start;
        for (int64_t r = 0; r < size; r++)
          out[start + r * inner] = static_cast<Out>(acc = Op::step(acc, Acc(value_of(in[start + r * inner]))));
        continue;
      }
      Acc acc[kScanTile];
      for (int64_t j = 0; j < width; j++) acc[j] = Op::start;
      for (int64_t r = 0; r < size; r++) {
        const In* from = in + start + r * inner;
        Out* to = out + start + r * inner;
        for (int64_t j = 0; j < width; j++) acc[j] = Op::step(acc[j], Acc(value_of(from[j])));
        for (int64_t j = 0; j < width; j++) to[j] = static_cast<Out>(acc[j]);
      }
    }
  });
  return TPK_OK;
}

#define SCAN_TO_INT64(code, type, op) case code: return scan_axis<op, type, int64_t>(call, axis);

template <class Op> int scan(const tpk_call* call) {
  Axis axis;
  const int from = call->in[0].dtype, to = call->out[0].dtype;
  if (!find_axis(call->in[0], call->attr[0].i, axis)) return TPK_UNSUPPORTED;
  if (from == TPK_F32 && to == TPK_F32) return scan_axis<Op, float, float>(call, axis);
  if (from == TPK_F32 && to == TPK_F64) return scan_axis<Op, float, double>(call, axis);
  if (from == TPK_F64 && to == TPK_F64) return scan_axis<Op, double, double>(call, axis);
  if (to != TPK_I64) return TPK_UNSUPPORTED;
  switch (from) { TPK_INTS(SCAN_TO_INT64, Op) TPK_SMALL_INTS(SCAN_TO_INT64, Op) SCAN_TO_INT64(TPK_BOOL, Bool, Op) }
  return TPK_UNSUPPORTED;
}

int cumsum(const tpk_call* call) { return scan<SumScan>(call); }
int cumprod(const tpk_call* call) { return scan<ProdScan>(call); }

}  // namespace
}  // namespace TPK_ISA_NS

using namespace TPK_ISA_NS;
TPK_FAMILY(scan){
    {"cumsum", cumsum, TPK_CONTIGUOUS}, {"cumprod", cumprod, TPK_CONTIGUOUS}, {nullptr, nullptr, 0}};
