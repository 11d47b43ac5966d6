"""Text generation from a language model: greedy or sampled, one token at a time with a cache."""
from __future__ import annotations

from contextlib import contextmanager

import tensorplay as tp
from tensorplay.library import ArgumentError, ShapeError, ValueRangeError, shape_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from tensorplay import Tensor


def generate(model: Any, prompt: Tensor, max_new_tokens: int = 16, do_sample: bool = False, temperature: float = 1.0,
             top_k: int | None = None, top_p: float | None = None, repetition_penalty: float = 1.0,
             eos_token_id: int | None = None, generator: Any = None, streamer: Callable | None = None) -> Tensor:
    """Continue a prompt: int64 [batch, time] -> [batch, time + new], the prompt first.

    The model is called as `model(input_ids, position_ids=positions, past_key_values=cache)` with `positions` int64
    [time] and `cache = model.create_empty_cache()`, and returns logits [batch, time, vocabulary]. Greedy unless
    `do_sample`; then from the `top_k` most likely tokens, the smallest set of probability `top_p` (Holtzman et al.
    2020), at `temperature`. `repetition_penalty` divides the positive (multiplies the negative) logits of tokens seen
    before (Keskar et al. 2019). After `eos_token_id` a sequence is filled with it. `streamer(tokens)` gets each new
    column [batch].
    """
    pieces = [prompt]
    for column in stream(model, prompt, max_new_tokens, do_sample, temperature, top_k, top_p, repetition_penalty,
                         eos_token_id, generator):
        pieces.append(column.unsqueeze(1))
        if streamer is not None:
            streamer(column)
    return tp.cat(pieces, 1)


def stream(model: Any, prompt: Tensor, max_new_tokens: int = 16, do_sample: bool = False, temperature: float = 1.0,
           top_k: int | None = None, top_p: float | None = None, repetition_penalty: float = 1.0,
           eos_token_id: int | None = None, generator: Any = None) -> Iterator[Tensor]:
    """The new tokens of `generate`, one column [batch] at a time."""
    check_arguments(prompt, max_new_tokens, do_sample, temperature, top_k, top_p, repetition_penalty)
    steps = Steps(model, prompt, max_new_tokens)
    ended = None
    for _ in range(max_new_tokens):
        # no_grad and eval end before the yield: what the caller does with a token is none of our business
        with tp.no_grad(), evaluating(model):
            logits = steps.logits()
            if repetition_penalty != 1.0:
                logits = penalized(logits, steps.seen(), repetition_penalty)
            token = sample(logits, temperature, top_k, top_p, generator) if do_sample else logits.argmax(-1)
            if eos_token_id is not None:
                if ended is not None:
                    token = tp.where(ended, tp.full_like(token, eos_token_id), token)
                ended = token == eos_token_id
            steps.take(token)
        yield token
        if ended is not None and bool(ended.all()):
            return


class Steps:
    """The tokens so far, and the model's logits for the next one."""

    def __init__(self, model: Any, prompt: Tensor, max_new_tokens: int) -> None:
        self.model = model
        self.cache = model.create_empty_cache()
        self.columns = [prompt]
        self.positions = tp.arange(prompt.layout.shape[1] + max_new_tokens, device=prompt.device)
        self.length = 0  # positions that the cache holds

    def logits(self) -> Tensor:
        """[batch, vocabulary] after the latest tokens."""
        latest = self.columns[-1]
        end = self.length + latest.layout.shape[1]
        positions = self.positions[self.length:end]
        self.length = end
        return self.model(latest, position_ids=positions, past_key_values=self.cache)[:, -1]

    def take(self, token: Tensor) -> None:
        """Put a new column of tokens [batch] behind the sequence."""
        self.columns.append(token.unsqueeze(1))

    def seen(self) -> Tensor:
        """All tokens so far, [batch, time]."""
        return tp.cat(self.columns, 1)


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Evaluation mode, and afterwards again the mode of every module below (some may be frozen in evaluation mode)."""
    training = [module for module in model.modules() if module.training]
    if not training:
        yield
        return
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


def check_arguments(prompt: Tensor, max_new_tokens: int, do_sample: bool, temperature: float, top_k: Any, top_p: Any,
                    repetition_penalty: float) -> None:
    """Raise the designed error for arguments of `generate` that cannot be meant."""
    if not isinstance(prompt, tp.Tensor) or prompt.dtype is not tp.int64:
        raise ArgumentError(f"generate: prompt must be an int64 tensor [batch, time] of token ids, got "
                            f"{prompt.dtype.name if isinstance(prompt, tp.Tensor) else type(prompt).__name__}")
    if prompt.layout.ndim != 2 or not prompt.layout.numel:
        raise ShapeError(f"generate: prompt must be [batch, time] with at least one token, got "
                         f"{shape_text(prompt.layout.shape)}")
    if not isinstance(max_new_tokens, int):
        raise ArgumentError(f"generate: max_new_tokens must be an int, got {max_new_tokens!r}")
    if max_new_tokens < 0:
        raise ValueRangeError(f"generate: max_new_tokens must not be negative, got {max_new_tokens}")
    if do_sample and not temperature > 0:
        raise ValueRangeError(f"generate: temperature must be positive, got {temperature}; use do_sample=False for "
                              f"the most likely token")
    if top_k is not None and top_k < 1:
        raise ValueRangeError(f"generate: top_k must be at least 1, got {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueRangeError(f"generate: top_p must be above 0 and at most 1, got {top_p}")
    if not repetition_penalty > 0:
        raise ValueRangeError(f"generate: repetition_penalty must be positive, got {repetition_penalty}")


def penalized(logits: Tensor, seen: Tensor, penalty: float) -> Tensor:
    """Logits with those of the tokens in `seen` [batch, time] made less likely."""
    picked = tp.gather(logits, 1, seen)
    return tp.scatter(logits, 1, seen, tp.where(picked > 0, picked / penalty, picked * penalty))


def sample(logits: Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None,
           generator: Any = None) -> Tensor:
    """One token for each row of logits [batch, vocabulary]."""
    logits = logits / temperature if temperature != 1.0 else logits
    if top_k is not None and top_k < logits.layout.shape[-1]:
        values, indices = tp.topk(logits, top_k)
    elif top_p is not None:
        values, indices = tp.sort(logits, -1, True)
    else:
        values, indices = logits, None
    probabilities = tp.softmax(values, -1)
    if top_p is not None and top_p < 1:
        before = tp.cumsum(probabilities, -1) - probabilities  # a token stays if less than top_p lies before it
        probabilities = tp.where(before < top_p, probabilities, tp.zeros_like(probabilities))
    choice = tp.multinomial(probabilities, 1, generator=generator)
    return choice.squeeze(1) if indices is None else tp.gather(indices, 1, choice).squeeze(1)
