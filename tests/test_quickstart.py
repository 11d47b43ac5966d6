"""The first two programs that a newcomer types, as they stand in the documents."""
from __future__ import annotations

import tensorplay as tp
from tensorplay import nn
from tensorplay.nn.cache import DynamicCache
from tensorplay.nn.generation import generate


def test_autograd() -> None:
    x = tp.Tensor([[1., 2.], [3., 4.]], requires_grad=True)
    y = tp.Tensor([[5., 6.], [7., 8.]])
    z = x.matmul(y) + tp.ones_like(x)
    z.sum().backward()
    assert z.tolist() == [[20., 23.], [44., 51.]]
    assert x.grad.tolist() == [[11., 15.], [11., 15.]]


class DecoderLayer(nn.Module):
    def __init__(self, hidden_size, num_heads, num_kv_heads, layer_idx):
        super().__init__()
        self.block = nn.TransformerBlock(hidden_size, nn.GroupedQueryAttention(
            hidden_size, num_heads, num_kv_heads=num_kv_heads, qk_norm=True, layer_idx=layer_idx))

    def forward(self, x, position_ids=None, past_key_values=None):
        return self.block(x, position_ids=position_ids, past_key_values=past_key_values)


class TinyLM(nn.Module):
    def __init__(self, vocab_size=256, hidden_size=128, num_layers=4, num_heads=8, num_kv_heads=2):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab_size, hidden_size)
        self.layers = nn.ModuleList([DecoderLayer(hidden_size, num_heads, num_kv_heads, i) for i in range(num_layers)])
        self.norm = nn.RMSNorm(hidden_size)
        self.lm_head = nn.Linear(hidden_size, vocab_size, bias=False)

    def forward(self, input_ids, position_ids=None, past_key_values=None):
        x = self.embed_tokens(input_ids)
        for layer in self.layers:
            x = layer(x, position_ids=position_ids, past_key_values=past_key_values)
        return self.lm_head(self.norm(x))

    def create_empty_cache(self):
        return DynamicCache()


def test_tiny_lm_learns_to_count_and_goes_on() -> None:
    tp.manual_seed(0)
    model = TinyLM()
    loss_fn = nn.CrossEntropyLoss()
    optimizer = tp.optim.AdamW(model.parameters(), lr=3e-4)
    losses = []
    for step in range(200):
        data = (tp.arange(65).unsqueeze(0) + 3 * step) % 256
        logits = model(data[:, :-1])
        loss = loss_fn(logits.reshape(-1, 256), data[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    means = [sum(losses[i:i + 40]) / 40 for i in range(0, 200, 40)]
    assert means == sorted(means, reverse=True) and losses[0] > 5 and means[-1] < 0.5, means

    prompt = tp.tensor([[10, 11, 12, 13]])
    out = generate(model, prompt, max_new_tokens=16, do_sample=True, temperature=0.8, top_k=50)
    assert out.dtype is tp.int64 and out.shape == (1, 20) and out[:, :4].tolist() == prompt.tolist()
    assert generate(model, prompt, max_new_tokens=16).tolist() == [list(range(10, 30))]
    both = generate(model, tp.tensor([[10, 11], [90, 91]]), max_new_tokens=8, repetition_penalty=1.1, top_p=0.9)
    assert both.tolist() == [list(range(10, 20)), list(range(90, 100))]
    assert generate(model, prompt, max_new_tokens=16, eos_token_id=16).tolist() == [[10, 11, 12, 13, 14, 15, 16]]

    whole = model(prompt)
    cache = model.create_empty_cache()
    parts = [model(prompt[:, i:i + 2], past_key_values=cache) for i in (0, 2)]
    assert (tp.cat(parts, 1) - whole).abs().max().item() <= 2e-4
    assert str(model).splitlines()[-1] == "754 432 parameters, 2.9 MiB"
    assert repr(model).startswith("TinyLM(\n  (embed_tokens): Embedding(256, 128)\n  (layers): ModuleList(\n")
