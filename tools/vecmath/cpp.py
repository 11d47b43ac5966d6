"""Writes programs as C++: one always-inlined function each."""

from __future__ import annotations

import math

from program import Function, Value

TYPES = {"f32": "float", "f64": "double", "i32": "int32_t", "u32": "uint32_t", "i64": "int64_t", "u64": "uint64_t",
         "b": "bool"}
SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "gt": ">", "eq": "==", "and": "&", "or": "|",
           "xor": "^"}

HEADER = """\
// Rendered by tools/vecmath/render.py from tools/vecmath/functions.py: do not edit.
// Branch-free scalar functions that vectorise inside a loop; accurate with and without fused multiply-add.
#pragma once
#include "{include}"
{prelude}
namespace TPK_ISA_NS {{

"""

ELEMENTARY_PRELUDE = """
#define TPK_INLINE static inline __attribute__((always_inline, unused))

namespace TPK_ISA_NS {{
// sin, cos and tan are for smaller |x| than this; beyond it take the C library's.
constexpr float kTrigLimit = {limit};
}}  // namespace TPK_ISA_NS
"""


def literal(type: str, value: object) -> str:
    if type in ("f32", "f64"):
        number = float(value)
        if math.isnan(number):
            return "__builtin_nanf(\"\")" if type == "f32" else "__builtin_nan(\"\")"
        if math.isinf(number):
            return ("-" if number < 0 else "") + ("__builtin_inff()" if type == "f32" else "__builtin_inf()")
        if number == int(number) and abs(number) < 1e6:
            text = f"{number:.1f}"
        else:
            text = _short_hex(number)
        return text + ("f" if type == "f32" else "")
    if type == "b":
        return "true" if value else "false"
    suffix = {"u32": "u", "u64": "ull"}.get(type, "")
    return (f"{int(value)}" if int(value) < 1000 else f"{int(value):#x}") + suffix


def _short_hex(number: float) -> str:
    mantissa, exponent = number.hex().split("p")
    mantissa = mantissa.rstrip("0")
    return f"{mantissa}0p{exponent}" if mantissa.endswith(".") else f"{mantissa}p{exponent}"


class _Writer:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.uses: dict[int, int] = {}
        self.known: dict[int, str] = {}
        self.lines: list[str] = []
        self._count(function.result)

    def _count(self, value: Value) -> None:
        self.uses[id(value)] = self.uses.get(id(value), 0) + 1
        if self.uses[id(value)] == 1:
            for arg in value.args:
                self._count(arg)

    def text(self, value: Value) -> str:
        if id(value) in self.known:
            return self.known[id(value)]
        expression = self.expression(value)
        inline = value.op in ("constant", "parameter") or (self.uses[id(value)] == 1 and len(expression) < 40)
        if inline:
            result = expression
        else:
            result = f"v{len(self.lines)}"
            self.lines.append(f"  const {TYPES[value.type]} {result} = {_strip(expression)};")
        self.known[id(value)] = result
        return result

    def expression(self, value: Value) -> str:
        if value.op == "constant":
            return literal(value.type, value.detail)
        if value.op == "parameter":
            return "xyz"[value.detail]
        args = [self.text(arg) for arg in value.args]
        if value.op in SYMBOLS:
            return f"({args[0]} {SYMBOLS[value.op]} {args[1]})"
        if value.op in ("shl", "shr"):
            return f"({args[0]} {'<<' if value.op == 'shl' else '>>'} {value.detail})"
        if value.op == "sqrt":
            return f"__builtin_sqrt{'f' if value.type == 'f32' else ''}({_strip(args[0])})"
        if value.op == "neg":
            return f"(-{args[0]})"
        if value.op == "bits":
            return f"bit_cast<{TYPES[value.type]}>({_strip(args[0])})"
        if value.op == "convert":
            return f"static_cast<{TYPES[value.type]}>({_strip(args[0])})"
        if value.op == "select":
            return f"({args[0]} ? {args[1]} : {args[2]})"
        if value.op == "call":
            return f"{value.detail.name}({', '.join(map(_strip, args))})"
        raise ValueError(value.op)


def _strip(text: str) -> str:
    """Without parentheses around the whole text."""
    if not text.startswith("("):
        return text
    depth = 0
    for i, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return text[1:-1] if i == len(text) - 1 else text
    return text


def render_function(function: Function) -> str:
    writer = _Writer(function)
    result = _strip(writer.text(function.result))
    parameters = ", ".join(f"{TYPES[type]} {name}" for type, name in zip(function.parameters, "xyz"))
    head = f"// {function.doc}\nTPK_INLINE {TYPES[function.type]} {function.name}({parameters}) {{\n"
    return head + "".join(line + "\n" for line in writer.lines) + f"  return {result};\n}}\n"


def render_header(functions: tuple[Function, ...], include: str, prelude: str = "") -> str:
    body = "\n".join(render_function(function) for function in functions)
    return HEADER.format(include=include, prelude=prelude) + body + "\n}  // namespace TPK_ISA_NS\n"


def render_elementary(functions: tuple[Function, ...], trig_limit: float) -> str:
    return render_header(functions, "dtype.h", ELEMENTARY_PRELUDE.format(limit=literal("f32", trig_limit)))
