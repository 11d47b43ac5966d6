"""Random numbers from Philox4x32-10 (Salmon et al. 2011): the same on every device, for any number of threads.

Element i of a draw is word i % 4 of block offset + i // 4 under the generator's seed. Normal numbers come from one word
each by the inverse distribution function, as piecewise polynomials with only * and +, so they are the same bits
everywhere too (the table is fitted in tools/vecmath).
"""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import (
    FACTORY,
    NONDIFFERENTIABLE,
    PRIMITIVE,
    RANDOM,
    ArgumentError,
    DTypeError,
    Generator,
    Layout,
    ShapeError,
    Tensor,
    ValueRangeError,
    as_device,
    as_dtype,
    default_generator,
    layout,
    op,
    shape_text,
)

from .creation import finish, shape_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TAGS = (FACTORY, NONDIFFERENTIABLE, RANDOM)
random_bits = op("random_bits(int[] size, int seed, int offset, dtype dtype, device device) -> Tensor",
                 tags=(*TAGS, PRIMITIVE),
                 doc="Random bits: a word of 32 for uint32 and int32, two of them, the earlier one below, for uint64 "
                     "and int64.")
uniform_op = op("uniform(int[] size, int seed, int offset, dtype dtype, device device) -> Tensor", tags=TAGS,
                doc="Uniform in [0, 1): the upper 24 bits of a word (float16: 11, bfloat16: 8), or 53 bits of two for "
                    "float64.")
normal_op = op("normal(int[] size, int seed, int offset, dtype dtype, device device) -> Tensor", tags=TAGS,
               doc="Standard normal from one word, or two for float64.")


def _random_meta(size: tuple, seed: int, offset: int, dtype: Any, device: Any) -> Layout:
    return layout(size, dtype, device)


@random_bits.meta
def _(size: tuple, seed: int, offset: int, dtype: Any, device: Any) -> Layout:
    if dtype not in (tp.uint32, tp.int32, tp.uint64, tp.int64):
        raise DTypeError(f"random_bits: dtype must be an integer of 32 or 64 bits, got {dtype.name}")
    return layout(size, dtype, device)


for _made in (uniform_op, normal_op):
    _made.meta(_random_meta)
random_bits.samples(lambda make: iter([((3, 5), 7, 0, tp.uint32, make.device), ((9,), 2 ** 40 + 3, 11, tp.int64,
                                                                              make.device)]))
for _made in (uniform_op, normal_op):
    _made.samples(lambda make: iter([((3, 5), 7, 0, tp.float32, make.device), ((9,), 2 ** 40 + 3, 11, tp.float64,
                                                                              make.device)]))


def _count(size: tuple) -> int:
    total = 1
    for n in size:
        total *= n
    return total


def _words(count: int, seed: int, offset: int, device: Any) -> Tensor:
    """`count` words as uint64 numbers below 2^32, from ten rounds on four columns."""
    blocks = (count + 3) // 4
    counter = tp.arange(blocks, dtype=tp.uint64, device=device) + offset
    low = 0xFFFFFFFF
    x = [tp.bitwise_and(counter, low), tp.floor_divide(counter, 1 << 32), tp.zeros_like(counter),
         tp.zeros_like(counter)]
    k0, k1 = seed & low, seed >> 32 & low
    for _ in range(10):
        first, second = x[0] * 0xD2511F53, x[2] * 0xCD9E8D57
        x = [tp.bitwise_xor(tp.bitwise_xor(tp.floor_divide(second, 1 << 32), x[1]), k0), tp.bitwise_and(second, low),
             tp.bitwise_xor(tp.bitwise_xor(tp.floor_divide(first, 1 << 32), x[3]), k1), tp.bitwise_and(first, low)]
        k0, k1 = (k0 + 0x9E3779B9) & low, (k1 + 0xBB67AE85) & low
    return tp.stack(x, 1).reshape(-1)[:count]


