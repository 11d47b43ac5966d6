"""What a call keeps for its backward pass: functions from the arguments and the result to a node's `saved` tuple.

The tuple holds arguments, layouts of arguments, other entries, versions of the saved tensors, in this order; it is put
together from as few parts as possible, since every recorded call pays for it.
"""
from __future__ import annotations

from operator import itemgetter

from ._binding import ARGUMENT, INPUT, LAYOUT, NEEDS, OUTPUT, OUTPUT_LAYOUTS, OUTPUTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._node import Recipe
    from ._recipe import Plan


def save_of(plan: Plan) -> Callable | None:
    """`save(arguments, result)`, or None if there is nothing to save."""
    picked = [number for (kind, number) in plan.entries if plan.rank((kind, number)) == 0]
    layouts = [number for (kind, number) in plan.entries if plan.rank((kind, number)) == 1]
    readers = [_reader(plan, kind, number) for (kind, number) in plan.entries if plan.rank((kind, number)) == 2]
    versions = [number for (kind, number) in plan.versions() if plan.rank((kind, number)) == 0]
    readers_of_versions = [_version_reader(plan, *source) for source in plan.versions() if plan.rank(source) == 2]
    parts: list[Callable] = []
    if picked:
        parts.append(arguments(picked))
    if layouts:
        parts.append(layouts_of_arguments(layouts))
    if readers:
        parts.append(read_by(readers))
    if versions:
        parts.append(versions_of_arguments(versions))
    if readers_of_versions:
        parts.append(read_by(readers_of_versions))
    if not parts:
        return None
    if len(parts) == 1:
        return parts[0]
    if len(parts) == 2:
        a, b = parts
        return lambda args, out: a(args, out) + b(args, out)
    if len(parts) == 3:
        a, b, c = parts
        return lambda args, out: a(args, out) + b(args, out) + c(args, out)
    return lambda args, out: sum([part(args, out) for part in parts], ())


def arguments(numbers: list[int]) -> Callable:
    if len(numbers) == 1:
        (a,) = numbers
        return lambda args, out: (args[a],)
    pick: Any = itemgetter(*numbers)
    return lambda args, out: pick(args)


def layouts_of_arguments(numbers: list[int]) -> Callable:
    if len(numbers) == 1:
        (a,) = numbers
        return lambda args, out: (args[a].layout,)
    if len(numbers) == 2:
        a, b = numbers
        return lambda args, out: (args[a].layout, args[b].layout)
    return lambda args, out: tuple([args[number].layout for number in numbers])


def versions_of_arguments(numbers: list[int]) -> Callable:
    if len(numbers) == 1:
        (a,) = numbers
        return lambda args, out: (args[a].storage.version,)
    if len(numbers) == 2:
        a, b = numbers
        return lambda args, out: (args[a].storage.version, args[b].storage.version)
    return lambda args, out: tuple([args[number].storage.version for number in numbers])


def read_by(readers: list[Callable]) -> Callable:
    if len(readers) == 1:
        (a,) = readers
        return lambda args, out: (a(args, out),)
    return lambda args, out: tuple([read(args, out) for read in readers])


def unary_save(recipe: Recipe) -> Callable | None:
    """`recipe.save` for one argument: `save(input, result)`."""
    save = recipe.save
    if recipe.entries == ((INPUT, 0),):
        return lambda x, out: (x, x.storage.version)
    if recipe.entries == ((OUTPUT, 0),):
        return lambda x, out: ((out.storage, out.offset, out.layout), out.storage.version)
    return save and (lambda x, out: save((x,), out))


def binary_save(recipe: Recipe) -> Callable | None:
    """`recipe.save` for two arguments: `save(input, other, result)`."""
    save, entries = recipe.save, recipe.entries
    if entries == ((INPUT, 0),):
        return lambda x, y, out: (x, x.storage.version)
    if entries == ((INPUT, 1),):
        return lambda x, y, out: (y, y.storage.version)
    if entries == ((INPUT, 0), (INPUT, 1)):
        return lambda x, y, out: (x, y, x.storage.version, y.storage.version)
    if entries == ((INPUT, 1), (INPUT, 0)):
        return lambda x, y, out: (y, x, y.storage.version, x.storage.version)
    if entries == ((ARGUMENT, 1),):
        return lambda x, y, out: (y,)
    if entries == ((ARGUMENT, 0),):
        return lambda x, y, out: (x,)
    if entries == ((LAYOUT, 0), (LAYOUT, 1)):
        return lambda x, y, out: (x.layout, y.layout)
    return save and (lambda x, y, out: save((x, y), out))


def _reader(plan: Plan, kind: str, number: int) -> Callable:
    several = plan.op.schema.returns != 1
    needs = plan.needs
    if kind == NEEDS:
        return lambda args, out: needs
    if kind == LAYOUT:
        if number in plan.op.schema.lists:
            return lambda args, out: tuple([tensor.layout for tensor in args[number]])
        return lambda args, out: args[number].layout
    if kind == OUTPUT:
        if several:
            return lambda args, out: (out[number].storage, out[number].offset, out[number].layout)
        return lambda args, out: (out.storage, out.offset, out.layout)
    if kind == OUTPUTS:
        return lambda args, out: tuple([(one.storage, one.offset, one.layout) for one in out])
    if kind == OUTPUT_LAYOUTS:
        return lambda args, out: tuple([one.layout for one in out])
    if number in plan.op.schema.lists:
        return lambda args, out: tuple(args[number])
    return lambda args, out: args[number]


def _version_reader(plan: Plan, kind: str, number: int) -> Callable:
    if kind == OUTPUT:
        if plan.op.schema.returns != 1:
            return lambda args, out: out[number].storage.version
        return lambda args, out: out.storage.version
    if kind == OUTPUTS:
        return lambda args, out: tuple([one.storage.version for one in out])
    if number in plan.op.schema.lists:
        return lambda args, out: tuple([tensor.storage.version for tensor in args[number]])
    return lambda args, out: args[number].storage.version
