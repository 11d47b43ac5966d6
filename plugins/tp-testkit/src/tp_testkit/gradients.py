"""Gradients of operators: functions for gradcheck, and gradients on one place compared with those on another."""
from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import numpy as np

import tensorplay as tp
from tensorplay.library import NONDIFFERENTIABLE, Op, Tensor, generic_path

from .harness import array, describe, run
from .samples import FLOATING, on_device

SMALL = 24         # more elements than this in inputs or outputs: the Jacobian is checked along random directions
DIRECTIONS = 2


def differentiable(op: Op, sample: tuple) -> bool:
    """Whether there are gradients to check: with respect to float64 tensors with finite values."""
    places = _places(op, sample)
    values = [sample[place[0]] if len(place) == 1 else sample[place[0]][place[1]] for place in places]
    if NONDIFFERENTIABLE in op.tags or not places:
        return False
    return all([np.isfinite(array(x)).all() for x in (*values, *run(op, sample, "cpu"))])


# Arguments that an operator has no gradient for; it says so if one is asked for.
CONSTANTS = {"cross_entropy_forward": ("weight",), "cross_entropy_backward": ("weight",),
             "scaled_dot_product_forward": ("mask",)}


def _places(op: Op, sample: tuple) -> list[tuple]:
    """Where the float64 tensors stand: (argument,) or (argument, place in the list)."""
    found: list[tuple] = []
    for i, (parameter, value) in enumerate(zip(op.schema.parameters, sample)):
        if parameter.name in CONSTANTS.get(op.name, ()):
            continue
        for j, one in enumerate(value if value.__class__ is list else (value,)):
            if isinstance(one, Tensor) and one.dtype in (tp.float64, tp.complex128):
                found.append((i, j) if value.__class__ is list else (i,))
    return found


def _symmetric(x: Tensor) -> Tensor:
    return (x + x.mH) / 2


# Operators that read a triangle of a symmetric matrix have the gradient of the symmetric one.
PREPARED: dict[str, Callable] = {"cholesky": _symmetric, "eigh": _symmetric}


# What of the results the input determines: not residuals, phases of eigenvectors, vectors of a null space.
DETERMINED: dict[str, Callable] = {
    "det_forward": lambda determinant, *residuals: (determinant,),
    "eig": lambda values, vectors: (values, vectors.abs()),
    "svd": lambda u, s, vh: (u.narrow(-1, 0, s.shape[-1]), s, vh.narrow(-2, 0, s.shape[-1])),
}


def _results(op: Op, args: list) -> tuple:
    """The floating point results of a call."""
    results = op.call(*args)
    results = tuple(results) if isinstance(results, (tuple, list)) else (results,)
    results = DETERMINED[op.name](*results) if op.name in DETERMINED else results
    return tuple([one for one in results if one.dtype.category >= FLOATING])


def gradient_case(op: Op, sample: tuple) -> tuple[Callable, tuple]:
    """(function, inputs) for gradcheck and gradgradcheck. `sample` is float64 on the CPU."""
    places = _places(op, sample)

    def call(*values: Tensor) -> tuple:
        args = [list(value) if value.__class__ is list else value for value in sample]
        for place, value in zip(places, values):
            value = PREPARED[op.name](value) if op.name in PREPARED else value
            if len(place) == 1:
                args[place[0]] = value
            else:
                args[place[0]][place[1]] = value
        return _results(op, args)

    inputs = [sample[place[0]] if len(place) == 1 else sample[place[0]][place[1]] for place in places]
    outputs = [one.layout.numel for one in call(*inputs)]
    if sum([x.layout.numel for x in inputs]) <= SMALL and sum(outputs) <= SMALL:
        return call, tuple([x.detach().clone().requires_grad_() for x in inputs])
    return _along_directions(call, inputs)


def _along_directions(call: Callable, inputs: list) -> tuple[Callable, tuple]:
    """A function of a few numbers: how far each input moves along random directions; its result is a random weighting
    of the outputs. A wrong element of the Jacobian changes its gradient."""
    chance = np.random.default_rng(0)

    def random_like(x: Tensor) -> Tensor:
        return tp.tensor(chance.uniform(-1, 1, x.layout.shape).tolist(), dtype=x.dtype).reshape(x.layout.shape)

    directions = [[random_like(x) for _ in range(DIRECTIONS)] for x in inputs]
    weights = [random_like(one) for one in call(*inputs)]

    def function(steps: Tensor) -> Tensor:
        moved, at = [], 0
        for x, ways in zip(inputs, directions):
            for way in ways:
                x = x + way * steps[at]
                at += 1
            moved.append(x)
        parts = [(one * weight).sum() for one, weight in zip(call(*moved), weights)]
        return sum(parts[1:], parts[0])

    return function, (tp.zeros(len(inputs) * DIRECTIONS, dtype=tp.float64, requires_grad=True),)


# ---- on other places -------------------------------------------------------------------------------------------------
def gradients(op: Op, sample: tuple, place: str) -> list[Tensor | None]:
    """Gradients, for every floating point tensor of the sample, of a weighted sum of the results, on a place."""
    device = tp.device(place.partition(" ")[0])
    moved = [list(value) if value.__class__ is list else value for value in on_device(sample, device)]
    inputs = []
    for place_in, *number in _places(op, sample):
        leaf = (moved[place_in][number[0]] if number else moved[place_in]).detach().requires_grad_()
        inputs.append(leaf)
        if number:
            moved[place_in][number[0]] = leaf
        else:
            moved[place_in] = leaf
    with generic_path() if place == "cpu generic" else nullcontext():
        parts = [(one * _ramp(one)).sum() for one in _results(op, moved) if one.requires_grad]
        if not parts:
            return [None for _ in inputs]
        total = sum(parts[1:], parts[0])
        return list(tp.autograd.grad(total, inputs, tp.ones_like(total), allow_unused=True))


def _ramp(x: Tensor) -> Tensor:
    """Weights that differ from element to element."""
    values = [0.5 + (7 * i % 11) / 11 for i in range(x.layout.numel)]
    return tp.tensor(values, dtype=x.dtype, device=x.device).reshape(x.layout.shape)


def check_gradients(op: Op, sample: tuple, place: str, wanted: list[Tensor | None], allowed: float) -> None:
    """The gradients on a place are the wanted ones; on meta, tensors of their shapes."""
    where = describe(op, sample, place)
    found = gradients(op, sample, place)
    for number, (got, right) in enumerate(zip(found, wanted)):
        title = f"gradient {number} of {where}"
        assert (got is None) == (right is None), f"{title}: {got}, should be {right}"
        if got is None or right is None:
            continue
        assert got.shape == right.shape, f"{title}: shape {list(got.shape)}, should be {list(right.shape)}"
        if place != "meta":
            difference = np.abs(array(got) - array(right))
            limit = allowed * np.maximum(np.abs(array(right)), 1.0)
            assert np.all(difference <= limit), f"{title} is off by {difference.max()}: {got}, should be {right}"
