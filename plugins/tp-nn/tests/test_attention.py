"""Grouped-query attention: against float64 NumPy, causality, and that a cache never changes the logits."""
from __future__ import annotations

import numpy as np
import pytest

import tensorplay as tp
from tensorplay import nn
from tensorplay.nn.cache import DynamicCache

TIME = 9
SPLITS = [(9,), (1,) * 9, (4, 5), (8, 1), (1, 8), (3, 3, 3), (2, 1, 1, 5), (1, 1, 7)]
HEADS = [(4, 4), (4, 2), (4, 1)]


def rotate(x: np.ndarray, positions: np.ndarray, base: float) -> np.ndarray:
    """Rotary embedding of [time, heads, features], the two halves as real and imaginary parts."""
    half = x.shape[-1] // 2
    angle = positions[:, None, None] * base ** (-np.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], -1)


def reference(mixer: nn.GroupedQueryAttention, x: np.ndarray, positions: np.ndarray, base: float) -> np.ndarray:
    """One sequence [time, hidden]."""
    weight = {name: value.double().numpy() for name, value in mixer.state_dict().items()}
    heads, kv, d, time = mixer.num_heads, mixer.num_kv_heads, mixer.head_dim, len(x)
    q, k, v = [(x @ weight[f"{n}_proj.weight"].T).reshape(time, -1, d) for n in "qkv"]
    if mixer.q_norm is not None:
        q, k = [y / np.sqrt((y * y).mean(-1, keepdims=True) + 1e-6) * weight[f"{n}_norm.weight"]
                for n, y in (("q", q), ("k", k))]
    q, k = rotate(q, positions, base), rotate(k, positions, base)
    out = np.zeros((time, heads, d))
    for h in range(heads):
        score = q[:, h] @ k[:, h * kv // heads].T / np.sqrt(d)
        score[np.triu_indices(time, 1)] = -np.inf
        p = np.exp(score - score.max(-1, keepdims=True))
        out[:, h] = p / p.sum(-1, keepdims=True) @ v[:, h * kv // heads]
    return out.reshape(time, -1) @ weight["o_proj.weight"].T


@pytest.mark.parametrize(("heads", "kv_heads"), HEADS)
@pytest.mark.parametrize("qk_norm", [False, True])
@pytest.mark.parametrize("positions", [None, [0, 1, 2, 3, 4, 5, 6, 7, 8], [5, 6, 7, 300, 301, 302, 2, 2, 0]])
def test_against_numpy(heads, kv_heads, qk_norm, positions) -> None:
    tp.manual_seed(0)
    mixer = nn.GroupedQueryAttention(16, heads, num_kv_heads=kv_heads, qk_norm=qk_norm, rope_base=500.0).double()
    x = tp.randn(2, TIME, 16, dtype=tp.float64)
    ids = None if positions is None else tp.tensor(positions)
    found = mixer(x, position_ids=ids).detach().numpy()
    numbers = np.arange(TIME) if positions is None else np.array(positions)
    for row in range(2):
        np.testing.assert_allclose(found[row], reference(mixer, x[row].numpy(), numbers, 500.0), rtol=1e-9, atol=1e-11)


def test_positions_differ_by_row_and_are_read_anew() -> None:
    mixer = nn.GroupedQueryAttention(8, 2).double()
    x, ids = tp.randn(2, 3, 8, dtype=tp.float64), tp.tensor([[0, 1, 2], [7, 9, 11]])
    both = mixer(x, position_ids=ids)
    alone = mixer(x[1:], position_ids=ids[1:])
    np.testing.assert_allclose(both[1:].detach().numpy(), alone.detach().numpy(), rtol=1e-12)
    first = mixer(x, position_ids=ids).detach().clone()
    ids[1, 2] = 40
    assert (mixer(x, position_ids=ids) != first).any().item()


@pytest.mark.parametrize("mode", [tp.no_grad, tp.enable_grad, tp.inference_mode])
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("kv_heads", [4, 2, 1])
def test_cached_logits_equal_uncached(make_model, split, kv_heads, mode) -> None:
    model = make_model(kv_heads=kv_heads)
    ids = tp.randint(0, 50, (2, TIME))
    with mode():
        whole = model(ids)
        cache, pieces, start = model.create_empty_cache(), [], 0
        for size in split:
            pieces.append(model(ids[:, start:start + size], past_key_values=cache))
            start += size
            assert cache.get_seq_length() == start
        joined = tp.cat(pieces, 1)
    np.testing.assert_allclose(joined.detach().numpy(), whole.detach().numpy(), rtol=0, atol=2e-4)


def test_long_prefill_in_chunks(make_model) -> None:
    model, ids = make_model(), tp.randint(0, 50, (1, 300))
    with tp.no_grad():
        whole, cache = model(ids), model.create_empty_cache()
        pieces = [model(ids[:, i:i + 64], past_key_values=cache) for i in range(0, 300, 64)]
    np.testing.assert_allclose(tp.cat(pieces, 1).numpy(), whole.numpy(), rtol=0, atol=2e-4)


def test_the_future_does_not_matter(make_model) -> None:
    model, ids = make_model(), tp.randint(0, 50, (1, TIME))
    changed = ids.clone()
    changed[0, 5:] = (ids[0, 5:] + 1) % 50
    np.testing.assert_array_equal(model(ids)[:, :5].detach().numpy(), model(changed)[:, :5].detach().numpy())


def test_gradients_flow_through_the_cache(make_model) -> None:
    model, ids = make_model(), tp.randint(0, 50, (1, 6))
    model(ids).logsumexp(-1).sum().backward()
    expected = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    cache = model.create_empty_cache()
    total = sum(model(ids[:, i:i + 2], past_key_values=cache).logsumexp(-1).sum() for i in (0, 2, 4))
    total.backward()
    for found, wanted in zip([p.grad for p in model.parameters()], expected):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-3, atol=1e-5)


def test_frozen_keys_can_be_cached_while_queries_learn(make_model) -> None:
    model = make_model(layers=1)
    model.requires_grad_(False)
    model.layers[0].mixer.q_proj.requires_grad_(True)
    cache = model.create_empty_cache()
    total = sum(model(tp.tensor([[i]]), past_key_values=cache).sum() for i in range(3))
    total.backward()
    assert model.layers[0].mixer.q_proj.weight.grad is not None


def keys(*shape: int, start: float = 0.0):
    return tp.arange(int(np.prod(shape)), dtype=tp.float32).reshape(*shape) + start


def test_cache_grows_crops_and_reorders() -> None:
    cache, parts = DynamicCache(), []
    with tp.no_grad():
        for step in range(70):
            parts.append(keys(2, 1, 1, 2, start=100.0 * step))
            k, v = cache.update(parts[-1], -parts[-1], 0)
            assert k.shape == (2, 1, step + 1, 2)
        everything = tp.cat(parts, 2)
        assert k.tolist() == everything.tolist() and v.tolist() == (-everything).tolist()
        cache.crop(3)
        assert cache.get_seq_length() == 3 and cache[0][0].tolist() == everything[:, :, :3].tolist()
        cache.reorder(tp.tensor([1, 1, 0]))
        assert cache[0][1].tolist() == (-everything[:, :, :3])[[1, 1, 0]].tolist()
        k, _ = cache.update(keys(3, 1, 1, 2), keys(3, 1, 1, 2), 0)
    assert k.shape == (3, 1, 4, 2) and len(cache) == 1 and cache.get_seq_length(5) == 0


@pytest.mark.parametrize(("shape", "error"), [((1, 2, 1, 4), "keys [1, 2, 1, 4] do not continue the cached [2, 2, "),
                                              ((2, 3, 1, 4), "batch, heads and features must stay the same"),
                                              ((2, 2, 1, 5), "batch, heads and features must stay the same")])
@pytest.mark.parametrize("mode", [tp.no_grad, tp.enable_grad])
def test_cache_refuses_other_shapes(shape, error, mode) -> None:
    cache = DynamicCache()
    with mode():
        cache.update(keys(2, 2, 3, 4), keys(2, 2, 3, 4), 0)
        with pytest.raises(ValueError) as caught:
            cache.update(keys(*shape), keys(*shape), 0)
    assert error in str(caught.value) and cache.get_seq_length() == 3


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: nn.GroupedQueryAttention(10, 4), TypeError, "hidden_size 10 is not a multiple of 4 heads; give head_dim"),
    (lambda: nn.GroupedQueryAttention(12, 4, num_kv_heads=3), TypeError,
     "4 query heads cannot share 3 key heads evenly"),
    (lambda: nn.GroupedQueryAttention(12, 4), TypeError, "rotary positions need an even head_dim, got 3"),
    (lambda: nn.GroupedQueryAttention(8, 2)(tp.ones(1, 3, 7)), ValueError, "expects x[batch, time, 8], got x[1, 3, 7]"),
    (lambda: nn.GroupedQueryAttention(8, 2)(tp.ones(3, 8)), ValueError, "expects x[batch, time, 8], got x[3, 8]"),
    (lambda: nn.GroupedQueryAttention(8, 2)(tp.ones(1, 3, 8), tp.arange(4)), ValueError,
     "position_ids[4] must be [3] or [1, 3] for x[1, 3, 8]"),
    (lambda: nn.GroupedQueryAttention(8, 2)(tp.ones(1, 2, 8), tp.tensor([0, -1])), IndexError, "index -1"),
])
def test_refuses(call, error, message) -> None:
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


def test_swiglu_width_and_block_residuals() -> None:
    block = nn.TransformerBlock(128, nn.GroupedQueryAttention(128, 8))
    assert block.feed_forward.gate_proj.out_features == 341
    with tp.no_grad():
        block.mixer.o_proj.weight.zero_()
        block.feed_forward.down_proj.weight.zero_()
    x = tp.randn(1, 3, 128)
    assert block(x).tolist() == x.tolist()
