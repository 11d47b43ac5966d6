"""Tensors over memory that belongs to someone else, who is kept alive by the storage's `owner`."""
from __future__ import annotations

from ._device import Device
from ._layout import layout
from ._tensor import Tensor, make_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._dtype import DType


def extent(shape: tuple, strides: tuple) -> int:
    """How many elements lie between the first and the last, both included; 0 if there are none."""
    return 0 if 0 in shape else 1 + sum([(size - 1) * step for size, step in zip(shape, strides)])


def negative(shape: tuple, strides: tuple) -> bool:
    """Whether a stride counts backwards, which no tensor can have."""
    return any([step < 0 and size > 1 for size, step in zip(shape, strides)])


def tensor_over(address: int, shape: tuple, strides: tuple, dtype: DType, owner: Any) -> Tensor | None:
    """A CPU tensor over memory that stays valid as long as `owner` lives; None where it must be copied: there are no
    elements, they are not aligned, or the device's storage cannot have an owner."""
    device = Device("cpu")
    count = extent(shape, strides)
    over = getattr(type(device.driver.allocate(0, device)), "from_pointer", None)
    if not count or over is None or address % dtype.itemsize:
        return None
    return make_tensor(over(address, count * dtype.itemsize, owner), 0, layout(shape, dtype, device, strides))


def tensor_with(data: Any, shape: tuple, strides: tuple | None, dtype: DType, device: Device,
                cls: type = Tensor) -> Tensor:
    """A tensor whose new storage is filled with the bytes of `data`."""
    device.driver.check_dtype(dtype)
    storage = device.driver.allocate(len(data), device)
    device.driver.copy_from_host(storage, data)
    return make_tensor(storage, 0, layout(shape, dtype, device, strides), cls)
