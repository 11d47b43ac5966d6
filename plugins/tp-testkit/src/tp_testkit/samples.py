"""Example inputs: the `make` that an operator's samples are written with, and variants of a sample in other shapes,
memory layouts and dtypes."""
from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import tensorplay as tp
from tensorplay.library import Op, Tensor, layout, make_tensor

BOOL, INTEGER, FLOATING, COMPLEX = range(4)  # DType.category


class Make:
    """`make(*shape, low=-2, high=2, dtype=None)` is a tensor of random numbers; the same ones in every run."""

    def __init__(self, device: Any = "cpu", dtype: Any = None, seed: int = 0) -> None:
        self.device = tp.device(device)
        self.dtype = dtype or tp.float32
        self._random = random.Random(seed)

    def __call__(self, *shape: int, low: float = -2, high: float = 2, dtype: Any = None) -> Tensor:
        dtype = dtype or self.dtype
        count = _count(shape)
        values: list = [self._random.uniform(low, high) for _ in range(count)]
        if dtype.is_complex:
            values = [complex(value, self._random.uniform(low, high)) for value in values]
        elif dtype.category == INTEGER:
            values = [round(value) for value in values]
        return self._tensor(values, shape, dtype)

    def integers(self, shape: tuple, low: int, high: int, dtype: Any = None) -> Tensor:
        """Integers from low to high - 1."""
        return self._tensor([self._random.randrange(low, high) for _ in range(_count(shape))], shape, dtype or tp.int64)

    def permutation(self, shape: tuple, n: int) -> Tensor:
        """Numbers below n, all different along the last dimension."""
        rows = [self._random.sample(range(n), shape[-1]) for _ in range(_count(shape[:-1]))]
        return self._tensor([value for row in rows for value in row], shape, tp.int64)

    def values(self, values: list, dtype: Any = None) -> Tensor:
        """These numbers."""
        return tp.tensor(values, dtype=dtype or self.dtype, device=self.device)

    def bools(self, *shape: int) -> Tensor:
        return self._tensor([self._random.random() < 0.5 for _ in range(_count(shape))], shape, tp.bool)

    def _tensor(self, values: list, shape: tuple, dtype: Any) -> Tensor:
        return tp.tensor(values, dtype=dtype, device=self.device).reshape(tuple(shape))


def _count(shape: tuple) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


# ---- the samples of an operator --------------------------------------------------------------------------------------
def samples(op: Op, make: Make) -> list[tuple]:
    """Arguments in schema order: the operator's own samples, or for an elementwise one those that suit every such."""
    rule = op.rule("samples")
    if rule is not None:
        return [_bound(op, sample) for sample in rule(make)]
    return [_bound(op, sample) for sample in _elementwise(op, make)] if op.elementwise else []


def _bound(op: Op, sample: tuple) -> tuple:
    named = sample[-1] if sample and isinstance(sample[-1], dict) else {}
    return op.schema.bind(sample[:-1] if named else sample, named)


def _elementwise(op: Op, make: Make) -> Iterator[tuple]:
    count = len(op.schema.tensors)
    yield tuple([make(3, 4) for _ in range(count)])
    if count > 1:
        yield (make(3, 1, 4), make(2, 1), *[make(4) for _ in range(count - 2)])
        yield (make(3, 4), *[0.75 for _ in range(count - 1)])
        yield (*[1.25 for _ in range(count - 1)], make(3, 4))


def edge_shapes(op: Op, sample: tuple) -> Iterator[tuple[str, tuple]]:
    """An elementwise sample as 0-d tensors, tensors of size 1, and empty ones; values stay in the operator's domain."""
    tensors = [value for value in sample if isinstance(value, Tensor)]
    if not op.elementwise or any([value.layout.ndim == 0 or value.layout.numel == 0 for value in tensors]):
        return
    for name, change in (("0-d", lambda x: x[(0,) * x.layout.ndim]), ("size 1", lambda x: x[:1].reshape(-1)[:1]),
                         ("empty", lambda x: x[(..., slice(0, 0))])):
        yield name, tuple([change(value) if isinstance(value, Tensor) else value for value in sample])


# ---- memory layouts --------------------------------------------------------------------------------------------------
def transposed(x: Tensor) -> Tensor:
    """Column-major."""
    order = tuple(range(x.layout.ndim))[::-1]
    return x.permute(order).clone().permute(order)


