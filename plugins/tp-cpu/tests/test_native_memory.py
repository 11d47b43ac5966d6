"""Storages, memory, and the native layer over time: leaks, threads, fork, environment."""
from __future__ import annotations

import ctypes
import gc
import os
import struct
import subprocess
import sys
import threading
import warnings
import weakref

import pytest

import tensorplay as tp
from tensorplay.library import OPS, make_tensor
from tp_cpu import _native

CPU = tp.device("cpu")
DRIVER = CPU.driver
Storage = _native.Storage
X = tp.tensor([[1.0, 2.0], [3.0, 4.0]])


# ---- storage ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("nbytes", [0, 1, 16, 64, 65, 256, 257, 5000, 1 << 21])
def test_storage(nbytes):
    storage = Storage(nbytes)
    assert (storage.nbytes, storage.version, storage.owner, storage.writer) == (nbytes, 0, None, None)
    assert storage.device is CPU and storage.data % 64 == 0
    view = memoryview(storage)
    assert (view.nbytes, view.readonly, view.format) == (nbytes, False, "B")
    view[:] = bytes(nbytes)
    storage.version += 2
    storage.writer = ("add_", "here:1")
    gone = []
    weakref.finalize(storage, gone.append, 1)
    del storage
    assert not gone  # the view keeps it
    del view
    assert gone == [1]
    fresh = Storage(nbytes)
    assert (fresh.version, fresh.writer) == (0, None)
    for name in ("data", "nbytes", "device", "owner"):
        with pytest.raises(AttributeError):
            setattr(fresh, name, 1)


def test_foreign_memory():
    class Owner(bytearray):
        pass

    owner = Owner(struct.pack("4f", 1, 2, 3, 4))
    address = ctypes.addressof(ctypes.c_char.from_buffer(owner))
    storage = Storage.from_pointer(address, 16, owner)
    assert storage.owner is owner and bytes(storage) == bytes(owner)
    alive = weakref.ref(owner)
    x = make_tensor(storage, 0, X.layout)
    del storage, owner
    assert (x + x).tolist() == [[2, 4], [6, 8]]
    assert alive() is not None
    del x
    gc.collect()
    assert alive() is None
    for wrong in ((0, 4, None), (64, -1, None)):
        with pytest.raises(ValueError):
            Storage.from_pointer(*wrong)


@pytest.mark.parametrize("nbytes", [1 << 50, (1 << 63) - 1])
def test_memory_is_refused_before_it_is_taken(nbytes):
    with pytest.raises(MemoryError, match=f"{nbytes} bytes asked for; tensors hold .*test_native_memory.py"):
        Storage(nbytes)
    with pytest.raises(tp._errors.MemoryLimitError):
        tp.full((1 << 46,), 1.0, dtype=tp.float64)
    with pytest.raises(ValueError):
        Storage(-1)


def test_memory_statistics():
    gc.collect()
    gc.collect()  # what earlier tests left must not be freed in between
    before = DRIVER.memory_stats()["allocated"]
    many = [Storage(size) for size in (1, 64, 100, 1000, 100_000)]
    assert DRIVER.memory_stats()["allocated"] - before >= 101_165
    del many
    stats = DRIVER.memory_stats()
    assert stats["allocated"] == before and stats["allocated_peak"] >= before + 101_165
    DRIVER.empty_cache()
    assert DRIVER.memory_stats()["allocated"] == before


@pytest.mark.parametrize("name", sorted(tp._dtype.BY_NAME))
def test_read_scalar(name):
    dtype = tp._dtype.BY_NAME[name]
    values = [True, False] if name == "bool" else [1 + 2j, -3j] if dtype.is_complex else \
        [1.5, -2.25] if dtype.is_floating_point else [1, 100]
    x = tp.tensor(values, dtype=dtype)
    read = [_native.read_scalar(x.storage, i, dtype.code) for i in range(2)]
    assert read == values and [type(v) for v in read] == [type(v) for v in values]
    for offset, code in ((2, dtype.code), (-1, dtype.code), (0, 15), (0, -1), (1 << 60, dtype.code)):
        with pytest.raises(ValueError):
            _native.read_scalar(x.storage, offset, code)


