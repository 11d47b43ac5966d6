# Sourced by the scripts beside it: the workspace's folder, its tools first on PATH, and a place for what CI builds.
# shellcheck shell=bash
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export PATH="$PWD/.venv/bin:$PATH" UV_PYTHON_DOWNLOADS=never
unset VIRTUAL_ENV
scratch="$PWD/build/ci"
mkdir -p "$scratch"

# What the workspace's own build of tp-cpu has prepared (python3 run.py env).
bundled_library="$PWD/plugins/tp-cpu/src/tp_cpu/lib/libdnnl.so.3"
bundled_headers="$(ls -d "$PWD"/plugins/tp-cpu/build/*/bundled/include 2>/dev/null | head -n 1)"

# build_kernel_tests FOLDER [cmake options]: the kernels without Python, with their tests
build_kernel_tests() {
  cmake -S plugins/tp-cpu/kernels -B "$1" -G Ninja -DTPK_TESTS=ON -DTPK_ONEDNN_INCLUDE="$bundled_headers" \
    -DTPK_BLAS_LIBRARY="$bundled_library" "${@:2}" >"$scratch/cmake.log" || { cat "$scratch/cmake.log"; return 1; }
  cmake --build "$1" --parallel 2 -- --quiet
}
