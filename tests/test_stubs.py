"""The type stubs of core are what the code says, and nothing at run time is hidden by them."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "core" / "src" / "tensorplay"
NAMESPACE_STUBS = sorted(path for path in CORE.rglob("*.pyi") if path.parent != CORE or path.stem[0] != "_")


def test_stubs_are_current() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "generate_stubs.py"), "--check"], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr


def stub_names(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.asname for alias in node.names if alias.asname}
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return {name for name in found if name[0] != "_"}


def test_a_checker_sees_the_names_that_exist() -> None:
    import tensorplay as tp

    seen = stub_names(CORE / "__init__.pyi")
    assert not [name for name in seen if not hasattr(tp, name)]
    modules = {path.stem for path in CORE.glob("*.py")}
    there = {name for name in dir(tp) if name[0] != "_"} - {"annotations", "TYPE_CHECKING", "testing"} - modules
    assert not there - seen


def test_a_checker_sees_the_methods_that_exist() -> None:
    import tensorplay as tp

    tree = ast.parse((CORE / "_tensor.pyi").read_text(encoding="utf-8"))
    tensor = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Tensor")
    seen = {node.name for node in tensor.body if isinstance(node, ast.FunctionDef)}
    seen |= {node.target.id for node in tensor.body if isinstance(node, ast.AnnAssign)}
    assert not [name for name in seen if not hasattr(tp.Tensor, name)]
    assert not [name for name in dir(tp.Tensor) if name[0] != "_" and name not in seen]


@pytest.mark.parametrize("stub", NAMESPACE_STUBS, ids=lambda path: path.relative_to(CORE).as_posix())
def test_a_namespace_has_what_its_stub_says(stub: Path) -> None:
    parts = [part for part in stub.relative_to(CORE).with_suffix("").parts if part != "__init__"]
    module = importlib.import_module(".".join(["tensorplay", *parts]))
    assert module.__name__.startswith("tp_")
    names = stub_names(stub)
    assert names
    assert not [name for name in names if not hasattr(module, name)]


def test_a_folder_of_stubs_is_no_module() -> None:
    """Core alone: its folder nn/ must not be taken for a package without `__init__`."""
    program = f"import sys; sys.path.insert(0, {str(CORE.parent)!r})\nimport tensorplay\n" \
              "try:\n    import tensorplay.nn\nexcept ModuleNotFoundError as error:\n    print(error)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True)
    assert "tensorplay.nn is provided by tp-nn, which is not installed" in done.stdout, done.stdout + done.stderr
