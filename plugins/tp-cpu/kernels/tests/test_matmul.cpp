// matmul and linear against naive loops: every rank, layouts, batches that broadcast, dtypes.
#include "check.h"

namespace {

using check::Tensor;

std::vector<int64_t> broadcast(const std::vector<int64_t>& x, const std::vector<int64_t>& y) {
  size_t rank = x.size() > y.size() ? x.size() : y.size();
  std::vector<int64_t> out(rank);
  for (size_t d = 0; d < rank; d++) {
    int64_t a = d + x.size() < rank ? 1 : x[d + x.size() - rank], b = d + y.size() < rank ? 1 : y[d + y.size() - rank];
    out[d] = a == 1 ? b : a;
  }
  return out;
}

template <class T> double at(const Tensor& t, const std::vector<int64_t>& batch, int64_t i, int64_t j, bool left) {
  int64_t rank = int64_t(t.shape.size()), offset = 0;
  if (rank == 1) return double(static_cast<T*>(t.data)[(left ? j : i) * t.strides[0]]);
  for (int64_t d = 0; d < rank - 2; d++) {
    int64_t index = batch[batch.size() - size_t(rank - 2) + size_t(d)];
    offset += (t.shape[size_t(d)] == 1 ? 0 : index) * t.strides[size_t(d)];
  }
  offset += i * t.strides[size_t(rank - 2)] + j * t.strides[size_t(rank - 1)];
  return double(static_cast<T*>(t.data)[offset]);
}

template <class T> void compare(const Tensor& x, const Tensor& y, double tolerance, const char* what) {
  bool row = x.shape.size() == 1, column = y.shape.size() == 1;
  std::vector<int64_t> xb(x.shape.begin(), x.shape.end() - (row ? 1 : 2)),
      yb(y.shape.begin(), y.shape.end() - (column ? 1 : 2));
  std::vector<int64_t> batch = broadcast(xb, yb), shape = batch;
  int64_t m = row ? 1 : x.shape[x.shape.size() - 2], k = x.shape.back(), n = column ? 1 : y.shape.back(), count = 1;
  for (int64_t size : batch) count *= size;
  if (!row) shape.push_back(m);
  if (!column) shape.push_back(n);
  std::vector<T> out(size_t(count * m * n) + 1, T(77));
  Tensor result = Tensor::dense(out.data(), shape, x.dtype);
  int status = check::call("matmul", {x, y}, {result});
  check::that(status == TPK_OK, "%s: status %d", what, status);
  check::that(out.back() == T(77), "%s: wrote past the end", what);
  std::vector<int64_t> index(batch.size());
  for (int64_t b = 0; b < count; b++) {
    int64_t rest = b;
    for (size_t d = batch.size(); d-- > 0;) index[d] = rest % batch[d], rest /= batch[d];
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        for (int64_t p = 0; p < k; p++) sum += at<T>(x, index, i, p, true) * at<T>(y, index, p, j, false);
        double got = double(out[size_t((b * m + i) * n + j)]);
        check::that(std::fabs(got - sum) <= tolerance * double(k + 1), "%s: [%lld,%lld,%lld] = %.9g, expected %.9g",
                    what, (long long)b, (long long)i, (long long)j, got, sum);
      }
  }
}

template <class T> std::vector<T> numbers(size_t n, uint64_t seed, bool integers) {
  std::vector<T> v(n);
  check::Random random;
  random.state += seed;
  for (T& value : v) value = integers ? T(int64_t(random.next() % 11)) : T(random.uniform());
  return v;
}

template <class T> void sweep(int dtype, double tolerance) {
  std::vector<T> a = numbers<T>(200000, 1, tolerance == 0), b = numbers<T>(200000, 2, tolerance == 0);
  auto x = [&](std::vector<int64_t> shape) { return Tensor::dense(a.data(), shape, dtype); };
  auto y = [&](std::vector<int64_t> shape) { return Tensor::dense(b.data(), shape, dtype); };
  compare<T>(x({5}), y({5}), tolerance, "dot");
  compare<T>(x({5}), y({5, 7}), tolerance, "row by matrix");
  compare<T>(x({9, 5}), y({5}), tolerance, "matrix by column");
  compare<T>(x({17, 33}), y({33, 19}), tolerance, "matrices");
  compare<T>(x({3, 4, 6, 5}), y({5, 7}), tolerance, "batch by matrix");
  compare<T>(x({4, 6, 5}), y({3, 1, 5, 7}), tolerance, "broadcast batches");
  compare<T>(x({6, 5}), y({3, 2, 5, 7}), tolerance, "matrix by batch");
  compare<T>(x({2, 3, 1, 8}), y({8, 4}), tolerance, "one row per batch");
  compare<T>(x({2, 3, 4, 8}), y({8}), tolerance, "batch by column");
  compare<T>(x({3, 0}), y({0, 4}), tolerance, "no depth");
  compare<T>(Tensor::strided(a.data(), {7, 5}, {1, 7}, dtype), y({5, 6}), tolerance, "transposed left");
  compare<T>(x({7, 5}), Tensor::strided(b.data(), {5, 6}, {1, 5}, dtype), tolerance, "transposed right");
  compare<T>(Tensor::strided(a.data(), {7, 5}, {20, 2}, dtype), Tensor::strided(b.data(), {5, 6}, {3, 40}, dtype),
             tolerance, "steps in both directions");
  compare<T>(Tensor::strided(a.data(), {7, 5}, {0, 1}, dtype), Tensor::strided(b.data(), {5, 6}, {1, 0}, dtype),
             tolerance, "expanded");
  compare<T>(Tensor::strided(a.data() + 100, {7, 5}, {-6, 1}, dtype),
             Tensor::strided(b.data() + 10, {5, 6}, {6, -1}, dtype), tolerance, "reversed");
  compare<T>(Tensor::strided(a.data(), {4, 3, 5, 6}, {90, 6, 18, 1}, dtype),
             Tensor::strided(b.data(), {4, 3, 6, 5}, {90, 6, 1, 18}, dtype), tolerance, "heads split from one buffer");
  compare<T>(Tensor::strided(a.data(), {3, 4, 5}, {0, 5, 1}, dtype), y({5, 6}), tolerance, "expanded batch");
  compare<T>(x({130, 257}), y({257, 140}), tolerance, "larger");
}

