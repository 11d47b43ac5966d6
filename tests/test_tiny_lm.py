"""examples/tiny_lm.py as its users run it: from a folder of their own, stopped and resumed, and given nonsense."""
from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import tensorplay as tp

SCRIPT = Path(__file__).resolve().parents[1] / "examples" / "tiny_lm.py"
LAST_LINE = re.compile(r"held-out \d+\.\d{3} nats/byte, \d+\.\d{3} on new bytes")
QUICK = ("--batch", "2", "--lr", "0.01")
ENVIRONMENT = {**os.environ, "TP_NUM_THREADS": "1", "COLUMNS": "120"}


def run(folder: Path, *arguments: str, **named) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], cwd=folder, env=ENVIRONMENT, text=True,
                          capture_output=True, timeout=120, encoding="utf-8", **named)


def trained(folder: Path, *arguments: str) -> str:
    done = run(folder, *QUICK, *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    """Four thousand bytes that hardly repeat."""
    path = tmp_path_factory.mktemp("text") / "own text.txt"
    path.write_text(" ".join(f"{i * i}: ä{i}" for i in range(330)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory, text) -> tuple[Path, str]:
    """An uninterrupted run of six steps."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, trained(folder, "--text", str(text), "--steps", "6")


def test_a_run_on_a_text_of_ones_own(whole, text) -> None:
    folder, output = whole
    lines = output.splitlines()
    assert LAST_LINE.fullmatch(lines[-1]), output
    size = text.stat().st_size
    assert f"{size * 9 // 10:,} bytes to learn from, {size - size * 9 // 10:,} held out" in output
    assert lines[0].startswith("TinyLM ") and "754 432 parameters, 2.9 MiB" in output and "6/6" in output
    assert "The with statement" in output and "saved tiny_lm.safetensors and loss.svg" in output
    assert sorted(p.name for p in folder.iterdir()) == ["loss.svg", "tiny_lm.resume.safetensors",
                                                        "tiny_lm.safetensors"]


def test_the_curve_is_a_picture(whole) -> None:
    root = ElementTree.parse(whole[0] / "loss.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    lines = root.findall("{http://www.w3.org/2000/svg}polyline")
    points = [[tuple(map(float, p.split(","))) for p in line.get("points").split()] for line in lines]
    assert len(points) == 2 and all(len(p) == 2 for p in points)
    assert all(0 <= x <= 640 and 0 <= y <= 360 for line in points for x, y in line)


def test_the_same_seed_gives_the_same_run(whole, text, tmp_path) -> None:
    written = [output[output.index("saved tiny_lm"):]
               for output in (whole[1], trained(tmp_path, "--text", str(text), "--steps", "6"))]
    assert written[0] == written[1]
    for name in ("tiny_lm.safetensors", "tiny_lm.resume.safetensors", "loss.svg"):
        assert (tmp_path / name).read_bytes() == (whole[0] / name).read_bytes(), name


def test_resuming_goes_on_exactly(whole, text, tmp_path) -> None:
    trained(tmp_path, "--text", str(text), "--steps", "4")
    output = trained(tmp_path, "--text", str(text), "--steps", "6", "--resume")
    assert output.splitlines()[-1] == whole[1].splitlines()[-1]
    assert (tmp_path / "tiny_lm.safetensors").read_bytes() == (whole[0] / "tiny_lm.safetensors").read_bytes()


def test_ctrl_c_saves_and_the_printed_command_goes_on_exactly(text, tmp_path) -> None:
    stopped, unstopped = tmp_path / "stopped", tmp_path / "unstopped"
    stopped.mkdir(), unstopped.mkdir()
    arguments = [*QUICK, "--text", str(text), "--steps", "100000"]
    process = subprocess.Popen([sys.executable, str(SCRIPT), *arguments], cwd=stopped, env=ENVIRONMENT, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    for line in process.stdout:
        if "held out" in line:
            break
    time.sleep(1)  # in the middle of a step
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and errors == "", errors
    found = re.search(r"stopped after (\d+) of 100000 steps and saved; go on with: (.*)\n", output)
    assert found, output
    steps = int(found[1])
    assert found[2] == (f"python {SCRIPT} --resume '--text={text}' --steps=100000 --batch=2 --lr=0.01")
    trained(stopped, "--text", str(text), "--resume", "--steps", str(steps + 2))
    trained(unstopped, "--text", str(text), "--steps", str(steps + 2))
    assert (stopped / "tiny_lm.safetensors").read_bytes() == (unstopped / "tiny_lm.safetensors").read_bytes()


def test_generate_in_a_new_process(whole) -> None:
    first, again, other = (run(whole[0], "--generate", "The with statement", "--seed", seed) for seed in "112")
    assert first.returncode == 0 and first.stderr == "" and first.stdout.startswith("The with statement")
    assert len(first.stdout) > 200 and first.stdout == again.stdout != other.stdout


def test_output_for_a_terminal_that_knows_ascii_only(whole) -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), "--generate", "naïve \udcff"], cwd=whole[0], text=True,
                          capture_output=True, timeout=120, env={**ENVIRONMENT, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("na?ve ?")


def test_the_default_text_is_on_every_machine(tmp_path) -> None:
    output = trained(tmp_path, "--steps", "1")
    learned, held = re.search(r"([\d,]+) bytes to learn from, ([\d,]+) held out", output).groups()
    assert 410_000 < int(learned.replace(",", "")) < 470_000 and 45_000 < int(held.replace(",", "")) < 52_500
    everywhere, new = map(float, re.findall(r"\d+\.\d{3}", output.splitlines()[-1]))
    assert 2 < everywhere < 5.6 and 2 < new < 5.6


def broken(folder: Path, name: str, content: bytes = b"") -> None:
    (folder / name).write_bytes(content)


def other_model(folder: Path) -> None:
    tp.io.save_file({"embed_tokens.weight": tp.ones(256, 64)}, folder / "tiny_lm.safetensors")


def half_a_run(folder: Path) -> None:
    import importlib.util

    spec = importlib.util.spec_from_file_location("tiny_lm_example", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    state = {f"model.{name}": value for name, value in module.TinyLM().state_dict().items()}
    tp.io.save_file(state, folder / module.RESUME_FILE, {"format": "tiny_lm.resume", "step": "3"})


BAD = [  # (what there is, arguments, what the one line says)
    (None, ["--text", "nowhere.txt"], "cannot read nowhere.txt: No such file or directory"),
    (None, ["--text", "."], "cannot read .: Is a directory"),
    (lambda f: broken(f, "t"), ["--text", "t"], "t has 0 bytes, too few to learn from: at least 2580 are needed"),
    (lambda f: broken(f, "t", b"short"), ["--text", "t"], "t has 5 bytes, too few to learn from: at least 2580 are"),
    (lambda f: broken(f, "t", b"abc \xe4 " * 999), ["--text", "t"],
     "t is not UTF-8 text: byte 0xe4 at position 4; convert it, e.g. with iconv -f latin1 -t utf-8"),
    (None, ["--device", "warp", "--steps", "1"], "there is no device 'warp'. Devices here: cpu, "),
    (None, ["--steps", "0"], "--steps must be at least 1, got 0"),
    (None, ["--batch", "-3"], "--batch must be at least 1, got -3"),
    (None, ["--lr", "-1"], "AdamW: lr must not be negative, got -1.0"),
    (None, ["--lr", "nan"], "AdamW: lr must not be negative, got nan"),
    (None, ["--seed", str(1 << 70)], "a seed has 64 bits"),
    (None, ["--lr", "1e30", "--batch", "1", "--steps", "5"], "; a smaller --lr than 1e+30 helps"),
    (None, ["--resume"], "there is no tiny_lm.resume.safetensors here to go on from; start a run without --resume"),
    (lambda f: broken(f, "tiny_lm.resume.safetensors", b"123"), ["--resume"],
     "tiny_lm.resume.safetensors: 3 bytes are too few for a safetensors file"),
    (lambda f: tp.io.save_file({"x": tp.ones(1)}, f / "tiny_lm.resume.safetensors"), ["--resume"],
     "tiny_lm.resume.safetensors was not written by this program"),
    (half_a_run, ["--resume"], "tiny_lm.resume.safetensors is incomplete ('generator'); start a run without --resume"),
    (None, ["--generate", "x"], "there is no tiny_lm.safetensors here; train one first, without --generate"),
    (lambda f: broken(f, "tiny_lm.safetensors", b"\xff" * 100), ["--generate", "x"],
     "tiny_lm.safetensors: the header claims 18446744073709551615 bytes, but the file has 92"),
    (other_model, ["--generate", "x"], "tiny_lm.safetensors does not fit this program's model: missing: "),
    (other_model, ["--generate", ""], "--generate needs at least one character to go on from"),
]


@pytest.mark.parametrize(("prepare", "arguments", "message"), BAD, ids=[" ".join(c[1])[:40] for c in BAD])
def test_bad_input_gives_one_line(tmp_path, prepare, arguments, message) -> None:
    if prepare is not None:
        prepare(tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    done = run(tmp_path, *arguments)
    assert done.returncode == 1 and done.stderr.startswith("tiny_lm: ") and message in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1 and "Traceback" not in done.stdout + done.stderr
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs a folder that not even root can write into")
def test_a_folder_that_cannot_be_written_is_noticed_before_the_training() -> None:
    done = run(Path("/proc/self/fd").parent.resolve(), "--steps", "1")
    assert done.returncode == 1 and "tiny_lm: cannot write into this folder (/proc/" in done.stderr, done.stderr


def test_a_full_disk_leaves_the_old_files(tmp_path, whole, text) -> None:
    for name in ("tiny_lm.safetensors", "tiny_lm.resume.safetensors"):
        (tmp_path / name).write_bytes((whole[0] / name).read_bytes())
    limit = "import resource,runpy,sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000,) * 2); " \
            "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", limit, str(SCRIPT), *QUICK, "--text", str(text), "--steps", "1"],
                          cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, encoding="utf-8")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
    assert "writing tiny_lm.safetensors failed: File too large; the old file is unchanged" in done.stderr
    for name in ("tiny_lm.safetensors", "tiny_lm.resume.safetensors"):
        assert (tmp_path / name).read_bytes() == (whole[0] / name).read_bytes()
    assert len(list(tmp_path.iterdir())) == 2
