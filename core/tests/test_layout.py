"""Layouts: interning, contiguity, broadcasting; equality of layouts that are distinct objects."""
from __future__ import annotations

import itertools
import threading

import numpy
import pytest

import tensorplay as tp
from tensorplay import _layout
from tensorplay._errors import ArgumentError, DimError, ShapeError, ValueRangeError
from tensorplay._layout import (
    Layout,
    as_shape,
    broadcast_shapes,
    broadcast_strides,
    contiguous_strides,
    is_contiguous,
    layout,
    normalize_dim,
    normalize_dims,
)

META = tp.device("meta")
SHAPES = [(), (0,), (1,), (5,), (2, 3), (3, 0, 2), (1, 4, 1), (2, 3, 4), (0, 0), (1, 1)]


@pytest.mark.parametrize("shape", SHAPES)
def test_equal_layouts_are_one_object(shape):
    made = layout(shape, tp.float32, META)
    assert made is layout(tuple(shape), tp.float32, META)
    assert made is layout(shape, tp.float32, META, contiguous_strides(shape))
    assert made is not layout(shape, tp.float64, META)
    assert (made.shape, made.ndim, made.contiguous) == (shape, len(shape), True)
    assert made.numel == numpy.empty(shape).size
    assert made.nbytes == made.numel * 4


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if 0 not in shape])
def test_contiguous_strides_are_numpys(shape):
    array = numpy.empty(shape, "float32")
    assert contiguous_strides(shape) == tuple([stride // 4 for stride in array.strides])


def test_contiguity_against_numpy():
    """NumPy's flag for every permutation and step of some shapes."""
    base = numpy.arange(2 * 1 * 3 * 4, dtype="float32").reshape(2, 1, 3, 4)
    for order in itertools.permutations(range(4)):
        for steps in itertools.product((1, 2), repeat=4):
            array = base.transpose(order)[tuple([slice(None, None, step) for step in steps])]
            strides = tuple([stride // 4 for stride in array.strides])
            assert is_contiguous(array.shape, strides) == array.flags.c_contiguous, (array.shape, strides)
            assert layout(array.shape, tp.float32, META, strides).contiguous == array.flags.c_contiguous


def test_the_table_is_bounded_and_old_layouts_go_on_working(monkeypatch):
    monkeypatch.setattr(_layout, "_LIMIT", 50)
    kept = layout((7, 9), tp.float32, META)
    for i in range(200):
        layout((i, 1, 2), tp.float32, META)
        assert len(_layout._interned) <= 60
    fresh = layout((7, 9), tp.float32, META)
    assert fresh is not kept
    assert fresh.same(kept)
    assert kept.same(fresh)
    assert layout((7, 9), tp.float32, META) is fresh


DEVICES = ["meta", "cpu", "refdev"]


@pytest.mark.parametrize("device", DEVICES)
def test_equal_but_distinct_layouts_compute_alike(device):
    """Identity is only the fast path: an operator, a view, an in-place write and a gradient on both."""
    if device == "cpu":
        pytest.importorskip("tp_cpu")
    place = tp.device(device)
    first, second = tp.ones(3, 4, device=place), tp.ones(3, 4, device=place)
    old = second.layout
    second.layout = Layout(old.shape, old.strides, old.dtype, old.device, old.contiguous, old.numel)
    assert second.layout is not first.layout
    total = first + second
    assert (total.shape, total.dtype, total.device) == ((3, 4), tp.float32, place)
    assert (second + first).shape == (3, 4)
    view = second[1]
    second.add_(first)
    assert second._version > 0
    x = second.clone().requires_grad_()
    x.layout = Layout(old.shape, old.strides, old.dtype, old.device, old.contiguous, old.numel)
    (x * first).sum().backward()
    assert x.grad.shape == (3, 4)
    if device != "meta":
        assert total.tolist() == [[2.0] * 4] * 3
        assert view.tolist() == [2.0] * 4
        assert x.grad.tolist() == [[1.0] * 4] * 3


def test_threads_get_one_layout():
    made, start = [], threading.Barrier(4)

    def work():
        start.wait()
        made.append([layout((i, 11), tp.int32, META, (1, i + 1)) for i in range(300)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all([a is b for others in made[1:] for a, b in zip(made[0], others)])


BAD = [  # (shape, error, text)
    ((2, -1), ValueRangeError, r"negative size -1 in shape \[2, -1\]"),
    ((90001.0,), ShapeError, "a size must be an int, got 90001.0"),  # 2.0 finds the interned layout of 2
    (("3",), ShapeError, "a size must be an int, got '3'"),
    ((2 ** 62, 2), ValueRangeError, "at most 4611686018427387904 bytes"),
    ((1,) * 65, ValueRangeError, "65 dimensions; at most .* and 64 dimensions"),
]


@pytest.mark.parametrize(("shape", "error", "text"), BAD)
def test_bad_shapes_are_refused(shape, error, text):
    with pytest.raises(error, match=text):
        layout(shape, tp.float32, META)


def test_repr_and_derived_layouts():
    x = layout((2, 3), tp.float32, META, (1, 2))
    assert repr(x) == "Layout([2, 3], float32, meta, strides=(1, 2))"
    assert repr(x.dense()) == "Layout([2, 3], float32, meta)"
    assert x.dense() is x.with_dtype(tp.float32) is layout((2, 3), tp.float32, META)
    assert x.with_shape((6,)) is layout((6,), tp.float32, META)
    assert x.with_view((3,), (2,)).strides == (2,)
    assert not x.same(x.dense())
    packed = b"".join([n.to_bytes(8, "little") for n in (2, 3, 1, 2)])
    assert (x.packed, x.code) == (packed, tp.float32.code)


SIZES = [(), (1,), (3,), (0,), (2, 3), (1, 3), (2, 1), (4, 1, 3), (4, 2, 1), (0, 3), (1, 0), (5,), (1, 1, 1)]


@pytest.mark.parametrize("first", SIZES)
def test_broadcasting_against_numpy(first):
    for second in SIZES:
        try:
            expected = numpy.broadcast_shapes(first, second)
        except ValueError:
            with pytest.raises(ShapeError, match="do not broadcast"):
                broadcast_shapes(first, second)
            continue
        assert broadcast_shapes(first, second) == expected
        array = numpy.broadcast_to(numpy.empty(first, "float32"), expected)
        if 0 not in expected:
            found = broadcast_strides(first, contiguous_strides(first), expected)
            strides = [stride // 4 for stride in array.strides]
            assert [s for s, n in zip(found, expected) if n > 1] == [s for s, n in zip(strides, expected) if n > 1]


def test_broadcasting_several_and_its_error():
    assert broadcast_shapes() == ()
    assert broadcast_shapes((3,)) == (3,)
    assert broadcast_shapes((2, 1), (1, 3), (4, 1, 1)) == (4, 2, 3)
    with pytest.raises(ShapeError) as caught:
        broadcast_shapes((2, 3), (4, 3))
    assert caught.value.message == ("shapes [2, 3] and [4, 3] do not broadcast: sizes 2 and 4 differ at dimension 0 "
                                    "and neither is 1")


DIMS = [(0, 3, 0), (2, 3, 2), (-1, 3, 2), (-3, 3, 0), (0, 0, 0), (-1, 0, 0), (True, 3, 1), (numpy.int64(-2), 3, 1)]


@pytest.mark.parametrize(("dim", "ndim", "expected"), DIMS)
def test_normalize_dim(dim, ndim, expected):
    assert normalize_dim(dim, ndim) == expected


@pytest.mark.parametrize(("dim", "ndim"), [(3, 3), (-4, 3), (1, 0), (-2, 0)])
def test_dims_out_of_range(dim, ndim):
    bound = ndim or 1
    with pytest.raises(DimError) as caught:
        normalize_dim(dim, ndim, "sum")
    assert caught.value.message == (f"sum: dim {dim} is out of range for a tensor with {ndim} dimension(s): expected "
                                    f"{-bound} to {bound - 1}")
    assert isinstance(caught.value, IndexError)


@pytest.mark.parametrize("dim", [1.0, "0", None, [0]])
def test_dims_must_be_ints(dim):
    with pytest.raises(ArgumentError, match="must be an int"):
        normalize_dim(dim, 3)


@pytest.mark.parametrize(("dims", "ndim", "expected"), [
    (None, 3, (0, 1, 2)), (1, 3, (1,)), ((0, -1), 3, (0, 2)), ([2, 0], 3, (2, 0)), ((), 3, ()), (None, 0, ())])
def test_normalize_dims(dims, ndim, expected):
    assert normalize_dims(dims, ndim) == expected


def test_a_dim_must_not_appear_twice():
    with pytest.raises(DimError, match=r"amax: a dimension appears twice in dim=\(0, -2\)"):
        normalize_dims((0, -2), 2, "amax")


SPELLINGS = [(3, (3,)), ((2, 3), (2, 3)), ([2, 3], (2, 3)), (((2, 3),), (2, 3)), (([],), ()), ((), ()),
             (numpy.int32(4), (4,)), ((numpy.int64(2), 1), (2, 1)), (tp.Size([2, 3]), (2, 3))]


@pytest.mark.parametrize(("given", "expected"), SPELLINGS)
def test_shapes_in_every_spelling(given, expected):
    shape = as_shape(given)
    assert shape == expected
    assert all([n.__class__ is int for n in shape])


@pytest.mark.parametrize("given", [2.5, "23", (2, "3"), None, ((2, 3), 4), (2, None)])
def test_not_a_shape(given):
    with pytest.raises(ArgumentError, match="size must be an int, got"):
        as_shape(given)


def test_size_is_a_tuple_that_answers_numel():
    size = tp.Size([2, 3])
    assert repr(size) == "tensorplay.Size([2, 3])"
    assert (size.numel(), size == (2, 3), size[1], size[-1:], hash(size)) == (6, True, 3, tp.Size([3]), hash((2, 3)))
    assert type(size[:1]) is type(size + (4,)) is tp.Size
    assert tp.Size([]).numel() == 1
