// softmax and its kin, rope, layer_norm, rms_norm, cross_entropy and embedding against naive loops in double.
#include "check.h"
#include "each_isa.h"

namespace {

typedef std::vector<int64_t> Ints;
typedef std::vector<double> Doubles;
using check::Tensor;

template <class T> constexpr int kDtype = sizeof(T) == 4 ? TPK_F32 : TPK_F64;
template <class T> constexpr double kTolerance = sizeof(T) == 4 ? 3e-6 : 1e-12;

template <class T> Tensor tensor(std::vector<T>& v, const Ints& shape) {
  return Tensor::dense(v.data(), shape, kDtype<T>);
}
template <class T> Doubles wide(const std::vector<T>& v) { return Doubles(v.begin(), v.end()); }

// A long sum is compared with what its terms add up to in size (`sizes`): cancellation may leave little of it.
template <class T>
void close(const std::vector<T>& got, const Doubles& expected, const std::string& what, const Doubles& sizes = {}) {
  for (size_t i = 0; i < expected.size(); i++) {
    double tolerance = kTolerance<T> * (1 + std::fabs(expected[i]));
    if (!sizes.empty()) tolerance += kTolerance<T> / 200 * sizes[i];
    check::that(std::fabs(double(got[i]) - expected[i]) <= tolerance, "%s: element %zu is %.9g, not %.9g",
                what.c_str(), i, double(got[i]), expected[i]);
  }
}

template <class T> void test_softmax() {
  for (Ints shape : {Ints{}, {1}, {7}, {3, 10}, {5, 17}, {2, 768}, {3, 2500}, {700, 64}, {4, 5, 6}, {2, 300, 3},
                     {2, 9, 200}, {0, 4}, {4, 0}})
    for (int64_t dim = 0; dim < int64_t(shape.empty() ? 1 : shape.size()); dim++) {
      size_t outer = 1, size = 1, inner = 1;
      for (int64_t d =
           0; d < int64_t(shape.size()); d++) (d < dim ? outer : d == dim ? size : inner) *= size_t(shape[d]);
      size_t n = outer * size * inner;
      std::vector<T> x = check::random_vector<T>(n, 1), grad = check::random_vector<T>(n, 2), out(n), dx(n);
      for (T& v : x) v *= 20;
      for (bool logarithm : {false, true}) {
        std::string what = std::string(logarithm ? "log_softmax" : "softmax") + " dim " + std::to_string(dim) + " of " +
                           std::to_string(n);
        int status = check::call(logarithm ? "log_softmax" : "softmax", {tensor(x, shape)}, {tensor(out, shape)},
                                 {check::integer(dim - int64_t(shape.empty() ? 1 : shape.size())), check::none()});
        check::that(status == TPK_OK, "%s: status %d", what.c_str(), status);
        status = check::call(logarithm ? "log_softmax_backward" : "softmax_backward",
                             {tensor(grad, shape), tensor(out, shape)}, {tensor(dx, shape)}, {check::integer(dim)});
        check::that(status == TPK_OK, "%s backward: status %d", what.c_str(), status);
        Doubles expected(n), expected_dx(n);
        for (size_t o = 0; o < outer; o++)
          for (size_t i = 0; i < inner; i++) {
            auto at = [&](size_t r) { return (o * size + r) * inner + i; };
            double top = -1e300, total = 0, along = 0;
            for (size_t r = 0; r < size; r++) top = std::fmax(top, double(x[at(r)]));
            for (size_t r = 0; r < size; r++) total += std::exp(double(x[at(r)]) - top);
            for (size_t r = 0; r < size; r++) {
              double value = double(x[at(r)]) - top - std::log(total);
              expected[at(r)] = logarithm ? value : std::exp(value);
              along += double(grad[at(r)]) * (logarithm ? 1 : expected[at(r)]);
            }
            for (size_t r = 0; r < size; r++) {
              double y = expected[at(r)], g = double(grad[at(r)]);
              expected_dx[at(r)] = logarithm ? g - std::exp(y) * along : y * (g - along);
            }
          }
        close(out, expected, what);
        close(dx, expected_dx, what + " backward");
      }
    }
}

// Heads split from a [batch, time, heads * width] buffer; tables [time, half] and [batch, 1, time, half].
template <class T> void test_rope() {
  for (Ints sizes : {Ints{1, 1, 1, 2}, {2, 5, 3, 16}, {2, 7, 2, 10}, {1, 33, 4, 64}, {3, 2, 1, 34}}) {
    int64_t batch = sizes[0], time = sizes[1], heads = sizes[2], width = sizes[3], half = width / 2;
    size_t n = size_t(batch * time * heads * width), table = size_t(batch * time * half);
    std::vector<T> x = check::random_vector<T>(n, 1), out(n), cosine = check::random_vector<T>(table, 2),
                   sine = check::random_vector<T>(table, 3);
    for (bool per_batch : {false, true}) {
      Ints shape = {batch, heads, time, width};
      Tensor in = Tensor::strided(x.data(), shape, {time * heads * width, width, heads * width, 1}, kDtype<T>);
      Ints table_shape = per_batch ? Ints{batch, 1, time, half} : Ints{time, half};
      int status = check::call("rope", {in, tensor(cosine, table_shape), tensor(sine, table_shape)},
                               {tensor(out, shape)});
      check::that(status == TPK_OK, "rope: status %d", status);
      Doubles expected(n);
      size_t at = 0;
      for (int64_t b = 0; b < batch; b++)
        for (int64_t h = 0; h < heads; h++)
          for (int64_t t = 0; t < time; t++, at += size_t(width))
            for (int64_t j = 0; j < half; j++) {
              size_t from = size_t(((b * time + t) * heads + h) * width + j), row =
                  size_t(((per_batch ? b : 0) * time + t) * half + j);
              double x1 = x[from], x2 = x[from + size_t(half)], c = cosine[row], s = sine[row];
              expected[at + size_t(j)] = x1 * c - x2 * s;
              expected[at + size_t(half + j)] = x2 * c + x1 * s;
            }
      close(out, expected, "rope");
    }
  }
}

// What a norm's forward and backward shall give, and what they gave.
template <class T> struct Norm {
  bool centre, weighted;
  size_t rows, width;
  std::vector<T> x, g, w, b, out, mean, rstd, dx, dw, db;
  Doubles y, grad_x, grad_w, grad_b, size_w, size_b;

  Norm(size_t rows_, size_t width_, bool centre_, bool weighted_)
      : centre(centre_), weighted(weighted_), rows(rows_), width(width_), x(check::random_vector<T>(rows * width, 1)),
        g(check::random_vector<T>(rows * width, 2)), w(check::random_vector<T>(width, 3)),
        b(check::random_vector<T>(width, 4)), out(rows * width), mean(rows), rstd(rows), dx(rows * width),
        dw(width, T(5)), db(width, T(5)), y(rows * width), grad_x(rows * width), grad_w(width, 0.0),
        grad_b(width, 0.0), size_w(width, 0.0), size_b(width, 0.0) {
    for (T& v : x) v = v * 2 + T(0.5);
  }
  void reference(size_t row, double eps) {
    const T *xs = &x[row * width], *gs = &g[row * width];
    double m = 0, v = 0, level = 0, along = 0;
    for (size_t j = 0; j < width; j++) m += double(xs[j]) / double(width);
    if (!centre) m = 0;
    for (size_t j = 0; j < width; j++) v += std::pow(double(xs[j]) - m, 2) / double(width);
    const double s = 1 / std::sqrt(v + eps);
    for (size_t j = 0; j < width; j++) {
      double h = (double(xs[j]) - m) * s, scale = weighted ? double(w[j]) : 1, go = double(gs[j]);
      y[row * width + j] = h * scale + (centre && weighted ? double(b[j]) : 0);
      level += go * scale / double(width), along += go * scale * h / double(width);
      grad_w[j] += go * h, grad_b[j] += go;
      size_w[j] += std::fabs(go * h), size_b[j] += std::fabs(go);
    }
    for (size_t j = 0; j < width; j++) {
      double h = (double(xs[j]) - m) * s, go = double(gs[j]) * (weighted ? double(w[j]) : 1);
      grad_x[row * width + j] = s * (go - (centre ? level : 0) - h * along);
    }
  }
  int run(double eps) {
    const Ints shape = {int64_t(rows), int64_t(width)}, line = {int64_t(width)}, column = {int64_t(rows)};
    const Tensor weight = weighted ? tensor(w, line) : Tensor::none(), bias =
        weighted ? tensor(b, line) : Tensor::none();
    const Tensor in = tensor(x, shape), grad = tensor(g, shape), scale = tensor(rstd, column), to = tensor(dx, shape);
    const std::vector<tpk_attr> attrs = {check::integers(line), check::real(eps)}, only_shape = {attrs[0]};
    if (!centre) {
      int status = check::call("rms_norm_forward", {in, weight}, {tensor(out, shape), scale}, attrs);
      return status ? status : check::call("rms_norm_backward", {grad, in, scale, weight}, {to, tensor(dw, line)},
                                           only_shape);
    }
    const Tensor centres = tensor(mean, column);
    int status = check::call("layer_norm_forward", {in, weight, bias}, {tensor(out, shape), centres, scale}, attrs);
    return status ? status : check::call("layer_norm_backward", {grad, in, centres, scale, weight},
                                         {to, tensor(dw, line), tensor(db, line)}, only_shape);
  }
};

template <class T> void test_norms() {
  for (Ints c : {Ints{1, 1}, {3, 16}, {200, 16}, {5, 17}, {300, 128}, {3, 768}, {2, 5000}, {5000, 33}, {0, 8}, {4, 2}})
    for (bool centre : {true, false})
      for (bool weighted : {true, false}) {
        Norm<T> norm{size_t(c[0]), size_t(c[1]), centre, weighted};
        std::string what = std::string(centre ? "layer_norm " : "rms_norm ") + std::to_string(c[0]) + "x" +
                           std::to_string(c[1]);
        for (size_t row = 0; row < norm.rows; row++) norm.reference(row, 1e-2);
        int status = norm.run(1e-2);
        check::that(status == TPK_OK, "%s: status %d", what.c_str(), status);
        close(norm.out, norm.y, what);
        close(norm.dx, norm.grad_x, what + " dinput");
        close(norm.dw, norm.grad_w, what + " dweight", norm.size_w);
        if (centre) close(norm.db, norm.grad_b, what + " dbias", norm.size_b);
      }
}

template <class T> struct CrossEntropy {
  const char* reduction;
  bool weighted, none, mean;
  double smoothing;
  size_t rows, classes;
  std::vector<T> x, w, loss, lse, total, g, dx;
  std::vector<int64_t> target;
  Doubles each, grad;
  double sum = 0, weights = 0, all_weights = 0;

  CrossEntropy(const Ints& shape, const char* reduction_, bool weighted_, double smoothing_)
      : reduction(reduction_), weighted(weighted_), none(!strcmp(reduction, "none")), mean(!strcmp(reduction, "mean")),
        smoothing(smoothing_), rows(size_t(shape[0])), classes(size_t(shape[1])),
        x(check::random_vector<T>(rows * classes, 1)), w(check::random_vector<T>(classes, 2)), loss(none ? rows : 1),
        lse(rows), total(1), g(check::random_vector<T>(none ? rows : 1, 3)), dx(rows * classes), target(rows),
        each(rows, 0.0), grad(rows * classes, 0.0) {
    for (T& v : x) v *= 8;
    for (T& v : w) v = v * T(0.4) + 1;
    for (size_t i = 0; i < rows; i++) target[i] = i % 5 == 3 ? -100 : int64_t(i * 7 % classes);
  }
  double weight(size_t c) const { return weighted ? double(w[c]) : 1; }
  void reference() {
    for (size_t c = 0; c < classes; c++) all_weights += weight(c);
    for (int64_t t : target) weights += t < 0 ? 0 : weight(size_t(t));
    for (size_t i = 0; i < rows; i++)
      if (target[i] >= 0) reference_row(i, size_t(target[i]));
  }
  void reference_row(size_t i, size_t t) {
    const T* xs = &x[i * classes];
    double z = 0, smooth = 0, share = smoothing / double(classes);
    for (size_t c = 0; c < classes; c++) z += std::exp(double(xs[c]));
    for (size_t c = 0; c < classes; c++) smooth += weight(c) * (std::log(z) - double(xs[c]));
    each[i] = (1 - smoothing) * weight(t) * (std::log(z) - double(xs[t])) + share * smooth;
    sum += each[i];
    double scale = double(g[none ? i : 0]) / (mean ? weights : 1);
    for (size_t c = 0; c < classes; c++) {
      double p = std::exp(double(xs[c])) / z;
      grad[i * classes + c] =
          scale * ((1 - smoothing) * weight(t) * (p - (c == t)) + share * (p * all_weights - weight(c)));
    }
  }
  void run() {
    const Ints shape = {int64_t(rows), int64_t(classes)}, column = {int64_t(rows)}, loss_shape = none ? column : Ints{};
    const Tensor scale = weighted ? tensor(w, {int64_t(classes)}) : Tensor::none(), in = tensor(x, shape);
    const Tensor labels = Tensor::dense(target.data(), column, TPK_I64), sums = tensor(lse, column);
    const std::vector<tpk_attr> attrs = {check::text(reduction), check::integer(-100), check::real(smoothing)};
    int status = check::call("cross_entropy_forward", {in, labels, scale},
                             {tensor(loss, loss_shape), sums, tensor(total, {})}, attrs);
    check::that(status == TPK_OK, "cross_entropy: status %d", status);
    close(loss, none ? each : Doubles{mean ? sum / weights : sum}, std::string("cross_entropy ") + reduction);
    close(total, {weights}, "cross_entropy total weight");
    status = check::call("cross_entropy_backward", {tensor(g, loss_shape), in, labels, scale, sums, tensor(total, {})},
                         {tensor(dx, shape)}, attrs);
    check::that(status == TPK_OK, "cross_entropy backward: status %d", status);
    close(dx, grad, std::string("cross_entropy backward ") + reduction);
  }
};

template <class T> void test_cross_entropy() {
  for (Ints shape : {Ints{1, 1}, {3, 10}, {32, 10}, {50, 257}, {300, 64}, {4, 3000}})
    for (const char* reduction : {"mean", "sum", "none"})
      for (int variant = 0; variant < 4; variant++) {
        CrossEntropy<T> test(shape, reduction, variant & 1, variant & 2 ? 0.2 : 0);
        test.reference();
        test.run();
      }
}

void test_cross_entropy_bad_target() {
  std::vector<float> x(6 * 256), lse(6), loss(1, -7), total(1);
  std::vector<int64_t> target = {0, 1, 2, 3, 255, 300};
  int status = check::call("cross_entropy_forward",
                           {tensor(x, {6, 256}), Tensor::dense(target.data(), {6}, TPK_I64), Tensor::none()},
                           {tensor(loss, {}), tensor(lse, {6}), tensor(total, {})},
                           {check::text("mean"), check::integer(-100), check::real(0)});
  check::that(status == TPK_ERROR && loss[0] == -7, "a target out of range is refused before anything is written");
  check::that(check::error_text == "cross_entropy: target 300 at position 5 is outside 0..255", "error text: %s",
              check::error_text.c_str());
}

template <class T> void test_embedding() {
  for (Ints sizes : {Ints{1, 1, 1}, {10, 17, 33}, {256, 128, 2048}, {5, 3, 0}, {4, 0, 3}, {70, 64, 5000}}) {
    size_t rows = size_t(sizes[0]), width = size_t(sizes[1]), n = size_t(sizes[2]);
    std::vector<T> table = check::random_vector<T>(rows * width, 1), out(n * width), grad =
        check::random_vector<T>(n * width, 2),
                   dtable(rows * width, T(9));
    std::vector<int64_t> index(n);
    for (size_t i = 0; i < n; i++) index[i] = int64_t((i * 2654435761u >> 3) % rows);
    Tensor indices = Tensor::dense(index.data(), {sizes[2]}, TPK_I64);
    int status = check::call("embedding", {tensor(table, {sizes[0], sizes[1]}), indices},
                             {tensor(out, {sizes[2], sizes[1]})});
    check::that(status == TPK_OK, "embedding: status %d", status);
    Doubles expected(rows * width, 0.0);
    for (size_t i = 0; i < n; i++)
      for (size_t j = 0; j < width; j++) {
        check::that(out[i * width + j] == table[size_t(index[i]) * width + j], "embedding element %zu", i);
        if (index[i] != 1) expected[size_t(index[i]) * width + j] += double(grad[i * width + j]);
      }
    std::vector<T> first;
    for (int threads : {1, 3}) {
      tpk_set_num_threads(threads);
      status = check::call("embedding_backward", {tensor(grad, {sizes[2], sizes[1]}), indices},
                           {tensor(dtable, {sizes[0], sizes[1]})}, {check::integer(sizes[0]), check::integer(1)});
      check::that(status == TPK_OK, "embedding_backward: status %d", status);
      if (threads == 1) first = dtable;
      check::that(dtable == first, "embedding_backward depends on the threads");
    }
    close(dtable, expected, "embedding_backward");
    if (n == 0) continue;
    for (int64_t bad : {int64_t(-1), sizes[0]}) {
      index[n - 1] = bad;
      status = check::call("embedding", {tensor(table, {sizes[0], sizes[1]}), indices},
                           {tensor(out, {sizes[2], sizes[1]})});
      bool named = check::error_text.find(std::to_string(bad)) != std::string::npos &&
                   check::error_text.find(std::to_string(rows)) != std::string::npos;
      check::that(status == TPK_ERROR && named, "embedding index %lld: %s", (long long)bad, check::error_text.c_str());
    }
  }
}

template <class T> void test_all() {
  test_softmax<T>();
  test_rope<T>();
  test_norms<T>();
  test_cross_entropy<T>();
  test_embedding<T>();
}

int run() {
  test_all<float>();
  test_all<double>();
  test_cross_entropy_bad_target();
  return check::finish("rows");
}

}  // namespace

int main() { return check::each_isa(run); }
