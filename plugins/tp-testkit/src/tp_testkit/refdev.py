"""refdev: a device in plain Python, to be read and copied by authors of devices.

It has what a device must have and nothing else: memory that only the driver can read, copies to and from the host, and
kernels for the 36 required primitives (device_put needs none: it is a copy through the host). Every other operator runs
on it by its decomposition. Two devices, refdev:0 and refdev:1, do not see each other's memory.
"""
from __future__ import annotations

from _thread import RLock
from typing import Any

from tensorplay.driver import Driver
from tensorplay.library import DeviceError, MemoryLimitError, Storage

from .refdev_kernels import KERNELS

CAPACITY = 1 << 30
POISON = 0xFF  # fresh and freed memory: NaN in every floating point dtype, -1 in the signed integers


class RefStorage(Storage):
    """Its `data` is only a number; the bytes lie in the driver. Collected with the last tensor that uses it."""

    __slots__ = ("driver",)

    def __init__(self, handle: int, nbytes: int, device: Any, driver: RefDriver) -> None:
        super().__init__(handle, nbytes, device)
        self.driver = driver

    def __del__(self) -> None:
        self.driver.free(self)


class RefDriver(Driver):
    """The driver; `kernels` is the table of all that the device can do."""

    name = "refdev"
    wants_contiguous = True

    def __init__(self) -> None:
        self._memory: dict[int, bytearray] = {}  # handle -> bytes
        self._next_handle = 1
        self._used = [0, 0]  # bytes on refdev:0 and refdev:1
        self._peak = [0, 0]
        self._lock = RLock()  # the collector may free a storage while this thread allocates one

    def device_count(self) -> int:
        return len(self._used)

    # ---- memory -----------------------------------------------------------------------------------------------------
    def allocate(self, nbytes: int, device: Any) -> RefStorage:
        index = device.index
        with self._lock:
            if self._used[index] + nbytes > CAPACITY:
                raise MemoryLimitError(f"{device} has {CAPACITY} bytes of memory, {self._used[index]} of them are in "
                                       f"use, and {nbytes} more were asked for")
            handle = self._next_handle
            self._next_handle += 1
            self._used[index] += nbytes
            self._peak[index] = max(self._peak[index], self._used[index])
        self._memory[handle] = bytearray([POISON]) * nbytes
        return RefStorage(handle, nbytes, device, self)

    def free(self, storage: RefStorage, poison: int = POISON) -> None:
        """Overwrite the block and give it back: whoever still reads it sees NaN, whoever asks for it again an error."""
        block = self._memory.pop(storage.data, None)
        if block is not None:
            block[:] = bytes([poison]) * len(block)  # a default, since globals are gone when the interpreter ends
            with self._lock:
                self._used[storage.device.index] -= storage.nbytes

    def block(self, storage: RefStorage) -> bytearray:
        found = self._memory.get(storage.data)
        if found is None:
            raise DeviceError(f"memory block {storage.data} of {storage.device} has been freed")
        return found

    def copy_from_host(self, storage: RefStorage, data: Any) -> None:
        view = memoryview(data).cast("B")
        if len(view) != storage.nbytes:
            raise DeviceError(f"{len(view)} bytes do not fill a block of {storage.nbytes} bytes on {storage.device}")
        self.block(storage)[:] = view

    def copy_to_host(self, storage: RefStorage) -> bytes:
        return bytes(self.block(storage))

    def memory_stats(self, index: int | None = None) -> dict[str, int]:
        return {"allocated": self._used[index or 0], "allocated_peak": self._peak[index or 0],
                "capacity": CAPACITY}

    def reset_peak_memory(self, index: int | None = None) -> None:
        self._peak[index or 0] = self._used[index or 0]

    # ---- kernels ----------------------------------------------------------------------------------------------------
    def kernel(self, op_name: str) -> Any:
        return KERNELS.get(op_name)
