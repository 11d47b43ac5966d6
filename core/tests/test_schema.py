"""Schemas: what they are read into, how arguments are put in order, and every error on the way."""
from __future__ import annotations

import pytest

from tensorplay._errors import ArgumentError
from tensorplay._schema import REQUIRED, Schema

PARAMETERS = [  # (declaration, name, type, list, optional, written, default)
    ("Tensor input", "input", "Tensor", False, False, False, REQUIRED),
    ("Tensor(a!) self", "self", "Tensor", False, False, True, REQUIRED),
    ("Tensor(a!)[] params", "params", "Tensor", True, False, True, REQUIRED),
    ("Tensor[] tensors", "tensors", "Tensor", True, False, False, REQUIRED),
    ("Tensor? weight=None", "weight", "Tensor", False, True, False, None),
    ("Operand other", "other", "Operand", False, False, False, REQUIRED),
    ("Operand? min=None", "min", "Operand", False, True, False, None),
    ("int dim=-1", "dim", "int", False, False, False, -1),
    ("int[] dims=[0, 1]", "dims", "int", True, False, False, (0, 1)),
    ("int[]? dim=None", "dim", "int", True, True, False, None),
    ("int[] size=()", "size", "int", True, False, False, ()),
    ("int[] size=(2,)", "size", "int", True, False, False, (2,)),
    ("float eps=1e-5", "eps", "float", False, False, False, 1e-5),
    ("float p=0.5", "p", "float", False, False, False, 0.5),
    ("float top=inf", "top", "float", False, False, False, float("inf")),
    ("bool keepdim=False", "keepdim", "bool", False, False, False, False),
    ("bool largest=True", "largest", "bool", False, False, False, True),
    ("str approximate='none'", "approximate", "str", False, False, False, "none"),
    ('str mode="a, b"', "mode", "str", False, False, False, "a, b"),
    ("str text=''", "text", "str", False, False, False, ""),
    ("Number value", "value", "Number", False, False, False, REQUIRED),
    ("dtype? dtype=None", "dtype", "dtype", False, True, False, None),
    ("device? device=None", "device", "device", False, True, False, None),
    ("Generator? generator=None", "generator", "Generator", False, True, False, None),
    ("any spec", "spec", "any", False, False, False, REQUIRED),
]


@pytest.mark.parametrize(("text", "name", "kind", "is_list", "optional", "written", "default"), PARAMETERS)
def test_parameters(text, name, kind, is_list, optional, written, default):
    schema = Schema(f"f({text}) -> Tensor")
    p, = schema.parameters
    assert (p.name, p.type, p.is_list, p.optional, p.mutated, p.keyword_only) == (name, kind, is_list, optional,
                                                                                 written, False)
    assert p.default is default or p.default == default
    assert type(p.default) is type(default)
    assert p.is_tensor == (kind in ("Tensor", "Operand"))
    again, = Schema(f"f({p!r}) -> Tensor").parameters  # what it prints is the declaration
    assert repr(again) == repr(p)


def test_positions_of_each_kind():
    schema = Schema("mine::f(Tensor a, Tensor[] b, Operand? c, int d=1, *, Tensor(a!)[] e=(), str g='x,y)') -> Tensor")
    assert schema.name == "mine::f"
    assert [p.name for p in schema.parameters] == list("abcdeg")
    assert [p.keyword_only for p in schema.parameters] == [False] * 4 + [True] * 2
    assert (schema.tensors, schema.lists, schema.mutates, schema.required) == ((0, 2), (1, 4), (4,), 3)
    assert schema.defaults[3:] == (1, (), "x,y)")
    assert all([default is REQUIRED for default in schema.defaults[:3]])


def test_no_parameters_and_white_space():
    assert Schema("f() -> Tensor").parameters == []
    schema = Schema("  f ( Tensor  x ,  int y = 3 ) ->  Tensor ")
    assert schema.name == "f"
    assert [(p.name, p.type, p.default) for p in schema.parameters] == [("x", "Tensor", REQUIRED), ("y", "int", 3)]


RETURNS = [("Tensor", 1), ("Tensor(a!)", 1), ("(Tensor, Tensor)", 2), ("(Tensor values, Tensor indices)", 2),
           ("(Tensor a, Tensor b, Tensor c)", 3), ("Tensor[]", -1), ("()", 0)]


@pytest.mark.parametrize(("text", "count"), RETURNS)
def test_returns(text, count):
    assert Schema(f"f(Tensor x) -> {text}").returns == count


