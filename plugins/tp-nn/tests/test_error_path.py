"""A designed error that leaves a module says where: the path of modules and the line of the user's program."""
from __future__ import annotations

import re

import pytest

import tensorplay as tp
from tensorplay import nn


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(64, 10)

    def forward(self, x):
        return self.fc1(x)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enc = Encoder()
        self.stack = nn.Sequential(nn.ReLU(), nn.ModuleDict({"a": nn.Linear(3, 3)})["a"])
        self.table = nn.Embedding(4, 2)

    def forward(self, x):
        return self.enc(x)


def fails(call) -> str:
    with pytest.raises((RuntimeError, IndexError)) as caught:
        call()
    return re.sub(r"\.py:\d+", ".py:LINE", str(caught.value))


@pytest.mark.parametrize(("call", "message"), [
    (lambda: Model()(tp.ones(8, 32)),
     "linear: input[8, 32] has 32 features but weight[10, 64] takes 64 (module enc.fc1, test_error_path.py:LINE)"),
    (lambda: Model().enc(tp.ones(8, 32)),
     "linear: input[8, 32] has 32 features but weight[10, 64] takes 64 (module fc1, test_error_path.py:LINE)"),
    (lambda: nn.Sequential(nn.ReLU(), Model())(tp.ones(8, 32)),
     "linear: input[8, 32] has 32 features but weight[10, 64] takes 64 (module 1.enc.fc1, test_error_path.py:LINE)"),
    (lambda: nn.Linear(64, 10)(tp.ones(8, 32)),
     "linear: input[8, 32] has 32 features but weight[10, 64] takes 64 (test_error_path.py:LINE)"),
    (lambda: Model().stack(tp.ones(2)),
     "linear: input[2] has 2 features but weight[3, 3] takes 3 (module 1, test_error_path.py:LINE)"),
    (lambda: nn.ModuleList([Model()])[0].table(tp.tensor([4])),
     "embedding: index 4 at position 0 is outside 0..3 (the table has 4 rows) (test_error_path.py:LINE)"),
])
def test_path_and_line(call, message) -> None:
    assert fails(call) == message


def test_through_hooks_and_backward_watches() -> None:
    model = Model()
    model.enc.register_forward_hook(lambda m, args, out: None)
    model.register_full_backward_hook(lambda m, grad_input, grad_output: None)
    assert "(module enc.fc1, " in fails(lambda: model(tp.ones(8, 32, requires_grad=True)))


def test_the_line_is_the_one_that_called() -> None:
    with pytest.raises(RuntimeError) as caught:
        Model()(tp.ones(8, 32))
    line = next(e.lineno for e in reversed(list(caught.traceback)) if str(e.path).endswith("test_error_path.py"))
    assert str(caught.value).endswith(f"test_error_path.py:{line + 1})")
