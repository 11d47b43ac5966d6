"""What the engine does to gradients itself: zeros and ones to start from, and a gradient's shape and dtype made to
fit the tensor that it belongs to. All of it calls operators, so that it can be differentiated again and traced."""
from __future__ import annotations

from tensorplay.library import OPS, AutogradError, MissingPluginError, Tensor, find_function, shape_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tensorplay.library import Layout

_operators: dict[str, Callable] = {}


def operator(name: str) -> Callable:
    """An operator function that the engine needs."""
    found = _operators.get(name)
    if found is None:
        found = find_function(name)
        if found is None:
            raise MissingPluginError(f"the autograd engine needs the operator {name!r}; tp-operators provides it: "
                                     f"pip install tp-operators")
        _operators[name] = found
    return found


def zeros_of(layout: Layout) -> Tensor:
    return filled(layout, 0)


def ones_of(layout: Layout) -> Tensor:
    return filled(layout, 1)


def filled(layout: Layout, value: int) -> Tensor:
    """The operator behind zeros and ones, without their reading of arguments."""
    call = _operators.get("filled")
    if call is None:
        operator("full")
        call = _operators["filled"] = OPS["full"].call
    return call(layout.shape, value, layout.dtype, layout.device)


def all_gradients(gradients: dict, count: int, named: set, layouts: tuple) -> list:
    """A gradient for each output, None where nothing depends on it; zeros for those that a formula names."""
    found = [gradients.get(i) for i in range(1, count + 1)]
    for i in named:
        if found[i] is None:
            found[i] = zeros_of(layouts[i])
    return found


def fit(gradient: Tensor, wanted: Layout, op_name: str) -> Tensor:
    """Undo broadcasting and promotion: sum the gradient to the shape, cast it to the dtype of its tensor."""
    if gradient.layout.shape != wanted.shape:
        gradient = sum_to_size(gradient, wanted.shape, op_name)
    if gradient.layout.dtype is not wanted.dtype:
        if gradient.layout.dtype.is_complex and not wanted.dtype.is_complex:
            gradient = gradient.real
        gradient = gradient.to(wanted.dtype)
    return gradient


def sum_to_size(gradient: Tensor, shape: tuple, op_name: str) -> Tensor:
    have = gradient.layout.shape
    extra = len(have) - len(shape)
    dims = list(range(extra))
    for i, size in enumerate(shape):
        if extra >= 0 and have[extra + i] != size:
            if size != 1:
                extra = -1
                break
            dims.append(extra + i)
    if extra < 0:
        if 1 in have or len(have) < len(shape):  # a formula may leave sizes of 1 for the engine to repeat
            return gradient.expand(shape)
        raise AutogradError(f"{op_name}: its vjp returned a gradient of shape {shape_text(have)} for an input of shape "
                            f"{shape_text(shape)}")
    gradient = gradient.sum(dims, keepdim=True)
    return gradient.reshape(shape) if extra else gradient


def check_gradient(gradient: Any, tensor: Tensor, what: str) -> Tensor:
    """A gradient that a user hands in, e.g. `gradient=` of backward."""
    if not isinstance(gradient, Tensor):
        raise AutogradError(f"{what} must be a Tensor, got {type(gradient).__name__}")
    if gradient.layout.shape != tensor.layout.shape:
        raise AutogradError(f"{what} has shape {shape_text(gradient.layout.shape)}, but the tensor that it belongs to "
                            f"has shape {shape_text(tensor.layout.shape)}")
    if gradient.layout.dtype is not tensor.layout.dtype:
        gradient = gradient.to(tensor.layout.dtype)
    return gradient
