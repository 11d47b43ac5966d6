"""einsum and the convolutions that users call, against NumPy."""
from __future__ import annotations

import numpy as np
import pytest

import tensorplay as tp
import tensorplay.nn.functional as F
from tensorplay.autograd import gradcheck
from tensorplay.library import ArgumentError, DTypeError, ShapeError


def array(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed + sum(shape)).uniform(-1, 1, shape)


def T(x: np.ndarray) -> tp.Tensor:
    return tp.from_numpy(np.array(x, order="C"))


# ---- einsum ----------------------------------------------------------------------------------------------------------
EQUATIONS = (
    ("ij,jk->ik", (2, 3), (3, 4)), ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)), ("ii", (3, 3)), ("ii->i", (3, 3)),
    ("iij->ji", (3, 3, 2)), ("ij->ji", (2, 3)), ("ijk->", (2, 3, 4)), ("ij->j", (2, 3)), ("i,j", (2,), (3,)),
    ("ij,ij,jk->k", (2, 3), (2, 3), (3, 4)), ("bn,anm,bm->ba", (2, 3), (5, 3, 4), (2, 4)), (",i->i", (), (3,)),
    ("...ij,...jk->...ik", (5, 1, 2, 3), (4, 3, 2)), ("i...->...", (3, 2, 2)), ("b a, c b", (4, 3), (2, 4)),
    ("ab,cd->dacb", (2, 3), (4, 5)), ("...a,a...->...", (2, 3), (3, 2)), ("ij,jk->ik", (2, 1), (3, 4)),
    ("abc,abc->ac", (2, 3, 4), (2, 1, 4)), ("ij,kj,lj->ikl", (2, 3), (4, 3), (2, 3)),
)


@pytest.mark.parametrize("case", EQUATIONS, ids=lambda case: case[0])
def test_einsum(case: tuple) -> None:
    equation, *shapes = case
    arrays = [array(*shape, seed=i) for i, shape in enumerate(shapes)]
    np.testing.assert_allclose(tp.einsum(equation, *map(T, arrays)).numpy(), np.einsum(equation, *arrays), atol=1e-12)
    leaves = tuple([T(one).requires_grad_() for one in arrays])
    assert gradcheck(lambda *xs: tp.einsum(equation, *xs), leaves)


def test_einsum_by_numbers_and_integers() -> None:
    x, y = array(2, 3), array(3, 4)
    np.testing.assert_allclose(tp.einsum(T(x), [0, 1], T(y), [1, 2], [2, 0]).numpy(), np.einsum("ij,jk->ki", x, y))
    np.testing.assert_allclose(tp.einsum(T(x), [..., 1], T(y), [1, 2]).numpy(), x @ y)
    assert tp.einsum("ij->i", tp.arange(6).reshape(2, 3)).tolist() == [3, 12]
    assert tp.einsum("i,i", [tp.arange(4), tp.arange(4)]).item() == 14


@pytest.mark.parametrize(("equation", "shapes", "message"), [
    ("ij,jk->ik", ((2, 3), (4, 5)), r"sizes 3 and 4 under 'j' differ"), ("ij->k", ((2, 3),), "must occur before"),
    ("ijk->i", ((2, 3),), r"term 'ijk' does not fit a tensor of shape \[2, 3\]"), ("ij", ((2, 3), (2,)),
                                                                                   "1 terms for 2"),
    ("i1->i", ((2, 3),), "terms consist of letters"), ("ij->ii", ((2, 2),), "once behind"),
    ("i->i", ((2, 3),), "does not fit")])
def test_bad_equations(equation: str, shapes: tuple, message: str) -> None:
    with pytest.raises((ArgumentError, ShapeError), match=message):
        tp.einsum(equation, *[tp.ones(shape) for shape in shapes])


