"""x[index] and x[index] = value on two devices, with and without gradients, against NumPy."""
from __future__ import annotations

import numpy
import pytest

import tensorplay as tp
from tensorplay._errors import ArgumentError, AutogradError, IndexRangeError, ShapeError, ValueRangeError

ROWS = numpy.array([True, False, True])
MASK = numpy.arange(12).reshape(3, 4) % 3 == 1
PLANE = numpy.arange(8).reshape(4, 2) % 3 > 0
EVERY = slice(None)

BASIC = [  # indices of an array of shape (3, 4, 2) that give views; the same for NumPy and here
    0, -1, (1, 2), (1, -2, 1), (0, 0, 0), EVERY, slice(1, None), slice(None, -1), slice(0, 0), slice(5, 9),
    slice(-2, 100), slice(None, None, 2), slice(None, None, -1), slice(2, 0, -1), slice(None, None, -2),
    slice(0, 3, -1),
    slice(-100, 100, 3), (EVERY, 1), (EVERY, slice(1, 3)), (EVERY, slice(None, None, -1), 1), (1, EVERY, slice(0, 1)),
    None, (None, 0), (0, None), (EVERY, None, 1), (None, EVERY, None), (None, None), ..., (..., 0), (0, ...),
    (0, ..., 1), (..., 1, EVERY), (..., None), (None, ...), (..., slice(None, None, -1)), (0, 1, 1, ...), (...,), (),
    numpy.int64(1), (numpy.int32(-1), slice(numpy.int64(1), None)), (EVERY, EVERY, EVERY), (0, ..., None, 1),
    (slice(2, 3), slice(3, 4), slice(1, 2)), (slice(0, 2), None, slice(1, None, 2), ..., None, slice(None, None, -1)),
]

ADVANCED = [  # indices of an array of shape (3, 4, 2) that gather
    [0], [0, 2], [2, 0, 1], [-1, 0], [[0, 1], [2, 0]], ([0, 2], [1, 3]), ([0, 2], [1, 3], [0, 1]), (EVERY, [1, 3]),
    (EVERY, EVERY, [1, 0]), ([0, 2], EVERY, [1, 0]), ([0, 2], EVERY, 1), (1, [0, 3]),
    (EVERY, 1, [0, 1]), (EVERY, [0, 3], 1), ([[0], [2]], [0, 3]), ([[0], [2]], EVERY, [[0, 1]]), (..., [1]),
    ([0, 2], ...), ([0, 1], None), (None, [0, 1]), (None, EVERY, [0, 3]), ([0, 2], None, EVERY, [0, 1]),
    (slice(0, 2), [0, 3]), (slice(None, None, -1), [0, 3]), ([0, 1], slice(None, None, -1)),
    (slice(1, None), [1, 2], slice(0, 1)), numpy.array([2, 1]), (numpy.array([[0, 1]]), slice(2)), [],
    (EVERY, []), numpy.array(1), (EVERY, numpy.array(2)), (numpy.array(1), [0, 1]),
    ROWS, MASK, PLANE[None].repeat(3, 0), (EVERY, PLANE), (ROWS, [1, 3]), (ROWS, 1), (ROWS, EVERY, [1]),
    (MASK, 1), (MASK, [0]), (0, PLANE), (0, [True, False, True, False]), ([True, False, True],), (..., [True, False]),
    numpy.zeros(3, bool), numpy.zeros((3, 4), bool), ([False, False, False], EVERY), (EVERY, PLANE[:, 0], [1]),
    True, False, (True, 0), (EVERY, True), (..., True), (0, True, ...), (0, False),
]
IDS = [str(index).replace("\n", "") for index in BASIC + ADVANCED]


def ours(index, place):
    """The index with tensors in place of arrays."""
    if isinstance(index, tuple):
        return tuple([ours(item, place) for item in index])
    return tp.tensor(index, device=place) if isinstance(index, numpy.ndarray) else index


def array():
    return numpy.arange(24, dtype="float32").reshape(3, 4, 2)


@pytest.mark.parametrize("index", BASIC + ADVANCED, ids=IDS)
def test_get_against_numpy(index, place):
    expected = array()[index]
    x = tp.tensor(array(), device=place)
    found = x[ours(index, place)]
    assert found.shape == expected.shape
    assert found.tolist() == expected.tolist()
    assert (found.dtype, found.device) == (tp.float32, place)


