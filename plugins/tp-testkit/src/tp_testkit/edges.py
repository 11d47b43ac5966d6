"""Samples at the edges of operators that are not elementwise: 0-d tensors, empty ones, size 1, NaN and infinities.

`EDGES[name](make)` gives arguments, as the operator's own samples do.
"""
from __future__ import annotations

from collections.abc import Iterator
from math import inf, nan
from typing import Any

import tensorplay as tp


def special(make: Any) -> Any:
    return make.values([[1.0, nan, 3.0, -inf], [inf, 2.0, 2.0, -1.0], [-inf, -inf, -inf, -inf], [0.0, -0.0, 0.0, nan]])


def of_sums(make: Any) -> Iterator:
    yield make(), None, False
    yield make(), 0, True
    yield make(0, 3), 0, False
    yield make(0, 3), None, False
    yield make(3, 0), (1,), True
    yield make(1, 1), (0, 1), False
    yield special(make), 1, False
    yield make(2, 3, 4, 2), (0, 2), False


def of_extremes(make: Any) -> Iterator:
    yield make(), (), False
    yield make(), (0,), True
    yield make(1, 3), (0,), False
    yield make(0, 3), (1,), False
    yield special(make), (1,), False
    yield special(make), (), False
    yield make(2, 3, 4), (0, 2), True


def of_arguments(make: Any) -> Iterator:
    yield make(), None, False
    yield make(), 0, True
    yield make(0, 3), 1, False
    yield special(make), 1, False
    yield special(make), None, True
    yield make.values([2.0, 7.0, 7.0, 1.0]), 0, False


def of_products(make: Any) -> Iterator:
    for dim in (None, 0):
        yield make(), dim, False, None
        yield make(0), dim, False, None
        yield make(1), dim, True, None
    yield make.values([2.0, 0.0, 3.0]), 0, False, None
    yield make.integers((5,), -9, 9), 0, False, None


def of_scans(make: Any) -> Iterator:
    for x in (make(), make(0), make(1), special(make), make(2, 3, 4)):
        yield x, 0, None
    yield make.integers((3, 4), -9, 9, tp.int32), 1, None
    yield make(2, 5, 3), 1, None


def of_extreme_scans(make: Any) -> Iterator:
    for x in (make(), make(0), make(1), special(make)):
        yield x, 0
    yield special(make), 1
    yield make.integers((3, 6), 0, 3), 1


def of_softmax(make: Any) -> Iterator:
    for x, dim in ((make(0, 3), 1), (make(3, 0), 1), (make(1), 0), (make(2, 5), 0), (make(2, 3, 4), -2)):
        yield x, dim, None
    yield make.values([[1000.0, 999.0, -1000.0], [-inf, 0.0, 1.0]]), 1, None
    yield make.integers((2, 3), 0, 5), 1, None


def of_logsumexp(make: Any) -> Iterator:
    yield make(), (0,), False
    yield make(0, 3), (0,), False
    yield make(0, 3), (1,), False
    yield make.values([[1000.0, 999.0], [-inf, -inf], [inf, 1.0]]), (1,), False
    yield make.integers((2, 3), 0, 5), (1,), True


def of_matmul(make: Any) -> Iterator:
    yield make(0, 3), make(3, 2)
    yield make(2, 0), make(0, 3)
    yield make(1, 1), make(1, 1)
    yield make(0), make(0)
    yield make(2, 0, 3, 4), make(4, 5)
    yield make(3, 4).t(), make(2, 3).t()
    yield make.integers((2, 3), -5, 5), make.integers((3, 2), -5, 5)
    yield make(4), make(3, 4, 2)
    yield make(3, 2, 4), make(4)


def of_linear(make: Any) -> Iterator:
    yield make(0, 4), make(5, 4), make(5)
    yield make(2, 0), make(3, 0), make(3)
    yield make(1, 1), make(1, 1), None


def of_gather(make: Any) -> Iterator:
    yield make(), 0, make.integers((), 0, 1)
    yield make(0, 3), 0, make.integers((0, 2), 0, 1)
    yield make(3, 4), -1, make.integers((2, 5), 0, 4)
    yield make(2, 3, 4), 1, make.integers((2, 2, 3), 0, 3)


def of_scatter(make: Any) -> Iterator:
    for mode in ("set", "add"):
        yield make(), 0, make.integers((), 0, 1), make(), mode
        yield make(3, 4), 1, make.integers((0, 4), 0, 4), make(3, 4), mode
        yield make(3, 4), -1, make.permutation((2, 3), 4), make(3, 4), mode


def of_index_select(make: Any) -> Iterator:
    yield make(3, 4), 1, make.integers((0,), 0, 1)
    yield make(), 0, make.integers((1,), 0, 1)
    yield make(2, 3, 4), -2, make.integers((5,), 0, 3, tp.int32)


def of_embedding(make: Any) -> Iterator:
    yield make(5, 3), make.integers((), 0, 5)
    yield make(5, 3), make.integers((0,), 0, 5)


