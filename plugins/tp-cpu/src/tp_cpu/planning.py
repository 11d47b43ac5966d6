"""What the native kernels ask of Python: an operator's signature, the plan of a new combination of layouts, and the
other ways where a kernel declines. The core's meta is the only authority; C keeps what it said."""
from __future__ import annotations

from tensorplay._device import Device
from tensorplay._dtype import COMPLEX, DType
from tensorplay._resolve import device_decomposition, no_kernel
from tensorplay.library import AUTOGRAD as AUTOGRAD
from tensorplay.library import (
    FACTORY,
    NO_GRAD,
    OPS,
    RANDOM,
    ArgumentError,
    DivisionByZeroError,
    DTypeError,
    IndexRangeError,
    Layout,
    Op,
    ShapeError,
    Tensor,
    ValueRangeError,
    as_dtype,
    compute_dtype,
    copy_into,
    generic_kernel,
    infer,
    mask_bits,
    shape_text,
)

from .numpy_index import DECOMPOSITIONS, MODULES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Codes of arguments.h. Base kinds:
TENSOR, OPERAND, TENSORS, ATTRIBUTE, FLOAT, IGNORED, WORD = range(7)
# and flags:
OPTIONAL, LISTED, VALUE_FREE, MUTATED = 16, 32, 64, 128


def cpu_device() -> Device:
    return Device("cpu")


# ---- signatures ------------------------------------------------------------------------------------------------------
def signature(op: Op | str) -> tuple[Op, bytes, int]:
    """(operator, one code for each parameter, number of results)."""
    if op.__class__ is str:
        if op not in OPS:
            raise ArgumentError(f"no operator named {op!r} is loaded, so its kernel cannot be called")
        op = OPS[op]  # type: ignore[index]
    plain_meta = op.elementwise and getattr(op.rule("meta"), "__module__", "tensorplay._elementwise") \
        == "tensorplay._elementwise"
    codes = []
    for parameter in op.schema.parameters:
        code = OPTIONAL if parameter.optional else 0
        if parameter.is_tensor:
            code |= TENSORS if parameter.is_list else OPERAND if parameter.type == "Operand" else TENSOR
            code |= MUTATED if parameter.mutated else 0
        elif parameter.type in ("device", "Generator"):
            code |= IGNORED
        elif parameter.name in ("seed", "offset") and RANDOM in op.tags and not parameter.is_list:
            code |= WORD | VALUE_FREE
        else:
            code |= FLOAT if parameter.type == "float" else ATTRIBUTE
            if parameter.is_list:
                code |= LISTED
            elif parameter.type in ("float", "Number") and (plain_meta or op.schema.mutates or FACTORY in op.tags):
                code |= VALUE_FREE  # neither shapes nor dtypes depend on a learning rate or a fill value
        codes.append(code)
    return op, bytes(codes), op.schema.returns


# ---- plans -----------------------------------------------------------------------------------------------------------
def plan(op: Op, args: tuple) -> tuple[tuple, int] | None:
    """(layouts of the results, code of the dtype in which operands meet or -1); None: only Python can promote these."""
    result = infer(op, args)
    code = operand_code(op, args)
    if code is None:
        return None
    return results_of(result), code


def plan_out(op: Op, args: tuple, outs: tuple) -> tuple[tuple, int] | None:
    """The same for outputs that exist: they must be what the meta says."""
    results = results_of(infer(op, args))
    layouts = tuple([out.layout for out in outs])
    if len(results) != len(layouts):
        raise ArgumentError(f"{op.name} has {len(results)} results, got {len(layouts)} tensors to write to")
    for result, given in zip(results, layouts):
        if result.shape != given.shape:
            raise ShapeError(f"{op.name}: the result has shape {shape_text(result.shape)}, the tensor to write to "
                             f"{shape_text(given.shape)}")
        if result.dtype is not given.dtype:
            raise DTypeError(f"{op.name}: the result is {result.dtype.name}, the tensor to write to "
                             f"{given.dtype.name}")
    code = operand_code(op, args)
    return None if code is None else (layouts, code)


def plan_view(op: Op, args: tuple) -> tuple[Layout, int]:
    return op.rule("meta")(args[0].layout, *args[1:])


def results_of(result: Any) -> tuple:
    return () if result is None else (result,) if result.__class__ is Layout else tuple(result)


