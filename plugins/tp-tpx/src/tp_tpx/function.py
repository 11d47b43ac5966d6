"""Function: an operation whose forward and backward you write yourself.

>>> import tensorplay as tp
>>> class Cube(tp.autograd.Function):
...     @staticmethod
...     def forward(ctx, x):
...         ctx.save_for_backward(x)
...         return x * x * x
...     @staticmethod
...     def backward(ctx, grad):
...         x, = ctx.saved_tensors
...         return 3 * x * x * grad
>>> x = tp.tensor([1., 2.], requires_grad=True)
>>> Cube.apply(x).sum().backward()
>>> x.grad.tolist()
[3.0, 12.0]
"""
from __future__ import annotations

from functools import wraps

from tensorplay.library import (
    AUTOGRAD,
    INFERENCE,
    NO_GRAD,
    ArgumentError,
    AutogradError,
    Tensor,
    alias,
    bump_version,
    make_tensor,
    mask_bits,
    modes,
    writer_text,
)

from . import _record
from ._gradients import fit, zeros_of
from ._inplace import check_writable
from ._node import Recipe, attach, make_node
from ._saved import Packed, hooks_now
from ._views import base_of, edge_of, written_into

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._node import Node


class FunctionCtx:
    """What `forward` leaves for `backward`. Other attributes may be set freely."""

    def __init__(self, needs_input_grad: tuple) -> None:
        self.needs_input_grad = needs_input_grad
        self._to_save: tuple = ()
        self._saved: list | None = None
        self._node: Any = None
        self._dirty: tuple = ()
        self._constant: tuple = ()
        self._materialize = True
        self._input_layouts: list = []
        self._output_layouts: list = []

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `backward`, which finds them in `ctx.saved_tensors`."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise ArgumentError(f"save_for_backward takes tensors, got {type(tensor).__name__}; set other values "
                                    f"as attributes of ctx")
        self._to_save = tensors

    @property
    def saved_tensors(self) -> tuple:
        if self._saved is None:
            return self._to_save
        return tuple([_open(self, kept) for kept in self._saved])

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Name the inputs that `forward` changed in place."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Name the outputs that have no gradient."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """With False, `backward` gets None in place of zeros for outputs that nothing depends on."""
        self._materialize = value


def _open(ctx: FunctionCtx, kept: Any) -> Any:
    if kept is None:
        return None
    what, version, output = kept
    if what.__class__ is Packed:
        return what.open()
    made = make_tensor(*what) if output else what
    if made.storage.version != version:
        op, line = writer_text(made.storage)
        raise AutogradError(f"{ctx._node.recipe.name}: a tensor of save_for_backward was changed in place"
                            f"{f' by {op}' if op else ''}{f' at {line}' if line else ''} after it was saved")
    if output and not modes() & NO_GRAD and made.layout.dtype.category > 1:
        attach(made, ctx._node, output)
    return made


