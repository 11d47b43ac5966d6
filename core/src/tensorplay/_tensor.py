"""Tensor: a storage seen through a layout. Nine slots; native kernels read and fill them by offset."""
from __future__ import annotations

from . import _data, _ops
from ._autograd import engine
from ._device import Device
from ._errors import ArgumentError, AutogradError, DTypeError, ShapeError
from ._keys import AUTOGRAD, INFERENCE, NO_GRAD, SUBCLASS, modes
from ._layout import Layout
from ._size import Size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ._dtype import DType


class Tensor:
    """An n-dimensional array on a device, with optional gradient.

    >>> import tensorplay as tp
    >>> x = tp.Tensor([[1., 2.], [3., 4.]], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad.tolist()
    [[2.0, 4.0], [6.0, 8.0]]

    `Tensor(data)` takes nested lists, numbers, NumPy arrays, buffers or tensors, and makes a copy; a tensor made from
    Python numbers has the default dtype. Sizes, `Tensor(2, 3)`, give an uninitialised tensor, as in torch.
    """

    __slots__ = ("storage", "offset", "layout", "keyset", "node", "output", "base", "grad", "hooks", "__weakref__")
    storage: Any      # memory; several tensors may share one
    offset: int       # of the first element, in elements
    layout: Layout
    keyset: int       # the device's bit, and AUTOGRAD if it requires grad
    node: Any         # the autograd node that made it; None for a leaf
    output: int       # which of the node's outputs it is
    base: Any         # autograd's record of what this is a view of, or None
    grad: Any
    hooks: Any

    def __new__(cls, *data: Any, dtype: DType | None = None, device: Any = None, requires_grad: bool = False) -> Any:
        from ._creation import tensor_from_constructor

        made = tensor_from_constructor(data, dtype, device)
        if cls is not Tensor:
            made = made.as_subclass(cls)
        return made.requires_grad_() if requires_grad else made

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        from ._modes import subclass_defined

        subclass_defined(cls)

    # ---- metadata ---------------------------------------------------------------------------------------------------
    @property
    def shape(self) -> Size:
        """The sizes of all dimensions.

        >>> import tensorplay as tp
        >>> tp.ones(2, 3).shape
        tensorplay.Size([2, 3])
        """
        return Size(self.layout.shape)

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self.layout.dtype

    @property
    def device(self) -> Device:
        """Where the memory is."""
        return self.layout.device

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.layout.ndim

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.layout.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements; a broadcast view counts each as often as it is seen."""
        return self.layout.nbytes

    @property
    def is_meta(self) -> bool:
        """Whether this tensor has a shape but no data."""
        return self.layout.device.type == "meta"

    @property
    def is_cpu(self) -> bool:
        """Whether this tensor is on the CPU."""
        return self.layout.device.type == "cpu"

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of dimension `dim`."""
        if dim is None:
            return Size(self.layout.shape)
        from ._layout import normalize_dim

        return self.layout.shape[normalize_dim(dim, self.layout.ndim, "size")]

    def stride(self, dim: int | None = None) -> Any:
        """Steps in elements between neighbours, for all dimensions or for `dim`."""
        if dim is None:
            return self.layout.strides
        from ._layout import normalize_dim

        return self.layout.strides[normalize_dim(dim, self.layout.ndim, "stride")]

    def dim(self) -> int:
        """The number of dimensions."""
        return self.layout.ndim

    def numel(self) -> int:
        """The number of elements."""
        return self.layout.numel

    nelement = numel
    ndimension = dim

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.layout.dtype.itemsize

    def storage_offset(self) -> int:
        """How many elements the first one lies behind the start of the storage."""
        return self.offset

    def is_contiguous(self) -> bool:
        """Whether the elements lie without gaps, the last dimension varying fastest."""
        return self.layout.contiguous

    def is_floating_point(self) -> bool:
        """Whether the dtype is a floating point one (complex is not)."""
        return self.layout.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Whether the dtype is complex."""
        return self.layout.dtype.is_complex

    def is_signed(self) -> bool:
        """Whether the dtype has negative values."""
        return self.layout.dtype.is_signed

    @property
    def _version(self) -> int:
        """How often the storage has been written to in place."""
        return self.storage.version

    # ---- gradient ---------------------------------------------------------------------------------------------------
    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded. Settable on leaves."""
        return self.keyset & AUTOGRAD != 0

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Ask for gradients of this leaf (or stop asking). Needs a floating point or complex dtype."""
        if requires_grad:
            if not (self.layout.dtype.is_floating_point or self.layout.dtype.is_complex):
                raise DTypeError(f"only floating point and complex tensors can require gradients, this one is "
                                 f"{self.layout.dtype.name}; convert it first, e.g. x.float()")
            engine()
            self.keyset |= AUTOGRAD
        elif self.node is not None:
            raise AutogradError("requires_grad can only be turned off on leaf tensors; x.detach() gives a tensor "
                                "without history")
        else:
            self.keyset &= ~AUTOGRAD
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether this tensor was made by the user, and not recorded by an operation."""
        return not self.keyset & AUTOGRAD or self.grad_fn is None

    @property
    def grad_fn(self) -> Any:
        """The node of the graph that made this tensor; None for a leaf."""
        if self.base is not None and self.keyset & AUTOGRAD:
            return engine().grad_fn(self)
        return self.node

    def backward(self, gradient: Tensor | None = None, retain_graph: bool | None = None, create_graph: bool = False,
                 inputs: Any = None) -> None:
        """Add the gradients of this tensor (a scalar, or with `gradient` given) to the `.grad` of all leaves.

        Raises AutogradError if it has no graph, is not a scalar and no `gradient` is given, or its graph is freed.
        """
        engine().backward(self, gradient, retain_graph, create_graph, inputs)

    def detach(self) -> Tensor:
        """The same memory without history."""
        return make_tensor(self.storage, self.offset, self.layout)

    def detach_(self) -> Tensor:
        """Forget the history; the tensor becomes a leaf."""
        self.node = None
        self.keyset &= ~AUTOGRAD
        return self

    @property
    def data(self) -> Tensor:
        """The same memory without history; what is written through it is not recorded."""
        return self.detach()

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise ArgumentError(f".data must be set to a Tensor, got {type(value).__name__}")
        self.storage, self.offset, self.layout = value.storage, value.offset, value.layout
        self.keyset = value.layout.device.key | self.keyset & (AUTOGRAD | SUBCLASS)

    def register_hook(self, hook: Callable) -> Any:
        """Call `hook(grad)` whenever this tensor's gradient is computed; a result that is not None replaces it."""
        return engine().register_tensor_hook(self, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable) -> Any:
        """Call `hook(tensor)` after a gradient has been added to this leaf's `.grad`."""
        return engine().register_post_accumulate_hook(self, hook)

    def retain_grad(self) -> None:
        """Keep the gradient of this non-leaf tensor in `.grad`."""
        engine().retain_grad(self)

    def is_inference(self) -> bool:
        """Whether inference mode is on."""
        return bool(modes() & INFERENCE)

    # ---- Python protocols -------------------------------------------------------------------------------------------
    def __len__(self) -> int:
        if not self.layout.shape:
            raise ArgumentError("len() of a 0-d tensor")
        return self.layout.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.layout.shape:
            raise ArgumentError("iteration over a 0-d tensor; x.item() gives its value")
        return iter([self[i] for i in range(self.layout.shape[0])])

    def __bool__(self) -> bool:
        if self.layout.numel != 1:
            raise ShapeError(f"the truth value of a tensor with {self.layout.numel} elements is ambiguous; "
                             f"use x.any() or x.all()")
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self.layout.numel != 1 or self.layout.dtype.category > 1:
            raise ArgumentError("only integer tensors of one element can be used as an index")
        return int(self.item())

    def __contains__(self, value: object) -> bool:
        return bool((self == value).any())

    __hash__ = object.__hash__

    def __getitem__(self, index: Any) -> Tensor:
        return _indexing.get_item(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        _indexing.set_item(self, index, value)

    def __repr__(self) -> str:
        from ._repr import tensor_text

        return tensor_text(self)

    def __format__(self, spec: str) -> str:
        if not self.is_meta and (not self.layout.shape or spec and self.layout.numel == 1):
            return format(self.item(), spec)
        return object.__format__(self, spec)

    def item(self) -> Any:
        """The value of a one-element tensor as a Python number."""
        return _data.item(self)

    def tolist(self) -> Any:
        """Nested lists of Python numbers; a number for a 0-d tensor."""
        return _data.to_list(self)

    def numpy(self, *, force: bool = False) -> Any:
        """A NumPy array sharing the memory of this CPU tensor (with `force`, a copy of any tensor)."""
        from ._interchange import to_numpy

        return to_numpy(self, force)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        from ._interchange import as_array

        return as_array(self, dtype, copy)

    __array_priority__ = 1000

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
                   copy: bool | None = None) -> Any:
        from ._dlpack import to_capsule

        return to_capsule(self, copy, max_version, dl_device)

    def __dlpack_device__(self) -> tuple[int, int]:
        from ._dlpack import device_of

        return device_of(self)

    def __reduce_ex__(self, protocol: Any) -> tuple:
        from ._interchange import reduce

        return reduce(self)

    def __deepcopy__(self, memo: dict) -> Tensor:
        from ._interchange import deep_copy

        return deep_copy(self, memo)

    def __copy__(self) -> Tensor:
        return make_tensor(self.storage, self.offset, self.layout).as_subclass(type(self))

    def as_subclass(self, cls: type) -> Any:
        """The same data as an instance of a Tensor subclass; gradients of the result reach this tensor."""
        source = self
        if self.keyset & AUTOGRAD and self.node is None and not modes() & NO_GRAD:
            from ._resolve import find

            op: Any = _ops.require("index_view").op  # type: ignore[attr-defined]
            source = find(op, self.keyset & ~SUBCLASS | modes())(self, ())
        made = make_tensor(self.storage, self.offset, self.layout, cls)
        made.node, made.output, made.base = source.node, source.output, source.base
        made.keyset |= self.keyset & AUTOGRAD
        return made

    def data_ptr(self) -> int:
        """The address of the first element, for a storage that has one."""
        return self.storage.data + self.offset * self.layout.dtype.itemsize

    def untyped_storage(self) -> Any:
        """The storage, which other tensors may share."""
        return self.storage


_new = object.__new__


def make_tensor(storage: Any, offset: int, layout: Layout, cls: type = Tensor) -> Any:
    """A tensor over existing memory, without history."""
    made = _new(cls)
    made.storage = storage
    made.offset = offset
    made.layout = layout
    made.keyset = layout.device.key if cls is Tensor else layout.device.key | subclass_keys.get(cls, 0)
    made.node = None
    made.output = 0
    made.base = None
    made.grad = None
    made.hooks = None
    return made


subclass_keys: dict[type, int] = {}  # Tensor subclass -> SUBCLASS if it defines __tensorplay_function__

_ops.install_placeholders(Tensor)

from . import _indexing  # noqa: E402  # it needs Tensor, and an import inside x[i] would cost more than the view

__all__ = ["NO_GRAD", "Size", "Tensor", "make_tensor"]
