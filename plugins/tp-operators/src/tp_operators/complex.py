"""Complex numbers: their parts as views, conjugates, angles. Gradients follow torch: dL/dx + i dL/dy."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import (
    ELEMENTWISE,
    FLOAT,
    PRIMITIVE,
    RETYPES,
    VIEW,
    ArgumentError,
    DTypeError,
    Layout,
    ShapeError,
    Tensor,
    elementwise_meta,
    layout,
    op,
    shape_text,
)

from ._samples import sample_unary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

PART = (VIEW, RETYPES)


def _need_complex(name: str, source: Layout) -> None:
    if not source.dtype.is_complex:
        raise DTypeError(f"{name}: takes a complex tensor, got {source.dtype.name}; a real one has no imaginary part, "
                         f"convert it with .to(tensorplay.{source.dtype.to_complex().name})")


def _doubled(source: Layout) -> tuple:
    return tuple([2 * step for step in source.strides])


# ---- parts as views -------------------------------------------------------------------------------------------------
view_as_real = op("view_as_real(Tensor input) -> Tensor", tags=PART, doc="""The same memory as real numbers: a last
dimension of size 2 holds the real and the imaginary part.

>>> import tensorplay as tp
>>> tp.view_as_real(tp.tensor([1 + 2j])).tolist()
[[1.0, 2.0]]
""")


@view_as_real.meta
def _(input: Layout) -> tuple:  # noqa: A002
    _need_complex("view_as_real", input)
    return layout((*input.shape, 2), input.dtype.to_real(), input.device, (*_doubled(input), 1)), 0


view_as_complex = op("view_as_complex(Tensor input) -> Tensor", tags=PART, doc="""The same memory as complex numbers;
the last dimension, of size 2, holds the real and the imaginary part.

>>> import tensorplay as tp
>>> tp.view_as_complex(tp.tensor([[1., 2.]])).tolist()
[(1+2j)]

Raises ShapeError unless the two parts are neighbours in memory; x.contiguous() makes them so.
""")


@view_as_complex.meta
def _(input: Layout) -> tuple:  # noqa: A002
    if input.dtype not in (tp.float32, tp.float64):
        raise DTypeError(f"view_as_complex: takes float32 or float64, got {input.dtype.name}")
    if not input.ndim or input.shape[-1] != 2:
        raise ShapeError(f"view_as_complex: the last dimension must have size 2, got input{shape_text(input.shape)}")
    steps = [step for size, step in zip(input.shape[:-1], input.strides[:-1]) if size > 1]
    if input.strides[-1] != 1 or any([step % 2 for step in steps]):
        raise ShapeError(f"view_as_complex: real and imaginary parts must be neighbours in memory, but the strides are "
                         f"{input.strides}; use input.contiguous()")
    strides = tuple([step // 2 for step in input.strides[:-1]])
    return layout(input.shape[:-1], input.dtype.to_complex(), input.device, strides), 0


view_as_real.vjp(input=lambda grad: view_as_complex(grad.contiguous()))
view_as_complex.vjp(input=lambda grad: view_as_real(grad))

real_view = op("real(Tensor input) -> Tensor", tags=PART)
imag_view = op("imag(Tensor input) -> Tensor", tags=PART)


@real_view.meta
def _(input: Layout) -> tuple:  # noqa: A002
    _need_complex("real", input)
    return layout(input.shape, input.dtype.to_real(), input.device, _doubled(input)), 0


@imag_view.meta
def _(input: Layout) -> tuple:  # noqa: A002
    _need_complex("imag", input)
    return layout(input.shape, input.dtype.to_real(), input.device, _doubled(input)), 1 if input.numel else 0


real_view.vjp(input=lambda grad, input_layout: grad.to(input_layout.dtype))
imag_view.vjp(input=lambda grad: tp.complex(tp.zeros_like(grad), grad))


def real(input: Tensor) -> Tensor:  # noqa: A002
    """The real parts, as a view; a real tensor is its own.

    >>> import tensorplay as tp
    >>> tp.real(tp.tensor([1 + 2j])).tolist()
    [1.0]
    """
    return real_view(input) if input.layout.dtype.is_complex else input


def imag(input: Tensor) -> Tensor:  # noqa: A002
    """The imaginary parts, as a view. Raises DTypeError for a real tensor, which has none.

    >>> import tensorplay as tp
    >>> tp.imag(tp.tensor([1 + 2j])).tolist()
    [2.0]
    """
    return imag_view(input)


# ---- the conjugate --------------------------------------------------------------------------------------------------
conj_op = op("conj(Operand input) -> Tensor", tags=(ELEMENTWISE, PRIMITIVE))
conj_op.vjp(input=lambda grad: conj(grad))
conj_op.decomposition(lambda input: tp.complex(real_view(input), -imag_view(input)) if input.layout.dtype.is_complex
                      else input.clone())
sample_unary(conj_op)


def conj(input: Tensor) -> Tensor:  # noqa: A002
    """The complex conjugate; a real tensor is its own.

    >>> import tensorplay as tp
    >>> tp.conj(tp.tensor([1 + 2j])).tolist()
    [(1-2j)]

    It is computed at once: there are no lazily conjugated tensors, and `is_conj` is always False.
    """
    return conj_op(input) if input.layout.dtype.is_complex else input


def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:  # noqa: A002
    """`conj`, and a copy also of a real tensor.

    >>> import tensorplay as tp
    >>> tp.conj_physical(tp.tensor([1 + 2j])).tolist()
    [(1-2j)]
    """
    return conj_op(input, out)


conj_physical.op = conj_op.op  # type: ignore[attr-defined]


def resolve_conj(input: Tensor) -> Tensor:  # noqa: A002
    """The tensor itself: conjugates are never lazy here.

    >>> import tensorplay as tp
    >>> tp.resolve_conj(tp.tensor([1 + 2j])).tolist()
    [(1+2j)]
    """
    return input


def resolve_neg(input: Tensor) -> Tensor:  # noqa: A002
    """The tensor itself: negation is never lazy here.

    >>> import tensorplay as tp
    >>> tp.resolve_neg(tp.tensor([1.])).tolist()
    [1.0]
    """
    return input


def is_conj(input: Tensor) -> bool:  # noqa: A002
    """False: conjugates are never lazy here.

    >>> import tensorplay as tp
    >>> tp.is_conj(tp.tensor([1j]).conj())
    False
    """
    return False


def is_neg(input: Tensor) -> bool:  # noqa: A002
    """False: negation is never lazy here.

    >>> import tensorplay as tp
    >>> tp.is_neg(tp.tensor([1.]))
    False
    """
    return False


def isreal(input: Tensor) -> Tensor:  # noqa: A002
    """Whether the imaginary part is 0; True for every real number.

    >>> import tensorplay as tp
    >>> tp.isreal(tp.tensor([1 + 0j, 1j])).tolist()
    [True, False]
    """
    if input.layout.dtype.is_complex:
        return imag_view(input) == 0
    return tp.ones(input.layout.shape, dtype=tp.bool, device=input.device)


# ---- polar form -----------------------------------------------------------------------------------------------------
angle = op("angle(Operand input) -> Tensor", tags=(ELEMENTWISE,), promotion=FLOAT, doc="""The angle of a complex number
in radians, between -pi and pi; of a real one 0, or pi if it is negative (NaN stays NaN).

