"""Errors: which of Python's and PyTorch's classes they are, and the place in the user's program that they name."""
from __future__ import annotations

import copy
import inspect
import pickle

import pytest

import tensorplay as tp
from tensorplay import _errors
from tensorplay._errors import TensorPlayError, shape_text, user_line

BASES = {  # what code written for PyTorch or Python catches
    "ShapeError": (RuntimeError, ValueError), "DTypeError": (RuntimeError, TypeError), "DeviceError": (RuntimeError,),
    "DeviceUnavailable": (_errors.DeviceError,), "ArgumentError": (TypeError,),
    "ValueRangeError": (ValueError, RuntimeError), "DimError": (IndexError,), "IndexRangeError": (IndexError,),
    "MemoryLimitError": (RuntimeError, MemoryError), "NotSupported": (NotImplementedError,),
    "AutogradError": (RuntimeError,), "PluginError": (), "MissingPluginError": (_errors.PluginError,),
    "MissingModuleError": (ModuleNotFoundError, _errors.MissingPluginError),
    "MissingAttributeError": (AttributeError, _errors.MissingPluginError), "ConflictError": (_errors.PluginError,),
}


@pytest.mark.parametrize("name", BASES)
def test_classes(name):
    cls = getattr(_errors, name)
    for base in (TensorPlayError, *BASES[name]):
        assert issubclass(cls, base)
    made = cls("what happened")
    assert (made.message, made.args, made.modules) == ("what happened", ("what happened",), [])


def line():
    return inspect.currentframe().f_back.f_lineno


def test_the_users_line_is_named():
    with pytest.raises(TensorPlayError) as caught:
        tp.ones(2, 3, device="meta") + tp.ones(4, device="meta")
    assert caught.value.where == f"test_errors.py:{line() - 1}"
    assert str(caught.value) == f"{caught.value.message} ({caught.value.where})"
    assert caught.value.message == ("add: input[2, 3], other[4] do not broadcast: sizes must be equal or 1, compared "
                                    "from the last dimension")


def test_the_path_of_modules_is_named():
    error = _errors.ShapeError("sizes differ")
    error.modules += ["fc1", "encoder"]  # appended from the inside to the outside
    error.where = "model.py:42"
    assert str(error) == "sizes differ (module encoder.fc1, model.py:42)"
    error.where = None
    assert str(error) == "sizes differ (module encoder.fc1)"
    error.modules.clear()
    assert str(error) == "sizes differ"


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_errors_reach_other_processes(again):
    error = _errors.ShapeError("sizes differ")
    error.modules.append("fc1")
    made = again(error)
    assert type(made) is _errors.ShapeError
    assert (made.message, made.modules, made.where, str(made)) == (error.message, ["fc1"], error.where, str(error))


def test_user_line_skips_tensorplay_only():
    assert user_line() == f"test_errors.py:{line()}"
    frame = {"user_line": user_line, "__name__": "tensorplay.inner"}
    exec("def call():\n    return user_line()", frame)
    assert frame["call"]() == f"test_errors.py:{line()}"
    frame = {"user_line": user_line, "__name__": "tensorplay_lookalike"}
    exec(compile("def call():\n    return user_line()", "/some/where/their_file.py", "exec"), frame)
    assert frame["call"]() == "their_file.py:2"


def test_shape_text():
    assert [shape_text(shape) for shape in ((), (2,), (2, 3))] == ["[]", "[2]", "[2, 3]"]
