// tpk_sgemm and tpk_dgemm against a naive product in double, over transposes, shapes, padding and scalars.
#include "check.h"

namespace {

double tolerance(float) { return 3e-6; }
double tolerance(double) { return 3e-15; }
int multiply(int ta, int tb, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda, const float* b,
             int64_t ldb, float beta, float* c, int64_t ldc) {
  return tpk_sgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
int multiply(int ta, int tb, int64_t m, int64_t n, int64_t k, double alpha, const double* a, int64_t lda,
             const double* b, int64_t ldb, double beta, double* c, int64_t ldc) {
  return tpk_dgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

template <class T> void compare(int ta, int tb, int64_t m, int64_t n, int64_t k, T alpha, T beta, int64_t pad) {
  const int64_t lda = (ta ? m : k) + pad, ldb = (tb ? k : n) + pad, ldc = n + pad;
  std::vector<T> a = check::random_vector<T>(size_t((ta ? k : m) * lda + 1), 1);
  std::vector<T> b = check::random_vector<T>(size_t((tb ? n : k) * ldb + 1), 2);
  std::vector<T> c = check::random_vector<T>(size_t(m * ldc + 1), 3), before = c;
  if (beta == T(0)) c.assign(c.size(), T(NAN)), before = c; // beta 0 must not read c
  int status = multiply(ta, tb, m, n, k, alpha, a.data(), lda, b.data(), ldb, beta, c.data(), ldc);
  check::that(status == 0, "status %d", status);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < ldc; j++) {
      const size_t at = size_t(i * ldc + j);
      if (j >= n) {
        check::that(!std::memcmp(&c[at], &before[at], sizeof(T)), "wrote between the rows of c");
        continue;
      }
      double sum = 0, size = 0;
      for (int64_t p = 0; p < k; p++) {
        double term =
            double(a[size_t(ta ? p * lda + i : i * lda + p)]) * double(b[size_t(tb ? j * ldb + p : p * ldb + j)]);
        sum += term, size += std::fabs(term);
      }
      double expected = double(alpha) * sum + (beta == T(0) ? 0.0 : double(beta) * double(before[at]));
      double bound = tolerance(T()) * (std::fabs(double(alpha)) * size + 1);
      check::that(std::fabs(double(c[at]) - expected) <= bound,
                  "%s ta=%d tb=%d m=%lld n=%lld k=%lld alpha=%g beta=%g: c[%lld,%lld] = %.9g, expected %.9g",
                  sizeof(T) == 4 ? "float" : "double", ta, tb, (long long)m, (long long)n, (long long)k, double(alpha),
                  double(beta), (long long)i, (long long)j, double(c[at]), expected);
    }
}

template <class T> void sweep() {
  const int64_t shapes[][3] = {{1, 1, 1}, {1, 7, 5}, {7, 1, 5}, {2, 33, 70}, {3, 100, 64}, {4, 65, 129}, {5, 31, 17},
                               {8, 128, 128}, {13, 45, 300}, {64, 64, 64}, {65, 67, 259}, {200, 341, 128},
                               {128, 130, 600}, {1, 300, 1000}, {300, 1, 1000}, {3, 5, 0}, {0, 4, 4}, {600, 190, 70}};
  for (auto& s : shapes)
    for (int ta = 0; ta < 2; ta++)
      for (int tb = 0; tb < 2; tb++) {
        compare<T>(ta, tb, s[0], s[1], s[2], T(1), T(0), 0);
        compare<T>(ta, tb, s[0], s[1], s[2], T(-0.5), T(2), 3);
        compare<T>(ta, tb, s[0], s[1], s[2], T(1), T(1), 1);
      }
}

// The bits of a result may not depend on the number of threads.
template <class T> void test_threads_agree(int64_t m, int64_t n, int64_t k) {
  std::vector<T> a = check::random_vector<T>(size_t(m * k), 4), b = check::random_vector<T>(size_t(k * n), 5);
  std::vector<T> one(size_t(m * n)), many(size_t(m * n));
  tpk_set_num_threads(1);
  multiply(0, 0, m, n, k, T(1), a.data(), k, b.data(), n, T(0), one.data(), n);
  tpk_set_num_threads(4);
  multiply(0, 0, m, n, k, T(1), a.data(), k, b.data(), n, T(0), many.data(), n);
  check::that(!std::memcmp(one.data(), many.data(), sizeof(T) * one.size()), "%lldx%lldx%lld: threads change bits",
              (long long)m, (long long)n, (long long)k);
}

}  // namespace

int main() {
  check::use_test_blas();
  tpk_set_num_threads(2);
  sweep<float>();
  sweep<double>();
  test_threads_agree<float>(1024, 128, 341);
  test_threads_agree<float>(300, 500, 200);
  test_threads_agree<double>(300, 500, 200);
  test_threads_agree<float>(1, 4096, 512);
  test_threads_agree<float>(128, 130, 2048);
  compare<float>(1, 0, 100, 90, 4099, 1, 0.5f, 2);
  compare<double>(0, 1, 100, 90, 4099, 1, 0.5, 2);
  check::that(tpk_blas_name()[0], "no name for the GEMM library after use");
  if (std::getenv("TPK_TEST_BLAS")) check::that(std::strcmp(tpk_blas_name(), "built-in"), "the library was not opened");
  std::fprintf(stderr, "gemm through %s\n", tpk_blas_name());
  return check::finish("gemm");
}
