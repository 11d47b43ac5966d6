"""The backward pass: nodes in the order of their numbers, newest first, until no gradient is on its way.

A heap of node numbers is enough for a correct order: whatever can still send a gradient to a node is newer than it. So
there is no recursion and no search through the graph beforehand, and a branch that gets no gradient is never visited.
"""
from __future__ import annotations

from heapq import heappop, heappush, heappushpop
from sys import getrefcount

from tensorplay.library import INFERENCE, NO_GRAD, mode_mask, modes

from ._accumulate import accumulate
from ._anomaly import is_anomaly_enabled
from ._hooks import after_node, before_node, count_leaf_uses, leaf_gradient, leaf_hooks_exist
from ._node import LeafHooks, Node, Recipe, make_node
from ._saved import freed, unpacked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tensorplay.library import Tensor

    from ._targets import Targets


def execute(roots: list, retain_graph: bool, create_graph: bool, targets: Targets | None = None) -> None:
    """Send gradients from `roots`, (edge, gradient) pairs, to the leaves, or to `targets` and nowhere else."""
    previous = modes()
    mode_mask.set(previous & ~(NO_GRAD | INFERENCE) if create_graph else previous | NO_GRAD)
    try:
        Pass(retain_graph, create_graph, targets).run(roots)
    finally:
        mode_mask.set(previous)


class Pass:
    """The state of one backward pass."""

    __slots__ = ("retain_graph", "create_graph", "targets", "heap", "pending", "leaves", "uses", "accumulate")

    def __init__(self, retain_graph: bool, create_graph: bool, targets: Targets | None) -> None:
        self.retain_graph = retain_graph
        self.create_graph = create_graph
        self.targets = targets
        self.heap: list = []          # (seq, node) that have a gradient
        self.pending: dict = {}       # node -> its gradient so far; {output: gradient} for nodes with several outputs
        self.leaves: dict = {}        # leaf with hooks -> its gradient so far
        self.uses: dict | None = None  # leaf with hooks -> how many gradients may still come
        self.accumulate = accumulate

    def run(self, roots: list) -> None:
        if leaf_hooks_exist() and self.targets is None:
            self.uses = count_leaf_uses([edge for edge, _ in roots])
        for edge, gradient in roots:
            self.send(edge, gradient)
        self.loop()
        for leaf in list(self.leaves):
            self.finish_leaf(leaf)

    def loop(self) -> None:
        """The hot loop. Gradients for a Node with one output are sent here, all others by `send`."""
        heap, pending = self.heap, self.pending
        retain_graph, targets, send = self.retain_graph, self.targets, self.send
        watching = targets is not None or is_anomaly_enabled()
        ahead: Node | None = None  # has a gradient, but is not in the heap: in a chain it is simply the next one
        while True:
            if ahead is None:
                if not heap:
                    return
                node = heappop(heap)[1]
            elif heap and heap[0][0] < ahead.seq:
                node = heappushpop(heap, (ahead.seq, ahead))[1]
            else:
                node = ahead
            ahead = None
            gradient = pending.pop(node)
            special = watching or node.extra is not None
            if special:
                gradient = before_node(node, gradient, targets)
                if gradient is None:
                    continue
                saved = unpacked(node)
            else:
                saved = node.saved
            if saved is None:
                raise freed(node)
            recipe = node.recipe
            results = recipe.run(node, saved, gradient)
            if special:
                results = after_node(node, results, gradient)
            gradient = saved = None  # so that a result that nobody else sees has one reference
            if recipe.frees and not retain_graph:
                node.saved = None
            for edge, result in zip(node.edges, results):
                if result is None or edge is None:
                    continue
                if edge.__class__ is Node:
                    if edge in pending:
                        pending[edge] = pending[edge] + result
                    else:
                        pending[edge] = result
                        if ahead is None:
                            ahead = edge
                        else:
                            heappush(heap, (edge.seq, edge))
                else:
                    send(edge, result)

    def send(self, edge: Any, gradient: Tensor) -> None:
        kind = edge.__class__
        pending = self.pending
        if kind is Node:
            if edge in pending:
                pending[edge] = pending[edge] + gradient
            else:
                pending[edge] = gradient
                heappush(self.heap, (edge.seq, edge))
        elif kind is tuple:
            node, output = edge[0], edge[1] + 1
            gradients = pending.get(node)
            if gradients is None:
                pending[node] = {output: gradient}
                heappush(self.heap, (node.seq, node))
            else:
                gradients[output] = gradients[output] + gradient if output in gradients else gradient
        elif edge.hooks is None and self.targets is None:
            self.accumulate(edge, gradient, self.create_graph, REFERENCES)
        elif self.targets is None or edge in self.targets.leaves:
            self.send_to_leaf(edge, gradient)

    def send_to_leaf(self, leaf: Tensor, gradient: Tensor) -> None:
        """Hooks see the whole gradient of a leaf, once, as soon as nothing more can come."""
        leaves, uses = self.leaves, self.uses
        leaves[leaf] = leaves[leaf] + gradient if leaf in leaves else gradient
        if uses is not None and leaf in uses:
            uses[leaf] -= 1
            if uses[leaf] == 0:
                self.finish_leaf(leaf)

    def finish_leaf(self, leaf: Tensor) -> None:
        gradient = leaf_gradient(leaf, self.leaves.pop(leaf))
        if self.targets is not None:
            self.targets.found[leaf] = gradient
        else:
            self.accumulate(leaf, gradient, self.create_graph, HOOKED_REFERENCES)


def _count_references(hooks: Any) -> int:
    """How many references the engine itself has to a gradient when it calls `accumulate`. It depends on the Python
    version, so it is counted in a backward pass through one node."""
    class Leaf:
        pass

    class Gradient:
        pass

    counts: list = []
    leaf: Any = Leaf()
    leaf.hooks = hooks
    one = Pass(False, False, None)
    one.accumulate = lambda leaf, gradient, create_graph, references: counts.append(getrefcount(gradient))
    node = make_node(Recipe("Count", lambda node, saved, gradient: [Gradient()]), (leaf,), ())
    one.run([(node, Gradient())])
    return counts[0]


REFERENCES = HOOKED_REFERENCES = 0
REFERENCES, HOOKED_REFERENCES = _count_references(None), _count_references(LeafHooks())
