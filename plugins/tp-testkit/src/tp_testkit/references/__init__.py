"""What operators should compute: NumPy and SciPy functions by operator name, independent of the operators.

`REFERENCES[name](*arguments)` takes all arguments in schema order, tensors as arrays of float64, complex128 or their
own integer dtype, and gives an array or a tuple of them.
"""
from __future__ import annotations

from .attention import ATTENTION
from .complex_numbers import COMPLEX_NUMBERS
from .convolution import CONVOLUTION
from .elementwise import ELEMENTWISE
from .factorization import FACTORIZATION
from .fourier import FOURIER
from .indexing import INDEXING
from .loss import LOSS
from .normalization import NORMALIZATION
from .optimizer_steps import OPTIMIZER_STEPS
from .ordering import ORDERING
from .products import PRODUCTS
from .random import RANDOM
from .reduction import REDUCTION
from .shapes import SHAPES

REFERENCES = {**ELEMENTWISE, **REDUCTION, **PRODUCTS, **NORMALIZATION, **LOSS, **ATTENTION, **INDEXING, **ORDERING,
              **SHAPES, **RANDOM, **OPTIMIZER_STEPS, **CONVOLUTION, **COMPLEX_NUMBERS,
              **FACTORIZATION, **FOURIER}
