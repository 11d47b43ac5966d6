"""TinyLM written with torch, with the parameters in the same order as examples/tiny_lm.py: the yardstick."""
from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class Cache:
    def __init__(self) -> None:
        self.layers: dict[int, tuple] = {}

    def get_seq_length(self, layer: int) -> int:
        return self.layers[layer][0].shape[2] if layer in self.layers else 0

    def update(self, key, value, layer: int):
        if layer in self.layers:
            old_key, old_value = self.layers[layer]
            key, value = torch.cat([old_key, key], 2), torch.cat([old_value, value], 2)
        self.layers[layer] = (key, value)
        return key, value


class Attention(nn.Module):
    def __init__(self, hidden: int, heads: int, kv_heads: int, layer: int) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.size, self.layer = heads, kv_heads, hidden // heads, layer
        self.q_proj = nn.Linear(hidden, hidden, bias=False)
        self.k_proj = nn.Linear(hidden, kv_heads * self.size, bias=False)
        self.v_proj = nn.Linear(hidden, kv_heads * self.size, bias=False)
        self.o_proj = nn.Linear(hidden, hidden, bias=False)
        self.q_norm, self.k_norm = nn.RMSNorm(self.size, 1e-6), nn.RMSNorm(self.size, 1e-6)
        powers = 10000.0 ** (-torch.arange(0, self.size, 2, dtype=torch.float64) / self.size)
        angles = torch.outer(torch.arange(512, dtype=torch.float64), powers)
        self.register_buffer("cos", angles.cos().float(), persistent=False)
        self.register_buffer("sin", angles.sin().float(), persistent=False)

    def rope(self, x, start: int):
        cos, sin = self.cos[start:start + x.shape[2]], self.sin[start:start + x.shape[2]]
        first, second = x.chunk(2, -1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)

    def forward(self, x, past_key_values=None):
        batch, time, hidden = x.shape
        past = past_key_values.get_seq_length(self.layer) if past_key_values is not None else 0
        query = self.q_norm(self.q_proj(x).view(batch, time, self.heads, self.size)).transpose(1, 2)
        key = self.k_norm(self.k_proj(x).view(batch, time, self.kv_heads, self.size)).transpose(1, 2)
        value = self.v_proj(x).view(batch, time, self.kv_heads, self.size).transpose(1, 2)
        query, key = self.rope(query, past), self.rope(key, past)
        if past_key_values is not None:
            key, value = past_key_values.update(key, value, self.layer)
        mask = None
        if past and time > 1:
            mask = torch.ones(time, past + time, dtype=torch.bool).tril(past)
        mixed = functional.scaled_dot_product_attention(query, key, value, mask, is_causal=time > 1 and not past,
                                                        enable_gqa=True)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, time, hidden))


class Block(nn.Module):
    def __init__(self, hidden: int, heads: int, kv_heads: int, layer: int) -> None:
        super().__init__()
        width = 8 * hidden // 3
        self.mixer_norm = nn.RMSNorm(hidden, 1e-6)
        self.mixer = Attention(hidden, heads, kv_heads, layer)
        self.feed_forward_norm = nn.RMSNorm(hidden, 1e-6)
        self.gate_proj = nn.Linear(hidden, width, bias=False)
        self.up_proj = nn.Linear(hidden, width, bias=False)
        self.down_proj = nn.Linear(width, hidden, bias=False)

    def forward(self, x, past_key_values=None):
        x = x + self.mixer(self.mixer_norm(x), past_key_values)
        y = self.feed_forward_norm(x)
        return x + self.down_proj(functional.silu(self.gate_proj(y)) * self.up_proj(y))


class TinyLM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(256, 128)
        self.layers = nn.ModuleList([Block(128, 8, 2, i) for i in range(4)])
        self.norm = nn.RMSNorm(128)
        self.lm_head = nn.Linear(128, 256, bias=False)

    def forward(self, ids, past_key_values=None):
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x, past_key_values)
        return self.lm_head(self.norm(x))

    def create_empty_cache(self) -> Cache:
        return Cache()
