"""The native layer: plans, calls, out forms, views; and that nothing given to it crashes."""
from __future__ import annotations

import gc
import struct

import pytest

import tensorplay as tp
from tensorplay.library import (
    COMPARE,
    ELEMENTWISE,
    FACTORY,
    FLOAT,
    NONDIFFERENTIABLE,
    VIEW,
    DivisionByZeroError,
    Layout,
    Tensor,
    generic_kernel,
    layout,
    make_tensor,
    op,
)
from tp_cpu import _native

CPU = tp.device("cpu")
GENERIC = tp._resolve.GENERIC  # the suite runs with TP_GENERIC=1 too
DRIVER = CPU.driver


def native_op(schema, native, tags=(), promotion="same", meta=None, numpy=None):
    """An operator of this test with the native kernel of another name."""
    made = op(f"cpu_test::{schema}", tags=tags, promotion=promotion, replace=True)
    if meta is not None:
        made.meta(meta)
    made.kernel("cpu")(_native.Kernel(made.op.name, numpy, native))
    return made


def reduced(x, dim, keepdim, dtype):
    dim = (dim,) if isinstance(dim, int) else dim
    kept = () if dim is None else tuple([n for i, n in enumerate(x.shape) if i - x.ndim not in dim and i not in dim])
    return layout(kept, dtype or x.dtype, x.device)


def matmul_meta(x, y):
    if x.shape[1] != y.shape[0]:
        raise tp._errors.ShapeError(f"matmul: inner sizes {x.shape[1]} and {y.shape[0]} differ")
    return layout((x.shape[0], y.shape[1]), x.dtype, x.device)


add = native_op("add(Operand input, Operand other) -> Tensor", "add", (ELEMENTWISE,))
lt = native_op("lt(Operand input, Operand other) -> Tensor", "lt", (ELEMENTWISE,), COMPARE)
div = native_op("div(Operand input, Operand other) -> Tensor", "div", (ELEMENTWISE,), FLOAT)
floor_div = native_op("floor_div(Operand input, Operand other) -> Tensor", "floor_div", (ELEMENTWISE,))
exp = native_op("exp(Operand input) -> Tensor", "exp", (ELEMENTWISE,), FLOAT)
gelu = native_op("gelu(Operand input, str approximate='none') -> Tensor", "gelu", (ELEMENTWISE,), FLOAT)
addcmul = native_op("addcmul(Operand input, Operand tensor1, Operand tensor2, Number value=1) -> Tensor", "addcmul",
                    (ELEMENTWISE,))
total = native_op("sum(Tensor input, int[]? dim=None, bool keepdim=False, dtype? dtype=None) -> Tensor", "sum",
                  meta=reduced)
matmul = native_op("matmul(Tensor input, Tensor other) -> Tensor", "matmul", meta=matmul_meta)
embedding = native_op("embedding(Tensor weight, Tensor indices) -> Tensor", "embedding",
                      meta=lambda w, i: layout(i.shape + w.shape[1:], w.dtype, w.device))
cat = native_op("cat(Tensor[] tensors, int dim=0) -> Tensor", "cat", meta=lambda ts, dim: layout(
    (sum([t.shape[0] for t in ts]), *ts[0].shape[1:]), ts[0].dtype, ts[0].device))
full = native_op("full(int[] size, Number value, dtype dtype, device device) -> Tensor", "full", (FACTORY,),
                 meta=lambda size, value, dtype, device: layout(tuple(size), dtype, device))
rows = native_op("rms_norm_forward(Tensor input, int[] normalized_shape, Tensor? weight, float eps) -> "
                 "(Tensor, Tensor)", "rms_norm_forward",
                 meta=lambda x, n, w, eps: (x.dense(), layout(x.shape[:-1], x.dtype, x.device)))
sgd = native_op("sgd_step(Tensor(a!)[] params, Tensor[] grads, Tensor(a!)[] buffers, float lr, float momentum, "
                "float dampening, float weight_decay, bool nesterov, bool maximize, bool first) -> ()", "sgd_step",
                (NONDIFFERENTIABLE,), meta=lambda *args: None)


