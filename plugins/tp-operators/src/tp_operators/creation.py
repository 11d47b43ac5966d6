"""Tensors from nothing: full, arange, eye and their `_like` and `new_` forms."""
from __future__ import annotations

from math import ceil, isfinite

import tensorplay as tp
from tensorplay.library import (
    FACTORY,
    NONDIFFERENTIABLE,
    PRIMITIVE,
    ArgumentError,
    Layout,
    Tensor,
    ValueRangeError,
    allocate,
    as_device,
    as_dtype,
    as_int,
    as_shape,
    layout,
    number_dtype,
    op,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

FACTORY_TAGS = (FACTORY, PRIMITIVE, NONDIFFERENTIABLE)

# ---- full -----------------------------------------------------------------------------------------------------------
full_op = op("full(int[] size, Number value, dtype dtype, device device) -> Tensor", tags=FACTORY_TAGS)


@full_op.meta
def _(size: tuple, value: Any, dtype: Any, device: Any) -> Layout:
    return layout(size, dtype, device)


@full_op.samples
def _(make: Any) -> Iterator:
    yield (3, 4), 2.5, tp.float32, make.device
    yield (), 7, tp.int64, make.device


iota_op = op("iota(int count, Number start, Number step, dtype dtype, device device) -> Tensor", tags=FACTORY_TAGS)


@iota_op.meta
def _(count: int, start: Any, step: Any, dtype: Any, device: Any) -> Layout:
    return layout((count,), dtype, device)


@iota_op.samples
def _(make: Any) -> Iterator:
    yield 5, 0, 1, tp.int64, make.device
    yield 4, 0.5, -0.25, tp.float32, make.device


def shape_of(size: tuple, op_name: str) -> tuple:
    """The sizes given as `zeros(2, 3)` or `zeros((2, 3))`; negative ones are refused."""
    shape = as_shape(size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else tuple(size))
    for n in shape:
        if n < 0:
            raise ValueRangeError(f"{op_name}: negative size {n} in shape {list(shape)}")
    return shape


def finish(made: Tensor, requires_grad: bool) -> Tensor:
    return made.requires_grad_() if requires_grad else made


def full(size: Any, fill_value: float | bool | complex, *, dtype: Any = None, device: Any = None,
         requires_grad: bool = False, out: Tensor | None = None) -> Tensor:
    """A tensor filled with one value; the dtype follows the value unless given.

    >>> import tensorplay as tp
    >>> tp.full((2, 2), 7).tolist()
    [[7, 7], [7, 7]]
    """
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    if not hasattr(fill_value, "__float__") and fill_value.__class__ is not type(1j):  # noqa: UP003
        raise ArgumentError(f"full: fill_value must be a number, got {type(fill_value).__name__} {fill_value!r}")
    dtype = number_dtype(fill_value) if dtype is None else as_dtype(dtype)
    return finish(full_op(shape_of((size,), "full"), fill_value, dtype, as_device(device), out=out), requires_grad)


def zeros(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False,
          out: Tensor | None = None) -> Tensor:
    """A tensor of zeros.

    >>> import tensorplay as tp
    >>> tp.zeros(2, 3).shape
    tensorplay.Size([2, 3])
    """
    return _filled("zeros", size, 0, dtype, device, requires_grad, out)


def ones(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False,
         out: Tensor | None = None) -> Tensor:
    """A tensor of ones.

    >>> import tensorplay as tp
    >>> tp.ones(2).tolist()
    [1.0, 1.0]
    """
    return _filled("ones", size, 1, dtype, device, requires_grad, out)


def _filled(name: str, size: tuple, value: int, dtype: Any, device: Any, requires_grad: bool, out: Any) -> Tensor:
    dtype = tp.get_default_dtype() if dtype is None else as_dtype(dtype)
    made = full_op(shape_of(size, name), value, dtype, as_device(device), out=out)
    return made.requires_grad_() if requires_grad else made


def empty(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor whose values are whatever the memory held.

    >>> import tensorplay as tp
    >>> tp.empty(2, 3).shape
    tensorplay.Size([2, 3])
    """
    dtype = tp.get_default_dtype() if dtype is None else as_dtype(dtype)
    return finish(allocate(layout(shape_of(size, "empty"), dtype, as_device(device))), requires_grad)


def empty_strided(size: Any, stride: Any, *, dtype: Any = None, device: Any = None,
                  requires_grad: bool = False) -> Tensor:
    """An uninitialised tensor with the given strides (in elements).

    >>> import tensorplay as tp
    >>> tp.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    shape, strides = shape_of((size,), "empty_strided"), as_shape(stride, "stride")
    dtype = tp.get_default_dtype() if dtype is None else as_dtype(dtype)
    reach = 1 + sum([(n - 1) * s for n, s in zip(shape, strides)]) if 0 not in shape else 0
    from .parts import as_strided

    return finish(as_strided(empty(reach, dtype=dtype, device=device), shape, strides, 0), requires_grad)


# ---- like an existing tensor ----------------------------------------------------------------------------------------


def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None, device: Any = None,  # noqa: A002
              requires_grad: bool = False) -> Tensor:
    """A tensor of the shape, dtype and device of `input`, filled with one value.

    >>> import tensorplay as tp
    >>> tp.full_like(tp.zeros(2), 5).tolist()
    [5.0, 5.0]
    """
    source = input.layout
    return finish(full_op(source.shape, fill_value, source.dtype if dtype is None else as_dtype(dtype),
                          source.device if device is None else as_device(device)), requires_grad)


def zeros_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:  # noqa: A002
    """Zeros of the shape, dtype and device of `input`.

    >>> import tensorplay as tp
    >>> tp.zeros_like(tp.ones(2)).tolist()
    [0.0, 0.0]
    """
    return full_like(input, 0, dtype=dtype, device=device, requires_grad=requires_grad)


def ones_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:  # noqa: A002
    """Ones of the shape, dtype and device of `input`.

    >>> import tensorplay as tp
    >>> tp.ones_like(tp.zeros(2)).tolist()
    [1.0, 1.0]
    """
    return full_like(input, 1, dtype=dtype, device=device, requires_grad=requires_grad)


def empty_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:  # noqa: A002
    """Uninitialised, of the shape, dtype and device of `input`.

    >>> import tensorplay as tp
    >>> tp.empty_like(tp.ones(2, 3)).shape
    tensorplay.Size([2, 3])
    """
    source = input.layout
    return empty(source.shape, dtype=dtype or source.dtype, device=device or source.device,
                 requires_grad=requires_grad)


def new_tensor(input: Tensor, data: Any, *, dtype: Any = None, device: Any = None,  # noqa: A002
               requires_grad: bool = False) -> Tensor:
    """`tp.tensor(data)` with the dtype and device of `input`.

    >>> import tensorplay as tp
    >>> tp.ones(1, dtype=tp.float64).new_tensor([1, 2]).dtype
    tensorplay.float64
    """
    return tp.tensor(data, dtype=dtype or input.dtype, device=device or input.device, requires_grad=requires_grad)


def _new(function: Any) -> Any:
    def new(input: Tensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:  # noqa: A002
        return function(*size, dtype=dtype or input.dtype, device=device or input.device, requires_grad=requires_grad)

    new.__name__ = new.__qualname__ = f"new_{function.__name__}"
    new.__doc__ = f"""`tp.{function.__name__}` with the dtype and device of this tensor.

    >>> import tensorplay as tp
    >>> tp.ones(1, dtype=tp.float64).new_{function.__name__}(2).dtype
    tensorplay.float64
    """
    return new


new_zeros, new_ones, new_empty = _new(zeros), _new(ones), _new(empty)


def new_full(input: Tensor, size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None,  # noqa: A002
             requires_grad: bool = False) -> Tensor:
    """`tp.full` with the dtype and device of this tensor.

    >>> import tensorplay as tp
    >>> tp.ones(2).new_full((2,), 5).tolist()
    [5.0, 5.0]
    """
    return full(size, fill_value, dtype=dtype or input.dtype, device=device or input.device,
                requires_grad=requires_grad)


# ---- ranges ---------------------------------------------------------------------------------------------------------


def arange(start: float, end: float | None = None, step: float = 1, *, dtype: Any = None, device: Any = None,
           requires_grad: bool = False, out: Tensor | None = None) -> Tensor:
    """Numbers from `start` (0 if only the end is given) in steps of `step`, up to but without `end`.

    >>> import tensorplay as tp
    >>> tp.arange(1, 7, 2).tolist()
    [1, 3, 5]

    int64 if all arguments are ints, else the default dtype. Raises ValueRangeError for a step of 0 or a wrong sign.
    """
    if end is None:
        start, end = 0, start
    start, end, step = [v.item() if isinstance(v, Tensor) else v for v in (start, end, step)]
    if step == 0:
        raise ValueRangeError("arange: step must not be 0")
    if not all([isinstance(v, int) or isfinite(v) for v in (start, end, step)]):
        raise ValueRangeError(f"arange: start, end and step must be finite, got {start}, {end} and {step}")
    if (end - start) * step < 0:
        raise ValueRangeError(f"arange: end {end} cannot be reached from start {start} with step {step}")
    exact = all([isinstance(v, int) for v in (start, end, step)])
    count = max(-((start - end) // step), 0) if exact else max(ceil((end - start) / step), 0)
    if dtype is None:
        dtype = tp.int64 if exact else tp.get_default_dtype()
    return finish(iota_op(count, start, step, as_dtype(dtype), as_device(device), out=out), requires_grad)


def linspace(start: float, end: float, steps: int, *, dtype: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:
    """`steps` numbers from `start` to `end`, both included, evenly spaced.

    >>> import tensorplay as tp
    >>> tp.linspace(0, 1, 3).tolist()
    [0.0, 0.5, 1.0]
    """

    steps = as_int(steps, "linspace: steps")
    if steps < 0:
        raise ValueRangeError(f"linspace: steps must not be negative, got {steps}")
    dtype, device = as_dtype(dtype or tp.get_default_dtype()), as_device(device)
    start, end = [v.item() if isinstance(v, Tensor) else v for v in (start, end)]
    compute = dtype if dtype.category >= 2 else tp.float64
    index = iota_op(steps, 0, 1, compute, device)
    width = (end - start) / (steps - 1) if steps > 1 else 0.0
    rising = index * width + start  # from each end its own half, so that both ends are met exactly
    falling = (index - (steps - 1)) * width + end
    result = tp.where(index < steps / 2, rising, falling) if steps > 1 else rising
    return finish(result.to(dtype), requires_grad)


def logspace(start: float, end: float, steps: int, base: float = 10.0, *, dtype: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:
    """`steps` powers of `base`, with exponents from `start` to `end`, evenly spaced.

    >>> import tensorplay as tp
    >>> tp.logspace(0, 2, 3).tolist()
    [1.0, 10.0, 100.0]
    """
    return finish(tp.pow(base, linspace(start, end, steps, dtype=dtype, device=device)), requires_grad)


def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """An n x m matrix with ones on the diagonal.

    >>> import tensorplay as tp
    >>> tp.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    m = n if m is None else m
    for size in (n, m):
        if as_int(size, "eye: size") < 0:
            raise ValueRangeError(f"eye: sizes must not be negative, got {n}, {m}")
    device = as_device(device)
    rows, columns = iota_op(n, 0, 1, tp.int64, device), iota_op(m, 0, 1, tp.int64, device)
    return finish((rows.unsqueeze(1) == columns).to(dtype or tp.get_default_dtype()), requires_grad)


def complex(real: Tensor, imag: Tensor) -> Tensor:  # noqa: A001
    """A complex tensor from its real and imaginary parts, float32 or float64; they broadcast.

    >>> import tensorplay as tp
    >>> tp.complex(tp.tensor([1.]), tp.tensor([2.])).tolist()
    [(1+2j)]
    """
    if real.dtype is not imag.dtype or real.dtype not in (tp.float32, tp.float64):
        raise ArgumentError(f"complex: real and imag must both be float32 or float64, got {real.dtype.name} and "
                            f"{imag.dtype.name}")
    return tp.view_as_complex(tp.stack(tp.broadcast_tensors(real, imag), -1))


# ---- filling in place -----------------------------------------------------------------------------------------------


def fill(input: Tensor, value: Any) -> Tensor:  # noqa: A002
    """The functional form of `fill_`: a tensor like `input`, every element `value`.

    >>> import tensorplay as tp
    >>> tp.fill(tp.zeros(2), 5).tolist()
    [5.0, 5.0]
    """
    from .memory import copy

    return copy(input, value) if isinstance(value, Tensor) else full_like(input, value)


def fill_(input: Tensor, value: Any) -> Tensor:  # noqa: A002
    """Set every element to one value.

    >>> import tensorplay as tp
    >>> tp.zeros(2).fill_(5).tolist()
    [5.0, 5.0]
    """
    source = full_op((), value.item() if isinstance(value, Tensor) else value, input.dtype, input.device)
    return input.copy_(source)


def zero_(input: Tensor) -> Tensor:  # noqa: A002
    """Set every element to 0.

    >>> import tensorplay as tp
    >>> tp.ones(2).zero_().tolist()
    [0.0, 0.0]
    """
    return fill_(input, 0)


FUNCTIONS = ("full", "zeros", "ones", "empty", "empty_strided", "full_like", "zeros_like", "ones_like", "empty_like",
             "arange", "linspace", "logspace", "eye", "complex", "fill", "zero_")
METHODS = ("new_tensor", "new_zeros", "new_ones", "new_empty", "new_full", "fill_", "zero_")
