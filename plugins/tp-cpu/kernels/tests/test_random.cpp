// Philox known answers, the shape of uniform and normal numbers, and bits that depend on nothing but seed and counter.
#include <algorithm>

#include "check.h"
#include "each_isa.h"

namespace {

template <class T> std::vector<T> draw(const char* name, int dtype, int64_t n, int64_t seed, int64_t offset = 0) {
  std::vector<T> out(static_cast<size_t>(n));
  int status = check::call(name, {}, {check::Tensor::dense(out.data(), {n}, dtype)},
                           {check::none(), check::integer(seed), check::integer(offset)});
  check::that(status == 0, "%s: status %d", name, status);
  return out;
}

void test_known_answers() {
  const uint32_t zero[4] = {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u};
  std::vector<uint32_t> words = draw<uint32_t>("random_bits", TPK_U32, 1003, 0);
  for (int i = 0; i < 4; i++) check::that(words[size_t(i)] == zero[i], "word %d is %08x", i, words[size_t(i)]);
  // The counter's second word and both words of the key; from the Python in tools/vecmath/random_numbers.py.
  const uint32_t far[4] = {0xc987d5a5u, 0xb76984e2u, 0x884d4c81u, 0x59ebd74du};
  words = draw<uint32_t>("random_bits", TPK_U32, 4, 0x123456789abcdef0ll, 0x1ffffffffll);
  for (int i = 0; i < 4; i++) check::that(words[size_t(i)] == far[i], "far word %d is %08x", i, words[size_t(i)]);
}

void test_layout() {
  std::vector<uint32_t> words = draw<uint32_t>("random_bits", TPK_U32, 100000, 7);
  std::vector<uint32_t> later = draw<uint32_t>("random_bits", TPK_U32, 1001, 7, 5);
  for (size_t i = 0; i < later.size(); i++) check::that(later[i] == words[20 + i], "offset 5 is not 20 words later");
  std::vector<int64_t> wide = draw<int64_t>("random_bits", TPK_I64, 50000, 7);
  check::that(!std::memcmp(wide.data(), words.data(), 400000), "64-bit words are not pairs of 32-bit words");
  std::vector<float> uniform = draw<float>("uniform", TPK_F32, 100000, 7);
  std::vector<double> precise = draw<double>("uniform", TPK_F64, 50000, 7);
  for (size_t i = 0; i < 50000; i++) {
    check::that(uniform[i] == static_cast<float>(words[i] >> 8) * 0x1p-24f, "uniform element %zu", i);
    check::that(precise[i] == static_cast<double>(static_cast<uint64_t>(wide[i]) >> 11) * 0x1p-53, "double %zu", i);
  }
  for (int threads : {1, 2, 5}) {
    tpk_set_num_threads(threads);
    std::vector<float> again = draw<float>("normal", TPK_F32, 300001, 11);
    std::vector<float> part = draw<float>("normal", TPK_F32, 1237, 11);
    check::that(!std::memcmp(again.data(), part.data(), 1237 * 4), "normal depends on the length");
  }
}

double cdf(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }

// The exact quantile of the tail probability, by bisection on erfc.
double quantile(double tail) {
  double low = -1, high = 12;
  for (int i = 0; i < 80; i++) {
    double middle = (low + high) / 2;
    (0.5 * std::erfc(middle * std::sqrt(0.5)) > tail ? low : high) = middle;
  }
  return (low + high) / 2;
}

void test_quantiles() {
  std::vector<uint32_t> words = draw<uint32_t>("random_bits", TPK_U32, 200000, 3);
  std::vector<float> z = draw<float>("normal", TPK_F32, 200000, 3);
  std::vector<uint64_t> wide = draw<uint64_t>("random_bits", TPK_U64, 20000, 3);
  std::vector<double> precise = draw<double>("normal", TPK_F64, 20000, 3);
  double worst = 0, worst_precise = 0;
  for (size_t i = 0; i < z.size(); i += 7) {
    double exact = quantile((words[i] | 1) * 0x1p-33) * (words[i] & 1 ? -1 : 1);
    worst = std::fmax(worst, std::fabs(z[i] - exact));
  }
  for (size_t i = 0; i < precise.size(); i += 3) {
    double exact = quantile(static_cast<double>(wide[i] | 1) * 0x1p-65) * (wide[i] & 1 ? -1 : 1);
    worst_precise = std::fmax(worst_precise, std::fabs(precise[i] - exact));
  }
  std::fprintf(stderr, "normal error %.2g (float64 %.2g)  ", worst, worst_precise);
  check::that(worst < 1e-6, "float32 normal is off by %g", worst);
  check::that(worst_precise < 1e-9, "float64 normal is off by %g", worst_precise);
}

template <class T> void test_distribution(int dtype) {
  const int64_t n = 2000000;
  std::vector<T> z = draw<T>("normal", dtype, n, 12345);
  double sum = 0, square = 0, cube = 0, fourth = 0;
  int64_t beyond4 = 0;
  for (T value : z) {
    double v = value;
    sum += v, square += v * v, cube += v * v * v, fourth += v * v * v * v;
    beyond4 += std::fabs(v) > 4;
  }
  double mean = sum / n, variance = square / n - mean * mean;
  check::that(std::fabs(mean) < 4 / std::sqrt(double(n)), "mean %g", mean);
  check::that(std::fabs(variance - 1) < 4 * std::sqrt(2.0 / n), "variance %g", variance);
  check::that(std::fabs(cube / n) < 4 * std::sqrt(15.0 / n), "skewness %g", cube / n);
  check::that(std::fabs(fourth / n - 3) < 4 * std::sqrt(96.0 / n), "kurtosis %g", fourth / n);
  double expected = 2 * n * cdf(-4);  // 126.7
  check::that(std::fabs(beyond4 - expected) < 4 * std::sqrt(expected), "%d beyond 4", int(beyond4));
  std::sort(z.begin(), z.end());
  double distance = 0;
  for (int64_t i = 0; i < n; i++) {
    double p = cdf(z[size_t(i)]);
    distance = std::fmax(distance, std::fmax(p - double(i) / n, double(i + 1) / n - p));
  }
  check::that(distance * std::sqrt(double(n)) < 1.95, "Kolmogorov-Smirnov %g", distance * std::sqrt(double(n)));
}

// Of 2^26 numbers the largest is about 5.7.
void test_tail() {
  std::vector<float> z = draw<float>("normal", TPK_F32, 1 << 26, 99);
  float low = *std::min_element(z.begin(), z.end()), high = *std::max_element(z.begin(), z.end());
  std::fprintf(stderr, "range %.2f..%.2f  ", low, high);
  check::that(high > 5.1f && high < 6.4f && low < -5.1f && low > -6.4f, "the range is %g..%g", low, high);
}

// The checksums of the bits are those of tools/vecmath/reference_checksums.py.
template <class T> uint64_t checksum(const std::vector<T>& values) {
  uint64_t hash = 0xcbf29ce484222325ull;
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(values.data());
  for (size_t i = 0; i < values.size() * sizeof(T); i++) hash = (hash ^ bytes[i]) * 0x100000001b3ull;
  return hash;
}

void test_reference_bits() {
  uint64_t single = checksum(draw<float>("normal", TPK_F32, 100000, 2024, 3));
  uint64_t precise = checksum(draw<double>("normal", TPK_F64, 100000, 2024, 3));
  check::that(single == 0xc07b1586dc24b349ull, "float32 bits differ from the reference: %016llx",
              static_cast<unsigned long long>(single));
  check::that(precise == 0xaf815f41de25bacbull, "float64 bits differ from the reference: %016llx",
              static_cast<unsigned long long>(precise));
}

int run() {
  test_known_answers();
  test_layout();
  test_quantiles();
  test_distribution<float>(TPK_F32);
  test_distribution<double>(TPK_F64);
  test_tail();
  test_reference_bits();
  return check::finish("random");
}

}  // namespace

int main() { return check::each_isa(run); }
