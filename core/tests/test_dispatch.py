"""Operators: registration, rules, what a call may look like, and in which order a kernel is looked for."""
from __future__ import annotations

import warnings

import numpy
import pytest

import tensorplay as tp
from tensorplay import _fallback, _resolve, library
from tensorplay._errors import (
    ArgumentError,
    AutogradError,
    ConflictError,
    DeviceError,
    NotSupported,
    ShapeError,
    ValueRangeError,
)
from tensorplay._op import OPS, clear_tables, pending_kernels
from tensorplay._storage import Storage
from tensorplay.driver import Driver

pytest.importorskip("tp_cpu")


class ToyDriver(Driver):
    """A device with memory of its own, and of the operators only what copies need."""

    name = "toy"

    def __init__(self):
        self.kernels = {"copy_strided": copy, "cast": copy}
        self.decompositions = {}

    def allocate(self, nbytes, device):
        return Storage(bytearray(nbytes), nbytes, device)

    def copy_from_host(self, storage, data):
        storage.data[:] = bytes(data)

    def copy_to_host(self, storage):
        return bytes(storage.data)

    def kernel(self, op_name):
        return self.kernels.get(op_name)

    def decomposition(self, op_name):
        return self.decompositions.get(op_name)


def written(out, values):
    """Fill a result on any device."""
    out.device.driver.copy_from_host(out.storage, library.pack(values, out.dtype))


def copy(out, source, *dtype):
    array(out)[...] = array(source)


def array(x):
    """What a tensor on the toy device shows."""
    size = x.dtype.itemsize
    return numpy.ndarray(x.shape, x.dtype.name, x.storage.data, x.offset * size, [step * size for step in x.stride()])


def times(factor):
    def kernel(out, x, *more):
        written(out, [value * factor for value in numpy.ravel(x.tolist()).tolist()])

    return kernel


TOY = ToyDriver()
library.register_driver("toy", TOY)


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setenv("TP_FALLBACK", "count")
    monkeypatch.setattr(_fallback, "counts", {})
    monkeypatch.setattr(TOY, "kernels", dict(TOY.kernels))
    monkeypatch.setattr(TOY, "decompositions", {})
    return tp.device("toy")


@pytest.fixture
def make(monkeypatch):
    """Register operators that are forgotten after the test."""
    monkeypatch.setattr(_resolve, "GENERIC", False)
    before = set(OPS)
    yield library.op
    for name in set(OPS) - before:
        if "::" in name:  # not the operators that were loaded meanwhile
            del OPS[name]


def same_layout(made):
    made.meta(lambda input, *more: input.dense())
    return made


# ---- the order in which a kernel is looked for ----------------------------------------------------------------------
def test_resolution_order(make, toy, monkeypatch):
    op = same_layout(make("order::f(Tensor input) -> Tensor"))
    x = tp.tensor([1, 2], device=toy)
    with pytest.raises(NotSupported) as caught:
        op(x)
    assert caught.value.message == (
        "order::f has no kernel and no decomposition for device 'toy', and neither has the CPU, on which it could run "
        "instead; register one with @order::f.kernel('toy') or @order::f.decomposition")

    op.kernel("cpu")(times(2))  # the CPU has it: host fallback, counted
    assert op(x).tolist() == [2, 4]
    assert op(x).device is toy
    assert _fallback.counts == {("order::f", "toy"): 2}

    op.decomposition(lambda input: input.cpu().mul(3).to(input.device))
    assert op(x).tolist() == [3, 6]

    TOY.decompositions["order::f"] = lambda input: input.cpu().mul(4).to(input.device)
    assert op(x).tolist() == [3, 6], "what has been resolved stays until something is registered"
    clear_tables()
    assert op(x).tolist() == [4, 8]

    kernel = times(5)
    op.kernel("toy")(kernel)
    assert op(x).tolist() == [5, 10]

    fused = []

    def fuse(which, driver):
        fused.append((which.name, driver))
        return lambda input: input.cpu().mul(6).to(input.device)

    kernel.fuse = fuse
    op.kernel("toy")(kernel)
    assert op(x).tolist() == [6, 12]
    assert fused == [("order::f", TOY)]
    with library.generic_path():
        assert op(x).tolist() == [5, 10]
    assert op(x).tolist() == [6, 12]
    assert _fallback.counts == {("order::f", "toy"): 2}


