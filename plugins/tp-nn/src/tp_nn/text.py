"""A module as text: `repr` as torch prints it, `print` as a tree with shapes and parameter counts."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def module_repr(module: Any) -> str:
    extra = module.extra_repr()
    children = []
    for name, child in module._modules.items():
        children.append((name, "\n  ".join(repr(child).split("\n"))))
    lines = [f"({name}): {text}" for name, text in _folded(children)] if type(module).__name__ == "ModuleList" else \
        [f"({name}): {text}" for name, text in children]
    title = module._get_name()
    inside = (extra.split("\n") if extra else []) + lines
    if not lines and len(inside) < 2 and title != "ParameterList":
        return f"{title}({extra})"
    if not inside:
        return f"{title}()"
    return f"{title}(\n  " + "\n  ".join(inside) + "\n)"


def _folded(children: list) -> list:
    """Equal neighbours of a ModuleList as one line: `(0-3): 4 x Linear(...)`."""
    folded: list[list] = []
    for name, text in children:
        if folded and folded[-1][1] == text:
            folded[-1][2] = name
            folded[-1][3] += 1
        else:
            folded.append([name, text, name, 1])
    return [(first, text) if n == 1 else (f"{first}-{last}", f"{n} x {text}") for first, text, last, n in folded]


def count(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def architecture(module: Any) -> str:
    """The tree that `print(model)` shows: one line for each module with its own tensors and all its parameters."""
    total = sum([p.layout.numel for p in module.parameters()])
    size = sum([p.layout.nbytes for p in module.parameters()])
    rows = [(type(module).__name__, _own(module), total)]
    _rows(module, "", rows)
    width = max([len(row[0]) for row in rows])
    middle = max([len(row[1]) for row in rows])
    lines = [f"{name:<{width}}  {own:<{middle}}  {count(number):>10}".rstrip() if number or own else name
             for name, own, number in rows]
    unit = f"{size / 2 ** 20:.1f} MiB" if size >= 2 ** 20 else f"{size / 2 ** 10:.1f} KiB"
    return "\n".join([*lines, f"{count(total)} parameters, {unit}"])


def _own(module: Any) -> str:
    parts = [f"{name} {list(value.layout.shape)}" for name, value in module._parameters.items() if value is not None]
    parts += [f"{name} {list(value.layout.shape)} (buffer)" for name, value in module._buffers.items()
              if value is not None]
    return ", ".join(parts) or module.extra_repr().replace("\n", " ")


def _rows(module: Any, indent: str, rows: list) -> None:
    children = [(name, child) for name, child in module._modules.items() if child is not None]
    for i, (name, child) in enumerate(children):
        last = i == len(children) - 1
        number = sum([p.layout.numel for p in child.parameters()])
        rows.append((f"{indent}{'└─ ' if last else '├─ '}{name}: {type(child).__name__}", _own(child), number))
        _rows(child, indent + ("   " if last else "│  "), rows)
