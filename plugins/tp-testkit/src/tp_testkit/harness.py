"""Running an operator on a device and comparing it with its reference and with its meta."""
from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

import tensorplay as tp
from tensorplay.library import (
    DATA_DEPENDENT,
    FLOAT,
    RANDOM,
    RETYPES,
    VIEW,
    Op,
    Tensor,
    generic_path,
    infer,
    unpack,
)

from .references import REFERENCES
from .samples import COMPLEX, FLOATING, on_device
from .tolerances import tolerance

PLACES = ("cpu", "cpu generic", "cpu decomposition", "refdev")


# ---- to NumPy --------------------------------------------------------------------------------------------------------
def widened(dtype: Any) -> np.dtype:
    """The NumPy dtype in which references compute."""
    if dtype.category == FLOATING:
        return np.dtype(np.float64)
    return np.dtype(np.complex128) if dtype.category == COMPLEX else np.dtype(dtype.name)


def array(x: Tensor) -> np.ndarray:
    """The elements of a tensor, read from its memory through the driver and by nothing else."""
    source = x.layout
    host = source.device.driver.copy_to_host(x.storage)
    flat = np.array(unpack(host, source.dtype, x.storage.nbytes // source.dtype.itemsize), dtype=widened(source.dtype))
    if source.numel == 0:
        return np.empty(source.shape, flat.dtype)
    strides = tuple([step * flat.itemsize for step in source.strides])
    return np.lib.stride_tricks.as_strided(flat[x.offset:], source.shape, strides).copy() \
        if min(source.strides, default=0) >= 0 else \
        np.ndarray(source.shape, flat.dtype, flat, x.offset * flat.itemsize, strides).copy()


def argument(value: Any) -> Any:
    """An operator's argument as its reference gets it."""
    if isinstance(value, Tensor):
        return array(value)
    if value.__class__ in (list, tuple) and any([isinstance(one, Tensor) for one in value]):
        return [argument(one) for one in value]
    if isinstance(value, tp.dtype):
        return widened(value)
    return None if isinstance(value, tp.device) else value


# ---- running ---------------------------------------------------------------------------------------------------------
def run(op: Op, sample: tuple, place: str) -> tuple:
    """The results on a place: a device, 'cpu generic' (without fused kernels) or 'cpu decomposition'. Operators that
    write into their arguments give those back."""
    device = tp.device(place.partition(" ")[0])
    args = on_device(sample, device)
    with generic_path() if place == "cpu generic" else nullcontext():
        call = op.rule("decomposition") if place == "cpu decomposition" else op.call
        with tp.no_grad():
            results = call(*args)
    if op.schema.mutates:
        written = [args[i] for i in op.schema.mutates]
        return tuple([t for value in written for t in (value if value.__class__ in (list, tuple) else (value,))])
    return results if isinstance(results, tuple) else tuple(results) if isinstance(results, list) else (results,)


def expected(op: Op, sample: tuple) -> tuple:
    """What the reference says, as arrays."""
    arguments = [argument(value) for value in sample]
    if op.promotion == FLOAT:  # NumPy would compute small integers in float16
        arguments = [one.astype(np.float64) if isinstance(one, np.ndarray) and one.dtype.kind in "bui" else one
                     for one in arguments]
    if RANDOM in op.tags or RETYPES in op.tags:  # here float32 and float64 are different numbers
        arguments = [np.dtype(value.name) if isinstance(value, tp.dtype) else
                     one.astype(value.dtype.name) if isinstance(value, Tensor) else one
                     for value, one in zip(sample, arguments)]
    with np.errstate(all="ignore"):
        results = REFERENCES[op.name](*arguments)
    return tuple([np.asarray(one) for one in (results if isinstance(results, tuple) else (results,))])


def describe(op: Op, sample: tuple, place: str) -> str:
    """The call in one line, for the message of a failure."""

    def text(value: Any) -> str:
        if isinstance(value, Tensor):
            steps = "" if value.layout.contiguous else f" strides {value.layout.strides}"
            return f"{value.dtype.name}{list(value.layout.shape)}{steps}"
        return f"[{', '.join(map(text, value))}]" if value.__class__ is list else repr(value)

    return f"{op.name}({', '.join(map(text, sample))}) on {place}"


# ---- comparing -------------------------------------------------------------------------------------------------------
def compare(op: Op, results: tuple, wanted: tuple, where: str) -> None:
    """Every result against its reference; AssertionError names the call, the place and the worst element."""
    assert len(results) == len(wanted), f"{where}: {len(results)} results, the reference gives {len(wanted)}"
    for number, (result, reference) in enumerate(zip(results, wanted)):
        got, dtype = array(result), result.dtype
        title = where if len(results) == 1 else f"{where}, result {number}"
        assert got.shape == reference.shape, f"{title}: shape {got.shape}, should be {reference.shape}"
        kinds = {"b": "b", "i": "iu", "u": "iu", "f": "f", "c": "c"}[reference.dtype.kind]
        assert got.dtype.kind in kinds, f"{title}: dtype {dtype.name}, the reference has {reference.dtype}"
        allowed = 0.0 if dtype.category < FLOATING else tolerance(op.name, dtype.to_real())
        _close(got, rounded(reference, dtype), allowed, title)


def rounded(reference: np.ndarray, dtype: Any) -> np.ndarray:
    """Infinite where the dtype overflows."""
    if dtype.category != FLOATING or dtype is tp.float64:
        return reference
    with np.errstate(all="ignore"):
        return np.where(np.abs(reference) > tp.finfo(dtype).max, np.copysign(np.inf, reference), reference)


def _close(got: np.ndarray, reference: np.ndarray, allowed: float, title: str) -> None:
    with np.errstate(all="ignore"):
        right = (got == reference) | (np.isnan(got) & np.isnan(reference)) if got.dtype.kind in "fc" \
            else got == reference
        if allowed:
            error = np.abs(got - reference) / np.maximum(np.abs(reference), 1.0)
            right |= error <= allowed
    if not np.all(right):
        at = tuple(int(i) for i in np.argwhere(~np.atleast_1d(right))[0])
        at = at if got.ndim else ()
        raise AssertionError(f"{title}: element {list(at)} is {got[at]!r}, should be {reference[at]!r} "
                             f"({np.count_nonzero(~right)} of {got.size} are wrong)")


def check(op: Op, sample: tuple, place: str) -> None:
    """One call on one place against the reference, and against what the meta says of it."""
    where = describe(op, sample, place)
    try:
        results = run(op, sample, place)
        compare_layouts(op, sample, results, where)
        compare(op, results, expected(op, sample), where)
    except AssertionError:
        raise
    except Exception as problem:
        if hasattr(problem, "add_note"):
            problem.add_note(where)
        raise


def compare_layouts(op: Op, sample: tuple, results: tuple, where: str) -> None:
    """Shape and dtype are those that the meta foretells; those of a view, strides too."""
    if DATA_DEPENDENT in op.tags or op.schema.mutates or (op.rule("meta") is None and not op.elementwise):
        return
    foretold = infer(op, sample)
    foretold = (foretold[0],) if VIEW in op.tags else foretold if isinstance(foretold, tuple) else (foretold,)
    assert len(foretold) == len(results), f"{where}: {len(results)} results, the meta says {len(foretold)}"
    for wanted, result in zip(foretold, results):
        got = result.layout
        assert got.shape == wanted.shape and got.dtype is wanted.dtype, f"{where} is {got}, the meta says {wanted}"
        assert VIEW not in op.tags or got.strides == wanted.strides, f"{where} is {got}, the meta says {wanted}"


def check_meta(op: Op, sample: tuple) -> None:
    """A call on the meta device gives tensors of that device, with the layouts that the meta foretells."""
    if DATA_DEPENDENT not in op.tags:
        where = describe(op, sample, "meta")
        results = run(op, sample, "meta")
        assert all([one.layout.device.type == "meta" for one in results]), where
        compare_layouts(op, sample, results, where)
