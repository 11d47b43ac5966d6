// Attention against a naive softmax in double: grouped heads, causal offsets, masks, strided heads, both directions.
#include "check.h"

namespace {

using check::Tensor;

struct Case {
  int64_t B, H, K, T, S, D, E;
  bool causal;
  int64_t diagonal;
  int mask;    // 0 none, 1 bool [T,S], 2 additive [B,1,T,S], 3 bool that hides everything from row 1
  bool split;  // heads split from [B,T,H*D]
};

template <class T> struct Run {
  Case c;
  std::vector<T> q, k, v, g, out, lse, dq, dk, dv, additive;
  std::vector<uint8_t> keep;

  static Tensor heads(std::vector<T>& data, int64_t B, int64_t H, int64_t T_, int64_t D, bool split, int dtype) {
    if (!split) return Tensor::dense(data.data(), {B, H, T_, D}, dtype);
    return Tensor::strided(data.data(), {B, H, T_, D}, {T_ * H * D, D, H * D, 1}, dtype);
  }
  static size_t at(const Tensor& t, int64_t b, int64_t h, int64_t i, int64_t d) {
    return size_t(b * t.strides[0] + h * t.strides[1] + i * t.strides[2] + d * t.strides[3]);
  }

  void operator()(double tolerance, int dtype) {
    const double scale = 0.7 / std::sqrt(double(c.D));
    q = check::random_vector<T>(size_t(c.B * c.H * c.T * c.D), 1),
    k = check::random_vector<T>(size_t(c.B * c.K * c.S * c.D), 2);
    v = check::random_vector<T>(size_t(c.B * c.K * c.S * c.E), 3),
    g = check::random_vector<T>(size_t(c.B * c.H * c.T * c.E), 4);
    for (T& value : q) value *= 4;
    out.assign(g.size(), T(NAN)), lse.assign(size_t(c.B * c.H * c.T), T(NAN));
    dq.assign(q.size(), T(NAN)), dk.assign(k.size(), T(NAN)), dv.assign(v.size(), T(NAN));
    Tensor tq = heads(q, c.B, c.H, c.T, c.D, c.split, dtype), tk = heads(k, c.B, c.K, c.S, c.D, c.split, dtype);
    Tensor tv = heads(v, c.B, c.K, c.S, c.E, c.split, dtype), tg = heads(g, c.B, c.H, c.T, c.E, c.split, dtype);
    Tensor to = Tensor::dense(out.data(), {c.B, c.H, c.T, c.E}, dtype),
           tl = Tensor::dense(lse.data(), {c.B, c.H, c.T}, dtype);
    Tensor mask = Tensor::none();
    check::Random random;
    if (c.mask == 1 || c.mask == 3) {
      keep.resize(size_t(c.T * c.S));
      for (size_t i = 0; i < keep.size(); i++)
        keep[i] = random.next() % 3 != 0 && !(c.mask == 3 && int64_t(i) / c.S == 1);
      mask = Tensor::dense(keep.data(), {c.T, c.S}, TPK_BOOL);
    } else if (c.mask == 2) {
      additive = check::random_vector<T>(size_t(c.B * c.T * c.S), 5);
      mask = Tensor::dense(additive.data(), {c.B, 1, c.T, c.S}, dtype);
    }
    std::vector<tpk_attr> attributes = {c.causal ? check::integer(c.diagonal) : check::none(), check::real(scale)};
    int status = check::call("scaled_dot_product_forward", {tq, tk, tv, mask}, {to, tl}, attributes);
    check::that(status == TPK_OK, "forward: status %d", status);
    status = check::call(
        "scaled_dot_product_backward", {tg, tq, tk, tv, mask, to, tl},
        {Tensor::dense(dq.data(), {c.B, c.H, c.T, c.D}, dtype), Tensor::dense(dk.data(), {c.B, c.K, c.S, c.D}, dtype),
         Tensor::dense(dv.data(), {c.B, c.K, c.S, c.E}, dtype)},
        attributes);
    check::that(status == TPK_OK, "backward: status %d", status);

    std::vector<double> rdk(k.size()), rdv(v.size());
    for (int64_t b = 0; b < c.B; b++)
      for (int64_t h = 0; h < c.H; h++)
        for (int64_t i = 0; i < c.T; i++) row(b, h, i, scale, tq, tk, tv, tg, rdk, rdv, tolerance);
    for (size_t i = 0; i < rdk.size(); i++) near(double(dk[i]), rdk[i], tolerance * 8, "dkey", i);
    for (size_t i = 0; i < rdv.size(); i++) near(double(dv[i]), rdv[i], tolerance * 8, "dvalue", i);
  }

  void near(double got, double expected, double tolerance, const char* what, size_t i) {
    if (got == expected) return;
    check::that(
        std::fabs(got - expected) <= tolerance * (1 + std::fabs(expected)),
        "B%lld H%lld K%lld T%lld S%lld D%lld E%lld causal %d,%lld mask %d split %d: %s[%zu] = %.9g, expected %.9g",
        (long long)c.B, (long long)c.H, (long long)c.K, (long long)c.T, (long long)c.S, (long long)c.D, (long long)c.E,
        c.causal, (long long)c.diagonal, c.mask, c.split, what, i, got, expected);
  }

  void row(int64_t b, int64_t h, int64_t i, double scale, const Tensor& tq, const Tensor& tk, const Tensor& tv,
           const Tensor& tg, std::vector<double>& rdk, std::vector<double>& rdv, double tolerance) {
    const int64_t kh = h / (c.H / c.K);
    std::vector<double> p(size_t(c.S)), o(size_t(c.E)), rdq(size_t(c.D));
    double peak = -INFINITY, total = 0, delta = 0;
    for (int64_t j = 0; j < c.S; j++) {
      double s = 0;
      for (int64_t d = 0; d < c.D; d++) s += double(q[at(tq, b, h, i, d)]) * double(k[at(tk, b, kh, j, d)]);
      s *= scale;
      if (c.mask == 2) s += double(additive[size_t((b * c.T + i) * c.S + j)]);
      if ((c.causal && j > i + c.diagonal) || (!keep.empty() && !keep[size_t(i * c.S + j)])) s = -INFINITY;
      p[size_t(j)] = s, peak = s > peak ? s : peak;
    }
    for (double& s : p) s = peak == -INFINITY ? 0 : std::exp(s - peak), total += s;
    const size_t line = size_t((b * c.H + h) * c.T + i);
    near(double(lse[line]), total ? peak + std::log(total) : -INFINITY, tolerance, "logsumexp", line);
    for (int64_t e = 0; e < c.E; e++) {
      for (int64_t j = 0; j < c.S; j++)
        o[size_t(e)] += (total ? p[size_t(j)] / total : 0) * double(v[at(tv, b, kh, j, e)]);
      near(double(out[line * size_t(c.E) + size_t(e)]), o[size_t(e)], tolerance, "out", line * size_t(c.E) + size_t(e));
      delta += o[size_t(e)] * double(g[at(tg, b, h, i, e)]);
    }
    for (int64_t j = 0; j < c.S; j++) {
      double weight = total ? p[size_t(j)] / total : 0, dp = 0;
      const size_t key = size_t((b * c.K + kh) * c.S + j);
      for (int64_t e = 0; e < c.E; e++) {
        dp += double(g[at(tg, b, h, i, e)]) * double(v[at(tv, b, kh, j, e)]);
        rdv[key * size_t(c.E) + size_t(e)] += weight * double(g[at(tg, b, h, i, e)]);
      }
      const double ds = weight * (dp - delta) * scale;
      for (int64_t d = 0; d < c.D; d++) {
        rdq[size_t(d)] += ds * double(k[at(tk, b, kh, j, d)]);
        rdk[key * size_t(c.D) + size_t(d)] += ds * double(q[at(tq, b, h, i, d)]);
      }
    }
    for (int64_t d = 0; d < c.D; d++)
      near(double(dq[line * size_t(c.D) + size_t(d)]), rdq[size_t(d)], tolerance * 4, "dquery",
           line * size_t(c.D) + size_t(d));
  }
};

const Case cases[] = {
    {1, 1, 1, 1, 1, 1, 1, false, 0, 0, false},    {2, 4, 2, 37, 37, 16, 16, true, 0, 0, false},
    {1, 8, 2, 128, 128, 16, 16, true, 0, 0, true}, {1, 2, 2, 65, 130, 64, 64, false, 0, 0, false},
    {2, 4, 4, 20, 70, 32, 48, true, 50, 0, true},  {1, 4, 1, 1, 200, 64, 64, false, 0, 0, false},
    {1, 4, 2, 1, 100, 16, 16, true, 99, 0, true},  {1, 2, 1, 33, 40, 17, 5, true, 7, 0, false},
    {2, 2, 1, 30, 90, 16, 16, false, 0, 1, false}, {2, 2, 2, 30, 90, 24, 16, false, 0, 2, true},
    {1, 2, 1, 9, 70, 8, 8, true, 20, 3, false},    {1, 2, 2, 10, 10, 8, 8, true, -3, 0, false},
    {1, 3, 1, 2, 67, 70, 19, true, 64, 2, false}, {2, 2, 1, 1, 33, 16, 16, false, 0, 1, true},
    {1, 5, 1, 1, 9, 16, 80, true, -1, 0, false},  {1, 1, 1, 3, 40, 16, 16, true, 1, 3, false},
    {1, 1, 1, 40, 1100, 16, 16, true, 1060, 0, false}, {1, 2, 1, 3, 5, 200, 136, false, 0, 0, false},
};

// Threads may not change a bit, although keys are cut into parts and partial results added.
void test_threads_agree() {
  const int64_t B = 1, H = 2, T = 300, S = 1024, D = 16;
  std::vector<float> q = check::random_vector<float>(size_t(B * H * T * D), 1),
                     k = check::random_vector<float>(size_t(B * H * S * D), 2);
  std::vector<float> out[2], dq[2];
  for (int r = 0; r < 2; r++) {
    tpk_set_num_threads(r ? 4 : 1);
    std::vector<float> lse(size_t(B * H * T)), dk(k.size()), dv(k.size());
    out[r].resize(q.size()), dq[r].resize(q.size());
    Tensor tq = Tensor::dense(q.data(), {B, H, T, D}, TPK_F32), tk = Tensor::dense(k.data(), {B, H, S, D}, TPK_F32);
    Tensor to = Tensor::dense(out[r].data(), {B, H, T, D}, TPK_F32), tl = Tensor::dense(lse.data(), {B, H, T}, TPK_F32);
    std::vector<tpk_attr> attributes = {check::none(), check::real(0.25)};
    check::call("scaled_dot_product_forward", {tq, tk, tk, Tensor::none()}, {to, tl}, attributes);
    check::call("scaled_dot_product_backward", {tq, tq, tk, tk, Tensor::none(), to, tl},
                {Tensor::dense(dq[r].data(), {B, H, T, D}, TPK_F32), Tensor::dense(dk.data(), {B, H, S, D}, TPK_F32),
                 Tensor::dense(dv.data(), {B, H, S, D}, TPK_F32)}, attributes);
  }
  check::that(out[0] == out[1] && dq[0] == dq[1], "threads change the bits of attention");
}

}  // namespace

int main() {
  tpk_set_num_threads(2);
  for (const Case& c : cases) {
    Run<float>{c, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}(4e-6, TPK_F32);
    Run<double>{c, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}(1e-13, TPK_F64);
  }
  test_threads_agree();
  return check::finish("attention");
}
