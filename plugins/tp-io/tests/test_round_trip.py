"""Saving and loading: every dtype, stride and shape, and files that other programs write and read."""
from __future__ import annotations

import json

import numpy as np
import pytest
import safetensors.numpy

import tensorplay as tp
from tensorplay import io, nn

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16",
          "float32", "float64", "complex64"]
LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.t(),
    "sliced": lambda x: x[1:, ::2],
    "offset": lambda x: x[2],
    "repeated": lambda x: x[:1].expand(3, 4),
    "0-d": lambda x: x[1, 2],
    "empty": lambda x: x[:0],
    "size 1": lambda x: x[1:2, 1:2].unsqueeze(0),
}


def sample(dtype: str):
    return (tp.arange(12).reshape(3, 4) % 2 if dtype == "bool" else tp.arange(12).reshape(3, 4)).to(getattr(tp, dtype))


@pytest.mark.parametrize("arrange", LAYOUTS.values(), ids=LAYOUTS.keys())
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_and_strides(tmp_path, dtype, arrange) -> None:
    x = arrange(sample(dtype))
    io.save_file({"x": x}, tmp_path / "f")
    y = io.load_file(tmp_path / "f")["x"]
    assert y.dtype is x.dtype and y.shape == x.shape and y.is_contiguous() and y.tolist() == x.tolist()


def test_special_values_keep_their_bits(tmp_path) -> None:
    bits = tp.tensor([0x7FC00001, 0xFF800000, 0x80000000, 1, 0x7F7FFFFF], dtype=tp.uint32)
    x = tp.frombuffer(bytearray(bits.numpy().tobytes()), dtype=tp.float32)
    io.save_file({"x": x}, tmp_path / "f")
    assert io.load_file(tmp_path / "f")["x"].numpy().tobytes() == bits.numpy().tobytes()


def test_fortran_ordered_arrays(tmp_path) -> None:
    array = np.asfortranarray(np.arange(24, dtype="float32").reshape(2, 3, 4))
    io.save_file({"x": tp.from_numpy(array)}, tmp_path / "f")
    np.testing.assert_array_equal(safetensors.numpy.load_file(tmp_path / "f")["x"], array)


def test_names_and_metadata(tmp_path) -> None:
    tensors = {"": tp.ones(1), "ünï \"quoted\"\n": tp.ones(2), "a.b.c": tp.ones(3)}
    io.save_file(tensors, tmp_path / "f", {"step": "3", "Ä": ""})
    loaded = io.load_file(str(tmp_path / "f"))
    assert {n: t.shape for n, t in loaded.items()} == {n: t.shape for n, t in tensors.items()}
    assert io.load_metadata(tmp_path / "f") == {"step": "3", "Ä": ""}
    io.save_file({}, tmp_path / "g")
    assert io.load_file(tmp_path / "g") == {} and io.load_metadata(tmp_path / "g") == {}


def test_a_loaded_tensor_is_alone(tmp_path) -> None:
    x = tp.ones(2, requires_grad=True)
    io.save_file({"x": x, "same": x}, tmp_path / "f")
    loaded = io.load_file(tmp_path / "f")
    loaded["x"].zero_()
    assert loaded["same"].tolist() == [1.0, 1.0] and not loaded["x"].requires_grad


def test_to_a_device(tmp_path) -> None:
    io.save_file({"x": tp.ones(2)}, tmp_path / "f")
    assert io.load_file(tmp_path / "f", "refdev")["x"].tolist() == [1.0, 1.0]
    assert io.load_file(tmp_path / "f", device="refdev")["x"].device.type == "refdev"
    io.save_file(io.load_file(tmp_path / "f", "refdev"), tmp_path / "g")
    assert (tmp_path / "f").read_bytes() == (tmp_path / "g").read_bytes()


def test_a_model(tmp_path) -> None:
    first, second = nn.Linear(3, 2), nn.Linear(3, 2)
    io.save_file(first.state_dict(), tmp_path / "f")
    second.load_state_dict(io.load_file(tmp_path / "f"))
    assert second.weight.tolist() == first.weight.tolist()


NUMPY = [d for d in DTYPES if d not in ("bfloat16", "complex64")]


@pytest.mark.parametrize("dtype", NUMPY)
def test_the_safetensors_package_reads_and_writes_the_same(tmp_path, dtype) -> None:
    arrays = {"x": sample(dtype).numpy(), "s": np.array(1, dtype=dtype), "e": np.zeros((0, 3), dtype=dtype)}
    safetensors.numpy.save_file(arrays, tmp_path / "theirs", {"k": "v"})
    loaded = io.load_file(tmp_path / "theirs")
    for name, array in arrays.items():
        assert loaded[name].dtype.name == dtype and loaded[name].shape == array.shape
        np.testing.assert_array_equal(loaded[name].numpy(), array)
    io.save_file(loaded, tmp_path / "ours", io.load_metadata(tmp_path / "theirs"))
    for name, array in safetensors.numpy.load_file(tmp_path / "ours").items():
        np.testing.assert_array_equal(array, arrays[name])
        assert array.dtype == dtype and array.shape == arrays[name].shape
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


def test_bytes_are_little_endian_and_in_place(tmp_path) -> None:
    io.save_file({"x": tp.tensor([1, -2], dtype=tp.int16)}, tmp_path / "f")
    content = (tmp_path / "f").read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + length])
    assert header == {"x": {"dtype": "I16", "shape": [2], "data_offsets": [0, 4]}}
    assert content[8 + length:] == b"\x01\x00\xfe\xff"


@pytest.mark.parametrize(("tensors", "metadata", "message"), [
    ([tp.ones(1)], None, "save_file: takes a mapping from names to tensors, got list"),
    ({3: tp.ones(1)}, None, "tensor names must be strings other than '__metadata__', got 3"),
    ({"__metadata__": tp.ones(1)}, None, "tensor names must be strings other than '__metadata__'"),
    ({"\ud800": tp.ones(1)}, None, r"tensor names must be strings other than '__metadata__', got '\ud800'"),
    ({"x": [1.0]}, None, "'x' is list, not a Tensor"),
    ({"x": tp.ones(1, dtype=tp.complex128)}, None, "'x' is complex128, which safetensors cannot hold"),
    ({"x": tp.ones(1, device="meta")}, None, "'x' is on the meta device and has no values to save"),
    ({"x": tp.ones(1)}, {"step": 3}, "metadata must map strings to strings, got 'step': 3"),
])
def test_refuses_to_write(tmp_path, tensors, metadata, message) -> None:
    (tmp_path / "f").write_bytes(b"old")
    with pytest.raises(TypeError) as caught:
        io.save_file(tensors, tmp_path / "f", metadata)
    assert message in str(caught.value)
    assert (tmp_path / "f").read_bytes() == b"old" and len(list(tmp_path.iterdir())) == 1


def test_mixed_dtypes_are_laid_out_as_the_package_does(tmp_path) -> None:
    arrays = {f"{letter}.{dtype}": sample(dtype).numpy() for letter in "ba" for dtype in NUMPY}
    safetensors.numpy.save_file(arrays, tmp_path / "theirs")
    io.save_file(io.load_file(tmp_path / "theirs"), tmp_path / "ours")
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


def test_one_tensor_at_a_time(tmp_path) -> None:
    import tracemalloc

    tensors = {str(i): tp.ones(1 << 18) for i in range(16)}
    tracemalloc.start()
    try:
        io.save_file(tensors, tmp_path / "f")
        assert tracemalloc.get_traced_memory()[1] < 6 * (1 << 20)  # the file has 16 MiB
    finally:
        tracemalloc.stop()
