"""Scaled dot-product attention with grouped heads, and rotary position embedding."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import (
    ArgumentError,
    AutogradError,
    Layout,
    ShapeError,
    Tensor,
    broadcast_shapes,
    layout,
    op,
    shape_text,
)

from .normalization import floating_only

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

attention_forward = op(
    "scaled_dot_product_forward(Tensor query, Tensor key, Tensor value, Tensor? mask, int? causal, float scale) "
    "-> (Tensor, Tensor)", doc="""query [B, H, T, D], key [B, K, S, D], value [B, K, S, E] with H a multiple of K
-> (output [B, H, T, E], log-sum-exp of the scores [B, H, T]). `causal` = c: query i sees keys j <= i + c.""")
attention_backward = op(
    "scaled_dot_product_backward(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor? mask, Tensor out, "
    "Tensor logsumexp, int? causal, float scale) -> (Tensor, Tensor, Tensor)",
    doc="Gradients of query, key and value.")


@attention_forward.meta
def _(query: Layout, key: Layout, value: Layout, mask: Any, causal: Any, scale: float) -> tuple:
    text = f"query{shape_text(query.shape)}, key{shape_text(key.shape)}, value{shape_text(value.shape)}"
    floating_only("scaled_dot_product_attention", query=query, key=key, value=value)
    if query.ndim != 4 or key.ndim != 4 or value.ndim != 4:
        raise ShapeError(f"scaled_dot_product_attention: expects [batch, heads, time, features], got {text}")
    (b, h, t, d), (kb, k, s, kd), (vb, vk, vs, e) = query.shape, key.shape, value.shape
    if not (b == kb == vb and k == vk and s == vs and d == kd) or k == 0 or h % k:
        raise ShapeError(f"scaled_dot_product_attention: {text}: batch sizes, key and value lengths and query and key "
                         f"features must be equal, and query heads a multiple of key heads")
    if mask is not None and broadcast_shapes(mask.shape, (b, h, t, s)) != (b, h, t, s):
        raise ShapeError(f"scaled_dot_product_attention: mask{shape_text(mask.shape)} does not broadcast to the scores "
                         f"{shape_text((b, h, t, s))}")
    statistics = tp.float64 if query.dtype is tp.float64 else tp.float32
    return query.with_shape((b, h, t, e)), layout((b, h, t), statistics, query.device)


def _repeated(x: Tensor, heads: int) -> Tensor:
    """Key or value heads repeated for the query heads that share them."""
    b, k, s, d = x.layout.shape
    if k == heads:
        return x
    return x.unsqueeze(2).expand(b, k, heads // k, s, d).reshape(b, heads, s, d)


def _scores(query: Tensor, key: Tensor, mask: Any, causal: Any, scale: float) -> Tensor:
    scores = tp.matmul(query, _repeated(key, query.layout.shape[1]).transpose(-2, -1)) * scale
    hidden = scores.new_full((), -float("inf"))
    if causal is not None:
        t, s = scores.layout.shape[-2:]
        seen = tp.arange(s, device=query.device) <= tp.arange(t, device=query.device).unsqueeze(1) + causal
        scores = tp.where(seen, scores, hidden)
    if mask is not None:
        scores = tp.where(mask, scores, hidden) if mask.dtype is tp.bool else scores + mask
    return scores


def _probabilities(scores: Tensor) -> tuple:
    """(softmax, log-sum-exp) where a row without any visible key gives zeros and -inf, not NaN."""
    lse = scores.logsumexp((-1,), True)
    empty = lse == -float("inf")
    shift = tp.where(empty, tp.zeros_like(lse), lse)
    return (scores - shift).exp(), lse.squeeze(-1)


@attention_forward.decomposition
def _(query: Tensor, key: Tensor, value: Tensor, mask: Any, causal: Any, scale: float) -> tuple:
    """In float32 at least, as the log-sum-exp is."""
    out, statistics = attention_forward.op.rule("meta")(query.layout, key.layout, value.layout,
                                                        None if mask is None else mask.layout, causal, scale)
    query, key, value = (x.to(statistics.dtype) for x in (query, key, value))
    weights, lse = _probabilities(_scores(query, key, mask, causal, scale))
    return tp.matmul(weights, _repeated(value, query.layout.shape[1])).to(out.dtype), lse


def _attention_vjp(grads: tuple, query: Tensor, key: Tensor, value: Tensor, mask: Any, outputs: tuple, causal: Any,
                   scale: float, needs: tuple) -> tuple:
    grad = tp.zeros_like(outputs[0]) if grads[0] is None else grads[0]
    dquery, dkey, dvalue = attention_backward(grad, query, key, value, mask, outputs[0], outputs[1], causal, scale)
    if needs[3]:
        raise AutogradError("scaled_dot_product_forward has no gradient for its mask; scaled_dot_product_attention "
                            "computes it")
    if grads[1] is not None:  # d logsumexp / d scores are the weights
        weights, _ = _probabilities(_scores(query, key, mask, causal, scale))
        dscores = weights * grads[1].unsqueeze(-1) * scale
        dquery = dquery + tp.matmul(dscores, _repeated(key, query.layout.shape[1]))
        dkey = dkey + _summed(tp.matmul(dscores.transpose(-2, -1), query), key.layout.shape[1])
    return dquery, dkey, dvalue, None


attention_forward.vjp(_attention_vjp)


@attention_backward.meta
def _(grad: Layout, query: Layout, key: Layout, value: Layout, *rest: Any) -> tuple:
    return query.dense(), key.dense(), value.dense()


@attention_backward.decomposition
def _(grad: Tensor, query: Tensor, key: Tensor, value: Tensor, mask: Any, out: Tensor, logsumexp: Tensor, causal: Any,
      scale: float) -> tuple:
    """From query, key and value alone (the saved results only spare work), so that a second derivative is right."""
    h, k, results = query.layout.shape[1], key.layout.shape[1], (query.dtype, key.dtype, value.dtype)
    grad, query, key, value = (x.to(logsumexp.dtype) for x in (grad, query, key, value))
    weights, _ = _probabilities(_scores(query, key, mask, causal, scale))
    dweights = tp.matmul(grad, _repeated(value, h).transpose(-2, -1))
    product = weights * dweights
    dscores = (product - weights * product.sum(-1, True)) * scale
    dquery = tp.matmul(dscores, _repeated(key, h))
    dkey = tp.matmul(dscores.transpose(-2, -1), query)
    dvalue = tp.matmul(weights.transpose(-2, -1), grad)
    return tuple([x.to(dtype) for x, dtype in zip((dquery, _summed(dkey, k), _summed(dvalue, k)), results)])


def _summed(x: Tensor, heads: int) -> Tensor:
    b, h, s, d = x.layout.shape
    return x if h == heads else x.reshape(b, heads, h // heads, s, d).sum(2)


@attention_forward.samples
def _(make: Any) -> Iterator:
    yield make(2, 4, 3, 8), make(2, 4, 5, 8), make(2, 4, 5, 8), None, None, 0.35
    yield make(2, 4, 5, 8), make(2, 2, 5, 8), make(2, 2, 5, 6), None, 0, 0.35
    yield make(1, 2, 2, 8), make(1, 1, 5, 8), make(1, 1, 5, 8), None, 3, 0.35
    yield make(2, 2, 3, 4), make(2, 2, 3, 4), make(2, 2, 3, 4), make(3, 3) > 0, None, 0.5
    yield make(2, 2, 3, 4), make(2, 2, 3, 4), make(2, 2, 3, 4), make(2, 1, 3, 3), None, 0.5
    yield make(1, 1, 3, 4), make(1, 1, 5, 4), make(1, 1, 5, 4), None, -2, 0.5  # two rows that see no key


@attention_backward.samples
def _(make: Any) -> Iterator:
    for query, key, value, mask, causal in (
            (make(2, 4, 3, 8), make(2, 4, 5, 8), make(2, 4, 5, 8), make(2, 4, 3, 5) > -1, None),
            (make(2, 4, 5, 8), make(2, 2, 5, 8), make(2, 2, 5, 6), None, 0)):
        out, logsumexp = attention_forward(query, key, value, mask, causal, 0.35)
        yield make(*out.layout.shape), query, key, value, mask, out, logsumexp, causal, 0.35


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
                                 enable_gqa: bool = False) -> Tensor:
    """softmax(query @ key.T * scale + mask) @ value (Vaswani et al. 2017), without storing the scores.

    >>> import tensorplay as tp
    >>> q = tp.ones(1, 2, 3, 4)
    >>> tp.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).shape
    tensorplay.Size([1, 2, 3, 4])

    query [..., heads, T, D], key [..., heads, S, D], value [..., heads, S, E]; with `enable_gqa` key and value may have
    fewer heads. A bool mask keeps where True, a float mask is added. `is_causal` hides keys j > i. The scale is
    1 / sqrt(D) unless given. Rows that see no key give zeros.
    """
    if is_causal and attn_mask is not None:
        raise ArgumentError("scaled_dot_product_attention: give attn_mask or is_causal, not both")
    if query.layout.ndim < 2:
        raise ShapeError(f"scaled_dot_product_attention: query{shape_text(query.layout.shape)} needs [..., time, "
                         f"features]")
    scale = query.layout.shape[-1] ** -0.5 if scale is None else scale
    if not enable_gqa and query.layout.ndim > 2 and query.layout.shape[-3] != key.layout.shape[-3] \
            and key.layout.shape[-3] != 1 and query.layout.shape[-3] != 1:
        raise ShapeError(f"scaled_dot_product_attention: query has {query.layout.shape[-3]} heads but key has "
                         f"{key.layout.shape[-3]}; pass enable_gqa=True if they share heads")
    causal = 0 if is_causal else None
    if query.layout.ndim != 4 or dropout_p or not _same_batch(query, key, value):
        return _general(query, key, value, attn_mask, dropout_p, causal, scale, enable_gqa)
    if attn_mask is not None and attn_mask.requires_grad:
        return _general(query, key, value, attn_mask, dropout_p, causal, scale, enable_gqa)
    return attention_forward(query, key, value, attn_mask, causal, scale)[0]


def _same_batch(query: Tensor, key: Tensor, value: Tensor) -> bool:
    return query.layout.shape[0] == key.layout.shape[0] == value.layout.shape[0] and \
        query.layout.shape[1] % max(key.layout.shape[1], 1) == 0


def _general(query: Tensor, key: Tensor, value: Tensor, mask: Any, dropout_p: float, causal: Any, scale: float,
             enable_gqa: bool) -> Tensor:
    """Any number of leading dimensions, broadcasting, dropout on the weights, gradients for the mask."""
    if enable_gqa and query.layout.ndim > 2:
        times = query.layout.shape[-3] // key.layout.shape[-3]
        key, value = key.repeat_interleave(times, -3), value.repeat_interleave(times, -3)
    scores = tp.matmul(query, key.transpose(-2, -1)) * scale
    hidden = scores.new_full((), -float("inf"))
    if causal is not None:
        t, s = scores.layout.shape[-2:]
        scores = tp.where(tp.arange(s, device=query.device) <= tp.arange(t, device=query.device).unsqueeze(1), scores,
                          hidden)
    if mask is not None:
        scores = tp.where(mask, scores, hidden) if mask.dtype is tp.bool else scores + mask
    weights, _ = _probabilities(scores)
    if dropout_p:
        from .random import dropout

        weights = dropout(weights, dropout_p, True)
    return tp.matmul(weights, value)


# ---- rope -----------------------------------------------------------------------------------------------------------
rope = op("rope(Tensor input, Tensor cos, Tensor sin) -> Tensor", doc="""Rotary position embedding (Su et al. 2021): the
first half x1 and second half x2 of the last dimension become x1 cos - x2 sin and x2 cos + x1 sin.

