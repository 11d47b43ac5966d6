"""Prints the checksums (FNV-1a) that ``test_random.cpp`` expects of the kernels' normal numbers, from the plain Python
reference: 1e5 values, seed 2024, offset 3."""

from __future__ import annotations

import struct

from normal import FLOAT32, FLOAT64, bit_patterns, table
from random_numbers import normal32, normal64, philox, wide_words, words


def fnv(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def columns(layout, integer: str, real: str) -> list[list[float]]:
    patterns = bit_patterns(layout, table(layout)[0])
    return [[struct.unpack(real, struct.pack(integer, number))[0] for number in column] for column in patterns]


def main() -> None:
    print("philox", [hex(word) for word in philox(0x123456789ABCDEF0, 0x1FFFFFFFF)])
    single = columns(FLOAT32, "<I", "<f")
    print("float32", hex(fnv(b"".join(struct.pack("<f", normal32(word, single)) for word in words(2024, 3, 100_000)))))
    double = columns(FLOAT64, "<Q", "<d")
    print("float64", hex(fnv(b"".join(struct.pack("<d", normal64(w, double)) for w in wide_words(2024, 3, 100_000)))))


if __name__ == "__main__":
    main()