# ---- leaks, threads, fork, environment -------------------------------------------------------------------------------
def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_no_leaks():
    wrong = make_tensor(X.storage, 1, X.layout)
    ints = tp.tensor([[1, 2], [3, 4]])
    X + X
    add = OPS["add"].kernels["cpu"]

    def work(count):
        for _ in range(count):
            X + X, X + 1.5, ints + X, X.t().sum(1), tp.cat([X, X], 0), tp.exp(X), X.t() + X, X[0]
            tp.topk(X, 1), add.out(into, X, 1), into.add_(X)
            for bad in (lambda: wrong + X, lambda: add(X, "a"), lambda: ints // 0, lambda: ints.t() @ X[0, 0]):
                try:
                    bad()
                except tp.TensorPlayError:
                    pass

    into = tp.tensor([[1.0, 2.0], [3.0, 4.0]])
    work(2000)
    counted = (X.layout, X.storage, CPU.key, None, 0, add, X)
    before, bytes_before = [sys.getrefcount(one) for one in counted], resident_bytes()
    work(20_000)
    after, bytes_after = [sys.getrefcount(one) for one in counted], resident_bytes()
    assert all([abs(a - b) < 100 for a, b in zip(before, after)]), (before, after)
    assert bytes_after - bytes_before < 2 << 20


def test_threads():
    big = tp.full((300_000,), 1.0)
    failures = []

    def work(seed):
        try:
            for i in range(150):
                shape = (seed + 1, i % 13 + 1)
                x = tp.full(shape, float(seed))
                assert (x + i).tolist() == [[seed + i] * shape[1]] * shape[0]
                y = big + float(i)
                assert y.sum().item() == 300_000 * (1 + i)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        tp._op.clear_tables()  # while they run
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork():
    big = tp.full((300_000,), 1.0)
    assert (big + big).sum().item() == 600_000
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads are running; the pool is made for that
        child = os.fork()
    if not child:
        ok = (big + 2.0).sum().item() == 900_000 and (X + X).tolist() == [[2, 4], [6, 8]]
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0


def run_python(code, **environment):
    return subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True,
                          text=True, timeout=60)


@pytest.mark.parametrize("value", ["abc", "0", "-1", "", "1.5", "100000"])
def test_nonsense_in_the_environment(value):
    done = run_python("import tensorplay as tp; tp.tensor(1.0)", TP_NUM_THREADS=value)
    assert done.returncode and f"TP_NUM_THREADS={value!r} in the environment: expected a whole number" in done.stderr


def test_environment_and_imports():
    code = ("import sys; before = set(sys.modules); import tensorplay as tp; x = tp.tensor([1.0]);"
            "print(tp.get_num_threads()); new = set(sys.modules) - before;"
            "print([m for m in ('numpy', 'typing', 'dataclasses', 'pluggy', 'stevedore') if m in new])")
    done = run_python(code, TP_NUM_THREADS="3")
    assert done.stdout.split("\n")[:2] == ["3", "[]"], done.stderr


def test_functions():
    count = tp.get_num_threads()
    tp.set_num_threads(1)
    assert tp.get_num_threads() == 1
    tp.set_num_threads(count)
    for wrong in (0, -1, 1.5, "2", True, 1 << 40):
        with pytest.raises(ValueError):
            tp.set_num_threads(wrong)
    assert DRIVER.symbol("tpk_alloc") and DRIVER.symbol("kernel:add") != DRIVER.symbol("kernel:mul")
    for wrong in ("kernel:", "malloc"):
        with pytest.raises(LookupError):
            DRIVER.symbol(wrong)
    with pytest.raises(LookupError):
        _native.Kernel("nothing")
    assert _native.isa() in ("x86-64-v2", "x86-64-v3", "x86-64-v4", "generic")
    assert DRIVER.kernel("add").broadcasts and DRIVER.kernel("copy") is None and DRIVER.kernel("nothing") is None
    assert repr(DRIVER.kernel("copy_strided")).startswith("<native kernel copy_strided")
