"""The build backend: scikit-build-core, with two decisions of our own.

Which GEMM library: oneDNN where its registry packages exist (Linux on x86-64), OpenBLAS elsewhere, or what the
environment variable TP_CPU_BLAS (onednn, openblas) says.

An editable install is a plain path entry: CMake puts the native module beside the Python files (see CMakeLists.txt),
so the import hook of scikit-build-core, which every start of the interpreter would pay for, is left out.
"""

from __future__ import annotations

import base64
import hashlib
import os
import platform
import sys
import zipfile
from pathlib import Path

from scikit_build_core import build as skbuild

build_sdist = skbuild.build_sdist
get_requires_for_build_sdist = skbuild.get_requires_for_build_sdist
# No prepare_metadata hooks: the front end takes the metadata from the wheel, and nothing is configured twice.

ONEDNN = ["onednn-cpu-gomp==2023.2.0", "onednn-devel-cpu-gomp==2023.2.0"]
OPENBLAS = ["scipy-openblas32>=0.3.28,<0.4"]


def blas() -> str:
    """Return the name of the GEMM library to build against."""
    chosen = os.environ.get("TP_CPU_BLAS", "")
    if chosen not in ("", "onednn", "openblas"):
        raise SystemExit(f"TP_CPU_BLAS={chosen!r}: expected 'onednn' or 'openblas' (or unset: chosen by platform)")
    has_onednn = sys.platform == "linux" and platform.machine() == "x86_64"
    return chosen or ("onednn" if has_onednn else "openblas")


def get_requires_for_build_wheel(config_settings=None):
    own = ONEDNN if blas() == "onednn" else OPENBLAS
    return skbuild.get_requires_for_build_wheel(config_settings) + own


get_requires_for_build_editable = get_requires_for_build_wheel


def settings(config_settings):
    return {**(config_settings or {}), "cmake.define.TPK_BLAS": blas()}


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return skbuild.build_wheel(wheel_directory, settings(config_settings), metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    name = skbuild.build_editable(wheel_directory, settings(config_settings), metadata_directory)
    path = Path(wheel_directory) / name
    with zipfile.ZipFile(path) as wheel:
        files = {entry: wheel.read(entry) for entry in wheel.namelist() if ".dist-info/" in entry}
    files["tp_cpu_editable.pth"] = f"{Path(__file__).resolve().parents[1] / 'src'}\n".encode()
    record = next(entry for entry in files if entry.endswith("/RECORD"))
    files[record] = ("\n".join(record_line(*item) for item in files.items() if item[0] != record)
                     + f"\n{record},,\n").encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for entry, data in files.items():
            wheel.writestr(entry, data)
    return name


def record_line(entry: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{entry},sha256={digest},{len(data)}"
