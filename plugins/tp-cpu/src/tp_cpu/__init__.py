"""tp-cpu: TensorPlay's CPU device. Native kernels for the hot paths, NumPy for breadth (imported when first needed)."""
from __future__ import annotations

from .driver import CpuDriver

__version__ = "0.1.0"
__all__ = ["CpuDriver"]
