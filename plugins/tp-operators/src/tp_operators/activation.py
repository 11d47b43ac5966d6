"""Activation functions of `tensorplay.nn.functional`; the derivatives of the fused ones are operators too."""
from __future__ import annotations

import math

from tensorplay.library import (
    ELEMENTWISE,
    FLOAT,
    SAME,
    Layout,
    ShapeError,
    Tensor,
    ValueRangeError,
    broadcast_shapes,
    make_inplace,
    normalize_dim,
    op,
    shape_text,
)

from ._operands import FLOATING, INTEGER, accept, in_floats
from ._samples import sample_binary, sample_unary
from .exponential import exp, expm1, log1p
from .selection import where_op
from .special import erf, sigmoid
from .trigonometric import tanh

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

ROOT_HALF = math.sqrt(0.5)


def _unary(schema: str, sentence: str = "", integers: bool = False, promotion: str = SAME) -> Any:
    made = op(f"{schema} -> Tensor", tags=(ELEMENTWISE,), promotion=promotion, doc=sentence)
    accept(made, INTEGER if integers else FLOATING, FLOATING)
    sample_unary(made)
    return made


def _applied(function: Any, input: Tensor, inplace: bool, *args: Any) -> Tensor:  # noqa: A002
    return make_inplace(function)(input, *args) if inplace else function(input, *args)


# ---- relu -----------------------------------------------------------------------------------------------------------
relu_op = _unary("relu(Operand input)", "max(input, 0), elementwise.", integers=True)
relu_op.decomposition(lambda input: where_op(input < 0, 0, input))
relu_op.vjp(input=lambda grad, output: relu_backward(grad, output))
relu_backward = op("relu_backward(Operand grad, Operand output) -> Tensor", tags=(ELEMENTWISE,),
                   doc="grad where relu's output is positive, else 0.")
relu_backward.decomposition(lambda grad, output: where_op(output <= 0, 0, grad))
sample_binary(relu_backward)


def relu(input: Tensor, inplace: bool = False) -> Tensor:  # noqa: A002
    """max(input, 0).

    >>> import tensorplay as tp
    >>> tp.relu(tp.tensor([-1., 2.])).tolist()
    [0.0, 2.0]

    NaN stays NaN; the gradient at 0 is 0.
    """
    return _applied(relu_op, input, True) if inplace else relu_op(input)


relu.op = relu_op.op  # type: ignore[attr-defined]

# ---- gelu -----------------------------------------------------------------------------------------------------------
gelu = op("gelu(Operand input, *, str approximate='none') -> Tensor", tags=(ELEMENTWISE,),
          doc="""input times the normal distribution function at input (D. Hendrycks, K. Gimpel, 2016).

>>> import tensorplay as tp
>>> round(tp.gelu(tp.tensor(1.)).item(), 4)
0.8413

`approximate='tanh'` uses the paper's formula with tanh. Raises ValueRangeError for any other.
""")
gelu_backward = op("gelu_backward(Operand grad, Operand input, *, str approximate='none') -> Tensor",
                   tags=(ELEMENTWISE,), doc="What gelu's input gets.")
gelu.vjp(input=lambda grad, input, approximate: gelu_backward(grad, input, approximate))
accept(gelu, FLOATING, FLOATING)
TANH_SCALE, TANH_CUBIC = math.sqrt(2 / math.pi), 0.044715


def _check_approximate(approximate: str) -> bool:
    if approximate not in ("none", "tanh"):
        raise ValueRangeError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}")
    return approximate == "tanh"


_gelu_dtype_meta = gelu.op.rules["meta"]


@gelu.meta
def _(input: Layout, approximate: str) -> Layout:  # noqa: A002
    _check_approximate(approximate)
    return _gelu_dtype_meta(input, approximate)


@in_floats(gelu)
def _(input: Tensor, approximate: str) -> Tensor:  # noqa: A002
    if _check_approximate(approximate):
        return input * 0.5 * (tanh((input + input * input * input * TANH_CUBIC) * TANH_SCALE) + 1)
    return input * 0.5 * (erf(input * ROOT_HALF) + 1)


