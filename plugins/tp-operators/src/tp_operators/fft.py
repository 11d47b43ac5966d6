"""`tensorplay.fft`: discrete Fourier transforms with torch's names.

All are built on one primitive, the unscaled complex transform along a dimension; `norm` says who divides by the number
of points n: 'backward' the inverse, 'forward' the transform, 'ortho' both by its root.
"""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import (
    PRIMITIVE,
    ArgumentError,
    DTypeError,
    Layout,
    ShapeError,
    Tensor,
    as_int,
    normalize_dim,
    normalize_dims,
    op,
    shape_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

NORMS = ("backward", "ortho", "forward")

fft_op = op("fft(Tensor input, int dim, bool inverse) -> Tensor", tags=(PRIMITIVE,),
            doc="out[k] = sum over j of input[j] * exp(-2 pi i j k / n) along `dim`; `inverse`: +2 pi i. Unscaled.")
fft_op.vjp(input=lambda grad, dim, inverse: fft_op(grad, dim, not inverse))


@fft_op.meta
def _(input: Layout, dim: int, inverse: bool) -> Layout:  # noqa: A002
    if not input.dtype.is_complex:
        raise DTypeError(f"fft: takes a complex tensor, got {input.dtype.name}")
    d = normalize_dim(dim, input.ndim, "fft")
    if not input.ndim or input.shape[d] < 1:
        raise ShapeError(f"fft: there are no points along dimension {d} of input{shape_text(input.shape)}")
    return input.dense()


@fft_op.decomposition
def _(input: Tensor, dim: int, inverse: bool) -> Tensor:  # noqa: A002
    """By the matrix of the transform; its angles from j * k modulo n, which stays exact."""
    fft_op.op.rule("meta")(input.layout, dim, inverse)
    x = input.movedim(dim, -1)
    size = x.layout.shape[-1]
    at = tp.arange(size, device=input.device)
    turns = tp.remainder(at.unsqueeze(1) * at, size).to(tp.float64) * (2 * tp.pi / size)
    dtype = input.dtype.to_real()
    cos, sin = tp.cos(turns).to(dtype), tp.sin(turns).to(dtype)
    sin = sin if inverse else -sin
    real, imag = x.real.contiguous(), x.imag.contiguous()
    result = tp.complex(tp.matmul(real, cos) - tp.matmul(imag, sin), tp.matmul(real, sin) + tp.matmul(imag, cos))
    return result.movedim(-1, dim).contiguous()


@fft_op.samples
def _(make: Any) -> Iterator:
    yield make(3, 4, dtype=tp.complex64), 1, False
    yield make(5, 2, dtype=tp.complex64), 0, True


# ---- sizes and scales -----------------------------------------------------------------------------------------------
def _as_complex(name: str, x: Tensor) -> Tensor:
    dtype = x.dtype if x.dtype.category > 1 else tp.get_default_dtype()
    if dtype in (tp.float16, tp.bfloat16):
        raise DTypeError(f"{name}: takes float32, float64 or complex, got {dtype.name}; convert with .float()")
    return x.to(dtype.to_complex())


def _as_real(name: str, x: Tensor) -> Tensor:
    if x.dtype.is_complex:
        raise DTypeError(f"{name}: takes a real tensor, got {x.dtype.name}; use fft for complex ones")
    return x if x.dtype.category > 1 else x.to(tp.get_default_dtype())


def _resized(name: str, x: Tensor, n: int | None, dim: int) -> Tensor:
    """The first n entries of a dimension, zeros behind where there are fewer."""
    if not x.layout.ndim:
        raise ShapeError(f"{name}: a 0-d tensor has no dimension to transform")
    d = normalize_dim(dim, x.layout.ndim, name)
    size = x.layout.shape[d]
    count = size if n is None else as_int(n, f"{name}: n")
    if count < 1:
        raise ShapeError(f"{name}: the number of points must be positive, got {count} for dimension {d} of "
                         f"input{shape_text(x.layout.shape)}")
    if count <= size:
        return x if count == size else x.narrow(d, 0, count)
    shape = x.layout.shape
    inside = tuple([("slice", 0, k, None) for k in shape])
    return tp.place_view(x, "index", (inside,), (*shape[:d], count, *shape[d + 1:]))


def _scaled(name: str, x: Tensor, n: int, norm: str | None, inverse: bool) -> Tensor:
    norm = "backward" if norm is None else norm
    if norm not in NORMS:
        raise ArgumentError(f"{name}: norm must be 'backward', 'ortho' or 'forward', got {norm!r}")
    if norm == "ortho":
        return x * n ** -0.5
    return x * (1 / n) if (norm == "backward") == inverse else x


def _transform(name: str, x: Tensor, n: int | None, dim: int, norm: str | None, inverse: bool) -> Tensor:
    x = _resized(name, _as_complex(name, x), n, dim)
    return _scaled(name, fft_op(x, dim, inverse), x.size(dim), norm, inverse)


# ---- one dimension --------------------------------------------------------------------------------------------------
def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:  # noqa: A002
    """The discrete Fourier transform along `dim`, of n points (cut off or padded with zeros).

    >>> import tensorplay as tp
    >>> tp.fft.fft(tp.tensor([1., 0., 0., 0.])).real.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _transform("fft", input, n, dim, norm, False)


def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:  # noqa: A002
    """The inverse of `fft`."""
    return _transform("ifft", input, n, dim, norm, True)


def _half(x: Tensor, dim: int) -> Tensor:
    return x.narrow(dim, 0, x.size(dim) // 2 + 1)


def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:  # noqa: A002
    """The transform of real numbers: the first n // 2 + 1 entries, which determine the others.

    >>> import tensorplay as tp
    >>> tp.fft.rfft(tp.tensor([1., 2., 3., 4.])).tolist()
    [(10+0j), (-2+2j), (-2+0j)]
    """
    return _half(_transform("rfft", _as_real("rfft", input), n, dim, norm, False), dim)


def _from_half(name: str, x: Tensor, n: int | None, dim: int, norm: str | None, inverse: bool) -> Tensor:
    """The real transform of the spectrum that has `x` as its first half and the mirrored conjugate as its second."""
    x = _as_complex(name, x)
    if x.layout.ndim and n is None:
        n = 2 * (x.size(dim) - 1)
    if n is not None and n < 1:
        raise ShapeError(f"{name}: the number of points must be positive, got {n}")
    half = _resized(name, x, None if n is None else n // 2 + 1, dim)
    mirrored = half.narrow(dim, 1, n - n // 2 - 1).flip(dim).conj()  # type: ignore[operator]
    whole = tp.cat([half, mirrored], dim)
    return _scaled(name, fft_op(whole, dim, inverse).real, n, norm, inverse)  # type: ignore[arg-type]


def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:  # noqa: A002
    """The inverse of `rfft`, n real numbers; n is needed where it is odd."""
    return _from_half("irfft", input, n, dim, norm, True)


def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:  # noqa: A002
    """The real transform of a signal of which the first half is given: its other half is the mirrored conjugate."""
    return _from_half("hfft", input, n, dim, norm, False)


def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:  # noqa: A002
    """The inverse of `hfft`: the first half of the inverse transform of real numbers."""
    return _half(_transform("ihfft", _as_real("ihfft", input), n, dim, norm, True), dim)


# ---- several dimensions ---------------------------------------------------------------------------------------------
def _axes(name: str, x: Tensor, s: Any, dim: Any) -> list:
    """(dimension, number of points or None) pairs."""
    sizes = None if s is None else [s] if isinstance(s, int) else list(s)
    if dim is None:
        dims: Any = range(x.layout.ndim) if sizes is None else range(x.layout.ndim - len(sizes), x.layout.ndim)
    else:
        dims = normalize_dims(dim, x.layout.ndim, name)
    if sizes is not None and len(sizes) != len(dims):
        raise ArgumentError(f"{name}: s={tuple(sizes)} must have one size for each of the dimensions {tuple(dims)}")
    if any([d < 0 for d in dims]):
        raise ArgumentError(f"{name}: s={tuple(sizes or ())} has more sizes than input{shape_text(x.layout.shape)} has "
                            f"dimensions")
    return list(zip(dims, [None if n == -1 else n for n in sizes] if sizes is not None else [None] * len(dims)))


def fftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:  # noqa: A002
    """`fft` along several dimensions, by default all; `s` gives the numbers of points."""
    x = _as_complex("fftn", input)
    for d, n in _axes("fftn", x, s, dim):
        x = fft(x, n, d, norm)
    return x


def ifftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:  # noqa: A002
    """The inverse of `fftn`."""
    x = _as_complex("ifftn", input)
    for d, n in _axes("ifftn", x, s, dim):
        x = ifft(x, n, d, norm)
    return x


def _last(name: str, x: Tensor, s: Any, dim: Any) -> tuple:
    axes = _axes(name, x, s, dim)
    if not axes:
        raise ArgumentError(f"{name}: needs at least one dimension")
    return axes[:-1], axes[-1]


def rfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:  # noqa: A002
    """`rfft` along the last of the dimensions, `fft` along the others."""
    others, (last, count) = _last("rfftn", input, s, dim)
    x = rfft(input, count, last, norm)
    for d, n in others:
        x = fft(x, n, d, norm)
    return x


def irfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:  # noqa: A002
    """The inverse of `rfftn`."""
    others, (last, count) = _last("irfftn", input, s, dim)
    x = _as_complex("irfftn", input)
    for d, n in others:
        x = ifft(x, n, d, norm)
    return irfft(x, count, last, norm)


def hfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:  # noqa: A002
    """`fft` along the dimensions but the last, then `hfft` along that."""
    others, (last, count) = _last("hfftn", input, s, dim)
    x = _as_complex("hfftn", input)
    for d, n in others:
        x = fft(x, n, d, norm)
    return hfft(x, count, last, norm)


def ihfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:  # noqa: A002
    """The inverse of `hfftn`."""
    others, (last, count) = _last("ihfftn", input, s, dim)
    x = ihfft(input, count, last, norm)
    for d, n in others:
        x = ifft(x, n, d, norm)
    return x


def _two_dimensional(function: Any) -> Any:
    name = function.__name__[:-1] + "2"

    def transform(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:  # noqa: A002
        return function(input, s, dim, norm)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"`{function.__name__}` along the last two dimensions."
    return transform


fft2, ifft2, rfft2, irfft2, hfft2, ihfft2 = map(_two_dimensional, (fftn, ifftn, rfftn, irfftn, hfftn, ihfftn))


# ---- frequencies ----------------------------------------------------------------------------------------------------
def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of `fft`'s results for n points a distance of d apart.

    >>> import tensorplay as tp
    >>> tp.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    positive = tp.arange((n + 1) // 2, device=device)
    numbers = tp.cat([positive, tp.arange(-(n // 2), 0, device=device)], 0)
    return numbers.to(dtype or tp.get_default_dtype()) * (1 / (n * d))


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of `rfft`'s results for n points a distance of d apart."""
    return tp.arange(n // 2 + 1, device=device).to(dtype or tp.get_default_dtype()) * (1 / (n * d))


def _rolled(name: str, x: Tensor, dim: Any, sign: int) -> Tensor:
    for d in normalize_dims(dim, x.layout.ndim, name):
        size = x.layout.shape[d]
        x = tp.roll(x, size // 2 if sign > 0 else -(size // 2), d)
    return x


def fftshift(input: Tensor, dim: Any = None) -> Tensor:  # noqa: A002
    """Frequency 0 moved to the middle of the dimensions."""
    return _rolled("fftshift", input, dim, 1)


def ifftshift(input: Tensor, dim: Any = None) -> Tensor:  # noqa: A002
    """The inverse of `fftshift`."""
    return _rolled("ifftshift", input, dim, -1)


__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]
