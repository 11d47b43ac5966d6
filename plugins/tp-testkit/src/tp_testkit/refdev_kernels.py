"""The kernels of refdev: the 36 required primitives as `kernel(out, *arguments)` over lists of Python numbers.

Inputs arrive contiguous, elementwise ones with one dtype and out's shape. A kernel reads the elements in order,
computes in Python's numbers (float is float64) and writes the results, which rounds each to out's dtype.
"""
from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable
from itertools import accumulate
from typing import Any

from tensorplay.library import (
    DeviceError,
    DivisionByZeroError,
    IndexRangeError,
    Tensor,
    ValueRangeError,
    broadcast_strides,
    contiguous_strides,
    normalize_dim,
    normalize_dims,
    pack,
    unpack,
)

from . import refdev_numbers as numbers

BOOL, INTEGER, FLOATING, COMPLEX = range(4)  # DType.category


# ---- reading and writing ---------------------------------------------------------------------------------------------
def read(x: Tensor) -> list:
    """The elements of a contiguous tensor, in order."""
    source = x.layout
    if not source.contiguous:
        raise DeviceError("a kernel of refdev got a tensor that is not contiguous")
    return unpack(source.device.driver.block(x.storage), source.dtype, source.numel, x.offset)


def write(out: Tensor, values: list) -> None:
    """Fill a contiguous tensor; each value is rounded, or wrapped around, to its dtype."""
    target, size = out.layout, out.layout.dtype.itemsize
    if not target.contiguous:
        raise DeviceError("a kernel of refdev got an output that is not contiguous")
    if target.dtype.category == INTEGER:
        values = numbers.wrapped(values, 8 * size, target.dtype.is_signed)
    block = target.device.driver.block(out.storage)
    block[out.offset * size:(out.offset + target.numel) * size] = pack(values, target.dtype)


def offsets(sizes: tuple, strides: tuple) -> list[int]:
    """How far each element lies from the first, in row-major order."""
    found = [0]
    for size, stride in zip(sizes, strides):
        found = [start + i * stride for start in found for i in range(size)]
    return found


# ---- elementwise -----------------------------------------------------------------------------------------------------
def elementwise(function: Callable) -> Callable:
    def kernel(out: Tensor, *args: Tensor) -> None:
        write(out, list(map(function, *[read(arg) for arg in args])))

    return kernel


def floor_div(out: Tensor, input: Tensor, other: Tensor) -> None:  # noqa: A002
    try:
        write(out, list(map(numbers.floor_divide, read(input), read(other))))
    except ZeroDivisionError:
        raise DivisionByZeroError("floor_div: division by zero") from None


def power(out: Tensor, input: Tensor, exponent: Tensor) -> None:  # noqa: A002
    """Integers are computed modulo the size of their dtype, so that large powers stay small numbers."""
    bases, exponents = read(input), read(exponent)
    if out.layout.dtype.category > INTEGER:
        return write(out, list(map(numbers.power, bases, exponents)))
    if exponents and min(exponents) < 0:
        raise ValueRangeError("pow: an integer to a negative integer power; convert the base to a float")
    modulus = 1 << 64
    write(out, [pow(base, e, modulus) for base, e in zip(map(int, bases), map(int, exponents))])


def bitwise_not(out: Tensor, input: Tensor) -> None:  # noqa: A002
    write(out, [not value if value.__class__ is bool else ~value for value in read(input)])


# ---- creation and copies ---------------------------------------------------------------------------------------------
def full(out: Tensor, size: Any, value: Any, dtype: Any, device: Any) -> None:
    write(out, converted([value], out.layout.dtype) * out.layout.numel)


def iota(out: Tensor, count: int, start: Any, step: Any, dtype: Any, device: Any) -> None:
    write(out, converted([start + i * step for i in range(count)], out.layout.dtype))


def converted(values: list, dtype: Any) -> list:
    """Numbers of any kind as those of a dtype's category."""
    kind = dtype.category
    if kind == BOOL:
        return [value != 0 for value in values]
    if kind < COMPLEX:
        values = [value.real if value.__class__ is complex else value for value in values]
    return list(map(numbers.truncated, values)) if kind == INTEGER else values


def cast(out: Tensor, input: Tensor, dtype: Any) -> None:  # noqa: A002
    write(out, converted(read(input), out.layout.dtype))


def copy_strided(out: Tensor, source: Tensor) -> None:
    """The one kernel that sees strides: both sides may have any."""
    size = out.layout.dtype.itemsize
    target, data = out.layout.device.driver.block(out.storage), source.layout.device.driver.block(source.storage)
    places = zip(offsets(out.layout.shape, out.layout.strides), offsets(source.layout.shape, source.layout.strides))
    for to, at in places:
        to, at = (out.offset + to) * size, (source.offset + at) * size
        target[to:to + size] = data[at:at + size]


# ---- reductions and scans --------------------------------------------------------------------------------------------
def positions(shape: tuple, dims: Any) -> list[int]:
    """Where the elements along `dims` lie in a contiguous tensor of that shape, the other indices being 0."""
    strides = contiguous_strides(shape)
    return offsets(tuple([shape[d] for d in dims]), tuple([strides[d] for d in dims]))


def lines(x: Tensor, dims: Any) -> list[list]:
    """For each index of the other dimensions, the elements along `dims` (None or empty: all dimensions)."""
    shape, values = x.layout.shape, read(x)
    along = normalize_dims(dims, len(shape)) if shape and dims not in (None, (), []) else range(len(shape))
    inner = positions(shape, along)
    return [[values[start + step] for step in inner]
            for start in positions(shape, [d for d in range(len(shape)) if d not in along])]


