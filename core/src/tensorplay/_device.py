"""Devices: interned names. A device's driver (memory, copies, kernels) is found by the plugin registry on first use."""
from __future__ import annotations

from ._errors import ArgumentError, DeviceUnavailable
from ._keys import FIRST_DEVICES, MORE_DEVICES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .driver import Driver

_bits: dict[str, int] = {}            # device type -> key bit, in order of first appearance
_interned: dict[tuple, Device] = {}
_drivers: dict[str, Driver] = {}


def key_bit(type: str) -> int:
    """The dispatch bit of a device type; given out once, never taken back."""
    bit = _bits.get(type)
    if bit is None:
        n = len(_bits)
        bit = _bits.setdefault(type, 1 << (n if n < FIRST_DEVICES else MORE_DEVICES + n - FIRST_DEVICES))
    return bit


def device_names() -> dict[int, str]:
    return {bit: name for name, bit in _bits.items()}


class Device:
    """A device such as `tp.device("cpu")` or `tp.device("refdev:1")`.

    Usable as a context manager: inside `with tp.device("meta"):` new tensors are made there.
    """

    __slots__ = ("type", "index", "key", "__weakref__")
    type: str
    index: int | None
    key: int

    def __new__(cls, type: object, index: int | None = None) -> Device:
        if type.__class__ is Device and index is None:
            return type  # type: ignore[return-value]
        found = _interned.get((type, index)) if type.__class__ is str else None
        return found or _make(type, index)

    @property
    def driver(self) -> Driver:
        """The device's memory, copies and kernels; found and loaded on first use."""
        return _drivers.get(self.type) or load_driver(self.type)

    def __repr__(self) -> str:
        inside = f"type='{self.type}'" + ("" if self.index is None else f", index={self.index}")
        return f"device({inside})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple:
        return Device, (self.type, self.index)

    def __copy__(self) -> Device:
        return self

    def __deepcopy__(self, memo: object) -> Device:
        return self

    def __enter__(self) -> Device:
        stack = _default_device()
        stack.set((self, stack.get()))
        return self

    def __exit__(self, *exc: object) -> None:
        stack = _default_device()
        stack.set(stack.get()[1])


def _make(type: object, index: int | None) -> Device:
    if type.__class__ is not str or not type:
        raise ArgumentError(f"a device is given as a string such as 'cpu' or 'cuda:0', or a tensorplay.device; "
                            f"got {type!r}")
    name, colon, number = type.partition(":")  # type: ignore[attr-defined]
    if colon:
        if index is not None or not number.isdigit():
            raise ArgumentError(f"device {type!r}: expected 'type' or 'type:index', such as 'cuda:0'")
        index = int(number)
    if name not in _drivers:
        load_driver(name)
    if name in ("cpu", "meta") and index == 0:
        index = None
    elif index is None and name not in ("cpu", "meta"):
        index = 0
    found = _interned.get((name, index))
    if found is None:
        made = object.__new__(Device)
        made.type, made.index, made.key = name, index, key_bit(name)
        count = _drivers[name].device_count()
        if index is not None and not 0 <= index < count:
            raise DeviceUnavailable(f"{type} does not exist: {name} has {count} device(s), numbered from 0")
        found = _interned.setdefault((name, index), made)
    return _interned.setdefault((type, None), found)  # type: ignore[arg-type]


def load_driver(type: str) -> Driver:
    """The driver of a device type; the plugin registry finds, checks and activates it, or raises why not."""
    from ._plugins import activate_device

    driver = activate_device(type)
    key_bit(type)
    return _drivers.setdefault(type, driver)


def register_driver(type: str, driver: Driver) -> None:
    """Make `driver` the one for devices of this type, without a plugin: for tests and experiments."""
    _drivers[type] = driver
    key_bit(type)


_default_var = None  # a ContextVar of (device, what was set before), made on first use


def _default_device():
    global _default_var
    if _default_var is None:
        from contextvars import ContextVar

        _default_var = ContextVar("tensorplay_default_device", default=None)
    return _default_var


_process_default: Device | None = None


def get_default_device() -> Device:
    """The device on which tensors are made when none is given."""
    if _default_var is not None:
        found = _default_var.get()
        if found is not None:
            return found[0]
    return _process_default or Device("cpu")


def set_default_device(device: Device | str | None) -> None:
    """Make tensors on `device` from now on, in every thread; None goes back to the CPU."""
    global _process_default
    _process_default = None if device is None else Device(device)


def as_device(value: object) -> Device:
    """The device of an argument: None means the default, an int the CPU's numbering is refused."""
    if value is None:
        return get_default_device()
    return Device(value)
