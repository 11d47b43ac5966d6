"""Dropout."""
from __future__ import annotations

from tensorplay.library import ValueRangeError

from .functional import dropout
from .module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tensorplay import Tensor


class Dropout(Module):
    """In training, zero each element with probability p and scale the others by 1 / (1 - p) (Hinton et al. 2012)."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueRangeError(f"Dropout: p is a probability between 0 and 1, got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        return dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"
