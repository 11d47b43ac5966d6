"""The NumPy kernels of the CPU, operator by operator and dtype by dtype, against NumPy called directly."""
from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest

import tensorplay as tp
import tp_cpu.numpy_index
from tensorplay.library import Op, Tensor, infer
from tp_cpu.numpy_arrays import bfloat16_bits, memory, store, values

INTEGERS = ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
EPSILON = {"float16": 2 ** -10, "bfloat16": 2 ** -7, "float32": 2 ** -23, "float64": 2 ** -52, "complex64": 2 ** -23,
           "complex128": 2 ** -52}


def kernel(name: str):
    return import_module(f"tp_cpu.{tp_cpu.numpy_index.MODULES[name]}").KERNELS[name]


def numbers(dtype: str, shape: tuple = (3, 4), low: float = -3.0, high: float = 3.0, seed: int = 0) -> Tensor:
    """Random numbers in memory with gaps and an offset, so that kernels have strides to read."""
    source = np.random.RandomState(seed)
    wide = (2 * shape[0] + 1, *shape[1:])
    real = source.uniform(low, high, wide)
    if dtype in COMPLEX:
        data = real + 1j * source.uniform(low, high, wide)
    elif dtype in INTEGERS:
        data = np.rint(np.abs(real) if dtype[0] == "u" else real).astype(np.int64)
    else:
        data = real > 0 if dtype == "bool" else real
    made = tp.tensor(data.reshape(-1).tolist(), dtype=getattr(tp, dtype)).reshape(wide)
    return made[1::2]


def find(name: str) -> Op:
    return getattr(tp.ops, name).op


def exact(x: Tensor) -> np.ndarray:
    """A tensor's values as NumPy numbers at least as wide."""
    name = x.dtype.name
    return np.array(x.tolist(), np.float64 if name in FLOATS else np.complex128 if name in COMPLEX else name).reshape(
        x.shape)


def close(got: Tensor, wanted: np.ndarray, ulps: float = 4) -> None:
    found = exact(got)
    assert found.shape == np.shape(wanted)
    if got.dtype.name in EPSILON:
        with np.errstate(all="ignore"):
            error = np.abs(found - wanted) / np.maximum(np.abs(wanted), 1.0)
        agree = (found == wanted) | (np.isnan(found) & np.isnan(wanted)) | (error <= ulps * EPSILON[got.dtype.name])
    else:
        agree = found == wanted
    assert np.all(agree), (got, wanted)


# ---- elementwise -----------------------------------------------------------------------------------------------------
UNARY = {
    "neg": (np.negative, INTEGERS + FLOATS + COMPLEX), "abs": (np.abs, INTEGERS + FLOATS + COMPLEX),
    "exp": (np.exp, FLOATS + COMPLEX), "log": (np.log, COMPLEX), "sqrt": (np.sqrt, COMPLEX),
    "sin": (np.sin, FLOATS + COMPLEX), "cos": (np.cos, FLOATS + COMPLEX), "tanh": (np.tanh, FLOATS + COMPLEX),
    "floor": (np.floor, INTEGERS + FLOATS), "ceil": (np.ceil, INTEGERS + FLOATS),
    "trunc": (np.trunc, INTEGERS + FLOATS), "round": (np.rint, INTEGERS + FLOATS),
    "sign": (np.sign, INTEGERS + FLOATS), "reciprocal": (lambda x: 1 / x, FLOATS + COMPLEX),
    "exp2": (lambda x: 2.0 ** x, FLOATS + COMPLEX), "expm1": (np.expm1, FLOATS + COMPLEX),
    "log1p": (np.log1p, COMPLEX), "log2": (np.log2, COMPLEX), "log10": (np.log10, COMPLEX),
    "rsqrt": (lambda x: 1 / np.sqrt(x), COMPLEX), "tan": (np.tan, COMPLEX), "sinh": (np.sinh, FLOATS + COMPLEX),
    "cosh": (np.cosh, FLOATS + COMPLEX), "asin": (np.arcsin, COMPLEX), "acos": (np.arccos, COMPLEX),
    "atan": (np.arctan, FLOATS + COMPLEX), "asinh": (np.arcsinh, FLOATS + COMPLEX), "acosh": (np.arccosh, COMPLEX),
    "atanh": (np.arctanh, COMPLEX), "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), FLOATS + COMPLEX),
    "bitwise_not": (np.invert, (*INTEGERS, "bool")), "logical_not": (lambda x: x == 0, ("bool", *INTEGERS, *COMPLEX)),
    "isnan": (np.isnan, FLOATS + COMPLEX), "isinf": (np.isinf, FLOATS + COMPLEX),
    "isfinite": (np.isfinite, FLOATS + COMPLEX), "conj": (np.conj, FLOATS + COMPLEX),
}


