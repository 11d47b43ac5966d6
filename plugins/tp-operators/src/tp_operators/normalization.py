"""softmax, layer_norm, rms_norm: rows brought to a common scale."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import (
    DTypeError,
    Layout,
    ShapeError,
    Tensor,
    as_dtype,
    as_shape,
    layout,
    normalize_dim,
    op,
    shape_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def floating_only(name: str, **tensors: Layout | None) -> None:
    """Refuse integers, which have no such result, and complex numbers, whose gradients would be others."""
    for argument, one in tensors.items():
        if one is not None and one.dtype.category != 2:
            advice = "convert with .float()" if one.dtype.category < 2 else "work on .real and .imag"
            raise DTypeError(f"{name}: {argument} must be floating point, got {one.dtype.name}; {advice}")


# ---- softmax --------------------------------------------------------------------------------------------------------
softmax_op = op("softmax(Tensor input, int dim, dtype? dtype=None) -> Tensor")
log_softmax_op = op("log_softmax(Tensor input, int dim, dtype? dtype=None) -> Tensor")
softmax_backward = op("softmax_backward(Tensor grad, Tensor output, int dim) -> Tensor",
                      doc="output * (grad - sum(grad * output)) along `dim`.")
log_softmax_backward = op("log_softmax_backward(Tensor grad, Tensor output, int dim) -> Tensor",
                          doc="grad - exp(output) * sum(grad) along `dim`.")


def _softmax_meta(name: str) -> Any:
    def meta(source: Layout, dim: int, dtype: Any) -> Layout:
        normalize_dim(dim, source.ndim, name)
        if source.dtype.is_complex:
            floating_only(name, input=source)
        if dtype is not None:
            return source.with_dtype(as_dtype(dtype))
        return source.dense() if source.dtype.category >= 2 else source.with_dtype(tp.get_default_dtype())

    return meta


softmax_op.meta(_softmax_meta("softmax"))
log_softmax_op.meta(_softmax_meta("log_softmax"))


def _shifted(input: Tensor, dim: int, dtype: Any, name: str) -> Tensor:  # noqa: A002
    x = input.to(_softmax_meta(name)(input.layout, dim, dtype).dtype)
    return x - x.amax((dim,), True) if x.layout.numel else x


@softmax_op.decomposition
def _(input: Tensor, dim: int, dtype: Any) -> Tensor:  # noqa: A002
    powers = _shifted(input, dim, dtype, "softmax").exp()
    return powers / powers.sum(dim, True)


@log_softmax_op.decomposition
def _(input: Tensor, dim: int, dtype: Any) -> Tensor:  # noqa: A002
    x = _shifted(input, dim, dtype, "log_softmax")
    return x - x.exp().sum(dim, True).log()


softmax_op.vjp(input=lambda grad, output, dim: softmax_backward(grad, output, dim))
log_softmax_op.vjp(input=lambda grad, output, dim: log_softmax_backward(grad, output, dim))


@softmax_backward.meta
def _(grad: Layout, output: Layout, dim: int) -> Layout:
    return output.dense()


@softmax_backward.decomposition
def _(grad: Tensor, output: Tensor, dim: int) -> Tensor:
    product = grad * output
    return product - output * product.sum(dim, True)


@log_softmax_backward.meta
def _(grad: Layout, output: Layout, dim: int) -> Layout:
    return output.dense()


@log_softmax_backward.decomposition
def _(grad: Tensor, output: Tensor, dim: int) -> Tensor:
    return grad - output.exp() * grad.sum(dim, True)


for _made in (softmax_op, log_softmax_op):
    _made.samples(lambda make: iter([(make(3, 4), -1, None), (make(2, 3, 4), 1, None), (make(), 0, None)]))
for _made in (softmax_backward, log_softmax_backward):
    _made.samples(lambda make: iter([(make(3, 4), make(3, 4, low=0.1, high=1), 1)]))


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:  # noqa: A002
    """exp(input) / sum(exp(input)) along `dim`, computed without overflow.

    >>> import tensorplay as tp
    >>> tp.softmax(tp.tensor([1., 1.]), 0).tolist()
    [0.5, 0.5]
    """
    return softmax_op(input, _last_or(dim, "softmax", input), _dtype(_stacklevel, dtype))


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:  # noqa: A002
    """log(softmax(input)) along `dim`, computed without overflow or log(0).

    >>> import tensorplay as tp
    >>> tp.log_softmax(tp.tensor([0., 0.]), 0).exp().tolist()
    [0.5, 0.5]
    """
    return log_softmax_op(input, _last_or(dim, "log_softmax", input), _dtype(_stacklevel, dtype))


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:  # noqa: A002
    """softmax(-input) along `dim`.

    >>> import tensorplay as tp
    >>> tp.nn.functional.softmin(tp.tensor([0., 0.]), 0).tolist()
    [0.5, 0.5]
    """
    return softmax(-input, dim, _stacklevel, dtype)


def _dtype(third: Any, dtype: Any) -> Any:
    """`softmax(x, dim, dtype)` passes the dtype third; nn.functional's third argument is a stack level."""
    return dtype if third.__class__ is int or third is None else third


