"""A folder of wheels and sdists of the whole workspace, and fresh environments filled from that folder alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = [ROOT, ROOT / "core", *sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))]
NATIVE = {"tp-cpu"}  # compiled: its wheel is built in the workspace, where objects are at hand


def environment() -> dict[str, str]:
    """The caller's variables without those that would let the workspace into a fresh environment.

    CMake and Ninja are the workspace's, as in run.py, so that tp-cpu's objects are used again.
    """
    dropped = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT")
    kept = {name: value for name, value in os.environ.items() if name not in dropped and not name.startswith("TP_")}
    return {**kept, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def run(*command: str | Path, cwd: Path | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=environment(), text=True, timeout=1500,
                          stdin=subprocess.DEVNULL, capture_output=True)
    if check and done.returncode:
        pytest.fail(f"{' '.join(map(str, command))}\nstatus {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def project(folder: Path) -> dict:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@dataclass
class Wheelhouse:
    folder: Path

    def wheel(self, name: str) -> Path:
        return self.single(name.replace("-", "_") + "-*.whl")

    def sdist(self, name: str) -> Path:
        return self.single(name.replace("-", "_") + "-*.tar.gz")

    def single(self, pattern: str) -> Path:
        found = list(self.folder.glob(pattern))
        assert len(found) == 1, f"{pattern}: {found}"
        return found[0]


@dataclass
class Environment:
    """A fresh virtual environment; `python` runs code in an empty folder of its own."""

    prefix: Path
    work: Path

    @property
    def site_packages(self) -> Path:
        return next(self.prefix.glob("lib/python3.*/site-packages"))

    def python(self, *arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        return run(self.prefix / "bin" / "python", *arguments, cwd=self.work, check=check)

    def tp(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run(self.prefix / "bin" / "tp", *arguments, cwd=self.work, check=False)


def third_party(pip: list[str | Path], folder: Path) -> None:
    """Download the wheels that the distributions under test declare, but not those of the testkit."""
    wanted = set()
    for path in PROJECTS:
        declared = project(path)
        if declared["name"] != "tp-testkit":
            wanted |= {need for need in declared.get("dependencies", ()) if not re.match(r"tp-|tensorplay\b", need)}
    run(*pip, "download", "--quiet", "--only-binary", ":all:", "--dest", folder, *sorted(wanted))


@pytest.fixture(scope="session")
def wheelhouse(tmp_path_factory: pytest.TempPathFactory) -> Wheelhouse:
    folder = tmp_path_factory.mktemp("wheelhouse")
    uv = [sys.executable, "-m", "uv", "build", "--python", sys.executable]
    run(*uv, "--all-packages", "--sdist", "--out-dir", folder, cwd=ROOT)
    for path in PROJECTS:
        name = project(path)["name"]
        if name in NATIVE:
            run(*uv, "--package", name, "--wheel", "--out-dir", folder, cwd=ROOT)
        else:
            run(*uv, "--wheel", next(folder.glob(name.replace("-", "_") + "-*.tar.gz")), "--out-dir", folder)
    helper = folder.parent / "helper"
    run(sys.executable, "-m", "venv", helper)
    third_party([helper / "bin" / "python", "-m", "pip"], folder)
    return Wheelhouse(folder)


@pytest.fixture(scope="session")
def install(wheelhouse: Wheelhouse, tmp_path_factory: pytest.TempPathFactory):
    """install("tp-core", ...) -> an Environment with just these and what they declare; made once per set."""
    made: dict[tuple[str, ...], Environment] = {}

    def install(*names: str) -> Environment:
        if names not in made:
            base = tmp_path_factory.mktemp("-".join(name.removeprefix("tp-") for name in names))
            prefix, work = base / "venv", base / "work"
            work.mkdir()
            run(sys.executable, "-m", "venv", prefix)
            run(prefix / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-index", "--find-links",
                wheelhouse.folder, *names)
            made[names] = Environment(prefix, work)
        return made[names]

    yield install
    for environment in made.values():
        shutil.rmtree(environment.prefix)