def kernel_of(function):
    return function.op.kernels["cpu"]


def strided(values, shape, strides, offset=0, dtype=tp.float32):
    base = tp.tensor(values, dtype=dtype)
    return make_tensor(base.storage, offset, layout(shape, dtype, CPU, strides))


SQUARE = [[1.0, 2.0], [3.0, 4.0]]
X = tp.tensor(SQUARE)
TRANSPOSED = strided([1.0, 3.0, 2.0, 4.0], (2, 2), (1, 2))
SLICED = strided([0.0, 1.0, 0.0, 2.0, 0.0, 3.0, 0.0, 4.0], (2, 2), (4, 2), 1)
REPEATED = strided([1.0, 2.0], (2, 2), (0, 1))
INTS = tp.tensor([[1, 2], [3, 4]])

CALLS = [  # function, arguments, result, dtype
    (add, (X, X), [[2, 4], [6, 8]], tp.float32),
    (add, (X, tp.tensor([10.0, 20.0])), [[11, 22], [13, 24]], tp.float32),
    (add, (tp.tensor([[10.0], [20.0]]), X), [[11, 12], [23, 24]], tp.float32),
    (add, (X, TRANSPOSED), [[2, 4], [6, 8]], tp.float32),
    (add, (SLICED, REPEATED), [[2, 4], [4, 6]], tp.float32),
    (add, (X, 1), [[2, 3], [4, 5]], tp.float32),
    (add, (2.5, X), [[3.5, 4.5], [5.5, 6.5]], tp.float32),
    (add, (X, True), [[2, 3], [4, 5]], tp.float32),
    (add, (INTS, 1), [[2, 3], [4, 5]], tp.int64),
    (add, (INTS, 0.5), [[1.5, 2.5], [3.5, 4.5]], tp.float32),
    (add, (INTS, X), [[2, 4], [6, 8]], tp.float32),
    (add, (tp.tensor([1, 2], dtype=tp.int32), tp.tensor([1, 2])), [2, 4], tp.int64),
    (add, (tp.tensor([1.0], dtype=tp.float64), X), [[2, 3], [4, 5]], tp.float64),
    (add, (tp.tensor(1.0, dtype=tp.float64), X), [[2, 3], [4, 5]], tp.float32),
    (add, (tp.tensor([1.5], dtype=tp.float16), 1), [2.5], tp.float16),
    (add, (tp.tensor([1.5], dtype=tp.bfloat16), 1.0), [2.5], tp.bfloat16),
    (add, (tp.tensor([250], dtype=tp.uint8), 5), [255], tp.uint8),
    (add, (tp.tensor([250], dtype=tp.uint8), -1), [249], tp.uint8),
    (add, (tp.tensor([]), tp.tensor([])), [], tp.float32),
    (lt, (INTS, 2.5), [[True, True], [False, False]], tp.bool),
    (div, (INTS, 2), [[0.5, 1], [1.5, 2]], tp.float32),
    (floor_div, (tp.tensor([-7, 7]), 2), [-4, 3], tp.int64),
    (exp, (tp.tensor([[0, 0]]),), [[1, 1]], tp.float32),
    (gelu, (tp.tensor([0.0]), "tanh"), [0], tp.float32),
    (addcmul, (X, X, X, 2), [[3, 10], [21, 36]], tp.float32),
    (total, (X, None, False, None), 10, tp.float32),
    (total, (X, (0,), False, None), [4, 6], tp.float32),
    (total, (X, [-1], False, None), [3, 7], tp.float32),
    (total, (X, 1, False, None), [3, 7], tp.float32),
    (total, (TRANSPOSED, (1,), False, None), [3, 7], tp.float32),
    (total, (INTS, None, False, tp.int64), 10, tp.int64),
    (matmul, (X, X), [[7, 10], [15, 22]], tp.float32),
    (matmul, (TRANSPOSED, SLICED), [[7, 10], [15, 22]], tp.float32),
    (embedding, (X, tp.tensor([1, 0, 1])), [[3, 4], [1, 2], [3, 4]], tp.float32),
    (cat, ([X, TRANSPOSED, X], 0), SQUARE * 3, tp.float32),
    (full, ((2, 2), 7, tp.float32, CPU), [[7, 7], [7, 7]], tp.float32),
    (full, ([2], 1.5, tp.float64, CPU), [1.5, 1.5], tp.float64),
    (full, ((), True, tp.bool, CPU), True, tp.bool),
]


