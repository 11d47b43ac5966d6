"""+, -, *, / and powers: elementwise operators on two operands, with number operands and broadcasting."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import (
    ELEMENTWISE,
    FLOAT,
    PRIMITIVE,
    ArgumentError,
    DTypeError,
    Layout,
    Tensor,
    compute_dtype,
    elementwise_meta,
    op,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

BINARY = (ELEMENTWISE, PRIMITIVE)


def conjugate(x: Any) -> Any:
    """The complex conjugate where there is one: gradients of complex products need it, real ones skip it."""
    if isinstance(x, complex):
        return x.conjugate()
    return x.conj() if isinstance(x, Tensor) and x.layout.dtype.is_complex else x


# ---- add ------------------------------------------------------------------------------------------------------------
add_op = op("add(Operand input, Operand other) -> Tensor", tags=BINARY)
add_op.vjp(input=lambda grad: grad, other=lambda grad: grad)


def add(input: Tensor, other: Tensor | float, *, alpha: float = 1, out: Tensor | None = None) -> Tensor:  # noqa: A002
    """input + alpha * other.

    >>> import tensorplay as tp
    >>> tp.add(tp.tensor([1., 2.]), tp.tensor([3., 4.]), alpha=2).tolist()
    [7.0, 10.0]

    The operands broadcast and promote. Raises ShapeError if their shapes do not go together.
    """
    return add_op(input, other if alpha == 1 else mul(other, alpha), out)


add.op = add_op.op  # type: ignore[attr-defined]

# ---- sub ------------------------------------------------------------------------------------------------------------
sub_op = op("sub(Operand input, Operand other) -> Tensor", tags=BINARY)
sub_op.vjp(input=lambda grad: grad, other=lambda grad: neg(grad))
_sub_meta = elementwise_meta(sub_op.op)


@sub_op.meta
def _(input: Any, other: Any) -> Any:  # noqa: A002
    if compute_dtype(sub_op.op, (input, other)).category == 0:
        raise DTypeError("sub: bools have no difference; use input ^ other or logical_xor(input, other)")
    return _sub_meta(input, other)


def sub(input: Tensor, other: Tensor | float, *, alpha: float = 1, out: Tensor | None = None) -> Tensor:  # noqa: A002
    """input - alpha * other.

    >>> import tensorplay as tp
    >>> tp.sub(tp.tensor([5., 6.]), 1).tolist()
    [4.0, 5.0]
    """
    return sub_op(input, other if alpha == 1 else mul(other, alpha), out)


sub.op = sub_op.op  # type: ignore[attr-defined]


def rsub(input: Tensor, other: Tensor | float, *, alpha: float = 1) -> Tensor:  # noqa: A002
    """other - alpha * input.

    >>> import tensorplay as tp
    >>> tp.rsub(tp.tensor([1, 2]), 10).tolist()
    [9, 8]
    """
    return sub(other, input, alpha=alpha)  # type: ignore[arg-type]


# ---- mul ------------------------------------------------------------------------------------------------------------
mul = op("mul(Operand input, Operand other) -> Tensor", tags=BINARY, doc="""input * other, elementwise.

>>> import tensorplay as tp
>>> tp.mul(tp.tensor([1., 2.]), 3).tolist()
[3.0, 6.0]
""")
mul.vjp(input=lambda grad, other: mul(grad, conjugate(other)), other=lambda grad, input: mul(grad, conjugate(input)))

# ---- neg ------------------------------------------------------------------------------------------------------------
neg = op("neg(Operand input) -> Tensor", tags=BINARY, doc="""-input, elementwise.

