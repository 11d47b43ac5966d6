"""Schemas: `gelu(Tensor input, *, str approximate='none') -> Tensor` read into parameters, and arguments put in order.

Types: Tensor, Operand (a tensor or a Python number, taking part in promotion), int, float, bool, str, Number, dtype,
device, Generator, any; each may be a list (`int[]`, `Tensor[]`) and optional (`?`, then None is allowed). `Tensor(a!)`
marks a tensor that the operator writes to.
"""
from __future__ import annotations

from ._errors import ArgumentError

TENSOR_TYPES = ("Tensor", "Operand")
OTHER_TYPES = ("int", "float", "bool", "str", "Number", "dtype", "device", "Generator", "any")
REQUIRED = object()
_CONSTANTS = {"None": None, "True": True, "False": False, "()": (), "[]": ()}


class Parameter:
    __slots__ = ("name", "type", "is_list", "optional", "mutated", "default", "keyword_only")

    def __init__(self, text: str, keyword_only: bool) -> None:
        declaration, equals, default = text.partition("=")
        type_text, _, self.name = declaration.strip().rpartition(" ")
        self.keyword_only = keyword_only
        self.default = _constant(default.strip()) if equals else REQUIRED
        type_text = type_text.rstrip()
        self.optional = type_text.endswith("?")
        self.mutated = "(a!)" in type_text
        type_text = type_text.rstrip("?").replace("(a!)", "")
        self.is_list = type_text.endswith("[]")
        self.type = type_text[:-2] if self.is_list else type_text
        if not self.name.isidentifier() or self.type not in TENSOR_TYPES + OTHER_TYPES:
            raise ArgumentError(f"schema: cannot read parameter {text.strip()!r}; expected 'TYPE name' or "
                                f"'TYPE name=default' with TYPE one of {', '.join(TENSOR_TYPES + OTHER_TYPES)}")

    @property
    def is_tensor(self) -> bool:
        return self.type in TENSOR_TYPES

    def __repr__(self) -> str:
        mark = "(a!)" if self.mutated else ""
        text = f"{self.type}{mark}{'[]' if self.is_list else ''}{'?' if self.optional else ''} {self.name}"
        return text if self.default is REQUIRED else f"{text}={self.default!r}"


def _constant(text: str) -> object:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]:
        return text[1:-1]
    if text and text[0] in "[(":
        return tuple([_constant(part.strip()) for part in text[1:-1].split(",") if part.strip()])
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            raise ArgumentError(f"schema: {text!r} is not a constant") from None


class Schema:
    """A schema's text, and what it says: parameters, the number of results, which arguments are tensors."""

    __slots__ = ("text", "name", "parameters", "returns", "tensors", "lists", "defaults", "mutates", "required")

    def __init__(self, text: str) -> None:
        head, arrow, returns = text.partition("->")
        name, bracket, inside = head.strip().partition("(")
        if not arrow or not bracket or not inside.endswith(")"):
            raise ArgumentError(f"schema: expected 'name(parameters) -> returns', got {text!r}")
        self.text = text
        self.name = name.strip()
        if not all([part.isidentifier() for part in self.name.split("::")]):
            raise ArgumentError(f"schema: {self.name!r} is not a name such as 'gelu' or 'mine::gelu', in {text!r}")
        self.parameters: list[Parameter] = []
        keyword_only = False
        for part in _split(inside[:-1]):
            if part.strip() == "*":
                keyword_only = True
            else:
                self.parameters.append(Parameter(part, keyword_only))
        names = [p.name for p in self.parameters]
        if len(set(names)) != len(names):
            raise ArgumentError(f"schema: two parameters have one name in {text!r}")
        self.returns = _read_returns(returns.strip())
        self.tensors = tuple([i for i, p in enumerate(self.parameters) if p.is_tensor and not p.is_list])
        self.lists = tuple([i for i, p in enumerate(self.parameters) if p.is_tensor and p.is_list])
        self.defaults = tuple([p.default for p in self.parameters])
        self.required = max([i + 1 for i, p in enumerate(self.parameters) if p.default is REQUIRED], default=0)
        self.mutates = tuple([i for i, p in enumerate(self.parameters) if p.mutated])

    def bind(self, args: tuple, named: dict) -> tuple:
        """All arguments in schema order. Unknown, double and missing ones are refused by name."""
        parameters = self.parameters
        if len(args) > len(parameters):
            raise ArgumentError(f"{self.name} takes at most {len(parameters)} arguments, got {len(args)}: {self.text}")
        values = list(args) + list(self.defaults[len(args):])
        for name, value in named.items():
            index = next((i for i, p in enumerate(parameters) if p.name == name), None)
            if index is None:
                raise ArgumentError(f"{self.name} has no argument {name!r}: {self.text}")
            if index < len(args):
                raise ArgumentError(f"{self.name} got two values for {name!r}: {self.text}")
            values[index] = value
        for parameter, value in zip(parameters, values):
            if value is REQUIRED:
                raise ArgumentError(f"{self.name} is missing its argument {parameter.name!r}: {self.text}")
        return tuple(values)


def _split(text: str) -> list[str]:
    """At commas that are not inside brackets or quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for i, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == "," and not depth:
            parts.append(text[start:i])
            start = i + 1
    return [part for part in parts + [text[start:]] if part.strip()]


def _read_returns(text: str) -> int:
    """How many tensors come back; -1 for a list of them, 0 for none."""
    if text in ("Tensor", "Tensor(a!)"):
        return 1
    if text == "Tensor[]":
        return -1
    if text == "()":
        return 0
    if text.startswith("("):
        return len(_split(text[1:-1]))
    raise ArgumentError(f"schema: returns must be 'Tensor', '(Tensor, Tensor)', 'Tensor[]' or '()', got {text!r}")
