"""Embedding: a table of vectors."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import ValueRangeError

from . import init
from .functional import embedding
from .module import Module
from .parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tensorplay import Tensor


class Embedding(Module):
    """Rows of `weight` [num_embeddings, embedding_dim] by int64 index: [*] -> [*, embedding_dim].

    >>> import tensorplay as tp
    >>> tp.nn.Embedding(10, 3)(tp.tensor([[1, 2]])).shape
    tensorplay.Size([1, 2, 3])

    weight starts standard normal; the row `padding_idx` starts at zero and gets no gradient.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
                 max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
                 sparse: bool = False, _weight: Tensor | None = None, _freeze: bool = False, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ValueRangeError(f"Embedding: padding_idx {padding_idx} is outside the {num_embeddings} rows")
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if _weight is None:
            self.weight = Parameter(tp.empty((num_embeddings, embedding_dim), device=device, dtype=dtype),
                                    requires_grad=not _freeze)
            self.reset_parameters()
        else:
            self.weight = Parameter(_weight, requires_grad=not _freeze)

    def reset_parameters(self) -> None:
        """Fill the parameters with initial values, as torch does."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with tp.no_grad():
                self.weight[self.padding_idx].zero_()

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        return embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq,
                         self.sparse)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None,
                        **named: Any) -> Embedding:
        """An Embedding over an existing table; not trained unless `freeze` is False."""
        rows, features = embeddings.shape
        return cls(rows, features, padding_idx, _weight=embeddings, _freeze=freeze, **named)

    def extra_repr(self) -> str:
        usual = {"padding_idx": None, "max_norm": None, "norm_type": 2.0, "scale_grad_by_freq": False, "sparse": False}
        return f"{self.num_embeddings}, {self.embedding_dim}" + "".join(
            [f", {name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value])
