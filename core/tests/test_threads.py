"""Threads that register kernels, resolve and run at once: no exception, and never a kernel that has been replaced."""
from __future__ import annotations

import os
import sys
import threading
import time

import pytest

import tensorplay as tp
from tensorplay import _resolve, library
from tensorplay._device import _interned
from tensorplay._op import OPS, lock

pytest.importorskip("tp_cpu")


@pytest.fixture(autouse=True)
def many_switches():
    """Threads change places a thousand times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


def run(*works, times=1):
    """Run the functions at once, each in a thread of its own, and raise what they raised."""
    start, problems = threading.Barrier(len(works)), []

    def started(work):
        try:
            start.wait(30)
            for _ in range(times):
                work()
        except BaseException as problem:  # noqa: BLE001
            problems.append(problem)

    threads = [threading.Thread(target=started, args=(work,)) for work in works]
    [thread.start() for thread in threads]
    [thread.join(60) for thread in threads]
    assert not any([thread.is_alive() for thread in threads]), "a thread hangs"
    if problems:
        raise problems[0]


@pytest.fixture
def make(monkeypatch):
    monkeypatch.setattr(_resolve, "GENERIC", False)  # fused kernels are used
    before = set(OPS)
    yield library.op
    for name in set(OPS) - before:
        if "::" in name:  # not the operators that were loaded meanwhile
            del OPS[name]


@pytest.mark.parametrize("slow", [0, 0.0005])
def test_no_stale_kernel(make, slow):
    """Once a kernel is registered, no call that starts later runs an older one. `slow`: resolving takes its time."""
    op = make("thread::version(Tensor input) -> Tensor")
    op.meta(lambda input: input.dense())

    def kernel_of(version):
        def kernel(out, x):
            raise AssertionError("the fused kernel is there")

        def fuse(op, driver):
            time.sleep(slow)
            return lambda x: version

        kernel.fuse = fuse
        return kernel

    op.kernel("cpu")(kernel_of(0))
    newest = [0]
    done = threading.Event()

    def register():
        for version in range(1, 100):
            op.kernel("cpu")(kernel_of(version))
            newest[0] = version
            time.sleep(slow / 4)
        done.set()

    def call():
        x = tp.zeros(1, dtype=tp.int64)
        while True:
            finished = done.is_set()
            before = newest[0]
            found = op(x)
            assert found >= before, f"version {found} ran after {before} had been registered"
            if finished:
                return

    def call_without_grad():
        with tp.no_grad():
            call()

    run(register, call, call, call_without_grad)
    assert op(tp.zeros(1, dtype=tp.int64)) == 99


def test_registering_and_clearing_while_everything_runs(make):
    """Registrations of other operators, cleared tables and new modes do not disturb calls."""
    rounds = 600

    def register():
        for i in range(rounds):
            op = make(f"thread::other{i % 7}(Tensor input) -> Tensor", replace=True)
            op.decomposition(lambda input: input + 1)
            assert op(tp.ones(2)).tolist() == [2.0, 2.0]

    def clear():
        for _ in range(rounds):
            library.register_builder(library.VMAP, lambda op, keyset: None)

    def compute():
        x = tp.tensor([[1.0, 2.0], [3.0, 4.0]])
        for _ in range(rounds):
            assert ((x @ x) * 2 - x).sum().item() == 98.0

    def differentiate():
        for _ in range(rounds):
            x = tp.tensor([1.0, 2.0], requires_grad=True)
            (x * x * 3).sum().backward()
            assert x.grad.tolist() == [6.0, 12.0]

    def modes():
        class Count(tp.DispatchMode):
            def __tensorplay_dispatch__(self, op, args):
                return op.call(*args)

        for _ in range(rounds):
            with Count():
                assert (tp.ones(2) * 3).tolist() == [3.0, 3.0]

    before = _resolve.builders.get(library.VMAP)
    try:
        run(register, clear, compute, differentiate, modes)
    finally:
        _resolve.builders.pop(library.VMAP) if before is None else _resolve.builders.update({library.VMAP: before})


def test_one_resolution_at_a_time(make):
    """Two threads that miss the table at once get the same kernel."""
    for i in range(30):
        built = []
        op = make(f"thread::once{i}(Tensor input) -> Tensor")
        op.meta(lambda input: input.dense())

        def kernel(out, x):
            raise AssertionError("the fused kernel is there")

        kernel.fuse = lambda op, driver, kernel=kernel, built=built: built.append(1) or (lambda value: value)
        op.kernel("cpu")(kernel)
        run(*[lambda op=op: op(tp.zeros(1))] * 4)
        assert 1 <= len(built) <= 4
        assert len(op.op.table) == 1


def test_a_kernel_that_resolves_others_does_not_deadlock(make):
    op = make("thread::nested(Tensor input) -> Tensor")
    op.decomposition(lambda input: (input + 1).exp().log())

    def work():
        for _ in range(50):
            with lock:
                assert op(tp.zeros(1)).item() == pytest.approx(1.0)

    run(work, work, work)


def test_families_are_loaded_once_by_many_threads():
    """Fresh processes, in which threads use operators for the first time at the same moment."""
    code = ("import sys, threading; sys.setswitchinterval(1e-6); import tensorplay as tp\n"
            "start, wrong = threading.Barrier(6), []\n"
            "def work(n):\n"
            "    try:\n"
            "        start.wait()\n"
            "        x = tp.tensor([[4., 1.], [1., 3.]], requires_grad=True)\n"
            "        y = (x.softmax(-1) @ x.tanh()).sum() + x.sort(0)[0].cumsum(1).mean() + (x > 1).sum() * n\n"
            "        y.backward(); x.detach().add_(1); x[0, tp.tensor([0, 1])]\n"
            "        assert x.grad.shape == (2, 2)\n"
            "    except BaseException as problem:\n"
            "        wrong.append(repr(problem))\n"
            "threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]\n"
            "[t.start() for t in threads]; [t.join() for t in threads]; print(wrong)\n")
    import subprocess

    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
        assert (done.stdout.strip(), done.stderr) == ("[]", "")


@pytest.mark.usefixtures("refdev")
def test_devices_are_one_object_for_all_threads():
    for name in ("refdev:1", "meta"):
        _interned.pop((name, None), None)
        found = []
        run(*[lambda name=name, found=found: found.append(tp.device(name))] * 6)
        assert len({id(one) for one in found}) == 1


def test_in_place_writes_count_every_version():
    """The version counts writes from several threads to different tensors apart, and never loses a tensor's own."""
    tensors = [tp.zeros(4) for _ in range(4)]

    def write(x):
        for _ in range(300):
            x.add_(1)

    run(*[lambda x=x: write(x) for x in tensors])
    assert [(x.tolist(), x._version) for x in tensors] == [([300.0] * 4, 300)] * 4


