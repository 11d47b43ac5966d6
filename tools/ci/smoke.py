"""A few lines that touch core, operators and the CPU device; `smoke.py LIBRARY` also wants that GEMM library in use."""

from __future__ import annotations

import sys

import numpy

import tensorplay as tp


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
    if library:
        with open("/proc/self/maps", encoding="utf-8") as maps:
            assert library in maps.read(), f"{library} is not loaded"
    print(f"smoke: Python {sys.version.split()[0]}, {library or 'default library'}: right")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
