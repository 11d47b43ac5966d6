"""Making tensors: from every kind of data, from sizes, in every refused way; and that they survive copies."""
from __future__ import annotations

import array
import collections
import copy
import decimal
import enum
import fractions
import gc
import pickle

import numpy
import pytest

import tensorplay as tp
from tensorplay._errors import ArgumentError, DTypeError, MemoryLimitError, ShapeError, TensorPlayError, ValueRangeError

inf = float("inf")


class Color(enum.IntEnum):
    RED = 1


class Meters(float):
    pass


Point = collections.namedtuple("Point", "x y")

DATA = [  # (data, dtype, shape, values)
    (3, "int64", (), 3), (2.5, "float32", (), 2.5), (True, "bool", (), True), (1 + 2j, "complex64", (), 1 + 2j),
    (-2 ** 63, "int64", (), -2 ** 63), (Color.RED, "int64", (), 1), (Meters(1.5), "float32", (), 1.5),
    ([1, 2], "int64", (2,), [1, 2]), ((1, 2), "int64", (2,), [1, 2]), ([1, 2.5], "float32", (2,), [1.0, 2.5]),
    ([True, False], "bool", (2,), [True, False]), ([True, 2], "int64", (2,), [1, 2]),
    ([1, 2j], "complex64", (2,), [1, 2j]),
    ([True, 0.5], "float32", (2,), [1.0, 0.5]), ([[1, 2], (3, 4)], "int64", (2, 2), [[1, 2], [3, 4]]),
    ([[1, 2.0], [True, 4]], "float32", (2, 2), [[1, 2], [1, 4]]), ([Color.RED, 2], "int64", (2,), [1, 2]),
    ([[[1]], [[2]]], "int64", (2, 1, 1), [[[1]], [[2]]]), (Point(1, 2), "int64", (2,), [1, 2]),
    (range(3), "int64", (3,), [0, 1, 2]), ([range(2), [5, 6]], "int64", (2, 2), [[0, 1], [5, 6]]),
    ([], "float32", (0,), []), ([[], []], "float32", (2, 0), [[], []]), (((),), "float32", (1, 0), [[]]),
    (tp.Size([2, 3]), "int64", (2,), [2, 3]),
    ([numpy.float64(1.5), 2], "float32", (2,), [1.5, 2.0]), ([numpy.int8(1), 2], "int64", (2,), [1, 2]),
    ([numpy.bool_(True)], "bool", (1,), [True]), (numpy.float64(1.5), "float64", (), 1.5),
    (numpy.int16(3), "int16", (), 3), (numpy.bool_(True), "bool", (), True),
    (numpy.arange(3, dtype="uint8"), "uint8", (3,), [0, 1, 2]), (numpy.array(5), "int64", (), 5),
    (numpy.ones((2, 2), "float32").T[:, ::-1], "float32", (2, 2), [[1, 1], [1, 1]]),
    ([numpy.arange(2), numpy.arange(2)], "int64", (2, 2), [[0, 1], [0, 1]]),
    (numpy.zeros((0, 3)), "float64", (0, 3), []),
    (b"ab", "uint8", (2,), [97, 98]), (bytearray(b"ab"), "uint8", (2,), [97, 98]),
    (memoryview(b"ab"), "uint8", (2,), [97, 98]), (array.array("d", [1.5]), "float64", (1,), [1.5]),
    (array.array("h", [1, -2]), "int16", (2,), [1, -2]),
]


@pytest.mark.parametrize(("data", "dtype", "shape", "values"), DATA)
def test_data(data, dtype, shape, values, place):
    x = tp.tensor(data, device=place)
    assert (x.dtype.name, x.shape, x.tolist(), x.device) == (dtype, shape, values, place)
    assert (x.requires_grad, x.is_leaf, x.is_contiguous(), x.storage_offset(), x._version) == (False, True, True, 0, 0)
    again = tp.tensor(data, dtype=tp.complex128, device=place)
    assert numpy.array_equal(numpy.array(again.tolist()), numpy.array(values, complex))


