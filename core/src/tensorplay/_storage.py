"""Storage: the memory behind tensors, with a version that counts in-place writes.

A device's driver makes storages. Any class will do that has these six attributes; tp-cpu brings a native one.
"""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._device import Device


class Storage:
    """`data` is the driver's own handle; `owner` keeps foreign memory alive; `writer` is the (op, line) of the last
    in-place write."""

    __slots__ = ("data", "nbytes", "version", "device", "owner", "writer", "__weakref__")

    def __init__(self, data: object, nbytes: int, device: Device, owner: object = None) -> None:
        self.data = data
        self.nbytes = nbytes
        self.version = 0
        self.device = device
        self.owner = owner
        self.writer = None
