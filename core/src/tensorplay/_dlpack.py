"""DLPack, the array libraries' common memory description, both ways, with ctypes alone.

An exported capsule holds a C struct whose `deleter` the consumer calls when it is done; until then the struct and the
tensor are kept in `_exported`. Both the plain and the versioned (1.x) form are made and understood.
"""
from __future__ import annotations

import ctypes

from ._device import Device
from ._dtype import ALL, BOOL, COMPLEX, INTEGER, DType, bfloat16
from ._errors import ArgumentError, AutogradError, DeviceError, DTypeError
from ._foreign import extent, negative, tensor_over, tensor_with
from ._layout import contiguous_strides
from ._tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CPU = 1
_READ_ONLY, _COPIED = 1, 2


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _DLTensor)]


_PLAIN, _VERSIONED, _USED, _USED_VERSIONED = _NAMES = (b"dltensor", b"dltensor_versioned", b"used_dltensor",
                                                       b"used_dltensor_versioned")
_KINDS = {_PLAIN: (_Managed, _USED), _VERSIONED: (_Versioned, _USED_VERSIONED)}
_api = ctypes.pythonapi
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_capsule_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", _api))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_set_name = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_SetName", _api))

_exported: dict[int, tuple] = {}  # address of the struct -> everything that must live as long


def _delete(address: int, forget: Any = _exported.pop) -> None:
    forget(address, None)


def _destroy(capsule: int, names: tuple = _NAMES[:2], valid: Any = _is_valid, pointer: Any = _pointer,
             delete: Any = _delete) -> None:
    """A capsule that nobody took over is being freed; it is passed as an address, since it may not be revived."""
    for name in names:
        if valid(capsule, name):
            delete(pointer(capsule, name))


_deleter = _Deleter(_delete)
_destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_destroy)
for _shared in (_deleter, _destructor, *_NAMES):  # capsules point to them, until Python has shut down: never freed
    _api.Py_IncRef(ctypes.py_object(_shared))


def _dlpack_dtype(dtype: DType) -> tuple[int, int]:
    code = 6 if dtype.category == BOOL else 5 if dtype.category == COMPLEX else 4 if dtype is bfloat16 else \
        2 if dtype.category != INTEGER else 0 if dtype.is_signed else 1
    return code, dtype.itemsize * 8


_DTYPES = {_dlpack_dtype(dtype): dtype for dtype in ALL}


def device_of(x: Tensor) -> tuple[int, int]:
    """`__dlpack_device__`: (device type, index). A driver says its DLPack number with `dlpack_type`."""
    if x.device.type == "cpu":
        return CPU, 0
    kind = getattr(x.device.driver, "dlpack_type", None)
    if kind is None:
        raise DeviceError(f"memory of device {x.device.type!r} cannot be shared through DLPack; use x.cpu()")
    return kind, x.device.index or 0


def to_capsule(x: Tensor, copy: bool | None = None, max_version: tuple | None = None,
               dl_device: tuple | None = None) -> Any:
    """`__dlpack__`: a capsule over this tensor's memory (a copy with `copy=True`, or to bring it to the CPU)."""
    if x.requires_grad:
        raise AutogradError("a tensor that requires grad cannot be exported; use x.detach()")
    if dl_device is not None and tuple(dl_device) == (CPU, 0) and x.device.type != "cpu":
        if copy is False:
            raise BufferError(f"copy=False, but the tensor is on {x.device}")
        x, copy = x.to("cpu"), None
        copied = True
    elif dl_device is not None and tuple(dl_device) != device_of(x):
        raise BufferError(f"a tensor on {x.device} cannot be exported to DLPack device {tuple(dl_device)}")
    else:
        copied = bool(copy)
    x = x.clone() if copy else x
    versioned = max_version is not None and max_version[0] >= 1
    struct = _Versioned() if versioned else _Managed()
    shape = (ctypes.c_int64 * max(x.ndim, 1))(*x.layout.shape)
    strides = (ctypes.c_int64 * max(x.ndim, 1))(*x.layout.strides)
    described = struct.tensor
    described.data = x.storage.data
    described.device_type, described.device_id = device_of(x)
    described.ndim = x.ndim
    described.code, described.bits = _dlpack_dtype(x.dtype)
    described.lanes = 1
    described.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
    described.strides = ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64))
    described.byte_offset = x.offset * x.itemsize
    struct.deleter = ctypes.cast(_deleter, ctypes.c_void_p)
    if versioned:
        struct.major, struct.minor, struct.flags = 1, 0, _COPIED if copied else 0
    address = ctypes.addressof(struct)
    _exported[address] = (struct, shape, strides, x)
    return _capsule_new(address, _VERSIONED if versioned else _PLAIN, ctypes.cast(_destructor, ctypes.c_void_p))


