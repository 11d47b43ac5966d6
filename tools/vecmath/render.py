"""Renders the math tables and functions into the source files that use them.

``python render.py`` writes the files, ``python render.py --check`` fails when a checked-in file differs.
"""

from __future__ import annotations

import sys
from pathlib import Path

from cpp import render_elementary, render_header
from functions import ACTIVATIONS, ELEMENTARY, TRIG_LIMIT
from tables import render_tables

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "plugins" / "tp-cpu" / "kernels" / "src"
OPERATORS = ROOT / "plugins" / "tp-operators" / "src" / "tp_operators"


def outputs() -> dict[Path, str]:
    tables = {(KERNELS if name.endswith(".h") else OPERATORS) / name: text for name, text in render_tables().items()}
    return {
        KERNELS / "vecmath.h": render_elementary(ELEMENTARY, TRIG_LIMIT),
        KERNELS / "activation_math.h": render_header(ACTIVATIONS, "vecmath.h"),
        **tables,
    }


def main() -> int:
    check = "--check" in sys.argv[1:]
    stale = []
    for path, text in outputs().items():
        if path.exists() and path.read_text() == text:
            continue
        stale.append(path)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    for path in stale:
        print(("out of date: " if check else "wrote ") + str(path.relative_to(ROOT)))
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
