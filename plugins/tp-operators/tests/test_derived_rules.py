"""Rules that elementwise operators get from their tag: forward mode against differences, batching against a loop."""
from __future__ import annotations

import importlib
import pkgutil

import pytest

import tensorplay as tp
import tp_operators
from tensorplay.library import NONDIFFERENTIABLE, OPS, Tensor, jvp_rule, vmap_rule
from tp_testkit.samples import Make, in_double, samples

for module in pkgutil.iter_modules(tp_operators.__path__):
    if module.name[0] != "_" and module.name != "generate_index":
        importlib.import_module(f"tp_operators.{module.name}")

ELEMENTWISE = sorted([name for name, op in OPS.items() if op.elementwise and "tp_operators" in op.location[0]])
WITH_JVP = [name for name in ELEMENTWISE if jvp_rule(OPS[name]) and NONDIFFERENTIABLE not in OPS[name].tags]
OWN_RULES = ["copy_strided"]
NOT_SMOOTH = {  # the derivative is 0 by convention, or jumps where the samples lie
    "floor_div": "a step function", "remainder": "jumps", "fmod": "jumps",
}


def real_samples(name: str) -> list[tuple]:
    found = [in_double(sample) for sample in samples(OPS[name], Make())]
    return [s for s in found if any(isinstance(a, Tensor) and a.is_floating_point() and a.numel() for a in s)]


@pytest.mark.parametrize("name", [n for n in WITH_JVP + OWN_RULES if n not in NOT_SMOOTH])
def test_jvp_is_the_directional_derivative(name: str) -> None:
    op = OPS[name]
    for args in real_samples(name):
        tensors = [args[i] if isinstance(args[i], Tensor) else None for i in op.schema.tensors]
        tangents = tuple([Make(seed=k + 3)(*t.shape).double() if t is not None and t.is_floating_point() else None
                          for k, t in enumerate(tensors)])

        def moved(step: float, args=args, tangents=tangents) -> Tensor:
            changed = list(args)
            for i, tangent in zip(op.schema.tensors, tangents):
                if tangent is not None:
                    changed[i] = args[i] + tangent * step
            return op.call(*changed)

        got = jvp_rule(op)(args, tangents, op.call(*args))
        expected = (moved(1e-6) - moved(-1e-6)) / 2e-6
        assert got.shape == expected.shape
        assert tp.allclose(got, expected, rtol=1e-4, atol=1e-6, equal_nan=True), f"{name}{args}: {got} not {expected}"


@pytest.mark.parametrize("name", ELEMENTWISE + OWN_RULES)
def test_vmap_is_the_loop(name: str) -> None:
    op = OPS[name]
    for args in real_samples(name):
        places = [i for i in op.schema.tensors if isinstance(args[i], Tensor)]
        for batched in {(True,) * len(places), (True,) + (False,) * (len(places) - 1)}:
            batch, in_dims = list(args), [None] * len(op.schema.tensors)
            for k, (i, wanted) in enumerate(zip(places, batched)):
                if wanted:  # copies along the last dimension of the first operand, the first of the others
                    dim = args[i].ndim if k == 0 else 0
                    batch[i] = tp.stack([args[i], args[i].flip(*range(args[i].ndim)), args[i]], dim)
                    in_dims[op.schema.tensors.index(i)] = dim
            result, out_dim = vmap_rule(op)(tuple(batch), tuple(in_dims))
            for row in range(3):
                single = [batch[i].select(in_dims[op.schema.tensors.index(i)], row)
                          if i in places and in_dims[op.schema.tensors.index(i)] is not None else batch[i]
                          for i in range(len(batch))]
                expected = op.call(*single)
                got = result.select(out_dim, row)
                assert got.shape == expected.shape and tp.allclose(got.double(), expected.double(), equal_nan=True)


def test_enough_operators_have_the_rules() -> None:
    assert len(WITH_JVP) > 60 and len(ELEMENTWISE) > 90
