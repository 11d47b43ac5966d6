"""Between tensors and other libraries' memory: NumPy arrays, buffers, pickles, copies. NumPy is imported only by the
functions that return an array."""
from __future__ import annotations

import sys

from ._creation import tensor
from ._device import Device, as_device
from ._dtype import BY_NAME, DType, as_dtype, bfloat16
from ._errors import ArgumentError, AutogradError, DeviceError, DTypeError, ValueRangeError
from ._foreign import extent, negative, tensor_over, tensor_with
from ._layout import layout
from ._tensor import Tensor, make_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


# ---- from buffers and arrays -----------------------------------------------------------------------------------------
def from_numpy(array: Any) -> Tensor:
    """A CPU tensor that shares the memory of a NumPy array; of a read-only array it is a copy.

    >>> import numpy, tensorplay as tp
    >>> a = numpy.zeros(2, dtype="float32")
    >>> x = tp.from_numpy(a)
    >>> a[0] = 5
    >>> x.tolist()
    [5.0, 0.0]
    """
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(array, numpy.ndarray):
        raise ArgumentError(f"from_numpy takes a numpy.ndarray, got {type(array).__name__}; tp.tensor(data) takes "
                            f"numbers, lists and buffers")
    return _shared(*_view_of(array))  # type: ignore[misc]


def frombuffer(buffer: Any, *, dtype: DType, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A one-dimensional CPU tensor over the bytes of a buffer (`bytearray`, `array`, `mmap`...), shared if the buffer
    is writable and the data aligned, else copied.

    `count` elements (-1: all that follow) are read from byte `offset` on.
    """
    dtype = as_dtype(dtype)
    try:
        data = memoryview(buffer).cast("B")
    except TypeError as problem:
        raise ArgumentError(f"frombuffer takes a contiguous bytes-like object, got {type(buffer).__name__}: "
                            f"{problem}") from None
    size = dtype.itemsize
    rest = len(data) - offset
    if offset < 0 or rest < 0 or count < -1 or (count >= 0 and count * size > rest) or (count < 0 and rest % size):
        raise ValueRangeError(f"frombuffer: count={count} elements of {size} bytes at offset={offset} do not fit the "
                              f"buffer of {len(data)} bytes")
    count = rest // size if count < 0 else count
    part = data[offset:offset + count * size]
    made = _shared(part, dtype, (count,), (1,))
    return made.requires_grad_() if requires_grad else made


def asarray(data: Any, *, dtype: DType | None = None, device: Device | str | None = None, copy: bool | None = None,
            requires_grad: bool = False) -> Tensor:
    """A tensor of `data` (tensor, array, buffer, DLPack object, numbers), sharing its memory where that is possible.

    `copy=True` always copies; `copy=False` raises ValueRangeError where a copy is needed.
    """
    dtype = None if dtype is None else as_dtype(dtype)
    place = data.device if isinstance(data, Tensor) and device is None else as_device(device)
    shared = None
    if copy is not True:
        shared = data if isinstance(data, Tensor) else _shared_if_possible(data) if place.type == "cpu" else None
    if shared is None:
        if copy is False:
            raise ValueRangeError(f"asarray: copy=False, but a tensor on {place} cannot share the memory of "
                                  f"{type(data).__name__}")
        return tensor(data, dtype=dtype, device=place, requires_grad=requires_grad)
    if place is not shared.device or dtype not in (None, shared.dtype):
        if copy is False:
            raise ValueRangeError(f"asarray: copy=False, but the data is {shared.dtype.name} on {shared.device}")
        shared = shared.to(device=place, dtype=dtype or shared.dtype)
    return shared.requires_grad_() if requires_grad else shared


def as_tensor(data: Any, dtype: DType | None = None, device: Device | str | None = None) -> Tensor:
    """`data` as a tensor, without a copy where dtype and device allow it."""
    return asarray(data, dtype=dtype, device=device)


def copy_of_buffer(data: Any, device: Device) -> Tensor | None:
    """A tensor with a copy of an array or buffer; None if `data` is neither."""
    found = _view_of(data)
    if found is None:
        if hasattr(data, "__dlpack__"):
            from ._dlpack import from_dlpack

            return from_dlpack(data).to(device).clone()
        return None
    view, dtype, shape, _ = found
    return tensor_with(view.tobytes(), shape, None, dtype, device)


def _shared_if_possible(data: Any) -> Tensor | None:
    if hasattr(data, "__dlpack__") and "numpy" not in type(data).__module__:
        from ._dlpack import from_dlpack

        return from_dlpack(data)
    found = _view_of(data)
    if found is None or found[0].readonly or found[3] is None:
        return None
    return _shared(*found)


def _view_of(data: Any) -> tuple[memoryview, DType, tuple, tuple | None] | None:
    """(buffer, dtype, shape, strides in elements) of an array or buffer; strides None: not a multiple of the size."""
    brain_float = str(getattr(data, "dtype", "")) == "bfloat16"
    try:
        view = memoryview(data.view("uint16") if brain_float else data)
    except ValueError as problem:
        raise ArgumentError(f"no tensor dtype for {type(data).__name__} of dtype {getattr(data, 'dtype', '?')}: "
                            f"{problem}") from None
    except TypeError:
        if isinstance(data, type) or not (hasattr(data, "__array__") or hasattr(data, "__array_interface__")):
            return None
        import numpy

        return _view_of(numpy.asarray(data))
    dtype = bfloat16 if brain_float else _dtype_of_format(view)
    strides = view.strides or ()
    whole = all([step % view.itemsize == 0 for step in strides])
    return view, dtype, tuple(view.shape or ()), tuple([s // view.itemsize for s in strides]) if whole else None


def _dtype_of_format(view: memoryview) -> DType:
    code, size = view.format, view.itemsize
    if code[:1] in "@=<>!":
        if code[:1] in ">!" and size > 1 or code[:1] == "<" and sys.byteorder == "big":
            raise ArgumentError("the array is not in this machine's byte order; "
                                "array.astype(array.dtype.newbyteorder('=')) converts it")
        code = code[1:]
    name = {"?": "bool", "c": "uint8", "Zf": "complex64", "Zd": "complex128", "e": "float16", "f": "float32",
            "d": "float64"}.get(code)
    if name is None and code and code in "bhilqn":
        name = f"int{8 * size}"
    elif name is None and code and code in "BHILQN":
        name = f"uint{8 * size}"
    if name is None:
        raise ArgumentError(f"no tensor dtype for elements of format {view.format!r}; expected numbers or bools")
    return BY_NAME[name]


def _shared(view: memoryview, dtype: DType, shape: tuple, strides: tuple | None) -> Tensor:
    """A CPU tensor over the buffer's memory, which it keeps alive; a copy where sharing is not safe."""
    if strides is not None and negative(shape, strides):
        raise ArgumentError(f"the array has a negative stride {strides}, which a tensor cannot have; array.copy() "
                            f"makes one without")
    made = None
    if strides is not None and not view.readonly and 0 not in shape:
        made = tensor_over(_address(view), shape, strides, dtype, view)
    return tensor_with(view.tobytes(), shape, None, dtype, Device("cpu")) if made is None else made


def _address(view: memoryview) -> int:
    """Where a buffer lies. The memoryview itself keeps it there."""
    import ctypes

    class PyBuffer(ctypes.Structure):
        _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t),
                    ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
                    ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                    ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p)]

    full_read_only = 0x11C
    buffer = PyBuffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(buffer), full_read_only)
    address = buffer.buf or 0
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(buffer))
    return address


