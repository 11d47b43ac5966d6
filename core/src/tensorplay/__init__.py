"""TensorPlay: a deep-learning framework built as a plugin ecosystem around a minimal kernel core.

This package is the core: tensors, dispatch, the operator registry and plugin discovery, in plain Python. Operators
(`tp.add`), devices and namespaces (`tp.nn`) come from other distributions and are loaded when they are first used.
"""
from __future__ import annotations

from . import _namespaces as _namespaces
from ._creation import tensor
from ._device import Device as device
from ._device import get_default_device, set_default_device
from ._dtype import (DType as dtype, bfloat16, bool_ as bool, complex64, complex128, float16, float32, float64,
                     get_default_dtype, int8, int16, int32, int64, promote_types, set_default_dtype, uint8, uint16,
                     uint32, uint64)
from ._errors import TensorPlayError
from ._limits import finfo, iinfo
from ._modes import (DispatchMode, enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad,
                     set_grad_enabled)
from ._random import Generator, default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from ._tensor import Size, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

half, float, double, short, int, long = float16, float32, float64, int16, int32, int64
cfloat, cdouble = complex64, complex128
inf = 1e308 * 10
nan = inf - inf
pi = 3.141592653589793
e = 2.718281828459045
newaxis = None
contiguous_format, preserve_format, strided = "contiguous_format", "preserve_format", "strided"
channels_last, channels_last_3d = "channels_last", "channels_last_3d"

__version__ = "0.1.0"

_LAZY = {  # public name -> module of core that defines it
    "from_numpy": "_interchange", "frombuffer": "_interchange", "asarray": "_interchange", "as_tensor": "_interchange",
    "from_dlpack": "_dlpack", "set_printoptions": "_repr", "explain": "_explain",
}


def is_tensor(value: object) -> bool:  # type: ignore[valid-type]
    """Whether `value` is a Tensor."""
    return isinstance(value, Tensor)


def result_type(first: Any, second: Any) -> dtype:
    """The dtype that an operation on both gives; numbers count as in torch's promotion rules."""
    from ._dtype import result_dtype

    return result_dtype(tuple([getattr(value, "layout", value) for value in (first, second)]))


def can_cast(source: dtype, target: dtype) -> bool:  # type: ignore[valid-type]
    """Whether `source` converts to `target` by promotion rules: not from a higher category to a lower one."""
    return source.category <= target.category


def is_floating_point(input: Tensor) -> bool:  # type: ignore[valid-type]  # noqa: A002
    """Whether the tensor's dtype is a floating point one (complex is not)."""
    return input.dtype.is_floating_point


def is_complex(input: Tensor) -> bool:  # type: ignore[valid-type]  # noqa: A002
    """Whether the tensor's dtype is complex."""
    return input.dtype.is_complex


def numel(input: Tensor) -> int:  # type: ignore[valid-type]  # noqa: A002
    """The number of elements.

    >>> import tensorplay as tp
    >>> tp.numel(tp.ones(2, 3))
    6
    """
    return input.layout.numel


def set_num_threads(count: int) -> None:  # type: ignore[valid-type]
    """Use `count` threads for CPU kernels; results do not depend on it."""
    device("cpu").driver.set_num_threads(count)  # type: ignore[attr-defined]


def get_num_threads() -> int:  # type: ignore[valid-type]
    """How many threads CPU kernels use."""
    return device("cpu").driver.get_num_threads()  # type: ignore[attr-defined]


def __getattr__(name: str) -> Any:
    """Operators, namespaces and rarely used functions are loaded on first use."""
    from ._lookup import find

    value = find(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    from ._lookup import names

    return sorted(set(globals()) | set(names()))
