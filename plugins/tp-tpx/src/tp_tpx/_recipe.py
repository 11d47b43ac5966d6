"""From an operator's vjp rule to recipes: what to save, and how to compute the gradients of the inputs that need one.

A recipe is made once for each pattern of tensor arguments that are there and that need a gradient. Only the formulas of
those run, and only what these formulas name is saved: tensors, layouts in place of tensors, results, attributes.
"""
from __future__ import annotations

from tensorplay.library import AutogradError, Op

from ._binding import ARGUMENT, GRAD, GRADS, INPUT, LAYOUT, OUTPUT, OUTPUT_LAYOUTS, OUTPUTS, caller, sources
from ._gradients import all_gradients, fit
from ._node import Recipe
from ._save import save_of
from ._saved import check_version, result_again

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tensorplay.library import Tensor

    from ._node import Node


def backward_name(op_name: str) -> str:
    """`log_softmax` -> `LogSoftmaxBackward0`, as torch prints it."""
    words = op_name.rpartition("::")[2].strip("_").split("_")
    return "".join([word[:1].upper() + word[1:] for word in words]) + "Backward0"


class Plan:
    """The layout of a node's `saved` tuple: entries first, then the versions of the tensors among them."""

    def __init__(self, op: Op, present: tuple, needs: tuple) -> None:
        self.op = op
        self.present = present  # for each tensor parameter: is a tensor (or a list) given
        self.needs = needs      # for each tensor parameter: does it need a gradient
        self.parameters = tensor_parameters(op)
        self.entries: list[tuple] = []
        self.derived: list[tuple] = []
        self.named: set = set()  # the outputs whose own gradient a formula asks for

    def place(self, source: tuple) -> int:
        """The place of an entry in `saved`, which is made if it is new."""
        if source not in self.entries:
            self.entries.append(source)
        return self.entries.index(source)

    def is_tensor(self, source: tuple) -> bool:
        return source[0] in (OUTPUT, OUTPUTS) or \
            source[0] == INPUT and self.present[self.parameters.index(source[1])]

    def bind(self, function: Callable) -> list[tuple]:
        found = []
        for kind, number in sources(self.op, function):
            if kind in (INPUT, LAYOUT) and not self.present[self.parameters.index(number)]:
                kind = ARGUMENT  # a number or None in place of a tensor
            if kind == GRAD:
                self.named.add(number)
            elif kind != GRADS:
                self.place((kind, number))
            found.append((kind, number))
        return found

    def index(self, source: tuple) -> int | None:
        """Where a formula finds a source: None is the gradient, a number the place among what is saved, then layouts of
        saved tensors, then the gradients of the outputs where there are several."""
        kind, number = source
        if kind == GRADS or kind == GRAD and self.op.schema.returns == 1:
            return None
        if source in self.derived:
            return len(self.entries) + len(self.versions()) + self.derived.index(source)
        if kind == GRAD:
            return len(self.entries) + len(self.versions()) + len(self.derived) + number
        return self.place(source)

    def settle(self, exact: bool) -> None:
        """Called when every formula is bound. A layout need not be saved beside its tensor; a gradient whose input is
        not saved needs the input's layout. Then what `save` gets in one step is put together."""
        self.derived = [source for source in self.entries if source[0] == LAYOUT and (INPUT, source[1]) in self.entries
                        and source[1] not in self.op.schema.lists]
        self.entries = [source for source in self.entries if source not in self.derived]
        for at, parameter in enumerate(self.parameters):
            if self.present[at] and (parameter in self.op.schema.lists or not exact and self.needs[at] and
                                     (INPUT, parameter) not in self.entries):
                self.place((LAYOUT, parameter))
        if self.op.schema.returns != 1 and (self.named or self.op.schema.returns < 0):
            self.place((OUTPUT_LAYOUTS, 0))
        self.entries.sort(key=self.rank)

    def rank(self, source: tuple) -> int:
        """0: an argument itself, 1: the layout of one, 2: everything else."""
        kind, number = source
        if number in self.op.schema.lists or kind not in (INPUT, ARGUMENT, LAYOUT):
            return 2
        return 1 if kind == LAYOUT else 0

    def versions(self) -> list[tuple]:
        return [source for source in self.entries if self.is_tensor(source)]

    def checks(self) -> tuple[list, list, list]:
        """(place, place of the version) of saved inputs, of results (and the output's number), of lists of inputs."""
        inputs, results, lists = [], [], []
        for i, source in enumerate(self.versions()):
            kind, number = source
            places = (self.place(source), len(self.entries) + i)
            if kind != INPUT:
                results.append((*places, number))
            else:
                (lists if number in self.op.schema.lists else inputs).append(places)
        return inputs, results, lists

    def layouts(self) -> list[tuple]:
        """(number of the gradient, place of its input or of its input's layout, which of the two)."""
        return [(at, self.place((INPUT if of_tensor else LAYOUT, parameter)), of_tensor)
                for at, parameter in enumerate(self.parameters)
                if self.needs[at] and parameter not in self.op.schema.lists
                for of_tensor in [(INPUT, parameter) in self.entries]]

    def name(self, source: tuple) -> str:
        kind, number = source
        if kind in (INPUT, LAYOUT, ARGUMENT):
            return self.op.schema.parameters[number].name
        return "result" if kind == OUTPUT and self.op.schema.returns == 1 else f"result_{number}" if kind == OUTPUT \
            else kind


