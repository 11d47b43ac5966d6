"""Losses: cross entropy as a fused operator, the others as composites."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import (
    ArgumentError,
    AutogradError,
    DTypeError,
    IndexRangeError,
    Layout,
    ShapeError,
    Tensor,
    broadcast_shapes,
    op,
    shape_text,
)

from .normalization import floating_only

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# ---- cross_entropy --------------------------------------------------------------------------------------------------
cross_entropy_forward = op(
    "cross_entropy_forward(Tensor input, Tensor target, Tensor? weight, str reduction, int ignore_index, "
    "float label_smoothing) -> (Tensor, Tensor, Tensor)",
    doc="input [n, classes], target [n] of class indices -> (loss, log-sum-exp of each row, total weight).")
cross_entropy_backward = op(
    "cross_entropy_backward(Tensor grad, Tensor input, Tensor target, Tensor? weight, Tensor logsumexp, "
    "Tensor total_weight, str reduction, int ignore_index, float label_smoothing) -> Tensor")


def reduction_name(name: str, reduction: str) -> str:
    if reduction not in ("mean", "sum", "none"):
        raise ArgumentError(f"{name}: reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
    return reduction


@cross_entropy_forward.meta
def _(input: Layout, target: Layout, weight: Any, reduction: str, ignore_index: int, label_smoothing: float) -> tuple:  # noqa: A002
    floating_only("cross_entropy", input=input, weight=weight)
    n = input.shape[0]
    if target.shape != (n,):
        raise ShapeError(f"cross_entropy: input{shape_text(input.shape)} needs target[{n}], got "
                         f"target{shape_text(target.shape)}")
    loss = (n,) if reduction == "none" else ()
    return input.with_shape(loss), input.with_shape((n,)), input.with_shape(())


def _row_weights(input: Tensor, target: Tensor, weight: Any, ignore_index: int) -> tuple:  # noqa: A002
    """(targets with ignored ones set to 0, weight of each row)."""
    ignored = target == ignore_index
    safe = tp.where(ignored, tp.zeros_like(target), target)
    rows = tp.ones(target.layout.shape, dtype=input.dtype, device=input.device) if weight is None else \
        tp.index_select(weight, 0, safe)
    return safe, tp.where(ignored, tp.zeros_like(rows), rows)


@cross_entropy_forward.decomposition
def _(input: Tensor, target: Tensor, weight: Any, reduction: str, ignore_index: int, label_smoothing: float) -> tuple:  # noqa: A002
    floating_only("cross_entropy", input=input.layout)
    lse = input.logsumexp((1,))
    safe, rows = _row_weights(input, target, weight, ignore_index)
    losses = (lse - tp.gather(input, 1, safe.unsqueeze(1)).squeeze(1)) * rows
    total = rows.sum()
    if label_smoothing:
        classes = input.layout.shape[1]
        everywhere = lse.unsqueeze(1) - input
        everywhere = everywhere.sum(1) if weight is None else (everywhere * weight).sum(1)
        smooth = tp.where(target == ignore_index, tp.zeros_like(everywhere), everywhere)
        losses = losses * (1 - label_smoothing) + smooth * (label_smoothing / classes)
    if reduction == "none":
        return losses, lse, total
    return (losses.sum() / total if reduction == "mean" else losses.sum()), lse, total


def _cross_entropy_vjp(grads: tuple, input: Tensor, target: Tensor, weight: Any, output_1: Tensor,  # noqa: A002
                       output_2: Tensor, reduction: str, ignore_index: int, label_smoothing: float,
                       needs: tuple) -> tuple:
    if needs[2]:
        raise AutogradError("cross_entropy has no gradient for its class weights; pass weight.detach()")
    grad = grads[0]
    if grad is None:
        grad = tp.zeros_like(output_1 if reduction == "none" else output_2)  # the shape of the loss
    dinput = cross_entropy_backward(grad, input, target, weight, output_1, output_2, reduction, ignore_index,
                                    label_smoothing)
    if grads[1] is not None:  # only a second derivative asks for this
        dinput = dinput + grads[1].unsqueeze(1) * (input - output_1.unsqueeze(1)).exp()
    return dinput, None, None


cross_entropy_forward.vjp(_cross_entropy_vjp)


@cross_entropy_backward.meta
def _(grad: Layout, input: Layout, *rest: Any) -> Layout:  # noqa: A002
    return input.dense()


@cross_entropy_backward.decomposition
def _(grad: Tensor, input: Tensor, target: Tensor, weight: Any, logsumexp: Tensor, total_weight: Tensor,  # noqa: A002
      reduction: str, ignore_index: int, label_smoothing: float) -> Tensor:
    """Row by row: (softmax - wanted distribution) times the row's weight and incoming gradient."""
    classes = input.layout.shape[1]
    safe, rows = _row_weights(input, target, weight, ignore_index)
    softmax = (input - logsumexp.unsqueeze(1)).exp()
    hot = (tp.arange(classes, device=input.device) == safe.unsqueeze(1)).to(input.dtype)
    result = (softmax - hot) * rows.unsqueeze(1)
    if label_smoothing:
        each = tp.ones((classes,), dtype=input.dtype, device=input.device) if weight is None else weight
        smooth = softmax * each.sum() - each
        smooth = tp.where((target == ignore_index).unsqueeze(1), tp.zeros_like(smooth), smooth)
        result = result * (1 - label_smoothing) + smooth * (label_smoothing / classes)
    if reduction == "none":
        return result * grad.unsqueeze(1)
    return result * (grad / total_weight if reduction == "mean" else grad)


