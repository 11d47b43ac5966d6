"""Random numbers: Philox's known answers, the same numbers on every device, thread count and path, and their shape."""
from __future__ import annotations

import copy
import math
import pickle
import threading

import numpy
import pytest

import tensorplay as tp
from tensorplay import library
from tensorplay._errors import ArgumentError, DTypeError, ValueRangeError
from tensorplay._op import OPS

pytest.importorskip("tp_cpu")
pytest.importorskip("tp_operators")


def philox(counter, key, rounds=10):
    """Philox4x32 as its paper (Salmon et al. 2011) states it."""
    x, k = list(counter), list(key)
    for _ in range(rounds):
        first, second = x[0] * 0xD2511F53, x[2] * 0xCD9E8D57
        x = [second >> 32 ^ x[1] ^ k[0], second & 0xFFFFFFFF, first >> 32 ^ x[3] ^ k[1], first & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return x


KNOWN = [  # the published vectors (Random123, kat_vectors): counter, key, result
    ([0] * 4, [0] * 2, [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]),
    ([0xffffffff] * 4, [0xffffffff] * 2, [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]),
    ([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0],
     [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]),
]


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_the_reference_gives_the_published_vectors(counter, key, expected):
    assert philox(counter, key) == expected


def words(count, seed, offset=0):
    blocks = [philox([block & 0xFFFFFFFF, block >> 32, 0, 0], [seed & 0xFFFFFFFF, seed >> 32])
              for block in range(offset, offset + -(-count // 4))]
    return [word for block in blocks for word in block][:count]


SEEDS = [(0, 0), (1, 0), (7, 3), (2 ** 32 - 1, 5), (2 ** 40 + 3, 2 ** 32 - 2), (2 ** 64 - 1, 11), (2 ** 63, 2 ** 33)]


@pytest.mark.parametrize(("seed", "offset"), SEEDS)
def test_bits_against_the_reference(seed, offset, place):
    tp.rand(1)  # loads the family
    bits = OPS["random_bits"].call
    signed = seed - (1 << 64) if seed >= 1 << 63 else seed
    expected = words(11, seed, offset)
    assert bits((11,), signed, offset, tp.uint32, place).tolist() == expected
    assert bits((2, 3), signed, offset, tp.uint32, place).tolist() == [expected[:3], expected[3:6]]
    wide = words(10, seed, offset)
    assert bits((5,), signed, offset, tp.uint64, place).tolist() == [low | high << 32 for low, high
                                                                    in zip(wide[::2], wide[1::2])]
    assert bits((0,), signed, offset, tp.uint32, place).tolist() == []
    with pytest.raises(DTypeError, match="random_bits: dtype must be an integer of 32 or 64 bits, got float32"):
        bits((1,), 0, 0, tp.float32, place)


@pytest.mark.parametrize("seed", [0, 7, 2 ** 40 + 3, 2 ** 64 - 1, -1])
def test_uniform_numbers_are_the_upper_bits(seed, place):
    expected = words(9, seed % 2 ** 64)
    tp.manual_seed(seed)
    assert tp.rand(9, device=place).tolist() == [(word >> 8) * 2.0 ** -24 for word in expected]
    tp.manual_seed(seed)
    assert tp.rand(3, 3, device=place, dtype=tp.float16).reshape(-1).tolist() == [
        (word >> 21) * 2.0 ** -11 for word in expected]
    tp.manual_seed(seed)
    assert tp.rand(9, device=place, dtype=tp.bfloat16).tolist() == [(word >> 24) * 2.0 ** -8 for word in expected]
    wide = words(8, seed % 2 ** 64)
    tp.manual_seed(seed)
    assert tp.rand(4, device=place, dtype=tp.float64).tolist() == [
        ((low | high << 32) >> 11) * 2.0 ** -53 for low, high in zip(wide[::2], wide[1::2])]


def test_normal_numbers_are_the_inverse_distribution_function():
    """One word each: its lowest bit the sign, the whole of it the probability of both tails."""
    special = pytest.importorskip("scipy.special")
    tp.manual_seed(3)
    found = tp.randn(5000, dtype=tp.float64).numpy()
    pairs = words(10000, 3)
    values = [low | high << 32 for low, high in zip(pairs[::2], pairs[1::2])]
    distance = math.sqrt(2) * special.erfcinv(numpy.array([(value | 1) * 2.0 ** -64 for value in values]))
    expected = numpy.where([value & 1 for value in values], -distance, distance)
    assert numpy.abs(found - expected).max() < 1e-10
    tp.manual_seed(3)
    single = tp.randn(5000).numpy()
    values = words(5000, 3)
    distance = math.sqrt(2) * special.erfcinv(numpy.array([(value | 1) * 2.0 ** -32 for value in values]))
    expected = numpy.where([value & 1 for value in values], -distance, distance)
    assert numpy.abs(single - expected).max() < 4e-7


DRAWS = [  # every function that draws
    lambda place: tp.rand(2, 37, device=place), lambda place: tp.randn(2, 37, device=place),
    lambda place: tp.rand(33, dtype=tp.float64, device=place),
    lambda place: tp.randn(33, dtype=tp.float64, device=place),
    lambda place: tp.randn(33, dtype=tp.float16, device=place),
    lambda place: tp.randn(5, dtype=tp.complex64, device=place),
    lambda place: tp.randint(-5, 100, (3, 11), device=place), lambda place: tp.randperm(19, device=place),
    lambda place: tp.bernoulli(tp.full((40,), 0.3, device=place)),
    lambda place: tp.multinomial(tp.ones(3, 4, device=place), 6, replacement=True),
    lambda place: tp.multinomial(tp.ones(3, 4, device=place), 2),
    lambda place: tp.empty(15, device=place).uniform_(-1, 1), lambda place: tp.empty(15, device=place).normal_(2, 3),
    lambda place: tp.empty(15, device=place).random_(10), lambda place: tp.empty(15, device=place).exponential_(),
    lambda place: tp.normal(1.0, 2.0, (6,), device=place), lambda place: tp.rand_like(tp.ones(3, device=place)),
    lambda place: tp.nn.functional.dropout(tp.ones(50, device=place), 0.4),
]


def draw_all(place):
    tp.manual_seed(1234)
    return [draw(place).tolist() for draw in DRAWS], tp.get_rng_state().tolist()


def close(found, expected):
    """Integers and draws of bits exactly, what went through a logarithm within two units in the last place."""
    (a, state), (b, other) = found, expected
    assert state == other, "every device uses up the same blocks"
    for one, two in zip(a, b):
        assert numpy.allclose(numpy.array(one), numpy.array(two), rtol=3e-7, atol=0)


def test_the_same_numbers_on_every_device_and_path(refdev):
    pytest.importorskip("tp_nn")
    cpu = tp.device("cpu")
    expected = draw_all(cpu)
    assert draw_all(cpu) == expected
    with library.generic_path():
        close(draw_all(cpu), expected)
    close(draw_all(refdev), expected)


@pytest.mark.parametrize("dtype", [tp.float32, tp.float64])
def test_uniform_and_normal_are_the_same_bits_everywhere(dtype, refdev):
    for draw in (tp.rand, tp.randn):
        tp.manual_seed(5)
        expected = draw(400, dtype=dtype).tolist()
        tp.manual_seed(5)
        assert draw(400, dtype=dtype, device=refdev).tolist() == expected
        with library.generic_path():
            tp.manual_seed(5)
            assert draw(400, dtype=dtype).tolist() == expected


def test_the_decompositions_give_the_kernels_bits():
    tp.rand(1)
    for name in ("random_bits", "uniform", "normal"):
        dtypes = (tp.uint32, tp.uint64) if name == "random_bits" else (tp.float32, tp.float64)
        for dtype in dtypes:
            args = ((5, 77), 2 ** 40 + 9, 2 ** 32 - 3, dtype, tp.device("cpu"))
            assert OPS[name].call(*args).tolist() == OPS[name].rules["decomposition"](*args).tolist()


def test_the_same_numbers_for_every_thread_count():
    before = tp.get_num_threads()
    results = []
    try:
        for count in (1, 2, 4):
            tp.set_num_threads(count)
            tp.manual_seed(99)
            results.append([tp.rand(300_001).numpy(), tp.randn(300_001).numpy(),
                            tp.rand(70_001, dtype=tp.float64).numpy(),
                            tp.randint(0, 1000, (100_001,)).numpy()])
    finally:
        tp.set_num_threads(before)
    for other in results[1:]:
        assert all([numpy.array_equal(a, b) for a, b in zip(results[0], other)])


def test_a_part_does_not_depend_on_the_whole(place):
    """Element i of a draw has counter offset + i // 4: a longer draw begins with the shorter one."""
    tp.manual_seed(3)
    long = tp.rand(40, device=place).tolist()
    tp.manual_seed(3)
    assert tp.rand(7, device=place).tolist() == long[:7]
    assert tp.rand(8, device=place).tolist() == long[8:16], "the next draw begins with the next block"


def test_two_draws_differ(place):
    tp.manual_seed(0)
    first, second = tp.rand(50, device=place), tp.rand(50, device=place)
    assert not set(first.tolist()) & set(second.tolist())


# ---- generators -----------------------------------------------------------------------------------------------------
def test_generators_are_independent():
    tp.manual_seed(5)
    expected = tp.rand(5).tolist()
    own = tp.Generator().manual_seed(5)
    tp.manual_seed(8)
    state = tp.get_rng_state().tolist()
    assert tp.rand(5, generator=own).tolist() == expected
    assert tp.get_rng_state().tolist() == state
    assert (own.initial_seed(), own.get_state().tolist(), own.device) == (5, [5, 2], tp.device("cpu"))
    assert tp.initial_seed() == 8


@pytest.mark.parametrize("seed", [0, 5, 2 ** 63 - 1, 2 ** 63, 2 ** 64 - 1, -1, numpy.int64(3), 7.0, True])
def test_states_are_saved_and_restored(seed):
    tp.manual_seed(seed)
    assert tp.initial_seed() == int(seed) % 2 ** 64
    tp.rand(11)
    state = tp.get_rng_state()
    assert (state.dtype, state.shape, state.device.type) == (tp.int64, (2,), "cpu")
    expected = tp.randn(6).tolist()
    tp.rand(3)
    tp.set_rng_state(state)
    assert tp.randn(6).tolist() == expected
    assert tp.Generator().set_state(state).initial_seed() == int(seed) % 2 ** 64
    with tp.device("meta"):
        assert tp.get_rng_state().device.type == "cpu"


def test_a_seed_from_the_system():
    first, second = tp.seed(), tp.seed()
    assert first != second
    assert tp.initial_seed() == second
    assert 0 <= first < 2 ** 63


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_generators_are_copied_with_their_state(again):
    own = tp.Generator().manual_seed(2 ** 63 + 1)
    tp.rand(9, generator=own)
    other = again(own)
    assert other is not own
    assert tp.rand(4, generator=other).tolist() == tp.rand(4, generator=own).tolist()


REFUSED = [  # (call, error, text)
    (lambda: tp.manual_seed(None), ArgumentError, "manual_seed takes an int, got None"),
    (lambda: tp.manual_seed("7"), ArgumentError, "manual_seed takes an int, got '7'"),
    (lambda: tp.manual_seed(0.5), ArgumentError, "manual_seed takes an int, got 0.5"),
    (lambda: tp.manual_seed(2 ** 64), ValueRangeError, "a seed has 64 bits, 18446744073709551616 does not fit"),
    (lambda: tp.manual_seed(-2 ** 63 - 1), ValueRangeError, "a seed has 64 bits"),
    (lambda: tp.set_rng_state(None), ArgumentError, "set_state takes the tensor that get_state returned, got None"),
    (lambda: tp.set_rng_state(tp.zeros(2)), ArgumentError, "set_state takes the tensor that get_state returned"),
    (lambda: tp.set_rng_state(tp.tensor([1, 2, 3])), ArgumentError,
     "set_state takes the tensor that get_state returned"),
    (lambda: tp.set_rng_state(tp.tensor([1, -2])), ArgumentError, "set_state takes the tensor that get_state returned"),
    (lambda: tp.rand(2, generator="x"), ArgumentError, "generator must be a tensorplay.Generator, got str"),
    (lambda: tp.Generator("nowhere"), library.DeviceError, "there is no device 'nowhere'"),
    (lambda: tp.rand(2, dtype=tp.int64), DTypeError, "rand: needs a floating point dtype, got int64"),
    (lambda: tp.randint(3, 3, (2,)), ValueRangeError, "randint: high 3 must be above low 3"),
    (lambda: tp.rand(-1), ValueRangeError, "rand: negative size -1 in shape [-1]"),
]


@pytest.mark.parametrize(("call", "error", "text"), REFUSED)
def test_refusals(call, error, text):
    tp.manual_seed(4)
    with pytest.raises(error) as caught:
        call()
    assert caught.value.message.startswith(text)
    assert tp.get_rng_state().tolist() == [4, 0], "a refused draw uses nothing up"


def test_threads_share_no_numbers():
    own, found = tp.Generator().manual_seed(1), []

    def work():
        for _ in range(100):
            found.append(own.take(3))

    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted([offset for _, offset in found]) == list(range(0, 1200, 3))


# ---- what the numbers look like -------------------------------------------------------------------------------------
def test_uniform_statistics():
    tp.manual_seed(0)
    count = 400_000
    for dtype in (tp.float32, tp.float64):
        x = tp.rand(count, dtype=dtype).numpy().astype("float64")
        assert 0 <= x.min()
        assert x.max() < 1
        assert abs(x.mean() - 0.5) < 5 * math.sqrt(1 / 12 / count)
        counts = numpy.histogram(x, 64, (0, 1))[0]
        chi2 = ((counts - count / 64) ** 2 / (count / 64)).sum()
        assert chi2 < 63 + 6 * math.sqrt(2 * 63)
        assert abs(numpy.corrcoef(x[:-1], x[1:])[0, 1]) < 5 / math.sqrt(count)


@pytest.mark.parametrize("dtype", [tp.float16, tp.bfloat16])
def test_small_floats_stay_below_one(dtype):
    tp.manual_seed(0)
    x = tp.rand(100_000, dtype=dtype)
    assert x.max().item() < 1
    assert abs(x.float().mean().item() - 0.5) < 0.01


def test_normal_statistics():
    tp.manual_seed(0)
    count = 400_000
    for dtype in (tp.float32, tp.float64):
        x = tp.randn(count, dtype=dtype).numpy().astype("float64")
        assert abs(x.mean()) < 5 / math.sqrt(count)
        assert abs(x.var() - 1) < 5 * math.sqrt(2 / count)
        assert abs((x ** 3).mean()) < 5 * math.sqrt(15 / count)
        assert abs((x ** 4).mean() - 3) < 5 * math.sqrt(96 / count)
        assert numpy.isfinite(x).all()
        for limit, share in ((1, 0.31731), (2, 0.04550), (3, 0.0027)):
            assert abs((abs(x) > limit).mean() - share) < 5 * math.sqrt(share / count)


def test_other_distributions():
    tp.manual_seed(0)
    count = 100_000
    drawn = tp.randint(0, 7, (count,)).numpy()
    assert numpy.abs(numpy.bincount(drawn, minlength=7) - count / 7).max() < 5 * math.sqrt(count / 7)
    assert abs(tp.bernoulli(tp.full((count,), 0.3)).mean().item() - 0.3) < 5 * math.sqrt(0.21 / count)
    assert sorted(tp.randperm(1000).tolist()) == list(range(1000))
    weights = tp.tensor([1.0, 0.0, 3.0, 6.0])
    shares = numpy.bincount(tp.multinomial(weights, count, replacement=True).numpy(), minlength=4) / count
    assert numpy.abs(shares - [0.1, 0, 0.3, 0.6]).max() < 0.01
    x = tp.empty(count).exponential_(2.0).numpy()
    assert abs(x.mean() - 0.5) < 0.01
    assert x.min() >= 0
