"""repr as torch prints it (literal strings from torch 2.13), and the tree that print(model) draws."""
from __future__ import annotations

import pytest

import tensorplay as tp
from tensorplay import nn

REPRS = [
    (lambda: nn.Linear(3, 4, bias=False), "Linear(in_features=3, out_features=4, bias=False)"),
    (lambda: nn.Identity(), "Identity()"),
    (lambda: nn.Embedding(5, 3, padding_idx=1), "Embedding(5, 3, padding_idx=1)"),
    (lambda: nn.Embedding(5, 3), "Embedding(5, 3)"),
    (lambda: nn.LayerNorm(4), "LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=True)"),
    (lambda: nn.LayerNorm((2, 3), bias=False), "LayerNorm((2, 3), eps=1e-05, elementwise_affine=True, bias=False)"),
    (lambda: nn.LayerNorm(4, elementwise_affine=False),
     "LayerNorm((4,), eps=1e-05, elementwise_affine=False, bias=False)"),
    (lambda: nn.RMSNorm(4), "RMSNorm((4,), eps=None, elementwise_affine=True)"),
    (lambda: nn.Dropout(0.1), "Dropout(p=0.1, inplace=False)"),
    (lambda: nn.Flatten(), "Flatten(start_dim=1, end_dim=-1)"),
    (lambda: nn.Softmax(1), "Softmax(dim=1)"),
    (lambda: nn.LogSoftmax(1), "LogSoftmax(dim=1)"),
    (lambda: nn.GELU("tanh"), "GELU(approximate='tanh')"),
    (lambda: nn.ReLU(inplace=True), "ReLU(inplace=True)"),
    (lambda: nn.SiLU(), "SiLU()"),
    (lambda: nn.CrossEntropyLoss(), "CrossEntropyLoss()"),
    (lambda: nn.Sequential(), "Sequential()"),
    (lambda: nn.ModuleList(), "ModuleList()"),
    (lambda: nn.ParameterList(), "ParameterList()"),
    (lambda: nn.ModuleDict({"a": nn.Linear(1, 2)}),
     "ModuleDict(\n  (a): Linear(in_features=1, out_features=2, bias=True)\n)"),
    (lambda: nn.ModuleList([nn.Linear(1, 2), nn.Linear(1, 2), nn.Linear(1, 2), nn.ReLU()]),
     "ModuleList(\n  (0-2): 3 x Linear(in_features=1, out_features=2, bias=True)\n  (3): ReLU()\n)"),
    (lambda: nn.Sequential({"a": nn.Linear(1, 1), "b": nn.Sequential(nn.Tanh(), nn.Identity())}),
     "Sequential(\n  (a): Linear(in_features=1, out_features=1, bias=True)\n  (b): Sequential(\n    (0): Tanh()\n"
     "    (1): Identity()\n  )\n)"),
]


@pytest.mark.parametrize(("make", "expected"), REPRS, ids=[text[:40] for _, text in REPRS])
def test_repr(make, expected) -> None:
    assert repr(make()) == expected


def test_repr_of_a_parameter_list() -> None:
    made = nn.ParameterList([tp.zeros(2, 3), tp.zeros(())])
    assert repr(made) == ("ParameterList(\n    (0): Parameter containing: [tensorplay.float32 of size 2x3]\n"
                          "    (1): Parameter containing: [tensorplay.float32 of size ]\n)")


def test_print_draws_the_architecture(capsys) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.ModuleList([nn.LayerNorm(8)]))
    model.register_buffer("mean", tp.zeros(4))
    print(model)
    assert capsys.readouterr().out == (
        "Sequential          mean [4] (buffer)                56\n"
        "├─ 0: Linear        weight [8, 4], bias [8]          40\n"
        "├─ 1: ReLU\n"
        "└─ 2: ModuleList                                     16\n"
        "   └─ 0: LayerNorm  weight [8], bias [8]             16\n"
        "56 parameters, 0.2 KiB\n")


def test_shared_parameters_are_counted_once() -> None:
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    model[1].weight = model[0].weight
    assert str(model).splitlines()[-1] == "4 parameters, 0.0 KiB"
