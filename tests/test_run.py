"""run.py, the script behind the two commands: what it says on a machine that lacks something."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "run.py"


@pytest.fixture
def script():
    specification = importlib.util.spec_from_file_location("run_script", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def start(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], env={**os.environ, **variables}, text=True,
                          capture_output=True)


def test_is_readable_for_an_old_python_and_needs_nothing_installed() -> None:
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"), feature_version=(3, 7))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert imported <= sys.stdlib_module_names
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]


def test_names_every_missing_program_with_its_package() -> None:
    done = start("test", PATH="/nowhere", CXX="")
    assert done.returncode == 1
    assert done.stderr == (
        "run.py: This machine lacks:\n"
        "  a C++ compiler (g++, or what CXX names)    Debian/Ubuntu package: g++\n"
        "  git                                        Debian/Ubuntu package: git\n"
        "Install with: sudo apt-get install g++ git\n")


def test_names_missing_parts_of_python(script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    monkeypatch.setattr(script.sysconfig, "get_paths", lambda: {"include": "/nowhere"})
    with pytest.raises(script.Stop, match=r"(?s)venv and ensurepip.*-venv.*Python\.h.*-dev.*apt-get install python3"):
        script.check_machine()


@pytest.mark.parametrize(("oldest", "newest"), [((3, 90), (3, 99)), ((3, 0), (3, 1))])
def test_refuses_other_pythons(script, monkeypatch: pytest.MonkeyPatch, oldest: tuple, newest: tuple) -> None:
    monkeypatch.setattr(script, "OLDEST", oldest)
    monkeypatch.setattr(script, "NEWEST", newest)
    with pytest.raises(script.Stop, match=rf"needs Python 3\.{oldest[1]} to 3\.{newest[1]}; this is Python 3\."):
        script.check_machine()


def test_passes_the_index_of_pip_on_to_uv(script, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX"):
        monkeypatch.delenv(name, raising=False)
    configured = "global.index-url='https://mirror.invalid/simple'\n:env:.cert='/some/bundle.crt'"
    monkeypatch.setattr(script, "answers", lambda *command: configured)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    variables = script.uv_environment()
    assert variables["UV_DEFAULT_INDEX"] == "https://mirror.invalid/simple"
    assert variables["SSL_CERT_FILE"] == "/some/bundle.crt"
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://own.invalid/simple")
    assert script.uv_environment()["UV_DEFAULT_INDEX"] == "https://own.invalid/simple"


def test_paths_for_pytest_are_seen_from_the_callers_folder(script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent)
    assert script.absolute("test_run.py::test_a") == f"{Path(__file__).resolve()}::test_a"
    assert script.absolute("-k") == "-k"
    assert script.absolute("matmul and not grad") == "matmul and not grad"


def test_without_a_command_it_explains_itself() -> None:
    assert start().returncode == 2
    assert start("--help").returncode == 0
    assert "run.py train" in start("dance").stdout


def test_ci_scripts_are_sound() -> None:
    scripts = [ROOT / ".ci" / "run", *sorted((ROOT / "tools" / "ci").glob("*.sh"))]
    assert len(scripts) >= 7
    for path in scripts:
        subprocess.run(["bash", "-n", str(path)], check=True)
        assert os.access(path, os.X_OK) or path.name == "environment.sh", path
    listed = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert not [path.name for path in scripts[1:] if path.name != "environment.sh" and path.name not in listed]
