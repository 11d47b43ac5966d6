"""Convolutions of one, two and three dimensions, and transposed ones, which are the gradient of a convolution.

`conv` slides a kernel `weight` [out, in / groups, k...] over `input` [batch, in, size...]; it and its two gradients are
bilinear, so that each is the gradient of the others.
"""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import (
    PRIMITIVE,
    ArgumentError,
    DTypeError,
    Layout,
    ShapeError,
    Tensor,
    as_int,
    layout,
    op,
    shape_text,
)

from .arithmetic import conjugate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

GEOMETRY = "int[] stride, int[] padding, int[] dilation, int groups"
conv = op(f"conv(Tensor input, Tensor weight, Tensor? bias, {GEOMETRY}) -> Tensor", tags=(PRIMITIVE,),
          doc="The convolution of any number of spatial dimensions; see nn.functional.conv2d.")
conv_backward_input = op(f"conv_backward_input(Tensor grad, Tensor weight, int[] input_shape, {GEOMETRY}) -> Tensor",
                         doc="Every window of `input_shape` gets its element of `grad` times the kernel, added up.")
conv_backward_weight = op(f"conv_backward_weight(Tensor grad, Tensor input, int[] weight_shape, {GEOMETRY}) -> Tensor",
                          doc="The windows of `input`, each times its element of `grad`, added up.")