def _wide_words(count: int, seed: int, offset: int, device: Any) -> Tensor:
    """`count` 64-bit words; the earlier 32-bit word is the lower half."""
    pairs = _words(2 * count, seed, offset, device).reshape(count, 2)
    return pairs[:, 0] + pairs[:, 1] * (1 << 32)


@random_bits.decomposition
def _(size: tuple, seed: int, offset: int, dtype: Any, device: Any) -> Tensor:
    random_bits.op.rule("meta")(size, seed, offset, dtype, device)  # refuses other dtypes
    words = _wide_words if dtype.itemsize == 8 else _words
    return words(_count(size), seed % (1 << 64), offset, device).to(dtype).reshape(size)


@uniform_op.decomposition
def _(size: tuple, seed: int, offset: int, dtype: Any, device: Any) -> Tensor:
    seed %= 1 << 64
    if dtype is tp.float64:
        words = _wide_words(_count(size), seed, offset, device)
        return (tp.floor_divide(words, 1 << 11).to(tp.float64) * 2.0 ** -53).reshape(size)
    words = _words(_count(size), seed, offset, device)
    bits = {tp.float16: 11, tp.bfloat16: 8}.get(dtype, 24)  # more would round up to 1
    return (tp.floor_divide(words, 1 << (32 - bits)).to(tp.float32) * 2.0 ** -bits).to(dtype).reshape(size)


_tables: dict[tuple, list] = {}


def _columns(dtype: Any, device: Any) -> tuple:
    """(bits of a part, bits of the position, one tensor of coefficients for each power of t)."""
    from struct import pack, unpack

    if dtype is tp.float64:
        from . import _normal_table_f64 as table

        kind = "<Q", "<d"
    else:
        from . import _normal_table as table

        kind = "<I", "<f"
    key = (dtype, device)
    if key not in _tables:
        _tables[key] = [tp.tensor([unpack(kind[1], pack(kind[0], bits))[0] for bits in column], dtype=dtype,
                                  device=device) for column in table.COLUMNS]
    return table.PART_BITS, table.POSITION_BITS, _tables[key]


@normal_op.decomposition
def _(size: tuple, seed: int, offset: int, dtype: Any, device: Any) -> Tensor:
    compute = tp.float64 if dtype is tp.float64 else tp.float32
    width = 64 if compute is tp.float64 else 32
    words = (_wide_words if width == 64 else _words)(_count(size), seed % (1 << 64), offset, device)
    part_bits, position_bits, columns = _columns(compute, device)
    v = tp.bitwise_or(words, 1)
    octave = tp.zeros_like(v)
    for k in range(width):
        octave = octave + (v < (1 << k)).to(tp.uint64)
    rest = tp.bitwise_and(v * tp.pow(tp.full_like(v, 2), octave), (1 << (width - 1)) - 1)  # without the leading one
    part = tp.floor_divide(rest, 1 << (width - 1 - part_bits))
    position = tp.bitwise_and(tp.floor_divide(rest, 1 << (width - 1 - part_bits - position_bits)),
                              (1 << position_bits) - 1)
    t = (position.to(tp.int64) - (1 << (position_bits - 1))).to(compute)
    row = (octave * (1 << part_bits) + part).to(tp.int64)
    z = tp.index_select(columns[-1], 0, row)
    for column in reversed(columns[:-1]):
        z = z * t + tp.index_select(column, 0, row)
    z = tp.where(tp.bitwise_and(words, 1) != 0, -z, z)
    return z.to(dtype).reshape(size)


