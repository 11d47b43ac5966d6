"""Between Python numbers and bytes: packing nested lists, reading values back. No NumPy."""
from __future__ import annotations

from _struct import error as StructError
from _struct import pack as struct_pack
from _struct import unpack as struct_unpack

from ._dtype import BOOL, COMPLEX, INTEGER, DType, bfloat16, complex64
from ._errors import ShapeError, ValueRangeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._tensor import Tensor


def pack(values: list, dtype: DType) -> bytes:
    """The bytes of a flat list of Python numbers. Floats are truncated for integer dtypes, as in torch."""
    count = len(values)
    try:
        if dtype.category == BOOL:
            return bytes([1 if value else 0 for value in values])
        if dtype.category == COMPLEX:
            parts = [part for value in values for part in (complex(value).real, complex(value).imag)]
            return _pack_floats(parts, "f" if dtype is complex64 else "d")
        if dtype.category == INTEGER:
            try:
                return struct_pack(f"<{count}{dtype.format}", *values)
            except StructError:
                return struct_pack(f"<{count}{dtype.format}", *[_wrapped(value, dtype) for value in values])
        if dtype is bfloat16:
            return _pack_bfloat16(values)
        return _pack_floats(values, dtype.format)
    except (StructError, TypeError, ValueError, OverflowError) as problem:
        raise ValueRangeError(f"a value does not fit into {dtype.name}: {problem}") from None


def _wrapped(value: Any, dtype: DType) -> int:
    """An integer from a float; -1 wraps for unsigned dtypes, anything else that is too large is refused."""
    number = int(value)
    bits = dtype.itemsize * 8
    low = -(1 << (bits - 1))
    if not (low if not dtype.is_signed or number < 0 else 0) <= number < 1 << (bits - dtype.is_signed):
        raise OverflowError(f"{value!r} is outside the range of {dtype.name}")
    return number % (1 << bits) if not dtype.is_signed else number


def _pack_floats(values: list, format: str) -> bytes:
    try:
        return struct_pack(f"<{len(values)}{format}", *values)
    except (StructError, OverflowError):  # beyond the type's largest value: infinity, as a cast gives
        return b"".join([_pack_float(value, format) for value in values])


def _pack_float(value: float, format: str) -> bytes:
    try:
        return struct_pack(f"<{format}", float(value))
    except OverflowError:
        return struct_pack(f"<{format}", float("inf") if value > 0 else float("-inf"))


def _pack_bfloat16(values: list) -> bytes:
    words = struct_unpack(f"<{len(values)}I", _pack_floats(values, "f"))
    out = []
    for word in words:
        if word & 0x7FFFFFFF > 0x7F800000:  # NaN stays NaN
            out.append(0x7FC0)
        else:
            out.append((word + 0x7FFF + (word >> 16 & 1)) >> 16)
    return struct_pack(f"<{len(out)}H", *out)


def unpack(data: Any, dtype: DType, count: int, start: int = 0) -> list:
    """`count` Python numbers from bytes, beginning at element `start`."""
    size = dtype.itemsize
    view = memoryview(data).cast("B")[start * size:(start + count) * size]
    if dtype.category == COMPLEX:
        parts = struct_unpack(f"<{2 * count}{'f' if dtype is complex64 else 'd'}", view)
        return [complex(parts[2 * i], parts[2 * i + 1]) for i in range(count)]
    if dtype is bfloat16:
        words = struct_unpack(f"<{count}H", view)
        return list(struct_unpack(f"<{count}f", struct_pack(f"<{count}I", *[word << 16 for word in words])))
    return list(struct_unpack(f"<{count}{dtype.format}", view))


def host_bytes(x: Tensor) -> tuple[Any, int]:
    """The storage's bytes on the host and the element at which a contiguous tensor begins in them."""
    if not x.layout.contiguous:
        x = x.contiguous()
    return x.layout.device.driver.copy_to_host(x.storage), x.offset


def item(x: Tensor) -> Any:
    if x.layout.numel != 1:
        raise ShapeError(f"item() takes a tensor with one element, this one has {x.layout.numel} "
                         f"(shape {list(x.layout.shape)}); tolist() gives all of them")
    return unpack(x.layout.device.driver.copy_to_host(x.storage), x.layout.dtype, 1, x.offset)[0]


def to_list(x: Tensor) -> Any:
    data, start = host_bytes(x)
    values = unpack(data, x.layout.dtype, x.layout.numel, start)
    for size in reversed(x.layout.shape[1:]):
        if size == 0:
            return _empty_lists(x.layout.shape)
        values = [values[i:i + size] for i in range(0, len(values), size)]
    return values if x.layout.shape else values[0]


def _empty_lists(shape: tuple) -> list:
    return [_empty_lists(shape[1:]) for _ in range(shape[0])] if len(shape) > 1 else [None] * shape[0]


def to_bytes(x: Tensor) -> bytes:
    """The elements in row-major order as little-endian bytes."""
    data, start = host_bytes(x.detach())
    size = x.layout.dtype.itemsize
    return bytes(memoryview(data).cast("B")[start * size:(start + x.layout.numel) * size])


def from_bytes(data: Any, shape: tuple, dtype: DType, device: Any = None) -> Tensor:
    """A new tensor from the bytes that `to_bytes` gives."""
    from ._creation import empty_like_layout
    from ._device import as_device
    from ._layout import layout

    made = empty_like_layout(layout(shape, dtype, as_device(device)))
    made.layout.device.driver.copy_from_host(made.storage, data)
    return made
