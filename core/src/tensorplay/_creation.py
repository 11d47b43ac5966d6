"""Tensors from Python data: nested lists, numbers, buffers, arrays, other tensors."""
from __future__ import annotations

from ._data import pack
from ._device import Device, as_device
from ._dtype import DType, as_dtype, get_default_dtype, number_dtype, promote_types
from ._errors import ArgumentError, ShapeError
from ._layout import MAX_DIMS, as_shape, layout
from ._tensor import Size, Tensor, make_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NUMBERS = (bool, int, float, complex)


def tensor(data: Any, *, dtype: DType | None = None, device: Device | str | None = None,
           requires_grad: bool = False) -> Tensor:
    """A new tensor with a copy of `data`: nested lists or tuples of numbers, a number, a NumPy array, a buffer, or a
    tensor.

    >>> import tensorplay as tp
    >>> tp.tensor([[1, 2], [3, 4]]).dtype
    tensorplay.int64

    The dtype is that of the data unless given: int64 for ints, the default dtype for floats, bool for bools.
    Raises ShapeError for ragged lists, ArgumentError for anything that is not a number.
    """
    made = _from_data(data, dtype, data.device if device is None and isinstance(data, Tensor) else as_device(device))
    return made.requires_grad_() if requires_grad else made


def _from_data(data: Any, dtype: DType | None, device: Device) -> Tensor:
    dtype = None if dtype is None else as_dtype(dtype)
    if isinstance(data, Tensor):
        copy = data.detach().clone()
        return copy if dtype in (None, copy.layout.dtype) and copy.layout.device is device else \
            copy.to(device, dtype or copy.layout.dtype)
    if data.__class__ not in (list, tuple) and data.__class__ not in NUMBERS:
        made = _from_foreign(data, device)
        if made is not None:
            return made if dtype in (None, made.layout.dtype) else made.to(dtype)
    flat: list = []
    shape = _flatten(data, flat, ())
    if dtype is None:
        dtype = _common_dtype(flat)
    return from_flat(flat, shape, dtype, device)


def from_flat(flat: list, shape: tuple, dtype: DType, device: Device) -> Tensor:
    """A contiguous tensor from a flat list of numbers."""
    result = layout(shape, dtype, device)
    made = empty_like_layout(result)
    device.driver.copy_from_host(made.storage, pack(flat, dtype))
    return made


def empty_like_layout(result: Any) -> Tensor:
    driver = result.device.driver
    driver.check_dtype(result.dtype)
    return make_tensor(driver.allocate(result.nbytes, result.device), 0, result)


def _flatten(data: Any, flat: list, path: tuple) -> tuple:
    """Append the numbers of nested lists to `flat` and return their shape."""
    kind = data.__class__
    if kind in NUMBERS:
        flat.append(data)
        return ()
    if isinstance(data, (list, tuple, range)):
        if len(path) == MAX_DIMS:
            raise ShapeError(f"a list is nested more than {MAX_DIMS} deep, or contains itself")
        if data and all([item.__class__ in NUMBERS for item in data]):
            flat.extend(data)
            return (len(data),)
        shapes = [_flatten(item, flat, (*path, i)) for i, item in enumerate(data)]
        for i, shape in enumerate(shapes):
            if shape != shapes[0]:
                raise ShapeError(f"ragged nested list: item {list(path) + [0]} has shape {list(shapes[0])} but item "
                                 f"{list(path) + [i]} has shape {list(shape)}; all items of a list must be alike")
        return (len(data), *(shapes[0] if shapes else ()))
    if hasattr(data, "item") and getattr(data, "ndim", None) == 0:
        flat.append(data.item())
        return ()
    if hasattr(data, "tolist"):
        return _flatten(data.tolist(), flat, path)
    if isinstance(data, (int, float, complex)):  # of a class of its own, such as an IntEnum's member
        flat.append(int(data) if isinstance(data, int) else float(data) if isinstance(data, float) else complex(data))
        return ()
    place = f" at index {list(path)}" if path else ""
    raise ArgumentError(f"cannot make a tensor from {kind.__name__} {data!r}{place}; expected numbers, nested lists of "
                        f"numbers, an array, a buffer or a tensor")


def _common_dtype(flat: list) -> DType:
    kinds = {value.__class__ for value in flat}
    if not kinds:
        return get_default_dtype()
    dtype = None
    for kind in kinds:
        found = number_dtype(kind())
        dtype = found if dtype is None else promote_types(dtype, found)
    return dtype  # type: ignore[return-value]


def _from_foreign(data: Any, device: Device) -> Tensor | None:
    """A copy of a buffer or array, or None if it is neither."""
    if isinstance(data, str):
        raise ArgumentError(f"cannot make a tensor from the string {data!r}; encode it first, e.g. "
                            f"tp.tensor(list(text.encode()))")
    from ._interchange import copy_of_buffer

    return copy_of_buffer(data, device)


def tensor_from_constructor(data: tuple, dtype: DType | None, device: Any) -> Tensor:
    """`Tensor(data)`, `Tensor()` and `Tensor(2, 3)`."""
    place = as_device(device)
    if len(data) == 1 and data[0].__class__ not in (int, Size):
        if isinstance(data[0], Tensor):
            return _from_data(data[0], dtype, place if device is not None else data[0].layout.device)
        made = _from_data(data[0], dtype, place)
        if dtype is None and data[0].__class__ in (list, tuple, float, bool) and made.layout.dtype.category < 2:
            return _from_data(data[0], get_default_dtype(), place)
        return made
    shape = as_shape(data) if data else (0,)
    return empty_like_layout(layout(shape, dtype or get_default_dtype(), place))
