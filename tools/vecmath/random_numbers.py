"""The random number algorithms in plain Python: the reference for every device.

``normal32`` and ``normal64`` use the rendered tables and nothing that an array library lacks: integer shifts,
comparisons, a table lookup, and single float operations that round once each.
"""

from __future__ import annotations

import struct

MASK32 = 0xFFFFFFFF


def philox(seed: int, block: int) -> tuple[int, int, int, int]:
    """Philox4x32-10 of the counter (block lo, block hi, 0, 0) under the key (seed lo, seed hi)."""
    c0, c1, c2, c3 = block & MASK32, block >> 32 & MASK32, 0, 0
    k0, k1 = seed & MASK32, seed >> 32 & MASK32
    for _ in range(10):
        first, second = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = (second >> 32) ^ c1 ^ k0, second & MASK32, (first >> 32) ^ c3 ^ k1, first & MASK32
        k0, k1 = k0 + 0x9E3779B9 & MASK32, k1 + 0xBB67AE85 & MASK32
    return c0, c1, c2, c3


def words(seed: int, offset: int, count: int) -> list[int]:
    result: list[int] = []
    for block in range((count + 3) // 4):
        result.extend(philox(seed, offset + block))
    return result[:count]


def wide_words(seed: int, offset: int, count: int) -> list[int]:
    """64-bit words: the earlier 32-bit word is the lower half."""
    narrow = words(seed, offset, 2 * count)
    return [low | high << 32 for low, high in zip(narrow[::2], narrow[1::2])]


def single(value: float) -> float:
    """Rounded to float32. A sum or product of two float32 values, rounded to double first, rounds to the same value."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def uniform32(word: int) -> float:
    return (word >> 8) * 2.0**-24


def uniform64(word: int) -> float:
    return (word >> 11) * 2.0**-53


def locate(word: int, word_bits: int, part_bits: int, position_bits: int) -> tuple[int, int, int]:
    """(sign, row of the table, signed position) of a random word."""
    v = word | 1
    octave = word_bits - v.bit_length()  # leading zeros
    rest = (v << octave) & ((1 << (word_bits - 1)) - 1)  # without the leading one
    part = rest >> (word_bits - 1 - part_bits)
    position = (rest >> (word_bits - 1 - part_bits - position_bits)) & ((1 << position_bits) - 1)
    return word & 1, octave << part_bits | part, position - (1 << (position_bits - 1))


def normal32(word: int, columns: list[list[float]]) -> float:
    """columns[d][row]: the coefficient of t^d, exact float32 values."""
    sign, row, t = locate(word, 32, 4, 24)
    z = columns[-1][row]
    for column in reversed(columns[:-1]):
        z = single(single(z * t) + column[row])
    return -z if sign else z


def normal64(word: int, columns: list[list[float]]) -> float:
    sign, row, t = locate(word, 64, 2, 53)
    z = columns[-1][row]
    for column in reversed(columns[:-1]):
        z = z * float(t) + column[row]
    return -z if sign else z
