"""A few lines that touch core, operators and the CPU device; `smoke.py LIBRARY` also wants that GEMM library in use."""

from __future__ import annotations

import sys

import numpy

import tensorplay as tp


def check_convolution(generator: numpy.random.Generator) -> None:
    """A strided, padded convolution and its two gradients against sums over the window's positions in float64."""
    images = generator.standard_normal((2, 3, 9, 8), dtype="float32")
    weights = generator.standard_normal((4, 3, 3, 3), dtype="float32")
    padded = numpy.pad(images.astype("float64"), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = numpy.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2]
    result = tp.ops.conv(tp.tensor(images), tp.tensor(weights), None, (2, 2), (1, 1), (1, 1), 1)
    expected = numpy.einsum("nchwij,ocij->nohw", windows, weights.astype("float64"))
    numpy.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-4)
    geometry = ((2, 2), (1, 1), (1, 1), 1)
    grad = generator.standard_normal(expected.shape, dtype="float32")
    to_weights = tp.ops.conv_backward_weight(tp.tensor(grad), tp.tensor(images), (4, 3, 3, 3), *geometry)
    expected = numpy.einsum("nohw,nchwij->ocij", grad.astype("float64"), windows)
    numpy.testing.assert_allclose(to_weights.numpy(), expected, rtol=1e-4, atol=1e-3)
    to_images = tp.ops.conv_backward_input(tp.tensor(grad), tp.tensor(weights), (2, 3, 9, 8), *geometry)
    spread = numpy.zeros_like(padded)
    each = numpy.einsum("nohw,ocij->nchwij", grad.astype("float64"), weights.astype("float64"))
    height, width = grad.shape[2:]
    for i in range(3):
        for j in range(3):
            spread[:, :, i:i + 2 * height - 1:2, j:j + 2 * width - 1:2] += each[..., i, j]
    numpy.testing.assert_allclose(to_images.numpy(), spread[:, :, 1:-1, 1:-1], rtol=1e-4, atol=1e-4)


def main(library: str | None) -> None:
    generator = numpy.random.default_rng(0)
    for rows, inner, columns in ((1, 64, 32), (7, 65, 33), (300, 300, 300)):
        left = generator.standard_normal((rows, inner), dtype="float32")
        right = generator.standard_normal((inner, columns), dtype="float32")
        product = (tp.tensor(left) @ tp.tensor(right)).numpy()
        numpy.testing.assert_allclose(product, left.astype("float64") @ right.astype("float64"), rtol=1e-4, atol=1e-4)
    x = tp.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert (x + 1).sum().item() == 14.0
    numpy.testing.assert_allclose(tp.exp(x).numpy(), numpy.exp([[1.0, 2.0], [3.0, 4.0]]), rtol=1e-6)
    check_convolution(generator)
    if library:
        with open("/proc/self/maps", encoding="utf-8") as maps:
            assert library in maps.read(), f"{library} is not loaded"
    print(f"smoke: Python {sys.version.split()[0]}, {library or 'default library'}: right")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
