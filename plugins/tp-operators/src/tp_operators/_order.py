"""What operators that compare values share: the (values, indices) pair, and the refusal of complex numbers."""
from __future__ import annotations

from collections import namedtuple

from tensorplay.library import DTypeError, Layout, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_pairs: dict[str, Any] = {}


def named_pair(name: str, values: Tensor, indices: Tensor) -> Any:
    """The (values, indices) result of max, sort, topk, ..., with those names."""
    if name not in _pairs:
        _pairs[name] = namedtuple(name, ("values", "indices"))  # noqa: PYI024
    return _pairs[name](values, indices)


def ordered_only(name: str, *sources: Layout) -> None:
    """Refuse complex numbers, of which none is the largest."""
    for source in sources:
        if source.dtype.is_complex:
            raise DTypeError(f"{name}: complex numbers have no order; use x.abs()")
