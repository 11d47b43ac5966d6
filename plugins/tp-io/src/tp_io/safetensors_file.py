"""safetensors files: a JSON header with names, dtypes, shapes and offsets, then the bytes. Loading executes nothing.

The `safetensors` package is not used: it scrambles arrays that are not row-major, accepts some duplicate keys, writes
metadata in a random order and wants the whole file in memory. Here one tensor at a time is written, and every length
and offset is checked against the file's size before anything is allocated. The tests read and write with the package
too.
"""
from __future__ import annotations

import json
import os
import stat

import tensorplay as tp
from tensorplay.library import (
    ArgumentError,
    MemoryLimitError,
    ShapeError,
    TensorPlayError,
    ValueRangeError,
    from_bytes,
    to_bytes,
)

from .atomic import atomic_write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, BinaryIO

    from tensorplay import Tensor

NAMES = {"bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "uint16": "U16", "float16": "F16",
         "bfloat16": "BF16", "int32": "I32", "uint32": "U32", "float32": "F32", "complex64": "C64", "float64": "F64",
         "int64": "I64", "uint64": "U64"}
RANK = {name: rank for rank, name in enumerate(NAMES)}
DTYPES = {code: getattr(tp, name) for name, code in NAMES.items()}
LARGEST_HEADER = 100_000_000  # the format's own limit


class FileFormatError(TensorPlayError, ValueError):
    """A file that is not what it should be: truncated, malformed or of another kind."""


def save_file(tensors: Mapping[str, Tensor], path: Any, metadata: Mapping[str, str] | None = None) -> None:
    """Write named tensors to a safetensors file, atomically: a failure leaves the old file.

    >>> import tensorplay as tp, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "m.safetensors")
    >>> tp.io.save_file({"w": tp.ones(2)}, path)
    >>> tp.io.load_file(path)["w"].tolist()
    [1.0, 1.0]

    Tensors of any device and strides are written in row-major order. Raises ArgumentError for names or values that
    cannot be stored, WriteError if the file cannot be written.
    """
    if not hasattr(tensors, "items"):
        raise ArgumentError(f"save_file: takes a mapping from names to tensors, got {type(tensors).__name__}")
    for name, value in tensors.items():
        if not isinstance(name, str) or name == "__metadata__" or not _is_text(name):
            raise ArgumentError(f"save_file: tensor names must be strings other than '__metadata__', got {name!r}")
        if not isinstance(value, tp.Tensor):
            raise ArgumentError(f"save_file: {name!r} is {type(value).__name__}, not a Tensor")
        if value.dtype.name not in NAMES:
            raise ArgumentError(f"save_file: {name!r} is {value.dtype.name}, which safetensors cannot hold")
        if value.is_meta:
            raise ArgumentError(f"save_file: {name!r} is on the meta device and has no values to save")
    for key, text in (metadata or {}).items():
        if not isinstance(key, str) or not isinstance(text, str) or not _is_text(key + text):
            raise ArgumentError(f"save_file: metadata must map strings to strings, got {key!r}: {text!r}")
    header, order = _header(tensors, metadata)
    with atomic_write(path) as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for name in order:
            file.write(to_bytes(tensors[name]))


def _header(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None) -> tuple[bytes, list[str]]:
    """The JSON header, padded to a multiple of 8 bytes, and the names in the order in which their bytes follow: wide
    dtypes first, so that everything is aligned, as the `safetensors` package writes them."""
    order = sorted(tensors, key=lambda name: (-RANK[tensors[name].dtype.name], name))
    entries: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name in order:
        value = tensors[name]
        begin, end = end, end + value.nbytes
        entries[name] = {"dtype": NAMES[value.dtype.name], "shape": list(value.shape), "data_offsets": [begin, end]}
    text = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    return text + b" " * (-len(text) % 8), order


