"""Writing: permissions, links, and that every failure leaves the old file and no rubbish beside it."""
from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import tensorplay as tp
from tensorplay import io


@pytest.fixture
def old(tmp_path) -> Path:
    path = tmp_path / "model"
    path.write_bytes(b"old")
    return path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(("mask", "expected"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664), (0, 0o666)])
def test_a_new_file_follows_the_umask(tmp_path, mask, expected) -> None:
    before = os.umask(mask)
    try:
        io.save_file({"x": tp.ones(1)}, tmp_path / "f")
    finally:
        os.umask(before)
    assert mode(tmp_path / "f") == expected


@pytest.mark.parametrize("permissions", [0o600, 0o666, 0o640, 0o444])
def test_an_old_file_keeps_its_permissions(old, permissions) -> None:
    old.chmod(permissions)
    io.save_file({"x": tp.ones(1)}, old)
    assert mode(old) == permissions


def test_a_link_stays_and_its_target_is_written(tmp_path, old) -> None:
    link, dangling = tmp_path / "link", tmp_path / "dangling"
    link.symlink_to("model")
    dangling.symlink_to("fresh")
    for path in (link, dangling):
        io.save_file({"x": tp.ones(1)}, path)
        assert path.is_symlink() and io.load_file(path)["x"].tolist() == [1.0]
    assert old.read_bytes() == (tmp_path / "fresh").read_bytes() != b"old"


def test_what_is_read_meanwhile_is_the_old_file(old) -> None:
    with io.atomic_write(old) as file:
        file.write(b"new")
        file.flush()
        assert old.read_bytes() == b"old"
    assert old.read_bytes() == b"new"


@pytest.mark.parametrize("problem", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(),
                                     ValueError("in the middle")])
@pytest.mark.parametrize("exists", [True, False])
def test_a_failure_in_the_middle(tmp_path, problem, exists) -> None:
    path = tmp_path / "f"
    if exists:
        path.write_bytes(b"old")
    with pytest.raises((io.WriteError, KeyboardInterrupt, ValueError)) as caught, io.atomic_write(path) as file:
        file.write(b"half")
        raise problem
    assert [p.read_bytes() for p in tmp_path.iterdir()] == ([b"old"] if exists else [])
    if isinstance(problem, OSError):
        ending = "the old file is unchanged" if exists else "nothing was written"
        assert f"writing {path} failed: No space left on device; {ending}" in str(caught.value)
        assert caught.value.errno == errno.ENOSPC and isinstance(caught.value, OSError)


@pytest.mark.parametrize("step", ["fsync", "replace", "open"])
def test_a_failing_system_call(old, monkeypatch, step) -> None:
    def full(*args, **named):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(io.WriteError, match="No space left on device"):
        io.save_file({"x": tp.ones(1)}, old)
    monkeypatch.undo()
    assert old.read_bytes() == b"old" and len(list(old.parent.iterdir())) == 1


LIMITED = """
import resource, sys
import tensorplay as tp
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    tp.io.save_file({"x": tp.ones(1_000_000)}, sys.argv[1])
except OSError as problem:
    print(problem)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on file sizes there")
def test_a_real_limit_while_writing(old) -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED, str(old)], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith(f"writing {old} failed: File too large; the old file is unchanged"), done.stderr
    assert old.read_bytes() == b"old" and len(list(old.parent.iterdir())) == 1


@pytest.mark.parametrize(("path", "message"), [
    ("no/such/folder", "No such file or directory"), (".", "it is a folder"),
    (os.devnull, "it is a device, pipe or socket"),
    ("model/inside", "Not a directory"), ("x" * 300, "File name too long")])
def test_places_that_cannot_be_written(old, monkeypatch, path, message) -> None:
    monkeypatch.chdir(old.parent)
    with pytest.raises(io.WriteError) as caught:
        io.save_file({"x": tp.ones(1)}, path)
    assert str(caught.value).startswith(f"cannot write {path}: {message} (test_atomic.py:")
    assert os.listdir() == ["model"] and stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_many_threads_write_one_file(tmp_path) -> None:
    path, problems = tmp_path / "f", []

    def write(value: int) -> None:
        try:
            for _ in range(5):
                io.save_file({"x": tp.full((1000,), value)}, path)
        except Exception as problem:
            problems.append(problem)

    threads = [threading.Thread(target=write, args=(i,)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    values = io.load_file(path)["x"].tolist()
    assert problems == [] and len(set(values)) == 1 and len(list(tmp_path.iterdir())) == 1
