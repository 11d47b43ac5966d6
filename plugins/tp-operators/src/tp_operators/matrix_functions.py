"""Functions of matrices beyond factorizations: products of many, exponentials, tensor equations."""
from __future__ import annotations

from math import ceil, log2

import tensorplay as tp
from tensorplay.library import ArgumentError, ShapeError, Tensor, broadcast_shapes, shape_text

from .factorization import need_matrices, unit
from .solving import inv_op, solve_op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


# ---- vectors --------------------------------------------------------------------------------------------------------
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Sums of conj(x) * y along a dimension."""
    return (tp.conj(x) * y).sum(dim, dtype=tp.promote_types(x.dtype, y.dtype))


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:  # noqa: A002
    """The cross product of vectors of three elements along `dim`.

    >>> import tensorplay as tp
    >>> tp.linalg.cross(tp.tensor([1., 0., 0.]), tp.tensor([0., 1., 0.])).tolist()
    [0.0, 0.0, 1.0]
    """
    shape = broadcast_shapes(input.layout.shape, other.layout.shape)
    first, second = tp.broadcast_tensors(input, other)
    if first.size(dim) != 3:
        raise ShapeError(f"cross: dimension {dim} must have size 3, got {shape_text(shape)}")
    a, b, c = first.unbind(dim)
    x, y, z = second.unbind(dim)
    return tp.stack([b * z - c * y, c * x - a * z, a * y - b * x], dim)


# ---- products -------------------------------------------------------------------------------------------------------
def multi_dot(tensors: Any) -> Tensor:
    """The product of several matrices, in the order that costs least; the first and the last may be vectors.

    >>> import tensorplay as tp
    >>> tp.linalg.multi_dot([tp.ones(2, 3), tp.ones(3, 1), tp.ones(1)]).tolist()
    [3.0, 3.0]
    """
    matrices = list(tensors)
    if len(matrices) < 2:
        raise ArgumentError(f"multi_dot: needs at least two matrices, got {len(matrices)}")
    row, column = matrices[0].layout.ndim == 1, matrices[-1].layout.ndim == 1
    matrices[0] = matrices[0].unsqueeze(0) if row else matrices[0]
    matrices[-1] = matrices[-1].unsqueeze(-1) if column else matrices[-1]
    if any([x.layout.ndim != 2 for x in matrices]):
        raise ShapeError(f"multi_dot: takes matrices, and vectors at the ends, got "
                         f"{', '.join([shape_text(x.layout.shape) for x in tensors])}")
    for i in range(len(matrices) - 1):  # complain about sizes before anything is multiplied
        tp.matmul.op.rule("meta")(matrices[i].layout, matrices[i + 1].layout)
    result = _in_order(matrices, _best_splits([x.layout.shape[0] for x in matrices]
                                              + [matrices[-1].layout.shape[1]]), 0, len(matrices) - 1)
    result = result.squeeze(0) if row else result
    return result.squeeze(-1) if column else result


def _best_splits(sizes: list) -> dict:
    """(first, last) -> after which matrix to split; Cormen et al., section 15.2."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    split = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            options = {k: cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)}
            split[i, j] = min(options, key=options.__getitem__)
            cost[i, j] = options[split[i, j]]
    return split


def _in_order(matrices: list, split: dict, first: int, last: int) -> Tensor:
    if first == last:
        return matrices[first]
    k = split[first, last]
    return tp.matmul(_in_order(matrices, split, first, k), _in_order(matrices, split, k + 1, last))


def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """The first columns of the product of the reflections that the columns of A (below their ones) and tau describe."""
    rows, columns = A.layout.shape[-2:]
    result = tp.eye(rows, columns, dtype=A.dtype, device=A.device).expand(A.layout.shape)
    reflections = A.tril(-1) + tp.eye(rows, columns, dtype=A.dtype, device=A.device)
    for i in reversed(range(tau.layout.shape[-1])):
        v = reflections.narrow(-1, i, 1)
        result = result - tau.narrow(-1, i, 1).unsqueeze(-1) * tp.matmul(v, tp.matmul(v.mH, result))
    return result


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers 0 to N - 1 of every element, as rows.

    >>> import tensorplay as tp
    >>> tp.linalg.vander(tp.tensor([2, 3])).tolist()
    [[1, 2], [1, 3]]
    """
    x = x if x.layout.ndim else x.unsqueeze(0)
    count = x.layout.shape[-1] if N is None else N
    if count < 1:
        raise ArgumentError(f"vander: N must be positive, got {count}")
    dtype = tp.int64 if x.dtype.category < 2 else x.dtype
    one = tp.ones((*x.layout.shape, 1), dtype=dtype, device=x.device)
    if count == 1:
        return one
    repeated = x.to(dtype).unsqueeze(-1).expand((*x.layout.shape, count - 1))
    return tp.cat([one, tp.cumprod(repeated, -1)], -1)


# ---- the exponential ------------------------------------------------------------------------------------------------
def matrix_exp(A: Tensor) -> Tensor:
    """The matrix exponential, by scaling and squaring of a Taylor polynomial of degree 18.

    >>> import tensorplay as tp
    >>> tp.linalg.matrix_exp(tp.zeros(2, 2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]

    Reads the size of the largest column sum, so the meta device takes no scaling.
    """
    need_matrices("matrix_exp", A.layout, square=True)
    if not A.layout.numel:
        return A.clone()
    size = 0.0 if A.device.type == "meta" else tp.abs(A.detach()).sum(-2).amax().item()
    halvings = max(0, ceil(log2(size)) + 1) if 0 < size < float("inf") else 0
    x = A * 0.5 ** halvings
    one = unit(A, A.layout.shape[-1])
    result = one + x / 18
    for k in range(17, 0, -1):
        result = one + tp.matmul(x, result) / k
    for _ in range(halvings):
        result = tp.matmul(result, result)
    return result


# ---- tensor equations -----------------------------------------------------------------------------------------------
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of A as a map from its last dimensions to its first `ind` ones."""
    if ind <= 0:
        raise ArgumentError(f"tensorinv: ind must be positive, got {ind}")
    shape = A.layout.shape
    rows, columns = _product(shape[:ind]), _product(shape[ind:])
    if rows != columns:
        raise ShapeError(f"tensorinv: the first {ind} sizes of A{shape_text(shape)} multiply to {rows}, the others to "
                         f"{columns}; they must be equal")
    return inv_op(A.reshape((rows, columns))).reshape(shape[ind:] + shape[:ind])


def tensorsolve(A: Tensor, B: Tensor, dims: Any = None) -> Tensor:
    """X with tensordot(A, X, X.ndim) = B."""
    if dims is not None:
        A = A.movedim(tuple(dims), tuple(range(-len(dims), 0)))
    rest = A.layout.shape[B.layout.ndim:]
    size = B.layout.numel
    if _product(rest) != size:
        raise ShapeError(f"tensorsolve: A{shape_text(A.layout.shape)} does not map onto B{shape_text(B.layout.shape)}: "
                         f"its other sizes multiply to {_product(rest)}, not to {size}")
    return solve_op(A.reshape((size, size)), B.reshape((size, 1))).reshape(rest)


def _product(sizes: tuple) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


FUNCTIONS = METHODS = ("matrix_exp",)  # torch has the others in `linalg` only
