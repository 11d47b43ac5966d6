"""The API for operators: what TensorPlay's own operators, devices and engines are written with.

>>> import tensorplay as tp
>>> from tensorplay import library
>>> double = library.op("docs::double(Tensor input) -> Tensor", replace=True)
>>> @double.decomposition
... def _(input):
...     return input + input
>>> double(tp.ones(2)).tolist()
[2.0, 2.0]
"""
from __future__ import annotations

from . import _views as views
from ._data import from_bytes, pack, to_bytes, unpack
from ._derived_rules import jvp_rule, vmap_rule
from ._device import as_device, register_driver
from ._dtype import as_dtype, number_dtype, promote_types, result_dtype
from ._elementwise import compute_dtype, elementwise_meta
from ._errors import (
    ArgumentError,
    AutogradError,
    DeviceError,
    DimError,
    DivisionByZeroError,
    DTypeError,
    IndexRangeError,
    MemoryLimitError,
    MissingPluginError,
    NotSupported,
    ShapeError,
    TensorPlayError,
    ValueRangeError,
    shape_text,
    user_line,
)
from ._generic import allocate, copy_into, expanded, generic_kernel, infer, layouts_of
from ._indexing import tensor_indices, view_of_index
from ._inplace import bump_version, check_target, make_inplace, writer_text
from ._keys import AUTOGRAD, INFERENCE, JVP, MODE, NO_GRAD, TRACE, VMAP, mask_bits, mode_mask, modes
from ._layout import (
    Layout,
    as_int,
    as_shape,
    broadcast_shapes,
    broadcast_strides,
    contiguous_strides,
    layout,
    normalize_dim,
    normalize_dims,
)
from ._op import (
    COMPARE,
    DATA_DEPENDENT,
    ELEMENTWISE,
    FACTORY,
    FLOAT,
    NONDIFFERENTIABLE,
    OPS,
    PRIMITIVE,
    RANDOM,
    RETYPES,
    SAME,
    VIEW,
    Op,
    held_over_fork,
    make_op,
    register_kernels,
)
from ._ops import find_function
from ._random import Generator, default_generator
from ._resolve import below_autograd, find, generic_path, register_builder
from ._schema import Schema
from ._storage import Storage
from ._tensor import Size, Tensor, make_tensor
from ._views import alias

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def op(schema: str, *, tags: tuple = (), promotion: str = SAME, doc: str = "", replace: bool = False) -> Callable:
    """Register an operator and return the function that calls it.

    `schema` is `name(parameters) -> returns`, e.g. `gelu(Tensor input, *, str approximate='none') -> Tensor`; names of
    one's own operators have a namespace: `mine::gelu`. The rules are decorators on the returned function:

    - `meta(layouts and attributes)`: the result's Layout (a tuple for several results). Elementwise ops have one.
    - `decomposition(arguments)`: the operator in terms of others; makes it run on every device.
    - `vjp`: one formula returning a gradient for each tensor argument, or `vjp(x=lambda grad, y: ..., y=...)`, one
      formula for each. Parameters are bound by name: `grad`, arguments, `<argument>_layout`, `output`, `needs`.
    - `jvp`, `vmap`, `lower`, `samples`: forward mode, batching, kernel IR, example inputs.
    - `kernel("device")`: `kernel(out, *arguments)` writes into the preallocated result.
    """
    return make_op(schema, tags, promotion, doc, replace)


__all__ = [name for name in dir() if not name.startswith("_") and name not in ("annotations", "TYPE_CHECKING")]
