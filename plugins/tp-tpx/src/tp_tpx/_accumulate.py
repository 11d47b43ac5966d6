"""Adding a gradient to a leaf's `.grad`."""
from __future__ import annotations

from _thread import RLock
from sys import getrefcount

from tensorplay.library import AUTOGRAD, Tensor, held_over_fork

# Several threads may run backward at once. `with` leaves no gap in which Ctrl-C could keep the lock held, and a signal
# handler may itself run backward.
lock = held_over_fork(RLock())


def accumulate(leaf: Tensor, gradient: Tensor, create_graph: bool, references: int) -> None:
    """`references`: how many references to `gradient` there are where only the caller can see it."""
    with lock:
        old = leaf.grad
        if old is None:
            alone = getrefcount(gradient) <= references
            leaf.grad = gradient if alone and may_keep(gradient, leaf) else gradient.clone()
        elif create_graph or old.keyset & AUTOGRAD or not (old.layout.contiguous or 0 not in old.layout.strides):
            leaf.grad = old + gradient
        else:
            old.add_(gradient)
    hooks = leaf.hooks
    if hooks is not None:
        for hook in tuple(hooks.accumulated.values()):
            hook(leaf)


def may_keep(gradient: Tensor, leaf: Tensor) -> bool:
    """Nobody else has the gradient; does anybody have its memory, and is it laid out as a leaf's gradient should be?"""
    if gradient.base is not None and not gradient.keyset & AUTOGRAD:
        gradient.base = None
    return getrefcount(gradient.storage) <= STORAGE_REFERENCES and \
        (gradient.layout is leaf.layout or gradient.layout.contiguous)


class _Holder:
    __slots__ = ("storage",)


def _storage_references() -> int:
    """What getrefcount says about the storage of a tensor that shares it with nobody."""
    holder = _Holder()
    holder.storage = object()
    return getrefcount(holder.storage)


STORAGE_REFERENCES = _storage_references()
