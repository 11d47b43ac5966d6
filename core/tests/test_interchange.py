"""Memory shared with other libraries, pickles and copies."""
from __future__ import annotations

import array
import copy
import ctypes
import gc
import io
import pickle
import subprocess
import sys

import pytest

import tensorplay as tp
from tensorplay._errors import ArgumentError, AutogradError, DeviceError, DTypeError, ValueRangeError
from tensorplay._layout import layout
from tensorplay._tensor import make_tensor

pytest.importorskip("tp_cpu", reason="memory can only be shared with the cpu device")
numpy = pytest.importorskip("numpy")

SHARED_DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "float32",
                 "float64", "complex64", "complex128"]


def view(x, shape, strides, offset=0):
    return make_tensor(x.storage, x.offset + offset, layout(shape, x.dtype, x.device, strides))


ARRAYS = {  # arrays over one block of 24 numbers, in every layout that a tensor can have
    "contiguous": lambda a: a.reshape(4, 6),
    "transposed": lambda a: a.reshape(4, 6).T,
    "stepped": lambda a: a.reshape(4, 6)[::2, 1::2],
    "column": lambda a: a.reshape(4, 6)[:, 3],
    "0-d": lambda a: a[5:6].reshape(()),
    "size 1": lambda a: a[7:8].reshape(1, 1, 1),
    "offset": lambda a: a[3:],
    "fortran": lambda a: numpy.asfortranarray(a.reshape(2, 3, 4)),
}


