"""Copies, casts and moves between devices: what reads or writes memory without computing."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import (
    NONDIFFERENTIABLE,
    PRIMITIVE,
    RETYPES,
    VIEW,
    ArgumentError,
    Layout,
    ShapeError,
    Tensor,
    as_device,
    as_dtype,
    bump_version,
    copy_into,
    expanded,
    layout,
    make_tensor,
    op,
    shape_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# ---- copy_strided ---------------------------------------------------------------------------------------------------
copy_strided = op("copy_strided(Tensor source) -> Tensor", tags=(PRIMITIVE,),
                  doc="A contiguous copy. Its kernel writes into `out` of any strides: every copy on a device is this.")
copy_strided.vjp(source=lambda grad: grad)


@copy_strided.meta
def _(source: Layout) -> Layout:
    return source.dense()


@copy_strided.jvp
def _(args: tuple, tangents: tuple, output: Tensor) -> Tensor:
    return copy_strided(tangents[0])


@copy_strided.vmap
def _(args: tuple, in_dims: tuple) -> tuple:
    return copy_strided(args[0]), in_dims[0]


@copy_strided.samples
def _(make: Any) -> Iterator:
    yield (make(3, 4),)
    yield (make(2, 3, 4).transpose(0, 2),)


def in_memory_format(input: Tensor, memory_format: Any) -> Tensor:  # noqa: A002
    """The tensor with its elements in another order in memory: row-major, or with the channels (dimension 1) last."""
    if memory_format in (None, tp.preserve_format):
        return input
    if memory_format == tp.contiguous_format:
        return contiguous(input)
    dims = {tp.channels_last: 4, tp.channels_last_3d: 5}.get(memory_format)
    if dims != input.layout.ndim:
        raise ArgumentError(f"memory_format={memory_format!r} does not go with a tensor of {input.layout.ndim} "
                            f"dimensions; expected tp.contiguous_format, tp.preserve_format, tp.channels_last (4 "
                            f"dimensions) or tp.channels_last_3d (5)")
    return contiguous(input.movedim(1, -1)).movedim(-1, 1)


def contiguous(input: Tensor, memory_format: Any = None) -> Tensor:  # noqa: A002
    """The tensor itself if its elements lie in row-major order without gaps, else a copy that does.

    >>> import tensorplay as tp
    >>> tp.ones(2, 3).t().contiguous().stride()
    (2, 1)
    """
    if memory_format is not None and memory_format != tp.contiguous_format:
        return in_memory_format(input, memory_format)
    return input if input.layout.contiguous else copy_strided(input)


def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:  # noqa: A002
    """A copy with the same values; gradients flow through it.

    >>> import tensorplay as tp
    >>> x = tp.ones(2); y = x.clone(); y += 1; x.tolist()
    [1.0, 1.0]
    """
    copied = copy_strided(input)
    return copied if memory_format is None else in_memory_format(copied, memory_format)


# ---- cast -----------------------------------------------------------------------------------------------------------
cast = op("cast(Tensor input, dtype dtype) -> Tensor", tags=(PRIMITIVE,),
          doc="Values converted to another dtype. Floats are truncated for integers, non-zero is True for bool.")
cast.vjp(input=lambda grad, input_layout: cast(grad, input_layout.dtype))


@cast.meta
def _(input: Layout, dtype: Any) -> Layout:  # noqa: A002
    return input.with_dtype(as_dtype(dtype))


@cast.samples
def _(make: Any) -> Iterator:
    yield make(3, 4), tp.float64


# ---- bitcast --------------------------------------------------------------------------------------------------------
bitcast_view = op("bitcast(Tensor input, dtype dtype) -> Tensor", tags=(PRIMITIVE, VIEW, RETYPES, NONDIFFERENTIABLE),
                  doc="The same memory read as another dtype; the last dimension grows or shrinks with the size.")


@bitcast_view.meta
def _(input: Layout, dtype: Any) -> tuple:  # noqa: A002
    target = as_dtype(dtype)
    old, new = input.dtype.itemsize, target.itemsize
    if old == new:
        return layout(input.shape, target, input.device, input.strides), 0
    if not input.ndim:
        raise ShapeError(f"view: a 0-d {input.dtype.name} tensor cannot be read as {target.name}, which has another "
                         f"size; give it a dimension first, x.reshape(1)")
    shape, strides = input.shape[:-1], input.strides[:-1]
    if input.strides[-1] != 1 or input.shape[-1] * old % new or any([step * old % new for step in strides]):
        raise ShapeError(f"view: {input.dtype.name}{shape_text(input.shape)} with strides {input.strides} cannot be "
                         f"read as {target.name}: the last dimension must lie without gaps, and its bytes and all "
                         f"steps must be multiples of {new}; use x.contiguous() or another size")
    return layout((*shape, input.shape[-1] * old // new), target, input.device,
                  (*[step * old // new for step in strides], 1)), 0


@bitcast_view.samples
def _(make: Any) -> Iterator:
    yield make(3, 4, dtype=tp.float32), tp.int32
    yield make.integers((2, 3), -9, 9, tp.int64), tp.float64


def bitcast(input: Tensor, dtype: Any) -> Tensor:  # noqa: A002
    """What `x.view(dtype)` does: the same memory, read as numbers of another dtype."""
    size = as_dtype(dtype).itemsize
    if input.offset * input.layout.dtype.itemsize % size:
        raise ShapeError(f"view: the first element lies {input.offset} elements of {input.layout.dtype.name} into its "
                         f"memory, which is no multiple of {size} bytes; use x.clone()")
    return bitcast_view(input, dtype)


# ---- device_put -----------------------------------------------------------------------------------------------------
device_put = op("device_put(Tensor input, device device) -> Tensor", tags=(PRIMITIVE,),
                doc="A copy on another device.")
device_put.vjp(input=lambda grad, input_layout: device_put(grad, input_layout.device))


@device_put.decomposition
def _(input: Tensor, device: Any) -> Tensor:  # noqa: A002
    source = contiguous(input).layout
    input = contiguous(input)  # noqa: A001
    target = as_device(device)
    result = layout(source.shape, source.dtype, target)
    driver = target.driver
    driver.check_dtype(source.dtype)
    storage = driver.allocate(result.nbytes, target)
    if target.type != "meta":
        size = source.dtype.itemsize
        data = memoryview(source.device.driver.copy_to_host(input.storage)).cast("B")
        driver.copy_from_host(storage, data[input.offset * size:(input.offset + source.numel) * size])
    return make_tensor(storage, 0, result)


@device_put.samples
def _(make: Any) -> Iterator:
    yield make(3, 4), make.device


def to(input: Tensor, *args: Any, device: Any = None, dtype: Any = None, copy: bool = False,  # noqa: A002
       non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    """The tensor with another dtype or on another device; itself if nothing changes and `copy` is False.

    >>> import tensorplay as tp
    >>> tp.ones(2).to(tp.int64).tolist(), tp.ones(2).to('meta').device
    ([1, 1], device(type='meta'))

    `x.to(dtype)`, `x.to(device)`, `x.to(device, dtype)` and `x.to(other_tensor)` all work.
    """
    for arg in args:
        if isinstance(arg, Tensor):
            device, dtype = arg.device, arg.dtype
        elif isinstance(arg, tp.dtype) or arg in (bool, int, float, complex):
            dtype = arg
        elif isinstance(arg, (str, tp.device)):
            device = arg
        elif isinstance(arg, bool):
            copy = copy or arg
        elif arg is not None:
            raise ArgumentError(f"to: expected a dtype, a device or a tensor, got {arg!r}")
    result = input
    if device is not None and as_device(device) is not input.layout.device:
        result = device_put(result, as_device(device))
    if dtype is not None and as_dtype(dtype) is not input.layout.dtype:
        result = cast(result, as_dtype(dtype))
    return copy_strided(input) if copy and result is input else result


def type_as(input: Tensor, other: Tensor) -> Tensor:  # noqa: A002
    """The tensor with the dtype of `other`.

    >>> import tensorplay as tp
    >>> tp.ones(2).type_as(tp.tensor([1])).dtype
    tensorplay.int64
    """
    return to(input, other.dtype)


def cpu(input: Tensor) -> Tensor:  # noqa: A002
    """The tensor on the CPU; itself if it is there.

    >>> import tensorplay as tp
    >>> tp.ones(2).cpu().device
    device(type='cpu')
    """
    return to(input, device="cpu")


def _conversion(name: str, dtype: Any) -> Any:
    def convert(input: Tensor, memory_format: Any = None) -> Tensor:  # noqa: A002
        converted = input if input.layout.dtype is dtype else cast(input, dtype)
        return converted if memory_format is None else in_memory_format(converted, memory_format)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"""The tensor as {dtype.name}; itself if it is already.

    >>> import tensorplay as tp
    >>> tp.tensor([0, 1]).{name}().dtype
    {dtype!r}
    """
    return convert


to_float, to_double, to_half = _conversion("float", tp.float32), _conversion("double", tp.float64), \
    _conversion("half", tp.float16)
to_bfloat16, to_bool, to_byte = _conversion("bfloat16", tp.bfloat16), _conversion("bool", tp.bool), \
    _conversion("byte", tp.uint8)
to_char, to_short, to_int, to_long = _conversion("char", tp.int8), _conversion("short", tp.int16), \
    _conversion("int", tp.int32), _conversion("long", tp.int64)
to_cfloat, to_cdouble = _conversion("cfloat", tp.complex64), _conversion("cdouble", tp.complex128)

# ---- writing --------------------------------------------------------------------------------------------------------
write_ = op("write_(Tensor(a!) target, Tensor value) -> ()", tags=(NONDIFFERENTIABLE,),
            doc="Copy a value into the target's memory. Every in-place form ends here; autograd is above it.")


@write_.decomposition
def _(target: Tensor, value: Tensor) -> None:
    copy_into(target, value)
    bump_version(target, "copy_")


@write_.samples
def _(make: Any) -> Iterator:
    yield make(3, 4), make(3, 4)
    yield make(3, 4), make(4)
    yield make(3, 4), make.integers((3, 1), 0, 9)


copy = op("copy(Tensor input, Tensor source) -> Tensor",
          doc="`source` with the shape and dtype of `input`: the functional form of `input.copy_(source)`.")
copy.vjp(input=lambda grad: grad * 0, source=lambda grad: grad)


@copy.meta
def _(input: Layout, source: Layout) -> Layout:  # noqa: A002
    pad = input.ndim - source.ndim
    if pad < 0 or any([size not in (1, wanted) for size, wanted in zip(source.shape, input.shape[pad:])]):
        raise ShapeError(f"copy_: source{shape_text(source.shape)} does not broadcast to "
                         f"input{shape_text(input.shape)}")
    return input.dense()


@copy.decomposition
def _(input: Tensor, source: Tensor) -> Tensor:  # noqa: A002
    target = input.layout
    copy.op.rule("meta")(target, source.layout)
    return copy_strided(expanded(to(source.detach(), target.device, target.dtype), target.shape))


@copy.samples
def _(make: Any) -> Iterator:
    yield make(3, 4), make(3, 4)
    yield make(3, 4), make(4)


def copy_(input: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:  # noqa: A002
    """Copy the values of `source`, broadcast and cast, into this tensor; the source may be on another device.

    >>> import tensorplay as tp
    >>> tp.zeros(2).copy_(tp.tensor([1, 2])).tolist()
    [1.0, 2.0]
    """
    from tensorplay.library import AUTOGRAD, NO_GRAD, modes

    if not isinstance(source, Tensor):
        raise ArgumentError(f"copy_: source must be a Tensor, got {type(source).__name__}")
    if (input.keyset | source.keyset) & AUTOGRAD and not modes() & NO_GRAD:
        if source.device is not input.device:
            source = to(source, input.device)
        return _recorded_copy_(input, source)
    copy.op.rule("meta")(input.layout, source.layout)
    write_(input, source)
    return input


def _recorded_copy_(input: Tensor, source: Tensor) -> Tensor:  # noqa: A002
    from tensorplay.library import make_inplace

    return make_inplace(copy)(input, source)


FUNCTIONS = ("clone", "copy_strided", "write_")
METHODS = {"contiguous": "contiguous", "clone": "clone", "to": "to", "type_as": "type_as", "cpu": "cpu",
           "copy_": "copy_", "float": "to_float", "double": "to_double", "half": "to_half", "bfloat16": "to_bfloat16",
           "bool": "to_bool", "byte": "to_byte", "char": "to_char", "short": "to_short", "int": "to_int",
           "long": "to_long", "cfloat": "to_cfloat", "cdouble": "to_cdouble"}