def tensor_parameters(op: Op) -> tuple:
    return tuple(sorted(op.schema.tensors + op.schema.lists))


def make_recipe(op: Op, present: tuple, needs: tuple, exact: bool = False) -> Recipe:
    """`exact`: the gradients have their input's layout without looking (elementwise on equal layouts)."""
    plan = Plan(op, present, needs)
    rule = op.rule("vjp")
    by_input = bound_formulas(plan, rule) if isinstance(rule, dict) else None
    together = plan.bind(rule) if by_input is None else None
    plan.settle(exact)
    gradients = formulas_by_input(plan, by_input) if by_input is not None else one_formula(plan, rule, together)
    recipe = Recipe(backward_name(op.name), run_of(plan, gradients, exact), bool(plan.versions()),
                    op.schema.returns != 1)
    recipe.save = save_of(plan)
    recipe.entries = tuple(plan.entries)
    recipe.saved_names = tuple([plan.name(source) for source in plan.entries])
    entries = len(plan.entries)
    recipe.tensors = tuple([(plan.place(source), entries + i, source[0] in (OUTPUT, OUTPUTS))
                            for i, source in enumerate(plan.versions())])
    return recipe


def bound_formulas(plan: Plan, rule: dict) -> list[tuple]:
    """(number of the tensor parameter, formula, sources) for the inputs that need a gradient."""
    found = []
    for at, parameter in enumerate(plan.parameters):
        if plan.needs[at]:
            name = plan.op.schema.parameters[parameter].name
            formula = rule.get(name)
            if formula is None:
                raise AutogradError(f"{plan.op.name}: argument {name!r} requires grad, but there is no formula for it; "
                                    f"add one with {plan.op.name}.vjp({name}=...) or pass {name}.detach()")
            found.append((at, formula, plan.bind(formula)))
    return found


def formulas_by_input(plan: Plan, bound: list[tuple]) -> Callable:
    """All `gradients` functions here are called with (node, saved, gradient) and return one gradient a parameter."""
    calls = [(at, caller(formula, [plan.index(source) for source in found])) for at, formula, found in bound]
    if len(plan.parameters) == 1:
        ((_, only),) = calls
        return lambda node, saved, grad: [only(grad, saved)]
    if len(plan.parameters) == 2:
        if len(calls) == 2:
            (_, first), (_, second) = calls
            return lambda node, saved, grad: [first(grad, saved), second(grad, saved)]
        ((at, one),) = calls
        if at == 0:
            return lambda node, saved, grad: [one(grad, saved), None]
        return lambda node, saved, grad: [None, one(grad, saved)]
    empty = [None] * len(plan.parameters)

    def gradients(node: Node, saved: Any, grad: Any) -> list:
        results: list = empty.copy()
        for at, call in calls:
            results[at] = call(grad, saved)
        return results

    return gradients


def one_formula(plan: Plan, rule: Callable, found: Any) -> Callable:
    call = caller(rule, [plan.index(source) for source in found])
    count, needs, name = len(plan.parameters), plan.needs, plan.op.name

    def gradients(node: Node, saved: Any, grad: Any) -> list:
        results = call(grad, saved)
        if results.__class__ not in (tuple, list):
            results = (results,)
        if len(results) != count:
            raise AutogradError(f"{name}.vjp returned {len(results)} gradient(s) for {count} tensor argument(s); "
                                f"return one for each, None where there is none")
        return [result if need else None for result, need in zip(results, needs)]

    return gradients


