"""The kernels that record. TPX gives core a builder for the AUTOGRAD key; core asks it once for each operator and key
set. What it returns computes the result with the rest of the key set and hangs a node on it.

Unary and binary operators have kernels of their own, since most calls are theirs; `general` does every other signature.
"""
from __future__ import annotations

from tensorplay.library import AUTOGRAD, COMPARE, NONDIFFERENTIABLE, VIEW, AutogradError, Op, Tensor, below_autograd

from ._node import Node, extra_of, make_node, new, next_seq
from ._recipe import make_recipe, tensor_parameters
from ._save import binary_save, unary_save
from ._saved import pack_saved
from ._views import edge_of, remember_base

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._node import Recipe

watchers = 0  # how many saved_tensors_hooks and anomaly modes are on, in all threads


def watch(change: int) -> None:
    global watchers
    watchers += change


def watched(node: Node) -> None:
    """What saved_tensors_hooks and anomaly mode do with a new node."""
    from ._anomaly import remember_line

    pack_saved(node, edge_of)
    remember_line(node, extra_of)


def build(op: Op, keyset: int) -> Callable | None:
    """The kernel for calls with an operand that requires grad."""
    below = below_autograd(op, keyset)
    if NONDIFFERENTIABLE in op.tags or op.promotion == COMPARE:
        return below
    if op.rule("vjp") is None:
        return op.rule("decomposition") or without_formula(op, below)
    schema = op.schema
    if not schema.lists and schema.returns == 1 and VIEW not in op.tags and not schema.mutates and \
            not any([p.optional for p in schema.parameters]):
        if schema.tensors == (0,) and len(schema.parameters) == 1:
            return unary(op, below)
        if schema.tensors == (0, 1) and len(schema.parameters) == 2:
            return binary(op, below)
    if schema.tensors == (0,) and not schema.lists and schema.returns == 1 and not schema.parameters[0].optional \
            and not schema.mutates:
        return one_tensor(op, below)
    return general(op, below)


def without_formula(op: Op, below: Callable) -> Callable:
    def kernel(*args: Any) -> Any:
        if op.schema.mutates:
            raise AutogradError(f"{op.name} writes into its arguments and one requires grad; call it under "
                                f"tp.no_grad()")
        out = below(*args)
        results = out if out.__class__ in (tuple, list) else (out,)
        if any([one is not None and one.layout.dtype.category > 1 for one in results]):
            names = [p.name for p, arg in zip(op.schema.parameters, args) if getattr(arg, "keyset", 0) & AUTOGRAD]
            what = f"argument {names[0]!r}" if names else "an argument"
            raise AutogradError(f"{op.name}: {what} requires grad, but the operator has neither a vjp nor a "
                                f"decomposition; register one with @{op.name}.vjp, or call it under tp.no_grad()")
        return out

    return kernel


def unary(op: Op, below: Callable) -> Callable:
    recipe = make_recipe(op, (True,), (True,), exact=op.elementwise)
    save = unary_save(recipe)
    check = not op.elementwise

    def kernel(input):  # noqa: A002
        out = below(input)
        edge = input.node
        if edge is None:
            edge = input
        elif input.output or input.base is not None:
            edge = edge_of(input)
        if check and out.layout.dtype.category < 2:
            return out
        node = new(Node)
        node.recipe = recipe
        node.edges = (edge,)
        node.saved = () if save is None else save(input, out)
        node.extra = None
        node.seq = next_seq()
        out.node = node
        out.keyset |= AUTOGRAD
        if watchers:
            watched(node)
        return out

    return kernel


def binary(op: Op, below: Callable) -> Callable:
    """Recipes by which operands need a gradient, and whether both have one layout (then nothing broadcasts)."""
    recipes: dict[int, Recipe] = {}
    elementwise = op.elementwise
    number = with_number(op, below)

    def make(pattern: int) -> Recipe:
        recipe = make_recipe(op, (True, True), (pattern & 1 == 1, pattern & 2 == 2), elementwise and pattern & 4 == 4)
        recipe.save = binary_save(recipe)
        recipes[pattern] = recipe
        return recipe

    def kernel(input, other):  # noqa: A002
        if not isinstance(other, Tensor) or not isinstance(input, Tensor):
            return number(input, other)
        out = below(input, other)
        if input.keyset & AUTOGRAD:
            pattern = 1
            first = input.node
            if first is None:
                first = input
            elif input.output or input.base is not None:
                first = edge_of(input)
        else:
            pattern, first = 0, None
        if other.keyset & AUTOGRAD:
            pattern += 2
            second = other.node
            if second is None:
                second = other
            elif other.output or other.base is not None:
                second = edge_of(other)
        else:
            second = None
        if input.layout is other.layout:
            pattern += 4
        try:
            recipe = recipes[pattern]
        except KeyError:
            recipe = make(pattern)
        node = new(Node)
        node.recipe = recipe
        node.edges = (first, second)
        save = recipe.save
        node.saved = () if save is None else save(input, other, out)
        node.extra = None
        node.seq = next_seq()
        out.node = node
        out.keyset |= AUTOGRAD
        if watchers:
            watched(node)
        return out

    return kernel


