"""`tensorplay.io`: saving and loading tensors."""
from __future__ import annotations

from .atomic import WriteError, atomic_write
from .safetensors_file import FileFormatError, load_file, load_metadata, save_file

__version__ = "0.1.0"

__all__ = ["FileFormatError", "WriteError", "atomic_write", "load_file", "load_metadata", "save_file"]