@cross_entropy_forward.samples
def _(make: Any) -> Iterator:
    target = make.integers((5,), 0, 7)
    yield make(5, 7), target, None, "mean", -100, 0.0
    yield make(5, 7), target, make(7, low=0.5, high=2), "sum", 3, 0.1
    yield make(5, 7), target, None, "none", -100, 0.0


@cross_entropy_backward.samples
def _(make: Any) -> Iterator:
    x, target, weight = make(5, 7), make.integers((5,), 0, 7), make(7, low=0.5, high=2)
    yield make(), x, target, None, x.logsumexp(1), make(low=4, high=5), "mean", -100, 0.0
    yield make(), x, target, weight, x.logsumexp(1), make(low=4, high=5), "sum", 3, 0.1
    yield make(5), x, target, None, x.logsumexp(1), make(low=4, high=5), "none", -100, 0.0


def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None,  # noqa: A002
                  ignore_index: int = -100, reduce: Any = None, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Tensor:
    """The cross entropy between logits and targets, in nats.

    >>> import tensorplay as tp
    >>> tp.nn.functional.cross_entropy(tp.zeros(2, 4), tp.tensor([0, 3])).item() == tp.tensor(4.).log().item()
    True

    input [n, classes] (or [classes], or [n, classes, d1, ...]), target int64 class indices [n, d1, ...] or
    probabilities of input's shape; `weight` [classes] scales classes, rows with target `ignore_index` do not count.
    Raises IndexRangeError for a target outside 0..classes-1, ShapeError for shapes that do not fit.
    """
    reduction_name("cross_entropy", reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ArgumentError(f"cross_entropy: label_smoothing must be between 0 and 1, got {label_smoothing}")
    if not input.layout.ndim:
        raise ShapeError("cross_entropy: input needs a dimension of classes, got a 0-d tensor")
    if target.layout.dtype.category >= 2:
        return _with_probabilities(input, target, weight, reduction, label_smoothing)
    if target.layout.dtype is not tp.int64:
        if target.layout.dtype is tp.bool:
            raise DTypeError("cross_entropy: target must hold class indices (int64) or probabilities, got bool")
        target = target.long()
    shape = input.layout.shape
    if len(shape) == 1:
        rows, targets = input.unsqueeze(0), target.reshape(1)
        loss = cross_entropy_forward(rows, targets, weight, reduction, ignore_index, label_smoothing)[0]
        return loss.reshape(()) if reduction == "none" else loss
    expected = (shape[0],) + shape[2:]
    if target.layout.shape != expected:
        raise ShapeError(f"cross_entropy: input{shape_text(shape)} (classes in dimension 1) needs "
                         f"target{shape_text(expected)}, got target{shape_text(target.layout.shape)}")
    if len(shape) > 2:
        input = input.movedim(1, -1).reshape(-1, shape[1])  # noqa: A001
        target = target.reshape(-1)
    loss = cross_entropy_forward(input, target, weight, reduction, ignore_index, label_smoothing)[0]
    return loss.reshape(expected) if reduction == "none" and len(shape) > 2 else loss


def _with_probabilities(input: Tensor, target: Tensor, weight: Any, reduction: str, smoothing: float) -> Tensor:  # noqa: A002
    if input.layout.shape != target.layout.shape:
        raise ShapeError(f"cross_entropy: probabilities must have input's shape {shape_text(input.layout.shape)}, got "
                         f"target{shape_text(target.layout.shape)}")
    dim = 0 if input.layout.ndim == 1 else 1
    classes = input.layout.shape[dim]
    if smoothing:
        target = target * (1 - smoothing) + smoothing / classes
    log_probabilities = tp.log_softmax(input, dim)
    if weight is not None:
        log_probabilities = log_probabilities * weight.reshape((classes,) + (1,) * (input.layout.ndim - dim - 1))
    losses = -(log_probabilities * target).sum(dim)
    if reduction == "none":
        return losses
    return losses.sum() / max(losses.layout.numel, 1) if reduction == "mean" else losses.sum()


# ---- nll_loss -------------------------------------------------------------------------------------------------------


def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None,  # noqa: A002
             ignore_index: int = -100, reduce: Any = None, reduction: str = "mean") -> Tensor:
    """The negative log likelihood of class indices, given log probabilities [n, classes, ...].

    >>> import tensorplay as tp
    >>> tp.nn.functional.nll_loss(tp.tensor([[-1., -2.]]), tp.tensor([1])).item()
    2.0
    """
    reduction_name("nll_loss", reduction)
    dim = 0 if input.layout.ndim == 1 else 1
    if target.layout.shape != input.layout.shape[:dim] + input.layout.shape[dim + 1:]:
        raise ShapeError(f"nll_loss: input{shape_text(input.layout.shape)} and target{shape_text(target.layout.shape)} "
                         f"do not fit: target has the sizes of input without the classes")
    ignored = target == ignore_index
    safe = tp.where(ignored, tp.zeros_like(target), target)
    rows = tp.ones_like(safe, dtype=input.dtype) if weight is None else \
        tp.index_select(weight, 0, safe.reshape(-1)).reshape(safe.layout.shape)
    rows = tp.where(ignored, tp.zeros_like(rows), rows)
    try:
        picked = tp.gather(input, dim, safe.unsqueeze(dim))
    except IndexRangeError as error:
        raise IndexRangeError(f"nll_loss: a target is outside 0..{input.layout.shape[dim] - 1}, the classes of "
                              f"input{shape_text(input.layout.shape)}; {error.message}") from None
    losses = -picked.squeeze(dim) * rows
    if reduction == "none":
        return losses
    return losses.sum() / rows.sum() if reduction == "mean" else losses.sum()