@in_floats(gelu_backward)
def _(grad: Tensor, input: Tensor, approximate: str) -> Tensor:  # noqa: A002
    if _check_approximate(approximate):
        square = input * input
        bend = tanh((input + input * square * TANH_CUBIC) * TANH_SCALE)
        share = (bend + 1) * 0.5
        density = (1 - bend * bend) * (square * (3 * TANH_CUBIC) + 1) * (0.5 * TANH_SCALE)
    else:
        share = (erf(input * ROOT_HALF) + 1) * 0.5
        density = exp(input * input * -0.5) * (1 / math.sqrt(2 * math.pi))
    return grad * (share + _product(input, density))


def _product(input: Tensor, density: Tensor) -> Tensor:  # noqa: A002
    """input * density, 0 where the density has vanished (input may be infinite there)."""
    return where_op(density > 0, input, 0) * density


@gelu.samples
def _(make: Any) -> Iterator:
    yield (make(3, 4),)
    yield make(3, 4), "tanh"
    yield (make(4, 2).t(),)


@gelu_backward.samples
def _(make: Any) -> Iterator:
    yield make(3, 4), make(3, 4)
    yield make(3, 4), make(3, 4), "tanh"


# ---- silu, swiglu ---------------------------------------------------------------------------------------------------
silu_op = _unary("silu(Operand input)")
silu_op.vjp(input=lambda grad, input: silu_backward(grad, input))
silu_backward = op("silu_backward(Operand grad, Operand input) -> Tensor", tags=(ELEMENTWISE,),
                   doc="What silu's input gets.")
sample_binary(silu_backward)
in_floats(silu_op)(lambda input: input * sigmoid(input))


@in_floats(silu_backward)
def _(grad: Tensor, input: Tensor) -> Tensor:  # noqa: A002
    share = sigmoid(input)
    return grad * (share + _product(input, share * (1 - share)))


def silu(input: Tensor, inplace: bool = False) -> Tensor:  # noqa: A002
    """input * sigmoid(input).

    >>> import tensorplay as tp
    >>> round(tp.nn.functional.silu(tp.tensor(1.)).item(), 4)
    0.7311
    """
    return _applied(silu_op, input, inplace)


silu.op = silu_op.op  # type: ignore[attr-defined]

swiglu = op("swiglu(Operand gate, Operand up) -> Tensor", tags=(ELEMENTWISE,),
            doc="""silu(gate) * up, the gated unit of transformer blocks (N. Shazeer, 2020).

>>> import tensorplay as tp
>>> round(tp.nn.functional.swiglu(tp.tensor(1.), tp.tensor(2.)).item(), 4)
1.4621
""")
accept(swiglu, FLOATING, FLOATING)
in_floats(swiglu)(lambda gate, up: gate * sigmoid(gate) * up)
sample_binary(swiglu)
swiglu_backward = op("swiglu_backward(Tensor grad, Tensor gate, Tensor up) -> (Tensor, Tensor)",
                     doc="What swiglu's gate and up get; all three have one shape.")


@swiglu_backward.meta
def _(grad: Layout, gate: Layout, up: Layout) -> tuple:
    shape = broadcast_shapes(grad.shape, gate.shape, up.shape)
    return gate.with_shape(shape), up.with_shape(shape)


@swiglu_backward.decomposition
def _(grad: Tensor, gate: Tensor, up: Tensor) -> tuple:
    return silu_backward(grad * up, gate), grad * (gate * sigmoid(gate))


@swiglu_backward.samples
def _(make: Any) -> Iterator:
    yield make(3, 4), make(3, 4), make(3, 4)


