"""The generic path of a kernel: promote, broadcast, meta, allocate, kernel(out). Every device without fused kernels
runs it, and so does the CPU with TP_GENERIC=1: Python's meta decides shape, dtype, layout and errors there too."""
from __future__ import annotations

from ._device import Device
from ._errors import NotSupported
from ._keys import AUTOGRAD
from ._layout import Layout, broadcast_strides, layout
from ._op import FACTORY, RETYPES, Op
from ._tensor import Tensor, make_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def layouts_of(args: tuple) -> tuple:
    """The arguments as meta functions get them: layouts in place of tensors."""
    return tuple([a.layout if isinstance(a, Tensor) else tuple([t.layout if isinstance(t, Tensor) else t for t in a])
                  if a.__class__ in (list, tuple) else a for a in args])


def infer(op: Op, args: tuple) -> Any:
    """The result's layout (a tuple for several results), from the op's meta."""
    return meta_of(op)(*layouts_of(args))


def meta_of(op: Op) -> Callable:
    meta = op.rule("meta")
    if meta is not None:
        return meta
    if op.elementwise:
        from ._elementwise import elementwise_meta

        return op.rules.setdefault("meta", elementwise_meta(op))
    raise NotSupported(f"{op.name} has a kernel but no meta; say what its result looks like with @{op.name}.meta")


def allocate(result: Layout) -> Tensor:
    """An uninitialised tensor of this layout; DeviceError if its device does not have the dtype."""
    device = result.device
    driver = device.driver
    driver.check_dtype(result.dtype)
    return make_tensor(driver.allocate(result.numel * result.dtype.itemsize, device), 0, result)


def generic_kernel(op: Op, driver: Any, kernel: Callable) -> Callable:
    """The operator on a device whose kernel only computes: meta, allocation, prepared arguments, kernel."""
    compute = getattr(kernel, "out", kernel)
    meta = meta_of(op)
    prepare = preparation(op, driver, kernel)
    mutated = op.schema.mutates
    several = driver.device_count() > 1 and len(op.schema.tensors) + 2 * len(op.schema.lists) > 1

    def call(*args: Any) -> Any:
        if several:
            check_one_device(op, args)
        result = meta(*layouts_of(args))
        if result.__class__ is Layout:
            out: Any = allocate(result)
        elif result is None:
            out = None
        else:
            out = tuple([allocate(one) for one in result])
        compute(out, *prepare(args, result))
        if mutated:
            mark_mutated(op, args)
        return out

    call.out_kernel = compute  # type: ignore[attr-defined]
    call.prepare = prepare  # type: ignore[attr-defined]
    return call


def check_one_device(op: Op, args: tuple) -> None:
    """Devices of one type share a key, so `refdev:0` beside `refdev:1` is noticed here only."""
    tensors = [a for arg in args for a in (arg if arg.__class__ in (list, tuple) else (arg,)) if isinstance(a, Tensor)]
    if any([t.layout.device is not tensors[0].layout.device for t in tensors]):
        from ._resolve import mixed_devices

        mixed_devices(op)(*args)


def preparation(op: Op, driver: Any, kernel: Callable) -> Callable:
    """What happens to the arguments first: promotion and broadcasting for elementwise ops, contiguous copies where
    the device or the kernel wants them. A kernel with `broadcasts = True` does the former itself."""
    contiguous = driver.wants_contiguous or getattr(kernel, "wants_contiguous", False)
    skip = set(op.schema.mutates)
    if op.name == "copy_strided":
        contiguous = False
    if op.elementwise and not getattr(kernel, "broadcasts", False):
        from ._elementwise import promote_and_expand

        def prepare(args: tuple, result: Any) -> tuple:
            args = promote_and_expand(op, args, result if result.__class__ is Layout else result[0])
            return made_contiguous(args, skip) if contiguous else args

        return prepare
    if contiguous:
        return lambda args, result: made_contiguous(args, skip)
    return lambda args, result: args


def made_contiguous(args: tuple, skip: set) -> tuple:
    def dense(value: Any) -> Any:
        return value.contiguous() if isinstance(value, Tensor) and not value.layout.contiguous else value

    return tuple([a if i in skip else [dense(t) for t in a] if a.__class__ in (list, tuple) else dense(a)
                  for i, a in enumerate(args)])


def mark_mutated(op: Op, args: tuple) -> None:
    """Count the write to every tensor that the schema marks `(a!)`."""
    from ._inplace import bump_version

    for i in op.schema.mutates:
        for target in (args[i] if args[i].__class__ in (list, tuple) else (args[i],)):
            if target is not None:
                bump_version(target, op.name)


def copy_into(target: Tensor, value: Tensor) -> None:
    """Write `value`, broadcast and cast, into the target's memory through the device's `copy_strided` kernel."""
    from ._inplace import check_own_cells
    from ._ops import require
    from ._resolve import find

    layout_to = target.layout
    check_own_cells(target, "copy_")
    if value.layout.device is not layout_to.device or value.layout.dtype is not layout_to.dtype:
        value = value.detach().to(layout_to.device, layout_to.dtype)
    if value.storage is target.storage and (value.layout is not layout_to or value.offset != target.offset):
        value = require("copy_strided")(value.detach())  # the write could overtake the reads
    op: Op = require("copy_strided").op  # type: ignore[attr-defined]
    kernel: Any = find(op, layout_to.device.key)
    kernel.out_kernel(target, expanded(value, layout_to.shape))


def view_kernel(op: Op) -> Callable:
    """The kernel of every view op on every device: the same storage under the layout that meta says."""
    meta = op.rule("meta")
    retypes = RETYPES in op.tags
    plans: dict[tuple, tuple] = {}

    def view(x: Tensor, *args: Any) -> Tensor:
        source = x.layout
        try:
            plan = plans.get((source, args))
        except TypeError:  # a list among the arguments
            plan = None
        if plan is None:
            plan = meta(source, *args)
            if len(plans) > 4096:
                plans.clear()
            try:
                plans[(source, args)] = plan
            except TypeError:
                pass
        start = x.offset * source.dtype.itemsize // plan[0].dtype.itemsize if retypes else x.offset
        made = make_tensor(x.storage, start + plan[1], plan[0])
        if not x.keyset & AUTOGRAD:  # so that a recorded write to the view reaches what it is a view of
            made.base = x if x.base is None else x.base
        return made

    return view


def expanded(x: Tensor, shape: tuple) -> Tensor:
    """`x` read with `shape` through zero strides."""
    old = x.layout
    if old.shape == shape:
        return x
    return make_tensor(x.storage, x.offset, layout(shape, old.dtype, old.device,
                                                   broadcast_strides(old.shape, old.strides, shape)))


__all__ = ["Device", "FACTORY", "expanded", "generic_kernel", "infer", "view_kernel"]
