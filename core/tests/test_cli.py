"""The `tp` command: doctor, explain, ops; and `tp.explain`."""
from __future__ import annotations

import os
import subprocess
import sys

import pytest

import tensorplay as tp
from tensorplay import _fallback, _hookspecs, _plugins, library
from tensorplay._cli import main
from tensorplay._errors import ArgumentError
from tensorplay._explain import called_ops, chain, explain, find_op, location


@pytest.fixture(autouse=True)
def no_tools_yet(monkeypatch):
    monkeypatch.setattr(_hookspecs, "_manager", None)
    monkeypatch.setattr(_hookspecs, "_registered", {})


def run(capsys, *arguments, status=0):
    assert main(list(arguments)) == status
    return capsys.readouterr()


def row(text, name, distribution=""):
    """The cells of a row of the doctor's table, and the notes below it."""
    lines = text.splitlines()
    i = next(i for i, line in enumerate(lines) if line.split()[1:2] == [name] and distribution in line)
    notes = []
    for line in lines[i + 1:]:
        if not line.startswith("    "):
            break
        notes.append(line.strip())
    return lines[i].split(), notes


LONG = "tp-" + "a-very-long-distribution-name-" * 4 + "end"
PROBE = ('api = {{ written = 1, oldest = 0 }}\nload = "{name}"\nprobe = "{name}_package.probe:probe"\n'
         'requires = ["luck"]\n')


def test_doctor_shows_every_state_untruncated(site, capsys):
    site.device("well", LONG)
    site.device("away", manifest=PROBE, probe="def probe():\n    return ('no hardware', 'buy some')\n")
    site.device("broken", driver="raise SystemExit(7)")
    site.device("toonew", level=5)
    site.device("twice", "acme-one", package="one_cli")
    site.device("twice", "acme-two", package="two_cli")
    site.install("tp-spoilt", {"ops": {"spoilt": "nowhere:plugin.toml"}})
    text = run(capsys, "doctor").out
    assert row(text, "well")[0] == ["device", "well", "active", LONG, "1.0", "1"]
    assert row(text, "well")[1][0].startswith("operators: ")
    assert row(text, "away") == (["device", "away", "unavailable", "tp-away", "1.0", "0-1"],
                                 ["reason: no hardware", "fix: buy some", "requires: luck"])
    assert row(text, "broken") == (["device", "broken", "failed", "tp-broken", "1.0", "1"],
                                   ["reason: loading broken_package.driver:HeapDriver raised SystemExit: 7",
                                    "fix: pip install --upgrade --force-reinstall tp-broken"])
    cells, notes = row(text, "toonew")
    assert cells[2] == "failed"
    assert notes[0].startswith("reason: it is written to API level 5")
    assert notes[1] == "fix: pip install --upgrade tp-core"
    for distribution, other in (("acme-one", "acme-two"), ("acme-two", "acme-one")):
        assert row(text, "twice", distribution)[1] == [
            f"not used: {other} 1.0 provides 'twice' too; TP_PREFER=twice:{distribution} chooses this one"]
    assert row(text, "spoilt")[0][:4] == ["ops", "spoilt", "failed", "tp-spoilt"]
    assert row(text, "meta")[0][2] == "active"


def test_doctor_says_what_is_missing(capsys, monkeypatch):
    monkeypatch.setitem(_plugins.BUILT_IN, "cpu", ("tp_cpu_absent", "CpuDriver", "tp-cpu"))
    assert row(run(capsys, "doctor").out, "cpu") == (["device", "cpu", "missing", "tp-cpu", "-", "-"],
                                                     ["fix: pip install tp-cpu"])


STRANGERS = [  # (metadata, noticed)
    ("Summary: something else\n", True),
    ("Requires-Dist: tp-core>=0.1.0,<0.2\n", False),
]


@pytest.mark.parametrize(("metadata", "noticed"), STRANGERS)
def test_doctor_notices_a_strangers_tensorplay(site, capsys, metadata, noticed):
    site.install("tensorplay", {}, version="1.1.0", metadata=metadata)
    assert ("tensorplay 1.1.0 (" in run(capsys, "doctor").out) == noticed


def test_doctor_survives_metadata_that_cannot_be_read(site, capsys):
    os.makedirs(site.folder / "odd-1.dist-info/entry_points.txt/x")
    site.install("tp-\x1b[31mred", {"devices": {"r\x07ed": "x:y.toml"}})
    text = run(capsys, "doctor").out
    assert "odd-1.dist-info/entry_points.txt: not a regular file" in text
    assert "\x1b" not in text
    assert "\x07" not in text


def test_doctor_counts_fallbacks(capsys, monkeypatch):
    monkeypatch.setattr(_fallback, "counts", {("cholesky", "well"): 3})
    assert "Host fallbacks in this process:\n    cholesky on well: 3" in run(capsys, "doctor").out


TOOL = """
from tensorplay._hookspecs import hookimpl

@hookimpl
def tensorplay_doctor_rows():
    return [("acme driver", "5.1"), ("odd",), 3]

@hookimpl
def tensorplay_cli_commands(commands):
    commands.add_parser("greet").set_defaults(run=greet)

@hookimpl
def tensorplay_explain(op, chain):
    return f"acme: {op} {chain.outcome}"

def greet(arguments):
    print("hello")
    return 3
"""


