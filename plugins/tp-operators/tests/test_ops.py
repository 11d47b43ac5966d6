"""Every operator of tp-operators against its reference: samples, edges, memory layouts and dtypes, on the CPU (fused,
generic and decomposed), on refdev and on meta; first and second gradients on the CPU in float64."""
from __future__ import annotations

import importlib
import pkgutil

import pytest

import tensorplay as tp
import tp_operators
from tensorplay.autograd import gradcheck, gradgradcheck
from tensorplay.library import (
    DATA_DEPENDENT,
    NONDIFFERENTIABLE,
    OPS,
    RANDOM,
    RETYPES,
    VIEW,
    DTypeError,
    NotSupported,
    Op,
    Tensor,
    ValueRangeError,
    make_inplace,
)
from tp_testkit.edges import EDGES
from tp_testkit.gradients import check_gradients, differentiable, gradient_case, gradients
from tp_testkit.harness import PLACES, check, check_meta, compare, describe, expected, run
from tp_testkit.references import REFERENCES
from tp_testkit.samples import (
    FLOATING,
    Make,
    edge_shapes,
    in_double,
    in_dtype,
    layouts,
    offset,
    on_device,
    samples,
    transposed,
)

for module in pkgutil.iter_modules(tp_operators.__path__):
    if module.name[0] != "_" and module.name != "generate_index":
        importlib.import_module(f"tp_operators.{module.name}")

NAMES = sorted([name for name, op in OPS.items() if "tp_operators" in op.location[0]])
DTYPES = ("float64", "float16", "bfloat16", "complex64", "int64", "int32", "uint8", "bool")

NO_REFERENCE: dict[str, str] = {}  # operator -> why it has none
NO_SAMPLES: dict[str, str] = {}
NO_GRADIENT = {
    "scaled_dot_product_backward": "takes results of the forward operator, which do not follow when an input moves; "
                                   "the second gradient of scaled_dot_product_forward is its test",
    "embedding_padded": "by definition the padding row gets no gradient, though the result depends on it",
}
OTHER_DTYPES = {
    ("addcmul", "bool"): "a bool here; NumPy's True + 1 * True is an integer",
    ("clamp_scalar", "int32"): "clamp converts the input before, since a bound is a float",
    ("clamp_scalar", "int64"): "clamp converts the input before, since a bound is a float",
    ("clamp_scalar", "uint8"): "clamp converts the input before, since a bound is a float",
    ("pow", "bool"): "a bool here; NumPy's power of bools is an int8",
    ("scaled_dot_product_backward", "float16"): "a saved result in half precision is not the exact one",
    ("scaled_dot_product_backward", "bfloat16"): "a saved result in half precision is not the exact one",
    ("pow", "int32"): "the sample has negative exponents; test_powers_of_integers has others",
    ("pow", "int64"): "the sample has negative exponents; test_powers_of_integers has others",
}
NO_SECOND_GRADIENT = dict.fromkeys(("angle", "ceil", "floor", "round", "sign", "trunc"),
                                   "the gradient (of real numbers) is 0 everywhere")


def cases(op: Op, dtype: tp.dtype = tp.float32) -> list[tuple]:
    make = Make(dtype=dtype)
    own = samples(op, make)
    edges = [op.schema.bind(tuple(one), {}) for one in EDGES.get(op.name, lambda make: ())(make)]
    return own + edges + [one for sample in own[:1] for _, one in edge_shapes(op, sample)]


def runs_on(op: Op, place: str) -> None:
    if place == "cpu decomposition" and op.rule("decomposition") is None:
        pytest.skip("no decomposition")


@pytest.fixture(autouse=True)
def host_fallback_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TP_FALLBACK", "count")


def test_every_operator_has_samples_and_a_reference() -> None:
    assert [name for name in NAMES if name not in REFERENCES] == sorted(NO_REFERENCE)
    assert [name for name in NAMES if not samples(OPS[name], Make())] == sorted(NO_SAMPLES)


def test_every_gradient_is_looked_at() -> None:
    unseen = [name for name in NAMES if NONDIFFERENTIABLE not in OPS[name].tags and not any(
        [differentiable(OPS[name], in_double(sample)) for sample in samples(OPS[name], Make(dtype=tp.float64))])]
    assert unseen == ["quant_matmul"]  # of int8 with float32 scales


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", PLACES)
def test_forward(name: str, place: str) -> None:
    op = OPS[name]
    runs_on(op, place)
    for sample in cases(op):
        check(op, sample, place)


@pytest.mark.parametrize("name", NAMES)
def test_meta(name: str) -> None:
    for sample in cases(OPS[name]):
        check_meta(OPS[name], sample)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", PLACES)
