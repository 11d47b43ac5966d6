"""`tensorplay.nn`: modules, functions, caches and generation."""
from __future__ import annotations

from . import functional, init, utils
from .activations import GELU, Flatten, LogSoftmax, ReLU, Sigmoid, SiLU, Softmax, Tanh
from .attention import GroupedQueryAttention
from .containers import ModuleDict, ModuleList, ParameterList, Sequential
from .dropout import Dropout
from .embedding import Embedding
from .layer_norm import LayerNorm
from .linear import Identity, Linear
from .losses import BCEWithLogitsLoss, CrossEntropyLoss, L1Loss, MSELoss, NLLLoss
from .module import Module
from .parameter import Buffer, Parameter
from .rms_norm import RMSNorm
from .transformer_block import SwiGLU, TransformerBlock

__version__ = "0.1.0"

__all__ = ["BCEWithLogitsLoss", "Buffer", "CrossEntropyLoss", "Dropout", "Embedding", "Flatten", "GELU",
           "GroupedQueryAttention", "Identity", "L1Loss", "LayerNorm", "Linear", "LogSoftmax", "MSELoss", "Module",
           "ModuleDict", "ModuleList", "NLLLoss", "Parameter", "ParameterList", "RMSNorm", "ReLU", "Sequential", "SiLU",
           "Sigmoid", "Softmax", "SwiGLU", "Tanh", "TransformerBlock", "functional", "init", "utils"]


def __getattr__(name: str) -> object:
    """Only for names that are not there: say so, with the nearest one."""
    from difflib import get_close_matches

    close = get_close_matches(name, __all__, 1)
    raise AttributeError(f"module 'tensorplay.nn' has no attribute {name!r}" +
                         (f"; did you mean {close[0]!r}?" if close else ""))