def sum_(out: Tensor, input: Tensor, dim: Any, keepdim: bool, dtype: Any) -> None:  # noqa: A002
    write(out, [numbers.total(converted(line, out.layout.dtype)) for line in lines(input, dim)])


def amax(out: Tensor, input: Tensor, dim: Any, keepdim: bool) -> None:  # noqa: A002
    write(out, [line[numbers.best_index(line)] for line in lines(input, dim)])


def argmax(out: Tensor, input: Tensor, dim: Any, keepdim: bool) -> None:  # noqa: A002
    write(out, [numbers.best_index(line) for line in lines(input, dim)])


def cumsum(out: Tensor, input: Tensor, dim: int, dtype: Any) -> None:  # noqa: A002
    shape = out.layout.shape or (1,)
    d = normalize_dim(dim, len(shape))
    result = [0] * out.layout.numel
    steps = positions(shape, (d,))
    for start, line in zip(positions(shape, [i for i in range(len(shape)) if i != d]), lines(input, d)):
        for step, value in zip(steps, accumulate(converted(line, out.layout.dtype))):
            result[start + step] = value
    write(out, result)


# ---- indexing --------------------------------------------------------------------------------------------------------
def indexed(name: str, x: Tensor, dim: int, index: Tensor) -> list[int]:
    """Where in `x` each element of `index` points to; indices out of range are refused."""
    shape = x.layout.shape or (1,)
    d = normalize_dim(dim, len(shape))
    strides = contiguous_strides(shape)
    starts = offsets(index.layout.shape or (1,), (*strides[:d], 0, *strides[d + 1:]))
    chosen = read(index)
    for i in chosen:
        if not 0 <= i < shape[d]:
            raise IndexRangeError(f"{name}: index {i} is out of range for dimension {d} of size {shape[d]}")
    return [start + i * strides[d] for start, i in zip(starts, chosen)]


def gather(out: Tensor, input: Tensor, dim: int, index: Tensor) -> None:  # noqa: A002
    values = read(input)
    write(out, [values[place] for place in indexed("gather", input, dim, index)])


def scatter(out: Tensor, input: Tensor, dim: int, index: Tensor, src: Tensor, mode: str) -> None:  # noqa: A002
    result, source = read(input), read(src)
    covered = offsets(index.layout.shape, contiguous_strides(src.layout.shape))
    for place, at in zip(indexed("scatter", input, dim, index), covered):
        result[place] = result[place] + source[at] if mode == "add" else source[at]
    write(out, result)


# ---- matmul ----------------------------------------------------------------------------------------------------------
def matmul(out: Tensor, input: Tensor, other: Tensor) -> None:  # noqa: A002
    left, right = input.layout.shape, other.layout.shape
    left = left if len(left) > 1 else (1, *left)
    right = right if len(right) > 1 else (*right, 1)
    (m, k), n = left[-2:], right[-1]
    batch = out.layout.shape[:max(len(left), len(right)) - 2]
    first, second, result = read(input), read(other), []
    for a, b in zip(batch_starts(left, batch), batch_starts(right, batch)):
        columns = [second[b + j:b + k * n:n] for j in range(n)]
        for row in [first[a + i * k:a + (i + 1) * k] for i in range(m)]:
            result += [numbers.dot(row, column) for column in columns]
    write(out, result)


def batch_starts(shape: tuple, batch: tuple) -> list[int]:
    """Where the matrices of a contiguous tensor begin, broadcast to the batch dimensions."""
    return offsets(batch, broadcast_strides(shape[:-2], contiguous_strides(shape)[:-2], batch))


def on_one_device(name: str, kernel: Callable) -> Callable:
    """refdev:0 and refdev:1 have one key bit, so the driver itself has to notice operands on both."""

    def checked(out: Any, *args: Any) -> None:
        for arg in args:
            if isinstance(arg, Tensor) and arg.layout.device is not out.layout.device:
                raise DeviceError(f"{name}: operands are on {out.layout.device} and {arg.layout.device}; move one of "
                                  f"them, e.g. x.to('{out.layout.device}')")
        kernel(out, *args)

    return checked


_UNARY = {
    "neg": operator.neg, "abs": abs, "floor": numbers.floor,
    "exp": numbers.real_or_complex(numbers.exp, numbers.complex_exp),
    "log": numbers.real_or_complex(numbers.log, numbers.complex_log),
    "sqrt": numbers.real_or_complex(numbers.sqrt, cmath.sqrt),
    "sin": numbers.real_or_complex(math.sin, cmath.sin), "cos": numbers.real_or_complex(math.cos, cmath.cos),
    "tanh": numbers.real_or_complex(math.tanh, cmath.tanh),
}
_BINARY = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": numbers.divide, "maximum": numbers.larger,
    "minimum": numbers.smaller, "eq": operator.eq, "lt": operator.lt, "bitwise_and": operator.and_,
    "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
}
KERNELS = {name: on_one_device(name, kernel) for name, kernel in {
    **{name: elementwise(function) for name, function in {**_UNARY, **_BINARY}.items()},
    "where": elementwise(lambda condition, x, y: x if condition else y), "floor_div": floor_div, "pow": power,
    "bitwise_not": bitwise_not, "full": full, "iota": iota, "cast": cast, "copy_strided": copy_strided, "sum": sum_,
    "amax": amax, "argmax": argmax, "cumsum": cumsum, "gather": gather, "scatter": scatter, "matmul": matmul,
}.items()}
