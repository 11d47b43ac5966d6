"""Views as metadata: what each function of `_views` says about shape, strides and offset, against NumPy's views."""
from __future__ import annotations

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided, sliding_window_view

import tensorplay as tp
from tensorplay import _views
from tensorplay._errors import ArgumentError, DimError, IndexRangeError, ShapeError, ValueRangeError
from tensorplay._layout import layout
from tensorplay._tensor import make_tensor

META = tp.device("meta")
MEMORY = numpy.arange(1000, dtype="int64")


def source(shape, form="contiguous"):
    """An array over MEMORY in some layout, and the same layout as core sees it."""
    count = int(numpy.prod(shape))
    array = MEMORY[100:100 + count].reshape(shape)
    if form == "transposed":
        array = array.T
    elif form == "stepped" and array.ndim:
        array = MEMORY[100:100 + 2 * count].reshape(*shape[:-1], shape[-1] * 2)[..., ::2]
    elif form == "reversed" and array.ndim:
        array = array[::-1]
    elif form == "repeated":
        array = numpy.broadcast_to(MEMORY[100:100 + count // shape[0]].reshape(1, *shape[1:]), shape)
    strides = tuple([stride // 8 for stride in array.strides])
    return array, layout(array.shape, tp.int64, META, strides)


def shown(array, result):
    """What the resulting layout reads when it starts at the array's first element."""
    made, moved = result
    start = (array.__array_interface__["data"][0] - MEMORY.__array_interface__["data"][0]) // 8 + moved
    if made.numel == 0:
        return numpy.empty(made.shape, "int64")
    lowest = start + sum([min((n - 1) * s, 0) for n, s in zip(made.shape, made.strides)])
    highest = start + sum([max((n - 1) * s, 0) for n, s in zip(made.shape, made.strides)])
    assert 0 <= lowest <= highest < 1000, "the view leaves the memory"
    return as_strided(MEMORY[start:], made.shape, [stride * 8 for stride in made.strides])


def check(array, result, expected):
    made, _ = result
    found = shown(array, result)
    assert made.shape == expected.shape
    assert numpy.array_equal(found, expected)
    for size, ours, theirs in zip(made.shape, made.strides, expected.strides):
        assert size < 2 or made.numel == 0 or ours * 8 == theirs


CASES = [  # (function, arguments, NumPy)
    ("permute", ((2, 0, 1),), lambda a: a.transpose(2, 0, 1)),
    ("permute", ([-1, 0, 1],), lambda a: a.transpose(2, 0, 1)),
    ("permute", ((0, 1, 2),), lambda a: a),
    ("transpose", (0, 2), lambda a: a.swapaxes(0, 2)),
    ("transpose", (-1, -2), lambda a: a.swapaxes(1, 2)),
    ("transpose", (1, 1), lambda a: a),
    ("unsqueeze", (0,), lambda a: a[None]),
    ("unsqueeze", (3,), lambda a: a[..., None]),
    ("unsqueeze", (-1,), lambda a: a[..., None]),
    ("unsqueeze", (-4,), lambda a: a[None]),
    ("unsqueeze", (2,), lambda a: a[:, :, None]),
    ("select", (0, 1), lambda a: a[1]),
    ("select", (1, -1), lambda a: a[:, -1]),
    ("select", (-1, 0), lambda a: a[..., 0]),
    ("slice_dim", (0, 1, None, 1), lambda a: a[1:]),
    ("slice_dim", (2, None, None, 2), lambda a: a[..., ::2]),
    ("slice_dim", (1, -2, -1, 1), lambda a: a[:, -2:-1]),
    ("slice_dim", (1, None, None, -1), lambda a: a[:, ::-1]),
    ("slice_dim", (2, 3, 0, -2), lambda a: a[..., 3:0:-2]),
    ("slice_dim", (0, 5, 9, 1), lambda a: a[5:9]),
    ("slice_dim", (0, -100, 100, 1), lambda a: a[-100:100]),
    ("slice_dim", (1, 2, 1, 1), lambda a: a[:, 2:1]),
    ("slice_dim", (), lambda a: a),
    ("diagonal", (), lambda a: a.diagonal()),
    ("diagonal", (1, 1, 2), lambda a: a.diagonal(1, 1, 2)),
    ("diagonal", (-1, 2, 0), lambda a: a.diagonal(-1, 2, 0)),
    ("diagonal", (2, -1, 0), lambda a: a.diagonal(2, 2, 0)),
    ("diagonal", (9,), lambda a: a.diagonal(9)),
    ("diagonal", (-9,), lambda a: a.diagonal(-9)),
    ("expand", ((5, -1, -1, -1),), lambda a: numpy.broadcast_to(a, (5, *a.shape))),
    ("expand", ((-1, -1, -1),), lambda a: a),
    ("unfold", (0, 2, 1), lambda a: sliding_window_view(a, 2, 0)),
    ("unfold", (2, 2, 2), lambda a: sliding_window_view(a, 2, 2)[:, :, ::2]),
    ("unfold", (-2, 1, 3), lambda a: sliding_window_view(a, 1, 1)[:, ::3]),
    ("squeeze", (), lambda a: a.squeeze()),
]


@pytest.mark.parametrize("form", ["contiguous", "transposed", "stepped", "reversed", "repeated"])
@pytest.mark.parametrize(("name", "args", "reference"), CASES)
def test_views_against_numpy(name, args, reference, form):
    for shape in [(3, 4, 5), (2, 3, 4), (4, 4, 4)]:
        array, from_layout = source(shape, form)
        check(array, getattr(_views, name)(from_layout, *args), reference(array))


SINGLE = [  # (shape, function, arguments, NumPy)
    ((1, 3, 1), "squeeze", (), lambda a: a.squeeze()),
    ((1, 3, 1), "squeeze", (0,), lambda a: a[0]),
    ((1, 3, 1), "squeeze", (1,), lambda a: a),
    ((1, 3, 1), "squeeze", (-1,), lambda a: a[..., 0]),
    ((1, 3, 1), "squeeze", ((0, 2),), lambda a: a.squeeze()),
    ((1, 3, 1), "squeeze", ((),), lambda a: a),
    ((), "squeeze", (), lambda a: a),
    ((), "squeeze", (0,), lambda a: a),
    ((), "unsqueeze", (0,), lambda a: a[None]),
    ((), "transpose", (0, -1), lambda a: a),
    ((), "permute", ((),), lambda a: a),
    ((), "expand", ((2, 3),), lambda a: numpy.broadcast_to(a, (2, 3))),
    ((), "unfold", (0, 1, 1), lambda a: a.reshape(1)),
    ((1, 4), "expand", ((3, 4),), lambda a: numpy.broadcast_to(a, (3, 4))),
    ((1, 1), "expand", ((0, 3),), lambda a: numpy.broadcast_to(a, (0, 3))),
    ((4, 1), "expand", ((2, -1, 3),), lambda a: numpy.broadcast_to(a, (2, 4, 3))),
    ((0, 3), "slice_dim", (0, 0, 5, 1), lambda a: a[0:5]),
    ((0, 3), "slice_dim", (1, None, None, -1), lambda a: a[:, ::-1]),
    ((2, 0), "transpose", (0, 1), lambda a: a.T),
    ((3, 0), "diagonal", (), lambda a: a.diagonal()),
    ((5,), "unfold", (0, 5, 1), lambda a: sliding_window_view(a, 5)),
    ((5,), "unfold", (0, 0, 2), lambda a: numpy.empty((3, 0), "int64")),
]


@pytest.mark.parametrize(("shape", "name", "args", "reference"), SINGLE)
def test_small_and_empty_shapes(shape, name, args, reference):
    array, from_layout = source(shape)
    check(array, getattr(_views, name)(from_layout, *args), reference(array))


def test_as_strided_is_relative_to_the_first_element():
    array, from_layout = source((4, 6))
    made = _views.as_strided(from_layout, (3, 2), (1, 6), 2)
    assert made[1] == 2
    assert numpy.array_equal(shown(array, made), as_strided(array.ravel()[2:], (3, 2), (8, 48)))


def copied_free(array, shape):
    """The array in another shape if NumPy can do it without a copy, else None."""
    result = array.view()
    try:
        result.shape = shape
    except AttributeError:
        return None
    return result


@st.composite
def reshapes(draw):
    """A view of MEMORY and a shape with as many elements."""
    shape = draw(st.lists(st.integers(1, 4), max_size=4))
    array = MEMORY[300:300 + 2 * int(numpy.prod(shape))].reshape(*shape, 2)[..., 0] if draw(st.booleans()) else \
        MEMORY[300:300 + int(numpy.prod(shape))].reshape(shape)
    array = array.transpose(draw(st.permutations(range(len(shape)))))
    for dim in range(len(shape)):
        step = draw(st.sampled_from([1, 1, 1, 2, -1]))
        array = array[(slice(None),) * dim + (slice(None, None, step),)]
    if array.ndim and draw(st.booleans()):
        array = numpy.broadcast_to(array[..., :1], (*array.shape[:-1], draw(st.integers(1, 3))))
    factors = [n for size in array.shape for n in ([2, 2] if size == 4 else [size])]
    new = []
    for n in draw(st.permutations(factors)) if draw(st.booleans()) else factors:
        if new and draw(st.booleans()):
            new[-1] *= n
        else:
            new.append(n)
    if draw(st.booleans()):
        new.insert(draw(st.integers(0, len(new))), 1)
    return array, tuple(new)


@settings(max_examples=600, deadline=None)
@given(reshapes())
def test_reshape_without_copy_against_numpy(case):
    array, new = case
    strides = tuple([stride // 8 for stride in array.strides])
    expected = copied_free(array, new)
    found = _views.view_strides(array.shape, strides, new)
    result = _views.reshape(layout(array.shape, tp.int64, META, strides), new)
    if expected is None:
        assert found is None
        assert result is None
    else:
        assert found is not None
        assert result is not None
        check(array, result, expected)
        assert len(found) == len(new)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.data())
def test_empty_tensors_take_every_empty_shape(shape, data):
    shape[data.draw(st.integers(0, len(shape) - 1))] = 0
    new = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    new[0] = 0
    from_layout = layout(tuple(shape), tp.int64, META, tuple(range(1, len(shape) + 1)))
    made, moved = _views.view(from_layout, tuple(new))
    assert (made.shape, made.numel, moved, len(made.strides)) == (tuple(new), 0, 0, len(new))


SIZES = [((2, -1), 6, (2, 3)), ((-1,), 6, (6,)), ((6,), 6, (6,)), ((-1, 6), 6, (1, 6)), ((), 1, ()), ((-1,), 0, (0,)),
         ((3, -1), 0, (3, 0)), ((0, 2), 0, (0, 2))]


@pytest.mark.parametrize(("shape", "numel", "expected"), SIZES)
def test_infer_size(shape, numel, expected):
    assert _views.infer_size(shape, numel) == expected


ERRORS = [  # (shape, function, arguments, error, text)
    ((2, 3), "view", ((4,),), ShapeError, "view: shape [2, 3] has 6 elements, [4] has 4"),
    ((2, 3), "view", ((-1, 4),), ShapeError, "view: shape [2, 3] has 6 elements, which is not a multiple of the known "
                                             "sizes in [-1, 4] (4)"),
    ((2, 3), "view", ((-1, -1),), ValueRangeError, "view: only one size can be -1, got [-1, -1]"),
    ((2, 3), "view", ((-2, 3),), ValueRangeError, "view: negative size -2 in shape [-2, 3]; only one -1 is allowed"),
    ((0, 3), "view", ((0, -1),), ShapeError, "view: -1 is ambiguous in [0, -1] for a tensor without elements"),
    ((2, 3), "view", ((0, -1),), ShapeError, "view: shape [2, 3] has 6 elements, which is not a multiple of"),
    ((2, 3), "view", ((2.0, 3),), ArgumentError, "size must be an int, got 2.0 (float)"),
    ((2, 3), "permute", ((0,),), ShapeError, "permute: 1 dims (0,) given for a tensor with 2 dimensions"),
    ((2, 3), "permute", ((0, 0),), DimError, "permute: a dimension appears twice in dim=(0, 0)"),
    ((2, 3), "permute", ((0, 2),), DimError, "permute: dim 2 is out of range for a tensor with 2 dimension(s)"),
    ((2, 3), "transpose", (0, 2), DimError, "transpose: dim 2 is out of range"),
    ((), "transpose", (0, 1), DimError, "transpose: dim 1 is out of range"),
    ((2, 3), "expand", ((3,),), ShapeError, "expand: [3] has fewer dimensions than the tensor's [2, 3]"),
    ((2, 3), "expand", ((4, 3),), ShapeError, "expand: size 2 at dimension 0 of [2, 3] cannot become 4 of [4, 3]; only "
                                              "size 1 can"),
    ((1,), "expand", ((-1, 2),), ValueRangeError, "expand: negative size in [-1, 2]"),
    ((1,), "expand", ((-2,),), ValueRangeError, "expand: negative size in [-2]"),
    ((2, 1), "squeeze", (2,), DimError, "squeeze: dim 2 is out of range"),
    ((2, 1), "unsqueeze", (3,), DimError, "unsqueeze: dim 3 is out of range"),
    ((), "select", (0, 0), IndexRangeError, "select: a 0-d tensor cannot be indexed; x.item() gives its value"),
    ((2, 3), "select", (1, 3), IndexRangeError, "index 3 is out of range for dimension 1 of size 3 (shape [2, 3])"),
    ((2, 3), "select", (1, -4), IndexRangeError, "index -4 is out of range for dimension 1 of size 3 (shape [2, 3])"),
    ((2, 3), "select", (0, 1.0), ArgumentError, "select: index must be an int, got 1.0 (float)"),
    ((0, 3), "select", (0, 0), IndexRangeError, "index 0 is out of range for dimension 0 of size 0"),
    ((5,), "slice_dim", (0, 0, 5, 0), ValueRangeError, "slice step cannot be zero"),
    ((5,), "slice_dim", (1,), DimError, "slice: dim 1 is out of range"),
    ((5,), "slice_dim", (0, 0.5), ArgumentError, "slice: start must be an int, got 0.5 (float)"),
    ((), "slice_dim", (0,), ShapeError, "slice: a 0-d tensor has no dimension to slice"),
    ((4,), "as_strided", ((2, 2), (1,)), ShapeError, "as_strided: 2 sizes but 1 strides"),
    ((4,), "as_strided", ((2,), ("1",)), ArgumentError, "stride must be an int, got '1' (str)"),
    ((3, 3), "diagonal", (0, 1, -1), ArgumentError, "diagonal: dim1 and dim2 are both 1; they must differ"),
    ((3,), "diagonal", (), DimError, "diagonal: dim 1 is out of range"),
    ((5,), "unfold", (0, 6, 1), ValueRangeError, "unfold: windows of size 6 every 1 do not fit dimension 0 of size 5"),
    ((5,), "unfold", (0, 2, 0), ValueRangeError, "unfold: windows of size 2 every 0 do not fit"),
    ((5,), "unfold", (0, -1, 1), ValueRangeError, "unfold: windows of size -1 every 1 do not fit"),
    ((5,), "unfold", (1, 2, 1), DimError, "unfold: dim 1 is out of range"),
    ((5,), "unfold", (0, "2", 1), ArgumentError, "unfold: size must be an int, got '2' (str)"),
    ((5,), "unfold", (0, 2, 1.5), ArgumentError, "unfold: step must be an int, got 1.5 (float)"),
]


@pytest.mark.parametrize(("shape", "name", "args", "error", "text"), ERRORS)
def test_view_errors(shape, name, args, error, text):
    with pytest.raises(error) as caught:
        getattr(_views, name)(layout(shape, tp.float32, META), *args)
    assert caught.value.message.startswith(text)


def test_a_view_that_needs_a_copy_says_reshape():
    with pytest.raises(ShapeError) as caught:
        tp.ones(2, 3, device="meta").t().view(6)
    assert caught.value.message == ("view: a tensor of shape [3, 2] with strides (1, 3) cannot be seen as [6] without "
                                    "a copy; use reshape")


def test_alias_shares_memory_and_nothing_else():
    x = make_tensor(object(), 3, layout((2,), tp.float32, META))
    x.node = "history"
    other = _views.alias(x)
    assert (other.storage, other.offset, other.layout, other.node) == (x.storage, 3, x.layout, None)


DEVICES = ["cpu", "refdev"]


@pytest.mark.parametrize("device", DEVICES)
def test_chains_of_views_read_and_write_one_memory(device):
    if device == "cpu":
        pytest.importorskip("tp_cpu")
    x = tp.arange(24, device=device).reshape(2, 3, 4)
    array = numpy.arange(24).reshape(2, 3, 4)
    y = x.permute(2, 0, 1)[1:, :, ::2].transpose(0, 1)
    expected = array.transpose(2, 0, 1)[1:, :, ::2].swapaxes(0, 1)
    assert y.tolist() == expected.tolist()
    assert y.untyped_storage() is x.untyped_storage()
    y.fill_(-1)
    expected[...] = -1
    assert x.tolist() == array.tolist()
    assert x._version == y._version == 1


OUTSIDE = [((100,), (1,), 0), ((2,), (1,), 5), ((2, 2), (1, 5), 1), ((1,), (1,), -1), ((2,), (2 ** 40,), 0)]


@pytest.mark.parametrize("device", ["meta", *DEVICES])
@pytest.mark.parametrize(("size", "stride", "offset"), OUTSIDE)
def test_as_strided_stays_inside_its_memory(device, size, stride, offset):
    if device == "cpu":
        pytest.importorskip("tp_cpu")
    with pytest.raises(ValueRangeError, match=r"as_strided: .* reaches outside the tensor's memory"):
        tp.ones(6, device=device).as_strided(size, stride, offset)


@pytest.mark.parametrize("device", DEVICES)
def test_as_strided_may_use_all_of_its_memory(device):
    if device == "cpu":
        pytest.importorskip("tp_cpu")
    x = tp.arange(12, device=device)
    assert x.as_strided((3, 4), (4, 1)).tolist() == x.reshape(3, 4).tolist()
    assert x[4:].as_strided((3,), (2,)).tolist() == [4, 6, 8], "from where the tensor begins"
    assert x[4:].as_strided((3,), (2,), 3).tolist() == [3, 5, 7], "from an element of the memory, as in PyTorch"
    assert x[4:].as_strided((0, 3), (9, 9), 100).shape == (0, 3)
    assert x.as_strided((3,), (-2,), 11).tolist() == [11, 9, 7]
