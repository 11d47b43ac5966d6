// Elementwise kernels against plain double or integer arithmetic: every layout, every dtype, special values, errors.
#include <functional>

#include "array.h"
#include "each_isa.h"

namespace {

using check::Array;
using check::Layout;
using check::that;

const int kFloats[] = {TPK_F32, TPK_F64, TPK_F16, TPK_BF16};
const int kIntegers[] = {TPK_I64, TPK_I32, TPK_I16, TPK_I8, TPK_U8};
const std::vector<int64_t> kShapes[] = {{}, {1}, {7}, {3, 5}, {33, 70}, {600, 3}, {4, 3, 2, 5}, {2, 0, 3}, {70001}};

bool is_float(int dtype) { return dtype >= TPK_F16; }
double epsilon(int dtype) {
  return dtype == TPK_F64 ? 4e-16 : dtype == TPK_F32 ? 3e-7 : dtype == TPK_F16 ? 1e-3 : 8e-3;
}
// `size`: of the terms that may cancel
bool close(double value, double exact, int dtype, double size = 0.25) {
  if (std::isnan(exact)) return std::isnan(value);
  if (!is_float(dtype) || std::isinf(exact)) return value == exact;
  return std::fabs(value - exact) <= epsilon(dtype) * std::fmax(std::fabs(exact), size);
}

typedef std::function<double(const double*)> Exact;

// Small values that all dtypes hold exactly.
double sample(int dtype, int64_t i, int which) {
  double value = static_cast<double>((i * 37 + which * 11 + 5) % 23) - (dtype == TPK_U8 ? 0 : 11);
  if (dtype == TPK_BOOL) return static_cast<int64_t>(value) & 1;
  return is_float(dtype) ? value * 0.25 : value;
}

struct Case {
  const char* name;
  int inputs;
  Exact exact;
  std::vector<tpk_attr> attributes;
  bool nonzero;  // the last input has no zeros
};

void compare(const Case& c, int dtype, int out_dtype, const std::vector<int64_t>& shape, const Layout* layouts,
             Layout out_layout) {
  std::vector<Array> in;
  for (int k = 0; k < c.inputs; k++) {
    in.emplace_back(dtype, shape, layouts[k]);
    bool avoid_zero = c.nonzero && k == c.inputs - 1;
    in.back().fill([&](int64_t i) {
      double value = sample(dtype, i, k);
      return avoid_zero && value == 0 ? 3 : value;
    });
  }
  Array out(out_dtype, shape, out_layout);
  std::vector<check::Tensor> tensors;
  for (Array& array : in) tensors.push_back(array.tensor());
  int status = check::call(c.name, tensors, {out.tensor()}, c.attributes);
  that(status == TPK_OK, "%s dtype %d: status %d", c.name, dtype, status);
  for (int64_t i = 0; i < out.count() && status == TPK_OK; i++) {
    double values[4];
    for (int k = 0; k < c.inputs; k++) values[k] = in[static_cast<size_t>(k)].get(i);
    double exact = c.exact(values);
    that(close(out.get(i), exact, out_dtype), "%s dtype %d at %d of %d: (%g, %g) gives %.9g, not %.9g", c.name, dtype,
         static_cast<int>(i), static_cast<int>(out.count()), values[0], c.inputs > 1 ? values[1] : 0,
         out.get(i), exact);
  }
}

// Dense operands in every shape; every combination of layouts in a few.
void sweep(const Case& c, int dtype, int out_dtype) {
  const Layout dense[3] = {Layout::dense, Layout::dense, Layout::dense};
  for (const std::vector<int64_t>& shape : kShapes) compare(c, dtype, out_dtype, shape, dense, Layout::dense);
  int turn = 0;
  for (Layout first : check::all_layouts)
    for (Layout second : check::all_layouts) {
      if (c.inputs == 1 && second != Layout::dense) continue;
      const Layout layouts[3] = {first, second, check::all_layouts[turn % 7]};
      const Layout outs[] = {Layout::dense, Layout::reversed_axes, Layout::gaps, Layout::backwards};
      for (const std::vector<int64_t>& shape : {std::vector<int64_t>{33, 70}, {90, 3}, {5, 4, 3}})
        compare(c, dtype, out_dtype, shape, layouts, outs[turn++ % 4]);
    }
}

double python_mod(double x, double y) {
  double rest = std::fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

#define X values[0]
#define Y values[1]
#define Z values[2]
#define EXACT(expression) [](const double* values) -> double { return expression; }

void test_float_operators() {
  const Case cases[] = {
    {"neg", 1, EXACT(-X), {}, false}, {"abs", 1, EXACT(std::fabs(X)), {}, false},
    {"square", 1, EXACT(X * X), {}, false},
    {"sign", 1, EXACT((X > 0) - (X < 0)), {}, false}, {"relu", 1, EXACT(X < 0 ? 0 : X), {}, false},
    {"floor", 1, EXACT(std::floor(X)), {}, false}, {"round", 1, EXACT(std::nearbyint(X)), {}, false},
    {"reciprocal", 1, EXACT(1 / X), {}, true}, {"exp", 1, EXACT(std::exp(X)), {}, false},
    {"add", 2, EXACT(X + Y), {}, false}, {"sub", 2, EXACT(X - Y), {}, false}, {"mul", 2, EXACT(X * Y), {}, false},
    {"div", 2, EXACT(X / Y), {}, true}, {"maximum", 2, EXACT(std::fmax(X, Y)), {}, false},
    {"minimum", 2, EXACT(std::fmin(X, Y)), {}, false}, {"floor_div", 2, EXACT(std::floor(X / Y)), {}, true},
    {"remainder", 2, EXACT(python_mod(X, Y)), {}, true}, {"fmod", 2, EXACT(std::fmod(X, Y)), {}, true},
    {"atan2", 2, EXACT(std::atan2(X, Y)), {}, true}, {"relu_backward", 2, EXACT(Y > 0 ? X : 0), {}, false},
    {"sigmoid_backward", 2, EXACT(X * (1 - Y) * Y), {}, false},
    {"tanh_backward", 2, EXACT(X * (1 - Y * Y)), {}, false},
    {"swiglu", 2, EXACT(X / (1 + std::exp(-X)) * Y), {}, false},
    {"axpy", 2, EXACT(X + 0.5 * Y), {check::real(0.5)}, false},
    {"addcmul", 3, EXACT(X + 0.5 * Y * Z), {check::real(0.5)}, false},
    {"addcdiv", 3, EXACT(X + 0.5 * (Y / Z)), {check::real(0.5)}, true}, {"fma", 3, EXACT(X * Y + Z), {}, false},
    {"lerp", 3, EXACT(X + Z * (Y - X)), {}, false},
    {"clamp_scalar", 1, EXACT(X < -1 ? -1 : X > 2 ? 2 : X), {check::real(-1), check::real(2)}, false},
    {"clamp_scalar", 1, EXACT(X > 2 ? 2 : X), {check::none(), check::real(2)}, false},
  };
  for (const Case& c : cases)
    for (int dtype : kFloats) sweep(c, dtype, dtype);
}

void test_integer_operators() {
  const Case cases[] = {
    {"add", 2, EXACT(X + Y), {}, false}, {"mul", 2, EXACT(X * Y / 1), {}, false},
    {"maximum", 2, EXACT(std::fmax(X, Y)), {}, false}, {"minimum", 2, EXACT(std::fmin(X, Y)), {}, false},
    {"floor_div", 2, EXACT(std::floor(X / Y)), {}, true}, {"remainder", 2, EXACT(python_mod(X, Y)), {}, true},
    {"fmod", 2, EXACT(std::fmod(X, Y)), {}, true}, {"bitwise_and", 2, EXACT(int64_t(X) & int64_t(Y)), {}, false},
    {"bitwise_or", 2, EXACT(int64_t(X) | int64_t(Y)), {}, false},
    {"bitwise_xor", 2, EXACT(int64_t(X) ^ int64_t(Y)), {}, false}, {"abs", 1, EXACT(std::fabs(X)), {}, false},
    {"sign", 1, EXACT((X > 0) - (X < 0)), {}, false},
  };
  for (const Case& c : cases)
    for (int dtype : kIntegers)
      if (std::strcmp(c.name, "mul") || dtype > TPK_I8) sweep(c, dtype, dtype);
  for (int dtype : {TPK_I64, TPK_I32, TPK_I16, TPK_I8}) {
    sweep({"sub", 2, EXACT(X - Y), {}, false}, dtype, dtype);
    sweep({"neg", 1, EXACT(-X), {}, false}, dtype, dtype);
    sweep({"bitwise_not", 1, EXACT(-X - 1), {}, false}, dtype, dtype);
  }
  const Case logic[] = {{"add", 2, EXACT(X != 0 || Y != 0), {}, false}, {"mul", 2, EXACT(X != 0 && Y != 0), {}, false},
                        {"bitwise_xor", 2, EXACT((X != 0) != (Y != 0)), {}, false},
                        {"bitwise_not", 1, EXACT(X == 0), {}, false}};
  for (const Case& c : logic) sweep(c, TPK_BOOL, TPK_BOOL);
}

void test_comparisons() {
  const Case cases[] = {
    {"eq", 2, EXACT(X == Y), {}, false}, {"ne", 2, EXACT(X != Y), {}, false}, {"lt", 2, EXACT(X < Y), {}, false},
    {"le", 2, EXACT(X <= Y), {}, false}, {"gt", 2, EXACT(X > Y), {}, false}, {"ge", 2, EXACT(X >= Y), {}, false},
    {"logical_and", 2, EXACT(X != 0 && Y != 0), {}, false}, {"logical_or", 2, EXACT(X != 0 || Y != 0), {}, false},
    {"logical_xor", 2, EXACT((X != 0) != (Y != 0)), {}, false}, {"logical_not", 1, EXACT(X == 0), {}, false},
  };
  for (const Case& c : cases)
    for (int dtype : {TPK_F32, TPK_F64, TPK_BF16, TPK_I64, TPK_I32, TPK_U8, TPK_I8, TPK_BOOL})
      sweep(c, dtype, TPK_BOOL);
}

// ---- one-dimensional checks with chosen values ----

template <class T>
std::vector<T> apply(const char* name, int dtype, std::vector<std::vector<T>> inputs, int expected = 0,
                     std::vector<tpk_attr> attributes = {}) {
  std::vector<T> out(inputs[0].size());
  std::vector<int64_t> shape = {static_cast<int64_t>(out.size())};
  std::vector<check::Tensor> in;
  for (std::vector<T>& values : inputs) in.push_back(check::Tensor::dense(values.data(), shape, dtype));
  int status = check::call(name, in, {check::Tensor::dense(out.data(), shape, dtype)}, attributes);
  that(status == expected, "%s: status %d, not %d", name, status, expected);
  return out;
}
template <class T> void expect(const char* name, int dtype, std::vector<std::vector<T>> inputs, std::vector<T> exact) {
  std::vector<T> out = apply<T>(name, dtype, inputs);
  for (size_t i = 0; i < out.size(); i++) {
    double value = static_cast<double>(out[i]), wanted = static_cast<double>(exact[i]);
    bool same = out[i] == exact[i] && std::signbit(value) == std::signbit(wanted);
    if (std::isnan(wanted)) same = std::isnan(value);
    that(same, "%s at %zu gives %g, not %g", name, i, value, wanted);
  }
}

void test_special_integers() {
  const int64_t low = INT64_MIN;
  const int32_t low32 = INT32_MIN;
  expect<int64_t>("floor_div", TPK_I64, {{low, 7, -7, 7, -7}, {-1, 2, 2, -2, -2}}, {low, 3, -4, -4, 3});
  expect<int64_t>("remainder", TPK_I64, {{low, 7, -7, 7, -7}, {-1, 3, 3, -3, -3}}, {0, 1, 2, -2, -1});
  expect<int32_t>("fmod", TPK_I32, {{low32, 7, -7}, {-1, 3, 3}}, {0, 1, -1});
  expect<int32_t>("floor_div", TPK_I32, {{low32}, {-1}}, {low32});
  expect<int32_t>("neg", TPK_I32, {{low32, 1}}, {low32, -1});
  expect<int64_t>("abs", TPK_I64, {{low, -1}}, {low, 1});
  expect<int32_t>("add", TPK_I32, {{INT32_MAX}, {1}}, {low32});
  expect<int64_t>("pow", TPK_I64, {{2, -2, -1, 1, 2, 0, 3}, {10, 3, -3, -5, -1, 0, 39}},
                  {1024, -8, -1, 1, 0, 1, 4052555153018976267ll});
  expect<int64_t>("shift_left", TPK_I64, {{1, 1, -1, 5}, {3, 64, 63, 0}}, {8, 0, low, 5});
  expect<int64_t>("shift_right", TPK_I64, {{-8, -8, 8, 5}, {1, 64, 70, 0}}, {-4, -1, 0, 5});
  expect<uint8_t>("shift_right", TPK_U8, {{200, 200, 200}, {1, 8, 7}}, {100, 0, 1});
  expect<int8_t>("shift_right", TPK_I8, {{-100, -100}, {1, 9}}, {-50, -1});
  for (const char* name : {"floor_div", "remainder", "fmod"}) {
    apply<int64_t>(name, TPK_I64, {{1, 2, 3}, {1, 0, 2}}, TPK_ERROR);
    that(check::error_text == "division by zero", "the text is '%s'", check::error_text.c_str());
  }
}

void test_special_floats() {
  const float inf = INFINITY, nan = NAN;
  expect<float>("maximum", TPK_F32, {{nan, 1, 2, -inf}, {1, nan, 3, 5}}, {nan, nan, 3, 5});
  expect<float>("minimum", TPK_F32, {{nan, 1, 2, -inf}, {1, nan, 3, 5}}, {nan, nan, 2, -inf});
  expect<float>("floor_div", TPK_F32, {{inf, 1, -1, 0, 5, -5}, {2, inf, inf, 0, 0, 0}}, {nan, 0, -1, nan, inf, -inf});
  expect<float>("remainder", TPK_F32, {{inf, 1, -1, 5}, {2, inf, inf, 0}}, {nan, 1, inf, nan});
  expect<double>("fmod", TPK_F64, {{1e17, -7}, {3, 3}}, {std::fmod(1e17, 3), -1});
  expect<float>("round", TPK_F32, {{0.5f, 1.5f, -0.5f, -2.5f}}, {0, 2, -0.0f, -2});
  expect<float>("relu", TPK_F32, {{nan, -1, 2, inf, -inf}}, {nan, 0, 2, inf, 0});
  expect<float>("abs", TPK_F32, {{-0.0f, nan, -inf}}, {0, nan, inf});
  expect<float>("neg", TPK_F32, {{0, -0.0f, inf}}, {-0.0f, 0, -inf});
  expect<float>("pow", TPK_F32, {{2, -2, 0, -8, nan, 0}, {3, 3, 0, 0.5f, 0, -1}}, {8, -8, 1, nan, 1, inf});
  expect<float>("digamma", TPK_F32, {{0, -0.0f, -2}}, {-inf, inf, nan});
  expect<float>("erfinv", TPK_F32, {{1, -1, 2, -0.0f}}, {inf, -inf, nan, -0.0f});
  std::vector<float> x = {nan, inf, -inf, 1};
  for (const char* name : {"isnan", "isinf", "isfinite"}) {
    uint8_t out[4];
    check::call(name, {check::Tensor::dense(x.data(), {4}, TPK_F32)}, {check::Tensor::dense(out, {4}, TPK_BOOL)});
    for (int i = 0; i < 4; i++) {
      float v = x[static_cast<size_t>(i)];
      bool exact = name[2] == 'n' ? std::isnan(v) : name[2] == 'i' ? std::isinf(v) : std::isfinite(v);
      that(out[i] == exact, "%s(%g) is %d", name, double(v), out[i]);
    }
  }
  std::vector<tpk_attr> crossed = {check::real(1), check::real(-1)};
  std::vector<float> bounded = apply<float>("clamp_scalar", TPK_F32, {{nan, 3, -3}}, 0, crossed);
  that(std::isnan(bounded[0]) && bounded[1] == -1 && bounded[2] == -1, "clamp with min > max gives max");
}

// Every pair of values that IEEE 754 gives a rule for, and ordinary ones.
void test_pairs_of_special_floats() {
  const std::vector<float> values = {0, -0.0f, 1, -1, 2, -2, 3, -3, 0.5f, -0.5f, INFINITY, -INFINITY, NAN, 1e30f,
                                     -1e30f, 16777216, 16777215, -16777215, 2.5f, 1e-40f, -1e-40f, 101, -101, 0x1p104f};
  std::vector<float> x, y, out;
  for (float first : values)
    for (float second : values) x.push_back(first), y.push_back(second);
  for (const char* name : {"pow", "atan2", "fmod"}) {
    out = apply<float>(name, TPK_F32, {x, y});
    for (size_t i = 0; i < x.size(); i++) {
      double exact = name[0] == 'p' ? std::pow(double(x[i]), double(y[i]))
                     : name[0] == 'a' ? std::atan2(double(x[i]), double(y[i])) : std::fmod(double(x[i]), double(y[i]));
      float single = static_cast<float>(exact);
      bool same = std::isnan(exact) ? std::isnan(out[i])
                                    : (out[i] == single || std::fabs(out[i] - exact) <= 3e-7 * std::fabs(exact)) &&
                                          std::signbit(out[i]) == std::signbit(single);
      that(same, "%s(%g, %g) = %g, not %g", name, double(x[i]), double(y[i]), double(out[i]), exact);
    }
  }
}

// A scalar exponent that has a short form, and one that has not.
void test_pow_scalar() {
  std::vector<float> x = check::random_vector<float>(1000, 3), out(1000);
  for (float exponent : {2.0f, 3.0f, -1.0f, 0.5f, 2.5f, 0.0f}) {
    check::call("pow", {check::Tensor::dense(x.data(), {1000}, TPK_F32), check::Tensor::dense(&exponent, {}, TPK_F32)},
                {check::Tensor::dense(out.data(), {1000}, TPK_F32)});
    for (size_t i = 0; i < x.size(); i++)
      that(close(out[i], std::pow(double(x[i]), double(exponent)), TPK_F32), "pow(%g, %g) = %g", double(x[i]),
           double(exponent), double(out[i]));
  }
}

// The functions that take the C library's word, and the two that have no library function.
void test_library_functions() {
  const Case cases[] = {
    {"tan", 1, EXACT(std::tan(X)), {}, false}, {"sinh", 1, EXACT(std::sinh(X)), {}, false},
    {"cosh", 1, EXACT(std::cosh(X)), {}, false}, {"atan", 1, EXACT(std::atan(X)), {}, false},
    {"asinh", 1, EXACT(std::asinh(X)), {}, false}, {"erfc", 1, EXACT(std::erfc(X)), {}, false},
    {"acos", 1, EXACT(std::acos(X)), {}, false}, {"asin", 1, EXACT(std::asin(X)), {}, false},
    {"atanh", 1, EXACT(std::atanh(X)), {}, false}, {"acosh", 1, EXACT(std::acosh(X)), {}, false},
  };
  const Layout layouts[1] = {Layout::dense};
  for (const Case& c : cases)
    for (int dtype : {TPK_F32, TPK_F64}) compare(c, dtype, dtype, {33, 70}, layouts, Layout::dense);
  std::vector<double> y, back;
  for (int i = -999; i <= 999; i++) y.push_back(i / 1000.0);
  y.push_back(1 - 1e-12), y.push_back(1e-300);
  back = apply<double>("erfinv", TPK_F64, {y});
  for (size_t i = 0; i < y.size(); i++)
    that(std::fabs(std::erf(back[i]) - y[i]) <= 4e-16 * std::fabs(y[i]) + 1e-300, "erf(erfinv(%.17g)) = %.17g", y[i],
         std::erf(back[i]));
  std::vector<double> x = {1, 0.5, 10, 100, -0.5, 1e9, 1e-3};
  std::vector<double> exact = {-0.57721566490153286, -1.96351002602142348, 2.25175258906672111, 4.60016185273808740,
                               0.03648997397857652, 20.72326583644641116, -1000.5755719318103};
  std::vector<double> psi = apply<double>("digamma", TPK_F64, {x});
  for (size_t i = 0; i < x.size(); i++)
    that(std::fabs(psi[i] - exact[i]) <= 4e-15 * std::fmax(1, std::fabs(exact[i])), "digamma(%g) = %.17g", x[i],
         psi[i]);
}

void test_where() {
  int turn = 0;
  for (int dtype : {TPK_F32, TPK_F64, TPK_I64, TPK_U8, TPK_F16, TPK_C128})
    for (Layout condition_layout : check::all_layouts)
      for (Layout x_layout : check::all_layouts) {
        const std::vector<int64_t> shape = {9, 70};
        Array condition(TPK_BOOL, shape, condition_layout), x(dtype, shape, x_layout);
        Array y(dtype, shape, check::all_layouts[turn++ % 7]), out(dtype, shape, Layout::dense);
        condition.fill([](int64_t i) { return (i * 7) % 3 == 0; });
        x.fill([](int64_t i) { return i % 100; }), y.fill([](int64_t i) { return 100 + i % 20; });
        int status = check::call("where", {condition.tensor(), x.tensor(), y.tensor()}, {out.tensor()});
        that(status == 0, "where: status %d", status);
        for (int64_t i = 0; i < out.count(); i++)
          that(out.get(i) == (condition.get(i) != 0 ? x.get(i) : y.get(i)), "where dtype %d at %d", dtype, int(i));
      }
}

void test_swiglu_backward() {
  const std::vector<int64_t> shape = {40, 51};
  for (int dtype : {TPK_F32, TPK_F64, TPK_BF16}) {
    Array grad(dtype, shape, Layout::dense), gate(dtype, shape, Layout::reversed_axes), up(dtype, shape, Layout::dense);
    Array dgate(dtype, shape, Layout::dense), dup(dtype, shape, Layout::dense);
    grad.fill([&](int64_t i) { return sample(dtype, i, 0); });
    gate.fill([&](int64_t i) { return sample(dtype, i, 1); });
    up.fill([&](int64_t i) { return sample(dtype, i, 2); });
    int status =
      check::call("swiglu_backward", {grad.tensor(), gate.tensor(), up.tensor()}, {dgate.tensor(), dup.tensor()});
    that(status == 0, "swiglu_backward: status %d", status);
    for (int64_t i = 0; i < grad.count(); i++) {
      double x = gate.get(i), s = 1 / (1 + std::exp(-x));
      double above = grad.get(i) * up.get(i), exact = above * (s + x * s * (1 - s));
      that(close(dgate.get(i), exact, dtype, std::fabs(above)), "dgate dtype %d at %d", dtype, int(i));
      that(close(dup.get(i), grad.get(i) * x * s, dtype), "dup at %d", int(i));
    }
  }
}

void test_in_place() {
  std::vector<float> x = check::random_vector<float>(5000, 1), y = x;
  check::Tensor t = check::Tensor::dense(x.data(), {5000}, TPK_F32);
  check::call("add", {t, t}, {t});
  check::call("exp", {t}, {t});
  for (size_t i = 0; i < x.size(); i++) that(close(x[i], std::exp(2 * double(y[i])), TPK_F32), "in place at %zu", i);
}

int run() {
  test_float_operators();
  test_integer_operators();
  test_comparisons();
  test_special_integers();
  test_special_floats();
  test_pairs_of_special_floats();
  test_pow_scalar();
  test_library_functions();
  test_where();
  test_swiglu_backward();
  test_in_place();
  return check::finish("elementwise");
}

}  // namespace

int main() { return check::each_isa(run); }
