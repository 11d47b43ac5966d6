#!/usr/bin/env bash
# The kernel tests under AddressSanitizer and UBSan, at every instruction set that this processor has.
set -euo pipefail
source "$(dirname "$0")/environment.sh"
build_kernel_tests "$scratch/sanitized" -DTPK_SANITIZE=ON -DCMAKE_BUILD_TYPE=Sanitized -DCMAKE_CXX_FLAGS=-O1
# a refused allocation gives NULL, as malloc does: the allocator tests ask for far too much
export ASAN_OPTIONS=allocator_may_return_null=1
for level in v2 v3 v4; do
  echo "TP_CPU_ISA=$level"
  TP_CPU_ISA=$level ctest -j 2 --test-dir "$scratch/sanitized" --output-on-failure --no-tests=error
done
