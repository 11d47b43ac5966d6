"""Function: custom forward and backward."""
from __future__ import annotations

import gc
import weakref

import pytest

import tensorplay as tp
from tensorplay.autograd import Function, gradcheck, gradgradcheck, once_differentiable
from tensorplay.library import AutogradError


class Scale(Function):
    """A non-tensor argument, a ctx attribute."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


class Exp(Function):
    """Saves its own result."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * y


class Product(Function):
    """setup_context form, two inputs."""

    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return (grad * y if ctx.needs_input_grad[0] else None), (grad * x if ctx.needs_input_grad[1] else None)


class TwoResults(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x, x * 3

    @staticmethod
    def backward(ctx, first, second):
        (x,) = ctx.saved_tensors
        return 2 * x * first + 3 * second


class Double_(Function):
    """In place."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class Same(Function):
    """Returns its input."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 7


class SumOfList(Function):
    """vjp is another name for backward."""

    @staticmethod
    def forward(ctx, *tensors):
        ctx.count = len(tensors)
        return sum(tensors[1:], tensors[0])

    @staticmethod
    def vjp(ctx, grad):
        return (grad,) * ctx.count


def make(*values: float) -> tp.Tensor:
    return tp.tensor([float(value) for value in values], dtype=tp.float64, requires_grad=True)


CASES = {
    "scale": (lambda x, y: Scale.apply(x, 3.0), False),
    "saved result": (lambda x, y: Exp.apply(x) * y, True),
    "setup_context": (lambda x, y: Product.apply(x, y), True),
    "two results": (lambda x, y: TwoResults.apply(x), True),
    "one of two": (lambda x, y: TwoResults.apply(x)[0] * y, True),
    "other of two": (lambda x, y: TwoResults.apply(x)[1] * y, True),
    "in place": (lambda x, y: Double_.apply(x * y) * y, True),
    "in place on a view": (lambda x, y: (lambda z: (Double_.apply(z[0:1]), z)[1])(x * y) * y, True),
    "many arguments": (lambda x, y: SumOfList.apply(x, y, x * y), True),
    "a gradient to be summed": (lambda x, y: Scale.apply(x[:1], tp.tensor([2.0, 3.0], dtype=tp.float64)) * y, False),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str) -> None:
    function, has_second = CASES[name]
    inputs = make(0.5, 1.5), make(2.0, -1.0)

    assert gradcheck(function, inputs)
    if has_second:
        assert gradgradcheck(function, inputs)


def test_the_input_comes_back_as_another_tensor() -> None:
    x = make(1)
    y = Same.apply(x)
    y.sum().backward()

    assert (y is x, x.is_leaf, y.grad_fn.name(), x.grad.tolist()) == (False, True, "SameBackward", [7.0])


def test_without_grad_mode_nothing_is_recorded() -> None:
    with tp.no_grad():
        assert not Exp.apply(make(1)).requires_grad
    assert not Exp.apply(tp.ones(2)).requires_grad


def test_non_differentiable_results() -> None:
    class WithSign(Function):
        @staticmethod
        def forward(ctx, x):
            sign = (x > 0).to(x.dtype)
            ctx.mark_non_differentiable(sign)
            return x * 2, sign

        @staticmethod
        def backward(ctx, grad, sign_grad):
            assert sign_grad.tolist() == [0.0]
            return grad * 2

    y, sign = WithSign.apply(make(1))
    y.sum().backward()

    assert (y.requires_grad, sign.requires_grad) == (True, False)


def test_undefined_gradients_stay_none_on_request() -> None:
    seen = []

    class Picky(TwoResults):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, first, second):
            seen.append(second)
            return first * 2

    Picky.apply(make(1))[0].sum().backward()

    assert seen == [None]


def test_once_differentiable() -> None:
    class Once(Exp):
        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    x = make(0.0)
    assert tp.autograd.grad(Once.apply(x).sum(), x)[0].tolist() == [1.0]
    (first,) = tp.autograd.grad((Once.apply(x) * x).sum(), x, create_graph=True)
    with pytest.raises(AutogradError, match="marked @once_differentiable cannot be differentiated"):
        first.sum().backward()


def _returning(result):
    class Returns(Function):
        @staticmethod
        def forward(ctx, x, number):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return result(grad)

    return lambda: Returns.apply(make(1, 2), 5).sum().backward()


def _changed():
    x = make(1) * 1
    y = Product.apply(x, x)
    x.add_(1)
    y.sum().backward()


def _freed():
    y = Exp.apply(make(1)).sum()
    y.backward()
    y.backward()


MISTAKES = {
    "too few": (_returning(lambda grad: (grad,)), r"returned 1 gradient\(s\), but forward was called with 2"),
    "for a number": (_returning(lambda grad: (grad, grad)), "a gradient for argument 1, which is not a tensor"),
    "not a tensor": (_returning(lambda grad: (3, None)), "returned a int as the gradient of argument 0"),
    "wrong shape": (_returning(lambda grad: (tp.ones(3), None)),
                    r"gradient of shape \[3\] for an input of shape \[2\]"),
    "changed": (_changed, "ProductBackward: a tensor of save_for_backward was changed in place by add_"),
    "freed": (_freed, "ExpBackward: cannot go backward a second time"),
    "in place on a leaf": (lambda: Double_.apply(make(1)), "Double_: a leaf tensor that requires grad"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str) -> None:
    call, message = MISTAKES[name]
    with pytest.raises(AutogradError, match=message):
        call()


def test_a_saved_result_does_not_keep_itself_alive() -> None:
    gc.collect()
    gc.disable()
    try:
        y = Exp.apply(make(1))
        gone = weakref.ref(y)
        del y
        assert gone() is None
    finally:
        gc.enable()
