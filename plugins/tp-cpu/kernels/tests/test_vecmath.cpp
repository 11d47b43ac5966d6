// The float32 math kernels against the C library's double: error in units in the last place, special values, layouts of
// the input that leave a tail behind the vectors.
#include <functional>

#include "check.h"
#include "each_isa.h"

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Function {
  const char* name;
  double (*exact)(double);
  double low, high;  // domain that is sampled
  double limit;      // ulp
};

const Function functions[] = {
  {"exp", std::exp, -104, 88.8, 1.5},          {"exp2", std::exp2, -150, 128, 1.5},
  {"expm1", std::expm1, -104, 88.8, 2.0},      {"log", std::log, 0, 3.5e38, 1.5},
  {"log2", std::log2, 0, 3.5e38, 2.5},         {"log10", std::log10, 0, 3.5e38, 2.5},
  {"log1p", std::log1p, -1, 3.5e38, 1.5},      {"tanh", std::tanh, -3.5e38, 3.5e38, 1.5},
  {"erf", std::erf, -3.5e38, 3.5e38, 1.5},     {"sigmoid", sigmoid, -87, 3.5e38, 2.5},
  {"sin", std::sin, -3.5e38, 3.5e38, 1.6},     {"cos", std::cos, -3.5e38, 3.5e38, 1.6},
  {"tan", std::tan, -3.5e38, 3.5e38, 3.5},      {"atan", std::atan, -3.5e38, 3.5e38, 1.6},
  {"asin", std::asin, -1, 1, 2.5},             {"acos", std::acos, -1, 1, 1.5},
  {"sinh", std::sinh, -89.5, 89.5, 4.0},       {"cosh", std::cosh, -89.5, 89.5, 3.5},
  {"erfc", std::erfc, -3.5e38, 9.1, 4.0},      {"sqrt", std::sqrt, 0, 3.5e38, 0.51},
  {"floor", std::floor, -3.5e38, 3.5e38, 0},   {"round", std::nearbyint, -3.5e38, 3.5e38, 0},
};

// Distance in units in the last place of the exact value as a float32.
double ulp_error(float value, double exact) {
  if (std::isnan(exact) || std::isnan(value)) return std::isnan(exact) && std::isnan(value) ? 0 : 1e9;
  if (static_cast<float>(exact) == value) {
    if (std::isinf(value)) return 0;
  } else if (std::isinf(value) || std::isinf(static_cast<float>(exact))) {
    // the last finite value and infinity are neighbours
    double other = std::isinf(value) ? exact : value;
    return std::fabs(other) > 0x1.fffffcp127 ? 1 : 1e9;
  }
  int exponent;
  std::frexp(exact, &exponent);
  if (exponent < -125) exponent = -125;
  return std::fabs(value - exact) / std::ldexp(1.0, exponent - 24);
}

std::vector<float> samples(const Function& f) {
  std::vector<float> x;
  check::Random random;
  for (uint32_t exponent = 0; exponent < 255; exponent++)
    for (int i = 0; i < 1500; i++)
      for (uint32_t sign = 0; sign < 2; sign++) {
        uint32_t bits = sign << 31 | exponent << 23 | static_cast<uint32_t>(random.next() >> 41);
        float value;
        std::memcpy(&value, &bits, 4);
        x.push_back(value);
      }
  for (int i = 0; i < 200000; i++) {
    x.push_back(static_cast<float>(random.uniform() * 110));
    x.push_back(static_cast<float>(1 + random.uniform() * 0.9));
  }
  std::vector<float> inside;
  for (float value : x)
    if (value >= f.low && value <= f.high) inside.push_back(value);
  inside.push_back(0.0f), inside.push_back(INFINITY), inside.push_back(NAN);
  if (f.low < 0) inside.push_back(-0.0f), inside.push_back(-INFINITY);
  return inside;
}

void apply(const char* name, std::vector<float>& x, std::vector<float>& y) {
  std::vector<int64_t> shape = {static_cast<int64_t>(x.size())};
  int status = check::call(name, {check::Tensor::dense(x.data(), shape, TPK_F32)},
                           {check::Tensor::dense(y.data(), shape, TPK_F32)});
  check::that(status == 0, "%s: status %d", name, status);
}

void test_accuracy(const Function& f) {
  std::vector<float> x = samples(f), y(x.size());
  apply(f.name, x, y);
  double worst = 0;
  float at = 0;
  for (size_t i = 0; i < x.size(); i++) {
    double exact = f.exact(x[i]);
    double error = ulp_error(y[i], exact);
    if (error > worst) worst = error, at = x[i];
    if (exact == 0)
      check::that(std::signbit(exact) == std::signbit(y[i]), "%s(%a): the zero has the wrong sign", f.name,
                  double(x[i]));
  }
  std::fprintf(stderr, "%s %.2f  ", f.name, worst);
  check::that(worst <= f.limit, "%s(%a) is off by %.3f ulp, more than %.2f", f.name, double(at), worst, f.limit);
}

