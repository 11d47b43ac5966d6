"""gradcheck: gradients compared with central differences, in double precision.

A complex number counts as two real ones. The gradient g of a complex input z of a real loss L is, as everywhere in
TensorPlay, g = dL/dRe(z) + i dL/dIm(z).
"""
from __future__ import annotations

from itertools import product

import tensorplay as tp
from tensorplay.library import AUTOGRAD, ArgumentError, AutogradError, Tensor, shape_text

from ._backward import grad

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class GradcheckError(AutogradError):
    """Gradients that differ from the numerical ones."""


def gradcheck(function: Callable, inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
              raise_exception: bool = True, nondet_tol: float = 0.0) -> bool:
    """Compare the gradients of `function(*inputs)` with numerical ones, for every input that requires grad.

    >>> import tensorplay as tp
    >>> x = tp.tensor([0.5, 1.5], dtype=tp.float64, requires_grad=True)
    >>> tp.autograd.gradcheck(lambda x: (x * x).sum(), (x,))
    True

    Inputs that require grad must be float64 or complex128 and own their memory. Raises GradcheckError with the worst
    element, or returns False without `raise_exception`.
    """
    try:
        _check(function, _as_tuple(inputs), eps, atol, rtol, nondet_tol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(function: Callable, inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6, atol: float = 1e-5,
                  rtol: float = 1e-3, raise_exception: bool = True, nondet_tol: float = 0.0) -> bool:
    """Check second gradients: the gradients of the gradients of `function`, for inputs and for output gradients.

    >>> import tensorplay as tp
    >>> x = tp.tensor([0.5, 1.5], dtype=tp.float64, requires_grad=True)
    >>> tp.autograd.gradgradcheck(lambda x: x * x * x, (x,))
    True
    """
    inputs = _as_tuple(inputs)
    outputs = _differentiable(function(*inputs))
    seeds = tuple([_seed(out, i) for i, out in enumerate(outputs)]) if grad_outputs is None else _as_tuple(grad_outputs)

    def gradients(*args: Any) -> tuple:
        values, given = args[:len(inputs)], args[len(inputs):]
        wanted = [value for value in values if _requires_grad(value)]
        found = grad(_differentiable(function(*values)), wanted, given, create_graph=True, allow_unused=True)
        return tuple([one for one in found if one is not None and one.keyset & AUTOGRAD])

    return gradcheck(gradients, inputs + seeds, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
                     nondet_tol=nondet_tol)


def _check(function: Callable, inputs: tuple, eps: float, atol: float, rtol: float, nondet_tol: float) -> None:
    wanted = [i for i, value in enumerate(inputs) if _requires_grad(value)]
    if not wanted:
        raise ArgumentError("gradcheck: no input requires grad")
    for i in wanted:
        _check_input(i, inputs[i])
    outputs = _differentiable(function(*inputs))
    if not outputs:
        raise GradcheckError("gradcheck: no output of the function requires grad, so there is nothing to check")
    analytical = _analytical(function, inputs, wanted)
    again = _analytical(function, inputs, wanted)
    numerical = _numerical(function, inputs, wanted, eps)
    for i in wanted:
        for o, out in enumerate(outputs):
            _compare(i, o, inputs[i], out, analytical[i][o], numerical[i][o], atol, rtol)
            _compare_runs(i, o, analytical[i][o], again[i][o], nondet_tol)


def _check_input(place: int, tensor: Tensor) -> None:
    if tensor.layout.dtype.name not in ("float64", "complex128"):
        raise ArgumentError(f"gradcheck: input {place} is {tensor.layout.dtype.name}; numerical gradients need float64 "
                            f"or complex128: use x.double()")
    if any([size > 1 and stride == 0 for size, stride in zip(tensor.layout.shape, tensor.layout.strides)]):
        raise ArgumentError(f"gradcheck: input {place} was expanded, so that one memory cell is several elements; use "
                            f"x.contiguous()")


def _analytical(function: Callable, inputs: tuple, wanted: list) -> dict:
    """input -> output -> rows of the Jacobian, one for each real number in the output."""
    outputs = _differentiable(function(*inputs))
    jacobians: dict = {i: [[] for _ in outputs] for i in wanted}
    tensors = [inputs[i] for i in wanted]
    for o, out in enumerate(outputs):
        units = (1.0, 1j) if out.layout.dtype.is_complex else (1.0,)
        for index in _indices(out):
            for unit in units:
                seed = tp.zeros(out.layout.shape, dtype=out.layout.dtype, device=out.layout.device)
                seed[index] = unit
                found = grad(out, tensors, seed, retain_graph=True, allow_unused=True)
                for i, gradient in zip(wanted, found):
                    jacobians[i][o].append([0.0] * _count(inputs[i]) if gradient is None else _numbers(gradient))
    return jacobians


def _numerical(function: Callable, inputs: tuple, wanted: list, eps: float) -> dict:
    count = len(_differentiable(function(*inputs)))
    jacobians: dict = {i: [[] for _ in range(count)] for i in wanted}
    for i in wanted:
        values = inputs[i].detach()
        steps = (eps, eps * 1j) if values.layout.dtype.is_complex else (eps,)
        for index in _indices(values):
            middle = values[index].item()
            for step in steps:
                values[index] = middle + step
                high = [_numbers(out) for out in _differentiable(function(*inputs))]
                values[index] = middle - step
                low = [_numbers(out) for out in _differentiable(function(*inputs))]
                values[index] = middle
                for o in range(count):
                    jacobians[i][o].append([(a - b) / (2 * eps) for a, b in zip(high[o], low[o])])
    return {i: [[list(row) for row in zip(*columns)] for columns in by_output] for i, by_output in jacobians.items()}


def _compare(place: int, output: int, tensor: Tensor, out: Tensor, analytical: list, numerical: list, atol: float,
             rtol: float) -> None:
    worst, wrong = None, 0
    for row, (found, expected) in enumerate(zip(analytical, numerical)):
        for column, (a, n) in enumerate(zip(found, expected)):
            error = abs(a - n)
            if not error <= atol + rtol * abs(n):  # a NaN is wrong too
                wrong += 1
                if worst is None or not error <= worst[0]:
                    worst = error, row, column, a, n
    if worst is None:
        return
    _, row, column, a, n = worst
    text = "" if len(analytical) * len(analytical[0]) > 64 else \
        f"\nanalytical Jacobian: {_table(analytical)}\nnumerical Jacobian:  {_table(numerical)}"
    raise GradcheckError(
        f"gradcheck: the gradient of output {output} {shape_text(out.layout.shape)} for input {place} "
        f"{shape_text(tensor.layout.shape)} is wrong in {wrong} of {len(analytical) * len(analytical[0])} places; "
        f"worst: d output{_place(out, row)} / d input{_place(tensor, column)} is {a:.8g}, numerically {n:.8g}{text}")


def _compare_runs(place: int, output: int, first: list, second: list, tolerance: float) -> None:
    for one, two in zip(first, second):
        for a, b in zip(one, two):
            if abs(a - b) > tolerance:
                raise GradcheckError(f"gradcheck: two backward passes gave different gradients of output {output} for "
                                     f"input {place}: {a!r} and {b!r}; nondet_tol allows a difference")


def _place(tensor: Tensor, number: int) -> str:
    """The index of the number-th real number of a tensor."""
    part = ""
    if tensor.layout.dtype.is_complex:
        number, imaginary = divmod(number, 2)
        part = ".imag" if imaginary else ".real"
    index = []
    for size in reversed(tensor.layout.shape):
        index.append(number % size)
        number //= size
    return str(list(reversed(index))) + part


def _table(rows: list) -> str:
    return "[" + ", ".join(["[" + ", ".join([f"{value:.6g}" for value in row]) + "]" for row in rows]) + "]"


def _numbers(tensor: Tensor) -> list[float]:
    """The elements in order as real numbers."""
    values = tensor.detach().reshape(-1).tolist()
    if tensor.layout.dtype.is_complex:
        return [part for value in values for part in (value.real, value.imag)]
    return values


def _count(tensor: Tensor) -> int:
    return tensor.layout.numel * (2 if tensor.layout.dtype.is_complex else 1)


def _indices(tensor: Tensor) -> Any:
    return product(*[range(size) for size in tensor.layout.shape])


def _seed(out: Tensor, number: int) -> Tensor:
    """Some fixed gradient without regularity."""
    values = [((i * 7919 + number * 104729) % 1000) / 500 - 1 for i in range(out.layout.numel)]
    seed = tp.tensor(values, dtype=out.layout.dtype, device=out.layout.device).reshape(out.layout.shape)
    return seed.requires_grad_()


def _requires_grad(value: Any) -> bool:
    return isinstance(value, Tensor) and value.keyset & AUTOGRAD != 0


def _differentiable(result: Any) -> tuple:
    return tuple([out for out in _as_tuple(result) if _requires_grad(out)])


def _as_tuple(value: Any) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)
