"""TPX, TensorPlay's autograd engine: an explicit graph of small nodes, an iterative backward pass.

Also importable as `tensorplay.autograd`.
"""
from __future__ import annotations

from tensorplay import (enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad,
                        set_grad_enabled)

from . import engine, function, graph
from ._anomaly import detect_anomaly, is_anomaly_check_nan_enabled, is_anomaly_enabled, set_detect_anomaly
from ._backward import backward, grad
from ._gradcheck import GradcheckError, gradcheck, gradgradcheck
from .function import Function, once_differentiable

__version__ = "0.1.0"

__all__ = ["backward", "grad", "Function", "once_differentiable", "gradcheck", "gradgradcheck", "GradcheckError",
           "detect_anomaly", "set_detect_anomaly", "is_anomaly_enabled", "is_anomaly_check_nan_enabled", "no_grad",
           "enable_grad", "set_grad_enabled", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled",
           "function", "graph", "engine"]