@swiglu.vjp
def _(grad: Tensor, gate: Tensor, up: Tensor) -> tuple:
    if isinstance(gate, Tensor) and isinstance(up, Tensor) and gate.layout.shape == up.layout.shape \
            and gate.layout.dtype is up.layout.dtype:
        return swiglu_backward(grad, gate, up)
    return (silu_backward(grad * up, gate) if isinstance(gate, Tensor) else None,
            grad * silu_op(gate) if isinstance(up, Tensor) else None)


# ---- exponential units ----------------------------------------------------------------------------------------------
elu_op = _unary("elu(Operand input, float alpha=1.0, float scale=1.0, float input_scale=1.0)")


@in_floats(elu_op)
def _(input: Tensor, alpha: float, scale: float, input_scale: float) -> Tensor:  # noqa: A002
    positive = input > 0
    below = where_op(positive, 0, input)  # so that the branch not taken cannot overflow, in the gradient either
    return where_op(positive, input * scale, expm1(below * input_scale) * (alpha * scale))


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:  # noqa: A002
    """input where it is positive, else alpha * (exp(input) - 1).

    >>> import tensorplay as tp
    >>> tp.nn.functional.elu(tp.tensor([float('-inf'), 2.])).tolist()
    [-1.0, 2.0]
    """
    return _applied(elu_op, input, inplace, alpha)


elu.op = elu_op.op  # type: ignore[attr-defined]


def selu(input: Tensor, inplace: bool = False) -> Tensor:  # noqa: A002
    """The elu with the scale and alpha that keep mean 0 and variance 1 (G. Klambauer et al., 2017).

    >>> import tensorplay as tp
    >>> tp.selu(tp.tensor([0., 1.])).tolist()
    [0.0, 1.0507010221481323]
    """
    return _applied(elu_op, input, inplace, 1.6732632423543772, 1.0507009873554805)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:  # noqa: A002
    """input where it is positive, else alpha * (exp(input / alpha) - 1).

    >>> import tensorplay as tp
    >>> tp.celu(tp.tensor([float('-inf'), 2.]), 0.5).tolist()
    [-0.5, 2.0]
    """
    if alpha == 0:
        raise ValueRangeError("celu: alpha must not be 0")
    return _applied(elu_op, input, inplace, alpha, 1.0, 1.0 / alpha)


# ---- softplus, mish, logsigmoid, softsign, tanhshrink ---------------------------------------------------------------
softplus = op("softplus(Operand input, float beta=1.0, float threshold=20.0) -> Tensor", tags=(ELEMENTWISE,),
              doc="""log(1 + exp(beta * input)) / beta; input itself where beta * input is above `threshold`.

>>> import tensorplay as tp
>>> tp.nn.functional.softplus(tp.tensor([float('-inf'), 30.])).tolist()
[0.0, 30.0]
""")
accept(softplus, FLOATING, FLOATING)
sample_unary(softplus)
softplus.vjp(input=lambda grad, input, beta, threshold:
             where_op(input * beta > threshold, grad, grad * sigmoid(input * beta)))


@in_floats(softplus)
def _(input: Tensor, beta: float, threshold: float) -> Tensor:  # noqa: A002
    scaled = input * beta
    return where_op(scaled > threshold, input, log1p(exp(scaled)) * (1 / beta))


mish_op = _unary("mish(Operand input)")
in_floats(mish_op)(lambda input: input * tanh(softplus(input)))


def mish(input: Tensor, inplace: bool = False) -> Tensor:  # noqa: A002
    """input * tanh(softplus(input)) (D. Misra, 2019).

    >>> import tensorplay as tp
    >>> tp.nn.functional.mish(tp.tensor([0., 30.])).tolist()
    [0.0, 30.0]
    """
    return _applied(mish_op, input, inplace)


mish.op = mish_op.op  # type: ignore[attr-defined]

logsigmoid = _unary("logsigmoid(Operand input)", """log(sigmoid(input)), without overflow.

>>> import tensorplay as tp
>>> tp.nn.functional.logsigmoid(tp.tensor([1000., -1000.])).tolist()
[0.0, -1000.0]
""")
logsigmoid.vjp(input=lambda grad, input: grad * sigmoid(-input))
in_floats(logsigmoid)(lambda input: where_op(input < 0, input, 0) - log1p(exp(-abs(input))))