def sliced(x: Tensor) -> Tensor:
    """Every second element of every second row of something larger."""
    wide = tp.full(tuple([2 * size for size in x.layout.shape]), 1, dtype=x.dtype, device=x.device)
    part = wide[tuple([slice(None, None, 2)] * x.layout.ndim)]
    part.copy_(x)
    return part


def offset(x: Tensor) -> Tensor:
    """Contiguous, but not at the beginning of its memory."""
    flat = tp.full((x.layout.numel + 3,), 1, dtype=x.dtype, device=x.device)
    part = flat[3:].reshape(x.layout.shape)
    part.copy_(x)
    return part


def reversed_(x: Tensor) -> Tensor:
    """Negative strides."""
    x = x.flip(tuple(range(x.layout.ndim)))
    for d in range(x.layout.ndim):
        x = tp.slice_backwards(x, d)
    return x


def repeated(x: Tensor) -> Tensor:
    """Rows that are one row: a stride of 0. Other values than x."""
    return x[:1].expand(x.layout.shape)


LAYOUTS = {"transposed": transposed, "sliced": sliced, "offset": offset, "negative step": reversed_,
           "broadcast": repeated}


# Matrices would become singular, and results of a forward operator would no longer be those of the other arguments.
NEVER_BROADCAST = ("scaled_dot_product_backward", "cholesky", "lu", "inv", "pinv", "solve", "det_forward",
                   "triangular_solve", "eig", "eigh", "svd", "qr")


def layouts(op: Op, sample: tuple) -> Iterator[tuple[str, tuple]]:
    """The sample with its tensors in other memory layouts. Indices and what is written to are never broadcast."""
    for name, change in LAYOUTS.items():
        def changed(value: Any, mutated: bool, name: str = name, change: Any = change) -> Any:
            if not isinstance(value, Tensor):
                return [changed(one, mutated) for one in value] if value.__class__ is list else value
            if name == "broadcast" and (mutated or op.name in NEVER_BROADCAST or value.dtype.category < FLOATING):
                return value
            return change(value) if value.layout.ndim and value.layout.numel else value

        yield name, tuple([changed(value, i in op.schema.mutates) for i, value in enumerate(sample)])


# ---- dtypes ----------------------------------------------------------------------------------------------------------
def in_dtype(sample: tuple, dtype: Any) -> tuple:
    """The sample with its floating point tensors in another dtype. As integers they are small and never 0."""

    def changed(value: Any) -> Any:
        if value.__class__ is list:
            return [changed(one) for one in value]
        if value is tp.float32 and dtype.category >= FLOATING:
            return dtype
        if not isinstance(value, Tensor) or value.dtype.category != FLOATING:
            return value
        numbers = [_number(number, dtype) for number in value.reshape(-1).tolist()]
        return tp.tensor(numbers, dtype=dtype, device=value.device).reshape(value.layout.shape)

    return tuple([changed(value) for value in sample])


def in_double(sample: tuple) -> tuple:
    """The sample with its complex64 tensors as complex128, of which gradients can be checked."""
    return tuple([value.to(tp.complex128) if isinstance(value, Tensor) and value.dtype is tp.complex64 else value
                  for value in sample])


def _number(number: float, dtype: Any) -> Any:
    if dtype.category == BOOL:
        return number > 0
    if dtype.category == INTEGER:
        whole = round(number * 2) or 1
        return whole if dtype.is_signed else abs(whole)
    return complex(number, number / 2 - 0.25) if dtype.category == COMPLEX else number


# ---- devices ---------------------------------------------------------------------------------------------------------
def on_device(value: Any, device: Any, memory: dict | None = None) -> Any:
    """The same argument on another device: its whole memory is copied, so offset, strides and sharing stay."""
    memory = {} if memory is None else memory
    if value.__class__ in (list, tuple):
        return value.__class__([on_device(one, device, memory) for one in value])
    if not isinstance(value, Tensor):
        return device if isinstance(value, tp.device) else value
    source = value.layout
    storage = memory.get(id(value.storage))
    if storage is None:
        storage = device.driver.allocate(value.storage.nbytes, device)
        if device.type != "meta":
            device.driver.copy_from_host(storage, source.device.driver.copy_to_host(value.storage))
        memory[id(value.storage)] = storage
    return make_tensor(storage, value.offset, layout(source.shape, source.dtype, device, source.strides))
