"""Fixtures of these tests."""
from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import tensorplay as tp

_spec = importlib.util.spec_from_file_location("nn_test_language_model", Path(__file__).with_name("language_model.py"))
language_model = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(language_model)


@pytest.fixture
def make_model():
    """A function that makes a small language model from a seed and sizes."""
    def make(seed: int = 0, **sizes):
        tp.manual_seed(seed)
        return language_model.Model(**sizes)

    return make