def test_tools_add_commands_rows_and_explanations(site, capsys):
    site.install("tp-greeter", {"tools": {"greeter": "greeter_tool:plugin.toml"}},
                 {"greeter_tool/__init__.py": TOOL.replace(', ("odd",), 3', ""),
                  "greeter_tool/plugin.toml": "api = { written = 1, oldest = 1 }\n"})
    assert run(capsys, "greet", status=3).out == "hello\n"
    assert "From tools:\n    acme driver: 5.1" in run(capsys, "doctor").out
    assert run(capsys, "explain", "clitest::triple", "--device", "meta").out.endswith("acme: clitest::triple kernel\n")


def test_a_tool_with_nonsense_rows_does_not_stop_the_doctor(site, capsys):
    site.install("tp-odd", {"tools": {"odd": "odd_tool:plugin.toml"}},
                 {"odd_tool/__init__.py": TOOL, "odd_tool/plugin.toml": "api = { written = 1, oldest = 1 }\n"})
    assert "rows that cannot be shown: ValueError" in run(capsys, "doctor").out


# ---- explain ---------------------------------------------------------------------------------------------------------
triple = library.op("clitest::triple(Operand input) -> Tensor", tags=(library.ELEMENTWISE,), replace=True)
sextuple = library.op("clitest::sextuple(Operand input) -> Tensor", tags=(library.ELEMENTWISE,), replace=True)
lonely = library.op("clitest::lonely(Tensor input) -> Tensor", replace=True)
lonely.meta(lambda input: input)  # noqa: A002


@sextuple.decomposition
def sextuple_by_threes(input):  # noqa: A002
    return triple(triple(input))


@triple.vjp
def triple_vjp(grad):
    return triple(grad)


def here(function):
    return f"{__file__}:{function.__code__.co_firstlineno}"


@pytest.fixture
def device(site):
    site.device("workshop")
    tp.device("workshop")

    @triple.kernel("workshop")
    def kernel(out, input):  # noqa: A002
        out.storage.data[:] = b"".join([bytes([3 * value]) for value in input.storage.data])

    yield kernel
    del triple.op.kernels["workshop"]
    library.OPS["clitest::triple"].table.clear()


def test_explain_shows_each_link_with_file_and_line(device):
    text = str(chain(triple.op, "workshop"))
    assert text.splitlines()[0] == "clitest::triple(Operand input) -> Tensor"
    assert f"2. kernel                   {here(device)}" in text
    assert "after meta and allocation  <- runs" in text
    assert f"gradient: vjp at {here(triple_vjp)}" in text
    assert "device's decomposition   none" in text


def test_explain_goes_into_decompositions(device):
    found = chain(sextuple.op, "workshop")
    assert (found.outcome, found.runs) == ("common decomposition", sextuple_by_threes)
    text = str(found)
    assert f"4. common decomposition     {here(sextuple_by_threes)}" in text
    assert f"         clitest::triple        kernel                   {here(device)}\n" in text


def test_explain_says_what_cannot_run(device):
    found = chain(lonely.op, "workshop")
    assert found.outcome in ("missing", "host fallback")  # with tp-cpu neither kernel nor decomposition exists either
    assert "clitest::lonely cannot run here" in str(found)


def test_explain_of_a_call_shows_the_operators_that_ran(device):
    x = tp.tensor([1, 2], dtype=tp.uint8, device="workshop")
    explained = explain(sextuple, x)
    assert explained.result.tolist() == [9, 18]
    assert [one.op.name for one in explained.chains] == ["clitest::sextuple"]
    explained = tp.explain(lambda: [triple(x) for _ in range(3)] and None)
    assert [(one.op.name, count) for one, count in zip(explained.chains, explained.counts)] == [("clitest::triple", 3)]
    assert repr(explained).startswith("3 x clitest::triple(Operand input) -> Tensor")
    assert repr(explain(len, [])) == "no operator ran"
    assert explain(triple, device="workshop").chains[0].outcome == "kernel"


def test_explain_command(device, capsys):
    assert here(device) in run(capsys, "explain", "clitest::triple", "--device", "workshop").out
    assert "kernel" in run(capsys, "explain", "clitest::triple", "--device", "meta").out
    done = run(capsys, "explain", "clitest::tripel", "--device", "meta", status=1)
    assert done.err.startswith("tp: there is no operator 'clitest::tripel'; did you mean 'clitest::triple'")
    done = run(capsys, "explain", "clitest::triple", "--device", "metta", status=1)
    assert "there is no device 'metta'; did you mean 'meta'?" in done.err


def test_ops_command(device, capsys):
    lines = run(capsys, "ops", "clitest::*", "--device", "workshop").out.splitlines()
    assert [line.split()[0] for line in lines] == ["clitest::lonely", "clitest::sextuple", "clitest::triple"]
    assert lines[2].endswith("kernel")
    assert lines[1].endswith("common decomposition")
    assert "vjp" in run(capsys, "ops", "clitest::triple").out


def test_locations():
    import functools

    class Callable:
        def __call__(self):
            pass

    assert location(here) == here(here)
    assert location(functools.partial(here, 1)) == here(here)
    assert location(Callable()) == here(Callable.__call__)
    assert location(len) == "builtins.len (native)"
    assert location(explain).startswith("tensorplay/_explain.py:")


def test_find_op_names_close_matches():
    assert find_op("clitest::triple") is triple.op
    with pytest.raises(ArgumentError, match=r"did you mean 'clitest::sextuple'"):
        find_op("clitest::sextupel")
    assert called_ops(sextuple_by_threes) == [triple.op]


def test_python_m_tensorplay_and_odd_terminals():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "ascii"}
    for arguments, expected in ((["doctor"], "KIND"), ([], "usage: tp"), (["ops", "no_such*"], "")):
        done = subprocess.run([sys.executable, "-m", "tensorplay", *arguments], capture_output=True, text=True,
                              env=environment, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")
        assert expected in done.stdout