def run_of(plan: Plan, gradients: Callable, exact: bool) -> Callable:
    """The function that computes a node's gradients: checks, formulas, and shapes and dtypes put right."""
    inputs, results, lists = plan.checks()
    wanted = [] if exact else plan.layouts()
    fitted = fitted_run(plan, gradients, wanted) if wanted else gradients
    derived = [plan.place((INPUT, source[1])) for source in plan.derived]
    count = plan.op.schema.returns
    if not (results or lists or count != 1 or plan.op.schema.lists):
        return checked_run(with_layouts(fitted, derived) if derived else fitted, inputs)
    flatten = flattener(plan) if plan.op.schema.lists else None
    named, names_some = plan.named, (OUTPUT_LAYOUTS, 0) in plan.entries
    output_layouts = plan.place((OUTPUT_LAYOUTS, 0)) if names_some else 0

    def run(node: Node, saved: Any, grad: Any) -> list:
        for place, version in inputs:
            if saved[place].storage.version != saved[version]:
                check_version(node, saved[place], saved[version], place)
        for place, version in lists:
            for tensor, number in zip(saved[place], saved[version]):
                check_version(node, tensor, number, place)
        saved = list(saved)
        for place, version, number in results:
            saved[place] = result_again(node, saved, place, version, number)
        for place in derived:
            saved.append(saved[place].layout)
        if count != 1:
            layouts = saved[output_layouts] if names_some else ()
            grad = all_gradients(grad, len(layouts) if count < 0 else count, named, layouts)
            saved.extend(grad)
        found = fitted(node, saved, grad)
        return found if flatten is None else flatten(found, saved)

    return run


def with_layouts(gradients: Callable, derived: list) -> Callable:
    if len(derived) == 1:
        (a,) = derived
        return lambda node, saved, grad: gradients(node, (*saved, saved[a].layout), grad)
    return lambda node, saved, grad: gradients(node, (*saved, *[saved[place].layout for place in derived]), grad)


def checked_run(gradients: Callable, inputs: list) -> Callable:
    """`run` for one output, when only inputs are saved: is every one of them at the version that was saved?"""
    if not inputs:
        return gradients
    if len(inputs) == 1:
        ((place, version),) = inputs

        def run_one(node: Node, saved: tuple, grad: Tensor) -> list:
            if saved[place].storage.version != saved[version]:
                check_version(node, saved[place], saved[version], place)
            return gradients(node, saved, grad)

        return run_one

    def run(node: Node, saved: tuple, grad: Tensor) -> list:
        for place, version in inputs:
            if saved[place].storage.version != saved[version]:
                check_version(node, saved[place], saved[version], place)
        return gradients(node, saved, grad)

    return run


def fitted_run(plan: Plan, gradients: Callable, layouts: list) -> Callable:
    """Sum and cast the gradients to the layouts of their inputs."""
    name = plan.op.name

    def fitted(node: Node, saved: Any, grad: Any) -> list:
        found = gradients(node, saved, grad)
        for at, place, of_tensor in layouts:
            gradient = found[at]
            if gradient is not None:
                wanted = saved[place].layout if of_tensor else saved[place]
                have = gradient.layout
                if have is not wanted and (have.shape != wanted.shape or have.dtype is not wanted.dtype):
                    found[at] = fit(gradient, wanted, name)
        return found

    return fitted


def flattener(plan: Plan) -> Callable:
    """Lists of gradients become one row: an edge for each tensor of a `Tensor[]` argument."""
    name = plan.op.name
    lists = {at: plan.place((LAYOUT, parameter)) for at, parameter in enumerate(plan.parameters)
             if parameter in plan.op.schema.lists and plan.present[at]}

    def flatten(found: list, saved: tuple) -> list:
        flat: list = []
        for at, gradient in enumerate(found):
            if at not in lists:
                flat.append(gradient)
                continue
            layouts = saved[lists[at]]
            if gradient is None:
                flat.extend([None] * len(layouts))
                continue
            if len(gradient) != len(layouts):
                raise AutogradError(f"{name}.vjp returned {len(gradient)} gradients for a list of {len(layouts)} "
                                    f"tensors")
            flat.extend([one if one is None or one.layout is layout else fit(one, layout, name)
                         for one, layout in zip(gradient, layouts)])
        return flat

    return flatten
