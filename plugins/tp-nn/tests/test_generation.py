"""generate and stream: greedy and sampled, every filter, batches, ends, and what is left of the caller's state."""
from __future__ import annotations

import numpy as np
import pytest

import tensorplay as tp
from tensorplay import nn
from tensorplay.nn.cache import DynamicCache
from tensorplay.nn.generation import generate, penalized, sample, stream

PROMPT = [[3, 1, 4], [1, 5, 9]]


@pytest.fixture
def model(make_model):
    return make_model(seed=1)


def greedy_reference(model, rows: list[list[int]], count: int, penalty: float = 1.0) -> list[list[int]]:
    """Without a cache, one row at a time, choosing in NumPy."""
    out = []
    for row in rows:
        ids = list(row)
        for _ in range(count):
            with tp.no_grad():
                logits = model(tp.tensor([ids]))[0, -1].double().numpy()
            for token in set(ids):
                logits[token] = logits[token] / penalty if logits[token] > 0 else logits[token] * penalty
            ids.append(int(logits.argmax()))
        out.append(ids)
    return out


@pytest.mark.parametrize("penalty", [1.0, 1.3, 5.0, 0.5])
def test_greedy(model, penalty) -> None:
    found = generate(model, tp.tensor(PROMPT), max_new_tokens=12, repetition_penalty=penalty)
    assert found.dtype is tp.int64 and found.tolist() == greedy_reference(model, PROMPT, 12, penalty)


def test_the_model_is_called_with_positions_and_a_cache(model) -> None:
    calls, forward = [], model.forward

    def watched(input_ids, position_ids=None, past_key_values=None):
        calls.append((input_ids.shape, position_ids.tolist(), type(past_key_values), tp.is_grad_enabled(),
                      model.training))
        return forward(input_ids, position_ids=position_ids, past_key_values=past_key_values)

    model.forward = watched
    generate(model, tp.tensor(PROMPT), max_new_tokens=3)
    assert calls == [((2, 3), [0, 1, 2], DynamicCache, False, False), ((2, 1), [3], DynamicCache, False, False),
                     ((2, 1), [4], DynamicCache, False, False)]


def test_zero_tokens_return_the_prompt(model) -> None:
    assert generate(model, tp.tensor(PROMPT), max_new_tokens=0).tolist() == PROMPT


@pytest.mark.parametrize("named", [{}, {"temperature": 0.5}, {"top_k": 5}, {"top_p": 0.7}, {"top_k": 9, "top_p": 0.5},
                                   {"repetition_penalty": 2.0}, {"top_k": 10_000}, {"top_p": 1.0}])
def test_same_seed_same_text(model, named) -> None:
    def run(seed):
        generator = tp.Generator().manual_seed(seed)
        return generate(model, tp.tensor(PROMPT), 20, do_sample=True, generator=generator, **named).tolist()

    assert run(0) == run(0) != run(1)
    tp.manual_seed(5)
    first = generate(model, tp.tensor(PROMPT), 20, do_sample=True, **named).tolist()
    tp.manual_seed(5)
    assert generate(model, tp.tensor(PROMPT), 20, do_sample=True, **named).tolist() == first


LOGITS = np.log(np.array([0.4, 0.3, 0.2, 0.1]))


@pytest.mark.parametrize(("named", "expected"), [
    ({}, [0.4, 0.3, 0.2, 0.1]),
    ({"temperature": 0.5}, np.array([16, 9, 4, 1]) / 30),
    ({"temperature": 2.0}, np.sqrt([0.4, 0.3, 0.2, 0.1]) / np.sqrt([0.4, 0.3, 0.2, 0.1]).sum()),
    ({"top_k": 2}, [4 / 7, 3 / 7, 0, 0]),
    ({"top_k": 1}, [1, 0, 0, 0]),
    ({"top_p": 0.65}, [4 / 7, 3 / 7, 0, 0]),
    ({"top_p": 0.75}, [4 / 9, 3 / 9, 2 / 9, 0]),
    ({"top_p": 0.01}, [1, 0, 0, 0]),
    ({"top_k": 3, "top_p": 0.5}, [4 / 7, 3 / 7, 0, 0]),
])
def test_sampling_frequencies(named, expected) -> None:
    order = np.array([2, 0, 3, 1])  # the likeliest token is not the first one
    logits = tp.tensor(np.tile(LOGITS[order], (20_000, 1)).astype("float32"))
    drawn = sample(logits, generator=tp.Generator().manual_seed(0), **named).numpy()
    share = np.bincount(drawn, minlength=4) / len(drawn)
    np.testing.assert_allclose(share, np.asarray(expected)[order], atol=0.015)
    assert set(np.flatnonzero(share)) == set(np.flatnonzero(np.asarray(expected)[order]))