class _Foreign:
    """Keeps another library's memory alive: calls its deleter when the last tensor over it is gone."""

    def __init__(self, address: int, deleter: int | None) -> None:
        self.address = address
        self.deleter = deleter

    def __del__(self, make: Any = _Deleter) -> None:
        if self.deleter:
            make(self.deleter)(self.address)


def from_dlpack(source: Any) -> Tensor:
    """A tensor that shares the memory of any object with `__dlpack__` (NumPy, PyTorch, JAX, CuPy...), or of a capsule.

    Memory that the producer marks read-only is copied. Raises DeviceError for memory that is not on the CPU.
    """
    if hasattr(source, "__dlpack__"):
        kind, index = map(int, source.__dlpack_device__())
        if kind != CPU:
            raise DeviceError(f"from_dlpack: the data is on DLPack device ({kind}, {index}); move it to the CPU first")
        try:
            capsule = source.__dlpack__(max_version=(1, 0))
        except TypeError:  # a producer from before version 1
            capsule = source.__dlpack__()
    else:
        capsule = source
    if type(capsule).__name__ != "PyCapsule":
        raise ArgumentError(f"from_dlpack takes an object with __dlpack__ or a capsule, got {type(source).__name__}")
    for name, (kind, used) in _KINDS.items():
        if _is_valid(id(capsule), name):
            address = _pointer(id(capsule), name)
            struct = kind.from_address(address)
            _set_name(id(capsule), used)  # from here on the memory is ours to give back
            return _adopt(struct, _Foreign(address, struct.deleter))
    raise ArgumentError("from_dlpack: the capsule has been used before; each can be taken over once")


def _adopt(struct: Any, owner: _Foreign) -> Tensor:
    if isinstance(struct, _Versioned) and struct.major != 1:
        raise ArgumentError(f"from_dlpack: the producer speaks DLPack {struct.major}.{struct.minor}, this is 1.0")
    given = struct.tensor
    dtype = _DTYPES.get((given.code, given.bits))
    if dtype is None or given.lanes != 1:
        raise DTypeError(f"from_dlpack: no dtype for code {given.code} with {given.bits} bits, {given.lanes} lanes")
    if given.device_type != CPU:
        raise DeviceError(f"from_dlpack: the data is on DLPack device ({given.device_type}, {given.device_id})")
    shape = tuple(given.shape[:given.ndim])
    strides = tuple(given.strides[:given.ndim]) if given.strides else contiguous_strides(shape)
    if negative(shape, strides):
        raise ArgumentError(f"from_dlpack: negative strides {strides}; copy the data first")
    address = (given.data or 0) + given.byte_offset
    made = None
    if not (isinstance(struct, _Versioned) and struct.flags & _READ_ONLY):
        made = tensor_over(address, shape, strides, dtype, owner)
    if made is None:
        count = extent(shape, strides) * dtype.itemsize
        data = ctypes.string_at(address, count) if count else b""
        made = tensor_with(data, shape, strides, dtype, Device("cpu"))
    return made
