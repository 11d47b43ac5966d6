"""Einstein's summation: products of tensors by letters for their dimensions."""
from __future__ import annotations

import tensorplay as tp
from tensorplay.library import ArgumentError, ShapeError, Tensor, shape_text

from .contraction import dot_general

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def einsum(*args: Any) -> Tensor:
    """Products of tensors, summed over the letters that are not behind the arrow; `...` stands for further dimensions.

    >>> import tensorplay as tp
    >>> tp.einsum('ij,jk->ik', tp.ones(2, 3), tp.ones(3, 2)).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    >>> tp.einsum('ii', tp.tensor([[1., 2.], [3., 4.]])).item()
    5.0

    Without an arrow the letters that occur once, in alphabetical order, remain. `einsum(x, [0, 1], y, [1, 2], [0, 2])`
    is another spelling. Pairs are contracted from left to right, each as one matrix product. Raises ArgumentError for
    an equation that does not fit the operands, ShapeError for sizes that differ under one letter.
    """
    equation, operands = _spelled(args)
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(operands):
        raise ArgumentError(f"einsum: {equation!r} has {len(terms)} terms for {len(operands)} operands")
    labels = [_labels(equation, term, x) for term, x in zip(terms, operands)]
    dots = max([sum([isinstance(one, int) for one in some]) for some in labels], default=0)
    wanted = _output(equation, output, dots) if arrow else _implied(labels, dots)
    unknown = [one for one in wanted if all([one not in some for some in labels])]
    if unknown or len(set(wanted)) != len(wanted):
        raise ArgumentError(
            f"einsum: {equation!r}: every letter behind the arrow must occur before it, and once behind it"
        )
    _check_sizes(equation, labels, operands)
    terms_left = [_without_repeats(x, some) for x, some in zip(operands, labels)]
    result, have = terms_left[0]
    for i, (other, names) in enumerate(terms_left[1:], 1):
        later = {one for _, some in terms_left[i + 1:] for one in some} | set(wanted)
        result, have = _pair(result, have, other, names, later)
    result, have = _summed(result, have, set(wanted))
    return result.permute(tuple([have.index(one) for one in wanted])) if have != wanted else result


def _spelled(args: tuple) -> tuple:
    """(equation, operands) from either spelling."""
    if args and isinstance(args[0], str):
        rest = args[1:]
        operands = list(rest[0]) if len(rest) == 1 and isinstance(rest[0], (list, tuple)) else list(rest)
        return args[0], operands
    if len(args) < 2 or not isinstance(args[0], Tensor):
        raise ArgumentError("einsum: expects an equation such as 'ij,jk->ik' and tensors")

    def term(numbers: Any) -> str:
        return "".join(["..." if n is Ellipsis else LETTERS[n] for n in numbers])

    count = len(args) // 2
    equation = ",".join([term(args[2 * i + 1]) for i in range(count)])
    return (equation + "->" + term(args[-1]) if len(args) % 2 else equation), [args[2 * i] for i in range(count)]


def _labels(equation: str, term: str, x: Tensor) -> list:
    """A letter for each dimension of an operand; those under `...` are numbered from the right: -1, -2, ..."""
    before, dots, after = term.partition("...")
    if any([one not in LETTERS for one in before + after]):
        raise ArgumentError(f"einsum: {equation!r}: terms consist of letters and at most one '...'")
    extra = x.layout.ndim - len(before) - len(after)
    if extra < 0 or (extra and not dots):
        raise ArgumentError(f"einsum: {equation!r}: the term {term!r} does not fit a tensor of shape "
                            f"{shape_text(x.layout.shape)}")
    return [*before, *range(-extra, 0), *after]


def _output(equation: str, output: str, dots: int) -> list:
    before, found, after = output.partition("...")
    if any([one not in LETTERS for one in before + after]):
        raise ArgumentError(f"einsum: {equation!r}: behind the arrow are letters and at most one '...'")
    return [*before, *(range(-dots, 0) if found else ()), *after]


def _implied(labels: list, dots: int) -> list:
    letters = [one for some in labels for one in some if isinstance(one, str)]
    return [*range(-dots, 0), *sorted([one for one in set(letters) if letters.count(one) == 1])]


def _check_sizes(equation: str, labels: list, operands: list) -> None:
    sizes: dict = {}
    for some, x in zip(labels, operands):
        for one, size in zip(some, x.layout.shape):
            if size != 1 and sizes.setdefault(one, size) != size:
                shapes = ", ".join([shape_text(t.layout.shape) for t in operands])
                raise ShapeError(f"einsum: {equation!r} with shapes {shapes}: sizes {sizes[one]} and {size} under "
                                 f"{one if isinstance(one, str) else '...'!r} differ")


def _without_repeats(x: Tensor, labels: list) -> tuple:
    """A letter twice in one term means the diagonal."""
    labels = list(labels)
    for one in [one for one in dict.fromkeys(labels) if labels.count(one) > 1]:
        while labels.count(one) > 1:
            first = labels.index(one)
            second = labels.index(one, first + 1)
            if x.layout.shape[first] != x.layout.shape[second]:
                raise ShapeError(
                    f"einsum: the sizes {x.layout.shape[first]} and {x.layout.shape[second]} of a repeated "
                    f"letter {one!r} differ"
                )
            x = tp.diagonal(x, 0, first, second)
            labels = [name for i, name in enumerate(labels) if i not in (first, second)] + [one]
    return x, labels


def _summed(x: Tensor, labels: list, kept: set) -> tuple:
    """The tensor without the letters that nobody needs any more."""
    dims = tuple([i for i, one in enumerate(labels) if one not in kept])
    if not dims:
        return x, labels
    return x.sum(dims, dtype=x.dtype), [one for one in labels if one in kept]


def _pair(x: Tensor, first: list, y: Tensor, second: list, later: set) -> tuple:
    """The product of two operands, summed over the letters that nobody needs later."""
    for one in [one for one in first if one in second]:  # a size of 1 repeats: leave the letter to the other
        if x.size(first.index(one)) == 1 and y.size(second.index(one)) != 1:
            x, first = x.squeeze(first.index(one)), [name for name in first if name != one]
        elif y.size(second.index(one)) == 1 and x.size(first.index(one)) != 1:
            y, second = y.squeeze(second.index(one)), [name for name in second if name != one]
    x, first = _summed(x, first, later | set(second))
    y, second = _summed(y, second, later | set(first))
    both = [one for one in first if one in second]
    contracted = [one for one in both if one not in later]
    batch = [one for one in both if one in later]
    result = dot_general(x, y, *[tuple([labels.index(one) for one in names]) for names, labels in
                                 ((contracted, first), (contracted, second), (batch, first), (batch, second))])
    return result, batch + [one for one in first if one not in both] + [one for one in second if one not in both]


FUNCTIONS = ("einsum",)