def test_nested_tensors(place):
    one, two = tp.tensor(1.5, device=place), tp.tensor([1, 2], device=place)
    assert tp.tensor([one, 2], device=place).tolist() == [1.5, 2.0]
    assert tp.tensor([two, [3, 4]], device=place).tolist() == [[1, 2], [3, 4]]
    assert tp.tensor([[two, two]], device=place).shape == (1, 2, 2)


def test_from_tensors_is_a_copy_without_history(place):
    x = tp.tensor([1.0, 2.0], device=place, requires_grad=True)
    for made in (tp.tensor(x), tp.tensor(x, device=place), tp.Tensor(x), tp.tensor(x * 1)):
        assert (made.tolist(), made.requires_grad, made.grad_fn, made.device) == ([1.0, 2.0], False, None, place)
        assert made.untyped_storage() is not x.untyped_storage()
    assert tp.tensor(x, dtype=tp.int8, device=place).dtype is tp.int8
    assert tp.tensor(x.t()[::-1], requires_grad=True).requires_grad


def test_to_another_device(refdev):
    x = tp.tensor([1.0, 2.0])
    assert tp.tensor(x, device=refdev).device is refdev
    assert tp.tensor(tp.tensor([1.0, 2.0], device=refdev), device="cpu").tolist() == [1.0, 2.0]
    assert tp.tensor(numpy.ones(2), device=refdev).tolist() == [1.0, 1.0]


def test_dtypes(place):
    for kind, name in ((int, "int64"), (float, "float32"), (bool, "bool"), (complex, "complex64"), (tp.int8, "int8")):
        assert tp.tensor([1, 0], dtype=kind, device=place).dtype.name == name
    assert tp.tensor([1.9, -1.9], dtype=tp.int32, device=place).tolist() == [1, -1]
    assert tp.tensor([2, 0], dtype=tp.bool, device=place).tolist() == [True, False]
    assert tp.tensor(numpy.array([1.5, 2.5]), dtype=tp.float16, device=place).tolist() == [1.5, 2.5]


