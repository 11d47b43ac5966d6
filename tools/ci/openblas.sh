#!/usr/bin/env bash
# tp-cpu as it is built where oneDNN's registry packages do not exist: from its sdist, with OpenBLAS, in a fresh
# environment.
set -euo pipefail
source "$(dirname "$0")/environment.sh"
out="$scratch/openblas"
rm -rf "$out"
for package in tp-core tp-operators; do uv build --quiet --package "$package" --wheel --out-dir "$out"; done
uv build --quiet --package tp-cpu --sdist --out-dir "$out"
TP_CPU_BLAS=openblas uv build --wheel "$out"/tp_cpu-*.tar.gz --python .venv/bin/python --out-dir "$out" \
  >"$out/build.log" 2>&1 || { tail -n 60 "$out/build.log"; exit 1; }
uv venv --quiet --python .venv/bin/python "$out/venv"
uv pip install --quiet --python "$out/venv/bin/python" "$out"/*.whl
(cd "$out" && venv/bin/python "$OLDPWD/tools/ci/smoke.py" libscipy_openblas)
