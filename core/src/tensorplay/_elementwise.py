"""What all elementwise operators share: their meta, and the promotion and broadcasting of their operands."""
from __future__ import annotations

from ._dtype import FLOATING, bool_, get_default_dtype, result_dtype
from ._errors import ShapeError, shape_text
from ._layout import Layout, broadcast_shapes, layout
from ._op import COMPARE, FLOAT, Op
from ._tensor import Tensor, make_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._dtype import DType


def compute_dtype(op: Op, args: tuple) -> DType:
    """The dtype in which an elementwise op computes: its Operands', promoted."""
    dtype = result_dtype(tuple([a.layout if isinstance(a, Tensor) else a for p, a in zip(op.schema.parameters, args)
                                if p.type == "Operand" and a is not None]))
    if op.promotion == FLOAT and dtype.category < FLOATING:
        return get_default_dtype()
    return dtype


def elementwise_meta(op: Op) -> Callable:
    """Broadcast shape; promoted dtype. A result keeps the memory order of dense operands of the same shape."""
    tensor_positions = op.schema.tensors

    def meta(*args: Any) -> Any:
        layouts = [args[i] for i in tensor_positions if args[i].__class__ is Layout]
        try:
            shape = broadcast_shapes(*[one.shape for one in layouts])
        except ShapeError:
            names = [op.schema.parameters[i].name for i in tensor_positions if args[i].__class__ is Layout]
            shapes = ", ".join([f"{n}{shape_text(a.shape)}" for n, a in zip(names, layouts)])
            raise ShapeError(f"{op.name}: {shapes} do not broadcast: sizes must be equal or 1, compared from the "
                             f"last dimension") from None
        dtype = bool_ if op.promotion == COMPARE else compute_dtype(op, args)
        return layout(shape, dtype, layouts[0].device)

    return meta


def promote_and_expand(op: Op, args: tuple, result: Layout) -> tuple:
    """Operands as elementwise kernels get them: one dtype, the result's shape (stride 0 where repeated)."""
    from ._generic import expanded

    dtype = compute_dtype(op, args)
    shape = result.shape
    prepared = list(args)
    for i in op.schema.tensors:
        arg = args[i]
        if arg is None:
            continue
        if not isinstance(arg, Tensor):
            arg = number_tensor(arg, dtype, result.device)
        elif op.schema.parameters[i].type == "Operand" and arg.layout.dtype is not dtype:
            arg = arg.to(dtype)
        prepared[i] = expanded(arg, shape)
    return tuple(prepared)


def number_tensor(value: object, dtype: DType, device: Any) -> Tensor:
    """A 0-d tensor that holds a Python number."""
    from ._data import pack

    driver = device.driver
    storage = driver.allocate(dtype.itemsize, device)
    driver.copy_from_host(storage, pack([value], dtype))
    return make_tensor(storage, 0, layout((), dtype, device))
