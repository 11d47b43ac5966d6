// adamw_step and sgd_step: many tensors of odd sizes in one call, against the textbook formulas in double.
#include "check.h"
#include "each_isa.h"

namespace {

using check::Tensor;

struct Lists {
  std::vector<std::vector<float>> data;
  std::vector<Tensor> tensors;
  Lists(const std::vector<size_t>& sizes, int lists, uint64_t seed) {
    for (int k = 0; k < lists; k++)
      for (size_t size : sizes) {
        data.push_back(check::random_vector<float>(size, seed++));
        if (k >= 3)
          for (float& v : data.back()) v = std::fabs(v);  // second moments
      }
    for (auto& v : data) tensors.push_back(Tensor::dense(v.data(), {int64_t(v.size())}, TPK_F32));
  }
};

const std::vector<size_t> kSizes = {1, 0, 17, 40000, 16, 3, 100, 0, 70001, 5};

struct Adam { double lr, beta1, beta2, eps, decay, correction1, correction2; bool decoupled, maximize, amsgrad; };

void expect(double got, double wanted, double scale, const char* what, size_t i) {
  check::that(std::fabs(got - wanted) <= 5e-7 * (std::fabs(wanted) + scale), "%s: element %zu is %.9g, not %.9g", what,
              i, got, wanted);
}

void test_adam(const Adam& a) {
  const size_t n = kSizes.size();
  Lists now(kSizes, a.amsgrad ? 5 : 4, 1), before(kSizes, a.amsgrad ? 5 : 4, 1), other(kSizes, a.amsgrad ? 5 : 4, 1);
  std::vector<tpk_attr> attrs = {check::integer(int64_t(n)), check::real(a.lr), check::real(a.beta1),
                                 check::real(a.beta2),
                                 check::real(a.eps), check::real(a.decay), check::real(a.correction1),
                                     check::real(a.correction2),
                                 check::boolean(a.decoupled), check::boolean(a.maximize), check::boolean(a.amsgrad)};
  tpk_set_num_threads(1);
  check::that(check::call("adamw_step", now.tensors, {}, attrs) == TPK_OK, "adamw_step refused");
  tpk_set_num_threads(3);
  check::call("adamw_step", other.tensors, {}, attrs);
  check::that(now.data == other.data, "adamw_step depends on the threads");
  for (size_t t = 0; t < n; t++)
    for (size_t i = 0; i < kSizes[t]; i++) {
      double p = before.data[t][i], g = before.data[n + t][i], m = before.data[2 * n + t][i], v =
          before.data[3 * n + t][i];
      if (a.maximize) g = -g;
      if (a.decoupled) p *= 1 - a.lr * a.decay;
      else g += a.decay * p;
      m += (g - m) * (1 - a.beta1);
      v = a.beta2 * v + (1 - a.beta2) * g * g;
      double top = v;
      if (a.amsgrad) top = std::fmax(v, double(before.data[4 * n + t][i]));
      p -= a.lr / a.correction1 * m / (std::sqrt(top) / std::sqrt(a.correction2) + a.eps);
      expect(now.data[t][i], p, 1, "adamw parameter", i);
      expect(now.data[n + t][i], before.data[n + t][i], 0, "adamw gradient", i);
      expect(now.data[2 * n + t][i], m, 1, "adamw mean", i);
      expect(now.data[3 * n + t][i], v, 1, "adamw square", i);
      if (a.amsgrad) expect(now.data[4 * n + t][i], top, 1, "adamw largest square", i);
    }
}

struct Sgd { double lr, momentum, dampening, decay; bool nesterov, maximize, first; };

void test_sgd(const Sgd& s) {
  const size_t n = kSizes.size();
  const bool buffered = s.momentum != 0;
  Lists now(kSizes, buffered ? 3 : 2, 1), before(kSizes, buffered ? 3 : 2, 1);
  int status = check::call("sgd_step", now.tensors, {},
                           {check::integer(int64_t(n)), check::real(s.lr), check::real(s.momentum),
                            check::real(s.dampening),
                            check::real(s.decay), check::boolean(s.nesterov), check::boolean(s.maximize),
                                check::boolean(s.first)});
  check::that(status == TPK_OK, "sgd_step: status %d", status);
  for (size_t t = 0; t < n; t++)
    for (size_t i = 0; i < kSizes[t]; i++) {
      double p = before.data[t][i], g = before.data[n + t][i];
      if (s.maximize) g = -g;
      g += s.decay * p;
      if (buffered) {
        double b = s.first ? g : s.momentum * before.data[2 * n + t][i] + (1 - s.dampening) * g;
        expect(now.data[2 * n + t][i], b, 1, "sgd momentum", i);
        g = s.nesterov ? g + s.momentum * b : b;
      }
      expect(now.data[t][i], p - s.lr * g, 1, "sgd parameter", i);
    }
}

void test_refusals() {
  Lists lists({12, 12}, 2, 1), before({12, 12}, 2, 1);
  std::vector<tpk_attr> attrs = {check::integer(2), check::real(0.1), check::real(0), check::real(0),
                                 check::real(0), check::boolean(false), check::boolean(false), check::boolean(false)};
  std::vector<Tensor> strided = lists.tensors;
  strided[3] = Tensor::strided(lists.data[3].data(), {3, 4}, {1, 3}, TPK_F32);
  check::that(check::call("sgd_step", strided, {}, attrs) == TPK_UNSUPPORTED, "a gradient that is not contiguous");
  std::vector<Tensor> mixed = lists.tensors;
  mixed[1].dtype = TPK_I32;
  check::that(check::call("sgd_step", mixed, {}, attrs) == TPK_UNSUPPORTED, "an integer parameter");
  attrs[2] = check::real(0.9);
  check::that(check::call("sgd_step", lists.tensors, {}, attrs) == TPK_UNSUPPORTED, "momentum without buffers");
  check::that(lists.data == before.data, "a refused step wrote something");
  attrs[0] = check::integer(0);
  check::that(check::call("sgd_step", {}, {}, attrs) == TPK_OK, "no parameters");
}

int run() {
  test_adam({1e-3, 0.9, 0.999, 1e-8, 0.01, 0.1, 0.001, true, false, false});
  test_adam({1e-2, 0.3, 0.99, 1e-6, 0, 0.7, 0.01, true, true, true});
  test_adam({1e-2, 0.9, 0.99, 1e-6, 0.1, 0.19, 0.0199, false, false, true});
  test_adam({1e-2, 0.9, 0.99, 1e-6, 0.1, 0.19, 0.0199, false, true, false});
  test_sgd({0.1, 0, 0, 0, false, false, false});
  test_sgd({0.1, 0, 0, 0.01, false, true, false});
  test_sgd({0.1, 0.9, 0.1, 0.01, false, false, false});
  test_sgd({0.1, 0.9, 0, 0.01, true, false, false});
  test_sgd({0.1, 0.9, 0, 0, true, true, true});
  test_refusals();
  return check::finish("optimizer");
}

}  // namespace

int main() { return check::each_isa(run); }
