"""Hooks on tensors, nodes and leaves, `.retain_grad()`, and what a backward pass does at nodes that have some."""
from __future__ import annotations

from weakref import ref

from tensorplay.library import AutogradError, Tensor, shape_text

from ._anomaly import check_finite, is_anomaly_enabled
from ._gradients import fit
from ._node import LeafHooks, Node, RemovableHandle, extra_of, need_gradient
from ._views import edge_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._targets import Targets

_leaf_hooks = 0  # how many leaves ever got hooks; passes count the uses of leaves only if there are any


def leaf_hooks_exist() -> bool:
    return _leaf_hooks > 0


def hooks_of_leaf(leaf: Tensor) -> LeafHooks:
    global _leaf_hooks
    if leaf.hooks is None:
        leaf.hooks = LeafHooks()
        _leaf_hooks += 1
    return leaf.hooks


def register_tensor_hook(tensor: Tensor, hook: Callable) -> RemovableHandle:
    need_gradient(tensor, "register_hook")
    edge = edge_of(tensor)
    if edge is tensor:
        return RemovableHandle(hooks_of_leaf(tensor).tensor, hook)
    return RemovableHandle(extra_of(tensor.node).tensor_hooks.setdefault(tensor.output, {}), hook)


def register_post_accumulate_hook(tensor: Tensor, hook: Callable) -> RemovableHandle:
    need_gradient(tensor, "register_post_accumulate_grad_hook")
    if edge_of(tensor) is not tensor:
        raise AutogradError("register_post_accumulate_grad_hook: only leaf tensors accumulate a gradient; use "
                            "register_hook on other tensors")
    return RemovableHandle(hooks_of_leaf(tensor).accumulated, hook)


def retain_grad(tensor: Tensor) -> None:
    need_gradient(tensor, "retain_grad")
    if edge_of(tensor) is not tensor:
        extra_of(tensor.node).retained[tensor.output] = ref(tensor)


def run_tensor_hooks(hooks: dict, gradient: Tensor) -> Tensor:
    for hook in tuple(hooks.values()):
        result = hook(gradient)
        if result is not None:
            gradient = replacement(result, gradient, "a tensor hook")
    return gradient


def replacement(result: Any, gradient: Tensor, what: str) -> Tensor:
    if not isinstance(result, Tensor):
        raise AutogradError(f"{what} must return None or a Tensor, got {type(result).__name__}")
    if result.layout.shape != gradient.layout.shape:
        raise AutogradError(f"{what} returned a gradient of shape {shape_text(result.layout.shape)} in place of one of "
                            f"shape {shape_text(gradient.layout.shape)}")
    return fit(result, gradient.layout, what)


def leaf_gradient(leaf: Tensor, gradient: Tensor) -> Tensor:
    return gradient if leaf.hooks is None else run_tensor_hooks(leaf.hooks.tensor, gradient)


def before_node(node: Node, gradient: Any, targets: Targets | None) -> Any:
    """Tensor hooks, `.retain_grad()`, captures for `grad`, node pre-hooks; None if the node need not run."""
    extra = node.extra
    if extra is not None:
        gradient = _at_outputs(node, gradient)
    if targets is not None:
        targets.capture(node, gradient)
        if node not in targets.needed:
            return None
    if extra is not None and extra.prehooks:
        gradient = _prehooks(node, gradient)
    return gradient


def _at_outputs(node: Node, gradient: Any) -> Any:
    extra, several = node.extra, node.recipe.several
    for output, hooks in list(extra.tensor_hooks.items()):
        if not several:
            gradient = run_tensor_hooks(hooks, gradient)
        elif output in gradient:
            gradient[output] = run_tensor_hooks(hooks, gradient[output])
    for output, reference in extra.retained.items():
        tensor, one = reference(), gradient.get(output) if several else gradient
        if tensor is not None and one is not None:
            tensor.grad = one.clone() if tensor.grad is None else tensor.grad + one
    return gradient


def _as_tuple(node: Node, gradient: Any) -> tuple:
    if not node.recipe.several:
        return (gradient,)
    return tuple([gradient.get(i) for i in range(1, max(gradient) + 1)])


def _prehooks(node: Node, gradient: Any) -> Any:
    for hook in tuple(node.extra.prehooks.values()):
        result = hook(_as_tuple(node, gradient))
        if result is None:
            continue
        result = result if isinstance(result, (tuple, list)) else (result,)
        gradient = {i: one for i, one in enumerate(result, 1) if one is not None} if node.recipe.several else result[0]
    return gradient


def after_node(node: Node, results: Any, gradient: Any) -> Any:
    if is_anomaly_enabled():
        check_finite(node, results, gradient)
    if node.extra is not None:
        for hook in tuple(node.extra.hooks.values()):
            replaced = hook(tuple(results), _as_tuple(node, gradient))
            if replaced is not None:
                replaced = replaced if isinstance(replaced, (tuple, list)) else (replaced,)
                if len(replaced) != len(results):
                    raise AutogradError(f"a hook on {node.recipe.name} returned {len(replaced)} gradients in place of "
                                        f"{len(results)}")
                results = replaced
    return results


def count_leaf_uses(edges: list) -> dict:
    """How many gradients can reach each leaf that has hooks."""
    uses: dict = {}
    seen: set = set()
    stack = list(edges)
    while stack:
        edge = stack.pop()
        if edge is None:
            continue
        node = edge[0] if edge.__class__ is tuple else edge
        if node.__class__ is not Node:
            if node.hooks is not None:
                uses[node] = uses.get(node, 0) + 1
        elif node not in seen:
            seen.add(node)
            stack.extend(node.edges)
    return uses
