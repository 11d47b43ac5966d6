"""Nonsense around the program: environment variables, fork, threads, Ctrl-C. Each case is a process of its own."""
from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import pytest


def python(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], env={**os.environ, **variables}, capture_output=True,
                          text=True, timeout=120)


ADD = "import tensorplay as tp; print((tp.ones(2) + 1).tolist())"
FALL_BACK = ("import tensorplay as tp; x = tp.ones(2, device='refdev'); "
             "print(tp.nextafter(x, x + 1).to('cpu').tolist()[0] > 1)")
ENVIRONMENT = [  # (variables, program, last line of what it says)
    ({"TP_NUM_THREADS": "abc"}, ADD, "TP_NUM_THREADS='abc' in the environment: expected a whole number from 1 to 1024"),
    ({"TP_NUM_THREADS": "0"}, ADD, "TP_NUM_THREADS='0' in the environment: expected a whole number from 1 to 1024"),
    ({"TP_NUM_THREADS": "-2"}, ADD, "TP_NUM_THREADS='-2' in the environment: expected a whole number from 1 to 1024"),
    ({"TP_NUM_THREADS": "9" * 30}, ADD, f"TP_NUM_THREADS='{'9' * 30}' in the environment: expected a whole number"),
    ({"TP_CPU_ISA": "xyz"}, ADD, "TP_CPU_ISA='xyz' in the environment: expected v2, v3 or v4"),
    ({"TP_FALLBACK": "maybe"}, FALL_BACK, "TP_FALLBACK='maybe' in the environment: expected error, warn or count"),
    ({"TP_FALLBACK": "error"}, FALL_BACK,
     "nextafter: device 'refdev' has no kernel for it, and TP_FALLBACK=error forbids running it on the CPU"),
]


@pytest.mark.parametrize(("variables", "program", "message"), ENVIRONMENT,
                         ids=[f"{k}={v[:9]}" for case in ENVIRONMENT for k, v in case[0].items()])
def test_environment(variables, program, message) -> None:
    done = python(program, **variables)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and message in last and last.startswith("tensorplay._errors."), done.stderr
    assert re.search(r" \(<string>:1\)$", last)


def test_bad_variables_do_not_break_the_import_or_other_devices() -> None:
    done = python("import tensorplay as tp; print((tp.ones(2, device='meta') + 1).shape)", TP_NUM_THREADS="abc",
                  TP_FALLBACK="maybe", TP_CPU_ISA="xyz")
    assert done.stdout == "tensorplay.Size([2])\n", done.stderr


@pytest.mark.parametrize("variables", [{"TP_CPU_ISA": "v2"}, {"TP_CPU_ISA": "v3"}, {"TP_CPU_ISA": "v4"},
                                       {"TP_NUM_THREADS": "1"}, {"TP_NUM_THREADS": "64"}, {"TP_GENERIC": "1"}])
def test_good_variables_are_taken(variables) -> None:
    assert python(ADD, **variables).stdout == "[2.0, 2.0]\n"


TRAIN = """
import os, sys, threading, signal, warnings
import tensorplay as tp
from tensorplay import nn

warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 on os.fork with threads: that is what is tested
tp.set_num_threads(2)

def train(seed):
    tp_generator = tp.Generator().manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    with tp.no_grad():
        for p in model.parameters():
            p.normal_(0, 0.1, generator=tp_generator)
    optimizer = tp.optim.AdamW(model.parameters(), lr=1e-2)
    x = tp.randn(256, 64, generator=tp_generator)
    for _ in range(5):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), tp.arange(256) % 10)
        loss.backward()
        optimizer.step()
    return loss.item()
"""
FORK = TRAIN + """
expected = train(0)
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        again = train(0)
        grandchild = os.fork()
        if grandchild == 0:
            os._exit(0 if train(0) == expected else 1)
        os._exit(0 if again == expected and os.waitpid(grandchild, 0)[1] == 0 else 1)
    children.append(child)
assert train(0) == expected
print([os.waitpid(child, 0)[1] for child in children])
"""
FORK_WHILE_COMPUTING = TRAIN + """
expected, stop = train(0), threading.Event()

def compute():
    while not stop.is_set():
        train(1)

threads = [threading.Thread(target=compute) for _ in range(2)]
[t.start() for t in threads]
results = []
for _ in range(10):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(0 if train(0) == expected else 1)
    results.append(os.waitpid(child, 0)[1])
stop.set()
[t.join() for t in threads]
print(results)
"""
THREADS = TRAIN + """
expected = [train(seed) for seed in range(4)]
found = [None] * 4

def run(seed):
    found[seed] = [train(seed) for _ in range(3)]

threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print(found == [[value] * 3 for value in expected])
"""
FIRST_USE = """
import threading
import tensorplay as tp
barrier, results = threading.Barrier(8), []

def use():
    barrier.wait()
    x = tp.ones(3, requires_grad=True)
    tp.nn.functional.gelu(x).sum().backward()
    results.append(x.grad.tolist())

threads = [threading.Thread(target=use) for _ in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
print(len(results), results.count(results[0]))
"""


@pytest.mark.parametrize(("program", "output"), [(FORK, "[0, 0, 0, 0]"), (FORK_WHILE_COMPUTING, str([0] * 10)),
                                                 (THREADS, "True"), (FIRST_USE, "8 8")],
                         ids=["fork", "fork while computing", "threads", "first use by many threads"])
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork_and_threads(program, output) -> None:
    done = python(program)
    assert done.stdout == output + "\n", done.stderr


CTRL_C = TRAIN + """
print("ready", flush=True)
try:
    while True:
        train(0)
except KeyboardInterrupt:
    pass
print(train(0) == train(0))
"""


def test_ctrl_c_in_the_middle_of_training_leaves_a_working_process() -> None:
    process = subprocess.Popen([sys.executable, "-c", CTRL_C], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (0, "True\n"), errors
