"""Matrix products: matmul, linear and the products built on them."""
from __future__ import annotations

from itertools import pairwise

import tensorplay as tp
from tensorplay.library import (
    PRIMITIVE,
    ArgumentError,
    DTypeError,
    Layout,
    ShapeError,
    Tensor,
    broadcast_shapes,
    layout,
    normalize_dims,
    op,
    shape_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# ---- matmul ---------------------------------------------------------------------------------------------------------
matmul = op("matmul(Tensor input, Tensor other) -> Tensor", tags=(PRIMITIVE,), doc="""The matrix product; vectors are
rows or columns, leading dimensions are batches and broadcast.

>>> import tensorplay as tp
>>> tp.matmul(tp.tensor([[1., 2.], [3., 4.]]), tp.tensor([1., 1.])).tolist()
[3.0, 7.0]

Raises ShapeError naming the inner sizes if they differ, DTypeError for unlike dtypes.
""")


@matmul.meta
def _(input: Layout, other: Layout) -> Layout:  # noqa: A002
    if input.dtype is not other.dtype:
        raise DTypeError(f"matmul: input is {input.dtype.name} but other is {other.dtype.name}; convert one of them, "
                         f"e.g. other.to(input.dtype)")
    if not input.ndim or not other.ndim:
        raise ShapeError(f"matmul: needs at least one dimension on both sides, got {shape_text(input.shape)} @ "
                         f"{shape_text(other.shape)}; use * for scalars")
    inner, outer = input.shape[-1], other.shape[-2 if other.ndim > 1 else 0]
    if inner != outer:
        raise ShapeError(f"matmul: input{shape_text(input.shape)} @ other{shape_text(other.shape)}: inner sizes "
                         f"{inner} and {outer} differ")
    try:
        batch = broadcast_shapes(input.shape[:-2], other.shape[:-2])
    except ShapeError:
        raise ShapeError(f"matmul: input{shape_text(input.shape)} @ other{shape_text(other.shape)}: batch "
                         f"dimensions {shape_text(input.shape[:-2])} and {shape_text(other.shape[:-2])} do not "
                         f"broadcast") from None
    rows = input.shape[-2:-1] if input.ndim > 1 else ()
    columns = other.shape[-1:] if other.ndim > 1 else ()
    return layout(batch + rows + columns, input.dtype, input.device)


def adjoint(x: Tensor) -> Tensor:
    """The transpose of the last two dimensions, conjugated if complex."""
    turned = tp.transpose(x, -2, -1)
    return turned.conj() if turned.dtype.is_complex else turned


def _input_grad(grad: Tensor, other: Tensor, input_layout: Layout) -> Tensor:
    if other.layout.ndim == 1:
        if input_layout.ndim == 1:
            return grad * conj(other)
        return grad.unsqueeze(-1) * conj(other)
    if input_layout.ndim == 1:
        return matmul(conj(other), grad.unsqueeze(-1)).squeeze(-1)
    return matmul(grad, adjoint(other))


def _other_grad(grad: Tensor, input: Tensor, other_layout: Layout) -> Tensor:  # noqa: A002
    if input.layout.ndim == 1:
        if other_layout.ndim == 1:
            return grad * conj(input)
        return conj(input).unsqueeze(-1) * grad.unsqueeze(-2)
    if other_layout.ndim == 1:
        return matmul(adjoint(input), grad.unsqueeze(-1)).squeeze(-1)
    if other_layout.ndim == 2 and input.layout.ndim > 2:  # one product over all batches instead of a sum of many
        return matmul(adjoint(input.reshape(-1, input.layout.shape[-1])), grad.reshape(-1, grad.layout.shape[-1]))
    return matmul(adjoint(input), grad)


def conj(x: Tensor) -> Tensor:
    return x.conj() if x.layout.dtype.is_complex else x


matmul.vjp(input=_input_grad, other=_other_grad)


@matmul.samples
def _(make: Any) -> Iterator:
    yield make(3, 4), make(4, 5)
    yield make(4), make(4)
    yield make(3, 4), make(4)
    yield make(4), make(4, 5)
    yield make(2, 1, 3, 4), make(5, 4, 2)
    yield make(2, 3, 4), make(4, 5)


# ---- linear ---------------------------------------------------------------------------------------------------------
linear = op("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", doc="""input @ weight.T + bias, the
layer `nn.Linear` applies: input [..., in], weight [out, in], bias [out], result [..., out].

>>> import tensorplay as tp
>>> tp.nn.functional.linear(tp.ones(1, 2), tp.tensor([[1., 2.]]), tp.tensor([10.])).tolist()
[[13.0]]
""")


@linear.meta
def _(input: Layout, weight: Layout, bias: Layout | None) -> Layout:  # noqa: A002
    for name, other in (("weight", weight), ("bias", bias)):
        if other is not None and other.dtype is not input.dtype:
            raise DTypeError(f"linear: input is {input.dtype.name} but {name} is {other.dtype.name}; convert one of "
                             f"them, e.g. input.to({name}.dtype)")
    if weight.ndim not in (1, 2) or not input.ndim:
        raise ShapeError(f"linear: expects input[..., in] and weight[out, in], got input{shape_text(input.shape)} and "
                         f"weight{shape_text(weight.shape)}")
    if input.shape[-1] != weight.shape[-1]:
        raise ShapeError(f"linear: input{shape_text(input.shape)} has {input.shape[-1]} features but "
                         f"weight{shape_text(weight.shape)} takes {weight.shape[-1]}")
    if bias is not None and bias.shape != weight.shape[:-1]:
        raise ShapeError(f"linear: bias{shape_text(bias.shape)} does not fit weight{shape_text(weight.shape)}; "
                         f"expected {shape_text(weight.shape[:-1])}")
    return input.with_shape(input.shape[:-1] + weight.shape[:-1])


@linear.decomposition
def _(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:  # noqa: A002
    linear.op.rule("meta")(input.layout, weight.layout, None if bias is None else bias.layout)
    product = matmul(input, weight.t())
    return product if bias is None else product + bias


def _linear_input_grad(grad: Tensor, weight: Tensor) -> Tensor:
    return matmul(grad, conj(weight)) if weight.layout.ndim == 2 else grad.unsqueeze(-1) * conj(weight)


def _linear_weight_grad(grad: Tensor, input: Tensor, weight_layout: Layout) -> Tensor:  # noqa: A002
    rows = _as_rows(input)
    if weight_layout.ndim == 1:
        return matmul(grad.reshape(1, -1), conj(rows)).reshape(weight_layout.shape)
    return matmul(tp.transpose(_as_rows(grad), 0, 1), conj(rows))


def _linear_bias_grad(grad: Tensor, bias_layout: Layout) -> Tensor:
    return grad.sum(0) if grad.layout.ndim == 2 and bias_layout.ndim else \
        grad.reshape((-1,) + bias_layout.shape).sum(0)


def _as_rows(x: Tensor) -> Tensor:
    return x if x.layout.ndim == 2 else x.reshape(-1, x.layout.shape[-1])


linear.vjp(input=_linear_input_grad, weight=_linear_weight_grad, bias=_linear_bias_grad)


@linear.samples
def _(make: Any) -> Iterator:
    yield make(3, 4), make(5, 4), make(5)
    yield make(2, 3, 4), make(5, 4), None
    yield make(4), make(5, 4), make(5)


# ---- named products -------------------------------------------------------------------------------------------------


def _need(name: str, x: Tensor, ndim: int, which: str) -> None:
    if x.layout.ndim != ndim:
        raise ShapeError(f"{name}: {which} must have {ndim} dimension(s), got {shape_text(x.layout.shape)}")


def mm(input: Tensor, mat2: Tensor) -> Tensor:  # noqa: A002
    """The product of two matrices.

    >>> import tensorplay as tp
    >>> tp.mm(tp.tensor([[1., 2.], [3., 4.]]), tp.eye(2)).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    _need("mm", input, 2, "input"), _need("mm", mat2, 2, "mat2")
    return matmul(input, mat2)


def bmm(input: Tensor, mat2: Tensor) -> Tensor:  # noqa: A002
    """The products of two equally long batches of matrices.

    >>> import tensorplay as tp
    >>> tp.bmm(tp.ones(4, 2, 3), tp.ones(4, 3, 5)).shape
    tensorplay.Size([4, 2, 5])
    """
    _need("bmm", input, 3, "input"), _need("bmm", mat2, 3, "mat2")
    if input.layout.shape[0] != mat2.layout.shape[0]:
        raise ShapeError(f"bmm: input{shape_text(input.layout.shape)} @ mat2{shape_text(mat2.layout.shape)}: batch "
                         f"sizes {input.layout.shape[0]} and {mat2.layout.shape[0]} differ")
    return matmul(input, mat2)


def mv(input: Tensor, vec: Tensor) -> Tensor:  # noqa: A002
    """A matrix times a vector.

    >>> import tensorplay as tp
    >>> tp.mv(tp.tensor([[1., 2.], [3., 4.]]), tp.tensor([1., 1.])).tolist()
    [3.0, 7.0]
    """
    _need("mv", input, 2, "input"), _need("mv", vec, 1, "vec")
    return matmul(input, vec)


def dot(input: Tensor, tensor: Tensor) -> Tensor:  # noqa: A002
    """The sum of products of two vectors.

    >>> import tensorplay as tp
    >>> tp.dot(tp.tensor([1., 2.]), tp.tensor([3., 4.])).item()
    11.0
    """
    _need("dot", input, 1, "input"), _need("dot", tensor, 1, "tensor")
    return matmul(input, tensor)


def vdot(input: Tensor, other: Tensor) -> Tensor:  # noqa: A002
    """The dot product with the first vector conjugated.

    >>> import tensorplay as tp
    >>> tp.vdot(tp.tensor([1 + 1j]), tp.tensor([1 + 1j])).item()
    (2+0j)
    """
    _need("vdot", input, 1, "input"), _need("vdot", other, 1, "other")
    return matmul(conj(input), other)


def inner(input: Tensor, other: Tensor) -> Tensor:  # noqa: A002
    """Sums of products over the last dimension of both.

    >>> import tensorplay as tp
    >>> tp.inner(tp.tensor([[1., 2.], [3., 4.]]), tp.tensor([1., 1.])).tolist()
    [3.0, 7.0]
    """
    if not input.layout.ndim or not other.layout.ndim:
        return input * other
    return tensordot(input, other, dims=([-1], [-1]))


def outer(input: Tensor, vec2: Tensor) -> Tensor:  # noqa: A002
    """All products of an element of one vector and an element of the other.

    >>> import tensorplay as tp
    >>> tp.outer(tp.tensor([1., 2.]), tp.tensor([3., 4.])).tolist()
    [[3.0, 4.0], [6.0, 8.0]]
    """
    _need("outer", input, 1, "input"), _need("outer", vec2, 1, "vec2")
    return input.unsqueeze(-1) * vec2


def _scaled_sum(input: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:  # noqa: A002
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    return (input if beta == 1 else input * beta) + product


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:  # noqa: A002
    """beta * input + alpha * (mat1 @ mat2).

    >>> import tensorplay as tp
    >>> tp.addmm(tp.ones(2), tp.tensor([[1., 2.], [3., 4.]]), tp.eye(2)).tolist()
    [[2.0, 3.0], [4.0, 5.0]]
    """
    return _scaled_sum(input, mm(mat1, mat2), beta, alpha)


def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:  # noqa: A002
    """beta * input + alpha * (mat @ vec).

    >>> import tensorplay as tp
    >>> tp.addmv(tp.ones(2), tp.tensor([[1., 2.], [3., 4.]]), tp.ones(2)).tolist()
    [4.0, 8.0]
    """
    return _scaled_sum(input, mv(mat, vec), beta, alpha)


def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:  # noqa: A002
    """beta * input + alpha * (batch1 @ batch2) summed over the batch.

    >>> import tensorplay as tp
    >>> tp.addbmm(tp.zeros(1, 1), tp.ones(2, 1, 3), tp.ones(2, 3, 1)).tolist()
    [[6.0]]
    """
    return _scaled_sum(input, bmm(batch1, batch2).sum(0), beta, alpha)


def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:  # noqa: A002
    """beta * input + alpha * (batch1 @ batch2).

    >>> import tensorplay as tp
    >>> tp.baddbmm(tp.ones(1), tp.ones(2, 1, 3), tp.ones(2, 3, 1)).reshape(-1).tolist()
    [4.0, 4.0]
    """
    return _scaled_sum(input, bmm(batch1, batch2), beta, alpha)


def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:  # noqa: A002
    """beta * input + alpha * outer(vec1, vec2).

    >>> import tensorplay as tp
    >>> tp.addr(tp.zeros(2, 2), tp.tensor([1., 2.]), tp.tensor([3., 4.])).tolist()
    [[3.0, 4.0], [6.0, 8.0]]
    """
    return _scaled_sum(input, outer(vec1, vec2), beta, alpha)


def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of several matrices, from the left.

    >>> import tensorplay as tp
    >>> tp.chain_matmul(tp.ones(2, 3), tp.ones(3, 4), tp.ones(4, 1)).tolist()
    [[12.0], [12.0]]
    """
    result = matrices[0]
    for matrix in matrices[1:]:
        result = mm(result, matrix)
    return result


def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """Sums of products over the given dimensions: a number n (the last n of a, the first n of b) or two lists.

    >>> import tensorplay as tp
    >>> tp.tensordot(tp.ones(2, 3, 4), tp.ones(3, 4, 5), 2).shape
    tensorplay.Size([2, 5])
    """
    if isinstance(dims, int):
        dims_a, dims_b = tuple(range(a.layout.ndim - dims, a.layout.ndim)), tuple(range(dims))
    else:
        dims_a = normalize_dims(dims[0], a.layout.ndim, "tensordot")
        dims_b = normalize_dims(dims[1], b.layout.ndim, "tensordot")
    for i, j in zip(dims_a, dims_b):  # a size of 1 repeats
        if a.layout.shape[i] != b.layout.shape[j] and 1 in (a.layout.shape[i], b.layout.shape[j]):
            a, b = (x if x.layout.shape[d] == 1 else x.sum(d, True, dtype=x.dtype) for x, d in ((a, i), (b, j)))
    return dot_general(a, b, dims_a, dims_b, (), ())


dot_general = op("dot_general(Tensor input, Tensor other, int[] contract1, int[] contract2, int[] batch1=(), "
                 "int[] batch2=()) -> Tensor", tags=(PRIMITIVE,),
                 doc="Sums of products over `contract` dimensions, for each index of the `batch` dimensions. The "
                     "result has the batch dimensions, then the rest of `input`, then the rest of `other`.")


def _parts(shape: tuple, contract: Any, batch: Any) -> tuple:
    contract, batch = normalize_dims(tuple(contract), len(shape)), normalize_dims(tuple(batch), len(shape))
    return contract, batch, tuple([i for i in range(len(shape)) if i not in contract and i not in batch])


@dot_general.meta
def _(input: Layout, other: Layout, contract1: Any, contract2: Any, batch1: Any, batch2: Any) -> Layout:  # noqa: A002
    (c1, b1, rest1), (c2, b2, rest2) = _parts(input.shape, contract1, batch1), _parts(other.shape, contract2, batch2)
    for kind, first, second in (("contracted", c1, c2), ("batch", b1, b2)):
        sizes = [input.shape[i] for i in first], [other.shape[i] for i in second]
        if sizes[0] != sizes[1]:
            raise ShapeError(f"dot_general: {kind} sizes {sizes[0]} of input{shape_text(input.shape)} and {sizes[1]} "
                             f"of other{shape_text(other.shape)} differ")
    return input.with_shape(tuple([input.shape[i] for i in b1 + rest1] + [other.shape[i] for i in rest2]))


@dot_general.decomposition
def _(input: Tensor, other: Tensor, contract1: Any, contract2: Any, batch1: Any, batch2: Any) -> Tensor:  # noqa: A002
    result = dot_general.op.rule("meta")(input.layout, other.layout, contract1, contract2, batch1, batch2)
    c1, b1, rest1 = _parts(input.layout.shape, contract1, batch1)
    c2, b2, rest2 = _parts(other.layout.shape, contract2, batch2)
    size = _size(input.layout.shape, c1)
    batch = [input.layout.shape[i] for i in b1]
    left = input.permute(b1 + rest1 + c1).reshape(*batch, _size(input.layout.shape, rest1), size)
    right = other.permute(b2 + c2 + rest2).reshape(*batch, size, _size(other.layout.shape, rest2))
    return matmul(left, right).reshape(result.shape)


def _size(shape: tuple, dims: tuple) -> int:
    total = 1
    for d in dims:
        total *= shape[d]
    return total


@dot_general.samples
def _(make: Any) -> Iterator:
    yield make(2, 3, 4), make(4, 5, 2), (2,), (0,), (0,), (2,)
    yield make(3, 4), make(3, 4), (0, 1), (0, 1), (), ()


grouped_matmul = op("grouped_matmul(Tensor input, Tensor weights, int[] offsets) -> Tensor", tags=(PRIMITIVE,),
                    doc="Rows offsets[g] to offsets[g+1] of `input` [rows, k] times weights[g] [groups, k, n].")


@grouped_matmul.meta
def _(input: Layout, weights: Layout, offsets: Any) -> Layout:  # noqa: A002
    if input.ndim != 2 or weights.ndim != 3 or input.shape[1] != weights.shape[1]:
        raise ShapeError(f"grouped_matmul: expects input[rows, k] and weights[groups, k, n], got "
                         f"input{shape_text(input.shape)} and weights{shape_text(weights.shape)}")
    cuts = list(offsets)
    if len(cuts) != weights.shape[0] + 1 or cuts != sorted(cuts) or cuts[0] != 0 or cuts[-1] != input.shape[0]:
        raise ArgumentError(f"grouped_matmul: offsets must rise from 0 to {input.shape[0]} in {weights.shape[0] + 1} "
                            f"numbers, got {cuts}")
    return input.with_shape((input.shape[0], weights.shape[2]))


@grouped_matmul.decomposition
def _(input: Tensor, weights: Tensor, offsets: Any) -> Tensor:  # noqa: A002
    return tp.cat([matmul(input[a:b], weights[g]) for g, (a, b) in enumerate(pairwise(offsets))], 0)


@grouped_matmul.samples
def _(make: Any) -> Iterator:
    yield make(9, 4), make(3, 4, 2), (0, 2, 2, 9)


quant_matmul = op("quant_matmul(Tensor input, Tensor other, Tensor input_scale, Tensor other_scale) -> Tensor",
                  tags=(PRIMITIVE,), doc="int8 @ int8 accumulated in int32, times both scales, as float32.")


@quant_matmul.meta
def _(input: Layout, other: Layout, input_scale: Layout, other_scale: Layout) -> Layout:  # noqa: A002
    return matmul.op.rule("meta")(input, other).with_dtype(tp.float32)


@quant_matmul.decomposition
def _(input: Tensor, other: Tensor, input_scale: Tensor, other_scale: Tensor) -> Tensor:  # noqa: A002
    product = matmul(input.to(tp.int32), other.to(tp.int32)).to(tp.float32)
    return product * (input_scale * other_scale)


@quant_matmul.samples
def _(make: Any) -> Iterator:
    yield (make.integers((3, 4), -128, 128, tp.int8), make.integers((4, 5), -128, 128, tp.int8),
           make(low=0.01, high=0.1, dtype=tp.float32), make(5, low=0.01, high=0.1, dtype=tp.float32))


FUNCTIONS = ("matmul", "mm", "bmm", "mv", "dot", "vdot", "inner", "outer", "addmm", "addmv", "addbmm", "baddbmm",
             "addr", "chain_matmul", "tensordot", "dot_general", "grouped_matmul", "quant_matmul")
NN_FUNCTIONS = ("linear",)
ALIASES = {"ger": "outer"}
ger = outer
METHODS = ("matmul", "mm", "bmm", "mv", "dot", "vdot", "inner", "outer", "addmm", "addmv", "addbmm", "baddbmm", "addr",
           "ger")