@pytest.mark.parametrize("case", range(len(CALLS)))
def test_calls_and_their_generic_form(case):
    function, args, expected, dtype = CALLS[case]
    kernel = kernel_of(function)
    for _ in range(3):  # planned, then from the plan
        result = function(*args)
        assert (result.tolist(), result.dtype, result.device) == (expected, dtype, CPU)
        assert result.layout.contiguous and result.storage.version == 0 and result.keyset == CPU.key
        assert (result.node, result.base, result.grad, result.hooks, result.output) == (None, None, None, None, 0)
    generic = generic_kernel(function.op, DRIVER, kernel)(*args)
    assert (generic.tolist(), generic.layout) == (expected, result.layout)


def test_equal_but_distinct_layouts_and_subclasses():
    class Parameter(Tensor):
        __slots__ = ()

    one, other = [Layout((2, 2), (2, 1), tp.float32, CPU, True, 4) for _ in range(2)]
    before = kernel_of(add).plans[0]
    x, y = make_tensor(X.storage, 0, one), make_tensor(X.storage, 0, other)
    for _ in range(3):
        assert add(x, y).tolist() == add(y, x).tolist() == [[2, 4], [6, 8]]
    assert kernel_of(add).plans[0] == before + 2 * (not GENERIC)
    assert type(add(X.as_subclass(Parameter), x)) is Tensor
    assert add(X, X).layout.same(X.layout)  # the intern table is bounded: another test may have emptied it


def test_plans_are_bounded_and_hold_their_layouts():
    alive = []
    for _ in range(1, 1500):
        x = tp.tensor([1.0] * 4)
        made = Layout((2, 2), (2, 1), tp.float32, CPU, True, 4)
        y = make_tensor(x.storage, 0, made)
        assert exp(y).layout.shape == (2, 2)
        del made, y
    assert kernel_of(exp).plans[0] <= 512
    del alive


def test_rules_that_change_are_seen():
    x = tp.tensor([[1.0, 2.0]])
    flat = native_op("changing(Tensor input) -> Tensor", "copy", meta=lambda x: x.dense())
    assert flat(x).shape == (1, 2)
    with pytest.raises(tp._errors.ShapeError, match="no longer"):
        @flat.meta
        def _(x):
            raise tp._errors.ShapeError("no longer")
        flat(x)


def test_a_kernel_serves_one_operator():
    kernel, other = kernel_of(add), native_op("other(Operand input, Operand other) -> Tensor", "add", (ELEMENTWISE,))
    assert kernel.fuse(add.op, DRIVER) is kernel
    second = kernel.fuse(other.op, DRIVER)
    assert second is not kernel and (second.op, kernel.op) == (other.op, add.op)
    assert second(X, X).tolist() == kernel(X, X).tolist()


def test_lists_may_change_while_the_meta_runs():
    def emptying(tensors, dim):
        lists.pop().clear()
        gc.collect()
        return layout((4, 2), tp.float32, CPU)

    joined = native_op("joined(Tensor[] tensors, int dim=0) -> Tensor", "cat", meta=emptying)
    lists = [[tp.tensor(SQUARE), tp.tensor(SQUARE)]]
    assert kernel_of(joined)(lists[0], 0).tolist() == SQUARE * 2


def test_default_dtype_is_not_kept_in_plans():
    assert div(INTS, 2).dtype is tp.float32
    tp.set_default_dtype(tp.float64)
    try:
        assert (div(INTS, 2).dtype, add(INTS, 0.5).dtype) == (tp.float64, tp.float64)
    finally:
        tp.set_default_dtype(tp.float32)
    assert div(INTS, 2).dtype is tp.float32


