#!/usr/bin/env bash
# The C++ sources as an aarch64 compiler reads them (no linking, nothing is run). oneDNN has no packages there.
set -euo pipefail
source "$(dirname "$0")/environment.sh"
headers="$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["include"])')"
kernels=plugins/tp-cpu/kernels
for file in "$kernels"/src/*.cpp "$kernels"/src/family/*.cpp "$kernels"/src/isa/*.cpp plugins/tp-cpu/src/native/*.cpp; do
  [[ $file == *onednn* ]] && continue
  aarch64-linux-gnu-g++ -std=c++17 -fsyntax-only -DTPK_ISA_SUFFIX=generic -I"$kernels/include" -I"$kernels/src" \
    -I"$headers" "$file"
done
