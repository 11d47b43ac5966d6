"""Gradients and second gradients of expressions, against central differences."""
from __future__ import annotations

import pytest

import tensorplay as tp
from tensorplay.autograd import GradcheckError, gradcheck, gradgradcheck


def make(*shape: int, start: float = 0.3) -> tp.Tensor:
    count = 1
    for size in shape:
        count *= size
    values = [start + 0.37 * ((7 * i) % 5) - 0.11 * i for i in range(count)]
    return tp.tensor(values, dtype=tp.float64).reshape(shape).clone().requires_grad_()


EXPRESSIONS = {
    "one use": (lambda x: x * 3, [(3,)]),
    "used twice": (lambda x: x * x + x, [(3,)]),
    "same operand": (lambda x: x + x, [(2, 2)]),
    "diamond": (lambda x: (x * 2) * (x + 1) - x, [(3,)]),
    "broadcast row": (lambda x, y: x * y, [(2, 3), (3,)]),
    "broadcast both": (lambda x, y: x * y + y, [(2, 1), (1, 3)]),
    "broadcast 0-d": (lambda x, y: x * y, [(2, 3), ()]),
    "number operands": (lambda x: 2 * x + 1 - x / 4, [(3,)]),
    "reflected": (lambda x: 1 - x, [(3,)]),
    "matmul": (lambda x, y: x @ y, [(2, 3), (3, 2)]),
    "sum dim": (lambda x: x.sum(1) * x.sum(), [(2, 3)]),
    "views": (lambda x: x.reshape(3, 2).transpose(0, 1)[1] * 2, [(2, 3)]),
    "expand": (lambda x: x.expand(3, 2) * make(3, 2).detach(), [(1, 2)]),
    "saved result": (lambda x: x.exp() * x, [(3,)]),
    "chain": (lambda x: (x.tanh().exp() + 1).log(), [(3,)]),
    "several outputs": (lambda x: (x * 2, x.exp()), [(2,)]),
    "empty": (lambda x: x * 2, [(0, 3)]),
    "scalar": (lambda x: x * x * x, [()]),
    "cat": (lambda x, y: tp.cat([x, y * 2, x]), [(2,), (3,)]),
    "unused branch": (lambda x: (x * 3, (x * 5).detach())[0], [(2,)]),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_gradient_and_second_gradient(name: str) -> None:
    function, shapes = EXPRESSIONS[name]
    inputs = tuple([make(*shape, start=0.3 + i) for i, shape in enumerate(shapes)])

    assert gradcheck(function, inputs)
    if name not in ("one use", "unused branch", "empty", "expand", "same operand", "reflected", "number operands"):
        assert gradgradcheck(function, inputs)


def test_promotion_casts_the_gradient_back() -> None:
    single = tp.tensor([1.0, 2.0], dtype=tp.float32, requires_grad=True)
    double = tp.tensor([3.0, 4.0], dtype=tp.float64, requires_grad=True)
    (single * double).sum().backward()

    assert (single.grad.dtype, single.grad.tolist()) == (tp.float32, [3.0, 4.0])
    assert (double.grad.dtype, double.grad.tolist()) == (tp.float64, [1.0, 2.0])


def test_integer_results_have_no_gradient() -> None:
    x = make(3)

    assert not x.to(tp.int64).requires_grad
    assert not (x > 0).requires_grad
    assert not x.argmax().requires_grad


class WrongCube(tp.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * x * grad


def test_gradcheck_names_the_wrong_place() -> None:
    with pytest.raises(GradcheckError) as caught:
        gradcheck(WrongCube.apply, (tp.tensor([1.0, 2.0], dtype=tp.float64, requires_grad=True),))

    assert "output 0 [2] for input 0 [2] is wrong in 2 of 4 places; worst: d output[1] / d input[1] is 8, " \
           "numerically 12\n" in str(caught.value)
    assert not gradcheck(WrongCube.apply, (make(2),), raise_exception=False)


GRADCHECK_MISUSE = {
    "float32": (lambda: gradcheck(lambda x: x, (tp.ones(2, requires_grad=True),)), "need float64"),
    "no grad": (lambda: gradcheck(lambda x: x, (tp.ones(2, dtype=tp.float64),)), "no input requires grad"),
    "no output": (lambda: gradcheck(lambda x: x.detach(), (make(2),)), "no output of the function requires grad"),
}


@pytest.mark.parametrize("name", GRADCHECK_MISUSE)
def test_gradcheck_refuses(name: str) -> None:
    call, message = GRADCHECK_MISUSE[name]
    with pytest.raises(tp.library.TensorPlayError, match=message):
        call()
