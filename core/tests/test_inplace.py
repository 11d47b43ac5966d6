"""In-place forms: versions, what is refused, overlapping memory, rules for dtypes, and who wrote last."""
from __future__ import annotations

import operator

import numpy
import pytest

import tensorplay as tp
from tensorplay._errors import AutogradError, DTypeError, ShapeError
from tensorplay._inplace import writer_text

FORMS = [  # (call on x of [1, 2, 3], the values it leaves)
    (lambda x: x.add_(2), [3, 4, 5]),
    (lambda x: x.add_(x), [2, 4, 6]),
    (lambda x: x.add_(tp.ones(3, device=x.device), alpha=3), [4, 5, 6]),
    (lambda x: x.sub_(1), [0, 1, 2]),
    (lambda x: x.mul_(2), [2, 4, 6]),
    (lambda x: x.div_(2), [0.5, 1, 1.5]),
    (lambda x: x.pow_(2), [1, 4, 9]),
    (lambda x: x.neg_(), [-1, -2, -3]),
    (lambda x: x.clamp_(2, 2.5), [2, 2, 2.5]),
    (lambda x: x.clamp_(max=2), [1, 2, 2]),
    (lambda x: x.zero_(), [0, 0, 0]),
    (lambda x: x.fill_(7), [7, 7, 7]),
    (lambda x: x.copy_(tp.tensor([7, 8, 9], device=x.device)), [7, 8, 9]),
    (lambda x: x.copy_(tp.tensor(4, device=x.device)), [4, 4, 4]),
    (lambda x: x.masked_fill_(x > 1, 0), [1, 0, 0]),
    (lambda x: x.cumsum_(0), [1, 3, 6]),
    (lambda x: operator.iadd(x, 1), [2, 3, 4]),
    (lambda x: operator.isub(x, x), [0, 0, 0]),
    (lambda x: operator.imul(x, 3), [3, 6, 9]),
    (lambda x: operator.itruediv(x, 2), [0.5, 1, 1.5]),
    (lambda x: operator.ipow(x, 2), [1, 4, 9]),
    (lambda x: operator.ifloordiv(x, 2), [0, 1, 1]),
    (lambda x: operator.imod(x, 2), [1, 0, 1]),
]


@pytest.mark.parametrize(("call", "expected"), FORMS)
@pytest.mark.parametrize("form", ["contiguous", "stepped", "transposed", "reversed", "offset"])
def test_values_and_versions(call, expected, form, place):
    memory = tp.full((3, 4), -1.0, device=place)
    x = {"contiguous": lambda: memory.reshape(-1)[:3], "stepped": lambda: memory.reshape(-1)[::4],
         "transposed": lambda: memory.t()[2], "reversed": lambda: memory.reshape(-1)[8:2:-2],
         "offset": lambda: memory[1, 1:]}[form]()
    x.copy_(tp.tensor([1.0, 2.0, 3.0], device=place))
    other = x.detach()
    version, storage, layout = x._version, x.storage, x.layout
    assert call(x) is x
    assert x.tolist() == expected
    assert other.tolist() == expected
    assert (x.storage is storage, x.layout is layout) == (True, True)
    assert x._version == other._version == memory._version == version + 1
    untouched = memory.reshape(-1).tolist()
    assert untouched.count(-1.0) - expected.count(-1.0) == 9, "nothing around the view is written"


def test_versions_count_writes_only(place):
    x = tp.ones(4, device=place)
    assert x._version == 0
    x + 1, x[0], x.t(), x.clone(), x.reshape(2, 2), x.sum(), repr(x), x.tolist()
    assert x._version == 0
    x[0] = 1
    x[tp.tensor([1], device=place)] = 2
    x.reshape(2, 2).add_(1)
    assert x._version == 3
    assert x.clone()._version == 0
    with pytest.raises(ShapeError):
        x.add_(tp.ones(2, 4, device=place))
    assert x._version == 3, "a refused write does not count"


HOW = {"copy_": lambda a, b: a.copy_(b), "add_": lambda a, b: a.add_(b), "mul_": lambda a, b: a.mul_(b),
       "iadd": operator.iadd, "setitem": lambda a, b: operator.setitem(a, slice(None), b),
       "out": lambda a, b: tp.mul(b, 2, out=a)}
