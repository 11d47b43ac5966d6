"""A second device, from the first day: refdev has the 36 required primitives only, and trains a language model."""
from __future__ import annotations

import gc

import pytest
from tiny_model import Training

import tensorplay as tp
from tensorplay.library import OPS, DeviceError, MemoryLimitError, generic_path


def test_training_on_refdev_follows_the_cpu() -> None:
    on_cpu, on_refdev = Training("cpu").losses(5), Training("refdev").losses(5)
    assert on_cpu[-1] < on_cpu[0]
    assert on_refdev == pytest.approx(on_cpu, rel=2e-5)


def test_training_on_the_generic_path_follows_the_fused_one() -> None:
    fused = Training("cpu").losses(5)
    with generic_path():
        assert Training("cpu").losses(5) == pytest.approx(fused, rel=1e-6)


def test_refdev_has_the_required_primitives_and_nothing_else() -> None:
    required = """full iota copy_strided cast neg abs exp log sqrt sin cos tanh floor bitwise_not add sub mul div
        floor_div pow maximum minimum eq lt bitwise_and bitwise_or bitwise_xor where sum amax argmax cumsum gather
        scatter matmul""".split()
    driver = tp.device("refdev").driver
    for name in OPS:
        assert (driver.kernel(name) is not None) == (name in required), name
    assert len([name for name in required if driver.kernel(name)]) + len(["device_put"]) == 36


def test_memory_is_private_counted_and_poisoned() -> None:
    driver = tp.device("refdev").driver
    gc.collect()  # what earlier tests left must not be freed in between
    before = driver.memory_stats()["allocated"]
    x = tp.ones(4, device="refdev")
    storage = x.storage
    assert driver.memory_stats()["allocated"] == before + 16
    assert isinstance(storage.data, int)
    with pytest.raises(DeviceError):
        x.numpy()
    driver.free(storage)
    with pytest.raises(DeviceError, match="has been freed"):
        x.tolist()
    del x, storage
    assert driver.memory_stats()["allocated"] == before
    assert all([value != value for value in tp.empty(3, device="refdev").tolist()])  # uninitialised memory is NaN
    with pytest.raises(MemoryLimitError, match="refdev:0 has"):
        tp.empty(1 << 40, device="refdev")


def test_two_devices_do_not_mix() -> None:
    x, y = tp.ones(2, device="refdev:0"), tp.ones(2, device="refdev:1")
    for first, second in ((x, y), (x, tp.ones(2))):
        with pytest.raises(DeviceError, match="move one of them"):
            first + second
    assert (x + y.to("refdev:0")).tolist() == [2.0, 2.0]
    assert (x + tp.tensor(3.0)).tolist() == [4.0, 4.0]  # a 0-d tensor of the CPU comes along
    with pytest.raises(DeviceError):
        tp.device("refdev:2")


def test_in_place_on_every_memory_layout() -> None:
    x = tp.zeros(2, 3, device="refdev")
    x.t().add_(1)
    x[:, ::2].mul_(5)
    x[0] += 1
    assert x.tolist() == [[6.0, 2.0, 6.0], [5.0, 1.0, 5.0]]