def test_the_drivers_own_kernel_is_asked_once(make, toy):
    op = same_layout(make("order::g(Tensor input) -> Tensor"))
    asked = []
    TOY.kernel = lambda name: asked.append(name) or (times(7) if name == "order::g" else TOY.kernels.get(name))
    try:
        for _ in range(3):
            assert op(tp.tensor([1], device=toy)).tolist() == [7]
        op.vjp(input=lambda grad: grad)  # clears the table
        assert op(tp.tensor([1], device=toy)).tolist() == [7]
    finally:
        del TOY.kernel
    assert asked.count("order::g") == 1


def test_fallback_policies(make, toy, monkeypatch):
    op = same_layout(make("order::h(Tensor input) -> Tensor"))
    op.kernel("cpu")(times(2))
    x = tp.tensor([1], device=toy)
    monkeypatch.setenv("TP_FALLBACK", "warn")
    with pytest.warns(UserWarning, match="order::h runs on the CPU because device 'toy' has no kernel for it"):
        op(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert op(x).tolist() == [2]  # said once
    monkeypatch.setenv("TP_FALLBACK", "error")
    with pytest.raises(NotSupported, match="TP_FALLBACK=error forbids running it on the CPU"):
        op(x)
    assert _fallback.counts == {("order::h", "toy"): 2}
    monkeypatch.setenv("TP_FALLBACK", "perhaps")
    with pytest.raises(ValueRangeError, match="TP_FALLBACK='perhaps' in the environment: expected error, warn or"):
        op(x)


def test_fallback_writes_back_what_the_operator_mutates(make, toy):
    op = make("order::m(Tensor(a!) target, Tensor source) -> ()")
    op.meta(lambda target, source: None)
    op.kernel("cpu")(lambda out, target, source: written(target, [v + 1 for v in source.tolist()]))
    target, source = tp.tensor([0, 0], device=toy), tp.tensor([4, 5], device=toy)
    version = target._version
    op(target, source)
    assert target.tolist() == [5, 6]
    assert target._version > version


def test_a_kernel_without_meta_says_so(make, toy):
    op = make("order::blind(Tensor input) -> Tensor")
    op.kernel("toy")(times(2))
    with pytest.raises(NotSupported, match="order::blind has a kernel but no meta; say what its result looks like"):
        op(tp.tensor([1], device=toy))
    with pytest.raises(NotSupported, match=r"order::blind has no kernel and no decomposition for device 'meta' \(nor"):
        op(tp.tensor([1], device="meta"))


def test_contiguous_inputs_where_the_device_wants_them(make, toy, monkeypatch):
    seen = []
    op = same_layout(make("order::rows(Tensor input) -> Tensor"))
    op.kernel("toy")(lambda out, x: seen.append((x.is_contiguous(), x.tolist())))
    x = tp.tensor([[1, 2], [3, 4]], device=toy).t()
    op(x)
    monkeypatch.setattr(TOY, "wants_contiguous", True, raising=False)
    clear_tables()
    op(x)
    assert seen == [(False, [[1, 3], [2, 4]]), (True, [[1, 3], [2, 4]])]
    clear_tables()


def test_unsupported_dtypes_are_refused_by_name(toy, monkeypatch):
    monkeypatch.setattr(TOY, "unsupported_dtypes", {"float64": "the hardware has none"}, raising=False)
    with pytest.raises(DeviceError, match="device 'toy' has no float64: the hardware has none"):
        tp.tensor([1.0], dtype=tp.float64, device=toy)


# ---- tables ---------------------------------------------------------------------------------------------------------
def test_registering_clears_the_table(make):
    op = same_layout(make("table::f(Tensor input) -> Tensor"))
    op.kernel("cpu")(times(2))
    x = tp.tensor([1])
    assert op(x).tolist() == [2]
    assert len(op.op.table) == 1
    builder = _resolve.builders.get(library.VMAP, lambda op, keyset: None)
    for register in (lambda: op.kernel("cpu")(times(3)), lambda: op.decomposition(lambda input: input),
                     lambda: op.vjp(input=lambda grad: grad), lambda: op.meta(lambda input: input.dense()),
                     lambda: library.register_kernels("cpu", {"table::f": times(3)}),
                     lambda: library.register_builder(library.VMAP, builder), clear_tables):
        op(x)
        assert op.op.table
        register()
        assert not op.op.table
    assert op(x).tolist() == [3]
    with tp.no_grad():
        op(x)
    assert len(op.op.table) == 2  # one kernel for each key set


def test_kernels_registered_before_the_operator_is_loaded(make, toy):
    library.register_kernels("toy", {"table::later": times(9)})
    try:
        op = same_layout(make("table::later(Tensor input) -> Tensor"))
        assert op(tp.tensor([1], device=toy)).tolist() == [9]
    finally:
        del pending_kernels["table::later"]


def test_names_are_taken_once(make):
    make("table::once(Tensor input) -> Tensor")
    with pytest.raises(ConflictError, match=r"operator 'table::once' is already registered at .*test_dispatch.py:\d+; "
                                            r"use another namespace \('mine::table::once'\) or replace=True"):
        make("table::once(Tensor input) -> Tensor")
    again = make("table::once(Tensor input, int n) -> Tensor", replace=True)
    assert OPS["table::once"] is again.op


def test_what_the_function_says_about_itself(make):
    op = make("table::named(Tensor input) -> Tensor", doc="Says hello.")
    assert (op.__name__, op.__doc__, op.__module__) == ("named", "Says hello.", __name__)
    assert repr(op.op) == "<op table::named(Tensor input) -> Tensor>"
    with pytest.raises(ArgumentError, match=r"table::named\.vjp: no tensor argument 'other'; it has input"):
        op.vjp(other=lambda grad: grad)


# ---- what a call may look like --------------------------------------------------------------------------------------
@pytest.fixture
def shown(make):
    """An operator of every kind of signature; each returns its arguments."""
    def made(schema):
        op = make(schema)
        op.decomposition(lambda *args: args)
        return op

    return made


X, Y = tp.ones(2), tp.zeros(2)
CALLS = [  # (schema, positional, by name, arguments as the kernel gets them)
    ("(Tensor input) -> Tensor", (X,), {}, (X,)),
    ("(Tensor input) -> Tensor", (), {"input": X}, (X,)),
    ("(Tensor x) -> Tensor", (), {"x": X}, (X,)),
    ("(Tensor x) -> Tensor", (X,), {}, (X,)),
    ("(Tensor input, Tensor other) -> Tensor", (X, Y), {}, (X, Y)),
    ("(Tensor input, Tensor other) -> Tensor", (X,), {"other": Y}, (X, Y)),
    ("(Tensor input, Tensor other) -> Tensor", (), {"other": Y, "input": X}, (X, Y)),
    ("(Tensor a, Tensor b) -> Tensor", (X,), {"b": Y}, (X, Y)),
    ("(Operand input, Operand other) -> Tensor", (X, 2), {}, (X, 2)),
    ("(Operand input, Operand other) -> Tensor", (2.5, X), {}, (2.5, X)),
    ("(Operand input, Operand other) -> Tensor", (X, True), {}, (X, True)),
    ("(Operand input, Operand other) -> Tensor", (X,), {"other": 1j}, (X, 1j)),
    ("(Operand input, Operand other) -> Tensor", (X, numpy.float32(2)), {}, (X, 2.0)),
    ("(Operand input, Operand other) -> Tensor", (numpy.int64(2), X), {}, (2, X)),
    ("(Operand input, Operand other) -> Tensor", (X, numpy.array(2)), {}, (X, 2)),
    ("(Tensor input, int n=1, float p=0.5) -> Tensor", (X,), {}, (X, 1, 0.5)),
    ("(Tensor input, int n=1, float p=0.5) -> Tensor", (X, 2), {}, (X, 2, 0.5)),
    ("(Tensor input, int n=1, float p=0.5) -> Tensor", (X, 2, 3.5), {}, (X, 2, 3.5)),
    ("(Tensor input, int n=1, float p=0.5) -> Tensor", (X,), {"p": 3.5}, (X, 1, 3.5)),
    ("(Tensor input, int n=1, *, int m) -> Tensor", (X,), {"m": 3}, (X, 1, 3)),
    ("(Tensor x, Tensor? weight=None, int n=2) -> Tensor", (X,), {}, (X, None, 2)),
    ("(Tensor x, Tensor? weight=None, int n=2) -> Tensor", (X, Y), {}, (X, Y, 2)),
    ("(Tensor x, Tensor? weight=None, int n=2) -> Tensor", (X, None, 3), {}, (X, None, 3)),
    ("(Tensor x, Tensor? weight=None, int n=2) -> Tensor", (X,), {"weight": Y}, (X, Y, 2)),
    ("(Tensor? x, Tensor y) -> Tensor", (None, Y), {}, (None, Y)),
    ("(Operand input, Operand? min=None, Operand? max=None) -> Tensor", (X, 1), {}, (X, 1, None)),
    ("(Operand input, Operand? min=None, Operand? max=None) -> Tensor", (X,), {"max": Y}, (X, None, Y)),
    ("(Tensor[] tensors, int dim=0) -> Tensor", ([X, Y],), {}, ([X, Y], 0)),
    ("(Tensor[] tensors, int dim=0) -> Tensor", ((X, Y), 1), {}, ((X, Y), 1)),
    ("(Tensor[] tensors, int dim=0) -> Tensor", (), {"tensors": [X]}, ([X], 0)),
    ("(int n, dtype dtype, device device) -> Tensor", (3, tp.int64, "cpu"), {}, (3, tp.int64, tp.device("cpu"))),
]


@pytest.mark.parametrize(("schema", "args", "named", "expected"), CALLS)
def test_calls(shown, schema, args, named, expected):
    op = make_shown(shown, schema)
    for _ in range(2):  # the second call finds the kernel in the table
        found = op(*args, **named)
        assert len(found) == len(expected)
        for one, wanted in zip(found, expected):
            assert one is wanted or (type(one) is type(wanted) and not isinstance(one, tp.Tensor) and one == wanted)


def make_shown(shown, schema):
    if "device device" in schema:
        made = library.op("call::f" + schema, tags=(library.FACTORY,))
        made.decomposition(lambda *args: args)
        return made
    return shown("call::f" + schema)


BAD_CALLS = [  # (schema, positional, by name, text)
    ("(Tensor input) -> Tensor", (5,), {}, "call::f: argument 'input' must be a Tensor, got int; make it one with "
                                           "tp.tensor(5)"),
    ("(Tensor input) -> Tensor", ([1.0],), {}, "call::f: argument 'input' must be a Tensor, got list; make it one with "
                                               "tp.tensor(input)"),
    ("(Tensor input) -> Tensor", (None,), {}, "call::f: argument 'input' must be a Tensor, got None"),
    ("(Tensor input) -> Tensor", ("a",), {}, "call::f: argument 'input' must be a Tensor, got str"),
    ("(Tensor x) -> Tensor", (), {"y": X}, "call::f has no argument 'y': call::f(Tensor x) -> Tensor"),
    ("(Tensor x) -> Tensor", (X,), {"x": X}, "call::f got two values for 'x'"),
    ("(Operand input, Operand other) -> Tensor", (X, None), {}, "call::f: argument 'other' must be a Tensor or a "
                                                                "number, got None"),
    ("(Operand input, Operand other) -> Tensor", (X, "a"), {}, "call::f: argument 'other' must be a Tensor or a "
                                                               "number, got str"),
    ("(Operand input, Operand other) -> Tensor", (X, numpy.ones(2)), {}, "call::f: argument 'other' must be a Tensor "
                                                                         "or a number, got ndarray; make it one with"),
    ("(Tensor input, Tensor other) -> Tensor", (X, 2), {}, "call::f: argument 'other' must be a Tensor, got int"),
    ("(Tensor x, int n=1) -> Tensor", (X, 1, 2), {}, "call::f takes at most 2 arguments, got 3"),
    ("(Tensor x, int n, int m) -> Tensor", (X, 1), {}, "call::f is missing its argument 'm'"),
    ("(Tensor x, int n=1, *, int m) -> Tensor", (X, 1), {}, "call::f is missing its argument 'm'"),
    ("(Tensor x, Tensor? w=None) -> Tensor", (X, 3), {}, "call::f: argument 'w' must be a Tensor, got int"),
    ("(Tensor[] xs, int dim=0) -> Tensor", ([X, 5],), {}, "call::f: argument 'xs' must be a list of Tensors, got int"),
    ("(Tensor[] xs, int dim=0) -> Tensor", ([],), {}, "call::f: got no tensor to work on: call::f(Tensor[] xs"),
]


@pytest.mark.parametrize(("schema", "args", "named", "text"), BAD_CALLS)
def test_bad_calls(shown, schema, args, named, text):
    op = shown("call::f" + schema)
    with pytest.raises(ArgumentError) as caught:
        op(*args, **named)
    assert caught.value.message.startswith(text)


def test_numbers_alone_make_tensors():
    found = tp.add(2, 3.5)
    assert (found.dtype, found.item(), found.device.type) == (tp.float32, 5.5, "cpu")
    assert tp.exp(0).item() == 1.0


# ---- out= -----------------------------------------------------------------------------------------------------------
def test_out(place):
    x = tp.tensor([1.0, 2.0], device=place)
    target = tp.zeros(2, device=place)
    for call in (lambda out: tp.exp(x, out=out), lambda out: tp.mul(x, 3, out=out), lambda out: tp.add(x, x, out=out)):
        version = target._version
        assert call(target) is target
        assert target._version > version
    assert target.tolist() == [2.0, 4.0]
    empty = tp.empty(0, device=place)
    tp.mul(x, 3, out=empty)  # an empty out is resized
    assert empty.tolist() == [3.0, 6.0]
    wide = tp.zeros(2, dtype=tp.float64, device=place)
    tp.mul(x, 3, out=wide)
    assert (wide.dtype, wide.tolist()) == (tp.float64, [3.0, 6.0])
    column = tp.zeros(2, 2, device=place)
    tp.mul(x, 3, out=column[:, 1])
    assert column.tolist() == [[0, 3], [0, 6]]


OUTS = [  # (out, error, text)
    (lambda: 5, ArgumentError, "mul: out= must be a Tensor, got int"),
    (lambda: [1.0, 2.0], ArgumentError, "mul: out= must be a Tensor, got float"),
    (lambda: (tp.zeros(2), tp.zeros(2)), ArgumentError, "mul: out= must be 1 tensors, got 2"),
    (lambda: tp.zeros(3), ShapeError, "mul(out=): the result has shape [2] but the tensor written to has [3]"),
    (lambda: tp.zeros(2, dtype=tp.int64), library.DTypeError, "mul(out=): the result is float32 and cannot be stored "
                                                              "in a int64 tensor"),
    (lambda: tp.zeros(1).expand(2), AutogradError, "mul(out=): several elements of the tensor share one memory cell"),
    (lambda: tp.zeros(2, requires_grad=True), AutogradError, "mul: out= does not support automatic differentiation"),
]


@pytest.mark.parametrize(("out", "error", "text"), OUTS)
def test_bad_out(out, error, text):
    with pytest.raises(error) as caught:
        tp.mul(tp.ones(2), 3.0, out=out())
    assert caught.value.message.startswith(text)


def test_out_would_lose_gradients():
    x, target = tp.ones(2, requires_grad=True), tp.zeros(2)
    with pytest.raises(AutogradError, match="mul: out= does not support automatic differentiation"):
        tp.mul(x, 3, out=target)
    with tp.no_grad():
        tp.mul(x, 3, out=target)
    assert target.tolist() == [3, 3]


# ---- several devices ------------------------------------------------------------------------------------------------
def test_mixed_devices(refdev):
    x, y = tp.ones(2), tp.ones(2, device=refdev)
    for call, text in [
            (lambda: x + y, "add: input is on cpu but other is on refdev:0; move one of them, e.g. other.to('cpu')"),
            (lambda: y + x, "add: input is on refdev:0 but other is on cpu; move one of them, e.g. other.to('refdev"),
            (lambda: tp.where(x > 0, x, y), "where: condition is on cpu but other is on refdev:0"),
            (lambda: tp.cat([x, y]), "cat: tensors[0] is on cpu but tensors[1] is on refdev:0"),
            (lambda: tp.tensor(1.0, device=refdev) + x, "add: input is on refdev:0 but other is on cpu"),
            (lambda: y + tp.ones(2, device="refdev:1"), "add: input is on refdev:0 but other is on refdev:1; move one "
                                                       "of them, e.g. other.to('refdev:0')"),
            (lambda: x.add_(y), "add: input is on cpu but other is on refdev:0")]:
        with pytest.raises(DeviceError) as caught:
            call()
        assert caught.value.message.startswith(text)


def test_0d_host_tensors_go_to_the_other_device(refdev):
    y, scalar = tp.ones(2, device=refdev), tp.tensor(2.0)
    for found in (y + scalar, scalar + y, tp.add(y, scalar), y.add_(scalar) - 0):
        assert (found.device, found.tolist()) == (refdev, [3.0, 3.0])
    scalar.requires_grad_()
    (y.detach() * scalar).sum().backward()
    assert (scalar.grad.item(), scalar.grad.device.type) == (6.0, "cpu")


# ---- an operator of one's own ---------------------------------------------------------------------------------------
def test_a_custom_operator_end_to_end(make, place):
    op = make("mine::scaled(Tensor input, float factor=2.0) -> Tensor")

    @op.meta
    def _(input, factor):
        if input.dtype is not tp.float32:
            raise library.DTypeError(f"mine::scaled: takes float32, got {input.dtype.name}")
        return input.dense()

    op.kernel(place.type)(lambda out, input, factor: written(out, [v * factor for v in input.tolist()]))
    op.vjp(input=lambda grad, factor: grad * factor)
    x = tp.tensor([1.0, 2.0], device=place, requires_grad=True)
    y = op(x, factor=3.0)
    assert y.tolist() == [3.0, 6.0]
    (y * y).sum().backward()
    assert x.grad.tolist() == [18.0, 36.0]
    assert tp.ops.mine.scaled(x.detach()).tolist() == [2.0, 4.0]
    assert op(tp.ones(3, device="meta"), 4.0).shape == (3,)
    with pytest.raises(library.DTypeError, match="mine::scaled: takes float32, got int64"):
        op(tp.ones(2, dtype=tp.int64, device=place))
    with pytest.raises(AttributeError, match="no operator 'mine::scale' is registered"):
        _ = tp.ops.mine.scale


def test_a_decomposition_runs_and_differentiates_everywhere(make, place):
    op = make("mine::cube(Tensor input) -> Tensor")
    op.decomposition(lambda input: input * input * input)
    x = tp.tensor([2.0], device=place, requires_grad=True)
    op(x).backward()
    assert x.grad.tolist() == [12.0]
