"""In-place and `out=` forms, derived from the functional operator: compute, check, write, count the version up."""
from __future__ import annotations

from ._errors import ArgumentError, AutogradError, DTypeError, ShapeError, shape_text, user_frame
from ._keys import AUTOGRAD, NO_GRAD, modes
from ._layout import Layout
from ._op import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._tensor import Tensor

_plans: dict[tuple, bool] = {}  # (op, layouts and kinds of the arguments) -> may the kernel write into the target


def bump_version(target: Tensor, op_name: str) -> None:
    """Count a write, and remember who did it for the error that a later backward may have to give."""
    storage = target.storage
    storage.version += 1
    frame = user_frame(2)
    storage.writer = (op_name, (frame.f_code.co_filename, frame.f_lineno) if frame else None)


def writer_text(storage: Any) -> tuple[str | None, str | None]:
    """(operator, `file:line`) of the last in-place write to a storage, as far as known."""
    op_name, place = storage.writer or (None, None)
    return op_name, f"{place[0]}:{place[1]}" if place else None


def make_inplace(function: Callable) -> Callable:
    """The in-place method of a function: `add_` from `add`."""
    op = getattr(function, "op", None)
    name = function.__name__ + "_"

    def inplace(self: Tensor, *args: Any, **named: Any) -> Tensor:
        if not modes() & NO_GRAD and needs_grad(self, args):
            from ._autograd import engine

            return engine().inplace(function, self, args, named)
        if named or op is None or not op.elementwise or not write_directly(op, self, args, name):
            write(self, function(self, *args, **named), name)
        return self

    inplace.__name__ = inplace.__qualname__ = name
    inplace.__doc__ = f"In-place form of `{name[:-1]}`: writes the result into this tensor and returns it."
    return inplace


def needs_grad(self: Any, args: tuple) -> bool:
    if getattr(self, "keyset", 0) & AUTOGRAD:
        return True
    for arg in args:
        if getattr(arg, "keyset", 0) & AUTOGRAD:
            return True
    return False


def write_directly(op: Op, self: Tensor, args: tuple, name: str) -> bool:
    """Run the elementwise kernel with the target as its output. False if that is not possible."""
    keyset = self.keyset & ~AUTOGRAD | modes() & ~NO_GRAD
    for arg in args:
        keyset |= getattr(arg, "keyset", 0) & ~AUTOGRAD
    if keyset != self.layout.device.key:
        return False
    if len(args) + 1 != len(op.schema.parameters):
        args = op.schema.bind((self, *args), {})[1:]
    target = self.layout
    plan = (op, target, *[getattr(arg, "layout", arg.__class__) for arg in args])
    allowed = _plans.get(plan)
    if allowed is None:
        allowed = _may_write(op, self, args)
        if len(_plans) > 8192:
            _plans.clear()
        _plans[plan] = allowed
    if not allowed:
        return False
    for arg in args:
        if getattr(arg, "storage", None) is self.storage and (arg.layout is not target or arg.offset != self.offset):
            return False  # the write could overtake the reads
    kernel = op.table.get(keyset) or op.resolve(keyset)
    out_kernel = getattr(kernel, "out_kernel", None)
    if out_kernel is None:
        return False
    prepare = getattr(kernel, "prepare", None)
    out_kernel(self, *(prepare((self, *args), target) if prepare else (self, *args)))
    bump_version(self, name)
    return True


def _may_write(op: Op, self: Tensor, args: tuple) -> bool:
    from ._calls import NUMBERS
    from ._generic import infer

    for parameter, arg in zip(op.schema.parameters[1:], args):
        if parameter.is_tensor and not (hasattr(arg, "layout") or arg.__class__ in NUMBERS
                                        or arg is None and parameter.optional):
            return False  # the ordinary call converts it, or says what is wrong
    result = infer(op, (self, *args))
    check_target(self, result, op.name + "_")
    target = self.layout
    return result.dtype is target.dtype and (target.contiguous or not target.device.driver.wants_contiguous)


def check_target(self: Tensor, result: Any, name: str) -> None:
    """The result must have the target's shape, and a dtype that casts to the target's."""
    target = self.layout
    if result.__class__ is not Layout:
        raise ShapeError(f"{name}: an operator with several results has no in-place form")
    if result.shape != target.shape:
        raise ShapeError(f"{name}: the result has shape {shape_text(result.shape)} but the tensor written to has "
                         f"{shape_text(target.shape)}")
    if result.dtype.category > target.dtype.category:
        raise DTypeError(f"{name}: the result is {result.dtype.name} and cannot be stored in a {target.dtype.name} "
                         f"tensor; use the form without '_' or convert the tensor first")
    check_own_cells(self, name)


def check_own_cells(self: Tensor, name: str) -> None:
    target = self.layout
    if target.contiguous:
        return
    for size, stride in zip(target.shape, target.strides):
        if size > 1 and stride == 0 and target.numel:
            raise AutogradError(f"{name}: several elements of the tensor share one memory cell (it was expanded); "
                                f"call .clone() first")


def write(target: Tensor, value: Tensor, name: str) -> None:
    """Copy a computed value into the target's memory, cast to its dtype."""
    from ._ops import require

    check_target(target, value.layout, name)
    require("write_")(target, value)
    target.storage.writer = (name, (target.storage.writer or (None, None))[1])


def call_into(op: Op, args: tuple, out: Any) -> Any:
    """`out=`: compute, then write into `out`, which is resized if it is empty."""
    from ._creation import empty_like_layout
    from ._tensor import Tensor

    targets = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    for one in targets:
        if not isinstance(one, Tensor):
            raise ArgumentError(f"{op.name}: out= must be a Tensor, got {type(one).__name__}")
    if not modes() & NO_GRAD and (needs_grad(targets[0], targets[1:]) or needs_grad(args[0], args[1:])):
        raise AutogradError(f"{op.name}: out= does not support automatic differentiation, but an argument or out "
                            f"requires grad; use the returned value instead, or tp.no_grad()")
    results = op.call(*args)
    results = results if isinstance(results, tuple) else (results,)
    if len(results) != len(targets):
        raise ArgumentError(f"{op.name}: out= must be {len(results)} tensors, got {len(targets)}")
    for one, result in zip(targets, results):
        if one.layout.shape != result.layout.shape and one.layout.numel == 0:
            fresh = empty_like_layout(result.layout.with_dtype(one.layout.dtype))
            one.storage, one.offset, one.layout = fresh.storage, 0, fresh.layout
        write(one, result.detach(), op.name + "(out=)")
    return out
