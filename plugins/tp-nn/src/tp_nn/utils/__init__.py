"""`tensorplay.nn.utils`: torch's namespace for gradient clipping."""
from __future__ import annotations

from ..gradient_clipping import clip_grad_norm_, clip_grad_value_, get_total_norm

__all__ = ["clip_grad_norm_", "clip_grad_value_", "get_total_norm"]