def _last_or(dim: int | None, name: str, input: Tensor) -> int:  # noqa: A002
    if dim is None:
        from tensorplay.library import ArgumentError

        raise ArgumentError(f"{name}: say along which dim, e.g. dim=-1 for the last of "
                            f"{shape_text(input.layout.shape)}")
    return dim


softmax.op, log_softmax.op = softmax_op.op, log_softmax_op.op  # type: ignore[attr-defined]

# ---- layer_norm -----------------------------------------------------------------------------------------------------
layer_norm_forward = op("layer_norm_forward(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, "
                        "float eps) -> (Tensor, Tensor, Tensor)", doc="(normalised, mean, 1 / standard deviation).")
layer_norm_backward = op("layer_norm_backward(Tensor grad, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, "
                         "int[] normalized_shape) -> (Tensor, Tensor, Tensor)",
                         doc="Gradients of input, weight and bias.")


def _check_normalized(name: str, source: Layout, normalized: Any, **others: Layout | None) -> tuple:
    floating_only(name, input=source)
    shape = as_shape(normalized)
    if not shape or source.shape[-len(shape):] != shape:
        raise ShapeError(f"{name}: normalized_shape {shape_text(shape)} must be the last sizes of "
                         f"input{shape_text(source.shape)}")
    for other_name, other in others.items():
        if other is not None and other.shape != shape:
            raise ShapeError(f"{name}: {other_name}{shape_text(other.shape)} must have the normalized_shape "
                             f"{shape_text(shape)}")
    return shape


def _statistics(source: Layout, shape: tuple) -> Layout:
    dtype = source.dtype if source.dtype is tp.float64 else tp.float32
    return layout(source.shape[:source.ndim - len(shape)], dtype, source.device)


