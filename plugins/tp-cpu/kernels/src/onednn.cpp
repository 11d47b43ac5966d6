// oneDNN, opened at run time through its C interface and always called sequentially: our pool is the only one that
// starts threads (OpenMP regions hang after fork and wait for descheduled threads).
#include "onednn.h"

#include <dlfcn.h>

#include <cstdio>

#include "blas.h"

namespace {

OneDnn* open_library() {
  static OneDnn functions;
  void* handle = tpk_open_library("libdnnl.so.3");
  bool complete = handle != nullptr;
  const auto find = [&](auto& target, const char* name) {
    void* address = complete ? dlsym(handle, name) : nullptr;
    target = reinterpret_cast<std::remove_reference_t<decltype(target)>>(address);
    complete = complete && address;
  };
#define TPK_FIND(name) find(functions.name, "dnnl_" #name);
  TPK_ONEDNN_FUNCTIONS(TPK_FIND)
#undef TPK_FIND
  // Absent in a build of the library without OpenMP.
  functions.get_threads = handle ? reinterpret_cast<int (*)()>(dlsym(handle, "omp_get_max_threads")) : nullptr;
  functions.set_threads = handle ? reinterpret_cast<void (*)(int)>(dlsym(handle, "omp_set_num_threads")) : nullptr;
  if (!complete || (functions.get_threads == nullptr) != (functions.set_threads == nullptr)) {
    tpk_set_blas_name("built-in");
    return nullptr;
  }
  const dnnl_version_t* version = functions.version();
  char name[64];
  snprintf(name, sizeof name, "onednn %d.%d.%d", version->major, version->minor, version->patch);
  tpk_set_blas_name(name);
  return &functions;
}

}  // namespace

const OneDnn* tpk_onednn() {
  static const OneDnn* const library = open_library();
  return library;
}

OneThread::OneThread(const OneDnn* library) : library(library) {
  before = library->get_threads ? library->get_threads() : 1;
  if (before != 1) library->set_threads(1);
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &signals);
}

OneThread::~OneThread() {
  pthread_sigmask(SIG_SETMASK, &signals, nullptr);
  if (before != 1) library->set_threads(before);
}

bool tpk_library_sgemm(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
                       int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  const OneDnn* library = tpk_onednn();
  if (!library) return false;
  OneThread one(library);
  return library->sgemm(trans_a ? 'T' : 'N', trans_b ? 'T' : 'N', m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) ==
         dnnl_success;
}

bool tpk_library_dgemm(int, int, int64_t, int64_t, int64_t, double, const double*, int64_t, const double*, int64_t,
                       double, double*, int64_t) {
  return false; // oneDNN has no float64 product
}
