"""How exact results must be: in units of the result's machine epsilon, relative to the size of the expected value and
to 1 where that is larger. One table for all operators and dtypes."""
from __future__ import annotations

from typing import Any

import tensorplay as tp

DEFAULT = 8

UNITS = {
    "matmul": 32, "linear": 32, "dot_general": 32, "grouped_matmul": 32, "scaled_dot_product_forward": 32,
    "scaled_dot_product_backward": 64, "layer_norm_backward": 64, "rms_norm_backward": 64,
}


# The table of the quantile function for 53 bits is that exact; the bits are the same on all devices.
FRACTIONS = {("normal", "float64"): 1e-9}


def tolerance(op_name: str, dtype: Any) -> float:
    """The allowed error of a result of that dtype, as a fraction."""
    fraction = FRACTIONS.get((op_name, dtype.name))
    return UNITS.get(op_name, DEFAULT) * tp.finfo(dtype).eps if fraction is None else fraction
