"""Which module of this package has the NumPy kernel of an operator; data, so that asking does not import NumPy.

A module `numpy_x` defines `KERNELS`, a dict from operator names to out-kernels `kernel(out, *args)`, and may define
`DECOMPOSITIONS`: whole operators, for results whose shape depends on values.
"""
from __future__ import annotations

_KERNELS = {
    "numpy_creation": "full iota cast",
    "numpy_elementwise": """
        neg abs exp log sqrt sin cos tanh floor ceil trunc round sign reciprocal rsqrt exp2 log2 log10 expm1 log1p tan
        sinh cosh asin acos atan asinh acosh atanh sigmoid bitwise_not logical_not isnan isinf isfinite conj
        add sub mul div floor_div remainder fmod pow maximum minimum atan2 eq ne lt le gt ge
        bitwise_and bitwise_or bitwise_xor shift_left shift_right logical_and logical_or logical_xor
        where fma lerp addcmul addcdiv nextafter""",
    "numpy_reduction": """
        sum mean prod amax amin argmax argmin any all cumsum cumprod cummax cummin matmul""",
    "numpy_indexing": """
        gather scatter scatter_reduce index_select index_get index_put sort topk searchsorted""",
    "numpy_linalg": """
        cholesky triangular_solve lu qr eigh eig svd solve inv fft""",
}
_DECOMPOSITIONS = {"numpy_indexing": "nonzero"}

# operator name -> module name
MODULES: dict[str, str] = {name: module for module, names in _KERNELS.items() for name in names.split()}
DECOMPOSITIONS: dict[str, str] = {name: module for module, names in _DECOMPOSITIONS.items() for name in names.split()}
