"""Linear systems, inverses and determinants, batched over leading dimensions."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import DTypeError, Layout, ShapeError, Tensor, ValueRangeError, layout, op, shape_text

from .factorization import (
    lower_upper,
    lu_op,
    need_matrices,
    rows_back,
    rows_in_order,
    triangular_solve_op,
    unit,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# ---- solve ----------------------------------------------------------------------------------------------------------
solve_op = op("solve(Tensor input, Tensor other) -> Tensor",
              doc="X with input @ X = other, for square matrices of equal batch dimensions; singular ones are refused.")


@solve_op.meta
def _(input: Layout, other: Layout) -> Layout:  # noqa: A002
    need_matrices("solve", input, square=True)
    if other.dtype is not input.dtype:
        raise DTypeError(f"solve: input is {input.dtype.name} but other is {other.dtype.name}; convert one of them")
    if other.ndim != input.ndim or other.shape[:-1] != input.shape[:-1]:
        raise ShapeError(f"solve: input{shape_text(input.shape)} @ X = other{shape_text(other.shape)}: other must have "
                         f"{input.shape[-1]} rows and the same batch dimensions")
    return other.dense()


def refuse_singular(name: str, packed: Tensor) -> None:
    """Raise if a packed LU factorization has a 0 among its pivots. Reads values."""
    if packed.device.type != "meta" and bool((tp.diagonal(packed, 0, -2, -1) == 0).any()):
        raise ValueRangeError(f"{name}: a matrix is singular, so it has no inverse; tp.linalg.pinv gives the "
                              f"pseudoinverse")


def lu_apply(packed: Tensor, order: Tensor, other: Tensor) -> Tensor:
    """X with input @ X = other, from input's factorization."""
    half = triangular_solve_op(packed, rows_in_order(other, order), False, True)
    return triangular_solve_op(packed, half, True, False)


@solve_op.decomposition
def _(input: Tensor, other: Tensor) -> Tensor:  # noqa: A002
    solve_op.op.rule("meta")(input.layout, other.layout)
    packed, _, order = lu_op(input)
    refuse_singular("solve", packed)
    return lu_apply(packed, order, other)


solve_op.vjp(input=lambda grad, input, output: -tp.matmul(solve_op(input.mH, grad), output.mH),
             other=lambda grad, input: solve_op(input.mH, grad))


@solve_op.samples
def _(make: Any) -> Iterator:
    for shape in ((3, 3), (2, 4, 4)):
        x = make(*shape)
        yield x + 5 * unit(x, shape[-1]), make(*shape[:-1], 2)


# ---- inv ------------------------------------------------------------------------------------------------------------
inv_op = op("inv(Tensor input) -> Tensor", doc="The inverse of square matrices; singular ones are refused.")


@inv_op.meta
def _(input: Layout) -> Layout:  # noqa: A002
    need_matrices("inv", input, square=True)
    return input.dense()


@inv_op.decomposition
def _(input: Tensor) -> Tensor:  # noqa: A002
    inv_op.op.rule("meta")(input.layout)
    packed, _, order = lu_op(input)
    refuse_singular("inv", packed)
    return lu_apply(packed, order, unit(input, input.layout.shape[-1]).expand(input.layout.shape))


inv_op.vjp(input=lambda grad, output: -tp.matmul(tp.matmul(output.mH, grad), output.mH))


@inv_op.samples
def _(make: Any) -> Iterator:
    for shape in ((3, 3), (2, 4, 4)):
        x = make(*shape)
        yield (x + 5 * unit(x, shape[-1]),)


# ---- det ------------------------------------------------------------------------------------------------------------
det_forward = op("det_forward(Tensor input) -> (Tensor, Tensor, Tensor)",
                 doc="(determinant, packed LU factorization, order of its rows); the gradient is of the first only.")


@det_forward.meta
def _(input: Layout) -> tuple:  # noqa: A002
    need_matrices("det", input, square=True)
    return (layout(input.shape[:-2], input.dtype, input.device), input.dense(),
            layout(input.shape[:-1], tp.int64, input.device))


def swaps_sign(pivots: Tensor, dtype: Any) -> Tensor:
    """1 or -1 as the number of row swaps is even or odd."""
    steps = tp.arange(1, pivots.layout.shape[-1] + 1, dtype=pivots.dtype, device=pivots.device)
    odd = tp.remainder((pivots != steps).sum(-1), 2)
    return (1 - 2 * odd).to(dtype)


def order_of(pivots: Tensor, rows: int) -> Tensor:
    """The order of rows that a list of swaps makes."""
    order = tp.arange(rows, device=pivots.device).expand((*pivots.layout.shape[:-1], rows)).clone()
    for k in range(pivots.layout.shape[-1]):
        other = (pivots.narrow(-1, k, 1) - 1).to(tp.int64)
        here, there = order.narrow(-1, k, 1).clone(), tp.gather(order, -1, other)
        order = tp.scatter(order, -1, tp.full_like(other, k), there)
        order = tp.scatter(order, -1, other, here)
    return order


@det_forward.decomposition
def _(input: Tensor) -> tuple:  # noqa: A002
    det_forward.op.rule("meta")(input.layout)
    packed, pivots, order = lu_op(input)
    value = swaps_sign(pivots, input.dtype) * tp.prod(tp.diagonal(packed, 0, -2, -1), -1)
    return value, packed, order


def _det_grad(grads: tuple, input: Tensor, outputs: tuple) -> Tensor | None:  # noqa: A002
    """grad * det^* * A^-H, where zero pivots are moved by the square root of epsilon: with det * A^-1 tending to the
    adjugate, that is right for singular matrices too, to that precision."""
    if grads[0] is None:
        return None
    _, packed, order = outputs
    pivots = tp.diagonal(packed, 0, -2, -1)
    shift = tp.where(pivots == 0, tp.finfo(input.dtype).eps ** 0.5, tp.zeros_like(pivots))
    lower = lower_upper(packed)[0]
    regular = input + rows_back(lower * shift.unsqueeze(-2), order)
    scale = grads[0] * det_forward(regular)[0].conj()
    return scale.unsqueeze(-1).unsqueeze(-1) * inv_op(regular).mH


det_forward.vjp(lambda grads, input, outputs: (_det_grad(grads, input, outputs),))


@det_forward.samples
def _(make: Any) -> Iterator:
    for shape in ((3, 3), (2, 4, 4)):
        x = make(*shape)
        yield (x + 3 * unit(x, shape[-1]),)