softsign = _unary("softsign(Operand input)", """input / (1 + |input|).

>>> import tensorplay as tp
>>> tp.nn.functional.softsign(tp.tensor([1., -3.])).tolist()
[0.5, -0.75]
""", promotion=FLOAT)
in_floats(softsign)(lambda input: input / (abs(input) + 1))

tanhshrink = _unary("tanhshrink(Operand input)", """input - tanh(input).

>>> import tensorplay as tp
>>> tp.nn.functional.tanhshrink(tp.tensor([0.])).tolist()
[0.0]
""", promotion=FLOAT)
in_floats(tanhshrink)(lambda input: input - tanh(input))

# ---- piecewise linear -----------------------------------------------------------------------------------------------
leaky_relu_op = _unary("leaky_relu(Operand input, float negative_slope=0.01)")
leaky_relu_op.decomposition(lambda input, negative_slope: where_op(input > 0, input, input * negative_slope))


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:  # noqa: A002
    """input where it is positive, else negative_slope * input.

    >>> import tensorplay as tp
    >>> tp.nn.functional.leaky_relu(tp.tensor([-1., 2.]), 0.5).tolist()
    [-0.5, 2.0]
    """
    return _applied(leaky_relu_op, input, inplace, negative_slope)


leaky_relu.op = leaky_relu_op.op  # type: ignore[attr-defined]

hardtanh_op = op("hardtanh(Operand input, Number min_val=-1.0, Number max_val=1.0) -> Tensor", tags=(ELEMENTWISE,))
accept(hardtanh_op, INTEGER, FLOATING)
sample_unary(hardtanh_op)
hardtanh_op.vjp(input=lambda grad, input, min_val, max_val:
                where_op((input > min_val) & (input < max_val), grad, 0))


@hardtanh_op.decomposition
def _(input: Tensor, min_val: Any, max_val: Any) -> Tensor:  # noqa: A002
    if input.layout.dtype.category < FLOATING:
        min_val, max_val = int(min_val), int(max_val)
    return input.clamp(min_val, max_val)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:  # noqa: A002
    """input limited to [min_val, max_val]; no gradient at the limits.

    >>> import tensorplay as tp
    >>> tp.nn.functional.hardtanh(tp.tensor([-3., 0.5])).tolist()
    [-1.0, 0.5]
    """
    if min_val > max_val:
        raise ValueRangeError(f"hardtanh: min_val {min_val} is above max_val {max_val}")
    return _applied(hardtanh_op, input, inplace, min_val, max_val)


hardtanh.op = hardtanh_op.op  # type: ignore[attr-defined]


def relu6(input: Tensor, inplace: bool = False) -> Tensor:  # noqa: A002
    """input limited to [0, 6].

    >>> import tensorplay as tp
    >>> tp.nn.functional.relu6(tp.tensor([-1., 7.])).tolist()
    [0.0, 6.0]
    """
    return _applied(hardtanh_op, input, inplace, 0.0, 6.0)


