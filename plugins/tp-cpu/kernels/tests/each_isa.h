// Runs a test once for every instruction set that this processor has: the table of kernels is chosen once per process,
// so each set gets its own child.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

#include "tpk.h"

namespace check {

// 0 when `run` returned 0 under every set. Call it before anything else of tpk.
inline int each_isa(int (*run)()) {
  int failed = 0;
  for (const char* isa : {"v2", "v3", "v4"}) {
    std::fflush(nullptr);
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      setenv("TP_CPU_ISA", isa, 1);
      std::fprintf(stderr, "[%s -> %s] ", isa, tpk_isa());
      int status = run();
      std::fflush(nullptr);
      _exit(status);
    }
    int status = 0;
    waitpid(child, &status, 0);
    failed |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  }
  return failed;
}

}  // namespace check