def one_tensor(op: Op, below: Callable) -> Callable:
    """One tensor and attributes: reductions, views, softmax."""
    recipe = make_recipe(op, (True,), (True,))
    save = recipe.save
    is_view = VIEW in op.tags

    def kernel(*args):
        out = below(*args)
        input = args[0]  # noqa: A001
        edge = input.node
        if edge is None:
            edge = input
        elif input.output or input.base is not None:
            edge = edge_of(input)
        if out.layout.dtype.category < 2:
            return out
        node = new(Node)
        node.recipe = recipe
        node.edges = (edge,)
        node.saved = () if save is None else save(args, out)
        node.extra = None
        node.seq = next_seq()
        out.node = node
        out.keyset |= AUTOGRAD
        if is_view:
            remember_base(out, input)
        if watchers:
            watched(node)
        return out

    return kernel


def with_number(op: Op, below: Callable) -> Callable:
    """A binary operator with a number as one of its operands."""
    recipes: dict[tuple, Recipe] = {}

    def make(first: bool, exact: bool) -> Recipe:
        recipe = make_recipe(op, (first, not first), (first, not first), op.elementwise and exact)
        recipe.save = binary_save(recipe)
        recipes[first, exact] = recipe
        return recipe

    def kernel(input, other):  # noqa: A002
        out = below(input, other)
        first = isinstance(input, Tensor)
        tensor = input if first else other
        edge = tensor.node
        if edge is None:
            edge = tensor
        elif tensor.output or tensor.base is not None:
            edge = edge_of(tensor)
        exact = out.layout is tensor.layout
        try:
            recipe = recipes[first, exact]
        except KeyError:
            recipe = make(first, exact)
        node = new(Node)
        node.recipe = recipe
        node.edges = (edge, None) if first else (None, edge)
        save = recipe.save
        node.saved = () if save is None else save(input, other, out)
        node.extra = None
        node.seq = next_seq()
        out.node = node
        out.keyset |= AUTOGRAD
        if watchers:
            watched(node)
        return out

    return kernel


def general(op: Op, below: Callable) -> Callable:
    """Any signature: optional tensors, numbers as operands, lists, attributes, several results, views."""
    places = [(at, 1 << 2 * bit, 3 << 2 * bit) for bit, at in enumerate(tensor_parameters(op))]
    lists = op.schema.lists
    recipes: dict[int, Recipe] = {}
    is_view = VIEW in op.tags
    single = op.schema.returns == 1

    def kernel(*args: Any) -> Any:
        out = below(*args)
        if single and out.layout.dtype.category < 2:
            return out
        pattern = 0
        edges: list = []
        for at, present, needed in places:
            arg = args[at]
            if arg is None:
                edges.append(None)
                continue
            edge = None
            if isinstance(arg, Tensor):
                if arg.keyset & AUTOGRAD:
                    pattern += needed
                    edge = arg.node
                    if edge is None:
                        edge = arg
                    elif arg.output or arg.base is not None:
                        edge = edge_of(arg)
                else:
                    pattern += present
            elif at in lists:
                found = [edge_of(one) for one in arg]
                pattern += present if found.count(None) == len(found) else needed
                edges += found
                continue
            edges.append(edge)
        recipe = recipes.get(pattern)
        if recipe is None:
            recipe = recipes[pattern] = recipe_of_pattern(op, pattern)
        save = recipe.save
        node = make_node(recipe, tuple(edges), () if save is None else save(args, out))
        if not single:
            attach_all(node, out)
        else:
            out.node = node
            out.keyset |= AUTOGRAD
            if is_view:
                remember_base(out, args[0])
        if watchers:
            watched(node)
        return out

    return kernel


def recipe_of_pattern(op: Op, pattern: int) -> Recipe:
    count = len(tensor_parameters(op))
    return make_recipe(op, tuple([pattern >> 2 * at & 1 == 1 for at in range(count)]),
                       tuple([pattern >> 2 * at & 2 == 2 for at in range(count)]))


def attach_all(node: Node, results: Any) -> None:
    for number, out in enumerate(results, 1):
        if out.layout.dtype.category > 1:
            out.node = node
            out.output = number
            out.keyset |= AUTOGRAD