@pytest.mark.parametrize(("name", "dtype"), [(name, dtype) for name, (_, dtypes) in UNARY.items() for dtype in dtypes])
def test_unary(name: str, dtype: str) -> None:
    x = numbers(dtype)
    out = tp.empty(x.shape, dtype=infer(find(name), (x,)).dtype)
    kernel(name)(out, x)
    with np.errstate(all="ignore"):
        close(out, UNARY[name][0](exact(x)), 16)


BINARY = {
    "add": (np.add, (*INTEGERS, "bool", *FLOATS, *COMPLEX)), "sub": (np.subtract, INTEGERS + FLOATS + COMPLEX),
    "mul": (np.multiply, (*INTEGERS, "bool", *FLOATS, *COMPLEX)), "div": (np.divide, FLOATS + COMPLEX),
    "floor_div": (np.floor_divide, INTEGERS + ("float32", "float64")),
    "remainder": (np.remainder, INTEGERS + ("float64",)), "fmod": (np.fmod, INTEGERS + ("float64",)),
    "pow": (np.power, tuple([one for one in INTEGERS if one[0] == "u"]) + COMPLEX),
    "maximum": (np.maximum, INTEGERS + FLOATS), "minimum": (np.minimum, INTEGERS + FLOATS),
    "atan2": (np.arctan2, FLOATS), "eq": (np.equal, (*INTEGERS, *FLOATS, *COMPLEX)),
    "ne": (np.not_equal, (*INTEGERS, *FLOATS, *COMPLEX)), "lt": (np.less, INTEGERS + FLOATS),
    "le": (np.less_equal, INTEGERS + FLOATS), "gt": (np.greater, INTEGERS + FLOATS),
    "ge": (np.greater_equal, INTEGERS + FLOATS), "bitwise_and": (np.bitwise_and, (*INTEGERS, "bool")),
    "bitwise_or": (np.bitwise_or, (*INTEGERS, "bool")), "bitwise_xor": (np.bitwise_xor, (*INTEGERS, "bool")),
    "logical_and": (np.logical_and, (*INTEGERS, *COMPLEX)), "logical_or": (np.logical_or, (*INTEGERS, *COMPLEX)),
    "logical_xor": (np.logical_xor, (*INTEGERS, *COMPLEX)),
}
COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"}


@pytest.mark.parametrize(("name", "dtype"), [(name, dtype) for name, (_, dtypes) in BINARY.items() for dtype in dtypes])
def test_binary(name: str, dtype: str) -> None:
    x, y = numbers(dtype), numbers(dtype, low=1.0, high=4.0, seed=1)
    out = tp.empty(x.shape, dtype=tp.bool if name in COMPARISONS else x.dtype)
    kernel(name)(out, x, y.expand(x.shape))
    with np.errstate(all="ignore"):
        close(out, BINARY[name][0](exact(x), exact(y)), 16)


