"""The functions that users call, one closure for each kind of signature.

Every call is the same three steps: the union of the tensors' key sets and the mode mask, `table[key set]`, the kernel.
The kernel gets all arguments by position in schema order, defaults filled in.
"""
from __future__ import annotations

from ._errors import ArgumentError
from ._keys import INFERENCE, MODE, NO_GRAD, TRACE, modes
from ._op import FACTORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._op import Op

NUMBERS = frozenset((int, float, bool, complex))
NO_TENSOR = NO_GRAD | INFERENCE | MODE | TRACE  # bits that come from the mode mask alone


def make_call(op: Op) -> Callable:
    schema = op.schema
    if FACTORY in op.tags:
        return factory_call(op)
    if schema.tensors == (0,) and not schema.lists and not schema.parameters[0].optional:
        return unary_call(op) if len(schema.parameters) == 1 else unary_call_with_attributes(op)
    if schema.tensors == (0, 1) and len(schema.parameters) == 2 and not any([p.optional for p in schema.parameters]):
        return binary_call(op)
    return general_call(op)


def unary_call(op: Op) -> Callable:
    table = op.table

    def call(input, out=None):  # noqa: A002
        try:
            keyset = input.keyset | modes()
        except AttributeError:
            return unusual_call(op, (input,), {} if out is None else {"out": out})
        try:
            kernel = table[keyset]
        except KeyError:
            kernel = op.resolve(keyset)
        if out is not None:
            return call_with_out(op, (input,), out)
        return kernel(input)

    return _named_like_schema(op, call, ("input",))


def binary_call(op: Op) -> Callable:
    table = op.table
    numbers = op.schema.parameters[0].type == op.schema.parameters[1].type == "Operand"

    def call(input, other, out=None):  # noqa: A002
        try:
            keyset = input.keyset | other.keyset | modes()
        except AttributeError:  # one operand is a number, or something is wrong
            if numbers and other.__class__ in NUMBERS and hasattr(input, "keyset"):
                keyset = input.keyset | modes()
            elif numbers and input.__class__ in NUMBERS and hasattr(other, "keyset"):
                keyset = other.keyset | modes()
            else:
                return unusual_call(op, (input, other), {} if out is None else {"out": out})
        try:
            kernel = table[keyset]
        except KeyError:
            kernel = op.resolve(keyset)
        if out is not None:
            return call_with_out(op, (input, other), out)
        return kernel(input, other)

    return _named_like_schema(op, call, ("input", "other"))


def unary_call_with_attributes(op: Op) -> Callable:
    table, schema = op.table, op.schema
    count = len(schema.parameters) - 1
    defaults = schema.defaults[1:]
    first_default = schema.required - 1

    def call(input, *attributes, **named):  # noqa: A002
        if named or len(attributes) != count:
            if named or not first_default <= len(attributes) < count:
                return unusual_call(op, (input, *attributes), named)
            attributes += defaults[len(attributes):]
        try:
            keyset = input.keyset | modes()
        except AttributeError:
            return unusual_call(op, (input, *attributes), named)
        try:
            kernel = table[keyset]
        except KeyError:
            kernel = op.resolve(keyset)
        return kernel(input, *attributes)

    return _named_like_schema(op, call, ("input",))


def general_call(op: Op) -> Callable:
    table, schema = op.table, op.schema
    tensors, lists = schema.tensors, schema.lists
    count, required, defaults = len(schema.parameters), schema.required, schema.defaults

    def call(*args, **named):
        if named or len(args) != count:
            if named or not required <= len(args) < count:
                return unusual_call(op, args, named)
            args += defaults[len(args):]
        keyset = modes()
        try:
            for i in tensors:
                if args[i] is not None:
                    keyset |= args[i].keyset
            for i in lists:
                for arg in args[i]:
                    keyset |= arg.keyset
            kernel = table[keyset]
        except (AttributeError, KeyError, TypeError):  # a number, a wrong type, or the first call with this key set
            return unusual_call(op, args, named)
        return kernel(*args)

    return call


