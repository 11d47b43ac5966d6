#!/usr/bin/env bash
# pyright over the examples and tests/types, seeing what a user sees: installed wheels, no source folders.
set -euo pipefail
source "$(dirname "$0")/environment.sh"
out="$scratch/types"
rm -rf "$out"
uv build --quiet --all-packages --wheel --python .venv/bin/python --out-dir "$out"
uv venv --quiet --python .venv/bin/python "$out/venv"
uv pip install --quiet --python "$out/venv/bin/python" --find-links "$out" "tensorplay[all] @ $(ls "$out"/tensorplay-*.whl)"
pyright --pythonpath "$out/venv/bin/python"