def test_layouts(name: str, place: str) -> None:
    op = OPS[name]
    runs_on(op, place)
    if VIEW in op.tags:
        pytest.skip("a view's strides are the test of the meta; which ones are possible depends on the input's")
    for sample in samples(op, Make())[:2]:
        for _, variant in layouts(op, sample):
            check(op, variant, place)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", PLACES)
def test_dtypes(name: str, place: str) -> None:
    """What the meta accepts is computed everywhere; what it refuses is refused everywhere."""
    op = OPS[name]
    runs_on(op, place)
    if RANDOM in op.tags or RETYPES in op.tags or name == "quant_matmul":
        pytest.skip("its samples say which dtypes it has")
    original = samples(op, Make())[0]
    for dtype in [getattr(tp, one) for one in DTYPES]:
        sample = samples(op, Make(dtype=dtype))[0] if dtype.category == FLOATING else in_dtype(original, dtype)
        if (name, dtype.name) in OTHER_DTYPES or dtype.category != FLOATING and floating_only(name):
            continue
        if refused(op, sample):
            with pytest.raises((DTypeError, NotSupported, ValueRangeError)):
                run(op, sample, place)
        elif not (dtype.is_complex and place in ("refdev", "cpu decomposition") and not_supported(op, sample, place)):
            check(op, sample, place)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
@pytest.mark.parametrize("place", PLACES)
def test_powers_of_integers(place: str, dtype: str) -> None:
    runs_on(OPS["pow"], place)
    make = Make()
    check(OPS["pow"], (make.integers((3, 4), 0, 12, getattr(tp, dtype)), make.integers((4,), 0, 9,
                                                                                      getattr(tp, dtype))), place)


def floating_only(name: str) -> bool:
    """Formulas of gradients and optimizer steps see floating point tensors only, so their metas do not check that."""
    return name.endswith(("_backward", "_step")) or name == "rope"


def refused(op: Op, sample: tuple) -> bool:
    if DATA_DEPENDENT in op.tags:
        return False
    try:
        run(op, sample, "meta")
    except (DTypeError, NotSupported):
        return True
    return False


def not_supported(op: Op, sample: tuple, place: str) -> bool:
    """Some defaults are formulas for real numbers; where the device has no kernel for complex ones, they say so."""
    try:
        run(op, sample, place)
    except NotSupported:
        return True
    return False


@pytest.mark.parametrize("name", NAMES)
def test_gradient(name: str) -> None:
    op = OPS[name]
    for sample in map(in_double, cases(op, tp.float64)):
        if name not in NO_GRADIENT and differentiable(op, sample):
            gradcheck(*gradient_case(op, sample))


@pytest.mark.parametrize("name", NAMES)
def test_second_gradient(name: str) -> None:
    op = OPS[name]
    for sample in map(in_double, samples(op, Make(dtype=tp.float64))):
        if name not in NO_GRADIENT and name not in NO_SECOND_GRADIENT and differentiable(op, sample):
            gradgradcheck(*gradient_case(op, sample))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", ["cpu generic", "refdev", "meta"])
def test_gradient_on_other_places(name: str, place: str) -> None:
    """The same as on the CPU, where gradcheck has looked at it."""
    op = OPS[name]
    for sample in samples(op, Make(dtype=tp.float64)):
        if differentiable(op, sample):
            check_gradients(op, sample, place, gradients(op, sample, "cpu"), 1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_gradient_in_single_precision(name: str) -> None:
    """What fused float32 kernels make of it, against float64."""
    op = OPS[name]
    for sample in samples(op, Make()):
        double = in_dtype(sample, tp.float64)
        if differentiable(op, double):
            check_gradients(op, sample, "cpu", gradients(op, double, "cpu"), 2e-4)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", ["cpu", "refdev"])
def test_in_place_and_out(name: str, place: str) -> None:
    """The derived forms write what the functional form gives, into tensors of any strides."""
    op = OPS[name]
    if op.schema.mutates or VIEW in op.tags or DATA_DEPENDENT in op.tags or op.schema.returns != 1:
        pytest.skip("no derived forms")
    for sample in samples(op, Make())[:2]:
        device = tp.device(place)
        wanted = expected(op, sample)
        result = op.call(*on_device(sample, device))
        for target in (tp.empty_like(result), tp.zeros(*result.shape, 2, dtype=result.dtype, device=device)[..., 0]):
            returned = op.call(*on_device(sample, device), out=target)
            assert returned is target
            compare(op, (target,), wanted, describe(op, sample, f"{place} with out="))
        first = sample[0]
        if not isinstance(first, Tensor) or first.layout.shape != result.layout.shape or first.dtype != result.dtype:
            continue
        for change in (offset, transposed):
            args = on_device((change(first), *sample[1:]), device)
            version, function = args[0]._version, make_inplace(op.call)
            assert function(*args) is args[0] and args[0]._version > version
            compare(op, (args[0],), wanted, describe(op, sample, f"{place} in place"))
