"""Formulas get their arguments by name. This file says what each name of a formula means."""
from __future__ import annotations

from tensorplay.library import ArgumentError, Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# Where a formula's argument comes from; the second half of a source is a parameter's or an output's number.
GRAD, GRADS, NEEDS, INPUT, LAYOUT, ARGUMENT, OUTPUT, OUTPUTS, OUTPUT_LAYOUTS = (
    "grad", "grads", "needs", "input", "layout", "argument", "output", "outputs", "output layouts")


def formula_names(function: Callable) -> tuple:
    """The names of a formula's positional parameters, and how many at the end have defaults."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_flags & 0x0C or code.co_kwonlyargcount:
        raise ArgumentError(f"a vjp formula must be a plain function whose parameters are bound by name, "
                            f"such as lambda grad, input: ...; got {function!r}")
    return code.co_varnames[:code.co_argcount], len(getattr(function, "__defaults__", None) or ())


def sources(op: Op, function: Callable) -> list[tuple]:
    """A source for each parameter of a formula. Raises ArgumentError for a name that means nothing."""
    names, optional = formula_names(function)
    found = []
    for place, name in enumerate(names):
        source = source_of(op, name)
        if source is None:
            if place >= len(names) - optional:
                break  # `lambda grad, two=2: ...` keeps its default
            known = ", ".join(["grad", *[p.name for p in op.schema.parameters], "output", "needs"])
            raise ArgumentError(f"{op.name}.vjp: a formula asks for {name!r}; it can have {known}, and for a tensor "
                                f"argument x also x_layout")
        found.append(source)
    return found


def source_of(op: Op, name: str) -> tuple | None:
    """`grad` is always the incoming gradient; an operator's own parameter of that name is `grad_argument`."""
    if name == "grad":
        return GRAD, 0
    if name == "grads":
        return GRADS, 0
    if name == "needs":
        return NEEDS, 0
    parameters = {p.name: i for i, p in enumerate(op.schema.parameters)}
    at = parameters.get(name)
    if at is None and name.endswith("_argument"):
        at = parameters.get(name[:-9])
    if at is not None:
        return (INPUT if op.schema.parameters[at].is_tensor else ARGUMENT), at
    if name.endswith("_layout") and name[:-7] in parameters:
        at = parameters[name[:-7]]
        return (LAYOUT, at) if op.schema.parameters[at].is_tensor else None
    if name == "output":
        return OUTPUT, 0
    if name == "outputs" and op.schema.returns != 1:
        return OUTPUTS, 0
    prefix, _, number = name.rpartition("_")
    if prefix in ("grad", "output") and number.isdigit() and int(number) < max(op.schema.returns, 1):
        return (GRAD if prefix == "grad" else OUTPUT), int(number)
    return None


def caller(function: Callable, places: list) -> Callable:
    """A function of (gradient, saved) that calls a formula; a place is an index into `saved`, None the gradient."""
    if not places or places[0] is not None or None in places[1:] or len(places) > 4:
        return lambda grad, saved: function(*[grad if place is None else saved[place] for place in places])
    if len(places) == 1:
        return lambda grad, saved: function(grad)
    if len(places) == 2:
        _, a = places
        return lambda grad, saved: function(grad, saved[a])
    if len(places) == 3:
        _, a, b = places
        return lambda grad, saved: function(grad, saved[a], saved[b])
    _, a, b, c = places
    return lambda grad, saved: function(grad, saved[a], saved[b], saved[c])
