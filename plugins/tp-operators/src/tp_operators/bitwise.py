"""Bits of integers and bools, shifts, and logical operators on any dtype."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import COMPARE, ELEMENTWISE, NONDIFFERENTIABLE, PRIMITIVE, Tensor, op

from ._operands import BOOL, INTEGER, accept, operands
from ._samples import sample_binary, sample_unary
from .selection import where_op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BITS = (ELEMENTWISE, NONDIFFERENTIABLE, PRIMITIVE)
LOGIC = (ELEMENTWISE, NONDIFFERENTIABLE)

# ---- bits -----------------------------------------------------------------------------------------------------------
bitwise_not = op("bitwise_not(Operand input) -> Tensor", tags=BITS, doc="""Every bit inverted; `not` of a bool.

>>> import tensorplay as tp
>>> tp.bitwise_not(tp.tensor([0, 5])).tolist(), tp.bitwise_not(tp.tensor([True])).tolist()
([-1, -6], [False])

Raises DTypeError for floating point and complex tensors.
""")
bitwise_and = op("bitwise_and(Operand input, Operand other) -> Tensor", tags=BITS, doc="""The bits set in both.

>>> import tensorplay as tp
>>> tp.bitwise_and(tp.tensor([6, 5]), 3).tolist()
[2, 1]
""")
bitwise_or = op("bitwise_or(Operand input, Operand other) -> Tensor", tags=BITS, doc="""The bits set in either.

>>> import tensorplay as tp
>>> tp.bitwise_or(tp.tensor([6, 5]), 3).tolist()
[7, 7]
""")
bitwise_xor = op("bitwise_xor(Operand input, Operand other) -> Tensor", tags=BITS, doc="""The bits set in one of both.

>>> import tensorplay as tp
>>> tp.bitwise_xor(tp.tensor([6, 5]), 3).tolist()
[5, 6]
""")

# ---- shifts ---------------------------------------------------------------------------------------------------------
shift_left = op("shift_left(Operand input, Operand other) -> Tensor", tags=BITS,
                doc="""Bits moved `other` places up. A count below 0, or of all bits and more, shifts everything out.

>>> import tensorplay as tp
>>> tp.bitwise_left_shift(tp.tensor([1, 3]), 2).tolist()
[4, 12]
""")
shift_right = op("shift_right(Operand input, Operand other) -> Tensor", tags=BITS,
                 doc="""Bits moved `other` places down; the sign stays. A count outside the bits leaves 0, or -1 of
negatives.

>>> import tensorplay as tp
>>> tp.bitwise_right_shift(tp.tensor([12, -12]), 2).tolist()
[3, -3]
""")
bitwise_left_shift, bitwise_right_shift = shift_left, shift_right


def _halves(other: Tensor) -> tuple[Tensor, Tensor]:
    """The count, `bits` where it is outside 0..bits-1, as two steps: 2 ** count itself may not fit the dtype."""
    bits = other.layout.dtype.itemsize * 8
    count = where_op((other < 0) | (other >= bits), bits, other)
    half = count // 2
    return half, count - half


@shift_left.decomposition
def _(input: Any, other: Any) -> Tensor:  # noqa: A002
    (input, other), _ = operands(shift_left.op, (input, other))  # noqa: A001
    first, second = _halves(other)
    return input * 2 ** first * 2 ** second


@shift_right.decomposition
def _(input: Any, other: Any) -> Tensor:  # noqa: A002
    (input, other), _ = operands(shift_right.op, (input, other))  # noqa: A001
    first, second = _halves(other)
    return input // 2 ** first // 2 ** second


# ---- logical --------------------------------------------------------------------------------------------------------
logical_not = op("logical_not(Operand input) -> Tensor", tags=LOGIC, promotion=COMPARE,
                 doc="""True where input is 0.

>>> import tensorplay as tp
>>> tp.logical_not(tp.tensor([0., 2.])).tolist()
[True, False]
""")
logical_not.decomposition(lambda input: input == 0)
sample_unary(logical_not)


def _logical(name: str, sentence: str, example: str) -> Any:
    made = op(f"{name}(Operand input, Operand other) -> Tensor", tags=LOGIC, promotion=COMPARE, doc=f"""\
{sentence}; any number but 0 counts as True.

>>> import tensorplay as tp
>>> tp.{name}(tp.tensor([0, 0, 7, 7]), tp.tensor([0., 1., 0., 1.])).tolist()
{example}
""")
    sample_binary(made)
    return made


logical_and = _logical("logical_and", "Whether both are True", "[False, False, False, True]")
logical_or = _logical("logical_or", "Whether at least one is True", "[False, True, True, True]")
logical_xor = _logical("logical_xor", "Whether exactly one is True", "[False, True, True, False]")


def _truth(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return bool(value)
    return value if value.layout.dtype is tp.bool else value != 0


logical_and.decomposition(lambda input, other: bitwise_and(_truth(input), _truth(other)))
logical_or.decomposition(lambda input, other: bitwise_or(_truth(input), _truth(other)))
logical_xor.decomposition(lambda input, other: bitwise_xor(_truth(input), _truth(other)))

for _made in (bitwise_and, bitwise_or, bitwise_xor):
    accept(_made, BOOL, INTEGER)
    sample_binary(_made, low=-9, high=9, dtype=tp.int64, number=5)
accept(bitwise_not, BOOL, INTEGER)
sample_unary(bitwise_not, low=-9, high=9, dtype=tp.int64)
for _made in (shift_left, shift_right):
    accept(_made, INTEGER, INTEGER)
    sample_binary(_made, low=-90, high=90, dtype=tp.int64, other=(0, 9), number=3)

FUNCTIONS = ("bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift",
             "logical_not", "logical_and", "logical_or", "logical_xor")
METHODS = FUNCTIONS
INPLACE = tuple([f"{name}_" for name in FUNCTIONS])
