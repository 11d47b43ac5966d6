"""x[index] and x[index] = value. Ints, slices, None, `...` and booleans make one view; tensors and lists of indices and
boolean masks gather (index_get) or write (index_put), with NumPy's rules for where the indexed dimensions go."""
from __future__ import annotations

from . import _ops
from ._errors import ArgumentError, IndexRangeError, ShapeError, shape_text
from ._keys import NO_GRAD, modes
from ._layout import Layout
from ._tensor import Tensor, make_tensor
from ._views import select, slice_dim, unsqueeze

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_plans: dict[tuple, tuple] = {}  # (layout, parsed index) -> (layout of the view, offset change)


def get_item(x: Tensor, index: Any) -> Tensor:
    if index.__class__ is int:
        return apply_view(x, (("int", index),))
    spec, arrays = parse(x, index)
    result = apply_view(x, spec)
    if not arrays:
        return result
    indices, dims = tensor_indices(result, arrays)
    return _ops.require("index_get")(result, indices, dims)


def set_item(x: Tensor, index: Any, value: Any) -> None:
    spec, arrays = parse(x, index)
    target = apply_view(x, spec) if spec else x
    if not isinstance(value, Tensor):
        from ._creation import tensor

        dtype = x.layout.dtype if isinstance(value, (int, float, complex)) else None
        value = tensor(value, dtype=dtype, device=x.layout.device)
    if arrays:
        indices, dims = tensor_indices(target, arrays)
        try:
            target.index_put_(indices, value.to(x.layout.dtype), dims)  # a tuple names the dimensions
        except ShapeError as problem:
            raise ShapeError(f"cannot write a value of shape {shape_text(value.layout.shape)} to x[...]: "
                             f"{problem.message}") from problem
        return
    while value.layout.ndim > target.layout.ndim and value.layout.shape[0] == 1:
        value = value[0]
    try:
        target.copy_(value)
    except ShapeError as problem:
        raise ShapeError(f"cannot write a value of shape {shape_text(value.layout.shape)} to x[...] of shape "
                         f"{shape_text(target.layout.shape)}") from problem


def apply_view(x: Tensor, spec: tuple) -> Tensor:
    """The view of a basic index. Only recorded or watched calls need the operator."""
    mask = modes()
    if not spec and mask & NO_GRAD and mask & ~NO_GRAD == 0:
        return make_tensor(x.storage, x.offset, x.layout)
    if x.keyset == x.layout.device.key and not mask & ~NO_GRAD:
        plan = (x.layout, spec)
        found = _plans.get(plan)
        if found is None:
            found = view_of_index(x.layout, spec)
            if len(_plans) > 8192:
                _plans.clear()
            _plans[plan] = found
        result, delta = found
        made = make_tensor(x.storage, x.offset + delta, result)
        if not mask:  # so that a recorded write to the view reaches what it is a view of
            made.base = x if x.base is None else x.base
        return made
    return _ops.require("index_view")(x, spec)


def view_of_index(source: Layout, spec: tuple) -> tuple[Layout, int]:
    """Meta of `index_view`: apply the parsed index one item after the other."""
    dim = offset = 0
    for item in spec:
        kind = item[0]
        moved = 0
        if kind == "int":
            try:
                source, moved = select(source, dim, item[1])
            except IndexRangeError as problem:
                raise IndexRangeError(problem.message) from None
        elif kind == "slice":
            if item[1:] != (None, None, None):
                source, moved = slice_dim(source, dim, item[1], item[2], 1 if item[3] is None else item[3])
            dim += 1
        elif kind == "new":
            source, moved = unsqueeze(source, dim)
            dim += 1
        else:
            dim += item[1]
        offset += moved
    return source, offset


