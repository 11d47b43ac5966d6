"""Renders the tables of ``normal.py`` as C++ and as Python; the numbers stand there as bit patterns."""

from __future__ import annotations

from normal import FLOAT32, FLOAT64, Layout, bit_patterns, table

_NOTE = "rendered by tools/vecmath/render.py from normal.py: do not edit."


def _lines(numbers: list[int], digits: int, suffix: str = "") -> list[str]:
    per_line = 118 // (digits + 4 + len(suffix))
    texts = [f"0x{number:0{digits}x}{suffix}," for number in numbers]
    return [" " + " ".join(texts[i:i + per_line]).rstrip() for i in range(0, len(texts), per_line)]


def _cpp(layout: Layout, name: str, patterns: list[list[int]]) -> str:
    kind, digits = ("uint32_t", 8) if layout.word_bits == 32 else ("uint64_t", 16)
    lines = [f"// Inverse normal distribution as polynomials, {_NOTE}", "// One array per power of the position; the "
             "numbers are the bits of the coefficients.", "#pragma once", "#include <cstdint>", "", '#include "isa.h"',
             "", "namespace TPK_ISA_NS {", "", f"alignas(64) static const {kind} {name}[{layout.degree + 1}]"
             f"[{len(patterns[0])}] = {{"]
    for column in patterns:
        lines += ["{"] + _lines(column, digits) + ["},"]
    return "\n".join([*lines, "};", "", "}  // namespace TPK_ISA_NS", ""])


def _python(layout: Layout, patterns: list[list[int]]) -> str:
    digits = 8 if layout.word_bits == 32 else 16
    lines = [f'"""Inverse normal distribution as polynomials, {_NOTE}', "",
             f"COLUMNS[d][row]: the bits of the float{layout.word_bits} coefficient of t**d. ``row`` is the octave "
             f"times {1 << layout.part_bits} plus the part.", '"""', "", "from __future__ import annotations", "",
             f"PART_BITS = {layout.part_bits}", f"POSITION_BITS = {layout.position_bits}",
             "COLUMNS: tuple[tuple[int, ...], ...] = ("]
    for column in patterns:
        lines += [" ("] + _lines(column, digits) + [" ),"]
    return "\n".join([*lines, ")", ""])


def render_tables() -> dict[str, str]:
    """File name -> text: normal_table.h, normal_table_f64.h, _normal_table.py, _normal_table_f64.py."""
    single, double = (bit_patterns(layout, table(layout)[0]) for layout in (FLOAT32, FLOAT64))
    return {
        "normal_table.h": _cpp(FLOAT32, "kNormalTable", single),
        "normal_table_f64.h": _cpp(FLOAT64, "kNormalTableWide", double),
        "_normal_table.py": _python(FLOAT32, single),
        "_normal_table_f64.py": _python(FLOAT64, double),
    }