# ---- convolutions ----------------------------------------------------------------------------------------------------
def slid(x: np.ndarray, w: np.ndarray, stride: int, padding: int, dilation: int, groups: int) -> np.ndarray:
    """The convolution of one spatial dimension more than none: every output element by itself."""
    spatial = x.ndim - 2
    wide = np.pad(x, [(0, 0), (0, 0)] + [(padding, padding)] * spatial)
    counts = [(n - dilation * (k - 1) - 1) // stride + 1 for n, k in zip(wide.shape[2:], w.shape[2:])]
    out = np.zeros((x.shape[0], w.shape[0], *counts))
    per_in, per_out = w.shape[1], w.shape[0] // groups
    for at in np.ndindex(*out.shape):
        group = at[1] // per_out
        place = [slice(i * stride, i * stride + dilation * (k - 1) + 1, dilation) for i, k in zip(at[2:], w.shape[2:])]
        out[at] = np.sum(wide[(at[0], slice(group * per_in, (group + 1) * per_in), *place)] * w[at[1]])
    return out


@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize(("stride", "padding", "dilation", "groups"), [(1, 0, 1, 1), (2, 1, 1, 1), (1, 2, 2, 2)])
def test_convolutions(spatial: int, stride: int, padding: int, dilation: int, groups: int) -> None:
    x, w, b = array(2, 4, *(6, 5, 4)[:spatial]), array(6, 4 // groups, *(2, 3, 2)[:spatial]), array(6)
    convolve = getattr(F, f"conv{spatial}d")
    wanted = slid(x, w, stride, padding, dilation, groups) + b.reshape(-1, *[1] * spatial)
    found = convolve(T(x), T(w), T(b), stride, padding, dilation, groups)
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-12)
    single = convolve(T(x)[0], T(w), T(b), (stride,) * spatial, (padding,), dilation, groups)
    np.testing.assert_allclose(single.numpy(), wanted[0], atol=1e-12)
    for dtype, close in ((tp.float32, 1e-5), (tp.bfloat16, 0.2)):
        low = convolve(T(x).to(dtype), T(w).to(dtype), T(b).to(dtype), stride, padding, dilation, groups)
        assert low.dtype is dtype and np.abs(low.double().numpy() - wanted).max() < close


@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize(("stride", "padding", "extra", "dilation", "groups"),
                         [(1, 0, 0, 1, 1), (2, 1, 1, 1, 1), (1, 1, 2, 3, 2), (2, 0, 1, 1, 2)])
def test_transposed_convolutions_are_adjoint(spatial: int, stride: int, padding: int, extra: int, dilation: int,
                                             groups: int) -> None:
    """<conv(u), x> = <u, conv_transpose(x)> for every u: the matrix of one is the transpose of the other's."""
    x, w = array(1, 4, *(3, 4, 2)[:spatial]), array(4, 6 // groups, *(2, 3, 2)[:spatial])
    found = getattr(F, f"conv_transpose{spatial}d")(T(x), T(w), None, stride, padding, extra, groups, dilation).numpy()
    sizes = [(n - 1) * stride - 2 * padding + dilation * (k - 1) + extra + 1 for n, k in zip(x.shape[2:], w.shape[2:])]
    assert list(found.shape) == [1, 6, *sizes]
    u = array(1, 6, *sizes, seed=5)
    forward = slid(u, w, stride, padding, dilation, groups)
    seen = tuple([slice(0, n) for n in x.shape])
    np.testing.assert_allclose(np.sum(forward[seen] * x), np.sum(u * found), atol=1e-10)


def test_padding_by_name() -> None:
    x, w = array(1, 2, 7), array(3, 2, 4)
    same = F.conv1d(T(x), T(w), padding="same", dilation=1).numpy()
    np.testing.assert_allclose(same, slid(np.pad(x, [(0, 0), (0, 0), (1, 2)]), w, 1, 0, 1, 1), atol=1e-12)
    np.testing.assert_allclose(F.conv1d(T(x), T(w), padding="valid").numpy(), slid(x, w, 1, 0, 1, 1), atol=1e-12)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: F.conv2d(tp.ones(1, 3, 8, 8), tp.ones(4, 2, 3, 3)), r"has 3 channels and weight\[4, 2, 3, 3\] takes 2"),
    (lambda: F.conv2d(tp.ones(1, 2, 2, 8), tp.ones(4, 2, 3, 3)), r"size 3 does not fit dimension 2 of input\[1, 2, 2, "
     r"8\]"),
    (lambda: F.conv2d(tp.ones(2, 8), tp.ones(4, 2, 3, 3)), "needs 3 dimensions"),
    (lambda: F.conv1d(tp.ones(1, 2, 8), tp.ones(4, 2, 3), tp.ones(3)), r"bias\[3\] must have one number for each"),
    (lambda: F.conv1d(tp.ones(1, 2, 8), tp.ones(4, 2, 3), stride=0), "stride and dilation must be positive"),
    (lambda: F.conv1d(tp.ones(1, 2, 8), tp.ones(4, 2, 3), stride=2, padding="same"), "stride 1 only"),
    (lambda: F.conv1d(tp.ones(1, 2, 8), tp.ones(4, 2, 3), padding="half"), "'valid' or 'same'"),
    (lambda: F.conv_transpose1d(tp.ones(1, 2, 8), tp.ones(4, 2, 3)), r"in = 2"),
    (lambda: F.conv_transpose1d(tp.ones(1, 2, 8), tp.ones(2, 2, 3), output_padding=1), "must be smaller than stride"),
    (lambda: F.conv1d(tp.ones(1, 2, 8), tp.ones(4, 2, 3, dtype=tp.float64)), "input is float32 but weight is float64")])
def test_bad_convolutions(call: object, message: str) -> None:
    with pytest.raises((ShapeError, ArgumentError, DTypeError), match=message):
        call()


# ---- the index of operators ------------------------------------------------------------------------------------------
def test_operators_are_found_before_their_family_is_loaded() -> None:
    import subprocess
    import sys

    program = ("import sys, tensorplay as tp; assert 'tp_operators.normalization' not in sys.modules; "
               "print(tp.ops.softmax_backward.op.name); print(tp.explain('conv_backward_input'))")
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert found.startswith("softmax_backward\nconv_backward_input(Tensor grad, Tensor weight")
    with pytest.raises(AttributeError, match="no operator 'nonsense'"):
        _ = tp.ops.nonsense
