// Operators without a tensor argument: full, iota and random numbers.
// This file is compiled without contraction of * and + into fused multiply-add: `normal` promises the same bits
// everywhere.
#include "elementwise.h"
#include "normal_table.h"
#include "normal_table_f64.h"
#include "philox.h"

namespace TPK_ISA_NS {
namespace {

// ---- full ----

template <class T> T number(const tpk_attr& attr) {
  return attr.kind == TPK_ATTR_FLOAT ? static_cast<T>(attr.d) : static_cast<T>(attr.i);
}

// The bytes of one element. False: not a number.
bool element(const tpk_attr& attr, int dtype, char* bytes) {
  if (attr.kind != TPK_ATTR_BOOL && attr.kind != TPK_ATTR_INT && attr.kind != TPK_ATTR_FLOAT) return false;
  bool whole = attr.kind != TPK_ATTR_FLOAT;
  switch (dtype) {
#define TPK_CASE(code, type, unused) case code: { type value = number<type>(attr); \
      memcpy(bytes, &value, sizeof(value)); return true; }
    TPK_FLOATS(TPK_CASE, )
#undef TPK_CASE
#define TPK_CASE(code, type, unused) case code: { type value = static_cast<type>(number<int64_t>(attr)); \
      memcpy(bytes, &value, sizeof(value)); return true; }
    TPK_INTS(TPK_CASE, )
    TPK_SMALL_INTS(TPK_CASE, )
    TPK_UNSIGNED(TPK_CASE, )
#undef TPK_CASE
    case TPK_BOOL: bytes[0] = whole ? attr.i != 0 : attr.d != 0; return true;
    case TPK_F16:
    case TPK_BF16: {
      float value = number<float>(attr);
      float_to_half_n(dtype, &value, reinterpret_cast<uint16_t*>(bytes), 1);
      return true;
    }
    case TPK_C64: { Complex<float> value = {number<float>(attr), 0}; memcpy(bytes, &value, 8); return true; }
    case TPK_C128: { Complex<double> value = {number<double>(attr), 0}; memcpy(bytes, &value, 16); return true; }
    default: return false;
  }
}

struct Fill { char* out; const char* value; int size; };

void fill_range(void* context, int64_t begin, int64_t end) {
  const Fill& fill = *static_cast<const Fill*>(context);
  move_elements(fill.size, fill.out + begin * fill.size, fill.size, fill.value, 0, end - begin);
}

int full(const tpk_call* call) {
  const tpk_tensor& out = call->out[0];
  alignas(16) char value[16];
  if (!out.contiguous || call->n_attr < 2 || !element(call->attr[1], out.dtype, value)) return TPK_UNSUPPORTED;
  Fill fill = {static_cast<char*>(out.data), value, itemsize(out.dtype)};
  if (out.numel) tpk_parallel(out.numel, kGrain, fill_range, &fill);
  return TPK_OK;
}

// ---- iota ----

struct Progression { char* out; double start, step; int64_t whole_start, whole_step; };

template <class T> void iota_floats(void* context, int64_t begin, int64_t end) {
  const Progression& p = *static_cast<const Progression*>(context);
  T* out = reinterpret_cast<T*>(p.out);
  for (int64_t i = begin; i < end; i++) out[i] = static_cast<T>(p.start + static_cast<double>(i) * p.step);
}
template <int dtype> void iota_halves(void* context, int64_t begin, int64_t end) {
  const Progression& p = *static_cast<const Progression*>(context);
  uint16_t* out = reinterpret_cast<uint16_t*>(p.out);
  for (int64_t i = begin; i < end; i++) {
    float value = static_cast<float>(p.start + static_cast<double>(i) * p.step);
    out[i] = dtype == TPK_F16 ? float_to_half(value) : float_to_bfloat(value);
  }
}
template <class T> void iota_integers(void* context, int64_t begin, int64_t end) {
  const Progression& p = *static_cast<const Progression*>(context);
  T* out = reinterpret_cast<T*>(p.out);
  const uint64_t start = static_cast<uint64_t>(p.whole_start), step = static_cast<uint64_t>(p.whole_step);
  for (int64_t i = begin; i < end; i++) out[i] = static_cast<T>(start + static_cast<uint64_t>(i) * step);
}

