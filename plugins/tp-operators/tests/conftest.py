"""The helpers beside the tests, `tiny_model` and `tracer`, can be imported by name."""
from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