def factory_call(op: Op) -> Callable:
    """Factories have no tensor; their `device` (None: the default device) gives the key."""
    from ._device import as_device

    schema, table = op.schema, op.table
    place = next(i for i, p in enumerate(schema.parameters) if p.type == "device")
    count = len(schema.parameters)

    def call(*args, **named):
        out = named.pop("out", None)
        if named or len(args) != count:
            args = schema.bind(args, named)
        if args[place].__class__ is not Device:
            args = (*args[:place], as_device(args[place]), *args[place + 1:])
        keyset = args[place].key | modes()
        try:
            kernel = table[keyset]
        except KeyError:
            kernel = op.resolve(keyset)
        return kernel(*args) if out is None else call_with_out(op, args, out)

    from ._device import Device

    return call


def _named_like_schema(op: Op, call: Callable, names: tuple) -> Callable:
    """Closures name their parameters `input` and `other`; an op with other names takes keywords the general way."""
    if tuple([p.name for p in op.schema.parameters[:len(names)]]) == names:
        return call

    def renamed(*args, **named):
        return unusual_call(op, args, named) if named else call(*args)

    return renamed


def unusual_call(op: Op, args: tuple, named: dict) -> Any:
    """Any legal call: keywords, defaults, numbers as operands, optional tensors, lists of tensors, `out=`."""
    schema = op.schema
    out = named.pop("out", None) if named else None
    if named or len(args) != len(schema.parameters):
        args = schema.bind(args, named)
    keyset = modes()
    for i in schema.tensors:
        arg = args[i]
        if arg is not None or not schema.parameters[i].optional:
            try:
                keyset |= arg.keyset
            except AttributeError:
                args = _check_operand(op, args, i)
    for i in schema.lists:
        for arg in args[i] or ():
            try:
                keyset |= arg.keyset
            except AttributeError:
                raise _wrong_type(op, schema.parameters[i], arg) from None
    if not keyset & ~NO_TENSOR:
        args, keyset = _numbers_only(op, args)
    try:
        kernel = op.table[keyset]
    except KeyError:
        kernel = op.resolve(keyset)
    return kernel(*args) if out is None else call_with_out(op, args, out)


def _check_operand(op: Op, args: tuple, index: int) -> tuple:
    """A number may stand where an Operand is expected; NumPy scalars become Python numbers."""
    parameter, arg = op.schema.parameters[index], args[index]
    if parameter.type == "Operand":
        if arg.__class__ in NUMBERS:
            return args
        if hasattr(arg, "item") and getattr(arg, "ndim", None) == 0:
            return (*args[:index], arg.item(), *args[index + 1:])
    raise _wrong_type(op, parameter, arg)


def _wrong_type(op: Op, parameter: Any, arg: object) -> ArgumentError:
    kind = type(arg).__name__
    hint = ""
    if kind in ("list", "tuple", "ndarray"):
        hint = f"; make it one with tp.tensor({parameter.name})"
    elif kind in ("int", "float", "bool"):
        hint = f"; make it one with tp.tensor({arg!r})"
    wanted = "a Tensor or a number" if parameter.type == "Operand" else \
        "a list of Tensors" if parameter.is_list else "a Tensor"
    return ArgumentError(f"{op.name}: argument {parameter.name!r} must be {wanted}, got "
                         f"{'None' if arg is None else kind}{hint}")


def _numbers_only(op: Op, args: tuple) -> tuple:
    from ._creation import tensor

    schema = op.schema
    if not any([schema.parameters[i].type == "Operand" for i in schema.tensors]):
        raise ArgumentError(f"{op.name}: got no tensor to work on: {schema.text}")
    args = tuple([tensor(arg) if i in schema.tensors and arg is not None else arg for i, arg in enumerate(args)])
    keyset = modes()
    for i in schema.tensors:
        if args[i] is not None:
            keyset |= args[i].keyset
    return args, keyset


def call_with_out(op: Op, args: tuple, out: Any) -> Any:
    from ._inplace import call_into

    return call_into(op, args, out)
