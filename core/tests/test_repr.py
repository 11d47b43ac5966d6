"""How tensors print, compared with text that PyTorch 2.13 printed. A device without operators is enough for that."""
from __future__ import annotations

import pytest

import tensorplay as tp
from tensorplay._repr import set_printoptions

nan, inf = float("nan"), float("inf")

PRINTED = [  # (data, dtype, PyTorch's text)
    ([[1., 2.], [3., 4.]], "float32",
     'tensor([[1., 2.],\n'
     '        [3., 4.]])'),
    ([1, 2, 3], "int64", 'tensor([1, 2, 3])'),
    ([1, 20, -300], "int32", 'tensor([   1,   20, -300], dtype=tensorplay.int32)'),
    ([True, False], "bool", 'tensor([ True, False])'),
    (1.5, "float32", 'tensor(1.5000)'),
    (7, "int64", 'tensor(7)'),
    ([1.0, 2.5], "float64", 'tensor([1.0000, 2.5000], dtype=tensorplay.float64)'),
    ([0.0001, 1.0], "float32", 'tensor([1.0000e-04, 1.0000e+00])'),
    ([1e-5, 1.0], "float32", 'tensor([1.0000e-05, 1.0000e+00])'),
    ([1e9, 1.0], "float32", 'tensor([1.0000e+09, 1.0000e+00])'),
    ([1e8, 2e8], "float32", 'tensor([1.0000e+08, 2.0000e+08])'),
    ([nan, inf, -1.0], "float32", 'tensor([nan, inf, -1.])'),
    ([nan, 0.5, -inf], "float32", 'tensor([   nan, 0.5000,   -inf])'),
    ([0.0, -0.0], "float32", 'tensor([0., -0.])'),
    ([0.1, 0.123456789], "float64", 'tensor([0.1000, 0.1235], dtype=tensorplay.float64)'),
    ([1+2j, -3.5-0.25j], "complex64", 'tensor([ 1.0000+2.0000j, -3.5000-0.2500j])'),
    ([1+2j, 3-4j], "complex128", 'tensor([1.+2.j, 3.-4.j], dtype=tensorplay.complex128)'),
    ([], "float32", 'tensor([])'),
    ([], "int64", 'tensor([], dtype=tensorplay.int64)'),
    ([[], []], "float32", 'tensor([], size=(2, 0))'),
    ([1.0, 3.14159], "float16", 'tensor([1.0000, 3.1406], dtype=tensorplay.float16)'),
    ([1.0, 3.14159], "bfloat16", 'tensor([1.0000, 3.1406], dtype=tensorplay.bfloat16)'),
    ([100000.0, 1.0], "float32", 'tensor([1.0000e+05, 1.0000e+00])'),
    ([1000.0, 0.5], "float32", 'tensor([1.0000e+03, 5.0000e-01])'),
    ([10000.0, 0.5], "float32", 'tensor([1.0000e+04, 5.0000e-01])'),
    ([[[1., -2.], [3., 4.]], [[5., 6.], [7., 8.]]], "float32",
     'tensor([[[ 1., -2.],\n'
     '         [ 3.,  4.]],\n'
     '\n'
     '        [[ 5.,  6.],\n'
     '         [ 7.,  8.]]])'),
    ([0, 255], "uint8", 'tensor([  0, 255], dtype=tensorplay.uint8)'),
    ([inf], "float32", 'tensor([inf])'),
    (list(range(40)), "int64",
     'tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n'
     '        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35,\n'
     '        36, 37, 38, 39])'),
    ([float(i) / 7 for i in range(20)], "float32",
     'tensor([0.0000, 0.1429, 0.2857, 0.4286, 0.5714, 0.7143, 0.8571, 1.0000, 1.1429,\n'
     '        1.2857, 1.4286, 1.5714, 1.7143, 1.8571, 2.0000, 2.1429, 2.2857, 2.4286,\n'
     '        2.5714, 2.7143])'),
]