def test_an_int_beside_index_tensors_selects_first(place):
    """As in PyTorch; NumPy takes the int as one more index array and moves the result's first dimension."""
    x = tp.tensor(array(), device=place)
    assert x[1, :, [0, 1]].tolist() == array()[1][:, [0, 1]].tolist()
    x[2, :, [1]] = 0
    assert x[2].tolist() == [[16, 0], [18, 0], [20, 0], [22, 0]]


@pytest.mark.parametrize("index", BASIC, ids=IDS[:len(BASIC)])
def test_basic_indices_give_views(index, place):
    x = tp.tensor(array(), device=place)
    assert x[index].untyped_storage() is x.untyped_storage()
    y = x.transpose(0, 2)[..., ::2]  # from a tensor that is a view itself
    reference = array().swapaxes(0, 2)[..., ::2]
    try:
        expected = reference[index]
    except IndexError:
        with pytest.raises(IndexError):
            y[index]
    else:
        assert y[index].tolist() == expected.tolist()


@pytest.mark.parametrize("index", ADVANCED, ids=IDS[len(BASIC):])
def test_advanced_indices_of_views(index, place):
    x = tp.tensor(array().swapaxes(0, 2).copy(), device=place).transpose(0, 2)
    assert not x.is_contiguous()
    assert x[ours(index, place)].tolist() == array()[index].tolist()


@pytest.mark.parametrize("index", BASIC + ADVANCED, ids=IDS)
def test_gradient_of_get(index, place):
    expected = numpy.zeros((3, 4, 2), "float32")
    weight = numpy.arange(1, array()[index].size + 1, dtype="float32").reshape(array()[index].shape)
    numpy.add.at(expected, index, weight)
    x = tp.tensor(array(), device=place, requires_grad=True)
    found = x[ours(index, place)]
    assert found.tolist() == array()[index].tolist()
    (found * tp.tensor(weight, device=place)).sum().backward()
    assert x.grad.tolist() == expected.tolist()


@pytest.mark.parametrize("index", BASIC + ADVANCED, ids=IDS)
def test_set_a_number_and_a_tensor(index, place):
    expected = array()
    expected[index] = -1
    x = tp.tensor(array(), device=place)
    x[ours(index, place)] = -1
    assert x.tolist() == expected.tolist()
    value = -numpy.arange(1, array()[index].size + 1, dtype="float32").reshape(array()[index].shape)
    expected[index] = value
    version = x._version
    x[ours(index, place)] = tp.tensor(value, device=place)
    assert x.tolist() == expected.tolist()
    assert x._version > version


@pytest.mark.parametrize("index", BASIC + ADVANCED, ids=IDS)
def test_gradient_of_set(index, place):
    shape = array()[index].shape
    value = numpy.full(shape, 2, "float32")
    weight = numpy.arange(1, 25, dtype="float32").reshape(3, 4, 2)
    kept, expected = weight.copy(), array()
    kept[index], expected[index] = 0, value
    x = tp.tensor(array(), device=place, requires_grad=True)
    v = tp.tensor(value, device=place, requires_grad=True)
    y = x * 1
    y[ours(index, place)] = v
    assert y.tolist() == expected.tolist()
    (y * tp.tensor(weight, device=place)).sum().backward()
    overwritten = not kept.any() and array()[index].size == 24  # then nothing of x is left to have a gradient
    assert x.grad is None if overwritten and x.grad is None else x.grad.tolist() == kept.tolist()
    assert v.grad.tolist() == weight[index].tolist()


VALUES = [  # (index, value): broadcast, cast and converted values
    ((0,), [1.0, 2.0]), ((EVERY, 1), 7), ((EVERY, 1), [[5.0, 6.0]]), (EVERY, [[[1.0, 2.0]]]), (1, numpy.float32(3)),
    ((EVERY, [0, 2]), [1.0, 2.0]), ([0, 2], 4), ([0, 2], [[1.0, 2.0]]), (MASK, 9), (MASK, [1.0, 2.0]), (ROWS, -0.5),
    ((0, 0, 0), 11), ((0, 0, 0), True), (slice(0, 0), 5), (..., 1.5), (numpy.zeros((3, 4), bool), 3), ([], 1.0),
    ((slice(None, None, -1), 0), numpy.arange(6.0).reshape(3, 2)), ((1, slice(1, 3)), numpy.ones((1, 1, 2))),
]


@pytest.mark.parametrize(("index", "value"), VALUES)
def test_values_that_broadcast(index, value, place):
    expected = array()
    expected[index] = numpy.asarray(value)
    x = tp.tensor(array(), device=place)
    x[ours(index, place)] = value
    assert x.tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "uint64", "float16", "bfloat16", "float64",
                                   "complex64"])
