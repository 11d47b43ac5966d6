// The GEMM seam: splits a product over the pool and gives every piece to the library or to the own kernels.
#include "blas.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>

#if defined(__x86_64__)
extern const tpk_gemm_kernels tpk_gemm_kernels_v2, tpk_gemm_kernels_v3, tpk_gemm_kernels_v4;
#else
extern const tpk_gemm_kernels tpk_gemm_kernels_generic;
#endif

namespace {

constexpr double kPieceFlops = 8e6;     // about 60 us of one core: what a piece should at least cost
constexpr double kCoarseFlops = 512e6;  // and once there are kFinePieces of them
constexpr int64_t kFinePieces = 16;
constexpr int64_t kMaxPieces = 64;
constexpr int64_t kSkinnyBytes = 1 << 17; // a streaming product reads about this much in 10 us

std::mutex name_mutex;
std::string* library_path = nullptr;    // never destroyed: a thread may still ask at exit
char blas_name[64] = "";

const tpk_gemm_kernels& kernels() {
#if defined(__x86_64__)
  static const tpk_gemm_kernels* const chosen = !strcmp(tpk_isa(), "x86-64-v4")   ? &tpk_gemm_kernels_v4
                                                : !strcmp(tpk_isa(), "x86-64-v3") ? &tpk_gemm_kernels_v3
                                                                                  : &tpk_gemm_kernels_v2;
  return *chosen;
#else
  return tpk_gemm_kernels_generic;
#endif
}

void* open_beside_module(const char* name) {
  Dl_info self;
  if (!dladdr(reinterpret_cast<void*>(&tpk_blas_name), &self) || !self.dli_fname) return nullptr;
  std::string folder = self.dli_fname;
  size_t slash = folder.rfind('/');
  folder = slash == std::string::npos ? "." : folder.substr(0, slash);
  for (const char* below : {"/", "/lib/"})
    if (void* handle = dlopen((folder + below + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  return nullptr;
}

template <class T> struct Product {
  int trans_a, trans_b;
  int64_t m, n, k;
  T alpha;
  const T* a;
  int64_t lda;
  const T* b;
  int64_t ldb;
  T beta;
  T* c;
  int64_t ldc;
};

// How a product is cut, from its shape alone: `rows` x `columns` x `depth` per piece.
struct Grid {
  int64_t rows, columns, depth, down, across, deep;
  int64_t count() const { return down * across * deep; }
};

int64_t ceil_div(int64_t x, int64_t y) { return (x + y - 1) / y; }
int64_t smaller(int64_t x, int64_t y) { return x < y ? x : y; }

int64_t pieces_for(double flops) {
  const double count = flops / kPieceFlops;
  if (count <= double(kFinePieces)) return int64_t(count);
  return smaller(kMaxPieces, kFinePieces + int64_t(flops / kCoarseFlops));
}

// Halves the longest side again and again: pieces near to a cube pack the least. Cutting the depth costs a partial
// result per piece, so it is done only for the long thin products of weight gradients.
Grid grid_for(int64_t m, int64_t n, int64_t k) {
  const int64_t pieces = pieces_for(2.0 * double(m) * double(n) * double(k));
  Grid grid = {m, n, k, 1, 1, 1};
  while (grid.count() * 2 <= pieces) {
    if (grid.depth >= 512 && grid.depth >= 2 * (m > n ? m : n)) grid.deep *= 2;
    else if (grid.rows >= grid.columns && grid.rows >= 32) grid.down *= 2;
    else if (grid.columns >= 128) grid.across *= 2;
    else if (grid.rows >= 32) grid.down *= 2;
    else break;
    grid.rows = smaller(m, ceil_div(ceil_div(m, grid.down), 8) * 8);
    grid.columns = smaller(n, ceil_div(ceil_div(n, grid.across), 16) * 16); // whole vectors
    grid.depth = smaller(k, ceil_div(ceil_div(k, grid.deep), 16) * 16);
  }
  grid.down = ceil_div(m, grid.rows);
  grid.across = ceil_div(n, grid.columns);
  grid.deep = ceil_div(k, grid.depth);
  return grid;
}

// Up to here the own kernels beat the library, whose preparation (and the signal mask around it) costs about 0.7 us.
constexpr int64_t kSmallProduct = 16 * 16 * 16;

int serial(const Product<float>& p) {
  const bool small = p.m <= 64 && p.n <= 64 && p.k <= 256 && p.m * p.n * p.k <= kSmallProduct;
  if (!small &&
      tpk_library_sgemm(p.trans_a, p.trans_b, p.m, p.n, p.k, p.alpha, p.a, p.lda, p.b, p.ldb, p.beta, p.c, p.ldc))
    return 0;
  return kernels().sgemm(p.trans_a, p.trans_b, p.m, p.n, p.k, p.alpha, p.a, p.lda, p.b, p.ldb, p.beta, p.c, p.ldc);
}

int serial(const Product<double>& p) {
  if (tpk_library_dgemm(p.trans_a, p.trans_b, p.m, p.n, p.k, p.alpha, p.a, p.lda, p.b, p.ldb, p.beta, p.c, p.ldc))
    return 0;
  return kernels().dgemm(p.trans_a, p.trans_b, p.m, p.n, p.k, p.alpha, p.a, p.lda, p.b, p.ldb, p.beta, p.c, p.ldc);
}

void skinny(const Product<float>& p) {
  kernels().sgemm_skinny(p.trans_b, p.m, p.n, p.k, p.alpha, p.a, p.lda, p.b, p.ldb, p.beta, p.c, p.ldc);
}

void skinny(const Product<double>& p) {
  kernels().dgemm_skinny(p.trans_b, p.m, p.n, p.k, p.alpha, p.a, p.lda, p.b, p.ldb, p.beta, p.c, p.ldc);
}

template <class T>
Product<T> part(const Product<T>& whole, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  Product<T> piece = whole;
  piece.m = row + rows < whole.m ? rows : whole.m - row;
  piece.n = column + columns < whole.n ? columns : whole.n - column;
  piece.a += whole.trans_a ? row : row * whole.lda;
  piece.b += whole.trans_b ? column * whole.ldb : column;
  piece.c += row * whole.ldc + column;
  return piece;
}

template <class T> struct Job {
  const Product<T>* product;
  Grid grid;
  T* partial; // results of all layers of depth but the first, dense
  std::atomic<int> failed{0};
};

template <class T> void run_pieces(void* context, int64_t begin, int64_t end) {
  Job<T>* job = static_cast<Job<T>*>(context);
  const Grid& grid = job->grid;
  const Product<T>& whole = *job->product;
  for (int64_t i = begin; i < end; i++) {
    const int64_t layer = i / (grid.down * grid.across), in_layer = i % (grid.down * grid.across);
    Product<T> source = whole;
    source.k = smaller(grid.depth, whole.k - layer * grid.depth);
    source.a += layer * grid.depth * (whole.trans_a ? whole.lda : 1);
    source.b += layer * grid.depth * (whole.trans_b ? 1 : whole.ldb);
    if (layer) {
      source.c = job->partial + (layer - 1) * whole.m * whole.n;
      source.ldc = whole.n;
      source.beta = T(0);
    }
    if (serial(part(source, in_layer / grid.across * grid.rows, grid.rows, in_layer % grid.across * grid.columns,
                    grid.columns)))
      job->failed.store(1);
  }
}

template <class T> void add_partials(void* context, int64_t begin, int64_t end) {
  const Job<T>* job = static_cast<const Job<T>*>(context);
  const Product<T>& whole = *job->product;
  for (int64_t i = begin; i < end; i++)
    for (int64_t layer = 0; layer + 1 < job->grid.deep; layer++) {
      const T* source = job->partial + (layer * whole.m + i) * whole.n;
      T* target = whole.c + i * whole.ldc;
      for (int64_t j = 0; j < whole.n; j++) target[j] += source[j];
    }
}

template <class T> int run_grid(const Product<T>& p) {
  Job<T> job;
  job.product = &p;
  job.grid = grid_for(p.m, p.n, p.k);
  if (job.grid.count() == 1) return serial(p);
  const size_t bytes = sizeof(T) * size_t((job.grid.deep - 1) * p.m * p.n);
  job.partial = bytes ? static_cast<T*>(tpk_alloc(bytes)) : nullptr;
  if (bytes && !job.partial) return 1;
  tpk_parallel(job.grid.count(), 1, run_pieces<T>, &job);
  if (bytes) tpk_parallel(p.m, ceil_div(32768, p.n * job.grid.deep), add_partials<T>, &job);
  tpk_free(job.partial, bytes);
  return job.failed.load();
}

template <class T> void run_skinny(void* context, int64_t begin, int64_t end) {
  const Product<T>* whole = static_cast<const Product<T>*>(context);
  const int64_t block = 64;
  const int64_t last = end * block < whole->n ? end * block : whole->n;
  skinny(part(*whole, 0, whole->m, begin * block, last - begin * block));
}

// One column is one row of the transposed product: c^T = b^T a^T.
template <class T> Product<T> as_row(const Product<T>& p) {
  return {!p.trans_b, !p.trans_a, 1, p.m, p.k, p.alpha, p.b, p.ldb, p.a, p.lda, p.beta, p.c, p.m};
}

// Where streaming beats the library (measured): long dot products, which are bound by reading b, and small products,
// where the library's preparation costs more than the work.
template <class T> bool is_skinny(const Product<T>& p) {
  if (p.trans_a) return false;
  if (p.trans_b) return p.m == 1 || (p.m <= 8 && p.k >= 512);
  return p.m <= 4 && (sizeof(T) == 8 || p.k * p.n <= 1 << 16); // the library has no float64
}

template <class T> bool try_skinny(Product<T> p) {
  if (p.n == 1 && p.m > 1 && p.ldc == 1) p = as_row(p);
  if (p.m == 1 && p.trans_a && p.lda == 1) p.trans_a = 0, p.lda = p.k;
  if (!is_skinny(p)) return false;
  const int64_t bytes_per_block = 64 * p.k * int64_t(sizeof(T));
  tpk_parallel(ceil_div(p.n, 64), ceil_div(kSkinnyBytes, bytes_per_block), run_skinny<T>, &p);
  return true;
}

template <class T> int multiply(const Product<T>& p) {
  if (p.m <= 0 || p.n <= 0) return 0;
  if (p.k <= 0) {
    for (int64_t i = 0; i < p.m; i++)
      for (int64_t j = 0; j < p.n; j++) p.c[i * p.ldc + j] = p.beta == T(0) ? T(0) : p.beta * p.c[i * p.ldc + j];
    return 0;
  }
  return try_skinny(p) ? 0 : run_grid(p);
}

}  // namespace

void* tpk_open_library(const char* name) {
  std::lock_guard<std::mutex> held(name_mutex);
  if (library_path) return dlopen(library_path->c_str(), RTLD_NOW | RTLD_LOCAL);
  if (void* handle = open_beside_module(name)) return handle;
  return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

void tpk_set_blas_name(const char* name) {
  std::lock_guard<std::mutex> held(name_mutex);
  snprintf(blas_name, sizeof blas_name, "%s", name);
}

extern "C" void tpk_set_blas_path(const char* path) {
  std::lock_guard<std::mutex> held(name_mutex);
  delete library_path;
  library_path = path ? new std::string(path) : nullptr;
}

extern "C" const char* tpk_blas_name(void) { return blas_name; }

extern "C" int tpk_sgemm(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
                         int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  return multiply<float>({trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc});
}

extern "C" int tpk_dgemm(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, double alpha, const double* a,
                         int64_t lda, const double* b, int64_t ldb, double beta, double* c, int64_t ldc) {
  return multiply<double>({trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc});
}