# ---- shapes ---------------------------------------------------------------------------------------------------------
def window_counts(name: str, input: tuple, weight: tuple, stride: Any, padding: Any, dilation: Any) -> tuple:  # noqa: A002
    """How often the kernel fits along each spatial dimension."""
    counts = []
    for i, (size, k, s, p, d) in enumerate(zip(input[2:], weight[2:], stride, padding, dilation)):
        if s < 1 or d < 1 or p < 0:
            raise ArgumentError(f"{name}: stride and dilation must be positive and padding not negative, got "
                                f"stride={tuple(stride)}, padding={tuple(padding)}, dilation={tuple(dilation)}")
        reach = d * (k - 1) + 1
        if size + 2 * p < reach:
            raise ShapeError(f"{name}: a kernel of size {k}{f' with dilation {d}' if d > 1 else ''} does not fit "
                             f"dimension {i + 2} of input{shape_text(input)}, padded to {size + 2 * p}")
        counts.append((size + 2 * p - reach) // s + 1)
    return tuple(counts)


def _check(name: str, input: Any, weight: Any, groups: int, geometry: tuple) -> None:  # noqa: A002
    spatial = len(input) - 2
    if spatial < 1 or len(weight) != len(input):
        raise ShapeError(f"{name}: input{shape_text(input)} and weight{shape_text(weight)} must have the same number "
                         f"of dimensions: [batch, channels, size...] and [out, in / groups, kernel size...]")
    if any([len(one) != spatial for one in geometry]):
        raise ArgumentError(f"{name}: stride, padding and dilation need {spatial} numbers each, got "
                            f"{', '.join([str(tuple(one)) for one in geometry])}")
    if groups < 1 or weight[0] % groups or input[1] != weight[1] * groups:
        raise ShapeError(f"{name}: input{shape_text(input)} has {input[1]} channels and weight{shape_text(weight)} "
                         f"takes {weight[1]} in each of {groups} groups; the channels out, {weight[0]}, must be a "
                         f"multiple of the groups")


def _same_dtype(name: str, first: Layout, second: Layout, names: tuple) -> None:
    if first.dtype is not second.dtype:
        raise DTypeError(f"{name}: {names[0]} is {first.dtype.name} but {names[1]} is {second.dtype.name}; convert one "
                         f"of them")


@conv.meta
def _(input: Layout, weight: Layout, bias: Layout | None, stride: Any, padding: Any,  # noqa: A002
      dilation: Any, groups: int) -> Layout:
    _same_dtype("conv", input, weight, ("input", "weight"))
    _check("conv", input.shape, weight.shape, groups, (stride, padding, dilation))
    if bias is not None:
        _same_dtype("conv", input, bias, ("input", "bias"))
        if bias.shape != weight.shape[:1]:
            raise ShapeError(f"conv: bias{shape_text(bias.shape)} must have one number for each of the "
                             f"{weight.shape[0]} channels of weight{shape_text(weight.shape)}")
    counts = window_counts("conv", input.shape, weight.shape, stride, padding, dilation)
    return layout((input.shape[0], weight.shape[0], *counts), input.dtype, input.device)


@conv_backward_input.meta
def _(grad: Layout, weight: Layout, input_shape: Any, stride: Any, padding: Any, dilation: Any,
      groups: int) -> Layout:
    shape = tuple(input_shape)
    _same_dtype("conv_backward_input", grad, weight, ("grad", "weight"))
    _check("conv_backward_input", shape, weight.shape, groups, (stride, padding, dilation))
    _check_grad("conv_backward_input", grad, shape, weight.shape, stride, padding, dilation)
    return grad.with_shape(shape)


@conv_backward_weight.meta
def _(grad: Layout, input: Layout, weight_shape: Any, stride: Any, padding: Any, dilation: Any,  # noqa: A002
      groups: int) -> Layout:
    shape = tuple(weight_shape)
    _same_dtype("conv_backward_weight", grad, input, ("grad", "input"))
    _check("conv_backward_weight", input.shape, shape, groups, (stride, padding, dilation))
    _check_grad("conv_backward_weight", grad, input.shape, shape, stride, padding, dilation)
    return grad.with_shape(shape)


def _check_grad(name: str, grad: Layout, input: tuple, weight: tuple, *geometry: Any) -> None:  # noqa: A002
    wanted = (input[0], weight[0], *window_counts(name, input, weight, *geometry))
    if grad.shape != wanted:
        raise ShapeError(f"{name}: grad{shape_text(grad.shape)} should have the shape of the convolution's result, "
                         f"{shape_text(wanted)}")


# ---- by windows and matmul ------------------------------------------------------------------------------------------
class _Windows:
    """Where the kernel's positions lie in the padded input, as one strided view
    [batch, groups, in / groups, windows..., kernel...]."""

    def __init__(self, input: tuple, weight: tuple, stride: Any, padding: Any, dilation: Any, groups: int) -> None:  # noqa: A002
        counts = window_counts("conv", input, weight, stride, padding, dilation)
        self.spatial = len(counts)
        self.padded = (*input[:2], *[size + 2 * p for size, p in zip(input[2:], padding)])
        self.inside = tuple([("slice", None, None, None)] * 2
                            + [("slice", p, p + size, None) for p, size in zip(padding, input[2:])])
        self.size = (input[0], groups, weight[1], *counts, *weight[2:])
        steps = [1]
        for n in self.padded[:0:-1]:
            steps.insert(0, steps[0] * n)
        space = steps[2:]
        self.stride = (steps[0], weight[1] * steps[1], steps[1], *[s * a for s, a in zip(stride, space)],
                       *[d * a for d, a in zip(dilation, space)])
        n = self.spatial  # columns: [groups, in / groups and kernel, batch and windows]
        self.order = (1, 2, *range(3 + n, 3 + 2 * n), 0, *range(3, 3 + n))
        self.moved = tuple([self.size[d] for d in self.order])
        self.columns = (groups, _product(self.moved[1:2 + n]), _product(self.moved[2 + n:]))
        self.out_order = (2, 0, 1, *range(3, 3 + n))  # [groups, out / groups, batch, windows...] as the result has it
        self.grouped = (groups, weight[0] // groups, input[0], *counts)
        self.result = (input[0], weight[0], *counts)

    def of(self, input: Tensor) -> Tensor:  # noqa: A002
        """The columns of an input."""
        if self.padded != input.layout.shape:
            input = tp.place_view(input, "index", (self.inside,), self.padded)  # noqa: A001
        windows = tp.as_strided(input.contiguous(), self.size, self.stride)
        return windows.permute(self.order).reshape(self.columns)

    def added(self, columns: Tensor) -> Tensor:
        """The input whose windows the columns are, overlapping ones added up."""
        back = tuple([self.order.index(d) for d in range(len(self.order))])
        windows = columns.reshape(self.moved).permute(back).contiguous()
        padded = tp.ops.place_windows(windows, "as_strided", (self.size, self.stride, 0), self.padded)
        return tp.index_view(padded, self.inside).contiguous()

    def rows(self, grad: Tensor) -> Tensor:
        """[groups, out / groups, batch and windows] from a result."""
        groups, out = self.grouped[:2]
        split = grad.reshape((self.result[0], groups, out, *self.result[2:]))
        return split.movedim(0, 2).reshape((groups, out, self.columns[2]))


def _product(sizes: tuple) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


@conv.decomposition
def _(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any,  # noqa: A002
      dilation: Any, groups: int) -> Tensor:
    conv.op.rule("meta")(input.layout, weight.layout, None if bias is None else bias.layout, stride, padding, dilation,
                         groups)
    windows = _Windows(input.layout.shape, weight.layout.shape, stride, padding, dilation, groups)
    kernels = weight.reshape((groups, weight.layout.shape[0] // groups, windows.columns[1]))
    product = tp.matmul(kernels, windows.of(input)).reshape(windows.grouped)
    result = product.permute(windows.out_order).reshape(windows.result)
    return result if bias is None else result + bias.reshape((-1,) + (1,) * windows.spatial)


@conv_backward_input.decomposition
def _(grad: Tensor, weight: Tensor, input_shape: Any, stride: Any, padding: Any, dilation: Any,
      groups: int) -> Tensor:
    conv_backward_input.op.rule("meta")(grad.layout, weight.layout, input_shape, stride, padding, dilation, groups)
    windows = _Windows(tuple(input_shape), weight.layout.shape, stride, padding, dilation, groups)
    kernels = weight.reshape((groups, weight.layout.shape[0] // groups, windows.columns[1]))
    return windows.added(tp.matmul(kernels.transpose(1, 2), windows.rows(grad)))


@conv_backward_weight.decomposition
def _(grad: Tensor, input: Tensor, weight_shape: Any, stride: Any, padding: Any, dilation: Any,  # noqa: A002
      groups: int) -> Tensor:
    conv_backward_weight.op.rule("meta")(grad.layout, input.layout, weight_shape, stride, padding, dilation, groups)
    windows = _Windows(input.layout.shape, tuple(weight_shape), stride, padding, dilation, groups)
    return tp.matmul(windows.rows(grad), windows.of(input).transpose(1, 2)).reshape(tuple(weight_shape))


# ---- gradients ------------------------------------------------------------------------------------------------------
conv.vjp(input=lambda grad, weight, input_layout, stride, padding, dilation, groups: conv_backward_input(
             grad, conjugate(weight), input_layout.shape, stride, padding, dilation, groups),
         weight=lambda grad, input, weight_layout, stride, padding, dilation, groups: conv_backward_weight(
             grad, conjugate(input), weight_layout.shape, stride, padding, dilation, groups),
         bias=lambda grad: grad.sum((0, *range(2, grad.layout.ndim))))
conv_backward_input.vjp(
    grad=lambda grad, weight, stride, padding, dilation, groups: conv(
        grad, conjugate(weight), None, stride, padding, dilation, groups),
    weight=lambda grad, grad_argument, weight_layout, stride, padding, dilation, groups: conv_backward_weight(
        conjugate(grad_argument), grad, weight_layout.shape, stride, padding, dilation, groups))
conv_backward_weight.vjp(
    grad=lambda grad, input, stride, padding, dilation, groups: conv(
        conjugate(input), grad, None, stride, padding, dilation, groups),
    input=lambda grad, grad_argument, input_layout, stride, padding, dilation, groups: conv_backward_input(
        conjugate(grad_argument), grad, input_layout.shape, stride, padding, dilation, groups))

_GEOMETRIES = (  # input, weight, stride, padding, dilation, groups
    ((2, 4, 7), (6, 2, 3), (2,), (1,), (1,), 2),
    ((1, 2, 5, 6), (3, 2, 2, 3), (1, 2), (0, 1), (2, 1), 1),
    ((1, 1, 3, 4, 3), (2, 1, 2, 2, 1), (1, 1, 2), (1, 0, 0), (1, 2, 1), 1),
)


def _result(shape: tuple, weight: tuple, stride: tuple, padding: tuple, dilation: tuple) -> tuple:
    return (shape[0], weight[0], *window_counts("conv", shape, weight, stride, padding, dilation))


@conv.samples
def _(make: Any) -> Iterator:
    for shape, weight, *geometry in _GEOMETRIES:
        yield make(*shape), make(*weight), make(weight[0]), *geometry
    yield make(2, 3, 4, 4), make(4, 3, 1, 1), None, (1, 1), (0, 0), (1, 1), 1


@conv_backward_input.samples
def _(make: Any) -> Iterator:
    for shape, weight, *geometry in _GEOMETRIES:
        yield make(*_result(shape, weight, *geometry[:3])), make(*weight), shape, *geometry


@conv_backward_weight.samples
def _(make: Any) -> Iterator:
    for shape, weight, *geometry in _GEOMETRIES:
        yield make(*_result(shape, weight, *geometry[:3])), make(*shape), weight, *geometry


# ---- what users call ------------------------------------------------------------------------------------------------
def _each(name: str, what: str, value: Any, spatial: int) -> tuple:
    """A number for every spatial dimension from one number or a sequence."""
    numbers = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if len(numbers) not in (1, spatial):
        raise ArgumentError(f"{name}: {what} needs one number or {spatial}, got {value!r}")
    return tuple([as_int(one, f"{name}: {what}") for one in numbers]) * (1 if len(numbers) == spatial else spatial)


def _batched(name: str, input: Tensor, spatial: int) -> Tensor:  # noqa: A002
    if input.layout.ndim not in (spatial + 1, spatial + 2):
        raise ShapeError(f"{name}: input needs {spatial + 1} dimensions (channels, size...) or one more for the batch, "
                         f"got input{shape_text(input.layout.shape)}")
    return input if input.layout.ndim == spatial + 2 else input.unsqueeze(0)


def _same_padding(name: str, input: Tensor, weight: Tensor, stride: tuple, dilation: tuple) -> tuple:  # noqa: A002
    """(input, padding) with which the result has the input's size. Where the two sides need unlike padding, the right
    one, which has one more, gets it here."""
    if any([s != 1 for s in stride]):
        raise ArgumentError(f"{name}: padding='same' goes with stride 1 only, got {stride}")
    total = [d * (k - 1) for d, k in zip(dilation, weight.layout.shape[2:])]
    if any([t % 2 for t in total]):
        shape = input.layout.shape
        wide = (*shape[:2], *[n + t % 2 for n, t in zip(shape[2:], total)])
        input = tp.place_view(input, "index", (tuple([("slice", 0, n, None) for n in shape]),), wide)  # noqa: A001
    return input, tuple([t // 2 for t in total])


def _convolution(spatial: int) -> Any:
    name = f"conv{spatial}d"

    def convolve(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1,  # noqa: A002
                 padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Tensor:
        x = _batched(name, input, spatial)
        strides, dilations = _each(name, "stride", stride, spatial), _each(name, "dilation", dilation, spatial)
        if isinstance(padding, str):
            if padding not in ("valid", "same"):
                raise ArgumentError(f"{name}: padding must be a number, 'valid' or 'same', got {padding!r}")
            x, pads = _same_padding(name, x, weight, strides, dilations) if padding == "same" else (x, (0,) * spatial)
        else:
            pads = _each(name, "padding", padding, spatial)
        result = conv(x, weight, bias, strides, pads, dilations, groups)
        return result if input.layout.ndim == spatial + 2 else result.squeeze(0)

    sizes, ones = ", ".join(["size"] * spatial), ", ".join(["1"] * (spatial + 1))
    convolve.__name__ = convolve.__qualname__ = name
    convolve.__doc__ = f"""The {spatial}-dimensional convolution: input [batch, in, {sizes}] (or without batch), weight
    [out, in / groups, kernel sizes], bias [out].

    >>> import tensorplay as tp
    >>> tp.nn.functional.{name}(tp.ones({ones}, 4), tp.ones({ones}, 2)).reshape(-1).tolist()
    [2.0, 2.0, 2.0]

    stride, padding and dilation are numbers, or one for each dimension; padding 'same' keeps the size. Raises
    ShapeError for channels that do not go together or a kernel larger than the padded input.
    """
    return convolve


def _transposed(spatial: int) -> Any:
    name = f"conv_transpose{spatial}d"

    def convolve(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1,  # noqa: A002
                 padding: Any = 0, output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Tensor:
        x = _batched(name, input, spatial)
        geometry = [_each(name, what, value, spatial) for what, value in
                    (("stride", stride), ("padding", padding), ("dilation", dilation),
                     ("output_padding", output_padding))]
        result = _spread(name, x, weight, *geometry, groups)
        if bias is not None:
            result = result + bias.reshape((-1,) + (1,) * spatial)
        return result if input.layout.ndim == spatial + 2 else result.squeeze(0)

    ones = ", ".join(["1"] * (spatial + 1))
    convolve.__name__ = convolve.__qualname__ = name
    convolve.__doc__ = f"""The {spatial}-dimensional transposed convolution, the gradient of `conv{spatial}d` with
    respect to its input: weight [in, out / groups, kernel sizes].

    >>> import tensorplay as tp
    >>> tp.nn.functional.{name}(tp.ones({ones}, 2), tp.ones({ones}, 2)).reshape(-1).tolist()
    [1.0, 2.0, 1.0]

    A size n becomes (n - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1.
    """
    return convolve


def _spread(name: str, x: Tensor, weight: Tensor, stride: tuple, padding: tuple, dilation: tuple, extra: tuple,
            groups: int) -> Tensor:
    shape, kernel = x.layout.shape, weight.layout.shape
    if len(kernel) != len(shape) or shape[1] != kernel[0]:
        raise ShapeError(f"{name}: input{shape_text(shape)} and weight{shape_text(kernel)} do not go together: weight "
                         f"is [in, out / groups, kernel sizes] with in = {shape[1]}")
    if any([e >= max(s, d) for e, s, d in zip(extra, stride, dilation)]):
        raise ArgumentError(f"{name}: output_padding {extra} must be smaller than stride {stride} or dilation "
                            f"{dilation}")
    sizes = [(n - 1) * s - 2 * p + d * (k - 1) + 1
             for n, s, p, d, k in zip(shape[2:], stride, padding, dilation, kernel[2:])]
    if any([n + e < 0 for n, e in zip(sizes, extra)]):
        raise ShapeError(f"{name}: the result would have the sizes {[n + e for n, e in zip(sizes, extra)]}; use less "
                         f"padding")
    lead = (shape[0], kernel[1] * groups)
    whole = (*lead, *[n + e for n, e in zip(sizes, extra)])
    if all([e < s for e, s in zip(extra, stride)]):
        return conv_backward_input(x, weight, whole, stride, padding, dilation, groups)
    # the result reaches into what the padding cuts off, and beyond it: cut it out of the unpadded one
    full = (*lead, *[n + 2 * p for n, p in zip(sizes, padding)])
    result = conv_backward_input(x, weight, full, stride, (0,) * len(sizes), dilation, groups)
    for i, p in enumerate(padding):
        result = result.narrow(i + 2, p, min(full[i + 2] - p, whole[i + 2]))
    return tp.place_view(result, "index", (tuple([("slice", 0, n, None) for n in result.layout.shape]),), whole)


conv1d, conv2d, conv3d = [_convolution(n) for n in (1, 2, 3)]
conv_transpose1d, conv_transpose2d, conv_transpose3d = [_transposed(n) for n in (1, 2, 3)]

FUNCTIONS = ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
NN_FUNCTIONS = FUNCTIONS