# ---- to NumPy --------------------------------------------------------------------------------------------------------
def to_numpy(x: Tensor, force: bool = False) -> Any:
    """The array over a CPU tensor's memory; with `force`, a copy where sharing is not possible."""
    import numpy

    if x.dtype is bfloat16:
        raise DTypeError("NumPy has no bfloat16; convert first: x.float().numpy()")
    if not force:
        if x.requires_grad:
            raise AutogradError("a tensor that requires grad cannot share its memory with NumPy; use "
                                "x.detach().numpy()")
        if x.device.type != "cpu":
            raise DeviceError(f"NumPy cannot see memory of device {str(x.device)!r}; use x.cpu().numpy()")
    dtype, size = numpy.dtype(x.dtype.name), x.itemsize
    if x.numel() == 0:
        return numpy.empty(x.layout.shape, dtype)
    strides = tuple([step * size for step in x.layout.strides])
    data = x.storage if x.device.type == "cpu" else bytearray(x.device.driver.copy_to_host(x.storage))
    return numpy.ndarray(x.layout.shape, dtype, data, x.offset * size, strides)


def as_array(x: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    """NumPy's `__array__` protocol."""
    made = to_numpy(x)
    if dtype is not None and made.dtype != dtype:
        if copy is False:
            raise ValueRangeError(f"an array of {dtype} cannot share the memory of a {x.dtype.name} tensor")
        return made.astype(dtype)
    return made.copy() if copy else made


# ---- pickles and copies ----------------------------------------------------------------------------------------------
def reduce(x: Tensor) -> tuple:
    """How a tensor is pickled: its bytes, dtype, shape, strides, device, whether it requires grad, its class and the
    attributes of the instance."""
    dense = x.detach()
    count = extent(x.layout.shape, x.layout.strides)
    if count > x.numel():  # a part of something larger with gaps
        dense, count = dense.contiguous(), x.numel()
    data = None
    if x.device.type != "meta":
        view = memoryview(x.device.driver.copy_to_host(dense.storage)).cast("B")
        data = bytes(view[dense.offset * x.itemsize:(dense.offset + count) * x.itemsize])
    state = dict(x.__dict__) if getattr(x, "__dict__", None) else None
    return _rebuild, (type(x), data, x.dtype.name, x.layout.shape, dense.layout.strides, str(x.device),
                      x.requires_grad), state


def _rebuild(cls: type, data: bytes | None, dtype: str, shape: tuple, strides: tuple, device: str,
             requires_grad: bool) -> Tensor:
    place = Device(device)
    if data is None:
        result = layout(shape, BY_NAME[dtype], place, strides)
        made = make_tensor(place.driver.allocate(result.nbytes, place), 0, result, cls)
    else:
        made = tensor_with(data, shape, strides, BY_NAME[dtype], place, cls)
    return made.requires_grad_() if requires_grad else made


def deep_copy(x: Tensor, memo: dict) -> Tensor:
    """`copy.deepcopy`: new memory; tensors that share memory share the copy too, as in torch."""
    known = memo.get(id(x))
    if known is not None:
        return known
    if not x.is_leaf:
        raise AutogradError("deepcopy takes leaf tensors only, this one was computed from others; use "
                            "x.detach().clone()")
    storage = memo.get(id(x.storage))
    if storage is None:
        driver = x.device.driver
        storage = memo[id(x.storage)] = driver.allocate(x.storage.nbytes, x.device)
        if x.device.type != "meta":
            driver.copy_from_host(storage, driver.copy_to_host(x.storage))
    made = memo[id(x)] = make_tensor(storage, x.offset, x.layout, type(x))
    if x.requires_grad:
        made.requires_grad_()
    if x.grad is not None:
        made.grad = deep_copy(x.grad, memo)
    if getattr(x, "__dict__", None):
        from copy import deepcopy

        made.__dict__.update(deepcopy(x.__dict__, memo))
    return made
