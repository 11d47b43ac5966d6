"""Gradients of writes through views: three operators on the region of a tensor that a view of its base reads.

`base` and `view` are layouts, `distance` is the view's first element counted from the base's. The tensor has the base's
shape but any strides, so it is first laid out like the base.
"""
from __future__ import annotations

from tensorplay.library import AutogradError, Tensor, op

from ._gradients import operator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tensorplay.library import Layout

read_region = op("tpx::read_region(Tensor input, any base, any view, int distance) -> Tensor",
                 doc="A copy of what the view reads.")
read_region.vjp(input=lambda grad, base, view, distance: place_region(grad, base, view, distance))
clear_region = op("tpx::clear_region(Tensor input, any base, any view, int distance) -> Tensor",
                  doc="A copy with zeros where the view reads.")
clear_region.vjp(input=lambda grad, base, view, distance: clear_region(grad, base, view, distance))
place_region = op("tpx::place_region(Tensor input, any base, any view, int distance) -> Tensor",
                  doc="Zeros in the base's shape, with `input` where the view reads: the gradient of that view.")
place_region.vjp(input=lambda grad, base, view, distance: read_region(grad, base, view, distance))


@read_region.decomposition
def _(input: Tensor, base: Layout, view: Layout, distance: int) -> Tensor:  # noqa: A002
    if base.contiguous:
        return region(input.contiguous(), base, view, distance).clone()
    return region(spread(input, base)[1], base, view, distance).clone()


@clear_region.decomposition
def _(input: Tensor, base: Layout, view: Layout, distance: int) -> Tensor:  # noqa: A002
    copied, memory = spread(input, base)
    part = region(memory, base, view, distance)
    part.copy_(zeros(view.shape, input))
    return copied


@place_region.decomposition
def _(input: Tensor, base: Layout, view: Layout, distance: int) -> Tensor:  # noqa: A002
    if base.contiguous:
        placed = memory = zeros(base.shape, input)
    else:
        low, high = extent(base)
        memory = zeros((high - low + 1,), input)
        placed = strided(memory, base.shape, base.strides, -low)
    part = region(memory, base, view, distance)
    repeated = [i for i, (size, stride) in enumerate(zip(view.shape, view.strides)) if size > 1 and stride == 0]
    if repeated:
        input = input.sum(repeated, keepdim=True)  # noqa: A001
        strides = tuple([1 if i in repeated else stride for i, stride in enumerate(view.strides)])
        part = strided(part, input.layout.shape, strides, 0)
    check_distinct(part.layout)
    part.copy_(input)
    return placed


def strided(memory: Tensor, shape: tuple, strides: tuple, distance: int) -> Tensor:
    """Another layout over the memory, beginning at a distance from the tensor's first element."""
    return operator("as_strided").op.call(memory, shape, strides, distance)  # type: ignore[attr-defined]


def zeros(shape: tuple, like: Tensor) -> Tensor:
    return operator("zeros")(shape, dtype=like.dtype, device=like.device)


def spread(input: Tensor, base: Layout) -> tuple[Tensor, Tensor]:  # noqa: A002
    """A copy with the base's strides, and the memory that it lies in, from the lowest address on."""
    if base.contiguous:
        copied = operator("clone")(input.contiguous())
        return copied, copied
    low, high = extent(base)
    memory = zeros((high - low + 1,), input)
    copied = strided(memory, base.shape, base.strides, -low)
    copied.copy_(input)
    return copied, memory


def extent(layout: Layout) -> tuple[int, int]:
    """The lowest and highest element, counted from the first one (strides may be negative)."""
    steps = [(size - 1) * stride for size, stride in zip(layout.shape, layout.strides) if size > 0]
    return sum([step for step in steps if step < 0]), sum([step for step in steps if step > 0])


def region(memory: Tensor, base: Layout, view: Layout, distance: int) -> Tensor:
    low = 0 if base.contiguous else extent(base)[0]
    return strided(memory, view.shape, view.strides, distance - low)


def check_distinct(layout: Layout) -> None:
    reach = 0
    for stride, size in sorted([(abs(stride), size) for size, stride in zip(layout.shape, layout.strides) if size > 1]):
        if stride <= reach:
            raise AutogradError("a view with overlapping windows was used after its base had been written to in "
                                "place; make the view again after the write, or write to a .clone()")
        reach += stride * (size - 1)
