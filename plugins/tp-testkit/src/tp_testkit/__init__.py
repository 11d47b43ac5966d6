"""tp-testkit: what operators and devices are tested with: references, a harness, and refdev, the reference device."""
from __future__ import annotations

__version__ = "0.1.0"
