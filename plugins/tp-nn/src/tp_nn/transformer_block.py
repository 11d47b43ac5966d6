"""A pre-norm decoder block: mixer and SwiGLU feed-forward, each with its residual."""
from __future__ import annotations

from .functional import swiglu
from .linear import Linear
from .module import Module
from .rms_norm import RMSNorm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tensorplay import Tensor


class SwiGLU(Module):
    """down(silu(gate(x)) * up(x)) (Shazeer 2020); the width is 8/3 of the hidden size unless given."""

    def __init__(self, hidden_size: int, intermediate_size: int | None = None, bias: bool = False, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        width = 8 * hidden_size // 3 if intermediate_size is None else intermediate_size
        self.gate_proj = Linear(hidden_size, width, bias=bias, device=device, dtype=dtype)
        self.up_proj = Linear(hidden_size, width, bias=bias, device=device, dtype=dtype)
        self.down_proj = Linear(width, hidden_size, bias=bias, device=device, dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(swiglu(self.gate_proj(x), self.up_proj(x)))


class TransformerBlock(Module):
    """x + mixer(norm(x)), then x + feed_forward(norm(x)).

    >>> import tensorplay as tp
    >>> block = tp.nn.TransformerBlock(32, tp.nn.GroupedQueryAttention(32, 4))
    >>> block(tp.zeros(1, 5, 32)).shape
    tensorplay.Size([1, 5, 32])

    Whatever keyword arguments the block gets (position_ids, past_key_values) go to the mixer.
    """

    def __init__(self, hidden_size: int, mixer: Module, intermediate_size: int | None = None,
                 norm_eps: float = 1e-6, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.mixer_norm = RMSNorm(hidden_size, norm_eps, device=device, dtype=dtype)
        self.mixer = mixer
        self.feed_forward_norm = RMSNorm(hidden_size, norm_eps, device=device, dtype=dtype)
        self.feed_forward = SwiGLU(hidden_size, intermediate_size, device=device, dtype=dtype)

    def forward(self, x: Tensor, **named: Any) -> Tensor:
        x = x + self.mixer(self.mixer_norm(x), **named)
        return x + self.feed_forward(self.feed_forward_norm(x))
