"""Size: what `Tensor.shape` gives."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Size(tuple):
    """A shape. A tuple that also answers `numel()` and prints as torch's does."""

    __slots__ = ()

    def numel(self) -> int:
        """How many elements a tensor of this shape has."""
        total = 1
        for size in self:
            total *= size
        return total

    def __repr__(self) -> str:
        return f"tensorplay.Size({list(self)})"

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return Size(found) if index.__class__ is slice else found

    def __add__(self, other: tuple) -> Size:
        return Size(tuple.__add__(self, other))