>>> import tensorplay as tp
>>> tp.angle(tp.tensor([1j, 1 + 0j])).tolist()
[1.5707963705062866, 0.0]
""")
_angle_meta = elementwise_meta(angle.op)


@angle.meta
def _(input: Layout) -> Layout:  # noqa: A002
    result = _angle_meta(input)
    return result.with_dtype(result.dtype.to_real())


@angle.decomposition
def _(input: Tensor) -> Tensor:  # noqa: A002
    if input.layout.dtype.is_complex:
        return tp.atan2(imag_view(input), real_view(input))
    dtype = angle.op.rule("meta")(input.layout).dtype
    turned = tp.where(input < 0, tp.pi, tp.zeros((), dtype=dtype, device=input.device))
    return tp.where(input != input, input, turned) if input.layout.dtype.is_floating_point else turned


def _angle_grad(grad: Tensor, input: Tensor) -> Tensor:  # noqa: A002
    """(-y + i x) / |z|^2, and 0 at 0; a real number's angle is constant."""
    if not input.layout.dtype.is_complex:
        return tp.zeros_like(grad)
    x, y = real_view(input), imag_view(input)
    square = x * x + y * y
    zero = square == 0
    scale = tp.where(zero, 0, grad / tp.where(zero, 1, square))
    return tp.complex(-y * scale, x * scale)


angle.vjp(input=_angle_grad)
arg = angle


@angle.samples
def _(make: Any) -> Iterator:
    yield (make(3, 4),)
    yield (make(2, 3, dtype=tp.complex64),)


def polar(abs: Tensor, angle: Tensor) -> Tensor:  # noqa: A002
    """abs * exp(i * angle): complex numbers from their sizes and angles.

    >>> import tensorplay as tp
    >>> tp.polar(tp.tensor([2.]), tp.tensor([0.])).tolist()
    [(2+0j)]
    """
    if abs.dtype is not angle.dtype or abs.dtype not in (tp.float32, tp.float64):
        raise ArgumentError(f"polar: abs and angle must both be float32 or float64, got {abs.dtype.name} and "
                            f"{angle.dtype.name}")
    return tp.complex(abs * tp.cos(angle), abs * tp.sin(angle))


def _sample_parts(made: Any) -> None:
    @made.samples
    def _(make: Any) -> Iterator:
        yield (make(3, 4, dtype=tp.complex64),)
        yield (make(dtype=tp.complex128),)


for _made in (view_as_real, real_view, imag_view):
    _sample_parts(_made)


@view_as_complex.samples
def _(make: Any) -> Iterator:
    yield (make(3, 2, dtype=tp.float32),)
    yield (make(2, dtype=tp.float64),)


REAL = property(real, doc="The real parts, as a view.")
IMAG = property(imag, doc="The imaginary parts, as a view.")

FUNCTIONS = ("view_as_real", "view_as_complex", "real", "imag", "conj", "conj_physical", "resolve_conj", "resolve_neg",
             "is_conj", "is_neg", "isreal", "angle", "polar")
ALIASES = {"arg": "angle"}
METHODS = {**{name: name for name in ("conj", "conj_physical", "resolve_conj", "resolve_neg", "is_conj", "is_neg",
                                      "isreal", "angle", "arg")}, "real": "REAL", "imag": "IMAG"}
INPLACE = ("conj_physical_",)
