"""In-place forms while gradients are recorded: compute the functional form, write its value, take over its history."""
from __future__ import annotations

from tensorplay.library import AUTOGRAD, NO_GRAD, AutogradError, Tensor, check_target, make_tensor, mask_bits

from ._gradients import operator
from ._node import attach
from ._views import base_of, edge_of, geometry, written_into

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ._node import Node


def inplace(function: Callable, self: Tensor, args: tuple, named: dict) -> Tensor:
    """`self.f_(*args)`, called by core when an operand requires grad."""
    name = function.__name__ + "_"
    if name == "copy_":
        return write(self, *args, **named)
    check_writable(self, name)
    value = function(self, *args, **named)
    check_target(self, value.layout, name)
    if value.node is not None:
        keep_old_value(value.node, self)
    copy_value(self, value, name)
    if value.layout.dtype is not self.layout.dtype:
        value = value.to(self.layout.dtype)
    if base_of(self) is None and value.node is not None and value.base is None:
        attach(self, value.node, value.output)
    else:
        written_into(self, value, name)
    return self


def write(target: Tensor, value: Tensor, name: str = "copy_") -> Tensor:
    """`target.copy_(value)`; the value broadcasts and is cast."""
    check_writable(target, name)
    if not isinstance(value, Tensor):
        value = operator("full")((), value, dtype=target.layout.dtype, device=target.layout.device)
    if value.layout.device is not target.layout.device or value.layout.dtype is not target.layout.dtype:
        value = value.to(target.layout.device, target.layout.dtype)
    if value.layout.shape != target.layout.shape:
        value = value.expand(target.layout.shape)
    check_target(target, value.layout, name)
    copy_value(target, value, name)
    written_into(target, value, name)
    return target


def copy_value(target: Tensor, value: Tensor, name: str) -> None:
    with mask_bits(add=NO_GRAD):
        operator("write_")(target, value)
    storage = target.storage
    storage.writer = (name, storage.writer[1] if storage.writer else None)


def check_writable(target: Tensor, name: str) -> None:
    """Leaves keep their values: their gradient is that of the value they had."""
    if target.keyset & AUTOGRAD and target.node is None:
        raise AutogradError(f"{name}: a leaf tensor that requires grad cannot be changed in place while gradients are "
                            f"recorded; do it under tp.no_grad(), or use the form without '_'")
    base = base_of(target)
    if base is not None:
        geometry(base, target)  # a view of another dtype is refused before anything is written
    if base is not None and base.keyset & AUTOGRAD and base.node is None:
        raise AutogradError(f"{name}: this tensor is a view of a leaf tensor that requires grad, which cannot be "
                            f"changed in place while gradients are recorded; do it under tp.no_grad(), or write to "
                            f"a .clone()")


def keep_old_value(node: Node, target: Tensor) -> None:
    """If the operator saved the tensor that is about to be overwritten, let it keep a copy of the old values."""
    saved = node.saved
    if not saved or saved.__class__ is not tuple or not any([entry is target for entry in saved]):
        return
    with mask_bits(add=NO_GRAD):
        old = target.clone()
    edge = edge_of(target)
    if edge is not None:
        old = make_tensor(old.storage, old.offset, old.layout)
        attach(old, *((edge[0], edge[1] + 1) if edge.__class__ is tuple else (edge, 0)))
    entries = list(saved)
    for place, version, _ in node.recipe.tensors:
        if saved[place] is target:
            entries[place], entries[version] = old, old.storage.version
    node.saved = tuple(entries)
