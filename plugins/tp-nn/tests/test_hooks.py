"""Module hooks: order, what they may replace, and gradients at a module's borders."""
from __future__ import annotations

import pytest

import tensorplay as tp
from tensorplay import nn


class Affine(nn.Module):
    def forward(self, x, factor=2.0, offset=0.0):
        return x * factor + offset


def test_forward_hooks_in_order_and_replacing() -> None:
    module, seen = Affine(), []
    module.register_forward_pre_hook(lambda m, args: seen.append("pre") or (args[0] + 1,))
    module.register_forward_pre_hook(lambda m, args: seen.append("first"), prepend=True)
    module.register_forward_hook(lambda m, args, out: seen.append(args[0].tolist()) or out * 10)
    assert module(tp.tensor([1.0])).tolist() == [40.0]
    assert seen == ["first", "pre", [2.0]]


def test_hooks_with_keywords() -> None:
    module = Affine()
    module.register_forward_pre_hook(lambda m, args, named: (args, {**named, "offset": 5.0}), with_kwargs=True)
    module.register_forward_hook(lambda m, args, named, out: out + named["offset"], with_kwargs=True)
    assert module(tp.tensor([1.0]), factor=3.0).tolist() == [13.0]


def test_handles_remove_their_own_registration_once() -> None:
    module, calls = Affine(), []

    def hook(m, args, out):
        calls.append(1)

    first, second = module.register_forward_hook(hook), module.register_forward_hook(hook)
    first.remove()
    first.remove()
    module(tp.ones(1))
    assert len(calls) == 1
    with second:
        module(tp.ones(1))
    module(tp.ones(1))
    assert len(calls) == 2


def test_always_call_runs_when_forward_fails() -> None:
    module, seen = nn.Linear(2, 2), []
    module.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    module.register_forward_hook(lambda m, args, out: seen.append("no"))
    with pytest.raises(RuntimeError, match="linear: input"):
        module(tp.ones(1, 3))
    assert seen == [None]


@pytest.mark.parametrize("wants_gradient", [False, True])
def test_backward_hooks_see_gradients_at_both_borders(wants_gradient: bool) -> None:
    layer, seen = nn.Linear(2, 3), []
    layer.register_full_backward_hook(lambda m, grad_input, grad_output: seen.append((grad_input, grad_output)))
    layer.register_full_backward_pre_hook(lambda m, grad_output: (grad_output[0] * 2,))
    x = tp.ones(1, 2, requires_grad=wants_gradient)
    layer(x).sum().backward()
    (grad_input, grad_output), = seen
    assert grad_output[0].tolist() == [[2.0, 2.0, 2.0]]
    assert layer.bias.grad.tolist() == [2.0, 2.0, 2.0]
    if wants_gradient:
        assert grad_input[0].tolist() == x.grad.tolist() == (layer.weight.sum(0) * 2).unsqueeze(0).tolist()
    else:
        assert grad_input == (None,)


def test_backward_hook_replaces_and_keeps_argument_positions() -> None:
    module, seen = Affine(), []

    def hook(m, grad_input, grad_output):
        seen.append([g is None for g in grad_input])
        return (grad_input[0] * 100, None, None)

    module.register_full_backward_hook(hook)
    x = tp.ones(1, requires_grad=True)
    module(x, 3.0, tp.ones(1)).sum().backward()
    assert x.grad.tolist() == [300.0]
    assert seen[0][:2] == [False, True]