def test_every_dtype_is_indexed_and_written(dtype, place):
    kind = getattr(tp, dtype)
    x = tp.arange(6, device=place).reshape(2, 3).to(kind)
    values = [[kind_of(dtype, 3 * i + j) for j in range(3)] for i in range(2)]
    assert x[1, ::2].tolist() == [values[1][0], values[1][2]]
    assert x[:, [2, 0]].tolist() == [[row[2], row[0]] for row in values]
    x[0, 1:] = 1
    x[[1], [0]] = tp.tensor([0], device=place)
    assert x.tolist() == [[values[0][0], kind_of(dtype, 1), kind_of(dtype, 1)], [kind_of(dtype, 0), *values[1][1:]]]


def kind_of(dtype, value):
    return bool(value) if dtype == "bool" else complex(value) if dtype == "complex64" else value


@pytest.mark.parametrize("dtype", [tp.int8, tp.int16, tp.int32, tp.int64, tp.uint8])
def test_index_tensors_of_every_integer_dtype(dtype, place):
    x = tp.tensor(array(), device=place)
    assert x[tp.tensor([2, 0], dtype=dtype, device=place)].tolist() == array()[[2, 0]].tolist()


def test_0d_tensors_are_ints(place):
    x = tp.tensor(array(), device=place)
    at = tp.tensor(2, device=place)
    assert x[at].shape == (4, 2)
    assert x[at].tolist() == array()[2].tolist()
    assert x[at, 1:, at - 1].tolist() == array()[2, 1:, 1].tolist()
    assert x[tp.tensor(True, device=place)].shape == (1, 3, 4, 2)


def test_arrays_and_scalars_of_numpy_are_indices(place):
    x = tp.tensor(array(), device=place)
    assert x[numpy.array([2, 0])].tolist() == array()[[2, 0]].tolist()
    assert x[MASK].tolist() == array()[MASK].tolist()
    assert x[ROWS, numpy.array([1, 3])].tolist() == array()[ROWS, [1, 3]].tolist()
    assert x[numpy.int64(1), numpy.array([], "int64")].shape == (0, 2)
    x[numpy.array([0, 2]), 1] = numpy.zeros(2, "float32")
    assert x[:, 1].tolist() == [[0, 0], [10, 11], [0, 0]]


def test_host_indices_go_to_the_device(refdev):
    x = tp.tensor(array(), device=refdev)
    assert x[tp.tensor([1, 0])].tolist() == array()[[1, 0]].tolist()
    assert x[tp.tensor(ROWS)].tolist() == array()[ROWS].tolist()


def test_empty_and_0d_tensors(place):
    empty = tp.zeros(0, 3, device=place)
    assert empty[:, 1].shape == (0,)
    assert empty[[]].shape == (0, 3)
    assert empty[tp.zeros(0, 3, dtype=tp.bool, device=place)].shape == (0,)
    x = tp.tensor(5.0, device=place)
    assert (x[()].item(), x[...].item(), x[None].tolist(), x[True].tolist(), x[False].tolist()) == (5, 5, [5], [5], [])
    x[...] = 6
    assert x.item() == 6
    x[()] = 7
    assert x.item() == 7
    with pytest.raises(IndexRangeError, match=r"0-d tensor cannot be indexed; x\.item"):
        x[0]