NUMPY = {"copy_": lambda a, b: b, "add_": operator.add, "mul_": operator.mul, "iadd": operator.add,
         "setitem": lambda a, b: b, "out": lambda a, b: b * 2}
OVERLAPS = [  # (target, source) of six elements
    (lambda x: x[1:], lambda x: x[:-1]), (lambda x: x[:-1], lambda x: x[1:]), (lambda x: x[::2], lambda x: x[:3]),
    (lambda x: x[:3], lambda x: x[::2]), (lambda x: x[2:4], lambda x: x[3:5]),
]


@pytest.mark.parametrize(("target", "source"), OVERLAPS)
@pytest.mark.parametrize("how", HOW)
def test_overlapping_source_and_target(target, source, how, place):
    expected = numpy.arange(6, dtype="float32")
    x = tp.tensor(expected, device=place)
    target(expected)[...] = NUMPY[how](target(expected), source(expected).copy())
    HOW[how](target(x), source(x))
    assert x.tolist() == expected.tolist()


@pytest.mark.parametrize("shift", [1, 7, 64, 4999])
@pytest.mark.parametrize("how", HOW)
def test_overlaps_longer_than_a_vector_and_a_threads_part(how, shift):
    pytest.importorskip("tp_cpu")
    for forwards in (True, False):
        expected = numpy.arange(200_000, dtype="float32")
        x = tp.tensor(expected)
        low, high = slice(None, -shift), slice(shift, None)
        to, of = (high, low) if forwards else (low, high)
        expected[to] = NUMPY[how](expected[to], expected[of].copy())
        HOW[how](x[to], x[of])
        assert numpy.array_equal(x.numpy(), expected)


def test_a_transposed_source_of_the_same_memory(place):
    expected = numpy.arange(9, dtype="float32").reshape(3, 3)
    x = tp.tensor(expected, device=place)
    x.copy_(x.t())
    assert x.tolist() == expected.T.tolist()
    x.add_(x.t())
    assert x.tolist() == (expected.T + expected).tolist()
    x.sub_(x[0])  # broadcast from a row of the target itself
    assert x.tolist() == ((expected.T + expected) - (expected.T + expected)[0]).tolist()


REFUSED = [  # (call on a float tensor of shape [3], error, text)
    (
        lambda x: x.add_(tp.ones(2, 3, device=x.device)),
        ShapeError,
        "add_: the result has shape [2, 3] but the tensor written to has [3]",
    ),
    (
        lambda x: x.mul_(1j),
        DTypeError,
        "mul_: the result is complex64 and cannot be stored in a float32 tensor; use the "
        "form without '_' or convert the tensor first",
    ),
    (
        lambda x: x[:1].expand(3).add_(1),
        AutogradError,
        "add_: several elements of the tensor share one memory cell (it was expanded); call .clone() first",
    ),
    (lambda x: x[:1].expand(3).copy_(x), AutogradError, "copy_: several elements of the tensor share one memory cell"),
    (lambda x: x[:1].expand(3).zero_(), AutogradError, "several elements of the tensor share one memory cell"),
    (lambda x: x.copy_(tp.ones(2, device=x.device)), ShapeError, "source[2] does not broadcast to input[3]"),
    (lambda x: x.cumsum_(1), IndexError, "dim 1 is out of range"),
    (lambda x: operator.iadd(x, "a"), TypeError, "argument 'other' must be a Tensor or a number, got str"),
    (lambda x: operator.iadd(x, None), TypeError, "argument 'other' must be a Tensor or a number, got None"),
]


@pytest.mark.parametrize(("call", "error", "text"), REFUSED)
def test_refusals(call, error, text, place):
    x = tp.tensor([1.0, 2.0, 3.0], device=place)
    with pytest.raises(error) as caught:
        call(x)
    assert text in caught.value.message
    assert (x.tolist(), x._version) == ([1.0, 2.0, 3.0], 0)


