"""`tensorplay.autograd.graph`: the graph's nodes, and hooks on what they save."""
from __future__ import annotations

from ._node import AccumulateGrad, Node, RemovableHandle
from ._saved import saved_tensors_hooks

__all__ = ["AccumulateGrad", "Node", "RemovableHandle", "saved_tensors_hooks"]
