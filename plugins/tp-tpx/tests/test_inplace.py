"""In-place forms and writes through views: the same gradients as the program without them."""
from __future__ import annotations

import re

import pytest

import tensorplay as tp
from tensorplay.autograd import gradcheck, gradgradcheck
from tensorplay.library import AutogradError


def make(*shape: int) -> tp.Tensor:
    count = 1
    for size in shape:
        count *= size
    return tp.tensor([0.4 + 0.3 * i for i in range(count)], dtype=tp.float64).reshape(shape).clone().requires_grad_()


def whole(x):
    y = x * 1
    y.mul_(y).add_(2)
    return y


def saves_self(x):
    y = x * 1
    y.mul_(x.exp())
    return y


def saves_result(x):
    y = x * 1
    y.exp_()
    return y * y


def row(x):
    y = x * 1
    y[0].mul_(3)
    return y * y


def two_rows(x):
    y = x * 1
    y[0] *= x[1]
    y[1] += y[0]
    return y


def view_before(x):
    y = x * 1
    v = y[1]
    y.mul_(x)
    return v * 2


def other_view(x):
    y = x * 1
    v, w = y[0], y.transpose(0, 1)
    v.mul_(x[1])
    return w * w


def view_of_view(x):
    y = x * 1
    y[0:2][1][1:].mul_(x[0, 0:2])
    return y


def set_items(x):
    y = tp.zeros(2, 3, dtype=tp.float64)
    y[0] = x[1] * 2
    y[1, 1:] = x[0, :2] * x[1, 1:]
    return y


def set_number(x):
    y = x * x
    y[:, 1] = 5.0
    return y


def overwritten(x):
    y = x * x
    y.copy_(x * 3)
    return y


def broadcast_copy(x):
    y = x * x
    y.copy_(x[0])
    return y * x


def strided_base(x):
    y = (x * 1).transpose(0, 1).contiguous().transpose(0, 1) * 1
    y[:, 0].mul_(x[:, 1])
    return y


def diagonal(x):
    y = x * 1
    y.diagonal().mul_(x[0, :2])
    return y


def expanded_view(x):
    y = x * 1
    v = y[0:1].expand(2, 3)
    y[0].mul_(2)
    return v * x


def written_twice(x):
    y = x * 1
    v = y[0]
    v.mul_(v)
    v.mul_(v)
    return y + v


PROGRAMS = {
    whole: lambda x: x * x + 2,
    saves_self: lambda x: x * x.exp(),
    saves_result: lambda x: x.exp() * x.exp(),
    row: lambda x: tp.stack([x[0] * 3, x[1]]) * tp.stack([x[0] * 3, x[1]]),
    two_rows: lambda x: tp.stack([x[0] * x[1], x[1] + x[0] * x[1]]),
    view_before: lambda x: (x * x)[1] * 2,
    other_view: lambda x: (tp.stack([x[0] * x[1], x[1]]) ** 2).transpose(0, 1),
    view_of_view: lambda x: tp.stack([x[0], tp.cat([x[1, :1], x[1, 1:] * x[0, 0:2]])]),
    set_items: lambda x: tp.stack([x[1] * 2, tp.cat([x[1, :1] * 0, x[0, :2] * x[1, 1:]])]),
    set_number: lambda x: x * x * tp.tensor([1.0, 0, 1], dtype=tp.float64) + tp.tensor([0, 5.0, 0], dtype=tp.float64),
    overwritten: lambda x: x * 3,
    broadcast_copy: lambda x: x[0].expand(2, 3) * x,
    strided_base: lambda x: tp.cat([(x[:, 0] * x[:, 1]).unsqueeze(1), x[:, 1:]], 1),
    diagonal: lambda x: x * (1 - tp.eye(2, 3, dtype=tp.float64)) + x * tp.eye(2, 3, dtype=tp.float64) * x[0],
    expanded_view: lambda x: (x[0:1] * 2).expand(2, 3) * x,
    written_twice: lambda x: tp.stack([x[0] ** 4, x[1]]) + x[0] ** 4,
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_gradients_of_programs_with_writes(program) -> None:
    x, reference = make(2, 3), PROGRAMS[program]
    expected = reference(x)
    actual = program(x)

    assert actual.tolist() == pytest.approx(expected.tolist()) if actual.ndim < 2 else \
        actual.reshape(-1).tolist() == pytest.approx(expected.reshape(-1).tolist())
    weights = tp.arange(1, expected.numel() + 1, dtype=tp.float64).reshape(expected.shape)
    (wanted,) = tp.autograd.grad(expected, x, weights)
    (found,) = tp.autograd.grad(actual, x, weights)
    assert found.reshape(-1).tolist() == pytest.approx(wanted.reshape(-1).tolist())
    assert gradcheck(program, (x,))
    if program not in (overwritten, set_number):
        assert gradgradcheck(program, (x,))


def test_node_names_after_a_write() -> None:
    x = make(2, 3)
    y = x * 1
    view, other = y[0], y[1]
    view.mul_(2)

    assert [t.grad_fn.name() for t in (y, view, other)] == ["CopySlices", "AsStridedBackward0", "AsStridedBackward0"]


def test_a_tensor_starts_to_require_grad_by_a_write() -> None:
    x, target = make(2), tp.zeros(3, dtype=tp.float64)
    target[1:] = x * 2
    target.sum().backward()

    assert target.requires_grad
    assert x.grad.tolist() == [2.0, 2.0]


def test_leaves_may_be_written_to_under_no_grad() -> None:
    x = make(2)
    with tp.no_grad():
        x.mul_(10)
        x[0] = 7

    assert x.tolist() == [7.0, 7.0]
    assert x.is_leaf


leaf, view_of_leaf = make(2), make(2)
REFUSED = {
    "leaf": (lambda: leaf.add_(1), "add_: a leaf tensor that requires grad cannot be changed in place"),
    "view of a leaf": (lambda: view_of_leaf[0:1].mul_(2), "mul_: this tensor is a view of a leaf tensor"),
    "item of a leaf": (lambda: leaf.__setitem__(0, 1.0), "copy_: this tensor is a view of a leaf tensor"),
    "expanded": (lambda: (leaf * 1)[0:1].expand(2).add_(leaf), "share one memory cell"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_writes(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(AutogradError, match=message):
        call()


def test_a_changed_saved_tensor_names_who_changed_it() -> None:
    x = make(2, 3)
    y = x * 2
    z = y * x
    y.add_(1)

    with pytest.raises(AutogradError) as caught:
        z.sum().backward()

    assert re.match(r"Mul saved 'input' \[2, 3\] for the backward pass but it was changed in place by add_ at "
                    r"\S*test_inplace.py:\d+ after that \(it is at version 1, saved was version 0\)", str(caught.value))


def test_a_saved_result_that_was_changed() -> None:
    y = make(2).exp()
    z = y.sum()
    y.detach().mul_(2)

    with pytest.raises(AutogradError, match="Exp saved 'result'"):
        z.backward()