def draw(made: Any, size: tuple, dtype: Any, device: Any, generator: Any) -> Tensor:
    """One draw from an op, which moves the generator on by the blocks used."""
    generator = default_generator if generator is None else generator
    if not isinstance(generator, Generator):
        raise ArgumentError(f"generator must be a tensorplay.Generator, got {type(generator).__name__}")
    words = _count(size) * (2 if dtype.itemsize == 8 else 1)
    seed, offset = generator.take((words + 3) // 4)
    return made(size, seed - (1 << 64) if seed >= 1 << 63 else seed, offset, dtype, device)


def _floating(dtype: Any, name: str) -> Any:
    dtype = tp.get_default_dtype() if dtype is None else as_dtype(dtype)
    if dtype.category < 2:
        raise DTypeError(f"{name}: needs a floating point dtype, got {dtype.name}; randint draws integers")
    return dtype


def _complex_or(made: Any, size: tuple, dtype: Any, device: Any, generator: Any) -> Tensor:
    if dtype.is_complex:
        real, imag = (draw(made, size, dtype.to_real(), device, generator) for _ in range(2))
        return tp.complex(real, imag) if made is uniform_op else tp.complex(real * 0.5 ** 0.5, imag * 0.5 ** 0.5)
    return draw(made, size, dtype, device, generator)


def rand(*size: Any, generator: Any = None, dtype: Any = None, device: Any = None,
         requires_grad: bool = False) -> Tensor:
    """Uniform numbers in [0, 1).

    >>> import tensorplay as tp
    >>> _ = tp.manual_seed(0); a = tp.rand(3); _ = tp.manual_seed(0); (a == tp.rand(3)).all().item()
    True
    """
    shape, place = shape_of(size, "rand"), as_device(device)
    return finish(_complex_or(uniform_op, shape, _floating(dtype, "rand"), place, generator), requires_grad)


def randn(*size: Any, generator: Any = None, dtype: Any = None, device: Any = None,
          requires_grad: bool = False) -> Tensor:
    """Standard normal numbers.

    >>> import tensorplay as tp
    >>> tp.randn(2, 3).shape
    tensorplay.Size([2, 3])
    """
    shape, place = shape_of(size, "randn"), as_device(device)
    return finish(_complex_or(normal_op, shape, _floating(dtype, "randn"), place, generator), requires_grad)


def _wide_integers(size: tuple, device: Any, generator: Any) -> Tensor:
    """63 random bits as int64."""
    return tp.bitwise_and(draw(random_bits, size, tp.int64, device, generator), (1 << 63) - 1)


def randint(low: int, high: Any = None, size: Any = None, *, generator: Any = None, dtype: Any = None,
            device: Any = None, requires_grad: bool = False) -> Tensor:
    """Integers from low (0 if only high is given) to high - 1: `randint(high, size)` or `randint(low, high, size)`.

    >>> import tensorplay as tp
    >>> tp.randint(5, 6, (2,)).tolist()
    [5, 5]
    """
    if size is None:
        low, high, size = 0, low, high
    if not isinstance(low, int) or not isinstance(high, int) or size is None:
        raise ArgumentError(f"randint: expected randint(high, size) or randint(low, high, size), got low={low!r}, "
                            f"high={high!r}, size={size!r}")
    if high <= low:
        raise ValueRangeError(f"randint: high {high} must be above low {low}")
    shape = shape_of((size,), "randint")
    drawn = tp.remainder(_wide_integers(shape, as_device(device), generator), high - low) + low
    return finish(drawn.to(as_dtype(dtype) if dtype is not None else tp.int64), requires_grad)


def randperm(n: int, *, generator: Any = None, dtype: Any = None, device: Any = None) -> Tensor:
    """The numbers 0 to n - 1 in random order.

    >>> import tensorplay as tp
    >>> tp.randperm(4).sort().values.tolist()
    [0, 1, 2, 3]
    """
    if n < 0:
        raise ValueRangeError(f"randperm: n must not be negative, got {n}")
    order = tp.argsort(_wide_integers((n,), as_device(device), generator))
    return order if dtype is None else order.to(dtype)


def _like(function: Any) -> Any:
    def like(input: Tensor, *, generator: Any = None, dtype: Any = None, device: Any = None,  # noqa: A002
             requires_grad: bool = False) -> Tensor:
        return function(*input.layout.shape, generator=generator, dtype=dtype or input.dtype,
                        device=device or input.device, requires_grad=requires_grad) if input.layout.shape else \
            function((), generator=generator, dtype=dtype or input.dtype, device=device or input.device,
                     requires_grad=requires_grad)

    like.__name__ = like.__qualname__ = f"{function.__name__}_like"
    like.__doc__ = f"""`tp.{function.__name__}` with the shape, dtype and device of `input`.

    >>> import tensorplay as tp
    >>> tp.{function.__name__}_like(tp.zeros(2, 3)).shape
    tensorplay.Size([2, 3])
    """
    return like


rand_like, randn_like = _like(rand), _like(randn)


def randint_like(input: Tensor, low: int, high: int | None = None, *, generator: Any = None, dtype: Any = None,  # noqa: A002
                 device: Any = None) -> Tensor:
    """`tp.randint` with the shape, dtype and device of `input`.

    >>> import tensorplay as tp
    >>> tp.randint_like(tp.ones(2, 3), 0, 1).tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    low, high = (0, low) if high is None else (low, high)
    return randint(low, high, input.layout.shape, generator=generator, dtype=dtype or input.dtype,
                   device=device or input.device)


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None, dtype: Any = None,
           device: Any = None) -> Tensor:
    """Normal numbers with the given mean and standard deviation: numbers with a size, or tensors.

    >>> import tensorplay as tp
    >>> tp.normal(0.0, 1.0, (2, 3)).shape
    tensorplay.Size([2, 3])
    """
    if size is None:
        tensors = [v for v in (mean, std) if isinstance(v, Tensor)]
        if not tensors:
            raise ArgumentError("normal: give a size, or mean or std as a tensor")
        size = (mean + std).layout.shape if len(tensors) == 2 else tensors[0].layout.shape
        dtype, device = dtype or tensors[0].dtype, device or tensors[0].device
    return randn(size, generator=generator, dtype=dtype, device=device) * std + mean


def bernoulli(input: Tensor, p: float | None = None, *, generator: Any = None) -> Tensor:  # noqa: A002
    """1 with the probability that each element (or p) says, else 0.

    >>> import tensorplay as tp
    >>> tp.bernoulli(tp.tensor([0., 1.])).tolist()
    [0.0, 1.0]
    """
    drawn = rand_like(input.detach(), generator=generator)
    return (drawn < (input.detach() if p is None else p)).to(input.dtype)


def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Tensor:  # noqa: A002
    """Indices drawn with the (unnormalised) probabilities in each row of `input` [..., n].

    >>> import tensorplay as tp
    >>> tp.multinomial(tp.tensor([0., 1., 0.]), 1).tolist()
    [1]
    """
    if input.layout.ndim not in (1, 2) or input.dtype.category != 2:
        raise ShapeError(f"multinomial: expects floating point probabilities [n] or [rows, n], got "
                         f"{shape_text(input.layout.shape)} {input.dtype.name}")
    if num_samples < 1 or not replacement and num_samples > input.layout.shape[-1]:
        raise ValueRangeError(f"multinomial: cannot draw {num_samples} samples from {input.layout.shape[-1]} "
                              f"categories{'' if replacement else ' without replacement'}")
    weights = input.detach()
    if not weights.is_meta and not bool(tp.logical_and(weights >= 0, weights < float("inf")).all()):
        raise ValueRangeError("multinomial: probabilities must be finite and not negative")
    total = weights.sum(-1, True)
    if not weights.is_meta and not bool((total > 0).all()):
        raise ValueRangeError("multinomial: the probabilities of a row add up to 0")
    if replacement:
        steps = tp.cumsum(weights, -1)
        last = (weights > 0).to(tp.int64) * tp.arange(1, weights.layout.shape[-1] + 1, device=weights.device)
        drawn = rand(*weights.layout.shape[:-1], num_samples, generator=generator, dtype=weights.dtype,
                     device=weights.device) * steps[..., -1:]
        return tp.minimum(tp.searchsorted(steps, drawn, right=True), last.amax((-1,), True) - 1)
    waiting = -(1.0 - rand_like(weights, generator=generator)).log()  # the first of exponential clocks
    keys = tp.where(weights > 0, weights / waiting.clamp(min=tp.finfo(weights.dtype).tiny), -tp.ones_like(weights))
    return keys.argmax(-1, True) if num_samples == 1 else tp.topk(keys, num_samples)[1]


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:  # noqa: A002
    """In training, zero each element with probability p and scale the others by 1 / (1 - p) (Hinton et al. 2012).

    >>> import tensorplay as tp
    >>> tp.nn.functional.dropout(tp.ones(2), 0.5, training=False).tolist()
    [1.0, 1.0]
    """
    if not 0 <= p <= 1:
        raise ValueRangeError(f"dropout: p is a probability between 0 and 1, got {p}")
    if not training or p == 0:
        return input
    mask = (rand(input.layout.shape, device=input.device) >= p).to(input.dtype)
    scaled = input * (mask * (1 / (1 - p)) if p < 1 else mask * 0)
    return input.copy_(scaled) if inplace else scaled


# ---- in place -------------------------------------------------------------------------------------------------------


def _write(input: Tensor, values: Tensor) -> Tensor:  # noqa: A002
    return input.copy_(values)


def uniform_(input: Tensor, a: float = 0.0, b: float = 1.0, *, generator: Any = None) -> Tensor:  # noqa: A002
    """Fill with uniform numbers in [a, b).

    >>> import tensorplay as tp
    >>> tp.zeros(2).uniform_(5.0, 5.0).tolist()
    [5.0, 5.0]
    """
    if not a <= b:
        raise ValueRangeError(f"uniform_: the range must go from a low to a higher number, got {a} to {b}")
    drawn = rand_like(input.detach(), generator=generator)
    return _write(input, drawn if (a, b) == (0.0, 1.0) else drawn * (b - a) + a)


def normal_(input: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Tensor:  # noqa: A002
    """Fill with normal numbers.

    >>> import tensorplay as tp
    >>> tp.zeros(2).normal_(5.0, 0.0).tolist()
    [5.0, 5.0]
    """
    if not std >= 0:
        raise ValueRangeError(f"normal_: std must not be negative, got {std}")
    drawn = randn_like(input.detach(), generator=generator)
    return _write(input, drawn if (mean, std) == (0.0, 1.0) else drawn * std + mean)


def random_(input: Tensor, low: int = 0, high: int | None = None, *, generator: Any = None) -> Tensor:  # noqa: A002
    """Fill with integers from low to high - 1; without arguments, up to what the dtype holds exactly.

    >>> import tensorplay as tp
    >>> tp.ones(2).random_(0, 1).tolist()
    [0.0, 0.0]
    """
    if high is None and low == 0:
        dtype = input.dtype
        high = 2 if dtype is tp.bool else tp.iinfo(dtype).max if dtype.category == 1 else \
            2 ** {"float16": 11, "bfloat16": 8, "float32": 24}.get(dtype.name, 53) + 1
    low, high = (0, low) if high is None else (low, high)
    return _write(input, randint(low, high, input.layout.shape, generator=generator, device=input.device))


def bernoulli_(input: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:  # noqa: A002
    """Fill with 1 with probability p, else 0.

    >>> import tensorplay as tp
    >>> tp.zeros(2).bernoulli_(1.0).tolist()
    [1.0, 1.0]
    """
    drawn = rand(input.layout.shape, generator=generator, device=input.device)
    return _write(input, (drawn < p).to(input.dtype))


def exponential_(input: Tensor, lambd: float = 1.0, *, generator: Any = None) -> Tensor:  # noqa: A002
    """Fill with exponentially distributed numbers of rate lambd.

    >>> import tensorplay as tp
    >>> (tp.zeros(3).exponential_() > 0).tolist()
    [True, True, True]
    """
    return _write(input, -(1.0 - rand_like(input.detach(), generator=generator)).log() / lambd)


FUNCTIONS = ("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "normal", "bernoulli",
             "multinomial")
NN_FUNCTIONS = ("dropout",)
METHODS = ("bernoulli", "multinomial", "uniform_", "normal_", "random_", "bernoulli_", "exponential_")
