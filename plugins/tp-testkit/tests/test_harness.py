"""The harness finds what is wrong: values, dtypes, shapes, metas, gradients; and its samples are what they say."""
from __future__ import annotations

import numpy as np
import pytest

import tensorplay as tp
from tensorplay.autograd import gradcheck, gradgradcheck
from tensorplay.library import ELEMENTWISE, OPS, layout, op
from tp_testkit.gradients import check_gradients, differentiable, gradient_case, gradients
from tp_testkit.harness import array, check, check_meta, expected, run
from tp_testkit.references import REFERENCES
from tp_testkit.samples import LAYOUTS, Make, edge_shapes, in_dtype, layouts, on_device, samples


@pytest.fixture
def define(monkeypatch: pytest.MonkeyPatch):
    """A new operator with a reference, both forgotten after the test."""

    def made(decomposition, reference, meta=None, vjp=None, tags=()):
        function = op("testkit::made(Tensor input) -> Tensor", tags=tags, replace=True)
        function.meta(meta or (lambda source: source.dense()))
        function.decomposition(decomposition)
        if vjp:
            function.vjp(input=vjp)
        monkeypatch.setitem(REFERENCES, "testkit::made", reference)
        return function.op

    yield made
    OPS.pop("testkit::made", None)


def test_right_results_pass(define) -> None:
    made = define(lambda x: x * 2, lambda x: x * 2, vjp=lambda grad: grad * 2)
    for place in ("cpu", "cpu generic", "cpu decomposition", "refdev"):
        check(made, (Make()(3, 4),), place)
    check_meta(made, (Make()(3, 4),))
    gradcheck(*gradient_case(made, (Make(dtype=tp.float64)(3, 4),)))


@pytest.mark.parametrize(("decomposition", "message"), [
    (lambda x: x * 2.00001, r"element \[0, 0\] is .* should be"),
    (lambda x: x.double() * 2, "the meta says"),
    (lambda x: (x * 2).t(), "the meta says"),
    (lambda x: tp.where(x == x.max(), float("nan"), x * 2), "1 of 12 are wrong"),
    (lambda x: (x * 2, x), "2 results"),
])
def test_wrong_results_are_found(define, decomposition, message) -> None:
    made = define(decomposition, lambda x: x * 2)
    with pytest.raises(AssertionError, match=message):
        check(made, (Make()(3, 4),), "cpu")


def test_a_wrong_meta_is_found(define) -> None:
    made = define(lambda x: x * 2, lambda x: x * 2, meta=lambda source: source.with_shape((7,)))
    with pytest.raises(AssertionError, match="the meta says"):
        check(made, (Make()(3, 4),), "cpu")


def test_a_reference_of_another_kind_is_found(define) -> None:
    made = define(lambda x: x.abs(), lambda x: x > 0)
    with pytest.raises(AssertionError, match="the reference has bool"):
        check(made, (Make()(3, 4),), "cpu")


@pytest.mark.parametrize("shape", [(3,), (6, 7)])  # the whole Jacobian, and along random directions
def test_wrong_gradients_are_found(define, shape) -> None:
    make = Make(dtype=tp.float64)
    first = define(lambda x: x * x, np.square, vjp=lambda grad, input: grad * input * 2.01)
    assert differentiable(first, (make(*shape),))
    with pytest.raises(tp.TensorPlayError, match="is wrong"):
        gradcheck(*gradient_case(first, (make(*shape),)))
    second = define(lambda x: x * x, np.square, vjp=lambda grad, input: grad * input.detach() * 2)
    gradcheck(*gradient_case(second, (make(*shape),)))
    with pytest.raises(tp.TensorPlayError, match=r"is wrong|nothing to check"):
        gradgradcheck(*gradient_case(second, (make(*shape),)))


def test_gradients_that_differ_between_places_are_found(define) -> None:
    made = define(lambda x: x * x, np.square)
    sample = (Make(dtype=tp.float64)(3, 4),)
    wanted = gradients(made, sample, "cpu")
    check_gradients(made, sample, "refdev", wanted, 1e-12)
    with pytest.raises(AssertionError, match="is off by"):
        check_gradients(made, sample, "refdev", [wanted[0] + 1e-6], 1e-9)


# ---- samples ---------------------------------------------------------------------------------------------------------
def test_samples_are_the_same_in_every_run() -> None:
    assert Make()(3, 4).tolist() == Make()(3, 4).tolist()
    assert Make()(2).tolist() != Make(seed=1)(2).tolist()
    rows = Make().permutation((5, 3), 4).tolist()
    assert all([len(set(row)) == 3 and max(row) < 4 for row in rows])


def test_layouts_are_what_they_are_called() -> None:
    x = Make()(3, 4)
    made = {name: change(x) for name, change in LAYOUTS.items()}
    assert made["transposed"].stride() == (1, 3)
    assert made["sliced"].stride() == (16, 2)
    assert made["offset"].storage_offset() == 3
    assert made["negative step"].stride() == (-4, -1)
    assert made["broadcast"].stride() == (0, 1)
    for name in ("transposed", "sliced", "offset", "negative step"):
        assert made[name].tolist() == x.tolist(), name
        np.testing.assert_array_equal(array(made[name]), array(x), err_msg=name)


def test_elementwise_operators_get_samples_and_edges() -> None:
    made = op("testkit::pair(Operand input, Operand other) -> Tensor", tags=(ELEMENTWISE,), replace=True).op
    try:
        found = samples(made, Make())
        assert [[getattr(value, "shape", None) for value in sample] for sample in found] == [
            [(3, 4), (3, 4)], [(3, 1, 4), (2, 1)], [(3, 4), None], [None, (3, 4)]]
        assert [[value.shape for value in one] for _, one in edge_shapes(made, found[0])] == [
            [(), ()], [(1,), (1,)], [(3, 0), (3, 0)]]
        assert len(list(layouts(made, found[0]))) == len(LAYOUTS)
        integers = in_dtype(found[0], tp.uint8)[0]
        assert integers.dtype is tp.uint8 and min(integers.reshape(-1).tolist()) > 0
    finally:
        OPS.pop("testkit::pair")


def test_arguments_move_with_their_memory() -> None:
    x = Make()(4, 6)
    part = x[1::2, ::-1]
    moved, same = on_device((part, x), tp.device("refdev"))
    assert moved.layout.same(layout(part.layout.shape, part.dtype, tp.device("refdev"), part.layout.strides))
    assert moved.tolist() == part.tolist() and moved.storage is same.storage


def test_the_reference_runs_in_double_precision() -> None:
    sample = (Make()(3, 4),)
    assert expected(OPS["exp"] if "exp" in OPS else tp.exp.op, sample)[0].dtype == np.float64
    np.testing.assert_allclose(array(run(OPS["exp"], sample, "refdev")[0]), np.exp(array(sample[0])), rtol=1e-6)