// Every float32 from 2^-30 to 2^7 for the function that all others lean on.
void test_exp_exhaustively() {
  const uint32_t begin = 0x30800000u, end = 0x43000000u, chunk = 1u << 20;
  std::vector<float> x(chunk), y(chunk);
  double worst = 0;
  for (uint32_t at = begin; at < end; at += chunk) {
    for (uint32_t i = 0; i < chunk; i++) {
      uint32_t bits = at + i < end ? at + i : end;
      std::memcpy(&x[i], &bits, 4);
    }
    apply("exp", x, y);
    for (uint32_t i = 0; i < chunk; i++)
      if (x[i] < 88.7f) worst = std::fmax(worst, ulp_error(y[i], std::exp(double(x[i]))));
  }
  std::fprintf(stderr, "exp everywhere %.2f  ", worst);
  check::that(worst <= 1.5, "exp is off by %.3f ulp", worst);
}

// The result of an element does not depend on where it stands: vector body, tail, any length.
void test_tails() {
  std::vector<float> x = check::random_vector<float>(1000, 7), whole(1000), part(1000);
  for (const Function& f : functions) {
    if (f.low >= 0)
      for (float& value : x) value = std::fabs(value);
    apply(f.name, x, whole);
    for (size_t n = 1; n < 70; n++) {
      std::vector<float> head(x.begin(), x.begin() + n), result(n);
      apply(f.name, head, result);
      check::that(!std::memcmp(result.data(), whole.data(), n * 4), "%s: the first %d elements differ", f.name, int(n));
    }
  }
}

struct Activation {
  const char *name, *mode;
  std::function<double(double)> exact;
  double tolerance;  // times max(1, |x|)
};

double cdf(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }

void test_activations() {
  const double k = std::sqrt(2 / M_PI);
  auto gelu_tanh = [k](double x) { return 0.5 * x * (1 + std::tanh(k * (x + 0.044715 * x * x * x))); };
  auto slope = [](std::function<double(double)> f) {
    return [f](double x) { return (f(x + 1e-5) - f(x - 1e-5)) / 2e-5; };
  };
  auto silu = [](double x) { return x * sigmoid(x); };
  const Activation forward[] = {
    {"gelu", "none", [](double x) { return x * cdf(x); }, 1.5e-7},
    {"gelu", "tanh", gelu_tanh, 1.5e-7},
    {"silu", "", silu, 1.5e-7},
  };
  const Activation backward[] = {
    {"gelu_backward", "none", [](double x) { return cdf(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI); }, 3e-7},
    {"gelu_backward", "tanh", slope(gelu_tanh), 3e-7},
    {"silu_backward", "", slope(silu), 3e-7},
  };
  std::vector<float> x, y, grad;
  for (int i = -200000; i <= 200000; i++) x.push_back(static_cast<float>(i) * 1e-4f);
  for (float value : {-1e30f, -1000.0f, -90.0f, -0.0f, 90.0f, 1e30f}) x.push_back(value);
  y.resize(x.size()), grad.assign(x.size(), 1.0f);
  std::vector<int64_t> shape = {static_cast<int64_t>(x.size())};
  auto tensor = [&](std::vector<float>& v) { return check::Tensor::dense(v.data(), shape, TPK_F32); };
  for (int with_grad = 0; with_grad < 2; with_grad++)
    for (const Activation& a : with_grad ? backward : forward) {
      std::vector<check::Tensor> in = {tensor(x)};
      if (with_grad) in.insert(in.begin(), tensor(grad));
      int status = check::call(a.name, in, {tensor(y)}, {check::text(a.mode)});
      check::that(status == 0, "%s: status %d", a.name, status);
      for (size_t i = 0; i < x.size(); i++) {
        double size = std::fabs(double(x[i]));
        double exact = size > 50 ? (x[i] > 0 ? (with_grad ? 1 : x[i]) : 0) : a.exact(x[i]);
        double bound = a.tolerance * std::fmax(1, with_grad ? 1 : size);
        check::that(std::fabs(y[i] - exact) <= bound, "%s %s(%g) = %.9g, not %.9g", a.name, a.mode, double(x[i]), y[i],
                    exact);
      }
    }
}

int run() {
  for (const Function& f : functions) test_accuracy(f);
  test_exp_exhaustively();
  test_tails();
  test_activations();
  return check::finish("vecmath");
}

}  // namespace

int main() { return check::each_isa(run); }
