/* tpk: the CPU kernels of TensorPlay as a plain C interface.
 *
 * Nothing in here knows Python. A kernel is one C function that reads flat views of its inputs and fills
 * preallocated outputs; shapes, dtypes and errors were settled by the caller (the operator's Python `meta`, or a
 * native runtime). A kernel's name is the operator's name, its arguments are the operator's, in schema order:
 * tensor arguments become `in`, everything else becomes `attr`.
 */
#ifndef TPK_H
#define TPK_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  TPK_BOOL = 0, TPK_U8 = 1, TPK_I8 = 2, TPK_I16 = 3, TPK_I32 = 4, TPK_I64 = 5,
  TPK_U16 = 6, TPK_U32 = 7, TPK_U64 = 8,
  TPK_F16 = 9, TPK_BF16 = 10, TPK_F32 = 11, TPK_F64 = 12, TPK_C64 = 13, TPK_C128 = 14,
} tpk_dtype;

/* A view of memory. `strides` count elements and may be 0 (broadcast) or negative. An optional tensor that is absent
 * has data == NULL and ndim == -1. A Python number in a tensor position arrives as a 0-d tensor. */
typedef struct {
  void* data;             /* first element: storage address plus offset */
  const int64_t* shape;   /* ndim entries */
  const int64_t* strides; /* ndim entries */
  int64_t numel;
  int32_t ndim;
  int32_t dtype;      /* tpk_dtype */
  int32_t contiguous; /* row-major without gaps (always true for numel <= 1) */
  int32_t reserved;
} tpk_tensor;

typedef enum { TPK_ATTR_NONE = 0, TPK_ATTR_BOOL, TPK_ATTR_INT, TPK_ATTR_FLOAT, TPK_ATTR_INTS, TPK_ATTR_TEXT } tpk_attr_kind;

/* One attribute. A bool or int is in `i` (and in `d` as a double), a float in `d`; a list of ints in `list`/`n`;
 * text is zero-terminated in `text`; a dtype is an INT holding its tpk_dtype. */
typedef struct {
  int32_t kind; /* tpk_attr_kind */
  int32_t n;
  int64_t i;
  double d;
  const int64_t* list;
  const char* text;
} tpk_attr;

typedef struct {
  const tpk_tensor* in; /* tensor arguments in schema order; the tensors of a list argument stand one after another */
  tpk_tensor* out;
  const tpk_attr* attr;
  int32_t n_in, n_out, n_attr;
  char* error; /* 256 bytes, for the text that goes with TPK_ERROR */
} tpk_call;

enum {
  TPK_OK = 0,
  TPK_UNSUPPORTED = 1, /* not for this dtype, layout or attribute: the caller takes another way. Nothing was written. */
  TPK_ERROR = 2,       /* a wrong value, e.g. an index out of range; `error` says which */
};

typedef int (*tpk_kernel)(const tpk_call* call);

enum {
  TPK_ELEMENTWISE = 1, /* inputs broadcast against out; out may be one of the inputs when the layouts are the same */
  TPK_CONTIGUOUS = 2,  /* wants contiguous inputs: the caller copies the others first. Outputs are always contiguous
                          unless the kernel is ELEMENTWISE, whose out may be any non-overlapping strided view. */
  TPK_MUTATES = 4,     /* writes to its inputs (optimizer steps) */
};

typedef struct {
  const char* name;
  tpk_kernel fn;
  uint32_t flags;
} tpk_entry;

/* The kernel of an operator for this processor, or NULL. The table is chosen once, by tpk_isa(). */
const tpk_entry* tpk_find(const char* name);
const tpk_entry* tpk_entries(int* count); /* all of them */

/* "x86-64-v2", "x86-64-v3", "x86-64-v4" or "generic". The environment variable TP_CPU_ISA (v2, v3, v4) lowers it. */
const char* tpk_isa(void);

/* ---- memory: caching allocator with size classes; blocks are aligned to 64 bytes; NULL when out of memory ---- */
void* tpk_alloc(size_t nbytes);
void tpk_free(void* block, size_t nbytes); /* with the size it was allocated with */
void tpk_empty_cache(void);
typedef struct {
  int64_t allocated, allocated_peak; /* bytes in live blocks */
  int64_t reserved, reserved_peak;   /* live and cached */
  int64_t allocations, cache_hits;   /* counts since the start */
} tpk_memory_stats;
void tpk_memory(tpk_memory_stats* out);
void tpk_memory_reset_peak(void);

/* ---- threads: the caller takes part; chunks are claimed atomically; safe across fork ---- */
int tpk_num_threads(void);
void tpk_set_num_threads(int n); /* 1 <= n */
/* body(context, begin, end) over [0, n) in chunks of at least `grain`; serial when one chunk is enough, when called
 * from inside a parallel region, or with one thread. Chunk boundaries depend on n and grain alone, never on the number
 * of threads, so that results do not either. */
void tpk_parallel(int64_t n, int64_t grain, void (*body)(void* context, int64_t begin, int64_t end), void* context);

/* ---- the seam to the GEMM and convolution library (oneDNN, or OpenBLAS + im2col) ----
 * The library is opened on first use from `path` (set by the Python layer; NULL: the loader's default). */
void tpk_set_blas_path(const char* path);
const char* tpk_blas_name(void); /* "onednn 3.2.0", "openblas ..."; "" before first use */
/* c[m,n] = alpha * op(a)[m,k] op(b)[k,n] + beta * c, row-major, ld* in elements; trans: 0 or 1. 0 on success. */
int tpk_sgemm(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
              const float* b, int64_t ldb, float beta, float* c, int64_t ldc);
int tpk_dgemm(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, double alpha, const double* a, int64_t lda,
              const double* b, int64_t ldb, double beta, double* c, int64_t ldc);

#ifdef __cplusplus
}
#endif
#endif
