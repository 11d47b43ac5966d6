"""What the documents say is true: their code runs and prints what they show, every public name has a docstring whose
example runs, and the tables of files and functions name what is there."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WITH_CODE = [DOCS / "one_call.md", DOCS / "add_an_op.md", ROOT / "README.md", *sorted(ROOT.glob("*/README.md")),
             *sorted(ROOT.glob("plugins/*/README.md"))]
LAYOUT_FOLDERS = {  # heading in layout.md -> folder and what its table lists
    "core": ("core/src/tensorplay", ("*.py",)),
    "tp-operators": ("plugins/tp-operators/src/tp_operators", ("*.py",)),
    "tp-tpx": ("plugins/tp-tpx/src/tp_tpx", ("*.py",)),
    "tp-cpu": ("plugins/tp-cpu/src/tp_cpu", ("*.py",)),
    "tp-cpu, native": ("plugins/tp-cpu/src/native", ("*.cpp", "*.h")),
    "tp-cpu, kernels": ("plugins/tp-cpu/kernels", ("include/*.h", "src/*.cpp", "src/*.h", "src/*/*.cpp")),
    "tp-nn": ("plugins/tp-nn/src/tp_nn", ("**/*.py",)),
    "tp-optim": ("plugins/tp-optim/src/tp_optim", ("*.py",)),
    "tp-io": ("plugins/tp-io/src/tp_io", ("*.py",)),
    "tp-testkit": ("plugins/tp-testkit/src/tp_testkit", ("**/*.py",)),
}
PACKAGES = ("tensorplay", "tp_operators", "tp_tpx", "tp_nn", "tp_optim", "tp_io")
PUBLIC_MODULES = ("tensorplay", "tensorplay.library", "tensorplay.driver", "tp_operators.linalg", "tp_operators.fft",
                  "tp_tpx", "tp_tpx.graph", "tp_nn", "tp_nn.functional", "tp_nn.init", "tp_nn.cache",
                  "tp_nn.generation", "tp_nn.utils", "tp_nn.parameter", "tp_optim", "tp_optim.lr_scheduler", "tp_io")


def failures(text: str, name: str, names: dict[str, Any], path: str | None = None, line: int = 0) -> str:
    """Run the examples of a docstring; what went wrong, as doctest reports it."""
    test = doctest.DocTestParser().get_doctest(text, names, name, path, line)
    report: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=report.append, clear_globs=False)
    names.update(test.globs)  # the test has its own copy
    return "".join(report)


# ---- pages -----------------------------------------------------------------------------------------------------------
def run_page(path: Path) -> str:
    """Run a page's blocks in their order, in one namespace: `python` is executed, `pycon` compared."""
    text = path.read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "page"}
    report = ""
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 1
        if block[1] == "python":
            exec(compile("\n" * line + block[2], str(path), "exec", dont_inherit=True), names)
        elif block[1] == "pycon":
            report += failures(block[2], path.name, names, str(path), line)
    return report


