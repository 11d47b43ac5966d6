"""Parameter: a tensor that a module trains; Buffer: one that it only keeps."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import ArgumentError, make_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import Self


class Parameter(tp.Tensor):
    """A tensor that becomes a parameter of the module it is assigned to.

    >>> import tensorplay as tp
    >>> w = tp.nn.Parameter(tp.zeros(2))
    >>> w.requires_grad, w.is_leaf
    (True, True)
    """

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Self:
        if data is None:
            data = tp.empty(0)
        if not isinstance(data, tp.Tensor):
            raise ArgumentError(f"Parameter takes a Tensor, got {type(data).__name__}; make one with tp.tensor(...)")
        made = make_tensor(data.storage, data.offset, data.layout, cls)
        return made.requires_grad_() if requires_grad else made

    def __repr__(self) -> str:
        return "Parameter containing:\n" + tp.Tensor.__repr__(self)


class Buffer(tp.Tensor):
    """A tensor that becomes a buffer of the module it is assigned to; `persistent`: part of the state_dict."""

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Self:
        if data is None:
            data = tp.empty(0)
        made = make_tensor(data.storage, data.offset, data.layout, cls)
        made.persistent = persistent
        return made
