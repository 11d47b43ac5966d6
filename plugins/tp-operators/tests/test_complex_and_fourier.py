"""Complex numbers, memory read as another dtype, and tensorplay.fft against NumPy."""
from __future__ import annotations

import numpy as np
import pytest

import tensorplay as tp
from tensorplay.autograd import gradcheck, gradgradcheck
from tensorplay.library import AutogradError, DTypeError, ShapeError


def array(*shape: int, complex_: bool = True, seed: int = 0) -> np.ndarray:
    source = np.random.RandomState(seed)
    x = source.uniform(-1, 1, shape)
    return x + 1j * source.uniform(-1, 1, shape) if complex_ else x


def T(x: np.ndarray) -> tp.Tensor:
    return tp.from_numpy(np.ascontiguousarray(x))


# ---- parts and angles ------------------------------------------------------------------------------------------------
def test_parts_are_views() -> None:
    z = T(array(3, 4))
    part = z[1:, ::2].t()  # with an offset and strides
    assert part.real.tolist() == part.numpy().real.tolist() and part.imag.tolist() == part.numpy().imag.tolist()
    assert tp.view_as_real(part).tolist() == np.stack([part.numpy().real, part.numpy().imag], -1).tolist()
    z.imag[1, 2] = 7.0
    assert z[1, 2].item().imag == 7.0 and z._version == 1
    assert tp.view_as_complex(tp.view_as_real(part)).tolist() == part.tolist()
    x = tp.ones(2)
    assert x.real is x and x.conj() is x
    with pytest.raises(DTypeError, match="imag: takes a complex tensor, got float32"):
        _ = x.imag


def test_view_as_complex_needs_pairs_in_memory() -> None:
    with pytest.raises(ShapeError, match="last dimension must have size 2"):
        tp.view_as_complex(tp.ones(3))
    with pytest.raises(ShapeError, match=r"contiguous\(\)"):
        tp.view_as_complex(tp.ones(2, 3).t())
    with pytest.raises(DTypeError, match="int64"):
        tp.view_as_complex(tp.arange(2))


def test_gradients_of_complex_functions() -> None:
    z = T(array(3)).requires_grad_()
    for call in (lambda z: z.real, lambda z: z.imag, tp.angle, tp.abs, tp.conj, lambda z: tp.view_as_real(z),
                 lambda z: tp.polar(z.abs(), z.angle()), lambda z: (z * z.conj()).real, tp.sgn, tp.exp, tp.tanh):
        assert gradcheck(call, (z,)) and gradgradcheck(call, (z,))
    x = T(array(3, 2, complex_=False)).requires_grad_()
    assert gradcheck(tp.view_as_complex, (x,)) and gradcheck(lambda x: tp.complex(x[0], x[1]), (x,))
    zero = tp.zeros(2, dtype=tp.complex128, requires_grad=True)
    tp.angle(zero).sum().backward()
    assert zero.grad.tolist() == [0, 0]


def test_angles_of_real_numbers() -> None:
    nan = float("nan")
    found = tp.angle(tp.tensor([-1.0, 0.0, 2.0, nan], dtype=tp.float64)).tolist()
    assert found[:3] == [np.pi, 0.0, 0.0] and found[3] != found[3]
    assert tp.angle(tp.tensor([-3, 3])).dtype is tp.float32
    assert tp.isreal(tp.tensor([1 + 0j, 1j])).tolist() == [True, False] and tp.isreal(tp.ones(1)).tolist() == [True]


def test_writes_through_parts_are_not_recorded() -> None:
    z = T(array(3)).requires_grad_()
    w = z * 2
    with pytest.raises(AutogradError, match=r"float64 view of a complex128 tensor"):
        w.real.mul_(2)
    part, whole = w.real, w.mul_(3)
    with pytest.raises(AutogradError, match="view"):
        part + 1
    whole.real.sum().backward()
    assert z.grad.tolist() == [6, 6, 6]


