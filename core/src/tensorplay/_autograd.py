"""The seam to the autograd engine: TPX if it is installed, found on the first tensor that requires grad."""
from __future__ import annotations

from ._errors import MissingPluginError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_engine: Any = None


def engine() -> Any:
    """The autograd engine; MissingPluginError if none is installed."""
    global _engine
    if _engine is None:
        try:
            import tp_tpx
        except ImportError as error:
            if error.name != "tp_tpx":
                raise
            raise MissingPluginError("gradients are computed by tp-tpx, which is not installed: pip install tp-tpx") \
                from None
        _engine = tp_tpx.engine
    return _engine
