"""`tensorplay.optim`: optimizers."""
from __future__ import annotations

from . import lr_scheduler
from .adam import Adam, AdamW
from .optimizer import Optimizer
from .sgd import SGD

__version__ = "0.1.0"

__all__ = ["Adam", "AdamW", "Optimizer", "SGD", "lr_scheduler"]