# ---- elementwise losses ---------------------------------------------------------------------------------------------


def reduced(losses: Tensor, reduction: str, name: str) -> Tensor:
    reduction_name(name, reduction)
    return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()


def _same_shape(name: str, input: Tensor, target: Tensor) -> None:  # noqa: A002
    if input.layout.shape != target.layout.shape:
        import warnings

        try:
            broadcast_shapes(input.layout.shape, target.layout.shape)
        except ShapeError:
            _equal_shapes(name, input, target)

        warnings.warn(f"{name}: target{shape_text(target.layout.shape)} differs from "
                      f"input{shape_text(input.layout.shape)} and is broadcast; is that wanted?", stacklevel=3)


def _equal_shapes(name: str, input: Tensor, target: Tensor) -> None:  # noqa: A002
    if input.layout.shape != target.layout.shape:
        raise ShapeError(f"{name}: input{shape_text(input.layout.shape)} and target{shape_text(target.layout.shape)} "
                         f"must have the same shape")


def mse_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None,  # noqa: A002
             reduction: str = "mean") -> Tensor:
    """The squared error.

    >>> import tensorplay as tp
    >>> tp.nn.functional.mse_loss(tp.tensor([1., 2.]), tp.tensor([1., 4.])).item()
    2.0
    """
    _same_shape("mse_loss", input, target)
    difference = input - target
    return reduced(difference * difference, reduction, "mse_loss")