class Function:
    """Base of custom differentiable operations; see the module's example. `apply` calls it.

    `forward(ctx, *args)` with a `ctx`, or `forward(*args)` with `setup_context(ctx, inputs, output)`. `backward(ctx,
    *grads)` returns a gradient (or None) for each argument of forward.
    """

    @staticmethod
    def forward(*args: Any) -> Any:
        """Compute the result from the arguments; with `ctx` first unless `setup_context` is defined."""
        raise AutogradError("a Function needs a static method forward(ctx, *args)")

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple, output: Any) -> None:
        """Keep on `ctx` what `backward` needs, given the arguments and the result of `forward`."""
        raise AutogradError("a Function whose forward takes no ctx needs setup_context(ctx, inputs, output)")

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Any) -> Any:
        """From the gradients of the results, one for each argument of `forward`; None where there is none."""
        raise AutogradError("a Function needs a static method backward(ctx, *grads)")

    vjp = backward

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run `forward` and record it."""
        needs = tuple([isinstance(arg, Tensor) and arg.keyset & AUTOGRAD != 0 for arg in args])
        ctx = FunctionCtx(needs)
        recording = not modes() & NO_GRAD and any(needs)
        edges = tuple([edge_of(arg) if need else None for arg, need in zip(args, needs)]) if recording else ()
        with mask_bits(add=NO_GRAD):
            if cls.setup_context is Function.setup_context:
                result = cls.forward(ctx, *args)
            else:
                result = cls.forward(*args)
                cls.setup_context(ctx, args, result)
        for tensor in ctx._dirty:
            if recording:
                check_writable(tensor, cls.__name__)
            bump_version(tensor, cls.__name__)
        outputs = result if isinstance(result, (tuple, list)) else (result,)
        if not recording:
            made = [_not_the_input(one, args, ctx) for one in outputs]
        else:
            made = _record_outputs(cls, ctx, args, edges, outputs)
        return tuple(made) if isinstance(result, (tuple, list)) else made[0]


def _not_the_input(one: Any, args: tuple, ctx: FunctionCtx) -> Any:
    """An output that is an input and was not changed becomes a tensor of its own."""
    if any([one is arg for arg in args]) and isinstance(one, Tensor) and not any([one is d for d in ctx._dirty]):
        return alias(one)
    return one


def _record_outputs(cls: type, ctx: FunctionCtx, args: tuple, edges: tuple, outputs: tuple) -> list:
    node = make_node(_recipe(cls, bool(ctx._to_save)), edges, ctx)
    ctx._node = node
    ctx._input_layouts = [arg.layout if isinstance(arg, Tensor) else None for arg in args]
    ctx._output_layouts = [one.layout if isinstance(one, Tensor) else None for one in outputs]
    results = []
    for number, one in enumerate(outputs, 1):
        if not isinstance(one, Tensor) or one.layout.dtype.category < 2 or any([one is c for c in ctx._constant]):
            results.append(one)
        elif any([one is dirty for dirty in ctx._dirty]):
            if base_of(one) is None:
                attach(one, node, number)
            else:
                written_into(one, attach(alias(one), node, number), cls.__name__)
            results.append(one)
        else:
            fresh = one.node is None and not one.keyset & AUTOGRAD and not any([one is arg for arg in args])
            results.append(attach(one if fresh else alias(one), node, number))
    ctx._saved = [_keep(tensor, outputs) for tensor in ctx._to_save]
    ctx._to_save = ()
    if _record.watchers:
        _record.watched(node)
    return results


def _keep(tensor: Any, outputs: tuple) -> Any:
    """(tensor, version, 0), or for an output, which must not keep its own node alive, (its memory, version, number)."""
    if tensor is None:
        return None
    hooks = hooks_now.get()
    number = next((i for i, one in enumerate(outputs, 1) if one is tensor), 0)
    if hooks:
        pack, unpack = hooks[-1]
        return Packed(pack(alias(tensor) if number else tensor), unpack, None if number else edge_of(tensor)), 0, 0
    if number:
        return (tensor.storage, tensor.offset, tensor.layout), tensor.storage.version, number
    return tensor, tensor.storage.version, 0


_recipes: dict[tuple, Recipe] = {}


def _recipe(cls: Any, frees: bool) -> Recipe:
    recipe = _recipes.get((cls, frees))
    if recipe is None:
        recipe = _recipes[cls, frees] = Recipe(cls.__name__ + "Backward", _runner(cls), frees, several=True)
    return recipe


def _runner(cls: Any) -> Callable:
    backward = cls.backward if cls.backward is not Function.backward else cls.vjp

    def run(node: Node, ctx: FunctionCtx, gradients: dict) -> list:
        incoming = [gradients.get(i) for i in range(1, len(ctx._output_layouts) + 1)]
        if ctx._materialize:
            incoming = [zeros_of(layout) if one is None and layout is not None else one
                        for one, layout in zip(incoming, ctx._output_layouts)]
        found = backward(ctx, *incoming)
        results = list(found) if isinstance(found, (tuple, list)) else [found]
        wanted = ctx._input_layouts
        while len(results) > len(wanted) and results[-1] is None:
            results.pop()
        if len(results) != len(wanted):
            raise AutogradError(f"{cls.__name__}.backward returned {len(results)} gradient(s), but forward was called "
                                f"with {len(wanted)} argument(s); return one for each, None where there is none")
        for i, (one, layout) in enumerate(zip(results, wanted)):
            if one is not None:
                results[i] = _checked(cls, i, one, layout)
        return results

    return run


def _checked(cls: type, place: int, gradient: Any, layout: Any) -> Tensor:
    if not isinstance(gradient, Tensor):
        raise AutogradError(f"{cls.__name__}.backward returned a {type(gradient).__name__} as the gradient of argument "
                            f"{place}; it must be a Tensor or None")
    if layout is None:
        raise AutogradError(f"{cls.__name__}.backward returned a gradient for argument {place}, which is not a tensor; "
                            f"return None for it")
    return gradient if gradient.layout is layout else fit(gradient, layout, f"{cls.__name__}.backward")


def once_differentiable(backward: Callable) -> Callable:
    """Decorator for a `backward` that is not made of differentiable operations: differentiating it is an error."""
    @wraps(backward)
    def wrapped(ctx: FunctionCtx, *grads: Any) -> Any:
        with mask_bits(add=NO_GRAD):
            results = backward(ctx, *grads)
        if modes() & (NO_GRAD | INFERENCE):
            return results
        found = results if isinstance(results, (tuple, list)) else (results,)
        edge = next((edge_of(grad) for grad in grads if isinstance(grad, Tensor)), None)
        found = tuple([attach(alias(one), make_node(_ONCE, (edge,), ())) if isinstance(one, Tensor) else one
                       for one in found])
        return found if isinstance(results, (tuple, list)) else found[0]

    return wrapped


def _not_twice(node: Node, saved: tuple, gradient: Any) -> Any:
    raise AutogradError("a backward marked @once_differentiable cannot be differentiated; write it with differentiable "
                        "operations, without the decorator")


_ONCE = Recipe("OnceDifferentiable", _not_twice)

__all__ = ["Function", "FunctionCtx", "once_differentiable"]