typedef void (*Body)(void* context, int64_t begin, int64_t end);

Body iota_body(int dtype, bool whole) {
  switch (dtype) {
    case TPK_F32: return iota_floats<float>;
    case TPK_F64: return iota_floats<double>;
    case TPK_F16: return iota_halves<TPK_F16>;
    case TPK_BF16: return iota_halves<TPK_BF16>;
    default: break;
  }
  if (!whole) return nullptr;
  switch (dtype) {
#define TPK_CASE(code, type, unused) case code: return iota_integers<type>;
    TPK_INTS(TPK_CASE, )
    TPK_SMALL_INTS(TPK_CASE, )
    TPK_UNSIGNED(TPK_CASE, )
#undef TPK_CASE
    default: return nullptr;
  }
}

int iota(const tpk_call* call) {
  const tpk_tensor& out = call->out[0];
  if (!out.contiguous || call->n_attr < 3) return TPK_UNSUPPORTED;
  const tpk_attr &start = call->attr[1], &step = call->attr[2];
  bool whole = start.kind == TPK_ATTR_INT && step.kind == TPK_ATTR_INT;
  Body body = iota_body(out.dtype, whole);
  if (!body) return TPK_UNSUPPORTED;
  Progression p = {static_cast<char*>(out.data), start.d, step.d, start.i, step.i};
  if (out.numel) tpk_parallel(out.numel, kGrain, body, &p);
  return TPK_OK;
}

// ---- random numbers ----

constexpr int64_t kBatch = 64;  // blocks of four words at a time

struct Random { char* out; int64_t numel; Philox generator; uint64_t offset; };

// Writes the batch's elements [0, n) from their words.
typedef void (*Transform)(const uint32_t* words, char* out, int64_t n);

void keep_words(const uint32_t* words, char* out, int64_t n) { memcpy(out, words, static_cast<size_t>(n) * 4); }
void keep_wide_words(const uint32_t* words, char* out, int64_t n) {
  uint64_t* wide = reinterpret_cast<uint64_t*>(out);
  for (int64_t i = 0; i < n; i++) wide[i] = words[2 * i] | static_cast<uint64_t>(words[2 * i + 1]) << 32;
}

void uniform_single(const uint32_t* words, char* out, int64_t n) {
  float* result = reinterpret_cast<float*>(out);
  for (int64_t i = 0; i < n; i++) result[i] = static_cast<float>(static_cast<int32_t>(words[i] >> 8)) * 0x1p-24f;
}
void uniform_double(const uint32_t* words, char* out, int64_t n) {
  double* result = reinterpret_cast<double*>(out);
  for (int64_t i = 0; i < n; i++) {
    uint64_t wide = words[2 * i] | static_cast<uint64_t>(words[2 * i + 1]) << 32;
    result[i] = static_cast<double>(static_cast<int64_t>(wide >> 11)) * 0x1p-53;
  }
}

// The leading zeros of an odd number. On older instruction sets from a float's exponent: the bit below each one is
// cleared first so that the conversion cannot round up to the next power of two.
inline uint32_t leading_zeros(uint32_t odd) {
#if defined(__AVX512CD__)
  return static_cast<uint32_t>(__builtin_clz(odd));
#else
  uint32_t half = odd >> 1;
  half &= ~(half >> 1);
  uint32_t exponent = bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(half))) >> 23;
  return 31 - ((exponent < 126 ? 126 : exponent) - 126);
#endif
}

void normal_single(const uint32_t* words, char* out, int64_t n) {
  uint32_t row[4 * kBatch];
  float position[4 * kBatch];
  float* result = reinterpret_cast<float*>(out);
  for (int64_t i = 0; i < n; i++) {
    uint32_t v = words[i] | 1, octave = leading_zeros(v);
    uint32_t rest = v << octave;
    row[i] = octave << 4 | (rest >> 27 & 15);
    position[i] = static_cast<float>(static_cast<int32_t>(rest >> 3 & 0xFFFFFF) - 0x800000);
  }
  const float* c0 = reinterpret_cast<const float*>(kNormalTable[0]);
  const float* c1 = reinterpret_cast<const float*>(kNormalTable[1]);
  const float* c2 = reinterpret_cast<const float*>(kNormalTable[2]);
  const float* c3 = reinterpret_cast<const float*>(kNormalTable[3]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) {
    const float t = position[i];
    const float z = ((c3[row[i]] * t + c2[row[i]]) * t + c1[row[i]]) * t + c0[row[i]];
    result[i] = bit_cast<float>(bit_cast<uint32_t>(z) ^ words[i] << 31);
  }
}