@pytest.mark.parametrize("name", ["floor_div", "remainder", "fmod"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_not_divided_by_zero(name: str, dtype: str) -> None:
    x = numbers(dtype)
    with pytest.raises(ZeroDivisionError, match=f"{name}: division by zero"):
        kernel(name)(tp.empty(x.shape, dtype=x.dtype), x, x * 0)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_out_of_the_bits(dtype: str) -> None:
    kind = getattr(tp, dtype)
    bits = 8 * kind.itemsize
    x = tp.tensor([1, 3, 64, 5], dtype=kind)
    count = tp.tensor([1, 0, bits, bits + 1], dtype=kind)
    out = tp.empty(4, dtype=kind)
    kernel("shift_left")(out, x, count)
    assert out.tolist() == [2, 3, 0, 0]
    kernel("shift_right")(out, x, count)
    assert out.tolist() == [0, 3, 0, 0]
    if kind.is_signed:
        kernel("shift_right")(out, -x, tp.tensor([1, 0, bits, -1], dtype=kind))
        assert out.tolist() == [-1, -3, -1, -1]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round"])
def test_rounding_keeps_large_integers(name: str, dtype: str) -> None:
    x = tp.tensor([tp.iinfo(getattr(tp, dtype)).max, 0, 7], dtype=getattr(tp, dtype))
    result = getattr(tp, name)(x)
    assert result.dtype is x.dtype and result.tolist() == x.tolist()


def test_where_and_products_of_three() -> None:
    x, y, z = (numbers("complex64", seed=i) for i in range(3))
    condition = numbers("bool")
    out = tp.empty(x.shape, dtype=tp.complex64)
    a, b, c = exact(x), exact(y), exact(z)
    for name, arguments, wanted in (
            ("where", (condition, x, y), np.where(exact(condition), a, b)), ("fma", (x, y, z), a * b + c),
            ("lerp", (x, y, z), a + c * (b - a)), ("addcmul", (x, y, z, 2), a + 2 * b * c),
            ("addcdiv", (x, y, z, 2), a + 2 * b / c)):
        kernel(name)(out, *arguments)
        close(out, wanted, 64)


@pytest.mark.parametrize("dtype", FLOATS)
def test_nextafter(dtype: str) -> None:
    kind = getattr(tp, dtype)
    inf, nan = float("inf"), float("nan")
    x = tp.tensor([1.0, 1.0, -1.0, -1.0, 0.0, 0.0, 2.0, nan, inf], dtype=kind)
    y = tp.tensor([2.0, 0.0, 0.0, -2.0, 1.0, -1.0, 2.0, 1.0, 0.0], dtype=kind)
    found = tp.nextafter(x, y).tolist()
    step = tp.finfo(kind).eps
    assert found[:4] == [1 + step, 1 - step / 2, -1 + step / 2, -1 - step]
    assert found[4] > 0 > found[5] and found[4] == -found[5] < tp.finfo(kind).tiny
    assert found[6] == 2.0 and found[7] != found[7] and found[8] == tp.finfo(kind).max


# ---- 16-bit floats ---------------------------------------------------------------------------------------------------
def test_bfloat16_is_rounded_to_even() -> None:
    x = np.array([1.0, 1 + 2 ** -8, 1 + 3 * 2 ** -8, -1 - 2 ** -8, np.inf, -np.inf, 3.4e38, 1e-40, 0.0], np.float32)
    made = tp.tensor(x.tolist(), dtype=tp.bfloat16)
    assert bfloat16_bits(x).tolist() == [word & 0xFFFF for word in made.view(tp.int16).tolist()]
    assert bfloat16_bits(np.array([np.nan], np.float32)).tolist() == [0x7FC0]
    assert values(made).tolist() == [float(one) for one in made.tolist()]


def test_views_share_memory_and_strides() -> None:
    x = tp.arange(24, dtype=tp.float64).reshape(4, 6)[1:, ::2].t()
    assert memory(x).tolist() == x.tolist()
    memory(x)[0, 0] = -5.0
    assert x[0, 0].item() == -5.0
    store(x, 2.0)
    assert x.tolist() == [[2.0] * 3] * 3
    assert memory(tp.empty(0, 3)).shape == (0, 3)


# ---- reductions and scans --------------------------------------------------------------------------------------------
REDUCED = ("uint16", "uint32", "uint64", "float16", "bfloat16", "complex64", "complex128", "bool", "float32", "int8")


@pytest.mark.parametrize("dtype", REDUCED)
@pytest.mark.parametrize("dim", [None, 0, -1, (0, 1), ()])
@pytest.mark.parametrize("keepdim", [False, True])
def test_sums(dtype: str, dim: object, keepdim: bool) -> None:
    x = numbers(dtype)
    axis = (0, 1) if dim in (None, ()) else dim
    result = tp.sum(x, dim, keepdim)
    close(result, np.sum(exact(x), axis, keepdims=keepdim), 8)
    out = tp.empty(result.shape, dtype=result.dtype)
    kernel("sum")(out, x, dim, keepdim, None)
    close(out, np.sum(exact(x), axis, keepdims=keepdim), 4)
    for name, function in (("any", np.any), ("all", np.all)):
        truth = tp.empty(result.shape, dtype=tp.bool)
        kernel(name)(truth, x, dim, keepdim)
        close(truth, function(exact(x) != 0, axis, keepdims=keepdim))
    if dtype in FLOATS + COMPLEX:
        kernel("mean")(out, x, dim, keepdim, None)
        close(out, np.mean(exact(x), axis, keepdims=keepdim), 4)


@pytest.mark.parametrize("dtype", [one for one in REDUCED if one not in COMPLEX])
@pytest.mark.parametrize("dim", [0, 1])
def test_extremes(dtype: str, dim: int) -> None:
    x = numbers(dtype)
    for name, function in (("amax", np.max), ("amin", np.min), ("argmax", np.argmax), ("argmin", np.argmin)):
        wanted = function(exact(x), dim)
        out = tp.empty(wanted.shape, dtype=tp.int64 if name[:3] == "arg" else x.dtype)
        kernel(name)(out, x, dim if name[:3] == "arg" else (dim,), False)
        close(out, wanted)


@pytest.mark.parametrize("dtype", REDUCED)
@pytest.mark.parametrize("dim", [0, -1])
def test_running_sums_and_products(dtype: str, dim: int) -> None:
    x = numbers(dtype)
    for name, function in (("cumsum", np.cumsum), ("cumprod", np.cumprod)):
        out = tp.empty(x.shape, dtype=tp.int64 if dtype not in FLOATS + COMPLEX else x.dtype)
        kernel(name)(out, x, dim, None)
        wide = exact(x) if dtype in FLOATS + COMPLEX else exact(x).astype(np.int64)
        close(out, function(wide, dim), 8)


def test_running_extremes_take_the_last_of_equal_ones_and_nan() -> None:
    nan = float("nan")
    x = tp.tensor([[1.0, 3.0, 3.0, 2.0, nan, 9.0]])
    highest, where = tp.cummax(x, 1)
    assert highest[0, :4].tolist() == [1, 3, 3, 3] and where.tolist() == [[0, 1, 2, 2, 4, 4]]
    assert bool(tp.isnan(highest[0, 4:]).all())
    lowest, where = tp.cummin(x, 1)
    assert lowest[0, :4].tolist() == [1, 1, 1, 1] and where.tolist() == [[0, 0, 0, 0, 4, 4]]


@pytest.mark.parametrize("dtype", ["bool", *COMPLEX, "uint32", "float16", "bfloat16"])
def test_matmul(dtype: str) -> None:
    x, y = numbers(dtype, (3, 4)), numbers(dtype, (4, 2), seed=3)
    out = tp.empty(3, 2, dtype=x.dtype)
    kernel("matmul")(out, x, y)
    close(out, exact(x) @ exact(y), 16)


# ---- indexing --------------------------------------------------------------------------------------------------------
MOVED = ("bool", "uint16", "uint32", "uint64", "float16", "bfloat16", "complex64", "complex128", "float32", "int8")


@pytest.mark.parametrize("dtype", MOVED)
def test_gather_and_scatter(dtype: str) -> None:
    x, source = numbers(dtype, (3, 5)), numbers(dtype, (3, 4), seed=1)
    index = tp.tensor([[4, 0, 1, 2], [0, 1, 2, 3], [3, 3, 3, 3]])
    at = np.array(index.tolist())
    out = tp.empty(3, 4, dtype=x.dtype)
    kernel("gather")(out, x, 1, index)
    close(out, np.take_along_axis(exact(x), at, 1), 0)
    written, added = exact(x).copy(), exact(x).copy()
    np.put_along_axis(written[:2], at[:2], exact(source)[:2], 1)
    np.add.at(added, (np.arange(3)[:, None], at), exact(source))
    out = tp.empty(3, 5, dtype=x.dtype)
    kernel("scatter")(out, x, 1, index[:2], source[:2], "set")
    close(out[:2], written[:2], 0)
    kernel("scatter")(out, x, 1, index, source, "add")
    close(out, added, 8)


@pytest.mark.parametrize("dtype", [one for one in MOVED if one not in (*COMPLEX, "bool")])
@pytest.mark.parametrize(("mode", "function"), [("mul", np.multiply), ("max", np.maximum), ("min", np.minimum)])
def test_scatter_reduce(dtype: str, mode: str, function: np.ufunc) -> None:
    x, source = numbers(dtype, (3, 5)), numbers(dtype, (3, 4), seed=1)
    index = tp.tensor([[4, 0, 1, 0], [0, 1, 1, 3], [3, 2, 3, 4]])
    out = tp.empty(3, 5, dtype=x.dtype)
    kernel("scatter_reduce")(out, x, 1, index, source, mode)
    wanted = exact(x).copy()
    function.at(wanted, (np.arange(3)[:, None], np.array(index.tolist())), exact(source))
    close(out, wanted, 8)


@pytest.mark.parametrize("dtype", MOVED)
def test_tensors_as_indices(dtype: str) -> None:
    x = numbers(dtype, (4, 5, 3))
    i, j = tp.tensor([[0], [-1]]), tp.tensor([1, 2, -5])
    a, b = np.array(i.tolist()), np.array(j.tolist())
    close(x[i, j], exact(x)[a, b], 0)
    close(x[:, j], exact(x)[:, b], 0)
    close(x[i[:, 0], :, j[:2]], exact(x)[a[:, 0], :, b[:2]], 0)
    with pytest.raises(IndexError, match=r"index 4 is out of range for dimension 0 of size 4"):
        x[tp.tensor([4])]
    y = x.clone()
    y[tp.tensor([3, 1])] = x[tp.tensor([0, 0])]
    wanted = exact(x).copy()
    wanted[[3, 1]] = exact(x)[[0, 0]]
    close(y, wanted, 0)


@pytest.mark.parametrize("dtype", [one for one in MOVED if one not in COMPLEX])
@pytest.mark.parametrize("descending", [False, True])
def test_sorting_is_stable(dtype: str, descending: bool) -> None:
    x = numbers(dtype, (3, 20), -2, 2)
    found, where = (tp.empty(3, 20, dtype=x.dtype), tp.empty(3, 20, dtype=tp.int64))
    kernel("sort")((found, where), x, 1, descending, True)
    rows = exact(x).astype(np.float64)
    order = np.argsort(-rows if descending else rows, 1, kind="stable")
    assert where.tolist() == order.tolist()
    close(found, np.take_along_axis(exact(x), order, 1), 0)
    best, places = tp.empty(3, 4, dtype=x.dtype), tp.empty(3, 4, dtype=tp.int64)
    kernel("topk")((best, places), x, 4, 1, descending, True)
    close(best, np.take_along_axis(exact(x), order[:, :4], 1), 0)


def test_nan_sorts_as_the_largest() -> None:
    x = tp.tensor([2.0, float("nan"), 1.0], dtype=tp.float16)
    found, where = tp.empty(3, dtype=tp.float16), tp.empty(3, dtype=tp.int64)
    kernel("sort")((found, where), x, 0, True, True)
    assert where.tolist() == [1, 0, 2]
    kernel("sort")((found, where), x, 0, False, True)
    assert where.tolist() == [2, 0, 1]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint16", "int64"])
@pytest.mark.parametrize("right", [False, True])
def test_searchsorted(dtype: str, right: bool) -> None:
    rows = tp.tensor([[1, 3, 3, 7], [0, 2, 4, 6]], dtype=getattr(tp, dtype))
    wanted = tp.tensor([[3, 0, 9], [4, 4, 5]], dtype=getattr(tp, dtype))
    side = "right" if right else "left"
    found = tp.searchsorted(rows, wanted, right=right)
    assert found.tolist() == [np.searchsorted(a, b, side).tolist() for a, b in zip(rows.tolist(), wanted.tolist())]
    assert tp.searchsorted(rows[0], wanted, right=right).tolist() == \
        np.searchsorted(rows[0].tolist(), wanted.tolist(), side).tolist()
    assert tp.searchsorted(rows[:, :0], wanted).tolist() == [[0] * 3] * 2
    assert tp.searchsorted(rows[:0], wanted[:0]).shape == (0, 3)


@pytest.mark.parametrize("dtype", MOVED)
def test_nonzero(dtype: str) -> None:
    x = numbers(dtype, (3, 4, 2), -1, 1)
    assert tp.nonzero(x).tolist() == np.argwhere(exact(x)).tolist()
    assert tp.nonzero(x[0, 0, 0]).shape[1] == 0 and tp.nonzero(x[:0]).shape == (0, 3)


# ---- creation and casts ----------------------------------------------------------------------------------------------
def test_creation_and_casts() -> None:
    assert tp.full((2,), 1 + 2j).tolist() == [1 + 2j] * 2
    assert tp.arange(3, dtype=tp.uint16).tolist() == [0, 1, 2]
    out = tp.empty(3, dtype=tp.uint64)
    kernel("iota")(out, 3, 2 ** 63, 5, tp.uint64, out.device)
    assert out.tolist() == [2 ** 63, 2 ** 63 + 5, 2 ** 63 + 10]
    z = tp.tensor([1 + 2j, 2j, 0j])
    assert z.to(tp.bool).tolist() == [True, True, False] and z.to(tp.float32).tolist() == [1, 0, 0]
    assert z.to(tp.bfloat16).to(tp.complex128).tolist() == [1, 0, 0]


# ---- linear algebra --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_triangular_systems_beyond_one_block(upper: bool, dtype: str) -> None:
    size = 150
    matrix = numbers(dtype, (size, size)) * 0.01 + tp.eye(size, dtype=getattr(tp, dtype))
    other = numbers(dtype, (size, 3), seed=2)
    out = tp.empty(size, 3, dtype=other.dtype)
    for unitriangular in (False, True):
        kernel("triangular_solve")(out, matrix, other, upper, unitriangular)
        part = np.triu(exact(matrix)) if upper else np.tril(exact(matrix))
        if unitriangular:
            np.fill_diagonal(part, 1)
        close(out, np.linalg.solve(part, exact(other)), 64)


@pytest.mark.parametrize("shape", [(5, 5), (2, 7, 4), (3, 4, 6), (0, 3, 3), (0, 0), (2, 0, 3)])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_lu(shape: tuple, dtype: str) -> None:
    x = numbers(dtype, shape) if shape[0] else tp.empty(shape, dtype=getattr(tp, dtype))
    p, lower, upper = tp.linalg.lu(x)
    close(p @ lower @ upper, exact(x), 64)
    packed, pivots = tp.linalg.lu_factor(x)
    assert packed.shape == x.shape and pivots.dtype is tp.int32 and pivots.shape == (*shape[:-2], min(shape[-2:]))


def test_matrices_without_elements() -> None:
    assert tp.linalg.det(tp.empty(2, 0, 0)).tolist() == [1.0, 1.0]
    assert tp.linalg.inv(tp.empty(0, 3, 3)).shape == (0, 3, 3)
    assert tp.linalg.svd(tp.empty(3, 0)).U.tolist() == np.eye(3).tolist()
    assert tp.linalg.qr(tp.empty(3, 0), "complete").Q.tolist() == np.eye(3).tolist()
    assert tp.linalg.eigh(tp.empty(0, 0)).eigenvalues.shape == (0,)
    assert tp.linalg.solve(tp.empty(0, 0), tp.empty(0, 2)).shape == (0, 2)


def test_what_has_no_solution() -> None:
    singular = tp.tensor([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 4.0]]])
    for call in (tp.linalg.inv, lambda x: tp.linalg.solve(x, tp.ones(2, 2))):
        with pytest.raises(ValueError, match=r"matrix \[1\] of the batch is singular.*pinv"):
            call(singular)
    indefinite = tp.tensor([[4.0, 0.0, 0.0], [0.0, 1.0, 2.0], [0.0, 2.0, 1.0]])
    with pytest.raises(ValueError, match=r"not positive definite.*order 3"):
        tp.linalg.cholesky(indefinite)
    assert tp.linalg.cholesky_ex(indefinite).info.item() == 3
    with pytest.raises(ValueError, match=r"eig: .*finite"):
        tp.linalg.eig(tp.full((2, 2), float("nan")))


# ---- the table -------------------------------------------------------------------------------------------------------
def test_index_names_the_kernels_there_are() -> None:
    for module in set(tp_cpu.numpy_index.MODULES.values()):
        listed = {name for name, place in tp_cpu.numpy_index.MODULES.items() if place == module}
        assert listed == set(import_module(f"tp_cpu.{module}").KERNELS), module
    for name, module in tp_cpu.numpy_index.DECOMPOSITIONS.items():
        assert name in import_module(f"tp_cpu.{module}").DECOMPOSITIONS


def test_numpy_is_imported_when_a_kernel_needs_it() -> None:
    program = ("import sys, tensorplay as tp; (tp.ones(2) + 1).sum().item(); assert 'numpy' not in sys.modules; "
               "(tp.ones(2, dtype=tp.complex64) + 1).sum(); assert 'numpy' in sys.modules")
    subprocess.run([sys.executable, "-c", program], check=True)
