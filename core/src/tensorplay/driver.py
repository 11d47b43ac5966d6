"""The device contract: what a device plugin's driver class implements. `tp_testkit.refdev` is the model to copy."""
from __future__ import annotations

from ._errors import DeviceError, NotSupported
from ._storage import Storage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._device import Device
    from ._dtype import DType


class Driver:
    """Memory, copies and kernels of one device type.

    A kernel is `kernel(out, *args)`: `out` is the preallocated result (a tuple for several), `args` are the operator's
    arguments in schema order. Tensors of an elementwise operator arrive with one dtype and with `out`'s shape. With
    `wants_contiguous` every input arrives contiguous, and so is every `out` but that of `copy_strided`.
    """

    name = ""
    wants_contiguous = False
    unsupported_dtypes: dict[str, str] = {}  # dtype name -> reason, e.g. {"float64": "the hardware has none"}

    def device_count(self) -> int:
        """How many devices of this type there are."""
        return 1

    def allocate(self, nbytes: int, device: Device) -> Any:
        """A storage of `nbytes` uninitialised bytes. Raises MemoryLimitError when there is not enough memory."""
        raise NotImplementedError

    def copy_from_host(self, storage: Any, data: Any) -> None:
        """Fill the storage from a bytes-like object of the same size."""
        raise NotImplementedError

    def copy_to_host(self, storage: Any) -> Any:
        """The storage's bytes, as a bytes-like object; waits for pending work on it."""
        raise NotImplementedError

    def synchronize(self, index: int | None = None) -> None:
        """Wait until all work queued on the device is done."""

    def memory_stats(self, index: int | None = None) -> dict[str, int]:
        """At least `allocated` and `allocated_peak`, in bytes."""
        raise NotSupported(f"device {self.name!r} keeps no memory statistics")

    def kernel(self, op_name: str) -> Callable | None:
        """The kernel for an operator or primitive, or None. Asked once for each operator."""
        return None

    def decomposition(self, op_name: str) -> Callable | None:
        """The device's own way to express an operator in others, or None."""
        return None

    def check_dtype(self, dtype: DType) -> None:
        """DeviceError with the reason, if the device does not have this dtype."""
        reason = self.unsupported_dtypes.get(dtype.name)
        if reason is not None:
            raise DeviceError(f"device {self.name!r} has no {dtype.name}: {reason}")


class MetaDriver(Driver):
    """The built-in device without data: shapes, dtypes and errors of a computation, at no cost."""

    name = "meta"

    def allocate(self, nbytes: int, device: Device) -> Storage:
        return Storage(None, nbytes, device)

    def copy_from_host(self, storage: Any, data: Any) -> None:
        pass

    def copy_to_host(self, storage: Any) -> Any:
        raise DeviceError("a tensor on device 'meta' has a shape and a dtype but no data; make it on another device, "
                          "for example with tp.empty_like(x, device='cpu')")

    def memory_stats(self, index: int | None = None) -> dict[str, int]:
        return {"allocated": 0, "allocated_peak": 0}

    def kernel(self, op_name: str) -> Callable:
        return _no_data


def _no_data(out: object, *args: object) -> None:
    """Every kernel of the meta device: the outputs' layouts were all there was to do."""