>>> import tensorplay as tp
>>> tp.neg(tp.tensor([1., -2.])).tolist()
[-1.0, 2.0]
""")
neg.vjp(input=lambda grad: neg(grad))


@neg.meta
def _(input: Layout) -> Layout:  # noqa: A002
    if input.dtype.category == 0:
        raise DTypeError("neg: bool has no negative; use ~input or logical_not(input)")
    return _neg_meta(input)

_neg_meta = elementwise_meta(neg.op)

# ---- div ------------------------------------------------------------------------------------------------------------
div_op = op("div(Operand input, Operand other) -> Tensor", tags=BINARY, promotion=FLOAT)
div_op.vjp(input=lambda grad, other: div_op(grad, conjugate(other)),
           other=lambda grad, other, output: neg(mul(grad, conjugate(div_op(output, other)))))


@div_op.samples
def _(make: Any) -> Iterator:
    yield make(3, 4), make(3, 4, low=0.5, high=2)
    yield make(3, 4), make(4, low=-2, high=-0.5)


def div(input: Tensor, other: Tensor | float, *, rounding_mode: str | None = None,  # noqa: A002
        out: Tensor | None = None) -> Tensor:
    """input / other; integers give floats. `rounding_mode` 'floor' or 'trunc' rounds the quotient.

    >>> import tensorplay as tp
    >>> tp.div(tp.tensor([7, -7]), 2).tolist(), tp.div(tp.tensor([7, -7]), 2, rounding_mode='floor').tolist()
    ([3.5, -3.5], [3, -4])
    """
    if rounding_mode is None:
        return div_op(input, other, out)

    if rounding_mode not in ("floor", "trunc"):
        raise ArgumentError(f"div: rounding_mode must be None, 'floor' or 'trunc', got {rounding_mode!r}")
    return (tp.floor_divide if rounding_mode == "floor" else tp.trunc_divide)(input, other, out=out)


div.op = div_op.op  # type: ignore[attr-defined]

# ---- pow ------------------------------------------------------------------------------------------------------------
pow = op("pow(Operand input, Operand exponent) -> Tensor", tags=BINARY, doc="""input ** exponent, elementwise.

>>> import tensorplay as tp
>>> tp.pow(tp.tensor([2., 3.]), 2).tolist()
[4.0, 9.0]

Integer bases to negative integer powers are refused (ValueRangeError), as in torch.
""")


@pow.samples
def _(make: Any) -> Iterator:
    yield make(3, 4, low=0.2, high=2), make(3, 4)
    yield make(3, 4, low=-2, high=2), 3
    yield make(3, 4, low=0.2, high=2), -0.5


def _pow_input_grad(grad: Tensor, input: Tensor, exponent: Any) -> Tensor:  # noqa: A002
    """exponent * input ** (exponent - 1), and 0 where the exponent is 0 (no 0 * inf at input 0)."""
    if not isinstance(exponent, Tensor):
        return mul(grad, mul(pow(input, exponent - 1), exponent)) if exponent != 0 else mul(grad, 0)

    derivative = mul(exponent, pow(input, sub_op(exponent, 1)))
    return mul(grad, conjugate(tp.where(exponent == 0, derivative.new_zeros(()), derivative)))


def _pow_exponent_grad(grad: Tensor, input: Any, exponent: Tensor, output: Tensor) -> Tensor:  # noqa: A002
    """output * log(input), and 0 where input is 0 with an exponent >= 0 (no 0 * -inf)."""
    from math import log as number_log


    if not isinstance(input, Tensor):
        return mul(grad, mul(output, number_log(input) if input > 0 else 0.0))
    zero = (input == 0).logical_and(exponent >= 0) if not input.layout.dtype.is_complex else input == 0
    return mul(grad, conjugate(tp.where(zero, output.new_zeros(()), mul(output, tp.log(input)))))


subtract, multiply, negative, divide, true_divide = sub, mul, neg, div, div

pow.vjp(input=_pow_input_grad, exponent=_pow_exponent_grad)


def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:  # noqa: A002
    """input * input.

    >>> import tensorplay as tp
    >>> tp.square(tp.tensor([2., -3.])).tolist()
    [4.0, 9.0]
    """
    return mul(input, input, out)


FUNCTIONS = ("add", "sub", "rsub", "mul", "neg", "div", "pow", "square")
ALIASES = {"subtract": "sub", "multiply": "mul", "negative": "neg", "divide": "div", "true_divide": "div"}
METHODS = FUNCTIONS + ("subtract", "multiply", "negative", "divide", "true_divide")
INPLACE = ("add_", "sub_", "mul_", "neg_", "div_", "pow_", "square_", "subtract_", "multiply_", "negative_", "divide_",
           "true_divide_")