@pytest.mark.parametrize("path", WITH_CODE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_page(path: Path, tmp_path: Path) -> None:
    """In a process of its own, as a reader would run it: the pages show what a first call does."""
    program = "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); import test_docs;" \
              "report = test_docs.run_page(Path(sys.argv[2])); print(report); sys.exit(bool(report))"
    plain = {name: value for name, value in os.environ.items() if not name.startswith("TP_")}
    done = subprocess.run([sys.executable, "-c", program, str(Path(__file__).parent), str(path)], cwd=tmp_path,
                          capture_output=True, text=True, env=plain)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_wrong_page_fails(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\n```\n\n```pycon\n>>> x + 1\n2\n>>> x\n3\n```\n", encoding="utf-8")
    report = run_page(page)
    assert "Expected:\n    3\nGot:\n    1" in report and report.count("Failed example") == 1


@pytest.mark.parametrize("heading", LAYOUT_FOLDERS)
def test_layout_lists_every_file(heading: str) -> None:
    folder, patterns = LAYOUT_FOLDERS[heading]
    text = (DOCS / "layout.md").read_text(encoding="utf-8")
    _, found, rest = text.partition(f"\n## {heading}\n")
    assert found, f"layout.md has no section {heading!r}"
    listed = re.findall(r"^\| `([^`]+)` \|", rest.partition("\n## ")[0], re.MULTILINE)
    there = [path.relative_to(ROOT / folder).as_posix() for pattern in patterns
             for path in (ROOT / folder).glob(pattern)]
    assert len(listed) == len(set(listed))
    assert set(listed) == set(there)


@pytest.mark.parametrize("page", ["one_call.md", "add_an_op.md", "layout.md", "../README.md", "../CONTRIBUTING.md"])
def test_named_files_are_there(page: str) -> None:
    """A path in backquotes leads from the root, or ends the path of some file."""
    text = (DOCS / page).read_text(encoding="utf-8")
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True,
                           text=True).stdout.split()
    named = set(re.findall(r"`([\w./-]+\.(?:py|cpp|h|md|sh|toml|cmake))`", text)) - {"utils.py"}
    assert not sorted(name for name in named if not any(f"/{file}".endswith(f"/{name}") for file in files))
    links = re.findall(r"\]\(([\w./-]+)\)", text)
    assert not [link for link in links if not ((DOCS / page).parent / link).exists()]


def test_notes_are_numbered() -> None:
    notes = sorted(path.name for path in (DOCS / "notes").glob("*.md"))
    assert notes
    assert [int(name[:3]) for name in notes] == list(range(1, len(notes) + 1))
    for name in notes:
        text = (DOCS / "notes" / name).read_text(encoding="utf-8")
        for section in ("## Context", "## Choice", "## Rejected", "## Evidence"):
            assert f"\n{section}\n" in text, f"{name} has no {section}"


def test_a_weight_changed_behind_our_back_counts() -> None:
    """Note 008: nothing that depends on a tensor's values outlives a call."""
    tp = importlib.import_module("tensorplay")
    image, matrix = tp.ones(1, 1, 3, 3), tp.ones(2, 2)
    for weight, compute in ((tp.ones(1, 1, 2, 2), lambda w: tp.nn.functional.conv2d(image, w)),
                            (tp.ones(2, 2), lambda w: matrix @ w)):
        before = compute(weight)
        weight.numpy()[:] = 3.0
        assert compute(weight).tolist() == (before * 3).tolist()


# ---- docstrings ------------------------------------------------------------------------------------------------------
def modules(package: str) -> Iterator[types.ModuleType]:
    module = importlib.import_module(package)
    yield module
    for info in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if info.name != "__main__":
            yield from modules(f"{package}.{info.name}")


@pytest.mark.parametrize("package", PACKAGES)
def test_examples_of_a_package(package: str) -> None:
    """Functions and classes of its modules, private ones too."""
    report, count = "", 0
    for module in modules(package):
        for test in doctest.DocTestFinder(exclude_empty=True).find(module, globs={}):
            count += len(test.examples)
            lines: list[str] = []
            doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=lines.append)
            report += "".join(lines)
    assert not report, report
    assert count


def operators() -> dict[str, Any]:
    """Every function and method in the index of the operator library, by where a user finds it."""
    index = importlib.import_module("tp_operators._index")
    found = {}
    for prefix, table in (("tp.", index.FUNCTIONS), ("tp.nn.functional.", index.NN_FUNCTIONS)):
        for name, module in table.items():
            found[prefix + name] = getattr(importlib.import_module(module), name)
    for name, (module, attribute) in index.METHODS.items():
        found[f"Tensor.{name}"] = getattr(importlib.import_module(module), attribute)
    return found


def test_operators_have_docstrings() -> None:
    missing = [name for name, function in operators().items()
               if not function.__doc__ or hasattr(function, "op") and function.__doc__ == function.op.schema.text]
    assert not missing


def test_examples_of_operators() -> None:
    """Those whose docstring is text in a call of `op` are not found by looking through the modules."""
    seen: dict[int, Any] = {}
    report = ""
    for name, function in operators().items():
        if id(function) not in seen:
            seen[id(function)] = function
            report += failures(inspect.cleandoc(function.__doc__ or ""), name, {})
    assert not report, report
    assert len(seen) > 300


def members(owner: type) -> Iterator[tuple[str, Any]]:
    for name, value in vars(owner).items():
        function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if name[0] != "_" and inspect.isfunction(function):
            yield name, getattr(owner, name) if not isinstance(value, property) else value


@pytest.mark.parametrize("name", PUBLIC_MODULES)
def test_public_names_have_docstrings(name: str) -> None:
    """A method that replaces one of its base class has the base's."""
    module = importlib.import_module(name)
    missing = []
    for public in getattr(module, "__all__", None) or [public for public in vars(module) if public[0] != "_"]:
        value = getattr(module, public)
        if inspect.isclass(value):
            missing += [f"{public}.{member}" for member, function in members(value) if not inspect.getdoc(function)]
        if (inspect.isclass(value) or inspect.isfunction(value)) and not value.__doc__:
            missing.append(public)
    assert not missing
