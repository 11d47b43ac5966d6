"""Dispatch keys: one bit each in a plain int, and the mode mask that is added to every call.

A tensor's key set holds its device's bit, and AUTOGRAD if it requires grad. Whatever else can take part in a call
(tracing, forward mode, vmap, user modes, subclasses) has a bit too, so that it costs nothing while it is not in use.
The bits of the first seven devices and AUTOGRAD stay below 256, where CPython keeps one object per int.
"""
from __future__ import annotations

from contextvars import ContextVar

FIRST_DEVICES = 7
AUTOGRAD = 1 << 7
NO_GRAD = 1 << 8     # in the mode mask: AUTOGRAD bits do not count
INFERENCE = 1 << 9   # in the mode mask, beside NO_GRAD
TRACE = 1 << 10      # a mode that sees operations below autograd
JVP = 1 << 11
VMAP = 1 << 12
AUTOCAST = 1 << 13
MODE = 1 << 14       # a mode that sees operations before autograd
SUBCLASS = 1 << 15   # a Tensor subclass with its own __tensorplay_function__
MORE_DEVICES = 32    # bit of the eighth device

FUNCTIONAL = (1 << 16) - (1 << 7)  # every bit that is not a device
ORDER = (SUBCLASS, MODE, AUTOCAST, VMAP, JVP, AUTOGRAD, TRACE)  # who is asked first
NAMES = {AUTOGRAD: "AUTOGRAD", NO_GRAD: "NO_GRAD", INFERENCE: "INFERENCE", TRACE: "TRACE", JVP: "JVP", VMAP: "VMAP",
         AUTOCAST: "AUTOCAST", MODE: "MODE", SUBCLASS: "SUBCLASS"}

mode_mask: ContextVar[int] = ContextVar("tensorplay_modes", default=0)
modes = mode_mask.get  # one read a call, 12 ns


def keyset_text(keyset: int, device_names: dict[int, str]) -> str:
    bits = [1 << i for i in range(keyset.bit_length()) if keyset >> i & 1]
    return "|".join(NAMES.get(bit) or device_names.get(bit, hex(bit)) for bit in bits) or "none"


class mask_bits:
    """`with mask_bits(add=NO_GRAD):` changes the mode mask and sets the previous one back."""

    __slots__ = ("add", "remove", "previous")

    def __init__(self, add: int = 0, remove: int = 0) -> None:
        self.add = add
        self.remove = remove

    def __enter__(self) -> None:
        self.previous = modes()
        mode_mask.set((self.previous | self.add) & ~self.remove)

    def __exit__(self, *exc: object) -> None:
        mode_mask.set(self.previous)