hardsigmoid_op = _unary("hardsigmoid(Operand input)")
hardsigmoid_op.decomposition(lambda input: hardtanh_op(input + 3, 0.0, 6.0) * (1 / 6))
hardswish_op = _unary("hardswish(Operand input)")
hardswish_op.decomposition(lambda input: input * hardtanh_op(input + 3, 0.0, 6.0) * (1 / 6))


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:  # noqa: A002
    """(input + 3) / 6 limited to [0, 1].

    >>> import tensorplay as tp
    >>> tp.nn.functional.hardsigmoid(tp.tensor([-3., 0., 3.])).tolist()
    [0.0, 0.5, 1.0]
    """
    return _applied(hardsigmoid_op, input, inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:  # noqa: A002
    """input * hardsigmoid(input).

    >>> import tensorplay as tp
    >>> tp.nn.functional.hardswish(tp.tensor([-3., 0., 3.])).tolist()
    [-0.0, 0.0, 3.0]
    """
    return _applied(hardswish_op, input, inplace)


threshold_op = op("threshold(Operand input, Number threshold, Number value) -> Tensor", tags=(ELEMENTWISE,))
accept(threshold_op, INTEGER, FLOATING)
threshold_op.decomposition(lambda input, threshold, value: where_op(input <= threshold, value, input).to(input.dtype))


@threshold_op.samples
def _(make: Any) -> Iterator:
    yield make(3, 4), 0.1, -5.0


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:  # noqa: A002
    """input where it is above `threshold`, else `value`.

    >>> import tensorplay as tp
    >>> tp.threshold(tp.tensor([0.5, 2.]), 1, -9).tolist()
    [-9.0, 2.0]
    """
    return _applied(threshold_op, input, inplace, threshold, value)


hardshrink = _unary("hardshrink(Operand input, float lambd=0.5)", """input, but 0 where |input| <= lambd.

>>> import tensorplay as tp
>>> tp.hardshrink(tp.tensor([0.25, -2.])).tolist()
[0.0, -2.0]
""")
hardshrink.decomposition(lambda input, lambd: where_op(abs(input) <= lambd, 0, input))

softshrink = _unary("softshrink(Operand input, float lambd=0.5)", """input moved towards 0 by lambd, and 0 near it.

>>> import tensorplay as tp
>>> tp.nn.functional.softshrink(tp.tensor([0.25, -2.])).tolist()
[0.0, -1.5]
""")
softshrink.decomposition(lambda input, lambd: where_op(input > lambd, input - lambd, where_op(
    input < -lambd, input + lambd, input * 0)))


# ---- with weights, with halves --------------------------------------------------------------------------------------


def prelu(input: Tensor, weight: Tensor) -> Tensor:  # noqa: A002
    """input where it is positive, else weight * input; one weight, or one for each channel (dimension 1).

    >>> import tensorplay as tp
    >>> tp.prelu(tp.tensor([-2., 3.]), tp.tensor([0.25])).tolist()
    [-0.5, 3.0]
    """
    shape = input.layout.shape
    count = weight.layout.numel
    channels = shape[1] if len(shape) > 1 else 1
    if count not in (1, channels):
        raise ShapeError(f"prelu: weight{shape_text(weight.layout.shape)} must have 1 element or one for each of the "
                         f"{channels} channel(s) of input{shape_text(shape)}")
    weight = weight.reshape(() if count == 1 else (1, count) + (1,) * (len(shape) - 2))
    return where_op(input > 0, input, input * weight)


def glu(input: Tensor, dim: int = -1) -> Tensor:  # noqa: A002
    """The first half of `input` along `dim` times the sigmoid of the second (Y. Dauphin et al., 2016).

    >>> import tensorplay as tp
    >>> tp.nn.functional.glu(tp.tensor([4., 0.])).tolist()
    [2.0]
    """
    size = input.layout.shape[normalize_dim(dim, input.layout.ndim, "glu")] if input.layout.ndim else 1
    if size % 2:
        raise ShapeError(f"glu: size {size} of input{shape_text(input.layout.shape)} at dim {dim} cannot be halved")
    return input.narrow(dim, 0, size // 2) * sigmoid(input.narrow(dim, size // 2, size // 2))


FUNCTIONS = ("relu", "selu", "celu", "prelu", "threshold", "hardshrink", "gelu", "silu", "swiglu")
NN_FUNCTIONS = ("relu", "relu6", "gelu", "silu", "swiglu", "elu", "selu", "celu", "softplus", "mish", "logsigmoid",
                "softsign", "tanhshrink", "leaky_relu", "hardtanh", "hardsigmoid", "hardswish", "threshold",
                "hardshrink", "softshrink", "prelu", "glu")
METHODS = {"relu": "relu_op", "relu_": "relu_op", "prelu": "prelu", "hardshrink": "hardshrink"}