def load_file(path: Any, device: Any = None) -> dict[str, Tensor]:
    """The tensors of a safetensors file by name.

    Raises FileFormatError naming the path and the fault if the file is truncated or malformed; then nothing has been
    loaded, and no more memory was asked for than the file is long.
    """
    with _open(path) as file:
        entries, _, start, size = read_header(file, path)
        loaded = {}
        for name, (dtype, shape, begin, end) in entries.items():
            file.seek(start + begin)
            data = file.read(end - begin)
            if len(data) != end - begin:
                raise FileFormatError(f"{path}: the file shrank while it was read ({size} bytes at first)")
            if dtype is tp.bool and data.strip(b"\0\1"):
                raise FileFormatError(f"{path}: tensor {_short(name)}: byte {data.strip(bytes([0, 1]))[0]} is no bool")
            try:
                loaded[name] = from_bytes(data, shape, dtype, device)
            except (ShapeError, ValueRangeError, MemoryLimitError) as problem:
                raise FileFormatError(f"{path}: tensor {_short(name)}: {problem.message}") from None
    return loaded


def _is_text(text: str) -> bool:
    """Whether UTF-8 can hold it: half of a surrogate pair cannot be written."""
    return not any(["\ud800" <= c <= "\udfff" for c in text])


def _short(name: str) -> str:
    return repr(name if len(name) <= 80 else name[:77] + "...")


def load_metadata(path: Any) -> dict[str, str]:
    """The metadata of a safetensors file."""
    with _open(path) as file:
        return read_header(file, path)[1]


def _open(path: Any) -> BinaryIO:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for ever
            raise FileFormatError(f"cannot read {path}: it is not a file")
        return open(path, "rb")
    except OSError as problem:
        raise FileFormatError(f"cannot read {path}: {problem.strerror or problem}") from problem


def read_header(file: BinaryIO, path: Any) -> tuple[dict, dict, int, int]:
    """(entries, metadata, where the bytes begin, size of the file), all checked."""
    size = os.fstat(file.fileno()).st_size
    head = file.read(8)
    if len(head) < 8:
        raise FileFormatError(f"{path}: {size} bytes are too few for a safetensors file")
    length = int.from_bytes(head, "little")
    if length > LARGEST_HEADER or length > size - 8:
        raise FileFormatError(f"{path}: the header claims {length} bytes, but the file has {size - 8} after the "
                              f"length; it is truncated or not a safetensors file")
    try:
        header = json.loads(file.read(length).decode("utf-8"), object_pairs_hook=_no_duplicates)
    except (ValueError, RecursionError) as problem:
        raise FileFormatError(f"{path}: the header is not valid: {problem}") from None
    if not isinstance(header, dict):
        raise FileFormatError(f"{path}: the header is not a JSON object")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise FileFormatError(f"{path}: __metadata__ must map strings to strings")
    room = size - 8 - length
    entries = {name: _entry(path, name, entry, room) for name, entry in header.items()}
    covered = 0
    for name, (_, _, begin, end) in sorted(entries.items(), key=lambda item: item[1][2:]):
        if begin != covered:
            raise FileFormatError(f"{path}: tensor {_short(name)} begins at byte {begin}, but {covered} bytes are "
                                  f"taken so far; tensors must follow each other without gaps")
        covered = end
    if covered != room:
        raise FileFormatError(f"{path}: the tensors take {covered} bytes, but {room} follow the header")
    return entries, metadata, 8 + length, size


def _no_duplicates(pairs: list) -> dict:
    found: dict = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {_short(name)} appears twice")
        found[name] = value
    return found


def _entry(path: Any, name: str, entry: Any, room: int) -> tuple:
    """(dtype, shape, first byte, end) of one tensor."""
    def fault(text: str) -> FileFormatError:
        return FileFormatError(f"{path}: tensor {_short(name)}: {text}")

    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise fault(f"expected dtype, shape and data_offsets, got {str(entry)[:80]}")
    dtype = DTYPES.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if dtype is None:
        raise fault(f"dtype {str(entry['dtype'])[:80]!r} is not known; known are {', '.join(DTYPES)}")
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not isinstance(shape, list) or len(shape) > 64 or not all(_is_size(n) for n in shape):
        raise fault(f"shape {str(shape)[:80]} is not a list of sizes")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(_is_size(n) for n in offsets):
        raise fault(f"data_offsets {str(offsets)[:80]} is not a pair of positions")
    begin, end = offsets
    count = 1
    for n in shape:
        count *= n
    if not begin <= end <= room:
        raise fault(f"bytes {begin} to {end} do not lie within the {room} that the file has")
    if count * dtype.itemsize != end - begin:
        raise fault(f"shape {str(shape)[:80]} of {dtype.name} does not take the {end - begin} bytes that are given")
    return dtype, tuple(shape), begin, end


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62
