"""Signals that arrive while a library computes: the generated code of oneDNN's sgemm keeps data below the stack
pointer, so a handler that ran on the same stack would overwrite it (Ctrl-C in the middle of a training step ended in a
crash)."""
from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import signal, time
import tensorplay as tp

def count(number, frame):
    global signals
    signals += 1

signals = 0
tp.set_num_threads({threads})
x, weight = tp.randn(256, 128), tp.randn(341, 128)
image, filters = tp.randn(2, 16, 24, 24), tp.randn(32, 16, 3, 3)
programs = [lambda: tp.nn.functional.linear(x, weight), lambda: weight @ x.t(),
            lambda: tp.conv2d(image, filters)]
expected = [p() for p in programs]
signal.signal(signal.SIGALRM, count)
signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
end = time.monotonic() + 1.5
while time.monotonic() < end:
    for program, value in zip(programs, expected):
        assert (program() == value).all().item()
signal.setitimer(signal.ITIMER_REAL, 0)
assert signals > 100
print("unharmed")
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_signals_do_no_harm(threads: int) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(threads=threads)], capture_output=True, text=True,
                          timeout=120)
    assert (done.returncode, done.stdout) == (0, "unharmed\n"), done.stderr
