"""Grouped-query attention with rotary positions: the mixer of a decoder layer."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import INFERENCE, NO_GRAD, ArgumentError, ShapeError, modes, shape_text

from .functional import attention_forward, embedding, rope
from .linear import Linear
from .module import Module
from .rms_norm import RMSNorm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tensorplay import Tensor

_tables: dict[tuple, tuple] = {}  # (features, base, dtype, device) -> (cos, sin) for positions 0, 1, 2, ...


def rotary_table(length: int, features: int, base: float, dtype: Any, device: Any) -> tuple[Tensor, Tensor]:
    """cos and sin [at least length, features / 2] of position * base ** (-2 i / features), shared by all layers."""
    key = (features, base, dtype, device)
    found = _tables.get(key)
    if found is None or found[0].layout.shape[0] < length:
        size = max(2 * length, 256)
        with tp.no_grad():
            powers = tp.arange(0, features, 2, dtype=tp.float64, device="cpu") * (-1.0 / features)
            angles = tp.outer(tp.arange(size, dtype=tp.float64, device="cpu"), tp.pow(float(base), powers))
            found = _tables[key] = (angles.cos().to(device, dtype), angles.sin().to(device, dtype))
    return found


WATCHED = ~(NO_GRAD | INFERENCE)
_latest: tuple = (None,)  # (position_ids, version, features, base, dtype, device, cos, sin)


def rotary_rows(position_ids: Tensor, features: int, base: float, like: Tensor) -> tuple[Tensor, Tensor]:
    """cos and sin at the given positions, with a dimension for the heads. All layers of a model are asked for the same
    positions one after the other, so the latest answer is kept (not while somebody records or replaces calls)."""
    global _latest
    kept = _latest
    key = (position_ids.storage.version, features, base, like.dtype, like.device)
    if kept[0] is position_ids and kept[1:6] == key and not modes() & WATCHED:
        return kept[6:]
    known = not position_ids.is_meta and position_ids.layout.numel
    last = int(position_ids.amax().item()) if known else position_ids.layout.numel
    cos, sin = rotary_table(last + 1, features, base, like.dtype, like.device)
    cos, sin = embedding(position_ids, cos).unsqueeze(-2), embedding(position_ids, sin).unsqueeze(-2)
    if not modes() & WATCHED:
        _latest = (position_ids, *key, cos, sin)
    return cos, sin


class GroupedQueryAttention(Module):
    """Causal self-attention whose query heads share `num_kv_heads` key and value heads (Ainslie et al. 2023), with
    rotary position embedding (Su et al. 2021) and optional RMS normalisation of queries and keys.

    >>> import tensorplay as tp
    >>> mixer = tp.nn.GroupedQueryAttention(32, 4, num_kv_heads=2)
    >>> mixer(tp.zeros(1, 5, 32)).shape
    tensorplay.Size([1, 5, 32])

    x is [batch, time, hidden]. `position_ids` [time] or [batch, time] are the positions of x, by default those that
    follow what `past_key_values` (a cache) holds. With a cache, x sees everything in it and itself up to each position.
    """

    def __init__(self, hidden_size: int, num_heads: int, num_kv_heads: int | None = None, head_dim: int | None = None,
                 qk_norm: bool = False, bias: bool = False, rope_base: float = 10000.0, norm_eps: float = 1e-6,
                 layer_idx: int = 0, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        if num_heads % num_kv_heads:
            raise ArgumentError(f"GroupedQueryAttention: {num_heads} query heads cannot share {num_kv_heads} key heads "
                                f"evenly")
        if head_dim is None and hidden_size % num_heads:
            raise ArgumentError(f"GroupedQueryAttention: hidden_size {hidden_size} is not a multiple of {num_heads} "
                                f"heads; give head_dim")
        self.hidden_size = hidden_size
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.head_dim = head_dim or hidden_size // num_heads
        self.rope_base = rope_base
        self.layer_idx = layer_idx
        if self.head_dim % 2:
            raise ArgumentError(f"GroupedQueryAttention: rotary positions need an even head_dim, got {self.head_dim}")
        where = {"bias": bias, "device": device, "dtype": dtype}
        self.q_proj = Linear(hidden_size, num_heads * self.head_dim, **where)
        self.k_proj = Linear(hidden_size, num_kv_heads * self.head_dim, **where)
        self.v_proj = Linear(hidden_size, num_kv_heads * self.head_dim, **where)
        self.o_proj = Linear(num_heads * self.head_dim, hidden_size, **where)
        self.q_norm = RMSNorm(self.head_dim, norm_eps, device=device, dtype=dtype) if qk_norm else None
        self.k_norm = RMSNorm(self.head_dim, norm_eps, device=device, dtype=dtype) if qk_norm else None

    def forward(self, x: Tensor, position_ids: Tensor | None = None, past_key_values: Any = None) -> Tensor:
        if x.layout.ndim != 3 or x.layout.shape[2] != self.hidden_size:
            raise ShapeError(f"GroupedQueryAttention: expects x[batch, time, {self.hidden_size}], got "
                             f"x{shape_text(x.layout.shape)}")
        batch, time, _ = x.layout.shape
        past = 0 if past_key_values is None else past_key_values.get_seq_length(self.layer_idx)
        query = self.q_proj(x).view(batch, time, self.num_heads, self.head_dim)
        key = self.k_proj(x).view(batch, time, self.num_kv_heads, self.head_dim)
        value = self.v_proj(x).view(batch, time, self.num_kv_heads, self.head_dim).transpose(1, 2)
        if self.q_norm is not None:
            query, key = self.q_norm(query), self.k_norm(key)
        cos, sin = self._positions(position_ids, past, time, x)
        query, key = rope(query, cos, sin).transpose(1, 2), rope(key, cos, sin).transpose(1, 2)
        if past_key_values is not None:
            key, value = past_key_values.update(key, value, self.layer_idx)
        mixed = attention_forward(query, key, value, None, past, self.head_dim ** -0.5)[0]
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, time, self.num_heads * self.head_dim))

    def _positions(self, position_ids: Tensor | None, past: int, time: int, x: Tensor) -> tuple[Tensor, Tensor]:
        """cos and sin as [time, 1, d] or [batch, time, 1, d]: one for all heads."""
        if position_ids is None:
            cos, sin = rotary_table(past + time, self.head_dim, self.rope_base, x.dtype, x.device)
            return cos[past:past + time].unsqueeze(1), sin[past:past + time].unsqueeze(1)
        if position_ids.layout.shape not in ((time,), (1, time), (x.layout.shape[0], time)):
            raise ShapeError(f"GroupedQueryAttention: position_ids{shape_text(position_ids.layout.shape)} must be "
                             f"[{time}] or [{x.layout.shape[0]}, {time}] for x{shape_text(x.layout.shape)}")
        return rotary_rows(position_ids, self.head_dim, self.rope_base, x)

    def extra_repr(self) -> str:
        return f"num_heads={self.num_heads}, num_kv_heads={self.num_kv_heads}, head_dim={self.head_dim}"
