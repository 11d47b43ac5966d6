"""References of random numbers: Philox4x32-10 (Salmon et al. 2011) in plain Python, and the distributions of its words.

Normal numbers are the quantile function of SciPy at the probability that a word stands for. The operators interpolate
it with polynomials, so they agree to the tables' precision, not to the last bit; the bits are compared between devices.
"""
from __future__ import annotations

import numpy as np
from scipy import special

MASK = 0xFFFFFFFF


def philox(seed: int, block: int) -> list[int]:
    """The four 32-bit words of one block."""
    counter, key = [block & MASK, block >> 32 & MASK, 0, 0], [seed & MASK, seed >> 32 & MASK]
    for _ in range(10):
        first, second = counter[0] * 0xD2511F53, counter[2] * 0xCD9E8D57
        counter = [second >> 32 ^ counter[1] ^ key[0], second & MASK, first >> 32 ^ counter[3] ^ key[1], first & MASK]
        key = [key[0] + 0x9E3779B9 & MASK, key[1] + 0xBB67AE85 & MASK]
    return counter


def words(size: tuple, seed: int, offset: int, each: int = 1) -> list[int]:
    """A word for each element; with `each` = 2 two of them as one of 64 bits, the earlier one below."""
    count = each * int(np.prod(size))
    drawn = [word for block in range((count + 3) // 4) for word in philox(seed % (1 << 64), offset + block)][:count]
    return drawn if each == 1 else [low | high << 32 for low, high in zip(drawn[::2], drawn[1::2])]


def random_bits(size, seed, offset, dtype, device):
    return np.array(words(size, seed, offset, dtype.itemsize // 4), dtype=np.uint64).astype(dtype).reshape(size)


def uniform(size, seed, offset, dtype, device):
    if dtype == np.float64:
        return np.array([(word >> 11) * 2.0 ** -53 for word in words(size, seed, offset, 2)]).reshape(size)
    return np.array([(word >> 8) * 2.0 ** -24 for word in words(size, seed, offset)]).reshape(size)


def normal(size, seed, offset, dtype, device):
    """The lowest bit is the sign; the word with that bit set, over 2 to the bits, is the probability of both tails."""
    each = 2 if dtype == np.float64 else 1
    drawn = words(size, seed, offset, each)
    tails = np.array([(word | 1) * 2.0 ** (-32 * each) for word in drawn])
    distance = np.sqrt(2) * special.erfcinv(tails)
    return np.where([word & 1 for word in drawn], -distance, distance).reshape(size)


RANDOM = {"random_bits": random_bits, "uniform": uniform, "normal": normal}
