"""Layout: everything about a tensor but its data. Immutable and interned, so that `a.layout is b.layout` answers every
shape, dtype and device check at once. Identity is only the fast path: equal layouts may be distinct objects."""
from __future__ import annotations

from ._errors import DimError, ShapeError, ValueRangeError, shape_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._device import Device
    from ._dtype import DType

MAX_DIMS = 64
MAX_BYTES = 2 ** 62
_interned: dict[tuple, Layout] = {}
_LIMIT = 20_000


class Layout:
    """Shape, strides (in elements), dtype and device of a tensor."""

    __slots__ = ("shape", "strides", "dtype", "device", "numel", "ndim", "contiguous", "packed", "code")

    def __init__(self, shape: tuple, strides: tuple, dtype: DType, device: Device, contiguous: bool,
                 numel: int) -> None:
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.device = device
        self.numel = numel
        self.ndim = len(shape)
        self.contiguous = contiguous
        self.packed = b"".join([n.to_bytes(8, "little", signed=True) for n in shape + strides])  # for native kernels
        self.code = dtype.code

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.numel * self.dtype.itemsize

    def same(self, other: Layout) -> bool:
        """Equality; `==` is identity, which is enough for caches."""
        return self is other or (self.shape == other.shape and self.strides == other.strides
                                 and self.dtype is other.dtype and self.device is other.device)

    def __repr__(self) -> str:
        strides = "" if self.contiguous else f", strides={self.strides}"
        return f"Layout({shape_text(self.shape)}, {self.dtype.name}, {self.device}{strides})"

    def with_shape(self, shape: tuple) -> Layout:
        """Contiguous, same dtype and device."""
        return layout(shape, self.dtype, self.device)

    def with_dtype(self, dtype: DType) -> Layout:
        """Contiguous, same shape and device."""
        return layout(self.shape, dtype, self.device)

    def with_view(self, shape: tuple, strides: tuple) -> Layout:
        """The layout of a view with this shape and these strides."""
        return layout(shape, self.dtype, self.device, strides)

    def dense(self) -> Layout:
        """The same shape without gaps, the last dimension varying fastest."""
        return self if self.contiguous else layout(self.shape, self.dtype, self.device)


def contiguous_strides(shape: tuple) -> tuple:
    """The strides of a shape that lies without gaps, the last dimension varying fastest."""
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= size if size else 1
    strides.reverse()
    return tuple(strides)


def is_contiguous(shape: tuple, strides: tuple) -> bool:
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size == 0:
            return True
        if size != 1:
            if stride != step:
                return False
            step *= size
    return True


def layout(shape: tuple, dtype: DType, device: Device, strides: tuple | None = None) -> Layout:
    """The interned layout; contiguous if no strides are given. Shapes must be tuples of plain non-negative ints."""
    key = (shape, dtype, device, strides)
    found = _interned.get(key)
    if found is None:
        found = _make(key)
    return found


def _make(key: tuple) -> Layout:
    shape, dtype, device, strides = key
    numel = span = 1
    for size in shape:
        if size.__class__ is not int:
            raise ShapeError(f"a size must be an int, got {size!r} in shape {shape}")
        if size < 0:
            raise ValueRangeError(f"negative size {size} in shape {shape_text(shape)}")
        numel *= size
        span *= size or 1  # strides grow with it even where a size is 0
    if span * dtype.itemsize > MAX_BYTES or len(shape) > MAX_DIMS:
        raise ValueRangeError(f"shape {shape_text(shape)} has {numel} elements of {dtype.itemsize} bytes in "
                              f"{len(shape)} dimensions; at most {MAX_BYTES} bytes and {MAX_DIMS} dimensions are "
                              f"possible")
    dense = contiguous_strides(shape)
    if strides is None or strides == dense:
        made = _interned.get((shape, dtype, device, None)) or Layout(shape, dense, dtype, device, True, numel)
        _interned.setdefault((shape, dtype, device, None), made)
    else:
        made = Layout(shape, strides, dtype, device, is_contiguous(shape, strides), numel)
    if len(_interned) > _LIMIT:
        _interned.clear()
    return _interned.setdefault(key, made)


def broadcast_shapes(*shapes: tuple) -> tuple:
    """The common shape of NumPy's broadcasting rule; ShapeError names the shapes and the sizes that differ."""
    ndim = max(map(len, shapes), default=0)
    out = [1] * ndim
    for shape in shapes:
        pad = ndim - len(shape)
        for i, size in enumerate(shape):
            if size != 1 and size != out[pad + i]:
                if out[pad + i] != 1:
                    raise ShapeError(f"shapes {' and '.join(map(shape_text, shapes))} do not broadcast: sizes "
                                     f"{out[pad + i]} and {size} differ at dimension {pad + i} and neither is 1")
                out[pad + i] = size
    return tuple(out)


def broadcast_strides(shape: tuple, strides: tuple, to: tuple) -> tuple:
    """Strides with which a tensor of `shape` reads as one of shape `to`: 0 where a size 1 is repeated."""
    pad = len(to) - len(shape)
    return (0,) * pad + tuple([0 if size == 1 and target != 1 else stride
                               for size, stride, target in zip(shape, strides, to[pad:])])


def normalize_dim(dim: int, ndim: int, op: str = "dim") -> int:
    """A dimension in 0..ndim-1 from one in -ndim..ndim-1 (0-d tensors accept 0 and -1, as in torch)."""
    if dim.__class__ is not int:
        dim = as_int(dim, f"{op}: dim")
    bound = ndim or 1
    if not -bound <= dim < bound:
        raise DimError(f"{op}: dim {dim} is out of range for a tensor with {ndim} dimension(s): "
                       f"expected {-bound} to {bound - 1}")
    return dim + bound if dim < 0 else dim


def normalize_dims(dims: object, ndim: int, op: str = "dim") -> tuple:
    """Distinct dimensions in 0..ndim-1 from an int, a sequence, or None (all of them)."""
    if dims is None:
        return tuple(range(ndim))
    if not isinstance(dims, (tuple, list)):
        return (normalize_dim(dims, ndim, op),)  # type: ignore[arg-type]
    result = tuple([normalize_dim(dim, ndim, op) for dim in dims])
    if len(set(result)) != len(result):
        raise DimError(f"{op}: a dimension appears twice in dim={tuple(dims)}")
    return result


def as_int(value: object, what: str) -> int:
    """`value` as an int, through `__index__`; ArgumentError says what it is for."""
    try:
        return value.__index__()  # type: ignore[attr-defined]
    except AttributeError:
        from ._errors import ArgumentError

        raise ArgumentError(f"{what} must be an int, got {value!r} ({type(value).__name__})") from None


def as_shape(size: object, what: str = "size") -> tuple:
    """A shape from an int, a sequence of ints, or nested as in `zeros((2, 3))` and `zeros(2, 3)`."""
    if size.__class__ is tuple and all([n.__class__ is int for n in size]):  # type: ignore[attr-defined]
        return size  # type: ignore[return-value]
    if isinstance(size, (tuple, list)):
        if len(size) == 1 and isinstance(size[0], (tuple, list)):
            return as_shape(size[0], what)
        return tuple([as_int(n, what) for n in size])
    return (as_int(size, what),)