def l1_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None,  # noqa: A002
            reduction: str = "mean") -> Tensor:
    """The absolute error.

    >>> import tensorplay as tp
    >>> tp.nn.functional.l1_loss(tp.tensor([1., 3.]), tp.zeros(2)).item()
    2.0
    """
    _same_shape("l1_loss", input, target)
    return reduced((input - target).abs(), reduction, "l1_loss")


def smooth_l1_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None,  # noqa: A002
                   reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Squared below `beta`, absolute above it.

    >>> import tensorplay as tp
    >>> tp.nn.functional.smooth_l1_loss(tp.tensor([0., 3.]), tp.zeros(2)).item()
    1.25
    """
    _same_shape("smooth_l1_loss", input, target)
    distance = (input - target).abs()
    if beta == 0:
        return reduced(distance, reduction, "smooth_l1_loss")
    losses = tp.where(distance < beta, distance * distance * (0.5 / beta), distance - 0.5 * beta)
    return reduced(losses, reduction, "smooth_l1_loss")


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:  # noqa: A002
    """`smooth_l1_loss` times delta.

    >>> import tensorplay as tp
    >>> tp.nn.functional.huber_loss(tp.tensor([0., 3.]), tp.zeros(2)).item()
    1.25
    """
    _same_shape("huber_loss", input, target)
    distance = (input - target).abs()
    losses = tp.where(distance < delta, distance * distance * 0.5, (distance - 0.5 * delta) * delta)
    return reduced(losses, reduction, "huber_loss")


def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None,  # noqa: A002
                         reduce: Any = None, reduction: str = "mean") -> Tensor:
    """-(target log(input) + (1 - target) log(1 - input)), logarithms clamped at -100.

    >>> import tensorplay as tp
    >>> round(tp.nn.functional.binary_cross_entropy(tp.tensor([0.5]), tp.tensor([1.])).item(), 4)
    0.6931
    """
    _equal_shapes("binary_cross_entropy", input, target)
    losses = -(target * input.log().clamp(min=-100) + (1 - target) * (1 - input).log().clamp(min=-100))
    return reduced(losses if weight is None else losses * weight, reduction, "binary_cross_entropy")


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None,  # noqa: A002
                                     size_average: Any = None, reduce: Any = None, reduction: str = "mean",
                                     pos_weight: Tensor | None = None) -> Tensor:
    """Binary cross entropy of sigmoid(input), computed without overflow.

    >>> import tensorplay as tp
    >>> round(tp.nn.functional.binary_cross_entropy_with_logits(tp.tensor([0.]), tp.tensor([1.])).item(), 4)
    0.6931
    """
    _equal_shapes("binary_cross_entropy_with_logits", input, target)
    if pos_weight is None:
        losses = input.clamp(min=0) - input * target + (-input.abs()).exp().log1p()
    else:
        factor = (pos_weight - 1) * target + 1
        losses = (1 - target) * input + factor * ((-input.abs()).exp().log1p() + (-input).clamp(min=0))
    return reduced(losses if weight is None else losses * weight, reduction, "binary_cross_entropy_with_logits")


def kl_div(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",  # noqa: A002
           log_target: bool = False) -> Tensor:
    """target * (log(target) - input), with `input` log probabilities; reduction 'batchmean' divides by the batch.

    >>> import tensorplay as tp
    >>> tp.nn.functional.kl_div(tp.tensor([0.5]).log(), tp.tensor([0.5]), reduction='sum').item()
    0.0
    """
    losses = target.exp() * (target - input) if log_target else tp.xlogy(target, target) - target * input
    if reduction == "batchmean":
        return losses.sum() / input.layout.shape[0]
    return reduced(losses, reduction, "kl_div")


NN_FUNCTIONS = ("cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
                "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div")
