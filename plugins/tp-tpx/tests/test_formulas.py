"""How vjp rules are bound: names, several outputs, lists, optional tensors, missing formulas."""
from __future__ import annotations

import pytest

import tensorplay as tp
from tensorplay.autograd import gradcheck, gradgradcheck
from tensorplay.library import NONDIFFERENTIABLE, ArgumentError, AutogradError, op


def make(*values: float) -> tp.Tensor:
    return tp.tensor([float(value) for value in values], dtype=tp.float64, requires_grad=True)


def define(schema: str, decomposition, vjp=None, tags: tuple = (), **formulas):
    made = op(f"tpxtest::{schema}", tags=tags, replace=True)
    made.decomposition(decomposition)
    if vjp or formulas:
        made.vjp(vjp, **formulas)
    return made


by_input = define("by_input(Tensor x, Tensor y, float scale=2.0) -> Tensor", lambda x, y, scale: x * y * scale,
                  x=lambda grad, y, scale: grad * y * scale, y=lambda grad, x, scale: grad * x * scale)
together = define("together(Tensor x, Tensor y) -> Tensor", lambda x, y: x * y,
                  lambda grad, x, y: (grad * y, grad * x))
result = define("result(Tensor x) -> Tensor", lambda x: x.exp(), x=lambda grad, output: grad * output)
layout = define("layout(Tensor x) -> Tensor", lambda x: x.sum(), x=lambda grad, x_layout: grad.expand(x_layout.shape))
broadcast = define("broadcast(Tensor x, Tensor y) -> Tensor", lambda x, y: x + y, x=lambda grad: grad,
                   y=lambda grad: grad)
pair = define("pair(Tensor x) -> (Tensor, Tensor)", lambda x: (x * x, x.exp()),
              lambda grads, x, outputs: (sum([g for g in (
                  None if grads[0] is None else grads[0] * 2 * x,
                  None if grads[1] is None else grads[1] * outputs[1]) if g is not None], x * 0),))
named_pair = define("named_pair(Tensor x) -> (Tensor, Tensor)", lambda x: (x * x, x.exp()),
                    x=lambda grad_0, grad_1, x, output_1: grad_0 * 2 * x + grad_1 * output_1)
listed = define("listed(Tensor[] xs, float scale) -> Tensor", lambda xs, scale: sum(xs[1:], xs[0]) * scale,
                xs=lambda grad, xs, scale: [grad * scale for _ in xs])
listed_out = define("listed_out(Tensor x, int n) -> Tensor[]", lambda x, n: tuple([x * (i + 1) for i in range(n)]),
                    x=lambda grads, n: sum([g * (i + 1) for i, g in enumerate(grads) if g is not None]))
optional = define("optional(Tensor x, Tensor? y=None) -> Tensor", lambda x, y: x * 2 if y is None else x * 2 + y,
                  x=lambda grad: grad * 2, y=lambda grad: grad)
needing = define("needing(Tensor x, Tensor y) -> Tensor", lambda x, y: x * y,
                 lambda grad, x, y, needs: (grad * y if needs[0] else None, grad * x if needs[1] else None))
grad_named = define("grad_named(Tensor grad, Tensor output) -> Tensor", lambda grad, output: grad * output,
                    grad=lambda grad, output: grad * output, output=lambda grad, grad_argument: grad * grad_argument)
default = define("default(Tensor x) -> Tensor", lambda x: x * 3, x=lambda grad, three=3: grad * three)
composite = define("composite(Tensor x) -> Tensor", lambda x: x * x.exp())

fixed = tp.tensor([3.0, -2.0], dtype=tp.float64)
CASES = {
    "by input": lambda x, y: by_input(x, y, 3.0),
    "by input, one needed": lambda x, y: by_input(x, fixed) * by_input(fixed, y),
    "together": lambda x, y: together(x, y),
    "result": lambda x, y: result(x) * y,
    "layout": lambda x, y: layout(x) * y,
    "broadcast": lambda x, y: broadcast(x, y.sum()) * broadcast(x.sum(), y),
    "pair": lambda x, y: (pair(x)[0] + pair(x)[1]) * y,
    "one of a pair": lambda x, y: pair(x)[0] * y,
    "named pair": lambda x, y: named_pair(x)[1] * y,
    "list": lambda x, y: listed([x, y, x], 2.0) * x,
    "list, one needed": lambda x, y: listed([fixed, y], 2.0) * x,
    "list of results": lambda x, y: listed_out(x, 3)[2] * y + listed_out(x, 3)[0],
    "optional given": lambda x, y: optional(x, y) * y,
    "optional missing": lambda x, y: optional(x) * y,
    "needs": lambda x, y: needing(x, y) + needing(fixed, y) * x,
    "parameter named grad": lambda x, y: grad_named(x, y),
    "default": lambda x, y: default(x) * y,
    "decomposition": lambda x, y: composite(x) * y,
}


@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str) -> None:
    inputs = make(0.5, 1.5), make(2.0, -1.0)

    assert gradcheck(CASES[name], inputs)
    assert gradgradcheck(CASES[name], inputs)


def test_a_rule_replaces_the_derivative_of_the_decomposition() -> None:
    lying = define("lying(Tensor x) -> Tensor", lambda x: x * 2, x=lambda grad: grad * 100)
    x = make(1.0)
    lying(x).sum().backward()

    assert x.grad.tolist() == [100.0]
    assert lying(x).grad_fn.name() == "LyingBackward0"


def test_nondifferentiable() -> None:
    rounded = define("rounded(Tensor x) -> Tensor", lambda x: x * 2, tags=(NONDIFFERENTIABLE,))

    assert not rounded(make(1.0)).requires_grad


def _half():
    half = define("half(Tensor x, Tensor y) -> Tensor", lambda x, y: x * y, x=lambda grad, y: grad * y)
    half(make(1.0), make(2.0))


def _nothing():
    nothing = op("tpxtest::nothing(Tensor x) -> Tensor", replace=True)
    nothing.meta(lambda x: x)
    nothing.kernel(tp.get_default_device().type)(lambda out, x: None)
    nothing(make(1.0))


def _unknown_name():
    define("unknown(Tensor x) -> Tensor", lambda x: x * 1, x=lambda grad, weight: grad)(make(1.0))


def _count():
    define("count(Tensor x, Tensor y) -> Tensor", lambda x, y: x * y,
           lambda grad: (grad,))(make(1.0), make(1.0)).sum().backward()


def _shape():
    define("shape(Tensor x) -> Tensor", lambda x: x * 1, x=lambda grad: tp.ones(3, dtype=tp.float64))(
        make(1.0, 2.0)).sum().backward()


MISTAKES = {
    "no formula": (_half, AutogradError, r"argument 'y' requires grad, but there is no formula .*vjp\(y=...\)"),
    "nothing at all": (_nothing, AutogradError, "argument 'x' requires grad, but .* neither a vjp nor a decomposition"),
    "unknown name": (_unknown_name, ArgumentError, "asks for 'weight'; it can have grad, x, output, needs"),
    "wrong count": (_count, AutogradError, r"returned 1 gradient\(s\) for 2 tensor argument\(s\)"),
    "wrong shape": (_shape, AutogradError, r"gradient of shape \[3\] for an input of shape \[2\]"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str) -> None:
    call, kind, message = MISTAKES[name]
    with pytest.raises(kind, match=message):
        call()
