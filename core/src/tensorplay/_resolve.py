"""From a key set to the kernel that a call runs.

Functionality first (subclass, mode, vmap, forward mode, autograd, tracing: who is in the key set and wants this op),
then the device: fused kernel -> kernel -> the device's own decomposition -> the common one -> host fallback -> error.
Every link of that chain is also what `tp explain` prints.
"""
from __future__ import annotations

import os

from . import _device
from ._errors import DeviceError, NotSupported
from ._keys import AUTOGRAD, FUNCTIONAL, INFERENCE, MODE, NO_GRAD, ORDER, SUBCLASS, mode_mask, modes
from ._op import FACTORY, VIEW, Op, clear_tables, lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

GENERIC = os.environ.get("TP_GENERIC", "") not in ("", "0")  # meta -> allocate -> kernel(out) for every native kernel


class generic_path:
    """`with generic_path():` does for a block, in every thread, what TP_GENERIC=1 does for the whole process."""

    def __enter__(self) -> None:
        global GENERIC
        self.previous, GENERIC = GENERIC, True
        clear_tables()

    def __exit__(self, *exc: object) -> None:
        global GENERIC
        GENERIC = self.previous
        clear_tables()


# functionality key -> builder(op, keyset) -> kernel, or None to let the call through
builders: dict[int, Callable] = {}


def register_builder(key: int, builder: Callable) -> None:
    """Tell core what to do with ops whose key set has `key`: TPX for AUTOGRAD, transforms and modes for theirs."""
    builders[key] = builder
    clear_tables()


def resolve(op: Op, keyset: int) -> Callable:
    with lock:
        kernel = op.table[keyset] = find(op, keyset)
        return kernel


def find(op: Op, keyset: int) -> Callable:
    """The kernel for a key set: functionality keys in their order, then the device."""
    if keyset & NO_GRAD:
        keyset &= ~(AUTOGRAD | NO_GRAD | INFERENCE)
    devices = keyset & ~FUNCTIONAL
    several = devices & (devices - 1)
    for key in ORDER:
        if keyset & key:
            if several and key not in (SUBCLASS, MODE):
                return mixed_devices(op)  # above autograd, so that the copy between devices is recorded
            builder = op.key_kernels.get(key) or builders.get(key)
            if builder is not None:
                kernel = builder(op, keyset)
                if kernel is not None:
                    return kernel
            keyset &= ~key
    if several:
        return mixed_devices(op)
    return device_kernel(op, _device.device_names()[devices])


def below_autograd(op: Op, keyset: int) -> Callable:
    """What an autograd kernel calls: the rest of the key set, with gradients off where other ops may be called."""
    kernel = find(op, keyset & ~AUTOGRAD)
    if getattr(kernel, "direct", True) and not is_composite(kernel, op):
        return kernel

    def without_grad(*args: Any) -> Any:
        previous = modes()
        mode_mask.set(previous | NO_GRAD)
        try:
            return unaliased(kernel(*args), args)
        finally:
            mode_mask.set(previous)

    without_grad.__wrapped__ = kernel  # type: ignore[attr-defined]
    return without_grad


def is_composite(kernel: Callable, op: Op) -> bool:
    return kernel is op.rule("decomposition") or kernel in op.device_decompositions.values()


def unaliased(result: Any, args: tuple) -> Any:
    """A decomposition may hand back one of its arguments; the recorded result must be an object of its own."""
    from ._views import alias

    if isinstance(result, tuple):
        return tuple([unaliased(r, args) for r in result])
    return alias(result) if any([result is arg for arg in args]) else result


def device_kernel(op: Op, device: str) -> Callable:
    from . import _generic

    driver = _device._drivers.get(device) or _device.load_driver(device)
    if VIEW in op.tags:
        native = None if GENERIC else getattr(driver, "view_kernel", None)
        return _generic.view_kernel(op) if native is None else native(op)
    kernel = registered_kernel(op, device, driver)
    if kernel is not None:
        fuse = getattr(kernel, "fuse", None)
        if fuse is not None and not GENERIC:
            return fuse(op, driver)
        return _generic.generic_kernel(op, driver, kernel)
    decomposition = device_decomposition(op, device, driver) or op.rule("decomposition")
    if decomposition is not None:
        return decomposition
    from ._fallback import host_fallback

    return host_fallback(op, driver)


def registered_kernel(op: Op, device: str, driver: Any) -> Callable | None:
    if device == "meta":
        return driver.kernel(op.name) if op.rule("meta") or op.elementwise else None
    kernel = op.kernels.get(device)
    if kernel is None:
        kernel = driver.kernel(op.name)
        if kernel is not None:
            op.kernels[device] = kernel
    return kernel


def device_decomposition(op: Op, device: str, driver: Any) -> Callable | None:
    found = op.device_decompositions.get(device)
    if found is None:
        found = driver.decomposition(op.name)
        if found is not None:
            op.device_decompositions[device] = found
    return found


def mixed_devices(op: Op) -> Callable:
    """Operands on several devices: 0-d CPU tensors are copied to the other device, anything else is an error."""

    def kernel(*args: Any) -> Any:
        from ._tensor import Tensor

        tensors = [(p.name, a) for p, a in zip(op.schema.parameters, args) if isinstance(a, Tensor)]
        tensors += [(f"{p.name}[{i}]", one) for p, a in zip(op.schema.parameters, args) if p.is_tensor and p.is_list
                    for i, one in enumerate(a or ())]
        target = next((t.device for _, t in tensors if t.layout.shape or t.device.type != "cpu"), tensors[0][1].device)
        for name, t in tensors:
            if t.device is not target and (t.layout.shape or t.device.type != "cpu"):
                other = next(n for n, u in tensors if u.device is target)
                raise DeviceError(f"{op.name}: {other} is on {target} but {name} is on {t.device}; "
                                  f"move one of them, e.g. {name}.to('{target}')")
        def moved(a: Any) -> Any:
            if a.__class__ in (list, tuple):
                return [moved(one) for one in a]
            return a.to(target) if isinstance(a, Tensor) and a.device is not target else a

        return op.call(*[moved(a) if p.is_tensor else a for p, a in zip(op.schema.parameters, args)])

    kernel.direct = False  # type: ignore[attr-defined]
    return kernel


def no_kernel(op: Op, device: str, reason: str = "") -> NotSupported:
    return NotSupported(f"{op.name} has no kernel and no decomposition for device {device!r}{reason}; register one "
                        f"with @{op.name}.kernel({device!r}) or @{op.name}.decomposition")


__all__ = ["AUTOGRAD", "FACTORY", "builders", "find", "register_builder", "resolve"]
