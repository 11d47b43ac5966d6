// Reductions and scans against naive loops in double: every kind of axis, sizes around the blocks, NaN, integers.
#include <limits>

#include "check.h"
#include "each_isa.h"

namespace {

typedef std::vector<int64_t> Ints;
const float kNan = std::numeric_limits<float>::quiet_NaN();

// For every element of a contiguous array of `shape`, the position of its output element when `dims` are reduced.
std::vector<size_t> output_positions(const Ints& shape, const std::vector<bool>& reduced) {
  size_t n = 1;
  for (int64_t s : shape) n *= size_t(s);
  std::vector<size_t> position(n);
  for (size_t i = 0; i < n; i++) {
    size_t rest = i, scale = 1;
    for (int d = int(shape.size()) - 1; d >= 0; d--) {
      size_t index = rest % size_t(shape[d]);
      rest /= size_t(shape[d]);
      if (reduced[d]) continue;
      position[i] += index * scale;
      scale *= size_t(shape[d]);
    }
  }
  return position;
}

struct Case {
  Ints shape, dims;  // no dims: all
  std::vector<bool> reduced() const {
    std::vector<bool> r(shape.size(), dims.empty());
    for (int64_t d : dims) r[size_t(d < 0 ? d + int64_t(shape.size()) : d)] = true;
    return r;
  }
  size_t inputs() const {
    size_t n = 1;
    for (int64_t s : shape) n *= size_t(s);
    return n;
  }
  Ints out_shape() const {
    Ints out;
    for (size_t d = 0; d < shape.size(); d++)
      if (!reduced()[d]) out.push_back(shape[d]);
    return out;
  }
  std::string name() const {
    std::string s = "[";
    for (int64_t n : shape) s += std::to_string(n) + " ";
    s += "] over [";
    for (int64_t d : dims) s += std::to_string(d) + " ";
    return s + "]";
  }
};

size_t product(const Ints& shape) {
  size_t n = 1;
  for (int64_t s : shape) n *= size_t(s);
  return n;
}

const std::vector<Case> kCases = {
    {{}, {}}, {{1}, {0}}, {{7}, {}}, {{1000}, {-1}}, {{1025}, {0}}, {{70001}, {0}}, {{200000}, {}},
    {{5, 17}, {1}}, {{5, 17}, {0}}, {{300, 128}, {0}}, {{300, 128}, {1}}, {{2048, 128}, {0}}, {{700, 3}, {0}},
    {{700, 3}, {1}}, {{1000, 31}, {0}}, {{10, 1030}, {0}}, {{3, 70000}, {1}}, {{2, 1200, 70}, {1}}, {{4, 5, 6}, {1}},
    {{4, 5, 6}, {0, 2}}, {{4, 5, 6, 3}, {0, 2}}, {{4, 5, 6, 3}, {1, 3}}, {{3, 1, 4, 1, 5}, {1, -1}},
    {{8, 16, 12, 12}, {0, 2, 3}}, {{2, 3, 2, 3, 2, 3}, {0, 2, 4}}, {{2, 3, 4}, {0, 1, 2}}, {{5000, 40}, {}},
    {{0}, {}}, {{3, 0}, {1}}, {{0, 3}, {1}}, {{3, 0}, {0}}, {{0, 3}, {0}}, {{2, 0, 3}, {1}}, {{1, 1}, {0}}};

std::vector<check::Tensor> one(void* data, const Ints& shape, int dtype) {
  return {check::Tensor::dense(data, shape, dtype)};
}

template <class T> void test_sums(int dtype, double tolerance) {
  for (const Case& c : kCases) {
    std::vector<T> x = check::random_vector<T>(c.inputs(), 1);
    for (T& v : x) v = v + T(0.75);  // a sum that is not zero by accident
    std::vector<size_t> at = output_positions(c.shape, c.reduced());
    size_t n = product(c.out_shape());
    std::vector<double> expected(n, 0.0);
    for (size_t i = 0; i < x.size(); i++) expected[at[i]] += double(x[i]);
    std::vector<T> out(n, T(-77));
    int status = check::call("sum", one(x.data(), c.shape, dtype), one(out.data(), c.out_shape(), dtype),
                             {check::integers(c.dims), check::boolean(false), check::none()});
    check::that(status == TPK_OK, "sum %s: status %d", c.name().c_str(), status);
    for (size_t i = 0; i < n; i++)
      check::that(std::fabs(out[i] - expected[i]) <= tolerance * std::fabs(expected[i]) + tolerance,
                  "sum %s: element %zu is %.9g, not %.9g", c.name().c_str(), i, double(out[i]), expected[i]);
    status = check::call("mean", one(x.data(), c.shape, dtype), one(out.data(), c.out_shape(), dtype),
                         {check::integers(c.dims), check::boolean(false), check::none()});
    double count = n ? double(x.size()) / double(n) : 0;
    for (size_t i = 0; i < n; i++) {
      double mean = expected[i] / count;
      bool same = std::isnan(mean) ? std::isnan(out[i]) : std::fabs(out[i] - mean) <= tolerance * (std::fabs(mean) + 1);
      check::that(same && !status, "mean %s: element %zu is %.9g, not %.9g", c.name().c_str(), i, double(out[i]), mean);
    }
  }
}

template <class T> void test_extremes(int dtype, bool with_nan) {
  for (const Case& c : kCases) {
    size_t n = product(c.out_shape());
    if (c.inputs() == 0 && n > 0) continue;
    std::vector<T> x(c.inputs());
    std::vector<double> random = check::random_vector<double>(c.inputs(), 2);
    for (size_t i = 0; i < x.size(); i++) x[i] = T(random[i] * 100);
    if (with_nan)
      for (size_t i = 5; i < x.size(); i += 997) x[i] = T(kNan);
    std::vector<size_t> at = output_positions(c.shape, c.reduced());
    std::vector<double> high(n, -1e300), low(n, 1e300);
    for (size_t i = 0; i < x.size(); i++) {
      double v = double(x[i]);
      if (std::isnan(v) || v > high[at[i]]) high[at[i]] = v;
      if (std::isnan(v) || v < low[at[i]]) low[at[i]] = v;
    }
    std::vector<T> out(n);
    for (bool maximum : {true, false}) {
      int status = check::call(maximum ? "amax" : "amin", one(x.data(), c.shape, dtype),
                               one(out.data(), c.out_shape(), dtype), {check::integers(c.dims), check::boolean(false)});
      check::that(status == TPK_OK, "amax/amin %s dtype %d: status %d", c.name().c_str(), dtype, status);
      for (size_t i = 0; i < n; i++) {
        double wanted = maximum ? high[i] : low[i];
        check::that(std::isnan(wanted) ? std::isnan(double(out[i])) : double(out[i]) == wanted,
                    "%s %s: element %zu is %g, not %g", maximum ? "amax" : "amin", c.name().c_str(), i,
                    double(out[i]), wanted);
      }
    }
  }
}

template <class T> void test_positions(int dtype, bool with_nan) {
  for (const Case& c : kCases) {
    if (c.dims.size() > 1 || c.inputs() == 0) continue;
    std::vector<T> x(c.inputs());
    std::vector<double> random = check::random_vector<double>(c.inputs(), 3);
    for (size_t i = 0; i < x.size(); i++) x[i] = T(random[i] * 20);  // many ties for integers
    if (with_nan)
      for (size_t i = 5; i < x.size(); i += 401) x[i] = T(kNan);
    std::vector<size_t> at = output_positions(c.shape, c.reduced());
    size_t n = product(c.out_shape()), inner = 1;
    const size_t dim = c.dims.empty() ? 0 : size_t(c.dims[0] < 0 ? c.dims[0] + int64_t(c.shape.size()) : c.dims[0]);
    const int64_t size = c.dims.empty() ? int64_t(x.size()) : c.shape.empty() ? 1 : c.shape[dim];
    for (size_t d = dim + 1; d < c.shape.size() && !c.dims.empty(); d++) inner *= size_t(c.shape[d]);
    for (bool maximum : {true, false}) {
      std::vector<int64_t> expected(n, -1), out(n, -5);
      std::vector<double> best(n);
      for (size_t i = 0; i < x.size(); i++) {
        size_t o = at[i];
        double v = double(x[i]);
        bool better = expected[o] < 0 || (std::isnan(v) && !std::isnan(best[o])) ||
            (maximum ? v > best[o] : v < best[o]);
        if (better) best[o] = v, expected[o] = int64_t(i / inner) % size;
      }
      int status = check::call(maximum ? "argmax" : "argmin", one(x.data(), c.shape, dtype),
                               one(out.data(), c.out_shape(), TPK_I64),
                               {c.dims.empty() ? check::none() : check::integer(c.dims[0]), check::boolean(false)});
      check::that(status == TPK_OK, "argmax/argmin %s: status %d", c.name().c_str(), status);
      for (size_t i = 0; i < n; i++)
        check::that(out[i] == expected[i], "%s %s: element %zu is %lld, not %lld", maximum ? "argmax" : "argmin",
                    c.name().c_str(), i, (long long)out[i], (long long)expected[i]);
    }
  }
}

void test_truth_and_integers() {
  for (const Case& c : kCases) {
    std::vector<uint8_t> x(c.inputs());
    for (size_t i = 0; i < x.size(); i++) x[i] = uint8_t((i * 2654435761u >> 7) % 5 == 0);
    std::vector<size_t> at = output_positions(c.shape, c.reduced());
    size_t n = product(c.out_shape());
    std::vector<int64_t> sums(n, 0), counts(n, 0), got(n, -1);
    for (size_t i = 0; i < x.size(); i++) sums[at[i]] += x[i], counts[at[i]]++;
    std::vector<uint8_t> truth(n, 9);
    check::Tensor in = check::Tensor::dense(x.data(), c.shape, TPK_BOOL);
    check::call("any", {in}, one(truth.data(), c.out_shape(), TPK_BOOL),
                {check::integers(c.dims), check::boolean(false)});
    for (size_t i = 0; i < n; i++) check::that(truth[i] == (sums[i] > 0), "any %s element %zu", c.name().c_str(), i);
    check::call("all", {in}, one(truth.data(), c.out_shape(), TPK_BOOL),
                {check::integers(c.dims), check::boolean(false)});
    for (size_t i = 0; i < n; i++)
      check::that(truth[i] == (sums[i] == counts[i]), "all %s element %zu", c.name().c_str(), i);
    check::call("sum", {in}, one(got.data(), c.out_shape(), TPK_I64),
                {check::integers(c.dims), check::boolean(false), check::none()});
    for (size_t i = 0; i < n; i++) check::that(got[i] == sums[i], "sum of bool %s element %zu", c.name().c_str(), i);
    std::vector<int32_t> ones(c.inputs());
    for (size_t i = 0; i < ones.size(); i++) ones[i] = x[i] ? -1 : 1;
    check::call("prod", one(ones.data(), c.shape, TPK_I32), one(got.data(), c.out_shape(), TPK_I64),
                {c.dims.size() == 1 ? check::integer(c.dims[0]) : check::integers(c.dims), check::boolean(false),
                 check::none()});
    for (size_t i = 0; i < n; i++) check::that(got[i] == (sums[i] % 2 ? -1 : 1), "prod %s element %zu",
                                               c.name().c_str(), i);
  }
  float big[4] = {1e30f, 1e30f, 1e-30f, 2e-30f}, out = 0;
  check::call("prod", one(big, {4}, TPK_F32), one(&out, {}, TPK_F32),
              {check::none(), check::boolean(false), check::none()});
  check::that(std::fabs(out - 2.0f) < 1e-6f, "prod forms partial products in double: %g", double(out));
}

// The sum of 10^7 float32 is right to a few units in the last place, and the same bits for any threads and address.
void test_accuracy_and_reproducibility() {
  const size_t n = 10000000;
  std::vector<float> x = check::random_vector<float>(n + 1, 4);
  for (float& v : x) v = v * 0.5f + 0.6f;
  for (const Ints& shape : {Ints{int64_t(n)}, Ints{int64_t(n) / 100, 100}, Ints{100, int64_t(n) / 100}}) {
    const Ints dims = {0};
    const size_t outputs = n / size_t(shape[0]);
    std::vector<double> expected(outputs, 0.0);
    for (size_t i = 0; i < n; i++) expected[i % outputs] += double(x[i]);
    std::vector<float> first(outputs), again(outputs);
    Ints out_shape = shape.size() == 1 ? Ints{} : Ints{shape[1]};
    std::vector<tpk_attr> attrs = {check::integers(dims), check::boolean(false), check::none()};
    tpk_set_num_threads(1);
    check::call("sum", one(x.data(), shape, TPK_F32), one(first.data(), out_shape, TPK_F32), attrs);
    for (size_t i = 0; i < outputs; i++)
      check::that(std::fabs(first[i] - expected[i]) <= 3.6e-7 * expected[i], "sum of %zu: %.9g, not %.9g",
                  n / outputs, double(first[i]), expected[i]);
    tpk_set_num_threads(3);
    check::call("sum", one(x.data(), shape, TPK_F32), one(again.data(), out_shape, TPK_F32), attrs);
    check::that(!memcmp(first.data(), again.data(), outputs * sizeof(float)), "sum depends on the threads");
    std::memmove(x.data() + 1, x.data(), n * sizeof(float));
    check::call("sum", one(x.data() + 1, shape, TPK_F32), one(again.data(), out_shape, TPK_F32), attrs);
    check::that(!memcmp(first.data(), again.data(), outputs * sizeof(float)), "sum depends on the alignment");
    std::memmove(x.data(), x.data() + 1, n * sizeof(float));
  }
}

template <class T, class Out> void test_scans(int dtype, int out_dtype, double tolerance) {
  for (const Case& c : kCases) {
    if (c.dims.size() != 1) continue;
    std::vector<T> x(c.inputs());
    std::vector<double> random = check::random_vector<double>(c.inputs(), 5);
    for (size_t i = 0; i < x.size(); i++) x[i] = T(random[i] * 3);
    std::vector<size_t> at = output_positions(c.shape, c.reduced());
    std::vector<double> running(product(c.out_shape()), 0.0);
    std::vector<Out> out(x.size(), Out(-7));
    int status = check::call("cumsum", one(x.data(), c.shape, dtype), one(out.data(), c.shape, out_dtype),
                             {check::integer(c.dims[0]), check::none()});
    check::that(status == TPK_OK, "cumsum %s: status %d", c.name().c_str(), status);
    for (size_t i = 0; i < x.size(); i++) {
      running[at[i]] += double(x[i]);
      check::that(std::fabs(double(out[i]) - running[at[i]]) <= tolerance * (1 + std::fabs(running[at[i]])),
                  "cumsum %s: element %zu is %g, not %g", c.name().c_str(), i, double(out[i]), running[at[i]]);
    }
    for (size_t i = 0; i < x.size(); i++) x[i] = T(random[i] > 0 ? 1 : -1);
    for (double& r : running) r = 1;
    check::call("cumprod", one(x.data(), c.shape, dtype), one(out.data(), c.shape, out_dtype),
                {check::integer(c.dims[0]), check::none()});
    for (size_t i = 0; i < x.size(); i++) {
      running[at[i]] *= double(x[i]);
      check::that(double(out[i]) == running[at[i]], "cumprod %s: element %zu", c.name().c_str(), i);
    }
  }
}

void test_refusals() {
  float x[4] = {}, out[4] = {-7, -7, -7, -7};
  std::vector<tpk_attr> attrs = {check::integers({}), check::boolean(false), check::none()};
  check::that(check::call("sum", one(x, {4}, TPK_C64), one(out, {}, TPK_C64), attrs) == TPK_UNSUPPORTED, "complex sum");
  check::that(check::call("sum", one(x, {4}, TPK_F32), one(out, {}, TPK_I64), attrs) == TPK_UNSUPPORTED,
              "float to int");
  check::that(check::call("amax", one(x, {0}, TPK_F32), one(out, {}, TPK_F32), attrs) == TPK_UNSUPPORTED, "empty amax");
  check::that(out[0] == -7, "a refused call wrote something");
}

int run() {
  test_sums<float>(TPK_F32, 2.5e-7);
  test_sums<double>(TPK_F64, 1e-12);
  for (bool with_nan : {false, true}) {
    test_extremes<float>(TPK_F32, with_nan);
    test_extremes<double>(TPK_F64, with_nan);
    test_positions<float>(TPK_F32, with_nan);
    test_positions<double>(TPK_F64, with_nan);
  }
  test_extremes<int64_t>(TPK_I64, false);
  test_extremes<int32_t>(TPK_I32, false);
  test_extremes<int8_t>(TPK_I8, false);
  test_positions<int64_t>(TPK_I64, false);
  test_positions<int16_t>(TPK_I16, false);
  test_truth_and_integers();
  test_accuracy_and_reproducibility();
  test_scans<float, float>(TPK_F32, TPK_F32, 2e-7);
  test_scans<double, double>(TPK_F64, TPK_F64, 1e-12);
  test_scans<int32_t, int64_t>(TPK_I32, TPK_I64, 0);
  test_refusals();
  return check::finish("reduce");
}

}  // namespace

int main() { return check::each_isa(run); }
