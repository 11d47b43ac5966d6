"""state_dict: collecting a module's tensors by name and loading them back, all or nothing."""
from __future__ import annotations

from collections import namedtuple

import tensorplay as tp
from tensorplay.library import ArgumentError, TensorPlayError, shape_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .module import Module

SHOWN = 20  # names of each kind in an error; a wrong file may have thousands
Mismatch = namedtuple("Mismatch", ("missing_keys", "unexpected_keys"))


class StateError(TensorPlayError, RuntimeError, ValueError):
    """A state_dict that does not fit the module."""


def collect_state(module: Module, into: dict, prefix: str, keep_vars: bool) -> dict:
    for name, value in module._parameters.items():
        if value is not None:
            into[prefix + name] = value if keep_vars else value.detach()
    for name, value in module._buffers.items():
        if value is not None and name not in module._not_persistent:
            into[prefix + name] = value if keep_vars else value.detach()
    for name, child in module._modules.items():
        if child is not None:
            collect_state(child, into, f"{prefix}{name}.", keep_vars)
    return into


def load_state(module: Module, state: Any, strict: bool, assign: bool) -> Mismatch:
    if not hasattr(state, "keys"):
        raise ArgumentError(f"load_state_dict takes a mapping from names to tensors, got {type(state).__name__}")
    own = collect_state(module, {}, "", True)
    missing = [name for name in own if name not in state]
    unexpected = [name for name in state if name not in own]
    problems = []
    if strict and missing:
        problems.append("missing: " + _listed(missing))
    if strict and unexpected:
        problems.append("unexpected: " + _listed([str(name) + _suggestion(name, state, missing, own)
                                                  for name in unexpected[:SHOWN]], len(unexpected)))
    for name in own:
        if name in state:
            value = state[name]
            if not isinstance(value, tp.Tensor):
                problems.append(f"{name} is {type(value).__name__}, not a Tensor")
            elif value.layout.shape != own[name].layout.shape:
                problems.append(f"{name} has shape {shape_text(value.layout.shape)} in the state but "
                                f"{shape_text(own[name].layout.shape)} in the module")
            elif not assign and value.dtype.is_complex and not own[name].dtype.is_complex:
                problems.append(f"{name} is {value.dtype.name} in the state but {own[name].dtype.name} in the module")
            elif value.is_meta and not own[name].is_meta and not assign:
                problems.append(f"{name} is on the meta device and has no values")
    if problems:
        raise StateError(f"{type(module).__name__}.load_state_dict changed nothing, because the state does not fit:\n  "
                         + "\n  ".join(problems[:SHOWN])
                         + (f"\n  and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""))
    with tp.no_grad():
        for name in own:
            if name in state:
                _put(module, name, own[name], state[name], assign)
    return Mismatch(missing, unexpected)


def _put(module: Module, name: str, target: Any, value: Any, assign: bool) -> None:
    if not assign:
        target.copy_(value)
        return
    path, _, last = name.rpartition(".")
    owner = module.get_submodule(path)
    if last in owner._parameters:
        setattr(owner, last, tp.nn.Parameter(value, target.requires_grad))
    else:
        setattr(owner, last, value)


def _listed(names: list, count: int | None = None) -> str:
    more = (len(names) if count is None else count) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _suggestion(name: str, state: Any, missing: list, own: dict) -> str:
    """A missing name of the same shape that looks alike: probably renamed."""
    from difflib import get_close_matches

    shape = getattr(getattr(state[name], "layout", None), "shape", None)
    alike = get_close_matches(str(name), [m for m in missing if own[m].layout.shape == shape], 1, 0.3)
    return f" (renamed to {alike[0]}?)" if alike else ""
