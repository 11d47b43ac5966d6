// copy, cast, full and iota.
#include "array.h"
#include "each_isa.h"

namespace {

using check::Array;
using check::Layout;
using check::that;

const int kAll[] = {TPK_BOOL, TPK_U8,  TPK_I8,  TPK_I16,  TPK_I32, TPK_I64, TPK_U16, TPK_U32,
                    TPK_U64,  TPK_F16, TPK_BF16, TPK_F32, TPK_F64, TPK_C64, TPK_C128};

void test_copy() {
  const std::vector<int64_t> shapes[] = {{}, {0, 3}, {1, 1}, {37, 41}, {130, 67}, {3, 5, 7, 9}, {4, 64, 33}, {70000}};
  for (int dtype : {TPK_U8, TPK_F16, TPK_F32, TPK_F64, TPK_C128})
    for (const std::vector<int64_t>& shape : shapes)
      for (Layout from : check::all_layouts)
        for (Layout to : {Layout::dense, Layout::reversed_axes, Layout::gaps, Layout::backwards}) {
          Array in(dtype, shape, from), out(dtype, shape, to);
          in.fill([](int64_t i) { return (i * 13 + 1) % 127; });
          std::vector<char> before = out.bytes;
          int status = check::call("copy", {in.tensor()}, {out.tensor()});
          that(status == 0, "copy: status %d", status);
          for (int64_t i = 0; i < out.count(); i++)
            that(!std::memcmp(out.at(i), in.at(i), size_t(check::size_of(dtype))), "copy dtype %d at %d", dtype,
                 int(i));
          for (size_t gap = 1; to == Layout::gaps && !shape.empty() && gap < 3; gap++)
            for (size_t at = gap * size_t(check::size_of(dtype)); at < out.bytes.size();
                 at += 3 * size_t(check::size_of(dtype)))
              that(out.bytes[at] == before[at], "copy wrote between the elements");
        }
}

// The inner axes swapped under outer ones, as attention heads are.
void test_copy_permuted() {
  std::vector<float> from(2 * 5 * 3 * 70), to(from.size());
  for (size_t i = 0; i < from.size(); i++) from[i] = float(i);
  check::Tensor in = check::Tensor::strided(from.data(), {2, 3, 5, 70}, {1050, 70, 210, 1}, TPK_F32);
  check::call("copy", {in}, {check::Tensor::dense(to.data(), {2, 3, 5, 70}, TPK_F32)});
  size_t flat = 0;
  for (int a = 0; a < 2; a++)
    for (int b = 0; b < 3; b++)
      for (int c = 0; c < 5; c++)
        for (int d = 0; d < 70; d++, flat++)
        that(to[flat] == float(a * 1050 + b * 70 + c * 210 + d), "heads at %zu", flat);
}

double expected(int from, int to, double value) {
  if (to == TPK_BOOL) return value != 0;
  if (to >= TPK_F16 || from < TPK_F16) return value;
  return std::trunc(value);
}

void test_cast() {
  for (int from : kAll)
    for (int to : kAll) {
      if (from >= TPK_C64 && to == TPK_BOOL) continue;
      for (Layout layout : {Layout::dense, Layout::reversed_axes, Layout::first_broadcast}) {
        Array in(from, {13, 57}, layout), out(to, {13, 57}, Layout::dense);
        bool is_signed = from != TPK_U8 && from != TPK_BOOL && (from < TPK_U16 || from > TPK_U64) && to != TPK_U8 &&
                         (to < TPK_U16 || to > TPK_U64);
        double unit = from >= TPK_F16 ? 0.125 : from == TPK_U8 ? 1 : 0.5;
        in.fill([&](int64_t i) { return (double((i * 29) % 200) - (is_signed ? 100 : 0)) * unit; });
        int status = check::call("cast", {in.tensor()}, {out.tensor()}, {check::integer(to)});
        that(status == 0, "cast %d to %d: status %d", from, to, status);
        for (int64_t i = 0; i < out.count(); i++) {
          double exact = expected(from, to, in.get(i));
          if (to == TPK_I8 && exact > 127) continue;
          that(out.get(i) == exact, "cast %d to %d: %g gives %g", from, to, in.get(i), out.get(i));
          if (to == TPK_C64) that(check::read(TPK_F32, out.at(i) + 4) == 0, "cast to complex: imaginary part");
        }
      }
    }
}

// Every bit pattern of float16 widened, and float32 values around every midpoint narrowed.
void test_halves() {
  std::vector<uint16_t> bits(65536), narrow(65536);
  std::vector<float> wide(65536);
  for (size_t i = 0; i < bits.size(); i++) bits[i] = uint16_t(i);
  check::call("cast", {check::Tensor::dense(bits.data(), {65536}, TPK_F16)},
              {check::Tensor::dense(wide.data(), {65536}, TPK_F32)}, {check::integer(TPK_F32)});
  for (size_t i = 0; i < bits.size(); i++) {
    double exact = check::half_value(bits[i]);
    that(std::isnan(exact) ? std::isnan(wide[i]) : exact == wide[i], "float16 %04x is %g", int(i), double(wide[i]));
  }
  check::Random random;
  for (int round = 0; round < 8; round++) {
    for (size_t i = 0; i < wide.size(); i++) {
      double low = check::half_value(uint16_t(i)), high = check::half_value(uint16_t(i + 1));
      double value = (low + high) / 2;  // exact in float32
      if (round & 1) value = std::nextafter(float(value), round & 2 ? INFINITY : -INFINITY);
      if (round & 4) value = std::ldexp(random.uniform(), int(random.next() % 60) - 40);
      wide[i] = float(value);
    }
    check::call("cast", {check::Tensor::dense(wide.data(), {65536}, TPK_F32)},
                {check::Tensor::dense(narrow.data(), {65536}, TPK_F16)}, {check::integer(TPK_F16)});
    for (size_t i = 0; i < wide.size(); i++) {
      uint16_t exact = check::nearest_half(wide[i]);
      bool same = std::isnan(wide[i]) ? (narrow[i] & 0x7c00) == 0x7c00 && (narrow[i] & 1023) : narrow[i] == exact;
      that(same, "%a narrows to %04x, not %04x", double(wide[i]), narrow[i], exact);
    }
    check::call("cast", {check::Tensor::dense(wide.data(), {65536}, TPK_F32)},
                {check::Tensor::dense(narrow.data(), {65536}, TPK_BF16)}, {check::integer(TPK_BF16)});
    for (size_t i = 0; i < wide.size(); i++) {
      uint32_t w, low;
      std::memcpy(&w, &wide[i], 4);
      low = w & 0xffff;
      uint16_t exact = uint16_t((w >> 16) + (low > 0x8000 || (low == 0x8000 && (w >> 16 & 1))));
      bool same = std::isnan(wide[i]) ? (narrow[i] & 0x7f80) == 0x7f80 && (narrow[i] & 127) : narrow[i] == exact;
      that(same, "%a narrows to bfloat16 %04x, not %04x", double(wide[i]), narrow[i], exact);
    }
  }
}

void test_cast_out_of_range() {
  std::vector<float> x = {300.7f, -1.5f, 1e20f, NAN, -129};
  uint8_t bytes[5];
  int32_t ints[5];
  check::Tensor in = check::Tensor::dense(x.data(), {5}, TPK_F32);
  check::call("cast", {in}, {check::Tensor::dense(bytes, {5}, TPK_U8)}, {check::integer(TPK_U8)});
  check::call("cast", {in}, {check::Tensor::dense(ints, {5}, TPK_I32)}, {check::integer(TPK_I32)});
  that(bytes[0] == 44 && bytes[1] == 255 && bytes[4] == 127, "uint8: %d %d %d", bytes[0], bytes[1], bytes[4]);
  that(ints[0] == 300 && ints[1] == -1, "int32: %d %d", ints[0], ints[1]);
#if defined(__x86_64__)
  that(ints[2] == INT32_MIN && ints[3] == INT32_MIN, "int32 of 1e20 and NaN: %d %d", ints[2], ints[3]);
#endif
  double large = 1.5 * 0x1p63;
  uint64_t unsigned_value;
  check::call("cast", {check::Tensor::dense(&large, {}, TPK_F64)}, {check::Tensor::dense(&unsigned_value, {}, TPK_U64)},
              {check::integer(TPK_U64)});
  that(unsigned_value == 3ull << 62, "uint64 of 1.5 * 2^63");
}

void test_creation() {
  for (int dtype : kAll) {
    Array out(dtype, {3, 1001}, Layout::dense);
    int status = check::call("full", {}, {out.tensor()}, {check::none(), check::integer(3)});
    that(status == 0, "full dtype %d: status %d", dtype, status);
    for (int64_t i = 0; i < out.count(); i++) that(out.get(i) == (dtype == TPK_BOOL ? 1 : 3), "full dtype %d", dtype);
    if (dtype == TPK_BOOL || dtype >= TPK_C64) continue;
    Array range(dtype, {100}, Layout::dense);
    status = check::call("iota", {}, {range.tensor()}, {check::none(), check::integer(2), check::integer(1)});
    that(status == 0, "iota dtype %d: status %d", dtype, status);
    for (int64_t i = 0; i < 100; i++) that(range.get(i) == 2 + i, "iota dtype %d at %d", dtype, int(i));
  }
  Array out(TPK_F64, {70000}, Layout::dense);
  check::call("iota", {}, {out.tensor()}, {check::none(), check::real(0.5), check::real(-0.1)});
  for (int64_t i = 0; i < 70000; i++) that(out.get(i) == 0.5 + double(i) * -0.1, "iota of floats at %d", int(i));
  Array big(TPK_I64, {1}, Layout::dense);
  check::call("full", {}, {big.tensor()}, {check::none(), check::integer(INT64_MAX)});
  int64_t value;
  std::memcpy(&value, big.bytes.data(), 8);
  that(value == INT64_MAX, "full keeps 64-bit integers exact");
}

int run() {
  test_copy();
  test_copy_permuted();
  test_cast();
  test_halves();
  test_cast_out_of_range();
  test_creation();
  return check::finish("copy");
}

}  // namespace

int main() { return check::each_isa(run); }