UNREADABLE = [  # (schema, in the message)
    ("f", "schema: expected 'name(parameters) -> returns', got 'f'"),
    ("f(Tensor x)", "schema: expected 'name(parameters) -> returns'"),
    ("f Tensor x -> Tensor", "schema: expected 'name(parameters) -> returns'"),
    ("f(Tensor x -> Tensor", "schema: expected 'name(parameters) -> returns'"),
    ("", "schema: expected 'name(parameters) -> returns', got ''"),
    ("(Tensor x) -> Tensor", "schema: '' is not a name such as 'gelu' or 'mine::gelu'"),
    ("a b(Tensor x) -> Tensor", "schema: 'a b' is not a name"),
    ("mine::(Tensor x) -> Tensor", "schema: 'mine::' is not a name"),
    ("a:b(Tensor x) -> Tensor", "schema: 'a:b' is not a name"),
    ("f(Tensor) -> Tensor", "schema: cannot read parameter 'Tensor'; expected 'TYPE name' or 'TYPE name=default'"),
    ("f(tensor x) -> Tensor", "schema: cannot read parameter 'tensor x'"),
    ("f(Tensor x y) -> Tensor", "schema: cannot read parameter 'Tensor x y'"),
    ("f(Tensor 1x) -> Tensor", "schema: cannot read parameter 'Tensor 1x'"),
    ("f(Tensor?[] x) -> Tensor", "schema: cannot read parameter 'Tensor?[] x'"),
    ("f(int[][] x) -> Tensor", "schema: cannot read parameter 'int[][] x'"),
    ("f(Tensor x, Tensor x) -> Tensor", "schema: two parameters have one name"),
    ("f(int x=one) -> Tensor", "schema: 'one' is not a constant"),
    ("f(int x=) -> Tensor", "schema: '' is not a constant"),
    ("f(int[] x=[1, y]) -> Tensor", "schema: 'y' is not a constant"),
    ("f(str x=none) -> Tensor", "schema: 'none' is not a constant"),
    ("f(Tensor x) -> tensor", "schema: returns must be 'Tensor', '(Tensor, Tensor)', 'Tensor[]' or '()', got 'tensor'"),
    ("f(Tensor x) -> ", "schema: returns must be 'Tensor'"),
]


@pytest.mark.parametrize(("text", "expected"), UNREADABLE)
def test_unreadable_schemas(text, expected):
    with pytest.raises(ArgumentError) as caught:
        Schema(text)
    assert caught.value.message.startswith(expected)


SCHEMA = Schema("f(Tensor x, int dim=0, bool keep=False, *, str mode='sum') -> Tensor")
BOUND = [  # (positional, by name, in schema order)
    (("t",), {}, ("t", 0, False, "sum")),
    (("t", 1), {}, ("t", 1, False, "sum")),
    (("t", 1, True, "mean"), {}, ("t", 1, True, "mean")),
    ((), {"x": "t"}, ("t", 0, False, "sum")),
    (("t",), {"keep": True}, ("t", 0, True, "sum")),
    ((), {"mode": "mean", "dim": 2, "x": "t"}, ("t", 2, False, "mean")),
    (("t",), {"dim": None}, ("t", None, False, "sum")),
]


@pytest.mark.parametrize(("args", "named", "expected"), BOUND)
def test_binding(args, named, expected):
    assert SCHEMA.bind(args, named) == expected


UNBOUND = [
    ((), {}, "f is missing its argument 'x': f(Tensor x, int dim=0"),
    ((), {"dim": 1}, "f is missing its argument 'x': "),
    (("t", 1, True, "sum", 5), {}, "f takes at most 4 arguments, got 5: f(Tensor x"),
    (("t",), {"axis": 1}, "f has no argument 'axis': f(Tensor x"),
    (("t", 1), {"dim": 1}, "f got two values for 'dim': f(Tensor x"),
    (("t",), {"x": "t"}, "f got two values for 'x': "),
]


@pytest.mark.parametrize(("args", "named", "expected"), UNBOUND)
def test_arguments_that_do_not_fit(args, named, expected):
    with pytest.raises(ArgumentError) as caught:
        SCHEMA.bind(args, named)
    assert caught.value.message.startswith(expected)
    assert isinstance(caught.value, TypeError)


def test_a_required_argument_after_a_default_is_still_required():
    schema = Schema("f(Tensor x, int a=1, *, int b) -> Tensor")
    assert schema.required == 3
    assert schema.bind(("t",), {"b": 2}) == ("t", 1, 2)
    with pytest.raises(ArgumentError, match="f is missing its argument 'b'"):
        schema.bind(("t", 1), {})