template <class T> void test_linear(int dtype, double tolerance) {
  const int64_t shapes[][3] = {{1, 7, 5}, {6, 33, 17}, {100, 128, 64}};
  for (auto& s : shapes)
    for (int with_bias = 0; with_bias < 2; with_bias++) {
      int64_t m = s[0], k = s[1], n = s[2];
      std::vector<T> x = check::random_vector<T>(size_t(2 * m * k), 3), w = check::random_vector<T>(size_t(n * k), 4),
                     bias = check::random_vector<T>(size_t(n), 5), out(size_t(2 * m * n));
      int status = check::call("linear",
                               {Tensor::dense(x.data(), {2, m, k}, dtype), Tensor::dense(w.data(), {n, k}, dtype),
                                with_bias ? Tensor::dense(bias.data(), {n}, dtype) : Tensor::none()},
                               {Tensor::dense(out.data(), {2, m, n}, dtype)});
      check::that(status == TPK_OK, "linear: status %d", status);
      for (int64_t i = 0; i < 2 * m; i++)
        for (int64_t j = 0; j < n; j++) {
          double sum = with_bias ? double(bias[size_t(j)]) : 0;
          for (int64_t p = 0; p < k; p++) sum += double(x[size_t(i * k + p)]) * double(w[size_t(j * k + p)]);
          check::that(std::fabs(double(out[size_t(i * n + j)]) - sum) <= tolerance * double(k),
                      "linear m=%lld bias=%d [%lld,%lld]", (long long)m, with_bias, (long long)i, (long long)j);
        }
    }
}

// bfloat16 is the upper half of a float32, so its products are checked without a conversion routine.
void test_bfloat16() {
  std::vector<float> x = check::random_vector<float>(12 * 40, 6), w = check::random_vector<float>(9 * 40, 7);
  std::vector<uint16_t> xh(x.size()), wh(w.size()), out(12 * 9);
  auto shrink = [](std::vector<float>& wide, std::vector<uint16_t>& half) {
    for (size_t i = 0; i < wide.size(); i++) {
      uint32_t bits;
      std::memcpy(&bits, &wide[i], 4);
      half[i] = uint16_t(bits >> 16), bits &= 0xffff0000u;
      std::memcpy(&wide[i], &bits, 4);
    }
  };
  shrink(x, xh), shrink(w, wh);
  int status = check::call(
      "linear",
      {Tensor::dense(xh.data(), {12, 40}, TPK_BF16), Tensor::dense(wh.data(), {9, 40}, TPK_BF16), Tensor::none()},
      {Tensor::dense(out.data(), {12, 9}, TPK_BF16)});
  check::that(status == TPK_OK, "bfloat16 linear: status %d", status);
  for (int i = 0; i < 12; i++)
    for (int j = 0; j < 9; j++) {
      double sum = 0;
      for (int p = 0; p < 40; p++) sum += double(x[size_t(i * 40 + p)]) * double(w[size_t(j * 40 + p)]);
      uint32_t bits = uint32_t(out[size_t(i * 9 + j)]) << 16;
      float got;
      std::memcpy(&got, &bits, 4);
      check::that(std::fabs(double(got) - sum) <= 0.004 * std::fabs(sum) + 1e-5, "bfloat16 [%d,%d]: %g, expected %g", i,
                  j, double(got), sum);
    }
}

}  // namespace

int main() {
  check::use_test_blas();
  tpk_set_num_threads(2);
  sweep<float>(TPK_F32, 2e-7);
  sweep<double>(TPK_F64, 1e-15);
  sweep<int32_t>(TPK_I32, 0);
  sweep<int64_t>(TPK_I64, 0);
  sweep<uint8_t>(TPK_U8, 1e18); // sums wrap: only the status and the bounds are checked here
  test_linear<float>(TPK_F32, 3e-7);
  test_linear<double>(TPK_F64, 1e-15);
  test_bfloat16();
  return check::finish("matmul");
}
