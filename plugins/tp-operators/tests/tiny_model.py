"""A language model of the main job's kind, small enough for a device in plain Python."""
from __future__ import annotations

from typing import Any

import tensorplay as tp
from tensorplay import nn, optim

VOCABULARY, HIDDEN, LAYERS, HEADS, TIME, BATCH = 11, 8, 2, 4, 6, 2


class TinyModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, HIDDEN)
        self.layers = nn.ModuleList([
            nn.TransformerBlock(HIDDEN, nn.GroupedQueryAttention(HIDDEN, HEADS, num_kv_heads=2, qk_norm=True,
                                                                 layer_idx=i)) for i in range(LAYERS)])
        self.norm = nn.RMSNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, VOCABULARY, bias=False)

    def forward(self, input_ids: Any) -> Any:
        x = self.embedding(input_ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class Training:
    """A model with its optimizer on a device; the same numbers on every device."""

    def __init__(self, device: str) -> None:
        tp.manual_seed(0)
        self.device = tp.device(device)
        self.model = TinyModel().to(device)
        self.optimizer = optim.AdamW(self.model.parameters(), lr=1e-2)
        self.criterion = nn.CrossEntropyLoss()

    def batch(self, number: int) -> tuple[Any, Any]:
        rows = tp.arange(TIME + 1, device=self.device).unsqueeze(0) + tp.arange(BATCH, device=self.device).unsqueeze(1)
        data = (rows + 3 * number) % VOCABULARY
        return data[:, :-1], data[:, 1:]

    def step(self, ids: Any, targets: Any) -> Any:
        """One step; the loss, still a tensor."""
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(ids).reshape(-1, VOCABULARY), targets.reshape(-1))
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def losses(self, steps: int) -> list[float]:
        return [self.step(*self.batch(i)).item() for i in range(steps)]