def test_a_fork_waits_for_the_locks():
    """A child is not born with a lock held by a thread that it does not have."""
    if not hasattr(os, "fork"):
        pytest.skip("no fork on this system")
    code = (
        "import os, threading, time, warnings; warnings.simplefilter('ignore', DeprecationWarning)\n"
        "import tensorplay as tp\n"
        "from tensorplay import _op, _plugins, _random\n"
        "x = tp.ones(3)\n"
        "for lock in (_op.lock, _plugins._lock, _random._lock):\n"
        "    held = threading.Event()\n"
        "    def hold(lock=lock):\n"
        "        with lock: held.set(); time.sleep(0.2)\n"
        "    thread = threading.Thread(target=hold); thread.start(); held.wait()\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        import signal; signal.alarm(20)\n"
        "        from tensorplay import library\n"
        "        library.register_builder(library.VMAP, lambda op, keyset: None)\n"
        "        tp.device('meta'); tp.rand(2)\n"
        "        os._exit(0 if (x * 2).sum().item() == 6 else 3)\n"
        "    assert os.waitpid(child, 0)[1] == 0, lock\n"
        "    thread.join()\n"
        "print('done')\n")
    import subprocess

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.stdout.strip(), done.stderr) == ("done", "")


def test_a_forked_child_computes():
    """The child of a process with threads and a warm pool computes, resolves new operators and draws numbers."""
    if not hasattr(os, "fork"):
        pytest.skip("no fork on this system")
    code = (
        "import os, sys, threading, warnings; warnings.simplefilter('ignore', DeprecationWarning)\n"
        "import tensorplay as tp\n"
        "x = tp.ones(300_000)\n"
        "assert (x + x).sum().item() == 600_000  # the pool's threads exist\n"
        "stop = threading.Event()\n"
        "def busy():\n"
        "    while not stop.is_set(): (tp.ones(50_000) * 2).sum().item()\n"
        "threads = [threading.Thread(target=busy, daemon=True) for _ in range(2)]\n"
        "[t.start() for t in threads]\n"
        "for i in range(8):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        try:\n"
        "            y = (x * 3 + 1).sum().item()\n"
        "            z = tp.ones(20_000, requires_grad=True); (z.sigmoid() * i).sum().backward()\n"
        "            m = (tp.ones(200, 200) @ tp.ones(200, 200))[0, 0].item()\n"
        "            os._exit(0 if (y, m, z.grad.shape) == (1_200_000, 200, (20_000,)) else 3)\n"
        "        except BaseException: os._exit(4)\n"
        "    _, status = os.waitpid(child, 0)\n"
        "    assert status == 0, status\n"
        "stop.set(); [t.join() for t in threads]\n"
        "print((x + x).sum().item())\n")
    import subprocess

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.stdout.strip(), done.stderr) == ("600000.0", "")