DEEP: list = []
DEEP.append(DEEP)
REFUSED = [  # (data, arguments, error, text)
    ([[1, 2], [3]], {}, ShapeError, "ragged nested list: item [0] has shape [2] but item [1] has shape [1]; all items "
                                    "of a list must be alike"),
    ([[1, 2], 3], {}, ShapeError, "ragged nested list: item [0] has shape [2] but item [1] has shape []"),
    ([1, [2]], {}, ShapeError, "ragged nested list: item [0] has shape [] but item [1] has shape [1]"),
    ([[[1], [2]], [[3], [4, 5]]], {}, ShapeError, "ragged nested list: item [1, 0] has shape [1] but item [1, 1] has "
                                                  "shape [2]"),
    ([[], [1]], {}, ShapeError, "ragged nested list: item [0] has shape [0] but item [1] has shape [1]"),
    ([numpy.arange(2), numpy.arange(3)], {}, ShapeError, "ragged nested list: item [0] has shape [2] but item [1]"),
    (DEEP, {}, ShapeError, "a list is nested more than 64 deep, or contains itself"),
    ("text", {}, ArgumentError, "cannot make a tensor from the string 'text'; encode it first, e.g. "
                                "tp.tensor(list(text.encode()))"),
    (["a"], {}, ArgumentError, "cannot make a tensor from str 'a' at index [0]; expected numbers, nested lists"),
    (None, {}, ArgumentError, "cannot make a tensor from NoneType None; expected numbers"),
    ([[1], [None]], {}, ArgumentError, "cannot make a tensor from NoneType None at index [1, 0]"),
    ({}, {}, ArgumentError, "cannot make a tensor from dict {}"),
    ({1, 2}, {}, ArgumentError, "cannot make a tensor from set {1, 2}"),
    ((i for i in [1]), {}, ArgumentError, "cannot make a tensor from generator"),
    (object, {}, ArgumentError, "cannot make a tensor from type <class 'object'>"),
    (fractions.Fraction(1, 2), {}, ArgumentError, "cannot make a tensor from Fraction Fraction(1, 2)"),
    (decimal.Decimal("1.5"), {}, ArgumentError, "cannot make a tensor from Decimal Decimal('1.5')"),
    (numpy.array(["a"]), {}, ArgumentError, "no tensor dtype for"),
    (numpy.array([1, "a"], object), {}, ArgumentError, "no tensor dtype for"),
    (2 ** 63, {}, ValueRangeError, "a value does not fit into int64: 9223372036854775808 is outside the range of "
                                   "int64"),
    ([300], {"dtype": tp.uint8}, ValueRangeError, "a value does not fit into uint8: 300 is outside the range of uint8"),
    ([1.0], {"dtype": "float32"}, DTypeError, "dtype must be a tensorplay dtype such as tensorplay.float32, got "
                                              "'float32'"),
    ([1.0], {"dtype": numpy.float32}, DTypeError, "dtype must be a tensorplay dtype"),
    ([1], {"requires_grad": True}, DTypeError,
     "only floating point and complex tensors can require gradients, this one "
                                               "is int64; convert it first, e.g. x.float()"),
    ([1.0], {"device": "warp"}, TensorPlayError, "there is no device 'warp'"),
    ([1.0], {"device": 3}, ArgumentError, "a device is given as a string such as 'cpu' or 'cuda:0', or a "
                                          "tensorplay.device; got 3"),
    ([1.0], {"device": "refdev:9"}, TensorPlayError,
     "refdev:9 does not exist: refdev has 2 device(s), numbered from 0"),
    ([1.0], {"device": "cpu:x"}, ArgumentError, "device 'cpu:x': expected 'type' or 'type:index', such as 'cuda:0'"),
]


@pytest.mark.parametrize(("data", "arguments", "error", "text"), REFUSED)
@pytest.mark.usefixtures("refdev")
def test_refused_data(data, arguments, error, text):
    pytest.importorskip("tp_cpu")
    with pytest.raises(error) as caught:
        tp.tensor(data, **arguments)
    assert caught.value.message.startswith(text)


CONSTRUCTED = [  # (arguments of tp.Tensor, dtype, shape, values; None: not initialised)
    ((), "float32", (0,), []), ((2, 3), "float32", (2, 3), None), ((5,), "float32", (5,), None),
    ((0,), "float32", (0,), []),
    ((tp.Size([2, 3]),), "float32", (2, 3), None), (([1, 2],), "float32", (2,), [1.0, 2.0]),
    (((1, 2),), "float32", (2,), [1.0, 2.0]), (([True],), "float32", (1,), [1.0]), ((2.5,), "float32", (), 2.5),
    ((True,), "float32", (), 1.0), (([1j],), "complex64", (1,), [1j]), (([],), "float32", (0,), []),
    (([[1, 2], [3, 4]],), "float32", (2, 2), [[1, 2], [3, 4]]), ((numpy.arange(2),), "int64", (2,), [0, 1]),
    ((b"a",), "uint8", (1,), [97]),
]


@pytest.mark.parametrize(("args", "dtype", "shape", "values"), CONSTRUCTED)
def test_the_constructor(args, dtype, shape, values, place):
    x = tp.Tensor(*args, device=place)
    assert (x.dtype.name, x.shape, x.device) == (dtype, shape, place)
    assert values is None or x.tolist() == values


