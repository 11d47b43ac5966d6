"""A language model small enough to run thousands of tokens in a test."""
from __future__ import annotations

from tensorplay import nn
from tensorplay.nn.cache import DynamicCache


class Model(nn.Module):
    def __init__(self, vocabulary: int = 50, hidden: int = 32, layers: int = 2, heads: int = 4, kv_heads: int = 2,
                 qk_norm: bool = True) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, hidden)
        self.layers = nn.ModuleList(
            nn.TransformerBlock(hidden, nn.GroupedQueryAttention(hidden, heads, num_kv_heads=kv_heads, qk_norm=qk_norm,
                                                                 layer_idx=i)) for i in range(layers))
        self.norm = nn.RMSNorm(hidden)
        self.head = nn.Linear(hidden, vocabulary, bias=False)

    def forward(self, input_ids, position_ids=None, past_key_values=None):
        x = self.embed(input_ids)
        for layer in self.layers:
            x = layer(x, position_ids=position_ids, past_key_values=past_key_values)
        return self.head(self.norm(x))

    def create_empty_cache(self) -> DynamicCache:
        return DynamicCache()