GET_ERRORS = [  # (index of a tensor of shape [3, 4], error, text)
    (3, IndexRangeError, "index 3 is out of range for dimension 0 of size 3 (shape [3, 4])"),
    (-4, IndexRangeError, "index -4 is out of range for dimension 0 of size 3 (shape [3, 4])"),
    ((0, 4), IndexRangeError, "index 4 is out of range for dimension 0 of size 4 (shape [4])"),
    ((0, 0, 0), IndexRangeError, "too many indices: 3 for a tensor with 2 dimension(s) of shape [3, 4]"),
    ((..., ...), ArgumentError, "an index can contain only one '...'"),
    (slice(None, None, 0), ValueRangeError, "slice step cannot be zero"),
    (slice(0.5, None), ArgumentError, "slice bounds must be ints or None, got 0.5"),
    (slice("a"), ArgumentError, "slice bounds must be ints or None, got 'a'"),
    ("row", ArgumentError, "cannot index with 'row'; use ints, slices, None, '...', or integer or boolean"),
    (1.0, ArgumentError, "cannot index with 1.0"),
    (1j, ArgumentError, "cannot index with 1j"),
    ({}, ArgumentError, "cannot index with {}"),
    (object, ArgumentError, "cannot index with <class 'object'>"),
    ([0.5, 1.5], ArgumentError, "index tensors must be integer or bool, got float32; convert with .long()"),
    ([0, 3], IndexRangeError, "index 3 is out of range for dimension 0 of size 3"),
    ([-4], IndexRangeError, "index -4 is out of range for dimension 0 of size 3"),
    ((EVERY, [0, 9]), IndexRangeError, "index 9 is out of range for dimension"),
    (([0, 1], [0, 1, 2]), ShapeError, "index tensors of shapes [2], [3] do not broadcast"),
    ([True, False], IndexRangeError, "a mask of shape [2] cannot index dimensions of sizes [3] (shape [3, 4])"),
    ((EVERY, [True, False, True]), IndexRangeError, "a mask of shape [3] cannot index dimensions of sizes [4]"),
    (numpy.ones((4, 3), bool), IndexRangeError, "a mask of shape [4, 3] cannot index dimensions of sizes [3, 4]"),
    (numpy.ones((3, 4, 2), bool), IndexRangeError, "too many indices: 3 for a tensor with 2 dimension(s)"),
]


@pytest.mark.parametrize(("index", "error", "text"), GET_ERRORS, ids=[text[:30] for _, _, text in GET_ERRORS])
def test_errors_of_get(index, error, text, place):
    x = tp.zeros(3, 4, device=place)
    with pytest.raises(error) as caught:
        x[ours(index, place)]
    assert text in caught.value.message
    with pytest.raises(error):
        x[ours(index, place)] = 1
    assert x.sum().item() == 0


SET_ERRORS = [  # (index, value, error, text)
    (0, [1.0, 2.0, 3.0], ShapeError, "cannot write a value of shape [3] to x[...] of shape [4]"),
    (EVERY, [[1.0]] * 4, ShapeError, "cannot write a value of shape [4, 1] to x[...] of shape [3, 4]"),
    ((0, 0), [1.0, 2.0], ShapeError, "cannot write a value of shape [2] to x[...] of shape []"),
    ([0, 1], [[1.0] * 4] * 3, ShapeError, "cannot write a value of shape [3, 4] to x[...]: "),
    (0, "text", ArgumentError, "cannot make a tensor from the string 'text'"),
    (0, None, ArgumentError, "cannot make a tensor from NoneType None"),
    (0, [[1.0, 2.0], [3.0]], ShapeError, "ragged nested list"),
]


@pytest.mark.parametrize(("index", "value", "error", "text"), SET_ERRORS)
def test_errors_of_set(index, value, error, text, place):
    x = tp.zeros(3, 4, device=place)
    with pytest.raises(error) as caught:
        x[index] = value
    assert caught.value.message.startswith(text)
    assert x.sum().item() == 0


def test_a_leaf_is_not_written(place):
    x = tp.zeros(3, device=place, requires_grad=True)
    for index in (0, [0], slice(1), tp.tensor([True, False, True], device=place)):
        with pytest.raises(AutogradError, match="leaf"):
            x[index] = 1.0
    with tp.no_grad():
        x[0] = 1.0
        x[[2]] = 2.0
    assert x.tolist() == [1, 0, 2]


def test_overlapping_source_and_target(place):
    expected = numpy.arange(6.0)
    x = tp.tensor(expected, device=place)
    expected[1:] = expected[:-1].copy()
    x[1:] = x[:-1]
    assert x.tolist() == expected.tolist()
    x[::-1] = x
    assert x.tolist() == expected[::-1].tolist()
    x[[0, 1]] = x[[1, 0]]
    assert x.tolist()[:2] == [expected[-2], expected[-1]]


def test_augmented_assignment(place):
    x = tp.tensor(array(), device=place)
    expected = array()
    x[0, 1] += 5
    expected[0, 1] += 5
    x[:, [0, 2]] *= 2
    expected[:, [0, 2]] *= 2
    x[tp.tensor(MASK, device=place)] -= 1
    expected[MASK] -= 1
    assert x.tolist() == expected.tolist()


def test_iteration_and_unpacking(place):
    x = tp.tensor(array(), device=place)
    assert [row.tolist() for row in x] == array().tolist()
    _, second, third = x
    assert second.tolist() == array()[1].tolist()
    assert third[0, 0].item() == array()[2, 0, 0]
