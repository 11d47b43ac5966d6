"""The graph: nodes, and edges from a node to what made its inputs.

An edge is None (no gradient needed), a leaf Tensor (add to its `.grad`), a Node (with one output), or a pair
(Node, output number) for a node with several. Nodes are made from the loss's past to its present, so a node's edges
always lead to nodes with a larger `seq` (numbers count down): a heap of numbers visits them in a correct order.
"""
from __future__ import annotations

from itertools import count

from tensorplay.library import AUTOGRAD, AutogradError, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

next_seq = count(0, -1).__next__  # not a class counter: writing to a class throws away the interpreter's type cache
new = object.__new__


class Recipe:
    """What all nodes made by one operator, for one pattern of inputs that need a gradient, have in common."""

    __slots__ = ("name", "run", "save", "frees", "entries", "saved_names", "tensors", "several")

    def __init__(self, name: str, run: Callable, frees: bool = False, several: bool = False) -> None:
        self.name = name              # "AddBackward0"
        self.run = run                # run(node, saved, gradient) -> a gradient for each edge
        self.save: Any = None         # save(arguments, result) -> Node.saved; None if there is nothing to save
        self.frees = frees            # whether `saved` holds memory, to be dropped after the backward pass
        self.entries: tuple = ()      # the sources of the entries of `saved`
        self.saved_names: tuple = ()  # what the entries of `saved` are, for error messages
        self.tensors: tuple = ()      # (place of a tensor in `saved`, place of its version or -1 for a result)
        self.several = several        # several outputs: the gradient is a dict from output number to gradient


class Node:
    """One recorded operation."""

    __slots__ = ("seq", "recipe", "edges", "saved", "extra")
    seq: int
    recipe: Recipe
    edges: tuple
    saved: Any    # None once freed
    extra: Extra | None

    def name(self) -> str:
        """The operator's name as torch prints it: `MulBackward0`."""
        return self.recipe.name

    def __repr__(self) -> str:
        return f"<{self.recipe.name} object at {id(self):#x}>"

    @property
    def next_functions(self) -> tuple:
        """(node, output number) for each input; leaves are shown as AccumulateGrad nodes, (None, 0) needs nothing."""
        return tuple([_function_and_output(edge) for edge in self.edges])

    @property
    def metadata(self) -> dict:
        """A dict for the user's own notes on this node."""
        return extra_of(self).metadata

    @property
    def saved_tensors(self) -> tuple:
        """The tensors kept for the backward pass."""
        from ._saved import saved_tensors

        return saved_tensors(self)

    def register_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after this node; a result that is not None replaces grad_inputs."""
        return RemovableHandle(extra_of(self).hooks, hook)

    def register_prehook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(grad_outputs)` before this node; a result that is not None replaces them."""
        return RemovableHandle(extra_of(self).prehooks, hook)

    def saved_value(self, name: str) -> Any:
        """What is kept of the argument (or `result`) of that name. No __getattr__: it would slow every slot down."""
        from ._saved import saved_value

        return saved_value(self, name)


class Extra:
    """What few nodes have: hooks, notes, the forward line (anomaly mode), packed tensors."""

    __slots__ = ("tensor_hooks", "retained", "prehooks", "hooks", "metadata", "line", "trace", "packed")

    def __init__(self) -> None:
        self.tensor_hooks: dict[int, dict] = {}  # output number -> hooks of that tensor
        self.retained: dict[int, Any] = {}       # output number -> weak reference to the tensor that wants `.grad`
        self.prehooks: dict = {}
        self.hooks: dict = {}
        self.metadata: dict = {}
        self.line: str | None = None
        self.trace: Any = None
        self.packed = False                      # `saved` went through saved_tensors_hooks


def extra_of(node: Node) -> Extra:
    if node.extra is None:
        node.extra = Extra()
    return node.extra


def make_node(recipe: Recipe, edges: tuple, saved: Any) -> Node:
    node = new(Node)
    node.recipe = recipe
    node.edges = edges
    node.saved = saved
    node.extra = None
    node.seq = next_seq()
    return node


class RemovableHandle:
    """What registering a hook returns: `remove()` takes the hook away; also a context manager."""

    __slots__ = ("hooks", "key")

    def __init__(self, hooks: dict, hook: Callable) -> None:
        self.hooks = hooks
        self.key = object()
        hooks[self.key] = hook

    def remove(self) -> None:
        """Take the hook off again."""
        self.hooks.pop(self.key, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class LeafHooks:
    """The `hooks` slot of a leaf tensor."""

    __slots__ = ("tensor", "accumulated")

    def __init__(self) -> None:
        self.tensor: dict = {}
        self.accumulated: dict = {}


class AccumulateGrad:
    """How a leaf appears among `next_functions`; `variable` is the leaf."""

    __slots__ = ("variable",)
    next_functions = ()

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable

    def name(self) -> str:
        """The name of the node of a leaf."""
        return "AccumulateGrad"

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {id(self.variable):#x}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AccumulateGrad) and other.variable is self.variable

    def __hash__(self) -> int:
        return id(self.variable)

    def register_prehook(self, hook: Callable) -> RemovableHandle:
        """Call `hook((gradient,))` before it is added to the leaf; a result replaces it."""
        def on_gradient(gradient: Tensor) -> Any:
            result = hook((gradient,))
            return result[0] if isinstance(result, tuple) else result

        return self.variable.register_hook(on_gradient)

    def register_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook((), (leaf.grad,))` after a gradient was added to the leaf."""
        return self.variable.register_post_accumulate_grad_hook(lambda leaf: hook((), (leaf.grad,)))


def _function_and_output(edge: Any) -> tuple:
    if edge is None:
        return None, 0
    if edge.__class__ is Node:
        return edge, 0
    if edge.__class__ is tuple:
        return edge
    return AccumulateGrad(edge), 0


def attach(tensor: Tensor, node: Node, output: int = 0) -> Tensor:
    """Make `tensor` a result of `node`: output 0 of a node with one output, 1, 2, ... of one with several."""
    tensor.node = node
    tensor.output = output
    tensor.keyset |= AUTOGRAD
    return tensor


def need_gradient(tensor: Tensor, what: str) -> None:
    if not tensor.keyset & AUTOGRAD:
        raise AutogradError(f"{what}: the tensor does not require grad; make it a leaf that does with "
                            f"x.requires_grad_(), or compute it from one outside no_grad()")