SUMMARISED = [  # (shape, PyTorch's text for the floats 0, 1, 2, ...)
    ((1001,),
     'tensor([   0.,    1.,    2.,  ...,  998.,  999., 1000.])'),
    ((40, 40),
     'tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 3.7000e+01, 3.8000e+01,\n'
     '         3.9000e+01],\n'
     '        [4.0000e+01, 4.1000e+01, 4.2000e+01,  ..., 7.7000e+01, 7.8000e+01,\n'
     '         7.9000e+01],\n'
     '        [8.0000e+01, 8.1000e+01, 8.2000e+01,  ..., 1.1700e+02, 1.1800e+02,\n'
     '         1.1900e+02],\n'
     '        ...,\n'
     '        [1.4800e+03, 1.4810e+03, 1.4820e+03,  ..., 1.5170e+03, 1.5180e+03,\n'
     '         1.5190e+03],\n'
     '        [1.5200e+03, 1.5210e+03, 1.5220e+03,  ..., 1.5570e+03, 1.5580e+03,\n'
     '         1.5590e+03],\n'
     '        [1.5600e+03, 1.5610e+03, 1.5620e+03,  ..., 1.5970e+03, 1.5980e+03,\n'
     '         1.5990e+03]])'),
    ((4, 300),
     'tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 2.9700e+02, 2.9800e+02,\n'
     '         2.9900e+02],\n'
     '        [3.0000e+02, 3.0100e+02, 3.0200e+02,  ..., 5.9700e+02, 5.9800e+02,\n'
     '         5.9900e+02],\n'
     '        [6.0000e+02, 6.0100e+02, 6.0200e+02,  ..., 8.9700e+02, 8.9800e+02,\n'
     '         8.9900e+02],\n'
     '        [9.0000e+02, 9.0100e+02, 9.0200e+02,  ..., 1.1970e+03, 1.1980e+03,\n'
     '         1.1990e+03]])'),
    ((2, 20, 30),
     'tensor([[[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 2.7000e+01,\n'
     '          2.8000e+01, 2.9000e+01],\n'
     '         [3.0000e+01, 3.1000e+01, 3.2000e+01,  ..., 5.7000e+01,\n'
     '          5.8000e+01, 5.9000e+01],\n'
     '         [6.0000e+01, 6.1000e+01, 6.2000e+01,  ..., 8.7000e+01,\n'
     '          8.8000e+01, 8.9000e+01],\n'
     '         ...,\n'
     '         [5.1000e+02, 5.1100e+02, 5.1200e+02,  ..., 5.3700e+02,\n'
     '          5.3800e+02, 5.3900e+02],\n'
     '         [5.4000e+02, 5.4100e+02, 5.4200e+02,  ..., 5.6700e+02,\n'
     '          5.6800e+02, 5.6900e+02],\n'
     '         [5.7000e+02, 5.7100e+02, 5.7200e+02,  ..., 5.9700e+02,\n'
     '          5.9800e+02, 5.9900e+02]],\n'
     '\n'
     '        [[6.0000e+02, 6.0100e+02, 6.0200e+02,  ..., 6.2700e+02,\n'
     '          6.2800e+02, 6.2900e+02],\n'
     '         [6.3000e+02, 6.3100e+02, 6.3200e+02,  ..., 6.5700e+02,\n'
     '          6.5800e+02, 6.5900e+02],\n'
     '         [6.6000e+02, 6.6100e+02, 6.6200e+02,  ..., 6.8700e+02,\n'
     '          6.8800e+02, 6.8900e+02],\n'
     '         ...,\n'
     '         [1.1100e+03, 1.1110e+03, 1.1120e+03,  ..., 1.1370e+03,\n'
     '          1.1380e+03, 1.1390e+03],\n'
     '         [1.1400e+03, 1.1410e+03, 1.1420e+03,  ..., 1.1670e+03,\n'
     '          1.1680e+03, 1.1690e+03],\n'
     '         [1.1700e+03, 1.1710e+03, 1.1720e+03,  ..., 1.1970e+03,\n'
     '          1.1980e+03, 1.1990e+03]]])'),
]


@pytest.fixture
def device(site):
    """Memory without any operator; the cpu device where it is installed is tested with it."""
    site.device("heap")
    return "heap"


@pytest.fixture(autouse=True)
def default_options():
    yield
    set_printoptions(profile="default")


def text_of(data, dtype="float32", device="heap"):
    """The text without the device, which PyTorch's tables do not show."""
    text = repr(tp.tensor(data, dtype=getattr(tp, dtype), device=device))
    assert "device='heap:0'" in text
    return text.replace(",\n       device='heap:0'", "").replace(", device='heap:0'", "")