input [..., T, D]; cos and sin [..., T, D / 2], broadcast over the leading dimensions.

>>> import tensorplay as tp
>>> tp.nn.functional.rope(tp.tensor([[1., 0.]]), tp.tensor([[0.]]), tp.tensor([[1.]])).tolist()
[[0.0, 1.0]]
""")


@rope.meta
def _(input: Layout, cos: Layout, sin: Layout) -> Layout:  # noqa: A002
    half = input.shape[:-1] + (input.shape[-1] // 2,) if input.ndim else ()
    if input.ndim < 2 or input.shape[-1] % 2 or cos.shape != sin.shape or broadcast_shapes(cos.shape, half) != half:
        raise ShapeError(f"rope: input{shape_text(input.shape)} needs an even last size, and "
                         f"cos{shape_text(cos.shape)} and sin{shape_text(sin.shape)} that broadcast to "
                         f"{shape_text(half)}")
    return input.dense()


@rope.decomposition
def _(input: Tensor, cos: Tensor, sin: Tensor) -> Tensor:  # noqa: A002
    first, second = _halves(input)
    return tp.cat([first * cos - second * sin, second * cos + first * sin], -1)


def _halves(x: Tensor) -> tuple:
    half = x.layout.shape[-1] // 2
    return x.narrow(-1, 0, half), x.narrow(-1, half, half)


def _cos_grad(grad: Tensor, input: Tensor) -> Tensor:  # noqa: A002
    (grad1, grad2), (first, second) = _halves(grad), _halves(input)
    return grad1 * first + grad2 * second


def _sin_grad(grad: Tensor, input: Tensor) -> Tensor:  # noqa: A002
    (grad1, grad2), (first, second) = _halves(grad), _halves(input)
    return grad2 * first - grad1 * second


rope.vjp(input=lambda grad, cos, sin: rope(grad, cos, -sin), cos=_cos_grad, sin=_sin_grad)


@rope.samples
def _(make: Any) -> Iterator:
    yield make(2, 3, 4, 6), make(4, 3), make(4, 3)
    yield make(2, 3, 4, 6), make(2, 1, 4, 3), make(2, 1, 4, 3)


NN_FUNCTIONS = ("scaled_dot_product_attention", "rope", "attention_forward")