# ---- errors and wrong arguments --------------------------------------------------------------------------------------
def without(name):
    x = tp.tensor(SQUARE)
    delattr(x, name)
    return x


def with_layout(value):
    x = tp.tensor(SQUARE)
    x.layout = value
    return x


class FakeStorage:
    data, nbytes, version = 64, 1 << 40, 0


class Index:
    def __index__(self):
        return 1


def with_packed(packed, code=11):
    made = Layout((2, 2), (2, 1), tp.float32, CPU, True, 4)
    made.packed, made.code = packed, code
    return make_tensor(X.storage, 0, made)


WRONG = [  # function, arguments for the kernel, error
    (add, (X,), TypeError),
    (add, (X, X, X), TypeError),
    (add, (), TypeError),
    (add, (X, None), TypeError),
    (add, (X, "one"), TypeError),
    (add, (X, [1.0]), TypeError),
    (add, (Tensor, X), TypeError),
    (add, (X, object()), TypeError),
    (add, (object.__new__(Tensor), X), TypeError),
    (add, (without("layout"), X), TypeError),
    (add, (without("storage"), X), TypeError),
    (add, (without("offset"), X), ValueError),
    (add, (make_tensor(FakeStorage(), 0, X.layout), X), TypeError),
    (add, (make_tensor(None, 0, X.layout), X), TypeError),
    (add, (make_tensor(X.storage, 1, X.layout), X), ValueError),
    (add, (make_tensor(X.storage, -1, X.layout), X), ValueError),
    (add, (make_tensor(X.storage, 2 ** 62, X.layout), X), ValueError),
    (add, (make_tensor(X.storage, 2 ** 70, X.layout), X), ValueError),
    (add, (make_tensor(X.storage, "0", X.layout), X), ValueError),
    (add, (make_tensor(X.storage, 0, layout((2, 2), tp.float32, CPU, (-2, -1))), X), ValueError),
    (add, (make_tensor(X.storage, 0, layout((2, 2), tp.float32, CPU, (2 ** 62, 2 ** 62))), X), ValueError),
    (add, (make_tensor(X.storage, 0, layout((3, 2), tp.float32, CPU)), 1.0), ValueError),
    (add, (with_layout(None), X), TypeError),
    (add, (with_layout(X.storage), X), TypeError),
    (add, (with_packed(b"123"), X), TypeError),
    (add, (with_packed(None), X), TypeError),
    (add, (with_packed(X.layout.packed, 99), X), TypeError),
    (add, (with_packed(X.layout.packed, "f"), X), TypeError),
    (add, (with_packed(struct.pack("4q", 2 ** 40, 2 ** 40, 1, 1)), 1.0), ValueError),
    (add, (make_tensor(X.storage, 0, layout((2, 2), tp.float32, tp.device("meta"))), X), RuntimeError),
    (add, (X, tp.tensor([1.0, 2.0, 3.0])), ValueError),
    (total, (X, ("a",), False, None), Exception),
    (total, (X, object(), False, None), Exception),
    (cat, (X, 0), TypeError),
    (cat, ([X, None], 0), TypeError),
    (cat, (None, 0), TypeError),
    (matmul, (X, 2.0), TypeError),
    (embedding, (X, tp.tensor([0, 2])), IndexError),
    (embedding, (X, tp.tensor([-1])), IndexError),
    (floor_div, (INTS, 0), ZeroDivisionError),
    (matmul, (X, tp.tensor([[1.0]])), ValueError),
]


@pytest.mark.parametrize("case", range(len(WRONG)))
def test_wrong_arguments_are_designed_errors(case):
    function, args, error = WRONG[case]
    kernel = kernel_of(function)
    for _ in range(2):
        with pytest.raises(error) as caught:
            kernel(*args)
        assert isinstance(caught.value, tp.TensorPlayError), caught.value


