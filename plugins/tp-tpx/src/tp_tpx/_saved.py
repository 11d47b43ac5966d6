"""Tensors kept for the backward pass: are they still what they were, and hooks that keep something else instead."""
from __future__ import annotations

from contextvars import ContextVar

from tensorplay.library import (
    AUTOGRAD,
    NO_GRAD,
    ArgumentError,
    AutogradError,
    Tensor,
    make_tensor,
    modes,
    shape_text,
    writer_text,
)

from ._node import Recipe, attach, extra_of, make_node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._node import Node


def check_version(node: Node, tensor: Tensor, version: int, place: int) -> None:
    """Refuse to compute with a tensor that has been written to since it was saved."""
    now = tensor.storage.version
    if now == version:
        return
    name = node.recipe.name.replace("Backward0", "")
    op, line = writer_text(tensor.storage)
    by = f" by {op}" if op else ""
    at = f" at {line}" if line else ""
    recorded = node.extra.line if node.extra is not None else None
    raise AutogradError(
        f"{name} saved {node.recipe.saved_names[place]!r} {shape_text(tensor.layout.shape)} for the backward pass"
        f"{f', at {recorded},' if recorded else ''} but it was changed in place{by}{at} after that (it is at version "
        f"{now}, saved was version {version}); use the form without '_', or change a .clone()")


def result_again(node: Node, saved: Any, place: int, version: int, number: int) -> Any:
    """A saved result as a tensor. Results are kept without their history, as they would otherwise keep themselves
    alive: result -> node -> saved -> result."""
    kept = saved[place]
    if kept and kept[0].__class__ is tuple:  # `outputs`: all results
        return tuple([_one_result(node, one, number_then, at, place)
                      for at, (one, number_then) in enumerate(zip(kept, saved[version]), 1)])
    return _one_result(node, kept, saved[version], number + 1 if node.recipe.several else 0, place)


def _one_result(node: Node, kept: tuple, version: int, output: int, place: int) -> Tensor:
    made = make_tensor(*kept)
    if kept[0].version != version:
        check_version(node, made, version, place)
    if not modes() & NO_GRAD and kept[2].dtype.category > 1:
        made = attach(made, node, output)
    return made


def saved_tensors(node: Node) -> tuple:
    saved = unpacked(node)
    if saved is None:
        raise freed(node)
    found: list = []
    for place, version, is_result in node.recipe.tensors:
        if is_result:
            one = result_again(node, saved, place, version, 0)
            found.extend(one if isinstance(one, tuple) else [one])
        elif isinstance(saved[place], Tensor):
            check_version(node, saved[place], saved[version], place)
            found.append(saved[place])
        elif saved[place].__class__ is tuple:
            found.extend(saved[place])
    return tuple(found)


def saved_value(node: Node, name: str) -> Any:
    """One entry of what a node keeps, by the name of the argument."""
    if name not in node.recipe.saved_names:
        raise ArgumentError(f"{node.recipe.name} keeps no {name!r}; it keeps "
                             f"{', '.join(node.recipe.saved_names) or 'nothing'}")
    saved = unpacked(node)
    if saved is None:
        raise freed(node)
    place = node.recipe.saved_names.index(name)
    for at, version, is_result in node.recipe.tensors:
        if at == place and is_result:
            return result_again(node, saved, place, version, 0)
    return saved[place]


def freed(node: Node) -> AutogradError:
    return AutogradError(f"{node.recipe.name}: cannot go backward a second time: the tensors that it saved were freed "
                         f"by the first backward pass; pass retain_graph=True to the first one")


# ---- hooks ----------------------------------------------------------------------------------------------------------
hooks_now: ContextVar[tuple] = ContextVar("tensorplay_saved_tensors_hooks", default=())


class Packed:
    """What `pack` made of a tensor."""

    __slots__ = ("payload", "unpack", "edge")

    def __init__(self, payload: Any, unpack: Callable, edge: Any) -> None:
        self.payload = payload
        self.unpack = unpack
        self.edge = edge

    def open(self) -> Tensor:
        tensor = self.unpack(self.payload)
        if not isinstance(tensor, Tensor):
            raise AutogradError(f"saved_tensors_hooks: unpack must return a Tensor, got {type(tensor).__name__}")
        if self.edge is None or tensor.keyset & AUTOGRAD or modes() & NO_GRAD:
            return tensor
        return attach(tensor.detach(), make_node(UNPACK, (self.edge,), ()))


UNPACK = Recipe("UnpackBackward0", lambda node, saved, gradient: (gradient,))


class saved_tensors_hooks:
    """Keep something else in place of the tensors that backward needs: `pack(tensor)` when one is saved, `unpack(what
    pack returned)` when it is used.

    >>> import tensorplay as tp
    >>> x = tp.ones(2, requires_grad=True)
    >>> with tp.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), lambda kept: tp.tensor(kept)):
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad.tolist()
    [2.0, 2.0]
    """

    def __init__(self, pack_hook: Callable, unpack_hook: Callable) -> None:
        self.pair = pack_hook, unpack_hook

    def __enter__(self) -> None:
        from ._record import watch

        self.previous = hooks_now.get()
        hooks_now.set((*self.previous, self.pair))
        watch(1)

    def __exit__(self, *exc: object) -> None:
        from ._record import watch

        watch(-1)
        hooks_now.set(self.previous)


def pack_saved(node: Node, edge_of: Callable) -> None:
    """Send what a new node saves through the hooks that are on."""
    hooks = hooks_now.get()
    if not hooks or not node.recipe.tensors or node.saved is None:
        return
    pack, unpack = hooks[-1]
    saved = list(node.saved)
    for place, _, is_result in node.recipe.tensors:
        if is_result:
            saved[place] = _pack_results(saved[place], pack, unpack)
        elif saved[place].__class__ is tuple:
            saved[place] = tuple([Packed(pack(one), unpack, edge_of(one)) for one in saved[place]])
        elif isinstance(saved[place], Tensor):
            saved[place] = Packed(pack(saved[place]), unpack, edge_of(saved[place]))
    node.saved = tuple(saved)
    extra_of(node).packed = True


def _pack_results(kept: tuple, pack: Callable, unpack: Callable) -> Any:
    if kept and kept[0].__class__ is tuple:
        return tuple([_pack_results(one, pack, unpack) for one in kept])
    return Packed(pack(make_tensor(*kept)), unpack, None)


def unpacked(node: Node) -> Any:
    """`node.saved` with every packed tensor opened, at the version it has now: hooks answer for what they return."""
    saved = node.saved
    if saved is None or node.extra is None or not node.extra.packed:
        return saved
    opened = list(saved)
    for place, version, is_result in node.recipe.tensors:
        kept = saved[place]
        if kept.__class__ is Packed:
            opened[place] = tensor = kept.open()
            opened[version] = tensor.storage.version
            if is_result:
                opened[place] = (tensor.storage, tensor.offset, tensor.layout)
        elif kept.__class__ is tuple:
            tensors = [one.open() for one in kept]
            opened[place] = tuple([(t.storage, t.offset, t.layout) for t in tensors] if is_result else tensors)
            opened[version] = tuple([tensor.storage.version for tensor in tensors])
    return tuple(opened)
