"""The driver: memory, copies and kernels of the CPU."""
from __future__ import annotations

import os

import tensorplay
from tensorplay import _errors
from tensorplay._device import key_bit
from tensorplay.driver import Driver
from tensorplay.library import RETYPES, Layout, Op, Tensor, ValueRangeError

from . import _native, planning
from .numpy_index import DECOMPOSITIONS, MODULES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MOST_THREADS = 1024
# The operators whose native kernel has another name; None: the native kernel of that name is another operator.
NATIVE_NAMES: dict[str, str | None] = {"copy_strided": "copy", "copy": None}


class CpuDriver(Driver):
    """The CPU. A kernel is a `_native.Kernel`, or a NumPy kernel where there is no native one."""

    name = "cpu"

    def __init__(self) -> None:
        _native.bind(Tensor, Layout, tensorplay.dtype, tensorplay.device, key_bit("cpu"), _errors, planning)
        threads = os.environ.get("TP_NUM_THREADS")
        if threads is not None:
            _native.set_num_threads(read_thread_count(threads))
        check_instruction_set(os.environ.get("TP_CPU_ISA"))
        self._native_names = frozenset(_native.kernel_names())

    # ---- memory ----
    def allocate(self, nbytes: int, device: Any) -> _native.Storage:
        return _native.Storage(nbytes)

    def copy_from_host(self, storage: _native.Storage, data: Any) -> None:
        if storage.nbytes:
            memoryview(storage)[:] = memoryview(data).cast("B")

    def copy_to_host(self, storage: _native.Storage) -> memoryview:
        return memoryview(storage)

    read_scalar = staticmethod(_native.read_scalar)  # (storage, offset in elements, dtype code) -> Python number

    def memory_stats(self, index: int | None = None) -> dict[str, int]:
        return _native.memory_stats()

    def reset_peak_memory(self, index: int | None = None) -> None:
        _native.reset_peak()

    def empty_cache(self) -> None:
        _native.empty_cache()

    # ---- kernels ----
    def kernel(self, op_name: str) -> Callable | None:
        native = NATIVE_NAMES.get(op_name, op_name)
        if native in self._native_names:
            return _native.Kernel(op_name, planning.numpy_finder(op_name), native)
        return planning.numpy_kernel(op_name) if op_name in MODULES else None

    def decomposition(self, op_name: str) -> Callable | None:
        return planning.numpy_decomposition(op_name) if op_name in DECOMPOSITIONS else None

    def view_kernel(self, op: Op) -> Callable | None:
        """The kernel of a view operator, with the meta's answers kept; core's own takes unusual arguments."""
        from tensorplay._generic import view_kernel

        if RETYPES in op.tags:
            return view_kernel(op)
        return _native.ViewKernel(op, view_kernel(op))

    # ---- the processor ----
    def set_num_threads(self, count: int) -> None:
        if count.__class__ is not int or not 1 <= count <= MOST_THREADS:
            raise ValueRangeError(f"set_num_threads takes a whole number from 1 to {MOST_THREADS}, got {count!r}")
        _native.set_num_threads(count)

    def get_num_threads(self) -> int:
        return _native.num_threads()

    def symbol(self, name: str) -> int:
        """The address of a tpk function, or of a kernel ('kernel:add'), for compiled code."""
        return _native.symbol(name)

    def description(self) -> str:
        blas = _native.blas_name()
        return f"{_native.isa()}, {_native.num_threads()} threads" + (f", {blas}" if blas else "")


def check_instruction_set(text: str | None) -> None:
    """The kernels were chosen when the module was loaded; a level that they do not know was ignored."""
    if text not in (None, "", "v2", "v3", "v4"):
        raise ValueRangeError(f"TP_CPU_ISA={text!r} in the environment: expected v2, v3 or v4")


def read_thread_count(text: str) -> int:
    if not text.strip().isdecimal() or not 1 <= int(text) <= MOST_THREADS:
        raise ValueRangeError(f"TP_NUM_THREADS={text!r} in the environment: expected a whole number from 1 to "
                              f"{MOST_THREADS}")
    return int(text)
