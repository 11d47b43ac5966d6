"""`tensorplay.nn.functional`: the functions behind the layers. They are operators; this module only names them."""
from __future__ import annotations

from tensorplay.library import find_function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def __getattr__(name: str) -> Any:
    """An operator function of the library, bound here on first use."""
    if name[:2] != "__":
        function = find_function(name, "NN_FUNCTIONS")
        if function is not None:
            globals()[name] = function
            return function
    raise AttributeError(f"module 'tensorplay.nn.functional' has no function {name!r}")