def test_messages():
    with pytest.raises(DivisionByZeroError, match=r"^cpu_test::floor_div: .*division by zero.*test_native\.py"):
        floor_div(INTS, 0)
    with pytest.raises(tp.TensorPlayError, match="outside its storage of 16 bytes"):
        add(make_tensor(X.storage, 1, X.layout), X)
    with pytest.raises(TypeError, match="by position"):
        kernel_of(add)(X, other=X)


@pytest.mark.parametrize("value", [Index(), [Index()], (True,)])
def test_attributes_that_only_python_reads(value):
    for _ in range(2):
        assert kernel_of(total)(X, value, False, None).tolist() == [3, 7]
        out = tp.tensor([0.0, 0.0])
        kernel_of(total).out(out, X, value, False, None)
        assert out.tolist() == [3, 7]


# ---- where the native kernel declines --------------------------------------------------------------------------------
def test_fallbacks():
    complex_ = tp.tensor([1 + 2j])
    seen = []

    def numpy_add(out, x, y):
        seen.append((x.layout.dtype, y.layout.shape))
        values = [a + b for a, b in zip(x.tolist(), y.tolist())]
        DRIVER.copy_from_host(out.storage, struct.pack(f"{2 * len(values)}f", *[p for v in values
                                                                               for p in (v.real, v.imag)]))

    by_numpy = native_op("by_numpy(Operand input, Operand other) -> Tensor", "maximum", (ELEMENTWISE,),
                         numpy=lambda: numpy_add)
    for _ in range(2):
        assert by_numpy(complex_, complex_).tolist() == [2 + 4j]
        assert by_numpy(complex_, 1).tolist() == [2 + 2j]
        out = tp.tensor([0j])
        kernel_of(by_numpy).out(out, complex_, complex_)
        assert out.tolist() == [2 + 4j]
    assert set(seen) == {(tp.complex64, (1,))}
    assert by_numpy(X, 0.0).tolist() == SQUARE

    alone = native_op("alone(Operand input, Operand other) -> Tensor", "maximum", (ELEMENTWISE,))
    with pytest.raises(NotImplementedError, match="cpu_test::alone"):
        alone(complex_, complex_)
    alone.decomposition(lambda x, y: by_numpy(x, y))
    assert alone(complex_, complex_).tolist() == alone(complex_, complex_).tolist() == [2 + 4j]
    assert alone(X, 2.0).tolist() == [[2, 2], [3, 4]]


# ---- out form --------------------------------------------------------------------------------------------------------
def test_out_form():
    out = kernel_of(add).out
    into = tp.tensor([[0.0, 0.0], [0.0, 0.0]])
    assert out(into, X, TRANSPOSED) is None
    assert into.tolist() == [[2, 4], [6, 8]]
    out(into, into, 1)
    assert into.tolist() == [[3, 5], [7, 9]]
    view = strided([0.0] * 8, (2, 2), (4, 2), 1)
    out(view, X, INTS)
    assert view.tolist() == [[2, 4], [6, 8]]
    turned = make_tensor(into.storage, 0, TRANSPOSED.layout)
    out(turned, into, into)  # the write must not overtake the reads
    assert turned.tolist() == [[6, 10], [14, 18]]
    matmul_out = kernel_of(matmul).out
    matmul_out(view, X, X)
    assert view.tolist() == [[7, 10], [15, 22]]
    same = tp.tensor(SQUARE)
    matmul_out(same, same, same)
    assert same.tolist() == [[7, 10], [15, 22]]
    pair = (tp.tensor(SQUARE), tp.tensor([0.0, 0.0]))
    kernel_of(rows).out(pair, X, (2,), None, 0.0)
    fused = kernel_of(rows)(X, (2,), None, 0.0)
    assert type(fused) is tuple and [t.tolist() for t in pair] == [t.tolist() for t in fused]


