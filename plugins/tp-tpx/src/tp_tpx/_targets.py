"""`grad(outputs, inputs)`: which nodes have to run, and where gradients are picked up."""
from __future__ import annotations

from ._node import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Targets:
    """`leaves` and `outputs` are the edges of the wanted inputs; `found` maps edges to gradients."""

    def __init__(self, roots: list, wanted: list) -> None:
        self.leaves = {edge for edge in wanted if edge.__class__ not in (Node, tuple)}
        self.outputs: dict[Node, list] = {}  # node -> [(its output, the edge)]
        for edge in wanted:
            if edge.__class__ is tuple:
                self.outputs.setdefault(edge[0], []).append((edge[1] + 1, edge))
            elif edge.__class__ is Node:
                self.outputs.setdefault(edge, []).append((0, edge))
        self.found: dict = {}
        self.needed = self.find_needed(roots)

    def capture(self, node: Node, gradient: Any) -> None:
        for output, edge in self.outputs.get(node, ()):
            one = gradient.get(output) if output else gradient
            if one is not None:
                self.found[edge] = one

    def find_needed(self, roots: list) -> set:
        """The nodes from which a wanted input can be reached. Older nodes first, so each edge is decided before use."""
        seen: set = set()
        stack = list(roots)
        while stack:
            edge = stack.pop()
            node = edge[0] if edge.__class__ is tuple else edge
            if node.__class__ is Node and node not in seen:
                seen.add(node)
                stack.extend(node.edges)
        needed: set = set()
        for node in sorted(seen, key=_seq, reverse=True):
            for edge in node.edges:
                target = edge[0] if edge.__class__ is tuple else edge
                if target.__class__ is Node:
                    if target in needed or target in self.outputs:
                        needed.add(node)
                        break
                elif target is not None and target in self.leaves:
                    needed.add(node)
                    break
        return needed


def _seq(node: Node) -> int:
    return node.seq
