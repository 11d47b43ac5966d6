"""Key-value caches for generation: what attention has seen so far, layer by layer."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import ShapeError, shape_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tensorplay import Tensor


class DynamicCache:
    """A cache that grows with the sequence.

    >>> import tensorplay as tp
    >>> from tensorplay.nn.cache import DynamicCache
    >>> cache = DynamicCache()
    >>> k, v = cache.update(tp.zeros(1, 2, 3, 4), tp.zeros(1, 2, 3, 4), layer_idx=0)
    >>> k, v = cache.update(tp.ones(1, 2, 1, 4), tp.ones(1, 2, 1, 4), layer_idx=0)
    >>> k.shape, cache.get_seq_length()
    (tensorplay.Size([1, 2, 4, 4]), 4)

    Keys and values are [batch, heads, time, features]. Under no_grad they live in a buffer that doubles when it is
    full, so that a step costs the new tokens only; where gradients are recorded they are joined, so that they flow.
    """

    def __init__(self) -> None:
        self._layers: dict[int, _Layer] = {}

    def update(self, key: Tensor, value: Tensor, layer_idx: int) -> tuple[Tensor, Tensor]:
        """Add new keys and values of a layer and return all of them."""
        layer = self._layers.get(layer_idx)
        if layer is None:
            layer = self._layers[layer_idx] = _Layer()
        return layer.update(key, value)

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """How many positions a layer holds."""
        layer = self._layers.get(layer_idx)
        return 0 if layer is None else layer.length

    def __len__(self) -> int:
        return len(self._layers)

    def __getitem__(self, layer_idx: int) -> tuple[Tensor, Tensor]:
        return self._layers[layer_idx].content()

    def reorder(self, indices: Tensor) -> None:
        """Choose and reorder the sequences of the batch (beam search)."""
        for layer in self._layers.values():
            layer.keys, layer.values = (tp.index_select(x, 0, indices) for x in layer.content())

    def crop(self, length: int) -> None:
        """Forget everything from position `length` on."""
        for layer in self._layers.values():
            layer.keys, layer.values = (x.narrow(2, 0, min(length, layer.length)) for x in layer.content())
            layer.length = min(length, layer.length)


class _Layer:
    """One layer's buffer: `length` positions of `keys` and `values` are in use."""

    __slots__ = ("keys", "values", "length")
    keys: Tensor
    values: Tensor

    def __init__(self) -> None:
        self.length = 0

    def content(self) -> tuple[Tensor, Tensor]:
        if self.keys.layout.shape[2] == self.length:
            return self.keys, self.values
        return self.keys.narrow(2, 0, self.length), self.values.narrow(2, 0, self.length)

    def update(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        added = key.layout.shape[2]
        if self.length and (key.layout.shape[:2] != self.keys.layout.shape[:2]
                            or key.layout.shape[3] != self.keys.layout.shape[3]
                            or value.layout.shape[3] != self.values.layout.shape[3]):
            raise ShapeError(f"cache: new keys {shape_text(key.layout.shape)} do not continue the cached "
                             f"{shape_text(self.keys.layout.shape)}: batch, heads and features must stay the same")
        if tp.is_grad_enabled() or self.length and self.keys.requires_grad:
            if self.length:
                old_keys, old_values = self.content()
                key, value = tp.cat([old_keys, key], 2), tp.cat([old_values, value], 2)
            self.keys, self.values, self.length = key, value, key.layout.shape[2]
            return key, value
        end = self.length + added
        if not self.length or end > self.keys.layout.shape[2]:
            self._grow(key, value, end)
        self.keys.narrow(2, self.length, added).copy_(key)
        self.values.narrow(2, self.length, added).copy_(value)
        self.length = end
        return self.content()

    def _grow(self, key: Tensor, value: Tensor, needed: int) -> None:
        room = max(2 * needed, 32)
        for name, like in (("keys", key), ("values", value)):
            b, h, _, d = like.layout.shape
            fresh = tp.empty((b, h, room, d), dtype=like.dtype, device=like.device)
            if self.length:
                fresh.narrow(2, 0, self.length).copy_(getattr(self, name).narrow(2, 0, self.length))
            setattr(self, name, fresh)
