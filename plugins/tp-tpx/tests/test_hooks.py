"""Hooks on tensors, nodes and leaves; saved-tensor hooks; anomaly mode; what a node tells about itself."""
from __future__ import annotations

import pytest

import tensorplay as tp
from tensorplay.autograd import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from tensorplay.autograd.graph import Node, saved_tensors_hooks
from tensorplay.library import AutogradError


def leaf(*values: float) -> tp.Tensor:
    return tp.tensor([float(value) for value in values], requires_grad=True)


def test_a_leaf_hook_sees_the_whole_gradient_once() -> None:
    x, seen = leaf(1), []
    handle = x.register_hook(lambda grad: seen.append(grad.tolist()))
    (x * 2 + x * 3).sum().backward()
    handle.remove()
    (x * 2).sum().backward()

    assert seen == [[5.0]]
    assert x.grad.tolist() == [7.0]


def test_hooks_replace_gradients_in_order() -> None:
    x = leaf(1)
    y = x * 2
    y.register_hook(lambda grad: grad * 10)
    y.register_hook(lambda grad: grad + 1)
    x.register_hook(lambda grad: -grad)
    y.sum().backward()

    assert x.grad.tolist() == [-22.0]


def test_a_hook_must_keep_the_shape() -> None:
    y = leaf(1, 2) * 2
    y.register_hook(lambda grad: tp.ones(3))
    with pytest.raises(AutogradError, match=r"returned a gradient of shape \[3\] in place of one of shape \[2\]"):
        y.sum().backward()


def test_retain_grad() -> None:
    x = leaf(1, 2)
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward()

    assert y.grad.tolist() == [4.0, 8.0]
    assert x.grad.tolist() == [8.0, 16.0]


def test_post_accumulate_hooks_run_while_the_pass_goes_on() -> None:
    first, second, events = leaf(1), leaf(2), []
    first.register_post_accumulate_grad_hook(lambda p: events.append(("first", p.grad.tolist())))
    second.register_post_accumulate_grad_hook(lambda p: events.append(("second", p.grad.tolist())))
    y = first * 3
    y.register_hook(lambda grad: events.append("y"))
    (y * second).sum().backward()

    assert events == [("second", [3.0]), "y", ("first", [6.0])]


def test_post_accumulate_hooks_are_for_leaves() -> None:
    with pytest.raises(AutogradError, match="only leaf tensors accumulate"):
        (leaf(1) * 2).register_post_accumulate_grad_hook(print)


def test_node_hooks() -> None:
    x, events = leaf(3), []
    y = x * 2
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 5,))
    handle = y.grad_fn.register_hook(lambda inputs, outputs: events.append((inputs[0].item(), outputs[0].item())))
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] + 1, None))
    y.sum().backward(retain_graph=True)
    handle.remove()

    assert events == [(10.0, 5.0)]
    assert x.grad.tolist() == [11.0]


def test_hooks_of_one_of_several_results() -> None:
    class Split(tp.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, first, second):
            return first * 2 + second * 3

    x, seen = leaf(1), []
    a, b = Split.apply(x)
    b.register_hook(lambda grad: seen.append(grad.item()))
    b.retain_grad()
    (a + b * 4).sum().backward()

    assert (seen, b.grad.item(), x.grad.item()) == ([4.0], 4.0, 14.0)


def test_what_a_node_tells() -> None:
    x, w = leaf(1, 2), leaf(3, 4)
    product = x * w
    node = (product + 1).grad_fn
    inner = node.next_functions[0][0]

    assert isinstance(node, Node)
    assert (node.name(), repr(node)[:14]) == ("AddBackward0", "<AddBackward0 ")
    assert node.next_functions == ((product.grad_fn, 0), (None, 0))
    assert [function.variable is one for (function, _), one in zip(inner.next_functions, (x, w))] == [True, True]
    assert inner.next_functions[0][0].name() == "AccumulateGrad"
    assert {id(t) for t in inner.saved_tensors} == {id(x), id(w)}
    assert inner.saved_value("input") is x
    node.metadata["note"] = 1
    assert node.metadata == {"note": 1}


def test_only_what_is_needed_is_saved() -> None:
    x, w, v = leaf(1, 2), tp.tensor([3.0, 4.0]), leaf(1, 2)

    assert (x + v).grad_fn.saved_tensors == ()
    assert [id(t) for t in (x * w).grad_fn.saved_tensors] == [id(w)]
    assert [id(t) for t in (w * x).grad_fn.saved_tensors] == [id(w)]
    assert x.sum().grad_fn.saved_tensors == ()


def test_saved_tensors_hooks() -> None:
    x, packed, opened = leaf(1, 2), [], []

    def pack(tensor):
        packed.append(tensor.tolist())
        return packed[-1]

    def unpack(kept):
        opened.append(kept)
        return tp.tensor(kept)

    with saved_tensors_hooks(pack, unpack):
        y = (x * x).exp()
    z = (y * y).sum()
    (gradient,) = tp.autograd.grad(z, x, create_graph=True)
    expected = [2 * y.tolist()[i] ** 2 * 2 * v for i, v in enumerate((1, 2))]

    assert gradient.tolist() == pytest.approx(expected)
    assert len(packed) == 3 and len(opened) == 3
    (second,) = tp.autograd.grad(gradient.sum(), x)
    assert second.tolist() == pytest.approx([(16 * v * v + 4) * y.tolist()[i] ** 2 for i, v in enumerate((1, 2))])


def test_anomaly_mode_names_the_forward_line() -> None:
    x = leaf(0)
    with detect_anomaly():
        y = x.sqrt() * 0
        with pytest.raises(AutogradError, match=r"SqrtBackward0 returned NaN as the gradient of its input 0; it was "
                                                r"recorded at test_hooks.py:\d+"):
            y.sum().backward()
    assert not is_anomaly_enabled()


def test_anomaly_mode_around_backward_only() -> None:
    y = (leaf(0).sqrt() * 0).sum()
    with set_detect_anomaly(True), pytest.raises(AutogradError, match="its forward line is unknown"):
        y.backward()
