"""Host fallback: an operator that a device does not have runs on the CPU, copied there and back, and is counted.
TP_FALLBACK=error refuses it, warn (the default) warns once for each operator, count only counts."""
from __future__ import annotations

import os

from . import _device
from ._errors import NotSupported, ValueRangeError
from ._op import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

counts: dict[tuple[str, str], int] = {}  # (op, device) -> calls


def policy() -> str:
    value = os.environ.get("TP_FALLBACK", "warn")
    if value not in ("error", "warn", "count"):
        raise ValueRangeError(f"TP_FALLBACK={value!r} in the environment: expected error, warn or count")
    return value


def host_fallback(op: Op, driver: Any) -> Callable:
    from ._resolve import find, no_kernel

    device = driver.name
    if device in ("cpu", "meta"):
        raise no_kernel(op, device, " (nor a meta)" if device == "meta" else "")
    checked = False

    def kernel(*args: Any) -> Any:
        nonlocal checked
        if not checked:  # only now: loading the CPU's plugin must not happen inside the lock of resolution
            try:
                find(op, _device.key_bit("cpu"))
            except NotSupported:
                raise no_kernel(op, device, ", and neither has the CPU, on which it could run instead") from None
            checked = True
        how = policy()
        if how == "error":
            raise NotSupported(f"{op.name}: device {device!r} has no kernel for it, and TP_FALLBACK=error forbids "
                               f"running it on the CPU")
        key = (op.name, device)
        counts[key] = counts.get(key, 0) + 1
        if how == "warn" and counts[key] == 1:
            import warnings

            warnings.warn(f"{op.name} runs on the CPU because device {device!r} has no kernel for it (copied there "
                          f"and back; TP_FALLBACK=count silences this)", stacklevel=2)
        place = next(a.device for a in _flat(args) if hasattr(a, "layout"))
        host = tuple([_moved(a, "cpu") for a in args])
        result = op.call(*host)
        for i in op.schema.mutates:
            for target, value in zip(_flat((args[i],)), _flat((host[i],))):
                target.copy_(value.to(place))
        return _moved(result, place)

    kernel.direct = False  # type: ignore[attr-defined]
    return kernel


def _flat(args: tuple) -> list:
    return [one for arg in args for one in (arg if arg.__class__ in (list, tuple) else (arg,))]


def _moved(value: Any, place: Any) -> Any:
    if value.__class__ in (list, tuple):
        return value.__class__([_moved(one, place) for one in value])
    return value.detach().to(place) if hasattr(value, "layout") else value
