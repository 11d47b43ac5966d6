#!/usr/bin/env bash
# The kernels on x86-64-v2: their tests and a few lines of Python on a simulated Nehalem, where an instruction that is
# too new ends the program; and natively at each lower instruction set.
set -euo pipefail
source "$(dirname "$0")/environment.sh"
old=(qemu-x86_64 -cpu Nehalem)
build_kernel_tests "$scratch/release"
for level in v2 v3; do
  TP_CPU_ISA=$level ctest -j 2 --test-dir "$scratch/release" --output-on-failure --no-tests=error
done
for program in "$scratch"/release/tests/test_*; do
  [[ -f $program && -x $program ]] || continue
  if [[ ${program##*/} == test_pool ]]; then
    echo "Nehalem: test_pool is left out: qemu cannot start threads in a forked child, and no kernel is in it"
    continue
  fi
  echo "Nehalem: ${program##*/}"
  TPK_TEST_BLAS="$bundled_library" "${old[@]}" "$program"
done
"${old[@]}" .venv/bin/python tools/ci/smoke.py
