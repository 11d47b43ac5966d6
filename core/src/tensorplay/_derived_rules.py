"""Forward mode and batching rules that follow from what an operator already says.

A jvp rule is `rule(args, tangents, output) -> tangent of output`, with one tangent (or None for zero) for each tensor
argument; a vmap rule is `rule(args, in_dims) -> (result, out_dim)`, with the batch dimension (or None) of each.
An elementwise operator's derivative is a diagonal, so its vjp formulas, linear in `grad`, give the tangent too; and its
operands are batched by bringing the batch dimension to the front.
"""
from __future__ import annotations

from ._layout import Layout, normalize_dim
from ._op import Op
from ._tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def jvp_rule(op: Op) -> Callable | None:
    """The operator's forward mode rule: its own, or the one that its elementwise vjp formulas give, or None."""
    formulas = op.rule("vjp")
    if op.rule("jvp") is not None or not op.elementwise or formulas.__class__ is not dict or op.schema.returns != 1:
        return op.rule("jvp")
    names = [p.name for p in op.schema.parameters]
    places = {names[i]: k for k, i in enumerate(op.schema.tensors)}

    def jvp(args: tuple, tangents: tuple, output: Tensor) -> Any:
        known = {**dict(zip(names, args)), "output": output}
        known.update({f"{n}_layout": a.layout for n, a in zip(names, args) if isinstance(a, Tensor)})
        total = None
        for name, formula in formulas.items():
            tangent = tangents[places[name]]
            if tangent is not None:
                wanted = formula.__code__.co_varnames[:formula.__code__.co_argcount]
                wide = tangent.to(output.layout.dtype).expand(output.layout.shape)
                term = conjugate(formula(*[conjugate(wide) if n == "grad" else known[n] for n in wanted
                                           if n == "grad" or n in known]))
                total = term if total is None else total + term
        return total

    return jvp


def conjugate(x: Tensor) -> Any:
    """Formulas multiply by conjugated derivatives; between two conjugations that is the derivative itself."""
    return x.conj() if x.layout.dtype.is_complex else x


def vmap_rule(op: Op) -> Callable | None:
    """The operator's batching rule: its own, or the one that all elementwise operators share, or None."""
    if op.rule("vmap") is not None or not op.elementwise:
        return op.rule("vmap")
    places = op.schema.tensors

    def vmap(args: tuple, in_dims: tuple) -> tuple:
        sizes = [_logical_ndim(args[i], dim) for i, dim in zip(places, in_dims)]
        ndim = max(sizes)
        moved = list(args)
        for i, dim in zip(places, in_dims):
            if dim is not None:
                moved[i] = _batch_in_front(args[i], dim, ndim)
        return op.call(*moved), 0

    return vmap


def _logical_ndim(x: Any, dim: int | None) -> int:
    layout = getattr(x, "layout", None)
    return layout.ndim - (dim is not None) if layout.__class__ is Layout else 0


def _batch_in_front(x: Any, dim: int, ndim: int) -> Any:
    """[..., batch, ...] as [batch, 1, ..., 1, rest], so that the rest lines up with the other operands."""
    at = normalize_dim(dim, x.layout.ndim, "vmap")
    order = (at, *[d for d in range(x.layout.ndim) if d != at])
    turned = x.permute(order)
    shape = turned.layout.shape
    return turned.reshape((shape[0],) + (1,) * (ndim - len(shape) + 1) + shape[1:])