DTYPES = [  # (dtype of the target, call, values or error): an in-place result casts down in kind never, in size always
    ("int64", lambda x: x.add_(1), [2, 3]),
    ("int64", lambda x: x.add_(1.5), DTypeError),
    ("int64", lambda x: x.div_(2), DTypeError),
    ("int64", lambda x: x.mul_(tp.tensor([2, 3], dtype=tp.int8, device=x.device)), [2, 6]),
    ("int64", lambda x: x.mul_(tp.tensor(0.5, device=x.device)), DTypeError),
    ("int8", lambda x: x.add_(tp.tensor([100, 1000], device=x.device)), [101, -22]),
    ("uint8", lambda x: x.sub_(2), [255, 0]),
    ("float16", lambda x: x.mul_(tp.tensor([0.1, 3.0], dtype=tp.float64, device=x.device)), [0.0999755859375, 6.0]),
    ("float32", lambda x: x.add_(tp.tensor([1, 2], device=x.device)), [2.0, 4.0]),
    ("float32", lambda x: x.mul_(True), [1.0, 2.0]),
    ("bfloat16", lambda x: x.add_(0.0078125), [1.0078125, 2.0]),
    ("bool", lambda x: x.logical_not_(), [False, False]),
    ("bool", lambda x: x.add_(1), DTypeError),
    ("bool", lambda x: x.copy_(tp.tensor([0.5, 0.0], device=x.device)), [True, False]),
    ("int64", lambda x: x.copy_(tp.tensor([1.7, -1.7], device=x.device)), [1, -1]),
    ("complex64", lambda x: x.mul_(1j), [1j, 2j]),
    ("float32", lambda x: x.eq_(1), [1.0, 0.0]),
    ("float32", lambda x: x.lt_(tp.tensor([5.0, 0.0], device=x.device)), [1.0, 0.0]),
]


@pytest.mark.parametrize(("dtype", "call", "expected"), DTYPES)
def test_dtypes(dtype, call, expected, place):
    x = tp.tensor([1, 2], device=place).to(getattr(tp, dtype))
    if expected is DTypeError:
        before = x.tolist()
        with pytest.raises(DTypeError, match="cannot be stored in a"):
            call(x)
        assert x.tolist() == before
    else:
        call(x)
        assert (x.dtype.name, x.tolist()) == (dtype, expected)


def test_zero_dimensional_and_empty_targets(place):
    x = tp.tensor(2.0, device=place)
    x += 1
    x *= tp.tensor(2.0, device=place)
    assert x.item() == 6.0
    with pytest.raises(ShapeError):
        x += tp.ones(2, device=place)
    empty = tp.empty(0, 3, device=place)
    empty += 1
    empty.copy_(tp.ones(3, device=place))
    assert empty.shape == (0, 3)


def test_in_place_while_gradients_are_recorded(place):
    x = tp.tensor([1.0, 2.0], device=place, requires_grad=True)
    y = x * 3
    y += 1
    y[0] *= 5
    assert y.tolist() == [20.0, 7.0]
    y.sum().backward()
    assert x.grad.tolist() == [15.0, 3.0]


def test_the_last_writer_is_remembered():
    x = tp.ones(2)
    assert writer_text(x.storage) == (None, None)
    x.add_(1)
    name, where = writer_text(x.storage)
    assert name == "add_"
    assert where.rpartition(":")[0] == __file__
    x[0] = 5
    again, line = writer_text(x.storage)
    assert (again, int(line.rpartition(":")[2]) - int(where.rpartition(":")[2])) == ("copy_", 4)
    tp.mul(tp.ones(2), 2, out=x)
    assert writer_text(x.storage)[0] == "mul(out=)"


def test_an_error_names_the_last_writer():
    x = tp.ones(2, requires_grad=True)
    y = x * 1
    z = (y * y).sum()
    y.mul_(2)
    with pytest.raises(AutogradError, match=r"mul_.*test_inplace\.py:\d+"):
        z.backward()


ALIASES = [("absolute_", "abs_"), ("multiply_", "mul_"), ("negative_", "neg_")]


def test_names_and_help():
    for name in ("add_", "exp_", "clamp_", "sigmoid_"):
        method = getattr(tp.Tensor, name)
        assert method.__name__ == name
        assert f"In-place form of `{name[:-1]}`" in method.__doc__
    for alias, name in ALIASES:
        x, y = tp.tensor([1.0, -2.0]), tp.tensor([1.0, -2.0])
        args = (3,) if name == "mul_" else ()
        assert getattr(x, alias)(*args).tolist() == getattr(y, name)(*args).tolist()
