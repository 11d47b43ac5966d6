"""What somebody gets who installs only some of the distributions, from wheels in a folder and nothing else."""

from __future__ import annotations

import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = ["tensorplay", "tp-core", "tp-operators", "tp-tpx", "tp-cpu", "tp-nn", "tp-optim", "tp-io", "tp-testkit"]
CORE = ("tp-core",)
COMPUTING = ("tp-core", "tp-operators", "tp-cpu")
GRADIENTS = (*COMPUTING, "tp-tpx")
EVERYTHING = (*GRADIENTS, "tp-nn", "tp-optim", "tp-io")
MANIFESTS = {
    "tp-operators": "tp_operators/plugin.toml", "tp-tpx": "tp_tpx/plugin.toml", "tp-cpu": "tp_cpu/plugin.toml",
    "tp-nn": "tp_nn/plugin.toml", "tp-optim": "tp_optim/plugin.toml", "tp-io": "tp_io/plugin.toml",
    "tp-testkit": "tp_testkit/refdev.toml",
}

# one worker builds the wheels; the tests of this file stay with it
pytestmark = [pytest.mark.xdist_group("packaging"), pytest.mark.slow]

GRADIENT_PROGRAM = """
import tensorplay as tp
x = tp.Tensor([[1., 2.], [3., 4.]], requires_grad=True)
y = tp.Tensor([[5., 6.], [7., 8.]], requires_grad=True)
z = x.matmul(y) + tp.ones_like(x)
z.sum().backward()
print(x.grad.tolist())
"""

# Runs one statement; prints "returned" or the error's class and text; anything but a designed error is a traceback.
ATTEMPT = """
import sys
import tensorplay as tp
try:
    exec(sys.argv[1], {"tp": tp})
except Exception as error:
    if not any(base.__name__ == "TensorPlayError" for base in type(error).__mro__):
        raise
    print(type(error).__name__, str(error))
else:
    print("returned")
"""


def attempt(environment, statement: str) -> str:
    return environment.python("-c", ATTEMPT, statement).stdout.strip()


def megabytes(*paths: Path) -> float:
    files = [file for path in paths for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file()]
    return sum(file.stat().st_size for file in files if "__pycache__" not in file.parts) / 1e6


@pytest.mark.parametrize("name", NAMES)
def test_sdist_has_sources_and_licence(wheelhouse, name: str) -> None:
    with tarfile.open(wheelhouse.sdist(name)) as archive:
        names = [member.split("/", 1)[1] for member in archive.getnames() if "/" in member]
    assert {"PKG-INFO", "pyproject.toml", "README.md", "LICENSE"} <= set(names)
    assert not [path for path in names if path.endswith((".so", ".pyc", ".o", ".a")) or ".so." in path]
    if name == "tp-cpu":
        assert {"kernels/include/tpk.h", "kernels/CMakeLists.txt", "bundle/backend.py"} <= set(names)
        assert any(path.startswith("src/native/") for path in names)


@pytest.mark.parametrize("name", NAMES)
def test_wheel_has_manifest_licence_and_the_right_tag(wheelhouse, name: str) -> None:
    wheel = wheelhouse.wheel(name)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert any(path.endswith(".dist-info/licenses/LICENSE") for path in names)
    assert ("-py3-none-any.whl" in wheel.name) == (name != "tp-cpu")
    assert not [path for path in names if "/tests/" in path or path.endswith(".pyc")]
    if name in MANIFESTS:
        assert MANIFESTS[name] in names


def test_sizes(wheelhouse, install) -> None:
    assert megabytes(wheelhouse.wheel("tp-core")) <= 0.2
    assert megabytes(wheelhouse.wheel("tp-cpu")) <= 20
    site = install(*GRADIENTS).site_packages
    own = [path for path in site.iterdir() if path.name.split("-")[0] in ("tensorplay", "tp_core", "tp_operators",
                                                                          "tp_tpx", "tp_cpu")]
    assert len(own) == 8, own  # a package and a dist-info for each of the four
    assert megabytes(*own) <= 65


