"""Views as metadata: each function takes a layout and says (layout of the view, how far its first element moves)."""
from __future__ import annotations

from ._errors import ArgumentError, IndexRangeError, ShapeError, ValueRangeError, shape_text
from ._layout import Layout, as_int, as_shape, broadcast_strides, normalize_dim, normalize_dims
from ._tensor import make_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._tensor import Tensor


def alias(x: Tensor) -> Tensor:
    """Another tensor over the same memory, without history."""
    return make_tensor(x.storage, x.offset, x.layout)


def infer_size(shape: tuple, numel: int, op: str = "reshape", source: tuple = ()) -> tuple:
    """Fill in a -1; the sizes must multiply to `numel`."""
    unknown = [i for i, size in enumerate(shape) if size == -1]
    known = 1
    for size in shape:
        if size < -1:
            raise ValueRangeError(f"{op}: negative size {size} in shape {shape_text(shape)}; only one -1 is allowed")
        known *= 1 if size == -1 else size
    if len(unknown) > 1:
        raise ValueRangeError(f"{op}: only one size can be -1, got {shape_text(shape)}")
    if unknown:
        if known == 0 and numel == 0:
            raise ShapeError(f"{op}: -1 is ambiguous in {shape_text(shape)} for a tensor without elements")
        if known == 0 or numel % known:
            raise ShapeError(f"{op}: shape {shape_text(source)} has {numel} elements, which is not a multiple of the "
                             f"known sizes in {shape_text(shape)} ({known})")
        i = unknown[0]
        return shape[:i] + (numel // known,) + shape[i + 1:]
    if known != numel:
        raise ShapeError(f"{op}: shape {shape_text(source)} has {numel} elements, {shape_text(shape)} has {known}")
    return shape


def view_strides(shape: tuple, strides: tuple, new: tuple) -> tuple | None:
    """Strides with which the memory of (shape, strides) reads as `new`, or None if a copy is needed."""
    if 0 in shape:
        out, step = [], 1
        for size in reversed(new):
            out.append(step)
            step *= size or 1
        return tuple(reversed(out))
    old = [(size, stride) for size, stride in zip(shape, strides) if size != 1]
    groups: list[list[int]] = []  # merged runs: [number of elements, innermost stride]
    for size, stride in old:
        if groups and groups[-1][1] == stride * size:
            groups[-1] = [groups[-1][0] * size, stride]
        else:
            groups.append([size, stride])
    out = [0] * len(new)
    d = len(new) - 1
    for count, stride in reversed(groups):
        taken = 1
        while d >= 0 and (taken < count or new[d] == 1):
            out[d] = stride * taken
            taken *= new[d]
            d -= 1
        if taken != count:
            return None
    while d >= 0:
        if new[d] != 1:
            return None
        out[d] = out[d + 1] * new[d + 1] if d + 1 < len(new) else 1
        d -= 1
    return tuple(out)


def reshape(source: Layout, size: object, op: str = "view") -> tuple[Layout, int] | None:
    """None if the elements cannot be read in that shape without a copy."""
    shape = infer_size(as_shape(size), source.numel, op, source.shape)
    if source.contiguous:
        return source.with_shape(shape), 0
    strides = view_strides(source.shape, source.strides, shape)
    return None if strides is None else (source.with_view(shape, strides), 0)


def view(source: Layout, size: object) -> tuple[Layout, int]:
    result = reshape(source, size)
    if result is None:
        raise ShapeError(f"view: a tensor of shape {shape_text(source.shape)} with strides {source.strides} cannot be "
                         f"seen as {shape_text(as_shape(size))} without a copy; use reshape")
    return result


def permute(source: Layout, dims: object) -> tuple[Layout, int]:
    order = normalize_dims(dims, source.ndim, "permute")
    if len(order) != source.ndim:
        raise ShapeError(f"permute: {len(order)} dims {dims} given for a tensor with {source.ndim} dimensions")
    return source.with_view(tuple([source.shape[d] for d in order]), tuple([source.strides[d] for d in order])), 0


def transpose(source: Layout, dim0: int, dim1: int) -> tuple[Layout, int]:
    if not source.ndim:
        normalize_dim(dim0, 0, "transpose"), normalize_dim(dim1, 0, "transpose")
        return source, 0
    first, second = normalize_dim(dim0, source.ndim, "transpose"), normalize_dim(dim1, source.ndim, "transpose")
    order = list(range(source.ndim))
    order[first], order[second] = second, first
    return permute(source, order)


def expand(source: Layout, size: object) -> tuple[Layout, int]:
    shape = as_shape(size)
    pad = len(shape) - source.ndim
    if pad < 0:
        raise ShapeError(f"expand: {shape_text(shape)} has fewer dimensions than the tensor's "
                         f"{shape_text(source.shape)}")
    target = tuple([source.shape[i - pad] if n == -1 and i >= pad else n for i, n in enumerate(shape)])
    for i, size_now in enumerate(source.shape):
        if size_now not in (1, target[pad + i]):
            raise ShapeError(f"expand: size {size_now} at dimension {i} of {shape_text(source.shape)} cannot become "
                             f"{target[pad + i]} of {shape_text(shape)}; only size 1 can")
    if any([n < 0 for n in target]):
        raise ValueRangeError(f"expand: negative size in {shape_text(shape)}")
    return source.with_view(target, broadcast_strides(source.shape, source.strides, target)), 0


def squeeze(source: Layout, dim: object = None) -> tuple[Layout, int]:
    drop = set(normalize_dims(dim, source.ndim, "squeeze")) if source.ndim else set()
    keep = [i for i, size in enumerate(source.shape) if not (size == 1 and i in drop)]
    return source.with_view(tuple([source.shape[i] for i in keep]), tuple([source.strides[i] for i in keep])), 0


def unsqueeze(source: Layout, dim: int) -> tuple[Layout, int]:
    place = normalize_dim(dim, source.ndim + 1, "unsqueeze")
    stride = source.strides[place] * source.shape[place] if place < source.ndim else 1
    return source.with_view(source.shape[:place] + (1,) + source.shape[place:],
                            source.strides[:place] + (stride,) + source.strides[place:]), 0


def select(source: Layout, dim: int, index: int) -> tuple[Layout, int]:
    if not source.ndim:
        raise IndexRangeError("select: a 0-d tensor cannot be indexed; x.item() gives its value")
    dim = normalize_dim(dim, source.ndim, "select")
    size = source.shape[dim]
    at = as_int(index, "select: index")
    if not -size <= at < size:
        raise IndexRangeError(f"index {at} is out of range for dimension {dim} of size {size} "
                              f"(shape {shape_text(source.shape)})")
    at += size if at < 0 else 0
    return source.with_view(source.shape[:dim] + source.shape[dim + 1:],
                            source.strides[:dim] + source.strides[dim + 1:]), at * source.strides[dim]


def slice_dim(source: Layout, dim: int = 0, start: int | None = None, end: int | None = None,
              step: int = 1) -> tuple[Layout, int]:
    """Python's slice of one dimension; a negative step reads backwards."""
    if not source.ndim:
        raise ShapeError("slice: a 0-d tensor has no dimension to slice")
    dim = normalize_dim(dim, source.ndim, "slice")
    if step == 0:
        raise ValueRangeError("slice step cannot be zero")
    for name, bound in (("start", start), ("end", end), ("step", step)):
        if bound is not None:
            as_int(bound, f"slice: {name}")
    first, last, step = slice(start, end, step).indices(source.shape[dim])
    length = len(range(first, last, step))
    shape = source.shape[:dim] + (length,) + source.shape[dim + 1:]
    strides = source.strides[:dim] + (source.strides[dim] * step,) + source.strides[dim + 1:]
    return source.with_view(shape, strides), first * source.strides[dim] if length else 0


def as_strided(source: Layout, size: object, stride: object, offset: int = 0) -> tuple[Layout, int]:
    """Any layout over the same storage; `offset` counts elements from the tensor's first one."""
    shape, strides = as_shape(size), as_shape(stride, "stride")
    if len(shape) != len(strides):
        raise ShapeError(f"as_strided: {len(shape)} sizes but {len(strides)} strides")
    return source.with_view(shape, strides), offset


def diagonal(source: Layout, offset: int = 0, dim1: int = 0, dim2: int = 1) -> tuple[Layout, int]:
    first, second = normalize_dim(dim1, source.ndim, "diagonal"), normalize_dim(dim2, source.ndim, "diagonal")
    if first == second:
        raise ArgumentError(f"diagonal: dim1 and dim2 are both {first}; they must differ")
    rows, columns = source.shape[first], source.shape[second]
    length = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    keep = [i for i in range(source.ndim) if i not in (first, second)]
    start = (offset * source.strides[second] if offset >= 0 else -offset * source.strides[first]) if length else 0
    return source.with_view(tuple([source.shape[i] for i in keep]) + (length,), tuple([source.strides[i] for i in keep])
                            + (source.strides[first] + source.strides[second],)), start


def unfold(source: Layout, dimension: int, size: int, step: int) -> tuple[Layout, int]:
    """Windows of `size` every `step` along a dimension; the window becomes the last dimension."""
    dim = normalize_dim(dimension, source.ndim, "unfold")
    size, step = as_int(size, "unfold: size"), as_int(step, "unfold: step")
    length = source.shape[dim] if source.ndim else 1
    if not 0 <= size <= length or step <= 0:
        raise ValueRangeError(f"unfold: windows of size {size} every {step} do not fit dimension {dim} of size "
                              f"{length}")
    if not source.ndim:
        return source.with_view((size,), (1,)), 0
    count = (length - size) // step + 1
    shape = source.shape[:dim] + (count,) + source.shape[dim + 1:] + (size,)
    strides = source.strides[:dim] + (source.strides[dim] * step,) + source.strides[dim + 1:] + (source.strides[dim],)
    return source.with_view(shape, strides), 0
