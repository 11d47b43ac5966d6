"""Rows of a table by index, and one-hot vectors."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import DTypeError, Layout, ShapeError, Tensor, ValueRangeError, op, shape_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

embedding_op = op("embedding(Tensor weight, Tensor indices) -> Tensor", doc="weight[indices]: rows of a table.")
embedding_padded = op("embedding_padded(Tensor weight, Tensor indices, int padding_idx) -> Tensor",
                      doc="`embedding` whose row `padding_idx` gets no gradient.")
embedding_backward = op("embedding_backward(Tensor grad, Tensor indices, int num_embeddings, int? padding_idx) -> "
                        "Tensor",
                        doc="Rows of grad added up by index.")


def _embedding_meta(weight: Layout, indices: Layout, padding_idx: Any = None) -> Layout:
    if indices.dtype not in (tp.int64, tp.int32):
        raise DTypeError(f"embedding: indices must be int64 or int32, got {indices.dtype.name}; convert with .long()")
    if weight.ndim != 2:
        raise ShapeError(f"embedding: weight must be [rows, features], got weight{shape_text(weight.shape)}")
    return weight.with_shape(indices.shape + weight.shape[1:])


embedding_op.meta(_embedding_meta)
embedding_padded.meta(_embedding_meta)


@embedding_op.decomposition
def _(weight: Tensor, indices: Tensor) -> Tensor:
    result = _embedding_meta(weight.layout, indices.layout)
    return tp.index_select(weight, 0, indices.reshape(-1)).reshape(result.shape)


@embedding_padded.decomposition
def _(weight: Tensor, indices: Tensor, padding_idx: int) -> Tensor:
    return embedding_op(weight, indices)


embedding_op.vjp(weight=lambda grad, indices, weight_layout: embedding_backward(
    grad, indices, weight_layout.shape[0], None))
embedding_padded.vjp(weight=lambda grad, indices, padding_idx, weight_layout: embedding_backward(
    grad, indices, weight_layout.shape[0], padding_idx))


@embedding_backward.meta
def _(grad: Layout, indices: Layout, num_embeddings: int, padding_idx: Any) -> Layout:
    return grad.with_shape((num_embeddings, grad.shape[-1]))


@embedding_backward.decomposition
def _(grad: Tensor, indices: Tensor, num_embeddings: int, padding_idx: Any) -> Tensor:
    features = grad.layout.shape[-1]
    rows = grad.reshape(-1, features)
    if padding_idx is not None:
        rows = tp.where((indices.reshape(-1) == padding_idx).unsqueeze(1), tp.zeros_like(rows), rows)
    table = tp.zeros((num_embeddings, features), dtype=grad.dtype, device=grad.device)
    return tp.index_add(table, 0, indices.reshape(-1), rows)


def _embedding_backward_grad(grad: Tensor, indices: Tensor, padding_idx: Any) -> Tensor:
    rows = embedding_op(grad, indices)
    return rows if padding_idx is None else \
        tp.where((indices == padding_idx).unsqueeze(-1), grad.new_zeros(()), rows)


embedding_backward.vjp(grad=_embedding_backward_grad)


@embedding_op.samples
def _(make: Any) -> Iterator:
    yield make(5, 3), make.integers((2, 4), 0, 5)


@embedding_padded.samples
def _(make: Any) -> Iterator:
    yield make(5, 3), make.integers((2, 4), 0, 5), 2


@embedding_backward.samples
def _(make: Any) -> Iterator:
    yield make(2, 4, 3), make.integers((2, 4), 0, 5), 5, None
    yield make(6, 3), make.integers((6,), 0, 5), 5, 1


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,  # noqa: A002
              norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """Rows of `weight` [rows, features] at the int64 indices `input`: result [*input, features].

    >>> import tensorplay as tp
    >>> tp.nn.functional.embedding(tp.tensor([1]), tp.tensor([[1., 2.], [3., 4.]])).tolist()
    [[3.0, 4.0]]

    Raises IndexRangeError for an index outside 0..rows-1. The row `padding_idx` gets no gradient.
    """
    if max_norm is not None or scale_grad_by_freq or sparse:
        from tensorplay.library import NotSupported

        raise NotSupported("embedding: max_norm, scale_grad_by_freq and sparse are not supported; clip or scale the "
                           "weight and its gradient yourself")
    if padding_idx is None:
        return embedding_op(weight, input)
    rows = weight.layout.shape[0]
    if not -rows <= padding_idx < rows:
        raise ValueRangeError(f"embedding: padding_idx {padding_idx} is outside the {rows} rows of weight")
    return embedding_padded(weight, input, padding_idx % rows)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """int64 vectors with a 1 at each index.

    >>> import tensorplay as tp
    >>> tp.nn.functional.one_hot(tp.tensor([1, 0]), 3).tolist()
    [[0, 1, 0], [1, 0, 0]]
    """
    if tensor.dtype is not tp.int64:
        raise DTypeError(f"one_hot: indices must be int64, got {tensor.dtype.name}")
    if num_classes == -1:
        num_classes = int(tensor.max().item()) + 1
    if tensor.layout.numel and not tensor.is_meta and (int(tensor.min().item()) < 0
                                                       or int(tensor.max().item()) >= num_classes):
        raise ValueRangeError(f"one_hot: indices must lie in 0..{num_classes - 1}")
    return (tp.arange(num_classes, device=tensor.device) == tensor.unsqueeze(-1)).long()


NN_FUNCTIONS = ("embedding", "one_hot")