def of_cat(make: Any) -> Iterator:
    yield [make(0, 3), make(2, 3)], 0
    yield [make(0), make(2, 3)], -1
    yield [make(1)], 0
    yield [make(2, 3), make.integers((2, 2), 0, 5)], 1


def of_sort(make: Any) -> Iterator:
    for x in (make(), make(0), make(1), special(make)):
        yield x, 0, False, True
    for descending in (False, True):
        yield special(make), 1, descending, True
        yield make.integers((4, 7), 0, 4), -1, descending, True
        yield make.integers((6,), 0, 250, tp.uint8), 0, descending, True


def of_topk(make: Any) -> Iterator:
    yield make(), 1, 0, True, True
    yield make(3, 5), 0, 1, True, True
    yield special(make), 2, 1, True, True
    yield special(make), 2, 1, False, True


def of_searchsorted(make: Any) -> Iterator:
    for right in (False, True):
        yield make(0), make(3), right
        yield make.values([1.0, 2.0, 2.0, 5.0]), make.values([0.0, 1.0, 2.0, 9.0, inf, -inf]), right
        yield make.integers((8,), 0, 9).sort(0)[0], make.integers((2, 3), 0, 9), right


def of_nonzero(make: Any) -> Iterator:
    yield (make() > 3,)
    yield (make.values([0.0, nan, 0.0, 2.0, -0.0]),)
    yield (make(0, 3),)
    yield (make.integers((2, 3, 4), 0, 2),)


def of_triangles(make: Any) -> Iterator:
    yield make(0, 3), 0
    yield make(1, 1), -1
    yield make(3, 5), 2
    yield make.values([[nan, inf], [nan, 1.0]]), 0


def of_cross_entropy(make: Any) -> Iterator:
    target = make.integers((4,), 0, 3)
    yield make(0, 3), make.integers((0,), 0, 3), None, "sum", -100, 0.0
    yield make(4, 3), target, make(3, low=0.5, high=2), "mean", 1, 0.0
    yield make(4, 3), target, make(3, low=0.5, high=2), "none", 1, 0.3
    yield make(1, 1), make.integers((1,), 0, 1), None, "mean", -100, 0.0
    yield make.values([[1000.0, -1000.0, 0.0]]), make.integers((1,), 0, 1), None, "mean", -100, 0.0


def of_views(make: Any) -> dict:
    return {
        "view": [(make(), (1, 1)), (make(0, 3), (3, 0)), (make(2, 3, 4).transpose(0, 1), (3, 2, 2, 2))],
        "permute": [(make(), ()), (make(0, 2), (1, 0))], "transpose": [(make(), 0, 0), (make(2, 0), 0, 1)],
        "squeeze": [(make(), None), (make(1, 0), 0), (make(1, 2, 1), (0, -1))],
        "unsqueeze": [(make(), 0), (make(0), -1)],
        "expand": [(make(), (2, 3)), (make(0, 1), (0, 3)), (make(3), (2, -1))],
        "select": [(make(1, 0), 0, 0), (make(2, 3, 4), -1, 2)],
        "slice": [(make(5, 4), 0, 4, 1, 1), (make(0, 2), 0, None, None, 1), (make(6), 0, -2, None, -2)],
        "diagonal": [(make(2, 3), 5, 0, 1), (make(3, 3), -1, 1, 0)],
        "unfold": [(make(), 0, 1, 1), (make(4), 0, 4, 1)],
    }


def of_view(name: str) -> Any:
    return lambda make: of_views(make)[name]


def of_norms(with_bias: bool) -> Any:
    def edges(make: Any) -> Iterator:
        bias = (make(4),) if with_bias else ()
        yield make(0, 4), (4,), make(4), *bias, 1e-5
        yield make(4), (4,), make(4), *bias, 1e-5
        yield make(2, 1), (1,), None, *((None,) if with_bias else ()), 1e-5

    return edges


EDGES = {
    "sum": lambda make: (args + (None,) for args in of_sums(make)), "any": of_sums, "all": of_sums,
    "mean": lambda make: (args + (None,) for args in of_sums(make)), "root_of_squares": of_sums,
    "amax": of_extremes, "amin": of_extremes, "argmax": of_arguments, "argmin": of_arguments, "prod": of_products,
    "cumsum": of_scans, "cumprod": of_scans, "cummax": of_extreme_scans, "cummin": of_extreme_scans,
    "softmax": of_softmax, "log_softmax": of_softmax, "logsumexp": of_logsumexp, "matmul": of_matmul,
    "linear": of_linear, "gather": of_gather, "scatter": of_scatter, "index_select": of_index_select,
    "embedding": of_embedding, "cat": of_cat, "sort": of_sort, "topk": of_topk, "searchsorted": of_searchsorted,
    "nonzero": of_nonzero, "tril": of_triangles, "triu": of_triangles, "cross_entropy_forward": of_cross_entropy,
    "layer_norm_forward": of_norms(True), "rms_norm_forward": of_norms(False),
    **{name: of_view(name) for name in ("view", "permute", "transpose", "squeeze", "unsqueeze", "expand", "select",
                                        "slice", "diagonal", "unfold")},
}
