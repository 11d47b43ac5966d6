// gather, scatter, index_select, cat, tril, triu, sort and topk against naive loops.
#include <algorithm>
#include <limits>

#include "check.h"
#include "each_isa.h"

namespace {

typedef std::vector<int64_t> Ints;
using check::Tensor;

size_t product(const Ints& shape) {
  size_t n = 1;
  for (int64_t s : shape) n *= size_t(s);
  return n;
}
// The multi-index of element i of a contiguous array.
Ints position(const Ints& shape, size_t i) {
  Ints p(shape.size());
  for (int d = int(shape.size()) - 1; d >= 0; d--) p[size_t(d)] = int64_t(i % size_t(shape[size_t(d)])),
      i /= size_t(shape[size_t(d)]);
  return p;
}
size_t flat(const Ints& shape, const Ints& p) {
  size_t at = 0;
  for (size_t d = 0; d < shape.size(); d++) at = at * size_t(shape[d]) + size_t(p[d]);
  return at;
}

struct GatherCase { Ints input, index; int64_t dim; };
const std::vector<GatherCase> kGathers = {
    {{}, {}, 0}, {{5}, {3}, 0}, {{4, 6}, {4, 6}, 0}, {{4, 6}, {2, 9}, 1}, {{300, 200}, {300, 1}, 1},
        {{3, 4, 5}, {3, 7, 2}, 1},
    {{3, 4, 5}, {9, 4, 5}, 0}, {{200, 5, 70}, {200, 3, 70}, 1}, {{4, 6}, {0, 6}, 0}, {{4, 6}, {4, 0}, 1}};

template <class T> void test_gather_scatter(int dtype) {
  for (const GatherCase& c : kGathers) {
    size_t n = product(c.input), m = product(c.index);
    std::vector<T> x(n), src(m), out(m), scattered(n);
    std::vector<double> random = check::random_vector<double>(n + m, 1);
    for (size_t i = 0; i < n; i++) x[i] = T(random[i] * 100);
    for (size_t i = 0; i < m; i++) src[i] = T(random[n + i] * 100);
    int64_t size = c.input.empty() ? 1 : c.input[size_t(c.dim)];
    std::vector<int64_t> index(m);
    for (size_t i = 0; i < m; i++) index[i] = int64_t((i * 2654435761u >> 4) % size_t(size));
    Tensor in = Tensor::dense(x.data(), c.input, dtype), at = Tensor::dense(index.data(), c.index, TPK_I64);
    check::that(!check::call("gather", {in, at}, {Tensor::dense(out.data(), c.index, dtype)}, {check::integer(c.dim)}),
                "gather: %s", check::error_text.c_str());
    std::vector<T> set = x, added = x;
    for (size_t i = 0; i < m; i++) {
      Ints p = position(c.index, i);
      if (!p.empty()) p[size_t(c.dim)] = index[i];
      check::that(out[i] == x[flat(c.input, p)], "gather element %zu", i);
      set[flat(c.input, p)] = src[i];
      added[flat(c.input, p)] = T(added[flat(c.input, p)] + src[i]);
    }
    for (int threads : {1, 3})
      for (bool add : {false, true}) {
        tpk_set_num_threads(threads);
        int status = check::call("scatter", {in, at, Tensor::dense(src.data(), c.index, dtype)},
                                 {Tensor::dense(scattered.data(), c.input, dtype)},
                                     {check::integer(c.dim), check::text(add ? "add" : "set")});
        check::that(status == TPK_OK && scattered == (add ? added : set), "scatter %s, dim %lld", add ? "add" : "set",
                    (long long)c.dim);
      }
    if (m == 0) continue;
    index[m / 2] = size;
    int status = check::call("gather", {in, at}, {Tensor::dense(out.data(), c.index, dtype)}, {check::integer(c.dim)});
    std::string text =
        "gather: index " + std::to_string(size) + " is out of range for dimension " + std::to_string(c.dim) +
                       " of size " + std::to_string(size);
    check::that(status == TPK_ERROR && check::error_text == text, "error text: %s", check::error_text.c_str());
    index[m / 2] = -1;
    status = check::call("scatter", {in, at, Tensor::dense(src.data(), c.index, dtype)},
                         {Tensor::dense(scattered.data(), c.input, dtype)},
                             {check::integer(c.dim), check::text("set")});
    check::that(status == TPK_ERROR, "scatter accepts index -1");
  }
}

// A transposed input, an index that is expanded, a source that is one number.
void test_gather_strided() {
  std::vector<int32_t> x(12), out(15), all(12), seven = {7};
  for (size_t i = 0; i < x.size(); i++) x[i] = int32_t(i);
  std::vector<int64_t> index = {2, 0, 1};
  Tensor transposed = Tensor::strided(x.data(), {3, 4}, {1, 3}, TPK_I32);
  Tensor expanded = Tensor::strided(index.data(), {3, 3}, {1, 0}, TPK_I64);
  check::call("gather", {transposed, expanded}, {Tensor::dense(out.data(), {3, 3}, TPK_I32)}, {check::integer(1)});
  for (int64_t i = 0; i < 9; i++)
    check::that(out[size_t(i)] == int32_t(i / 3 + 3 * index[size_t(i / 3)]), "strided gather element %lld",
                (long long)i);
  check::call("scatter", {Tensor::dense(x.data(), {3, 4}, TPK_I32), Tensor::dense(index.data(), {3, 1}, TPK_I64),
                          Tensor::dense(seven.data(), {}, TPK_I32)},
              {Tensor::dense(all.data(), {3, 4}, TPK_I32)}, {check::integer(1), check::text("set")});
  for (int64_t i = 0; i < 12; i++)
    check::that(all[size_t(i)] == (i % 4 == index[size_t(i / 4)] ? 7 : int32_t(i)),
                "scatter of a number, element %lld", (long long)i);
}

void test_index_select() {
  for (Ints shape : {Ints{5}, {4, 6}, {3, 4, 5}, {70, 33, 9}, {3, 4, 1}})
    for (size_t dim = 0; dim < shape.size(); dim++) {
      std::vector<float> x = check::random_vector<float>(product(shape), 1);
      std::vector<int64_t> index = {shape[dim] - 1, 0, 0, shape[dim] / 2};
      Ints out_shape = shape;
      out_shape[dim] = 4;
      std::vector<float> out(product(out_shape));
      Tensor in = Tensor::dense(x.data(), shape, TPK_F32), at = Tensor::dense(index.data(), {4}, TPK_I64);
      check::call("index_select", {in, at}, {Tensor::dense(out.data(), out_shape, TPK_F32)},
                  {check::integer(int64_t(dim))});
      for (size_t i = 0; i < out.size(); i++) {
        Ints p = position(out_shape, i);
        p[dim] = index[size_t(p[dim])];
        check::that(out[i] == x[flat(shape, p)], "index_select dim %zu element %zu", dim, i);
      }
      index[1] = -3;
      check::that(check::call("index_select", {in, at}, {Tensor::dense(out.data(), out_shape, TPK_F32)},
                              {check::integer(int64_t(dim))}) == TPK_ERROR, "index_select accepts index -3");
    }
}

void test_cat() {
  for (size_t dim = 0; dim < 3; dim++) {
    Ints a = {3, 4, 5}, b = a, total = a;
    b[dim] = 7, total[dim] = a[dim] + 7 + a[dim];
    std::vector<double> x = check::random_vector<double>(product(a), 1), y =
        check::random_vector<double>(product(b), 2), out(product(total));
    // b is transposed in memory; an empty 1-d tensor is skipped
    Tensor strided = Tensor::strided(y.data(), b, {1, b[0], b[0] * b[1]}, TPK_F64), first =
        Tensor::dense(x.data(), a, TPK_F64);
    int status = check::call("cat", {first, Tensor::dense(nullptr, {0}, TPK_F64), strided, first},
                             {Tensor::dense(out.data(), total, TPK_F64)}, {check::integer(int64_t(dim) - 3)});
    check::that(status == TPK_OK, "cat: status %d", status);
    for (size_t i = 0; i < out.size(); i++) {
      Ints p = position(total, i);
      double expected;
      if (p[dim] >= a[dim] && p[dim] < a[dim] + 7) {
        p[dim] -= a[dim];
        expected = y[size_t(p[0] + b[0] * (p[1] + b[1] * p[2]))];
      } else {
        p[dim] -= p[dim] < a[dim] ? 0 : a[dim] + 7;
        expected = x[flat(a, p)];
      }
      check::that(out[i] == expected, "cat dim %zu element %zu", dim, i);
    }
  }
}

void test_triangles() {
  for (Ints shape : {Ints{1, 1}, {5, 5}, {3, 7}, {7, 3}, {2, 4, 6}, {0, 4}, {4, 0}})
    for (int64_t diagonal : {int64_t(0), int64_t(1), int64_t(-1), int64_t(3), int64_t(-6), int64_t(100),
                             std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()})
      for (bool lower : {true, false}) {
        std::vector<int16_t> x(product(shape), 3), out(product(shape), 9);
        int status = check::call(lower ? "tril" : "triu", {Tensor::dense(x.data(), shape, TPK_I16)},
                                 {Tensor::dense(out.data(), shape, TPK_I16)}, {check::integer(diagonal)});
        check::that(status == TPK_OK, "tril/triu: status %d", status);
        for (size_t i = 0; i < out.size(); i++) {
          Ints p = position(shape, i);
          int64_t row = p[p.size() - 2], column = p[p.size() - 1];
          bool kept = lower ? column - row <= diagonal : column - row >= diagonal;
          check::that(out[i] == (kept ? 3 : 0), "%s diagonal %lld element %zu", lower ? "tril" : "triu",
                      (long long)diagonal, i);
        }
      }
}

template <class T> bool comes_first(T a, T b, bool descending) {
  bool a_nan = a != a, b_nan = b != b;
  if (descending) return a_nan ? !b_nan : !b_nan && a > b;
  return b_nan ? !a_nan : !a_nan && a < b;
}

template <class T> void test_order(int dtype, double scale, bool with_nan) {
  for (Ints shape : {Ints{}, {1}, {2}, {17}, {1000}, {5000}, {70000}, {20, 33}, {3, 1500, 2}, {0}, {0, 3}, {4, 0}})
    for (int64_t dim = 0; dim < int64_t(shape.empty() ? 1 : shape.size()); dim++)
      for (bool descending : {false, true}) {
        std::vector<double> random = check::random_vector<double>(product(shape), 1);
        std::vector<T> x(random.size());
        for (size_t i = 0; i < x.size(); i++) x[i] = T((dtype == TPK_BOOL ? std::fabs(random[i]) : random[i]) * scale);
        if (with_nan)
          for (size_t i = 3; i < x.size(); i += 7) x[i] = T(i % 2 ? std::numeric_limits<double>::quiet_NaN() : -0.0);
        int64_t size = shape.empty() ? 1 : shape[size_t(dim)], inner = 1;
        for (size_t d = size_t(dim) + 1; d < shape.size(); d++) inner *= shape[d];
        int64_t outer = size * inner > 0 ? int64_t(x.size()) / (size * inner) : 0;
        for (int64_t k : {size, std::min<int64_t>(size, 5)}) {
          const bool all = k == size;
          Ints out_shape = shape;
          if (!shape.empty()) out_shape[size_t(dim)] = k;
          std::vector<T> values(product(out_shape));
          std::vector<int64_t> indices(values.size(), -1);
          std::vector<tpk_attr> attrs = all ? std::vector<tpk_attr>{check::integer(dim), check::boolean(descending),
                                                                    check::boolean(true)}
                                            : std::vector<tpk_attr>{check::integer(k), check::integer(dim),
                                                                    check::boolean(descending), check::boolean(true)};
          int status = check::call(all ? "sort" : "topk", {Tensor::dense(x.data(), shape, dtype)},
                                   {Tensor::dense(values.data(), out_shape, dtype),
                                    Tensor::dense(indices.data(), out_shape, TPK_I64)}, attrs);
          check::that(status == TPK_OK, "sort/topk: status %d", status);
          for (int64_t row = 0; row < outer * inner; row++) {
            const T* from = x.data() + row / inner * size * inner + row % inner;
            std::vector<int64_t> order(static_cast<size_t>(size));
            for (int64_t i = 0; i < size; i++) order[size_t(i)] = i;
            std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
              return comes_first(from[a * inner], from[b * inner], descending);
            });
            for (int64_t i = 0; i < k; i++) {
              size_t at = size_t((row / inner * k + i) * inner + row % inner);
              check::that(indices[at] == order[size_t(i)] &&
                          !memcmp(&values[at], &from[order[size_t(i)] * inner], sizeof(T)),
                          "%s of dtype %d, row %lld place %lld: index %lld, not %lld", all ? "sort" : "topk", dtype,
                          (long long)row, (long long)i, (long long)indices[at], (long long)order[size_t(i)]);
            }
          }
        }
      }
}

int run() {
  test_gather_scatter<float>(TPK_F32);
  test_gather_scatter<double>(TPK_F64);
  test_gather_scatter<int64_t>(TPK_I64);
  test_gather_scatter<int8_t>(TPK_I8);
  test_gather_strided();
  test_index_select();
  test_cat();
  test_triangles();
  test_order<float>(TPK_F32, 1e6, true);
  test_order<double>(TPK_F64, 1e6, true);
  test_order<int64_t>(TPK_I64, 1e15, false);
  test_order<int32_t>(TPK_I32, 50, false);
  test_order<int8_t>(TPK_I8, 100, false);
  test_order<uint8_t>(TPK_BOOL, 1.9, false);
  return check::finish("index");
}

}  // namespace

int main() { return check::each_isa(run); }