@pytest.mark.parametrize("into, error", [
    (tp.tensor([0.0, 0.0]), ValueError), (tp.tensor([[0, 0], [0, 0]]), TypeError), (None, TypeError), ((), TypeError),
    ("out", TypeError), ([X, X], TypeError), (strided([0.0], (2, 2), (0, 0)), TypeError),
    (make_tensor(tp.tensor([0.0]).storage, 0, X.layout), ValueError),
    (make_tensor(FakeStorage(), 0, X.layout), TypeError)])
def test_out_form_refuses(into, error):
    for _ in range(2):
        with pytest.raises(error) as caught:
            kernel_of(add).out(into, X, X)
        assert isinstance(caught.value, tp.TensorPlayError)


def test_mutating_kernels_count_writes():
    param, grad = tp.tensor([1.0, 2.0]), tp.tensor([1.0, 1.0])
    turned = strided([1.0, 2.0, 3.0, 4.0], (2, 2), (1, 2))
    for step in range(1, 4):
        assert sgd([param, turned], [grad, X], [], 0.5 * step, 0.0, 0.0, 0.0, False, False, True) is None
        assert (param.storage.version, turned.storage.version, grad.storage.version) == (step, step, 0)
    assert param.storage.writer[0] == "cpu_test::sgd_step"
    assert param.tolist() == [-2, -1]
    assert turned.tolist() == [[-2, -3], [-7, -8]]
    assert max(kernel_of(sgd).plans) == 1  # a new learning rate is no new plan


# ---- views -----------------------------------------------------------------------------------------------------------
def test_views():
    flip = op("cpu_test::flip(Tensor input, int step=1) -> Tensor", tags=(VIEW,), replace=True)
    flip.meta(lambda x, step: (x.with_view(x.shape, tuple(reversed(x.strides))), 0) if step else
              (layout((2,), x.dtype, x.device), 2))
    for _ in range(3):
        turned, last = flip(X, 1), flip(X, 0)
        assert (turned.tolist(), last.tolist()) == ([[1, 3], [2, 4]], [3, 4])
        assert turned.storage is X.storage and last.offset == 2 and turned.base is X
        assert flip(last, 1).base is X and flip(flip(last, 1), 1).offset == 2
    assert flip(X, Index()).tolist() == [[1, 3], [2, 4]]
    leaf = tp.tensor(SQUARE)
    leaf.keyset |= 128
    assert flip.op.resolve(CPU.key)(leaf, 1).base is None
    kernel = DRIVER.view_kernel(flip.op)
    for wrong in ((), (X,), (1, 1), (None, 1), (without("layout"), 1), (without("storage"), 1)):
        with pytest.raises(TypeError):
            kernel(*wrong)


def test_make_tensor():
    made = _native.make_tensor(X.storage, 2, layout((2,), tp.float32, CPU))
    assert made.tolist() == [3, 4] and made.keyset == CPU.key and made.base is None
    for wrong in ((), (X.storage, 2), (X.storage, "2", X.layout), (X.storage, 0, None)):
        with pytest.raises(TypeError):
            _native.make_tensor(*wrong)
    with pytest.raises(tp._errors.DeviceError):
        _native.make_tensor(X.storage, 0, layout((2,), tp.float32, tp.device("meta")))


# ---- numbers ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [tp.float16, tp.bfloat16])
def test_sixteen_bit_numbers_round_as_the_core_does(dtype):
    zero = tp.tensor([0.0], dtype=dtype)
    for value in (0.1, 1e-8, 6e-8, 3e-5, 65504.0, 65519.9, 65520.0, 1e30, -1.0009765625, 2049, 2051, float("inf")):
        assert add(zero, value).tolist() == tp.tensor([value], dtype=dtype).tolist(), value
    assert add(zero, float("nan")).tolist() != [0.0]


@pytest.mark.parametrize("dtype, value", [(tp.uint8, 256), (tp.int8, -129), (tp.int64, 1 << 63), (tp.int32, 1 << 31)])
def test_numbers_that_do_not_fit(dtype, value):
    with pytest.raises((ValueError, OverflowError)):
        add(tp.tensor([0], dtype=dtype), value)