void normal_double(const uint32_t* words, char* out, int64_t n) {
  double* result = reinterpret_cast<double*>(out);
  for (int64_t i = 0; i < n; i++) {
    uint64_t word = words[2 * i] | static_cast<uint64_t>(words[2 * i + 1]) << 32, v = word | 1;
    int octave = __builtin_clzll(v);
    uint64_t rest = v << octave;
    int row = octave << 2 | static_cast<int>(rest >> 61 & 3);
    double t = static_cast<double>(static_cast<int64_t>(rest >> 8 & 0x1FFFFFFFFFFFFF) - 0x10000000000000);
    double z = bit_cast<double>(kNormalTableWide[7][row]);
    for (int d = 6; d >= 0; d--) z = z * t + bit_cast<double>(kNormalTableWide[d][row]);
    result[i] = bit_cast<double>(bit_cast<uint64_t>(z) ^ word << 63);
  }
}

// [begin, end) counts batches.
template <Transform transform, int words_each, int bytes_each>
void random_range(void* context, int64_t begin, int64_t end) {
  const Random& random = *static_cast<const Random*>(context);
  constexpr int64_t each = 4 * kBatch / words_each;
  alignas(64) uint32_t words[4 * kBatch];
  for (int64_t batch = begin; batch < end; batch++) {
    int64_t first = batch * each, n = random.numel - first < each ? random.numel - first : each;
    uint64_t counter = random.offset + static_cast<uint64_t>(batch * kBatch);
    philox_words(random.generator, counter, (n * words_each + 3) / 4, words);
    transform(words, random.out + first * bytes_each, n);
  }
}

int run_random(const tpk_call* call, Body body, int words_each) {
  const tpk_tensor& out = call->out[0];
  if (!body || !out.contiguous || call->n_attr < 3) return TPK_UNSUPPORTED;
  Random random = {static_cast<char*>(out.data), out.numel, philox(static_cast<uint64_t>(call->attr[1].i)),
                   static_cast<uint64_t>(call->attr[2].i)};
  int64_t each = 4 * kBatch / words_each;
  if (out.numel) tpk_parallel((out.numel + each - 1) / each, 16, body, &random);
  return TPK_OK;
}

int random_bits(const tpk_call* call) {
  switch (call->out[0].dtype) {
    case TPK_U32:
    case TPK_I32: return run_random(call, random_range<keep_words, 1, 4>, 1);
    case TPK_U64:
    case TPK_I64: return run_random(call, random_range<keep_wide_words, 2, 8>, 2);
    default: return TPK_UNSUPPORTED;
  }
}
int uniform(const tpk_call* call) {
  if (call->out[0].dtype == TPK_F64) return run_random(call, random_range<uniform_double, 2, 8>, 2);
  return run_random(call, call->out[0].dtype == TPK_F32 ? random_range<uniform_single, 1, 4> : nullptr, 1);
}
int normal(const tpk_call* call) {
  if (call->out[0].dtype == TPK_F64) return run_random(call, random_range<normal_double, 2, 8>, 2);
  return run_random(call, call->out[0].dtype == TPK_F32 ? random_range<normal_single, 1, 4> : nullptr, 1);
}

}  // namespace
}  // namespace TPK_ISA_NS

TPK_FAMILY(creation){
  {"full", TPK_ISA_NS::full, 0},
  {"iota", TPK_ISA_NS::iota, 0},
  {"random_bits", TPK_ISA_NS::random_bits, 0},
  {"uniform", TPK_ISA_NS::uniform, 0},
  {"normal", TPK_ISA_NS::normal, 0},
  {nullptr, nullptr, 0},
};