def test_core_alone_imports_and_makes_meta_tensors(install) -> None:
    environment = install(*CORE)
    program = ("import tensorplay as tp; x = tp.tensor([[1., 2., 3.]] * 4, device='meta');"
               "print(tuple(x.shape), x.stride(), tuple(x[1:, ::2].shape), x.dtype, x.device); print(x)")
    lines = environment.python("-W", "error", "-c", program).stdout.splitlines()
    assert lines[0] == "(4, 3) (3, 1) (3, 2) tensorplay.float32 meta"
    assert "meta" in lines[1] and "(4, 3)" in lines[1]


@pytest.mark.parametrize(("statement", "provider"), [
    ("tp.ones(2)", "tp-operators"),
    ("x = tp.tensor([1.], device='meta'); x + x", "tp-operators"),
    ("tp.tensor([1.], device='meta').reshape(1, 1)", "tp-operators"),
    ("tp.tensor([1.])", "tp-cpu"),
    ("import tensorplay.nn", "tp-nn"),
    ("tp.nn.Linear(2, 2)", "tp-nn"),
    ("from tensorplay.optim import AdamW", "tp-optim"),
    ("import tensorplay.io", "tp-io"),
])
def test_core_alone_says_what_is_missing(install, statement: str, provider: str) -> None:
    said = attempt(install(*CORE), statement)
    assert provider in said and "pip install" in said, said


@pytest.mark.parametrize("subset", [CORE, COMPUTING, GRADIENTS, EVERYTHING], ids=len)
def test_commands_answer_in_every_subset(install, subset: tuple[str, ...]) -> None:
    environment = install(*subset)
    for arguments in (["doctor"], ["ops"], ["explain", "gelu"], ["explain", "gelu", "--device", "cpu"]):
        done = environment.tp(*arguments)
        assert "Traceback" not in done.stdout + done.stderr, done.stderr
    report = environment.tp("doctor")
    assert report.returncode == 0
    # core is not an entry, it is what prints the table
    assert not [name for name in subset if name != "tp-core" and name not in report.stdout], report.stdout


def test_core_operators_and_cpu_compute(install) -> None:
    environment = install(*COMPUTING)
    program = ("import tensorplay as tp; x = tp.Tensor([[1., 2.], [3., 4.]]);"
               "print((x @ x + 1).tolist(), x.sum().item())")
    assert environment.python("-W", "error", "-c", program).stdout == "[[8.0, 11.0], [16.0, 23.0]] 10.0\n"
    said = attempt(environment, "x = tp.ones(2, requires_grad=True); (x * x).sum().backward()")
    assert "tp-tpx" in said and "pip install" in said, said


def test_adding_tpx_gives_gradients(install) -> None:
    assert install(*GRADIENTS).python("-W", "error", "-c", GRADIENT_PROGRAM).stdout == "[[11.0, 15.0], [11.0, 15.0]]\n"


def test_adding_nn_optim_and_io_gives_the_main_job(install) -> None:
    environment = install(*EVERYTHING)
    program = ROOT / "examples" / "tiny_lm.py"
    trained = environment.python(program, "--steps", "3", "--batch", "2")
    assert "nats/byte" in trained.stdout, trained.stdout
    assert (environment.work / "loss.svg").exists()
    written = environment.python(program, "--generate", "The with statement")
    assert "The with statement" in written.stdout


def test_bundled_library_needs_no_openmp_runtime(install) -> None:
    """The GEMM library opens on a machine without libgomp, and multiplies."""
    environment = install(*COMPUTING)
    library = environment.site_packages / "tp_cpu" / "lib"
    needed = [subprocess.run(["readelf", "-d", file], text=True, capture_output=True, check=True).stdout
              for file in library.glob("*.so*")]
    assert needed and not any("NEEDED" in line and "gomp" in line for text in needed for line in text.splitlines())
    program = ("import tensorplay as tp; x = tp.ones(300, 300); print((x @ x).sum().item());"
               "print([l for l in open('/proc/self/maps') if 'libgomp' in l])")
    assert environment.python("-c", program).stdout == "27000000.0\n[]\n"