def test_arguments_of_the_constructor(place):
    assert tp.Tensor([1, 2], dtype=tp.int8, device=place).dtype is tp.int8
    assert tp.Tensor(2, 3, dtype=tp.float64, device=place).dtype is tp.float64
    x = tp.Tensor([[1.0, 2.0]], device=place, requires_grad=True)
    assert (x.requires_grad, x.is_leaf) == (True, True)
    for args, error in (((-1,), ValueRangeError), ((2, "a"), ArgumentError), ((2, 1.5), ArgumentError),
                        (("a",), ArgumentError), ((None,), ArgumentError), (([1, [2]],), ShapeError)):
        with pytest.raises(error):
            tp.Tensor(*args, device=place)


HUGE = [  # refused before anything is allocated
    (lambda place: tp.empty(2 ** 40, 2 ** 10, device=place), MemoryLimitError),
    (lambda place: tp.ones(2 ** 50, device=place), MemoryLimitError),
    (lambda place: tp.Tensor(2 ** 50, device=place), MemoryLimitError),
    (lambda place: tp.arange(2 ** 50, device=place), MemoryLimitError),
    (lambda place: tp.ones(1, device=place).expand(2 ** 50).contiguous(), MemoryLimitError),
    (lambda place: tp.ones(1, device=place).expand(2 ** 50) + 1, MemoryLimitError),
    (lambda place: tp.rand(2 ** 50, device=place), MemoryLimitError),
    (lambda place: tp.empty(2 ** 62, device=place), ValueRangeError),
    (lambda place: tp.ones(2 ** 70, device=place), ValueRangeError),
    (lambda place: tp.zeros(2 ** 31, 2 ** 31, 2 ** 31, device=place), ValueRangeError),
    (lambda place: tp.Tensor(2 ** 63, device=place), ValueRangeError),
    (lambda place: tp.ones(1, device=place).expand(2 ** 40, 2 ** 40), ValueRangeError),
    (lambda place: tp.empty(*[2] * 65, device=place), ValueRangeError),
    (lambda place: tp.empty(2, -1, device=place), ValueRangeError),
]


@pytest.mark.parametrize(("make", "error"), HUGE)
def test_sizes_beyond_memory(make, error, place):
    gc.collect()  # what earlier tests left must not be freed in between
    before = place.driver.memory_stats()["allocated"]
    with pytest.raises(error) as caught:
        make(place)
    assert isinstance(caught.value, TensorPlayError)
    del caught  # its traceback holds the operands
    assert place.driver.memory_stats()["allocated"] == before
    assert tp.ones(2, device=place).tolist() == [1.0, 1.0], "and everything goes on working"


def test_meta_tensors_are_as_large_as_one_likes():
    x = tp.empty(2 ** 40, 2 ** 10, device="meta")
    assert ((x + 1).shape, x.sum().shape, x.nbytes) == ((2 ** 40, 2 ** 10), (), 2 ** 52)


COPIES = [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), lambda x: x.clone(), tp.tensor]


@pytest.mark.parametrize("again", COPIES)
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
@pytest.mark.parametrize("dtype", ["bool", "uint64", "bfloat16", "float32", "complex128"])
def test_copies(again, shape, dtype, place):
    x = tp.tensor(numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape), device=place).to(getattr(tp, dtype))
    y = again(x)
    assert y is not x
    assert (y.tolist(), y.dtype, y.shape, y.device) == (x.tolist(), x.dtype, x.shape, x.device)
    before = x.tolist()
    y.fill_(1)
    assert again is copy.copy or x.tolist() == before


def test_a_deepcopy_of_a_structure_keeps_its_shape(place):
    x = tp.tensor([1.0, 2.0], device=place, requires_grad=True)
    x.grad = tp.tensor([3.0, 4.0], device=place)
    structure = {"a": x, "b": [x, x.detach()[0]]}
    made = copy.deepcopy(structure)
    assert made["a"] is made["b"][0]
    assert (made["a"].requires_grad, made["a"].grad.tolist()) == (True, [3.0, 4.0])
    with tp.no_grad():
        made["a"][0] = 9
    assert (made["b"][1].item(), x.tolist()) == (9.0, [1.0, 2.0])