@layer_norm_forward.meta
def _(input: Layout, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> tuple:  # noqa: A002
    shape = _check_normalized("layer_norm", input, normalized_shape, weight=weight, bias=bias)
    return input.dense(), _statistics(input, shape), _statistics(input, shape)


@layer_norm_forward.decomposition
def _(input: Tensor, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> tuple:  # noqa: A002
    shape = _check_normalized("layer_norm", input.layout, normalized_shape)
    dims = tuple(range(-len(shape), 0))
    x = input.to(_statistics(input.layout, shape).dtype)
    mean = x.mean(dims, True)
    centred = x - mean
    rstd = ((centred * centred).mean(dims, True) + eps).rsqrt()
    out = (centred * rstd).to(input.dtype)
    out = out if weight is None else out * weight
    leading = input.layout.shape[:input.layout.ndim - len(shape)]
    return out if bias is None else out + bias, mean.reshape(leading), rstd.reshape(leading)


def _layer_norm_vjp(grads: tuple, input: Tensor, weight: Any, outputs: tuple,  # noqa: A002
                    normalized_shape: Any, needs: tuple) -> Any:
    grad, grad_mean, grad_rstd = grads
    mean, rstd = outputs[1], outputs[2]
    grad = tp.zeros_like(input) if grad is None else grad
    dinput, dweight, dbias = layer_norm_backward(grad, input, mean, rstd, weight, normalized_shape)
    if grad_mean is not None or grad_rstd is not None:  # only a second derivative asks for these
        dinput = dinput + _statistics_grad(grad_mean, grad_rstd, input, mean, rstd, as_shape(normalized_shape))
    return dinput, dweight if needs[1] else None, dbias if needs[2] else None


def _statistics_grad(grad_mean: Any, grad_rstd: Any, input: Tensor, mean: Any, rstd: Tensor, shape: tuple) -> Tensor:  # noqa: A002
    """d mean / d input is 1/n, d rstd / d input is -rstd^3 (input - mean) / n."""
    wide = rstd.layout.shape + (1,) * len(shape)
    n = 1
    for size in shape:
        n *= size
    total = tp.zeros_like(input)
    if grad_mean is not None:
        total = total + grad_mean.reshape(wide) / n
    if grad_rstd is not None:
        centred = input if mean is None else input - mean.reshape(wide)
        total = total - (grad_rstd * rstd * rstd * rstd).reshape(wide) * centred / n
    return total


layer_norm_forward.vjp(_layer_norm_vjp)


@layer_norm_backward.meta
def _(grad: Layout, input: Layout, mean: Layout, rstd: Layout, weight: Any, normalized_shape: Any) -> tuple:  # noqa: A002
    shape = as_shape(normalized_shape)
    return input.dense(), input.with_shape(shape), input.with_shape(shape)


@layer_norm_backward.decomposition
def _(grad: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, weight: Any, normalized_shape: Any) -> tuple:  # noqa: A002
    """Written with the saved statistics replaced by their formula, so that a second derivative is right too."""
    shape = as_shape(normalized_shape)
    dims, wide = tuple(range(-len(shape), 0)), mean.layout.shape + (1,) * len(shape)
    rstd = rstd.reshape(wide)
    normal = (input.to(rstd.dtype) - mean.reshape(wide)) * rstd
    scaled = grad if weight is None else grad * weight
    dinput = (scaled - scaled.mean(dims, True) - normal * (scaled * normal).mean(dims, True)) * rstd
    rows = tuple(range(input.layout.ndim - len(shape)))
    product = grad * normal
    return (dinput.to(input.dtype), (product.sum(rows) if rows else product).to(input.dtype),
            grad.sum(rows) if rows else grad.clone())


def layer_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None,  # noqa: A002
               bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """(input - mean) / sqrt(variance + eps) over the last dimensions, times weight, plus bias (Ba et al. 2016).

    >>> import tensorplay as tp
    >>> tp.layer_norm(tp.tensor([[1., 3.]]), (2,)).round().tolist()
    [[-1.0, 1.0]]
    """
    return layer_norm_forward(input, as_shape(normalized_shape), weight, bias, eps)[0]


# ---- rms_norm -------------------------------------------------------------------------------------------------------
rms_norm_forward = op("rms_norm_forward(Tensor input, int[] normalized_shape, Tensor? weight, float eps) "
                      "-> (Tensor, Tensor)", doc="(normalised, 1 / root mean square).")
rms_norm_backward = op("rms_norm_backward(Tensor grad, Tensor input, Tensor rstd, Tensor? weight, "
                       "int[] normalized_shape) -> (Tensor, Tensor)", doc="Gradients of input and weight.")


@rms_norm_forward.meta
def _(input: Layout, normalized_shape: Any, weight: Any, eps: float) -> tuple:  # noqa: A002
    shape = _check_normalized("rms_norm", input, normalized_shape, weight=weight)
    return input.dense(), _statistics(input, shape)


@rms_norm_forward.decomposition
def _(input: Tensor, normalized_shape: Any, weight: Any, eps: float) -> tuple:  # noqa: A002
    shape = _check_normalized("rms_norm", input.layout, normalized_shape)
    x = input.to(_statistics(input.layout, shape).dtype)
    rstd = ((x * x).mean(tuple(range(-len(shape), 0)), True) + eps).rsqrt()
    out = (x * rstd).to(input.dtype)
    return out if weight is None else out * weight, rstd.reshape(input.layout.shape[:input.layout.ndim - len(shape)])


def _rms_norm_vjp(grads: tuple, input: Tensor, weight: Any, outputs: tuple, normalized_shape: Any, needs: tuple) -> Any:  # noqa: A002
    grad = tp.zeros_like(input) if grads[0] is None else grads[0]
    dinput, dweight = rms_norm_backward(grad, input, outputs[1], weight, normalized_shape)
    if grads[1] is not None:
        dinput = dinput + _statistics_grad(None, grads[1], input, None, outputs[1], as_shape(normalized_shape))
    return dinput, dweight if needs[1] else None


rms_norm_forward.vjp(_rms_norm_vjp)


@rms_norm_backward.meta
def _(grad: Layout, input: Layout, rstd: Layout, weight: Any, normalized_shape: Any) -> tuple:  # noqa: A002
    return input.dense(), input.with_shape(as_shape(normalized_shape))


@rms_norm_backward.decomposition
def _(grad: Tensor, input: Tensor, rstd: Tensor, weight: Any, normalized_shape: Any) -> tuple:  # noqa: A002
    shape = as_shape(normalized_shape)
    rstd = rstd.reshape(rstd.layout.shape + (1,) * len(shape))
    normal = input.to(rstd.dtype) * rstd
    scaled = grad if weight is None else grad * weight
    dinput = (scaled - normal * (scaled * normal).mean(tuple(range(-len(shape), 0)), True)) * rstd
    product = grad * normal
    rows = tuple(range(input.layout.ndim - len(shape)))
    return dinput.to(input.dtype), (product.sum(rows) if rows else product).to(input.dtype)


def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:  # noqa: A002
    """input / sqrt(mean(input ** 2) + eps) over the last dimensions, times weight (Zhang and Sennrich 2019).

    >>> import tensorplay as tp
    >>> tp.rms_norm(tp.tensor([[3., 3.]]), (2,)).round().tolist()
    [[1.0, 1.0]]

    eps is the dtype's machine epsilon unless given.
    """
    eps = tp.finfo(input.dtype).eps if eps is None else eps
    return rms_norm_forward(input, as_shape(normalized_shape), weight, eps)[0]


@layer_norm_forward.samples
def _(make: Any) -> Iterator:
    yield make(3, 8), (8,), make(8), make(8), 1e-5
    yield make(2, 3, 4), (3, 4), None, None, 1e-5


@layer_norm_backward.samples
def _(make: Any) -> Iterator:
    yield make(3, 8), make(3, 8), make(3), make(3, low=0.5, high=2), make(8), (8,)
    yield make(2, 3, 4), make(2, 3, 4), make(2), make(2, low=0.5, high=2), None, (3, 4)


@rms_norm_backward.samples
def _(make: Any) -> Iterator:
    yield make(3, 8), make(3, 8), make(3, low=0.5, high=2), make(8), (8,)
    yield make(2, 3, 4), make(2, 3, 4), make(2, 3, low=0.5, high=2), None, (4,)


@rms_norm_forward.samples
def _(make: Any) -> Iterator:
    yield make(3, 8), (8,), make(8), 1e-6
    yield make(2, 3, 4), (4,), None, 1e-6


FUNCTIONS = ("softmax", "log_softmax", "layer_norm", "rms_norm")
NN_FUNCTIONS = ("softmax", "log_softmax", "softmin", "layer_norm", "rms_norm")
METHODS = ("softmax", "log_softmax")
