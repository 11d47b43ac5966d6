// conv and its gradients against naive loops: 1 to 3 dimensions, groups, strides, padding, dilation.
#include "check.h"

namespace {

using check::Tensor;

struct Case {
  int64_t N, C, O, groups;
  std::vector<int64_t> in, kernel, stride, padding, dilation;
};

template <class T> void run(const Case& c, int dtype, double tolerance) {
  const size_t D = c.in.size();
  std::vector<int64_t> out(D), xs = {c.N, c.C}, ws = {c.O, c.C / c.groups}, ys = {c.N, c.O};
  int64_t in_size = 1, kernel_size = 1, out_size = 1;
  for (size_t d = 0; d < D; d++) {
    out[d] = (c.in[d] + 2 * c.padding[d] - c.dilation[d] * (c.kernel[d] - 1) - 1) / c.stride[d] + 1;
    xs.push_back(c.in[d]), ws.push_back(c.kernel[d]), ys.push_back(out[d]);
    in_size *= c.in[d], kernel_size *= c.kernel[d], out_size *= out[d];
  }
  const int64_t gc = c.C / c.groups, go = c.O / c.groups;
  std::vector<T> x = check::random_vector<T>(size_t(c.N * c.C * in_size), 1),
                 w = check::random_vector<T>(size_t(c.O * gc * kernel_size), 2);
  std::vector<T> bias = check::random_vector<T>(size_t(c.O), 3),
                 g = check::random_vector<T>(size_t(c.N * c.O * out_size), 4);
  std::vector<double> y(g.size()), dx(x.size()), dw(w.size());
  for (int64_t n = 0; n < c.N; n++)
    for (int64_t o = 0; o < c.O; o++)
      for (int64_t p = 0; p < out_size; p++) {
        const size_t at = size_t((n * c.O + o) * out_size + p);
        y[at] = double(bias[size_t(o)]);
        for (int64_t i = 0; i < gc; i++)
          for (int64_t k = 0; k < kernel_size; k++) {
            int64_t position = 0, rest_p = p, rest_k = k, scale = 1;
            bool inside = true;
            for (size_t d = D; d-- > 0;) {
              int64_t z = rest_p % out[d] * c.stride[d] - c.padding[d] + rest_k % c.kernel[d] * c.dilation[d];
              inside = inside && z >= 0 && z < c.in[d];
              position += z * scale, scale *= c.in[d], rest_p /= out[d], rest_k /= c.kernel[d];
            }
            if (!inside) continue;
            const size_t xa = size_t((n * c.C + o / go * gc + i) * in_size + position),
                         wa = size_t((o * gc + i) * kernel_size + k);
            y[at] += double(x[xa]) * double(w[wa]);
            dx[xa] += double(g[at]) * double(w[wa]), dw[wa] += double(g[at]) * double(x[xa]);
          }
      }
  std::vector<T> got_y(y.size(), T(NAN)), got_plain(y.size(), T(NAN)), got_dx(dx.size(), T(NAN)),
      got_dw(dw.size(), T(NAN));
  using check::integers;
  Tensor tx = Tensor::dense(x.data(), xs, dtype), tw = Tensor::dense(w.data(), ws, dtype),
         tg = Tensor::dense(g.data(), ys, dtype);
  std::vector<tpk_attr> a = {integers(c.stride), integers(c.padding), integers(c.dilation), check::integer(c.groups)},
                        ax = a, aw = a;
  ax.insert(ax.begin(), integers(xs)), aw.insert(aw.begin(), integers(ws));
  int status[4] = {check::call("conv", {tx, tw, Tensor::dense(bias.data(), {c.O}, dtype)},
                               {Tensor::dense(got_y.data(), ys, dtype)}, a),
                   check::call("conv", {tx, tw, Tensor::none()}, {Tensor::dense(got_plain.data(), ys, dtype)}, a),
                   check::call("conv_backward_input", {tg, tw}, {Tensor::dense(got_dx.data(), xs, dtype)}, ax),
                   check::call("conv_backward_weight", {tg, tx}, {Tensor::dense(got_dw.data(), ws, dtype)}, aw)};
  for (int s : status) check::that(s == TPK_OK, "status %d %d %d %d", status[0], status[1], status[2], status[3]);
  auto near = [&](const std::vector<T>& got, const std::vector<double>& want, double terms, const char* what) {
    for (size_t i = 0; i < want.size(); i++)
      check::that(std::fabs(double(got[i]) - want[i]) <= tolerance * (4 + terms / 8),
                  "N%lld C%lld O%lld g%lld dims%zu kernel%lld %s[%zu] = %.9g, expected %.9g", (long long)c.N,
                  (long long)c.C, (long long)c.O, (long long)c.groups, D, (long long)c.kernel[0], what, i,
                  double(got[i]), want[i]);
  };
  near(got_y, y, double(gc * kernel_size), "out");
  for (size_t i = 0; i < y.size(); i++) y[i] -= double(bias[i / size_t(out_size) % size_t(c.O)]);
  near(got_plain, y, double(gc * kernel_size), "out without bias");
  near(got_dx, dx, double(go * kernel_size), "dinput");
  near(got_dw, dw, double(c.N * out_size), "dweight");
}

const Case cases[] = {
    {1, 1, 1, 1, {1}, {1}, {1}, {0}, {1}},
    {2, 3, 5, 1, {17}, {3}, {2}, {1}, {1}},
    {4, 8, 16, 1, {28, 28}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {3, 1, 8, 1, {28, 28}, {3, 3}, {1, 1}, {0, 0}, {1, 1}},
    {2, 6, 9, 3, {11, 13}, {3, 5}, {2, 1}, {2, 0}, {1, 2}},
    {2, 16, 16, 16, {9, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {5, 32, 64, 1, {14, 14}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
    {2, 3, 16, 1, {33, 33}, {7, 7}, {2, 2}, {3, 3}, {1, 1}},
    {2, 3, 4, 1, {6, 7, 8}, {3, 2, 3}, {1, 2, 1}, {1, 0, 1}, {1, 1, 2}},
    {16, 32, 32, 1, {16, 16}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {1, 2, 3, 1, {5, 5}, {3, 3}, {1, 1}, {4, 4}, {1, 1}},
};

void test_threads_agree() {
  std::vector<float> x = check::random_vector<float>(8 * 16 * 400, 1), g = check::random_vector<float>(8 * 32 * 400, 2);
  std::vector<float> dw[2];
  std::vector<int64_t> one = {1, 1}, shape = {32, 16, 3, 3};
  for (int r = 0; r < 2; r++) {
    tpk_set_num_threads(r ? 4 : 1);
    dw[r].resize(32 * 16 * 9);
    int status = check::call(
        "conv_backward_weight",
        {Tensor::dense(g.data(), {8, 32, 20, 20}, TPK_F32), Tensor::dense(x.data(), {8, 16, 20, 20}, TPK_F32)},
        {Tensor::dense(dw[r].data(), shape, TPK_F32)},
        {check::integers(shape), check::integers(one), check::integers(one), check::integers(one), check::integer(1)});
    check::that(status == TPK_OK, "status %d", status);
  }
  check::that(dw[0] == dw[1], "threads change the bits of a weight gradient");
}

}  // namespace

int main() {
  check::use_test_blas();
  tpk_set_num_threads(2);
  for (const Case& c : cases) {
    run<float>(c, TPK_F32, 2e-6);
    run<double>(c, TPK_F64, 2e-15);
  }
  test_threads_agree();
  for (int i = 0; i < 3; i++) run<float>(cases[2], TPK_F32, 2e-6); // now from the cache
  std::fprintf(stderr, "conv through %s\n", tpk_blas_name());
  return check::finish("conv");
}
