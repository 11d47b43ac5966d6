"""Files that are truncated, malformed or made to do harm: one line says what is wrong, nothing is loaded, and no more
memory is asked for than the file is long."""
from __future__ import annotations

import json
import os
import struct
import tracemalloc

import pytest

import tensorplay as tp
from tensorplay import io


def write(path, header, data: bytes = b"", length: int | None = None) -> None:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)


def entry(dtype="F32", shape=(1,), offsets=(0, 4)) -> dict:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


BIG = 1 << 61
CASES = [  # (name, header, data, length that the file claims or None, what the error says)
    ("huge header", b"{}", b"", (1 << 64) - 1, "the header claims 18446744073709551615 bytes, but the file has 2"),
    ("header past the end", b"{}", b"", 3, "the header claims 3 bytes, but the file has 2 after the length; it is "
                                           "truncated"),
    ("above the limit", b"{}", b"", 100_000_001, "the header claims 100000001 bytes"),
    ("no header", b"", b"", None, "the header is not valid: Expecting value"),
    ("not JSON", b"{a}", b"", None, "the header is not valid"),
    ("not UTF-8", b"\xff\xfe{}", b"", None, "the header is not valid: 'utf-8' codec can't decode byte 0xff"),
    ("a list", b"[]", b"", None, "the header is not a JSON object"),
    ("deep list", b"[" * 200_000, b"", None, "the header is not valid: maximum recursion depth"),
    ("deep object", b'{"a":' * 200_000, b"", None, "the header is not valid: maximum recursion depth"),
    ("long number", b'{"a":' + b"9" * 5000 + b"}", b"", None, "h"),
    ("duplicate names", b'{"a":1,"a":2}', b"", None, "the key 'a' appears twice"),
    ("duplicate fields", b'{"a":{"dtype":"F32","dtype":"F32"}}', b"", None, "the key 'dtype' appears twice"),
    ("bad metadata", {"__metadata__": {"a": 1}}, b"", None, "__metadata__ must map strings to strings"),
    ("null metadata", {"__metadata__": None}, b"", None, "__metadata__ must map strings to strings"),
    ("not an entry", {"a": 3}, b"", None, "tensor 'a': expected dtype, shape and data_offsets, got 3"),
    ("missing field", {"a": {"dtype": "F32", "shape": []}}, b"", None, "expected dtype, shape and data_offsets"),
    ("extra field", {"a": {**entry(), "x": 1}}, b"1234", None, "expected dtype, shape and data_offsets"),
    ("unknown dtype", {"a": entry("F33")}, b"1234", None, "dtype 'F33' is not known; known are BOOL, U8"),
    ("dtype no string", {"a": entry(["F32"])}, b"1234", None, "is not known; known are BOOL"),
    ("wrong dtype", {"a": entry("F64")}, b"1234", None,
     "shape [1] of float64 does not take the 4 bytes that are given"),
    ("negative size", {"a": entry(shape=(-1,))}, b"1234", None, "shape [-1] is not a list of sizes"),
    ("size no int", {"a": entry(shape=(1.0,))}, b"1234", None, "shape [1.0] is not a list of sizes"),
    ("size a bool", {"a": entry(shape=(True,))}, b"1234", None, "shape [True] is not a list of sizes"),
    ("shape no list", {"a": {**entry(), "shape": 1}}, b"1234", None, "shape 1 is not a list of sizes"),
    ("huge size", {"a": entry(shape=(1 << 70,))}, b"1234", None, "is not a list of sizes"),
    ("65 dimensions", {"a": entry(shape=(1,) * 65)}, b"1234", None, "is not a list of sizes"),
    ("overflowing product", {"a": entry(shape=(1 << 32, 1 << 32))}, b"1234", None, "does not take the 4 bytes"),
    ("overflowing empty", {"a": entry(shape=(0, BIG, BIG), offsets=(0, 0))}, b"", None, "at most 4611686018427387904"),
    ("offsets backwards", {"a": entry(offsets=(4, 0))}, b"1234", None, "bytes 4 to 0 do not lie within the 4"),
    ("offsets past the end", {"a": entry(shape=(2,), offsets=(0, 8))}, b"1234", None, "bytes 0 to 8 do not lie within"),
    ("offsets negative", {"a": entry(offsets=(-4, 0))}, b"1234", None,
     "data_offsets [-4, 0] is not a pair of positions"),
    ("offsets of three", {"a": entry(offsets=(0, 4, 8))}, b"1234", None, "data_offsets [0, 4, 8] is not a pair"),
    ("overlap", {"a": entry(), "b": entry()}, b"1234", None,
     "tensor 'b' begins at byte 0, but 4 bytes are taken so far"),
    ("half overlap", {"a": entry(shape=(2,), offsets=(0, 8)), "b": entry(offsets=(6, 10))}, b"0123456789", None,
     "tensor 'b' begins at byte 6, but 8 bytes are taken"),
    ("gap", {"a": entry(offsets=(4, 8))}, b"12345678", None,
     "tensor 'a' begins at byte 4, but 0 bytes are taken so far"),
    ("bytes left over", {"a": entry()}, b"12345678", None, "the tensors take 4 bytes, but 8 follow the header"),
    ("no bool", {"a": entry("BOOL", (2,), (0, 2))}, b"\1\2", None, "tensor 'a': byte 2 is no bool"),
    ("long name", {"x" * 100_000: 3}, b"", None, "tensor '" + "x" * 77 + "...': expected"),
]


