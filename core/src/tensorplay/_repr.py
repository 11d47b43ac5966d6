"""How tensors print: torch's format, from the device's bytes alone, so that it works on every device and in every mode
and runs no operator."""
from __future__ import annotations

from ._data import unpack
from ._dtype import COMPLEX, FLOATING, bool_, get_default_dtype, int64
from ._errors import ValueRangeError
from ._tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INFINITY = float("inf")


class Options:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80), "full": (4, INFINITY, 3, 80)}
_NAMES = ("precision", "threshold", "edgeitems", "linewidth")


def set_printoptions(precision: int | None = None, threshold: float | None = None, edgeitems: int | None = None,
                     linewidth: int | None = None, profile: str | None = None, sci_mode: bool | None = None) -> None:
    """How tensors print: digits (4), elements from which the middle is left out (1000), items kept at each end (3),
    line width (80), a profile ("default", "short", "full"), scientific notation (None: when the values ask for it)."""
    if profile is not None and profile not in _PROFILES:
        raise ValueRangeError(f"set_printoptions: profile must be one of {', '.join(_PROFILES)}, got {profile!r}")
    values = _PROFILES[profile] if profile is not None else (None,) * 4
    for name, of_profile, given in zip(_NAMES, values, (precision, threshold, edgeitems, linewidth)):
        value = of_profile if given is None else given
        if value is not None:
            if value < 0:
                raise ValueRangeError(f"set_printoptions: {name} must not be negative, got {value}")
            setattr(Options, name, value)
    Options.sci_mode = sci_mode


def tensor_text(x: Tensor) -> str:
    cls = type(x)
    prefix = "tensor(" if cls is Tensor or cls.__name__ == "Parameter" else f"{cls.__name__}("
    default, dtype = get_default_dtype(), x.dtype
    meta, empty = x.is_meta, x.numel() == 0
    suffixes = [] if x.device.type == "cpu" else [f"device='{x.device}'"]
    if meta or (empty and x.ndim != 1) or (not Options.edgeitems and not empty):
        suffixes.append(f"size={tuple(x.layout.shape)}")
    if dtype not in ((default,) if meta or empty else (default, default.to_complex(), int64, bool_)):
        suffixes.append(f"dtype={dtype!r}")
    if x.grad_fn is not None:
        suffixes.append(f"grad_fn=<{_node_name(x.grad_fn)}>")
    elif x.requires_grad:
        suffixes.append("requires_grad=True")
    body = "..." if meta else "[]" if empty else _Body(x).text(len(prefix))
    return _with_suffixes(prefix + body, suffixes, len(prefix))


def _node_name(node: Any) -> str:
    name = getattr(node, "name", None)
    return str(name() if callable(name) else name or type(node).__name__)


def _with_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    length = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if length + len(suffix) + 2 > Options.linewidth:
            text += ",\n" + " " * indent + suffix
            length = indent + len(suffix)
        else:
            text += ", " + suffix
            length += len(suffix) + 2
    return text + ")"


class _Body:
    """The shown elements of a tensor, read once, and their nested text."""

    def __init__(self, x: Tensor) -> None:
        self.layout = x.layout
        self.summarize = x.numel() > Options.threshold
        dtype, size = x.dtype, x.itemsize
        data = memoryview(x.device.driver.copy_to_host(x.storage)).cast("B")
        offsets: list[int] = []
        self._collect(x.offset, 0, offsets)
        shown = b"".join([data[o * size:(o + 1) * size] for o in offsets])
        values = unpack(shown, dtype, len(offsets))
        self.complex = dtype.category == COMPLEX
        if self.complex:
            real, imaginary = _Numbers([v.real for v in values], True), _Numbers([v.imag for v in values], True)
            self.width = real.width + imaginary.width + 1
            texts = [_complex_text(real.text(v.real), imaginary.text(v.imag)) for v in values]
        else:
            numbers = _Numbers(values, dtype.category == FLOATING)
            self.width = numbers.width
            texts = [numbers.text(v) for v in values]
        self.texts = iter(texts)

    def _shown(self, dim: int) -> tuple[list[int], bool]:
        """The indices of a dimension that are shown, and whether the middle is left out."""
        size, edge = self.layout.shape[dim], Options.edgeitems
        if not self.summarize or size <= 2 * edge:
            return list(range(size)), False
        return [*range(edge), *range(size - edge, size)], True

    def _collect(self, offset: int, dim: int, offsets: list[int]) -> None:
        if dim == self.layout.ndim:
            offsets.append(offset)
            return
        for i in self._shown(dim)[0]:
            self._collect(offset + i * self.layout.strides[dim], dim + 1, offsets)

    def text(self, indent: int, dim: int = 0) -> str:
        ndim = self.layout.ndim
        if ndim == 0:
            return next(self.texts)
        indices, cut = self._shown(dim)
        last = dim == ndim - 1
        parts = [next(self.texts) if last else self.text(indent + 1, dim + 1) for _ in indices]
        if cut:
            parts.insert(len(indices) // 2, " ..." if last and Options.edgeitems else "...")
        if not last:
            return "[" + ("," + "\n" * (ndim - dim - 1) + " " * (indent + 1)).join(parts) + "]"
        per_line = max(1, (Options.linewidth - indent) // (self.width + 2))
        lines = [", ".join(parts[i:i + per_line]) for i in range(0, len(parts), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


class _Numbers:
    """One format for all shown numbers: integers, whole floats, fixed or scientific notation."""

    def __init__(self, values: list, floating: bool) -> None:
        self.floating = floating
        self.whole, self.scientific, self.width = True, False, 1
        if not floating:
            self.width = max([1, *[len(str(value)) for value in values]])
            return
        finite = [value for value in values if value and value - value == 0]
        if not finite:
            return
        low, high = min(map(abs, finite)), max(map(abs, finite))
        self.whole = all([value == int(value) for value in finite])
        self.scientific = (high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4) if Options.sci_mode is None \
            else Options.sci_mode
        self.width = max([1, *[len(self.plain(value)) for value in finite]])

    def plain(self, value: Any) -> str:
        if not self.floating:
            return str(value)
        if self.scientific:
            return f"{value:.{Options.precision}e}"
        if self.whole:
            return f"{value:.0f}." if value - value == 0 else f"{value:.0f}"
        return f"{value:.{Options.precision}f}"

    def text(self, value: Any) -> str:
        return self.plain(value).rjust(self.width)


def _complex_text(real: str, imaginary: str) -> str:
    imaginary = imaginary.lstrip() + "j"
    return real + (imaginary if imaginary[0] in "+-" else "+" + imaginary)