def test_penalty_pushes_both_signs_down() -> None:
    found = penalized(tp.tensor([[2.0, -2.0, 3.0]]), tp.tensor([[0, 1, 1]]), 2.0)
    assert found.tolist() == [[1.0, -4.0, 3.0]]


class Script(nn.Module):
    """A model that always says the same: row r continues its prompt with script[r]."""

    def __init__(self, script: list[list[int]]) -> None:
        super().__init__()
        self.script, self.calls = script, 0

    def create_empty_cache(self):
        return DynamicCache()

    def forward(self, input_ids, position_ids=None, past_key_values=None):
        wanted = tp.tensor([row[self.calls] for row in self.script])
        self.calls += 1
        return nn.functional.one_hot(wanted, 10).float().unsqueeze(1).expand(-1, input_ids.shape[1], -1)


def test_ended_rows_are_filled_and_everything_stops_when_all_have_ended() -> None:
    script = Script([[5, 7, 2, 3, 4], [5, 6, 6, 7, 4]])
    seen = []
    found = generate(script, tp.tensor([[1], [2]]), 5, eos_token_id=7, streamer=lambda c: seen.append(c.tolist()))
    assert found.tolist() == [[1, 5, 7, 7, 7], [2, 5, 6, 6, 7]] and script.calls == 4
    assert seen == [[5, 5], [7, 6], [7, 6], [7, 7]]


def test_rows_of_a_batch_do_not_disturb_each_other(model) -> None:
    both = generate(model, tp.tensor(PROMPT), 8).tolist()
    assert both == [generate(model, tp.tensor([row]), 8).tolist()[0] for row in PROMPT]


def test_modes_of_the_caller_and_of_the_model_are_left_alone(model) -> None:
    model.train()
    model.norm.eval()
    tokens = stream(model, tp.tensor(PROMPT), 4)
    next(tokens)
    assert tp.is_grad_enabled() and model.training and model.layers[0].training and not model.norm.training
    tokens.close()
    list(stream(model, tp.tensor(PROMPT), 2))
    assert tp.is_grad_enabled() and model.training and not model.norm.training


@pytest.mark.parametrize(("prompt", "named", "error", "message"), [
    ([[1.0]], {}, TypeError, "prompt must be an int64 tensor [batch, time] of token ids, got float32"),
    ([1, 2], {}, ValueError, "must be [batch, time] with at least one token, got [2]"),
    ([[]], {"dtype": tp.int64}, ValueError, "with at least one token, got [1, 0]"),
    ([[1]], {"max_new_tokens": -1}, ValueError, "max_new_tokens must not be negative, got -1"),
    ([[1]], {"max_new_tokens": 2.5}, TypeError, "max_new_tokens must be an int, got 2.5"),
    ([[1]], {"do_sample": True, "temperature": 0}, ValueError,
     "temperature must be positive, got 0; use do_sample=False"),
    ([[1]], {"do_sample": True, "temperature": float("nan")}, ValueError, "temperature must be positive, got nan"),
    ([[1]], {"top_k": 0}, ValueError, "top_k must be at least 1, got 0"),
    ([[1]], {"top_p": 0.0}, ValueError, "top_p must be above 0 and at most 1, got 0.0"),
    ([[1]], {"top_p": 1.5}, ValueError, "top_p must be above 0 and at most 1, got 1.5"),
    ([[1]], {"repetition_penalty": 0.0}, ValueError, "repetition_penalty must be positive, got 0.0"),
    ([[50]], {}, IndexError, "embedding: index 50 at position 0 is outside 0..49"),
])
def test_refuses(model, prompt, named, error, message) -> None:
    named = dict(named)
    with pytest.raises(error) as caught:
        generate(model, tp.tensor(prompt, dtype=named.pop("dtype", None)), **named)
    assert message in str(caught.value)
    with pytest.raises(TypeError, match="got list"):
        generate(model, prompt)
