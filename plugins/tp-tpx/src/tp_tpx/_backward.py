"""`backward` and `grad`: the entries to the backward pass."""
from __future__ import annotations

from tensorplay.library import AUTOGRAD, ArgumentError, AutogradError, Tensor, shape_text

from ._accumulate import accumulate
from ._execute import execute
from ._gradients import check_gradient, ones_of, zeros_of
from ._targets import Targets
from ._views import edge_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
             inputs: Any = None) -> None:
    """Add the gradients of `tensors` to the `.grad` of all leaves, or only of `inputs`.

    >>> import tensorplay as tp
    >>> x = tp.tensor([1., 2.], requires_grad=True)
    >>> tp.autograd.backward([x.sum(), (x * x).sum()])
    >>> x.grad.tolist()
    [3.0, 5.0]

    `grad_tensors`: a gradient for each tensor that is not a scalar. `retain_graph` keeps what the graph saved, so that
    it can be used again (default: `create_graph`); `create_graph` records the pass itself, for second gradients.
    Raises AutogradError if there is no graph, it is freed, or a tensor is not a scalar and has no gradient.
    """
    if grad_tensors is None and isinstance(tensors, Tensor):
        roots = [root("backward", tensors, None)]
    else:
        roots = start("backward", _as_list(tensors), grad_tensors)
    retain_graph = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        execute(roots, retain_graph, create_graph)
        return
    wanted = _as_list(inputs)
    if not wanted:
        raise ArgumentError("backward: inputs is empty; leave it out to reach every leaf")
    for tensor, gradient in zip(wanted, gradients_of(roots, wanted, retain_graph, create_graph, "backward")):
        if gradient is not None:
            accumulate(tensor, gradient, create_graph, 0)


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None,
         create_graph: bool = False, allow_unused: bool | None = None, is_grads_batched: bool = False,
         materialize_grads: bool = False) -> tuple:
    """The gradients of the sum of `outputs` for each of `inputs`, without touching any `.grad`.

    >>> import tensorplay as tp
    >>> x = tp.tensor(3., requires_grad=True)
    >>> first, = tp.autograd.grad(x ** 3, x, create_graph=True)
    >>> second, = tp.autograd.grad(first, x)
    >>> first.item(), second.item()
    (27.0, 18.0)

    An input that the outputs do not depend on is an AutogradError, None with `allow_unused`, zeros with
    `materialize_grads`.
    """
    if is_grads_batched:
        raise ArgumentError("grad: is_grads_batched is not supported; call grad once for each gradient")
    if materialize_grads and allow_unused is False:
        raise ArgumentError("grad: materialize_grads=True gives unused inputs zeros, so allow_unused cannot be False")
    roots = start("grad", _as_list(outputs), grad_outputs)
    wanted = _as_list(inputs)
    retain_graph = create_graph if retain_graph is None else retain_graph
    found = gradients_of(roots, wanted, retain_graph, create_graph, "grad")
    for i, (tensor, gradient) in enumerate(zip(wanted, found)):
        if gradient is None:
            if materialize_grads:
                found[i] = zeros_of(tensor.layout)
            elif not allow_unused:
                raise AutogradError(f"grad: the outputs do not depend on input {i} (shape "
                                    f"{shape_text(tensor.layout.shape)}); pass allow_unused=True to get None for it")
    return tuple(found)


def gradients_of(roots: list, wanted: list, retain_graph: bool, create_graph: bool, what: str) -> list:
    edges = []
    for i, tensor in enumerate(wanted):
        if not isinstance(tensor, Tensor):
            raise ArgumentError(f"{what}: input {i} must be a Tensor, got {type(tensor).__name__}")
        if not tensor.keyset & AUTOGRAD:
            raise AutogradError(f"{what}: input {i} does not require grad")
        edges.append(edge_of(tensor))
    targets = Targets([edge for edge, _ in roots], edges)
    execute(roots, retain_graph, create_graph, targets)
    return [targets.found.get(edge) for edge in edges]


def start(what: str, tensors: list, gradients: Any) -> list:
    """(edge, gradient) for each tensor that the pass starts from."""
    if gradients is None:
        gradients = [None] * len(tensors)
    gradients = _as_list(gradients)
    if len(gradients) != len(tensors):
        raise ArgumentError(f"{what}: {len(tensors)} tensors but {len(gradients)} gradients")
    return [root(what, tensor, gradient) for tensor, gradient in zip(tensors, gradients)]


def root(what: str, tensor: Any, gradient: Any) -> tuple:
    """(edge, gradient) that the pass starts from."""
    if not isinstance(tensor, Tensor):
        raise ArgumentError(f"{what}: expected a Tensor, got {type(tensor).__name__}")
    if not tensor.keyset & AUTOGRAD:
        raise AutogradError(f"{what}: this tensor has no graph: nothing it was computed from requires grad, or it "
                            f"was computed under no_grad()")
    if gradient is not None:
        gradient = check_gradient(gradient, tensor, f"{what}: the gradient")
    elif tensor.layout.numel != 1:
        raise AutogradError(f"{what}: this tensor has shape {shape_text(tensor.layout.shape)}, and only a scalar "
                            f"has an implicit gradient; reduce it, e.g. with .sum(), or pass its gradient")
    elif tensor.layout.dtype.is_complex:
        raise AutogradError(f"{what}: only real scalars have an implicit gradient; pass the gradient of this "
                            f"complex one")
    else:
        gradient = ones_of(tensor.layout)
    return edge_of(tensor), gradient


def _as_list(value: Any) -> list:
    if isinstance(value, Tensor):
        return [value]
    return list(value) if isinstance(value, (list, tuple)) or hasattr(value, "__next__") else [value]