@pytest.mark.parametrize(("header", "data", "length", "message"), [case[1:] for case in CASES],
                         ids=[c[0] for c in CASES])
def test_hostile(tmp_path, header, data, length, message) -> None:
    path = tmp_path / "f"
    write(path, header, data, length)
    with pytest.raises(io.FileFormatError) as caught:
        io.load_file(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ") and message in text and len(text) < 1000
    assert isinstance(caught.value, ValueError)


def test_truncated_at_every_length(tmp_path) -> None:
    path = tmp_path / "f"
    io.save_file({"a": tp.arange(3), "b": tp.ones(2, 2), "c": tp.zeros(0)}, path, {"k": "v"})
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(io.FileFormatError):
            io.load_file(path)
    path.write_bytes(whole + b"x")
    with pytest.raises(io.FileFormatError, match="but 41 follow the header"):
        io.load_file(path)


def test_every_changed_byte_of_the_header_is_refused_or_harmless(tmp_path) -> None:
    path = tmp_path / "f"
    io.save_file({"a": tp.arange(3), "b": tp.ones(2, 2)}, path)
    whole = path.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    for place in range(header):
        for value in (0, 0x22, 0x30, 0x39, 0x7D, 0xFF):
            path.write_bytes(whole[:place] + bytes([value]) + whole[place + 1:])
            try:
                loaded = io.load_file(path)
            except io.FileFormatError:
                continue
            assert sum(t.nbytes for t in loaded.values()) == len(whole) - header


def test_no_more_memory_than_the_file_is_long(tmp_path) -> None:
    path = tmp_path / "f"
    for header, length in (({"a": entry(shape=(1 << 40,), offsets=(0, 1 << 42))}, None), (b"{}", 99_999_999)):
        write(path, header, b"1234", length)
        tracemalloc.start()
        try:
            with pytest.raises(io.FileFormatError):
                io.load_file(path)
            assert tracemalloc.get_traced_memory()[1] < 100_000
        finally:
            tracemalloc.stop()


def test_nothing_is_loaded_half(tmp_path) -> None:
    model = tp.nn.Linear(2, 2)
    before = model.weight.tolist()
    io.save_file({"weight": tp.ones(2, 2), "bias": tp.ones(3)}, tmp_path / "f")
    with pytest.raises(ValueError, match=r"bias has shape \[3\] in the state but \[2\] in the module"):
        model.load_state_dict(io.load_file(tmp_path / "f"))
    assert model.weight.tolist() == before


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "device"])
def test_not_a_file(tmp_path, kind) -> None:
    path = tmp_path / kind
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)  # opening it would wait for a writer that never comes
    elif kind == "device":
        path.symlink_to("/dev/zero")
    expected = "No such file or directory" if kind == "missing" else "it is not a file"
    with pytest.raises(io.FileFormatError, match=f"cannot read .*{kind}: {expected}"):
        io.load_file(path)


def test_loading_executes_nothing(tmp_path) -> None:
    import pickle

    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "executed"),)

    (tmp_path / "f").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(io.FileFormatError):
        io.load_file(tmp_path / "f")
    assert not (tmp_path / "executed").exists()