def counted(shape):
    numel = 1
    for size in shape:
        numel *= size
    values = [float(i) for i in range(numel)]
    for size in reversed(shape[1:]):
        values = [values[i:i + size] for i in range(0, len(values), size)]
    return values


@pytest.mark.parametrize(("data", "dtype", "expected"), PRINTED)
def test_prints_as_torch_does(device, data, dtype, expected):
    # the removed device may have pushed the dtype to the next line
    assert text_of(data, dtype).replace(",\n       dtype=", ", dtype=") == expected


@pytest.mark.parametrize(("shape", "expected"), SUMMARISED)
def test_large_tensors_are_summarised(device, shape, expected):
    assert text_of(counted(shape)) == expected


OPTIONS = [  # (options, data, dtype, text)
    ({"precision": 2, "sci_mode": True}, [1.5, 2.25], "float32", "tensor([1.50e+00, 2.25e+00])"),
    ({"edgeitems": 1, "threshold": 4}, list(range(6)), "int64", "tensor([0,  ..., 5])"),
    ({"edgeitems": 1, "threshold": 4}, counted((4, 5)), "int64",
     "tensor([[ 0,  ...,  4],\n        ...,\n        [15,  ..., 19]])"),
    ({"edgeitems": 0, "threshold": 4}, list(range(6)), "int64", "tensor([...], size=(6,))"),
    ({"linewidth": 30}, list(range(11)), "int64",
     "tensor([ 0,  1,  2,  3,  4,\n         5,  6,  7,  8,  9,\n        10])"),
    ({"profile": "short"}, [1.23456], "float32", "tensor([1.23])"),
    ({"profile": "full", "precision": 1}, [0.0] * 1001, "float32", None),
]


@pytest.mark.parametrize(("options", "data", "dtype", "expected"), OPTIONS)
def test_print_options(device, options, data, dtype, expected):
    set_printoptions(**options)
    if expected is None:
        assert "..." not in text_of(data, dtype)
    else:
        assert text_of(data, dtype) == expected


@pytest.mark.parametrize("options", [{"profile": "fancy"}, {"precision": -1}])
def test_bad_print_options_are_refused(options):
    with pytest.raises(tp.TensorPlayError, match="set_printoptions"):
        set_printoptions(**options)


META = [
    ((2, 3), "float32", "tensor(..., device='meta', size=(2, 3))"),
    ((2,), "int64", "tensor(..., device='meta', size=(2,), dtype=tensorplay.int64)"),
    ((), "bfloat16", "tensor(..., device='meta', size=(), dtype=tensorplay.bfloat16)"),
]


@pytest.mark.parametrize(("shape", "dtype", "expected"), META)
def test_meta_tensors_show_their_size(shape, dtype, expected):
    assert repr(tp.tensor(counted(shape) if shape else 0, dtype=getattr(tp, dtype), device="meta")) == expected


def test_strided_views_print_what_they_show(device):
    from tensorplay._layout import layout
    from tensorplay._tensor import make_tensor

    x = tp.tensor([[0, 1, 2], [3, 4, 5]], device=device)
    transposed = make_tensor(x.storage, 0, layout((3, 2), x.dtype, x.device, (1, 3)))
    column = make_tensor(x.storage, 1, layout((2,), x.dtype, x.device, (3,)))
    repeated = make_tensor(x.storage, 5, layout((3,), x.dtype, x.device, (0,)))
    assert [repr(view).partition(", device")[0] for view in (column, repeated)] == ["tensor([1, 4]", "tensor([5, 5, 5]"]
    assert repr(transposed).startswith("tensor([[0, 3],\n        [1, 4],\n        [2, 5]]")


def test_a_subclass_prints_its_name(device):
    class Sub(tp.Tensor):
        pass

    assert repr(tp.tensor([[1.0], [2.0]], device=device).as_subclass(Sub)) == \
        "Sub([[1.],\n     [2.]], device='heap:0')"


def test_grad_suffixes(device):
    pytest.importorskip("tp_tpx", reason="gradients need tp-tpx")
    assert repr(tp.tensor([1.0], device=device, requires_grad=True)).endswith("device='heap:0', requires_grad=True)")
