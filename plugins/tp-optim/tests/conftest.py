"""`references`: the NumPy updates that the optimizers are compared with."""
from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def references():
    spec = importlib.util.spec_from_file_location("optim_references", Path(__file__).with_name("references.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