# ---- bits ------------------------------------------------------------------------------------------------------------
def test_memory_as_another_dtype() -> None:
    x = tp.tensor([[1.0, -2.0, 0.5, 4.0], [3.0, 7.0, -0.0, 1e30]])
    source = x.numpy()
    for dtype in (tp.int32, tp.uint8, tp.float64, tp.int16, tp.complex64, tp.bool):
        assert x.view(dtype).shape == source.view(dtype.name).shape
        if dtype is not tp.bool:
            assert x.view(dtype).tolist() == source.view(dtype.name).tolist()
    assert x[:, 2:].view(tp.float64).tolist() == source[:, 2:].copy().view("float64").tolist()
    assert x.t().view(tp.int32).tolist() == source.T.view("int32").tolist()
    x.view(tp.int32)[0, 0] = 0
    assert x[0, 0].item() == 0.0


def test_memory_that_does_not_fit_another_dtype() -> None:
    x = tp.ones(2, 4)
    for part, message in ((x[:, :3], "multiples of 8"), (x.t(), "without gaps"), (x[0, 0], "0-d"),
                          (x[:, 1:3], "no multiple of 8 bytes")):
        with pytest.raises(ShapeError, match=message):
            part.view(tp.float64)


# ---- Fourier ---------------------------------------------------------------------------------------------------------
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
REAL = ("rfft", "ihfft", "rfftn", "rfft2")


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize(("n", "dim"), [(None, -1), (4, -1), (9, 0), (1, 1)])
def test_transforms(name: str, norm: str | None, n: int | None, dim: int) -> None:
    x = array(5, 6, complex_=name not in REAL)
    wanted = getattr(np.fft, name)(x, n, dim, norm)
    found = getattr(tp.fft, name)(T(x), n, dim, norm)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12, atol=1e-12)
    leaf = T(x).requires_grad_()
    assert gradcheck(lambda x: getattr(tp.fft, name)(x, n, dim, norm), (leaf,))


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2"])
@pytest.mark.parametrize(("s", "dim"), [(None, (0, 1)), ((4, 7), (0, 2)), ((3, 3), (-1, 0))])
def test_transforms_of_several_dimensions(name: str, s: tuple | None, dim: tuple) -> None:
    x = array(3, 4, 5, complex_=name not in REAL)
    wanted = getattr(np.fft, name)(x, s, dim, "ortho")
    np.testing.assert_allclose(getattr(tp.fft, name)(T(x), s, dim, "ortho").numpy(), wanted, rtol=1e-12, atol=1e-12)
    back = tp.fft.ihfftn(tp.fft.hfftn(T(array(3, 4)), (3, 6)), (3, 6))
    np.testing.assert_allclose(tp.fft.hfftn(back, (3, 6)).numpy(), tp.fft.hfftn(T(array(3, 4)), (3, 6)).numpy(), 1e-9)


def test_frequencies_and_shifts() -> None:
    for n in (4, 5):
        np.testing.assert_allclose(tp.fft.fftfreq(n, 0.5, dtype=tp.float64).numpy(), np.fft.fftfreq(n, 0.5))
        np.testing.assert_allclose(tp.fft.rfftfreq(n, dtype=tp.float64).numpy(), np.fft.rfftfreq(n))
        x = array(n, 3)
        assert tp.fft.fftshift(T(x)).tolist() == np.fft.fftshift(x).tolist()
        assert tp.fft.ifftshift(T(x), 0).tolist() == np.fft.ifftshift(x, 0).tolist()


@pytest.mark.parametrize("size", [1, 2, 7, 64, 1000])
def test_matrix_form_is_accurate(size: int) -> None:
    x = array(2, size)
    found = tp.ops.fft.op.rule("decomposition")(T(x), 1, False).numpy()
    assert np.abs(found - np.fft.fft(x)).max() <= 1e-14 * size


def test_bad_transforms() -> None:
    with pytest.raises(DTypeError, match="rfft: takes a real tensor"):
        tp.fft.rfft(T(array(3)))
    with pytest.raises(ShapeError, match="must be positive, got 0"):
        tp.fft.fft(tp.ones(3), 0)
    with pytest.raises(tp.library.ArgumentError, match="norm must be"):
        tp.fft.fft(tp.ones(3), norm="half")
    with pytest.raises(DTypeError, match="float16"):
        tp.fft.fft(tp.ones(3, dtype=tp.float16))