@pytest.mark.parametrize("dtype", SHARED_DTYPES)
@pytest.mark.parametrize("form", ARRAYS)
def test_numpy_arrays_share_their_memory_both_ways(form, dtype):
    a = ARRAYS[form](numpy.arange(24).astype(dtype))
    x = tp.from_numpy(a)
    assert (x.dtype, x.shape, x.stride()) == (getattr(tp, dtype), a.shape, tuple([s // a.itemsize for s in a.strides]))
    back = x.numpy()
    assert back.dtype == a.dtype
    assert numpy.array_equal(back, a)
    assert a.ndim == 0 or back.strides == a.strides
    a[...] = 1  # seen through the tensor and through its array
    assert numpy.array_equal(x.numpy(), a)
    back[...] = 0
    assert not a.any()


@pytest.mark.parametrize("shape", [(0,), (2, 0, 3), (0, 0)])
def test_empty_arrays(shape):
    x = tp.from_numpy(numpy.zeros(shape, "float32"))
    assert (x.shape, x.numpy().shape, x.numpy().dtype) == (shape, shape, "float32")


def test_memory_lives_as_long_as_either_side():
    a = numpy.arange(5)
    x = tp.from_numpy(a)
    del a
    gc.collect()
    assert x.tolist() == [0, 1, 2, 3, 4]
    back = x.numpy()
    del x
    gc.collect()
    assert back.tolist() == [0, 1, 2, 3, 4]


def test_a_buffer_in_use_cannot_be_resized():
    data = bytearray(8)
    x = tp.frombuffer(data, dtype=tp.uint8)
    with pytest.raises(BufferError):
        data.append(1)
    del x
    gc.collect()
    data.append(1)


def test_a_read_only_array_is_copied():
    a = numpy.zeros(3, "float32")
    a.flags.writeable = False
    x = tp.from_numpy(a)
    x.numpy()[0] = 5
    assert a.tolist() == [0, 0, 0]


BAD_ARRAYS = [  # (array, error, in the message)
    (lambda: numpy.arange(4)[::-1], ArgumentError, "negative stride"),
    (lambda: numpy.arange(4).astype(">i4"), ArgumentError, "byte order"),
    (lambda: numpy.array(["a", "b"]), ArgumentError, "expected numbers or bools"),
    (lambda: numpy.array([None]), ArgumentError, "expected numbers or bools"),
    (lambda: numpy.zeros(2, "datetime64[s]"), ArgumentError, "no tensor dtype for ndarray of dtype datetime64"),
    (lambda: numpy.zeros(2, [("x", "f4")]), ArgumentError, "expected numbers or bools"),
    (lambda: numpy.zeros(2, "longdouble"), ArgumentError, "no tensor dtype for elements of format 'g'"),
    (lambda: [1, 2], ArgumentError, "from_numpy takes a numpy.ndarray, got list"),
    (lambda: None, ArgumentError, "from_numpy takes a numpy.ndarray, got NoneType"),
]


@pytest.mark.parametrize(("make", "error", "expected"), BAD_ARRAYS)
def test_arrays_that_cannot_be_tensors(make, error, expected):
    with pytest.raises(error) as caught:
        tp.from_numpy(make())
    assert expected in caught.value.message


BUFFERS = [  # (buffer, dtype, arguments, values)
    (lambda: bytearray(b"\1\2\3\4"), "uint8", {}, [1, 2, 3, 4]),
    (lambda: b"\1\0\2\0", "int16", {}, [1, 2]),
    (lambda: array.array("d", [1.5, 2.5, 3.5]), "float64", {"count": 1, "offset": 8}, [2.5]),
    (lambda: array.array("f", [1.5, 2.5]), "float32", {}, [1.5, 2.5]),
    (lambda: memoryview(bytearray(9))[1:], "int64", {}, [0]),
    (lambda: bytearray(b"\0\0\x80?"), "bfloat16", {"offset": 2}, [1.0]),
    (lambda: b"", "float32", {}, []),
]


@pytest.mark.parametrize(("make", "dtype", "arguments", "values"), BUFFERS)
def test_frombuffer(make, dtype, arguments, values):
    x = tp.frombuffer(make(), dtype=getattr(tp, dtype), **arguments)
    assert (x.tolist(), x.dtype) == (values, getattr(tp, dtype))


def test_frombuffer_shares_writable_memory():
    data = bytearray(4)
    x = tp.frombuffer(data, dtype=tp.uint8, offset=1)
    data[2] = 9
    assert x.tolist() == [0, 9, 0]


BAD_BUFFERS = [
    (lambda: bytearray(7), {"dtype": tp.int32}, ValueRangeError, "do not fit the buffer of 7 bytes"),
    (lambda: bytearray(8), {"dtype": tp.int32, "count": 3}, ValueRangeError, "count=3 elements of 4 bytes"),
    (lambda: bytearray(8), {"dtype": tp.int32, "offset": 9}, ValueRangeError, "offset=9"),
    (lambda: bytearray(8), {"dtype": tp.int32, "offset": -4}, ValueRangeError, "offset=-4"),
    (lambda: bytearray(8), {"dtype": tp.int32, "count": -2}, ValueRangeError, "count=-2"),
    (lambda: "text", {"dtype": tp.uint8}, ArgumentError, "frombuffer takes a contiguous bytes-like object, got str"),
    (lambda: memoryview(bytes(8))[::2], {"dtype": tp.uint8}, ArgumentError, "contiguous"),
]


@pytest.mark.parametrize(("make", "arguments", "error", "expected"), BAD_BUFFERS)
def test_bad_buffers(make, arguments, error, expected):
    with pytest.raises(error) as caught:
        tp.frombuffer(make(), **arguments)
    assert expected in caught.value.message


COPIED = [  # (data, values, dtype): what tp.tensor copies
    (lambda: numpy.arange(6, dtype="int16").reshape(2, 3), [[0, 1, 2], [3, 4, 5]], "int16"),
    (lambda: numpy.arange(6.0)[::-2], [5.0, 3.0, 1.0], "float64"),
    (lambda: numpy.float32(2.5), 2.5, "float32"),
    (lambda: numpy.bool_(True), True, "bool"),
    (lambda: array.array("h", [1, -2]), [1, -2], "int16"),
    (lambda: b"\1\xff", [1, 255], "uint8"),
    (lambda: memoryview(bytearray(b"ab"))[::-1], [98, 97], "uint8"),
    (lambda: (ctypes.c_int * 3)(1, 2, 3), [1, 2, 3], "int32"),
    (lambda: numpy.zeros((0, 2), "int64"), [], "int64"),
]


@pytest.mark.parametrize(("make", "values", "dtype"), COPIED)
def test_tensor_copies_arrays_and_buffers(make, values, dtype):
    data = make()
    x = tp.tensor(data)
    assert (x.tolist(), x.dtype) == (values, getattr(tp, dtype))
    if isinstance(data, numpy.ndarray) and data.size:
        x.numpy()[...] = 100
        assert not (data == 100).any()


class HasArray:
    def __array__(self, dtype=None, copy=None):
        return numpy.arange(3.0)


def test_asarray_shares_where_it_can():
    a = numpy.zeros(2)
    x = tp.asarray(a)
    a[0] = 3
    assert x.tolist() == [3, 0]
    assert tp.asarray(x) is x
    assert tp.as_tensor(x) is x
    copied = tp.asarray(a, copy=True)
    a[0] = 4
    assert copied.tolist() == [3, 0]
    assert tp.asarray([1, 2]).tolist() == [1, 2]
    assert tp.asarray(HasArray()).tolist() == [0, 1, 2]
    assert tp.asarray(b"ab").tolist() == [97, 98]
    for data in ([1, 2], b"ab"):
        with pytest.raises(ValueRangeError, match="copy=False"):
            tp.asarray(data, copy=False)
    with pytest.raises(ValueRangeError, match="copy=False, but the data is float64 on cpu"):
        tp.asarray(a, dtype=tp.float32, copy=False)


def test_numpy_protocol():
    x = tp.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert numpy.asarray(x).tolist() == x.tolist()
    assert numpy.shares_memory(numpy.asarray(x), x.numpy())
    assert not numpy.shares_memory(numpy.array(x), x.numpy())
    assert numpy.asarray(x, dtype="float64").dtype == "float64"
    with pytest.raises(ValueError, match="cannot share"):
        x.__array__(numpy.dtype("float64"), copy=False)


def test_what_numpy_cannot_have(site):
    with pytest.raises(DTypeError, match=r"NumPy has no bfloat16; convert first: x\.float\(\)\.numpy\(\)"):
        tp.tensor([1.0], dtype=tp.bfloat16).numpy()
    with pytest.raises(DeviceError, match=r"NumPy cannot see memory of device 'meta'"):
        tp.tensor([1.0], device="meta").numpy()
    site.device("cellar")
    x = tp.tensor([[1, 2], [3, 4]], device="cellar")
    with pytest.raises(DeviceError, match=r"use x\.cpu\(\)\.numpy\(\)"):
        numpy.asarray(x)
    copied = view(x, (2, 2), (1, 2)).numpy(force=True)
    copied[0, 0] = 9  # a copy that may be written to
    assert (copied.tolist(), x.tolist()) == ([[9, 3], [2, 4]], [[1, 2], [3, 4]])


def test_gradients_must_be_left_behind():
    pytest.importorskip("tp_tpx", reason="gradients need tp-tpx")
    x = tp.tensor([1.0], requires_grad=True)
    for share in (x.numpy, x.__dlpack__):
        with pytest.raises(AutogradError, match=r"x\.detach\(\)"):
            share()
    assert x.numpy(force=True).tolist() == x.detach().numpy().tolist() == [1.0]


# ---- pickles and copies ----------------------------------------------------------------------------------------------
class Tagged(tp.Tensor):
    pass


def pickled(x, protocol=pickle.HIGHEST_PROTOCOL):
    return pickle.loads(pickle.dumps(x, protocol))


@pytest.mark.parametrize("dtype", [*SHARED_DTYPES, "bfloat16"])
@pytest.mark.parametrize("again", [pickled, copy.deepcopy, copy.copy])
def test_copies_keep_dtype_and_values(again, dtype):
    x = tp.tensor([[1, 0], [1, 1]], dtype=getattr(tp, dtype))
    y = again(x)
    assert (y.dtype, y.shape, y.stride(), y.tolist()) == (x.dtype, x.shape, x.stride(), x.tolist())
    assert (y.data_ptr() == x.data_ptr()) == (again is copy.copy)


VIEWS = [  # (shape, strides, offset) over 6 numbers
    ((3, 2), (1, 3), 0), ((2,), (3,), 1), ((4, 3), (0, 1), 3), ((), (), 4), ((0, 3), (3, 1), 0), ((2, 2), (1, 1), 2),
]


@pytest.mark.parametrize(("shape", "strides", "offset"), VIEWS)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickled_views_hold_only_what_they_show(shape, strides, offset, protocol):
    pytest.importorskip("tp_operators", reason="a view with gaps is made contiguous first")
    x = view(tp.tensor([[0, 1, 2], [3, 4, 5]]), shape, strides, offset)
    y = pickled(x, protocol)
    assert (y.shape, y.tolist()) == (x.shape, x.tolist())
    assert y.storage.nbytes <= 8 * 6
    if strides == (1, 3):
        assert y.stride() == strides


def test_subclasses_and_their_attributes_survive():
    x = tp.tensor([1.0, 2.0]).as_subclass(Tagged)
    x.note = ["kept"]
    for again in (pickled, copy.deepcopy):
        y = again(x)
        assert (type(y), y.tolist(), y.note, y.note is x.note) == (Tagged, [1.0, 2.0], ["kept"], False)


def test_meta_tensors_have_no_bytes():
    x = tp.tensor([[1.0, 2.0]] * 50, device="meta")
    assert len(pickle.dumps(x)) < 300
    for again in (pickled, copy.deepcopy):
        assert (again(x).shape, again(x).device) == ((50, 2), tp.device("meta"))


def test_deepcopy_keeps_shared_memory_shared():
    x = tp.tensor([1.0, 2.0, 3.0])
    tail = view(x, (2,), (1,), 1)
    both = copy.deepcopy({"x": x, "tail": tail, "again": x})
    assert both["x"] is both["again"]
    both["x"].numpy()[1] = 7
    assert both["tail"].tolist() == [7, 3]
    assert x.tolist() == [1, 2, 3]


def test_copies_keep_requires_grad():
    pytest.importorskip("tp_tpx", reason="gradients need tp-tpx")
    x = tp.tensor([1.0, 2.0], requires_grad=True)
    x.grad = tp.tensor([3.0, 4.0])
    assert pickled(x).requires_grad
    y = copy.deepcopy(x)
    assert (y.requires_grad, y.grad.tolist(), y.grad is x.grad) == (True, [3.0, 4.0], False)
    with pytest.raises(AutogradError, match="leaf"):
        copy.deepcopy(x * 2)


def test_loading_a_pickle_for_a_missing_device_says_so(site):
    site.device("gone")
    text = pickle.dumps(tp.tensor([1.0], device="gone")).replace(b"gone", b"nono")
    with pytest.raises(tp.TensorPlayError, match="there is no device 'nono'"):
        pickle.load(io.BytesIO(text))


# ---- DLPack ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", SHARED_DTYPES)
@pytest.mark.parametrize("form", ARRAYS)
def test_dlpack_shares_memory_with_numpy_both_ways(form, dtype):
    a = ARRAYS[form](numpy.arange(24).astype(dtype))
    x = tp.from_dlpack(a)
    assert (x.dtype, x.shape) == (getattr(tp, dtype), a.shape)
    assert numpy.array_equal(x.numpy(), a)
    back = numpy.from_dlpack(x)
    assert numpy.array_equal(back, a)
    assert back.dtype == a.dtype
    a[...] = 1
    assert numpy.array_equal(back, a)


def test_dlpack_between_tensors():
    for dtype in (tp.bfloat16, tp.float32):
        x = tp.tensor([[1.0, 2.0, 3.0]], dtype=dtype)
        y = tp.from_dlpack(x)
        assert (y.dtype, y.data_ptr(), y.tolist()) == (dtype, x.data_ptr(), x.tolist())
    column = view(tp.tensor([[0, 1], [2, 3]]), (2,), (2,), 1)
    assert tp.from_dlpack(column).numpy().tolist() == [1, 3]
    assert tp.from_dlpack(tp.tensor([], dtype=tp.int32)).shape == (0,)


def test_dlpack_memory_lives_exactly_as_long_as_needed():
    from tensorplay._dlpack import _exported

    gc.collect()
    before = len(_exported)
    x = tp.tensor([1.0, 2.0])
    capsules = [x.__dlpack__(), x.__dlpack__(max_version=(1, 0)), x.__dlpack__(max_version=(0, 8))]
    assert ["versioned" in repr(capsule) for capsule in capsules] == [False, True, False]
    assert len(_exported) == before + 3
    taken = tp.from_dlpack(capsules[1])
    with pytest.raises(ArgumentError, match="used before"):
        tp.from_dlpack(capsules[1])
    del capsules  # two were never taken over: their destructors clean up
    gc.collect()
    assert len(_exported) == before + 1
    del x
    gc.collect()
    assert taken.tolist() == [1.0, 2.0]
    del taken
    gc.collect()
    assert len(_exported) == before
    for _ in range(1000):
        numpy.from_dlpack(tp.tensor([1.0])).sum()
    assert len(_exported) == before


class Producer:
    """An array whose capsule can be spoiled before it is handed over."""

    def __init__(self, a, spoil, device=(1, 0)):
        self.a, self.spoil, self.device = a, spoil, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self):  # no max_version: as before DLPack 1.0
        from tensorplay import _dlpack

        capsule = self.a.__dlpack__()
        self.spoil(_dlpack._Managed.from_address(_dlpack._pointer(id(capsule), b"dltensor")).tensor)
        return capsule


def change(**fields):
    def spoil(described):
        for name, value in fields.items():
            setattr(described, name, value)

    return spoil


SPOILED = [
    (change(bits=24), DTypeError, "no dtype for code 0 with 24 bits"),
    (change(code=77), DTypeError, "no dtype for code 77"),
    (change(lanes=4), DTypeError, "4 lanes"),
    (change(device_type=2), DeviceError, r"DLPack device (2, 0)"),
    (lambda t: t.strides.__setitem__(0, -1), ArgumentError, "negative strides (-1,)"),
]


@pytest.mark.parametrize(("spoil", "error", "expected"), SPOILED)
def test_dlpack_data_that_is_refused_is_given_back(spoil, error, expected):
    from tensorplay._dlpack import _exported

    gc.collect()
    before = len(_exported)
    x = tp.tensor([1, 2, 3])
    with pytest.raises(error) as caught:
        tp.from_dlpack(Producer(x, spoil))
    assert expected in caught.value.message
    caught = None
    gc.collect()
    assert len(_exported) == before


def test_other_dlpack_refusals(site):
    with pytest.raises(ArgumentError, match="got list"):
        tp.from_dlpack([1, 2])
    with pytest.raises(DeviceError, match=r"DLPack device \(2, 0\); move it to the CPU first"):
        tp.from_dlpack(Producer(None, None, (2, 0)))
    site.device("vault")
    with pytest.raises(DeviceError, match=r"device 'vault' cannot be shared through DLPack; use x\.cpu\(\)"):
        tp.from_dlpack(tp.tensor([1.0], device="vault"))
    with pytest.raises(BufferError, match="cannot be exported to DLPack device"):
        tp.tensor([1.0]).__dlpack__(dl_device=(2, 0))


def test_read_only_dlpack_data_is_copied():
    a = numpy.arange(3)
    a.flags.writeable = False
    try:
        x = tp.from_dlpack(a)
    except (BufferError, TypeError):
        pytest.skip("this NumPy does not export read-only arrays")
    x.numpy()[0] = 9
    assert a.tolist() == [0, 1, 2]


def test_memory_is_given_back_at_exit():
    code = """
import numpy, tensorplay as tp
kept = numpy.from_dlpack(tp.tensor([1.0, 2.0]))
other = tp.from_dlpack(numpy.arange(3))
capsule = tp.tensor([1.0]).__dlpack__()
print(kept.sum(), other.tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3.0 [0, 1, 2]\n", "")
