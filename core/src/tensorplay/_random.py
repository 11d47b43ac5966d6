"""Random state. Numbers come from Philox4x32-10 with the element's index as counter, so that a seed gives the same
numbers on every device, for any number of threads and any sharding; a Generator only counts what has been used."""
from __future__ import annotations

from _thread import allocate_lock

from ._device import as_device
from ._errors import ArgumentError, ValueRangeError
from ._op import held_over_fork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._device import Device

_lock = held_over_fork(allocate_lock())


class Generator:
    """A stream of random numbers: a 64-bit seed and the number of blocks (of four 32-bit words) drawn so far.

    >>> import tensorplay as tp
    >>> g = tp.Generator().manual_seed(7)
    >>> g.initial_seed()
    7
    """

    def __init__(self, device: Any = "cpu") -> None:
        self._device = device if device == "cpu" else as_device(device)
        self._seed = 0
        self._offset = 0

    @property
    def device(self) -> Device:
        """Where the generator's numbers are used."""
        return as_device(self._device)

    def manual_seed(self, seed: int) -> Generator:
        """Start over at `seed`."""
        self._seed, self._offset = check_seed(seed), 0
        return self

    def seed(self) -> int:
        """A seed from the operating system."""
        from os import urandom

        self.manual_seed(int.from_bytes(urandom(8), "little") >> 1)
        return self._seed

    def initial_seed(self) -> int:
        """The seed that the numbers started from."""
        return self._seed

    def take(self, blocks: int) -> tuple[int, int]:
        """(seed, first block) of the next `blocks` blocks."""
        with _lock:
            offset = self._offset
            self._offset += blocks
            return self._seed, offset

    def get_state(self) -> Any:
        """An int64 tensor [seed, offset] for `set_state`."""
        from ._creation import tensor
        from ._dtype import int64

        high = self._seed - (1 << 64) if self._seed >= 1 << 63 else self._seed
        return tensor([high, self._offset], dtype=int64, device="cpu")

    def set_state(self, state: Any) -> Generator:
        """Continue where a generator was when `get_state` gave this tensor."""
        values = state.tolist() if hasattr(state, "tolist") else None
        if not isinstance(values, list) or [type(value) for value in values] != [int, int] or values[1] < 0:
            raise ArgumentError(f"set_state takes the tensor that get_state returned, got {state!r}")
        self._seed, self._offset = values[0] % (1 << 64), values[1]
        return self

    def __reduce__(self) -> tuple:
        return _rebuild, (str(self._device), self._seed, self._offset)


def _rebuild(device: str, seed: int, offset: int) -> Generator:
    made = Generator(device)
    made._seed, made._offset = seed, offset
    return made


def check_seed(seed: Any) -> int:
    if isinstance(seed, float) and seed.is_integer():
        seed = int(seed)
    if not hasattr(seed, "__index__"):
        raise ArgumentError(f"manual_seed takes an int, got {seed!r}")
    seed = seed.__index__()
    if not -(1 << 63) <= seed < 1 << 64:
        raise ValueRangeError(f"a seed has 64 bits, {seed} does not fit")
    return seed % (1 << 64)


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Start the default generator at `seed`: the same numbers follow on every device and thread count."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Start the default generator at a seed from the operating system, and return it."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    """The state of the default generator, an int64 tensor for `set_rng_state`."""
    return default_generator.get_state()


def set_rng_state(state: Any) -> None:
    """Continue the default generator from a state.

    >>> import tensorplay as tp
    >>> state = tp.get_rng_state()
    >>> first = tp.rand(2).tolist()
    >>> tp.set_rng_state(state)
    >>> tp.rand(2).tolist() == first
    True
    """
    default_generator.set_state(state)