def parse(x: Tensor, index: Any) -> tuple[tuple, list]:
    """A hashable spec for the basic part, and (dimension of the view, index array) pairs for the rest."""
    items = index if index.__class__ is tuple else (index,)
    used = sum([_dims_used(item) for item in items])
    if used > x.layout.ndim:
        raise IndexRangeError(f"too many indices: {used} for a tensor with {x.layout.ndim} dimension(s) "
                              f"of shape {shape_text(x.layout.shape)}")
    if sum([item is Ellipsis for item in items]) > 1:
        raise ArgumentError("an index can contain only one '...'")
    spec: list[tuple] = []
    arrays: list[tuple] = []
    dim = 0
    for item in items:
        kind = item.__class__
        if kind is int:
            spec.append(("int", item))
        elif kind is slice:
            spec.append(("slice", _bound(item.start), _bound(item.stop), _bound(item.step)))
            dim += 1
        elif item is None:
            spec.append(("new",))
            dim += 1
        elif item is Ellipsis:
            spec.append(("skip", x.layout.ndim - used))
            dim += x.layout.ndim - used
        else:
            dim += _parse_array(item, x, spec, arrays, dim)
    while spec and spec[-1] == ("slice", None, None, None):
        spec.pop()
    return tuple(spec), arrays


def _parse_array(item: Any, x: Tensor, spec: list, arrays: list, dim: int) -> int:
    """One index that is not a plain int or slice; how many dimensions of the view it covers."""
    if item.__class__ is bool:  # True adds a dimension of size 1, False one of size 0
        spec.append(("new",))
        if not item:
            spec[-1:] = [("new",), ("skip", -1), ("slice", 0, 0, 1)]
        return 1
    if not isinstance(item, Tensor) and hasattr(item, "__index__") and getattr(item, "ndim", 0) == 0:
        spec.append(("int", item.__index__()))
        return 0
    array = _as_index_tensor(item, x)
    if array.layout.dtype.name == "bool":
        count = array.layout.ndim
        if count == 0:
            return _parse_array(bool(array.item()), x, spec, arrays, dim)
    else:
        count = 1
    arrays.append((dim, array))
    spec.extend([("slice", None, None, None)] * count)
    return count


def _dims_used(item: Any) -> int:
    if item is None or item is Ellipsis or item.__class__ is bool:
        return 0
    dtype = getattr(item, "dtype", None)
    if dtype is not None and "bool" in str(dtype):
        return item.ndim
    if item.__class__ is list:
        depth, inner = 0, item
        while inner.__class__ is list and inner:
            depth, inner = depth + 1, inner[0]
        return depth if inner.__class__ is bool else 1
    return 1


def _bound(value: Any) -> int | None:
    if value is None:
        return None
    try:
        return value.__index__()
    except AttributeError:
        raise ArgumentError(f"slice bounds must be ints or None, got {value!r}") from None


def _as_index_tensor(item: Any, x: Tensor) -> Tensor:
    from ._creation import tensor
    from ._dtype import int64

    if not isinstance(item, Tensor):
        empty = item.__class__ in (list, tuple) and not item
        try:
            if isinstance(item, (float, complex)):
                raise ArgumentError("not an index")
            item = tensor(item, dtype=int64 if empty else None, device=x.layout.device)
        except ArgumentError:
            raise ArgumentError(f"cannot index with {item!r}; use ints, slices, None, '...', or integer or boolean "
                                f"tensors and lists") from None
    dtype = item.layout.dtype
    if dtype.category > 1:
        raise ArgumentError(f"index tensors must be integer or bool, got {dtype.name}; convert with .long()")
    if item.layout.device is not x.layout.device and item.layout.device.type == "cpu":
        item = item.to(x.layout.device)
    return item


def tensor_indices(x: Tensor, arrays: list) -> tuple[list, tuple]:
    """Integer index tensors and the dimensions they index; a mask becomes one index for each of its dimensions."""
    indices: list[Tensor] = []
    dims: list[int] = []
    for dim, array in arrays:
        if array.layout.dtype.name == "bool":
            covered = x.layout.shape[dim:dim + array.layout.ndim]
            if covered != array.layout.shape:
                raise IndexRangeError(f"a mask of shape {shape_text(array.layout.shape)} cannot index dimensions of "
                                      f"sizes {shape_text(covered)} (shape {shape_text(x.layout.shape)})")
            found = _ops.require("nonzero")(array)
            for i in range(array.layout.ndim):
                indices.append(found[:, i])
                dims.append(dim + i)
        else:
            indices.append(array if array.layout.dtype.name == "int64" else array.long())
            dims.append(dim)
    return indices, tuple(dims)
