"""What core calls: the engine behind `Tensor.backward`, `.grad_fn`, hooks and in-place forms."""
from __future__ import annotations

from tensorplay.library import AUTOGRAD, Tensor, register_builder

from ._backward import backward, grad
from ._hooks import register_post_accumulate_hook, register_tensor_hook, retain_grad
from ._inplace import inplace, write
from ._record import build
from ._views import edge_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._node import Node


def grad_fn(tensor: Tensor) -> Node | None:
    """The node that made a tensor; a view whose base was written to gets a new one first."""
    edge_of(tensor)
    return tensor.node


register_builder(AUTOGRAD, build)

__all__ = ["backward", "grad", "grad_fn", "inplace", "register_post_accumulate_hook", "register_tensor_hook",
           "retain_grad", "write"]
