"""A tracer in less than a hundred lines: proof that a compiler sees everything that a training step does.

Recording: every operator call below autograd, forward, backward and optimizer alike, becomes one line `op(slots)`.
Replaying: the lines are called again, on any device, with other values in the slots that came from outside.
"""
from __future__ import annotations

from typing import Any

import tensorplay as tp
from tensorplay.library import Op, Tensor, layout, make_tensor


def copied(x: Tensor, device: Any, memory: dict[int, Any]) -> Tensor:
    """The tensor on a device, with all of its memory; tensors that share memory share the copy."""
    if id(x.storage) not in memory:
        storage = memory[id(x.storage)] = device.driver.allocate(x.storage.nbytes, device)
        device.driver.copy_from_host(storage, x.device.driver.copy_to_host(x.storage))
    return make_tensor(memory[id(x.storage)], x.offset, layout(x.layout.shape, x.dtype, device, x.layout.strides))


class Slot:
    """A place in the list of values that a replay fills."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"%{self.number}"


class Line:
    """One call: the operator, its arguments with slots for tensors, and the slots of its results."""

    def __init__(self, op: Op, args: tuple, results: tuple) -> None:
        self.op, self.args, self.results = op, args, results

    def __repr__(self) -> str:
        text = f"{self.op.name}({', '.join(map(repr, self.args))})"
        return f"{', '.join(map(repr, self.results))} = {text}" if self.results else text


class Tracer(tp.DispatchMode):
    """`with Tracer() as trace:` records; `trace.lines` is the program, `trace.inputs` what it takes from outside."""

    below_autograd = True

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.inputs: dict[int, Tensor] = {}  # slot number -> a tensor that existed before
        self._slots: dict[tuple, Slot] = {}  # a tensor is its memory and how that is read, not the Python object
        self._memory: dict[int, Any] = {}    # copies of the inputs' memory
        self._alive: list[Any] = []          # so that no memory is given out twice while its address is a key

    def slot(self, x: Tensor) -> Slot | None:
        return self._slots.get((id(x.storage), x.offset, x.layout.shape, x.layout.strides, x.dtype))

    def _new_slot(self, x: Tensor) -> Slot:
        self._alive.append(x.storage)
        made = Slot(len(self._alive) - 1)
        self._slots[(id(x.storage), x.offset, x.layout.shape, x.layout.strides, x.dtype)] = made
        return made

    def _argument(self, value: Any) -> Any:
        if value.__class__ in (list, tuple):
            return value.__class__([self._argument(one) for one in value])
        if not isinstance(value, Tensor):
            return value
        found = self.slot(value)
        if found is None:
            found = self._new_slot(value)
            self.inputs[found.number] = copied(value, value.device, self._memory)  # the step may write to it later
        return found

    def __tensorplay_dispatch__(self, op: Op, args: tuple) -> Any:
        recorded = tuple([self._argument(value) for value in args])
        result = op.call(*args)
        results = result if isinstance(result, (tuple, list)) else () if result is None else (result,)
        self.lines.append(Line(op, recorded, tuple([self._new_slot(one) for one in results])))
        return result

    def replay(self, device: Any) -> dict[int, Tensor]:
        """Run the program on a device, from the recorded inputs; the values of all slots."""
        place = tp.device(device)
        memory: dict[int, Any] = {}
        values = {number: copied(x, place, memory) for number, x in self.inputs.items()}

        def value(one: Any) -> Any:
            if one.__class__ in (list, tuple):
                return one.__class__([value(part) for part in one])
            return values[one.number] if isinstance(one, Slot) else place if isinstance(one, tp.device) else one

        with tp.no_grad():
            for line in self.lines:
                result = line.op.call(*[value(one) for one in line.args])
                results = result if isinstance(result, (tuple, list)) else (result,)
                values.update({slot.number: one for slot, one in zip(line.results, results)})
        return values
