"""Views and their bases. A view's gradient flows to its base; writing into a view changes the base's history.

`tensor.base` is None, the base tensor (a view made without a gradient), or for a recorded view the pair (base, node
that the base had when the view's own node was made). Bases are never views themselves. When a write has given the base
a new node, its views notice at their next use and make themselves a new node, which reads the base through the view's
strides.
"""
from __future__ import annotations

from tensorplay.library import AUTOGRAD, AutogradError, Tensor

from ._node import Node, Recipe, attach, make_node
from ._regions import clear_region, place_region, read_region

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def base_of(tensor: Tensor) -> Tensor | None:
    base = tensor.base
    return base[0] if base.__class__ is tuple else base


def remember_base(view: Tensor, source: Tensor) -> None:
    base = source.base
    if base is None:
        base = source
    elif base.__class__ is tuple:
        base = base[0]
    view.base = (base, base.node)


def edge_of(tensor: Tensor) -> Any:
    """Where the gradient of a tensor goes."""
    if not tensor.keyset & AUTOGRAD:
        return None
    base = tensor.base
    if base.__class__ is tuple and base[0].node is not base[1]:
        read_again(tensor, base[0])
    node = tensor.node
    if node is None:
        return tensor
    return (node, tensor.output - 1) if tensor.output else node


def read_again(view: Tensor, base: Tensor) -> None:
    """The base has a new history: give the view a node that reads it."""
    attach(view, make_node(VIEW_OF_WRITTEN, (edge_of(base),), geometry(base, view)))
    view.base = (base, base.node)


def written_into(target: Tensor, value: Tensor, name: str) -> None:
    """The history of `target` after `value`, which has the target's shape and dtype, was copied into its memory."""
    base = base_of(target)
    if base is None:
        if value.keyset & AUTOGRAD or target.keyset & AUTOGRAD:
            attach(target, make_node(WRITTEN, (edge_of(value),), ()))
        return
    edges = (edge_of(base), edge_of(value))
    attach(base, make_node(COPY_SLICES, edges, geometry(base, target)))
    target.keyset |= AUTOGRAD
    target.base = (base, None)  # never the base's present node: the next use makes a new one


def geometry(base: Tensor, view: Tensor) -> tuple:
    """How a view reads its base: both layouts and the distance between their first elements."""
    if view.layout.dtype is not base.layout.dtype:
        raise AutogradError(f"a {view.layout.dtype.name} view of a {base.layout.dtype.name} tensor (real, imag, "
                            f"view_as_real, view_as_complex) cannot be recorded together with a write to either in "
                            f"place; build a new tensor instead, e.g. tp.complex(real, imag)")
    return base.layout, view.layout, view.offset - base.offset


def copy_slices_backward(node: Node, saved: tuple, gradient: Tensor) -> tuple:
    """The written region's gradient belongs to the value, the rest to what the base was before."""
    return (None if node.edges[0] is None else clear_region(gradient, *saved),
            None if node.edges[1] is None else read_region(gradient, *saved))


def view_backward(node: Node, saved: tuple, gradient: Tensor) -> tuple:
    return (place_region(gradient, *saved),)


COPY_SLICES = Recipe("CopySlices", copy_slices_backward)
VIEW_OF_WRITTEN = Recipe("AsStridedBackward0", view_backward)
WRITTEN = Recipe("CopyBackward0", lambda node, saved, gradient: (gradient,))