def operand_code(op: Op, args: tuple) -> int | None:
    """The code of the dtype in which operands meet; -1 if the operator has none; None for complex numbers."""
    operands = [arg for parameter, arg in zip(op.schema.parameters, args) if parameter.type == "Operand"]
    if all([arg is None for arg in operands]):
        return -1
    dtype = compute_dtype(op, args)
    if dtype.category == COMPLEX and not all([arg is None or isinstance(arg, Tensor) for arg in operands]):
        return None
    return dtype.code


def plain(op: Op, args: tuple) -> tuple | None:
    """Attributes as Python's own ints, floats, tuples and DTypes; None if one of them is something else."""
    try:
        return tuple([arg if parameter.is_tensor or arg is None else plain_attribute(parameter, arg)
                      for parameter, arg in zip(op.schema.parameters, args)])
    except (TypeError, ValueError, AttributeError):
        return None


def plain_attribute(parameter: Any, value: Any) -> Any:
    if parameter.is_list and isinstance(value, (list, tuple)):
        return tuple([plain_value(parameter.type, one) for one in value])
    return plain_value(parameter.type, value)


def plain_value(kind: str, value: Any) -> Any:
    if kind == "int":
        return value.__index__()
    if kind == "float":
        return value.__float__()
    if kind == "bool":
        return bool(value)
    if kind == "Number":
        return value.__index__() if hasattr(value, "__index__") else value.__float__()
    if kind == "dtype":
        return value if isinstance(value, DType) else as_dtype(value)
    return value


# ---- where a kernel declines -----------------------------------------------------------------------------------------
def numpy_kernel(name: str) -> Callable | None:
    module = MODULES.get(name)
    if module is None:
        return None
    from importlib import import_module

    return import_module(f"tp_cpu.{module}").KERNELS[name]


def numpy_decomposition(name: str) -> Callable:
    from importlib import import_module

    return import_module(f"tp_cpu.{DECOMPOSITIONS[name]}").DECOMPOSITIONS[name]


def numpy_finder(name: str) -> Callable | None:
    """What a native kernel calls to find the NumPy one, if there is one."""
    return (lambda: numpy_kernel(name)) if name in MODULES else None


def slow(kernel: Any, op: Op) -> Callable:
    """The operator with operands promoted in Python, then computed by the same kernel."""
    if not op.elementwise:
        return fallback(kernel, op)

    def promoted(out: Any, *args: Any) -> None:
        kernel.out(out, *args)

    return generic_kernel(op, cpu_device().driver, promoted)


def slow_out(kernel: Any, op: Op) -> Callable:
    if not op.elementwise:
        return fallback_out(kernel, op)
    prepare = slow(kernel, op).prepare  # type: ignore[attr-defined]

    def promoted(out: Any, *args: Any) -> None:
        kernel.out(out, *prepare(args, layouts_to_fill(out)))

    return promoted


def fallback(kernel: Any, op: Op) -> Callable:
    """The operator without the native kernel: by NumPy, else decomposed."""
    numpy = kernel.numpy and kernel.numpy()
    if numpy is not None:
        return generic_kernel(op, cpu_device().driver, numpy)
    decomposition = device_decomposition(op, "cpu", cpu_device().driver) or op.rule("decomposition")
    if decomposition is None:
        raise no_kernel(op, "cpu", " and these dtypes or layouts (the native kernel takes others)")

    def decomposed(*args: Any) -> Any:
        with mask_bits(add=NO_GRAD):
            return decomposition(*args)

    return decomposed


def fallback_out(kernel: Any, op: Op) -> Callable:
    compute = fallback(kernel, op)
    numpy = getattr(compute, "out_kernel", None)
    if numpy is not None:
        prepare = compute.prepare  # type: ignore[attr-defined]
        return lambda out, *args: numpy(out, *prepare(args, layouts_to_fill(out)))

    def decomposed(out: Any, *args: Any) -> None:
        results = compute(*args)
        for one, result in zip((out,) if isinstance(out, Tensor) else out or (),
                               (results,) if isinstance(results, Tensor) else results or ()):
            copy_into(one, result)

    return decomposed


def layouts_to_fill(out: Any) -> Any:
    return out.layout if isinstance(out, Tensor) else tuple([one.layout for one in out or ()])


# ---- errors ----------------------------------------------------------------------------------------------------------
def kernel_error(name: str, text: str) -> Exception:
    """The designed error for a kernel's complaint about a value."""
    kind: Any = ValueRangeError
    if "division by zero" in text:
        kind = DivisionByZeroError
    elif "out of range" in text or "outside" in text:
        kind = IndexRangeError
    return kind(text if text.startswith(name.removesuffix("_forward")) else f"{name}: {text}")
