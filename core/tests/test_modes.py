"""Grad modes, user modes, the device context and Tensor subclasses: everything that adds a bit to a call's key set."""
from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

import tensorplay as tp
from tensorplay._errors import NotSupported
from tensorplay._keys import INFERENCE, NO_GRAD, mask_bits, modes

pytest.importorskip("tp_cpu")
pytest.importorskip("tp_tpx")

SWITCHES = {  # name -> (a new context manager, is_grad_enabled and is_inference_mode_enabled inside it)
    "no_grad": (tp.no_grad, False, False),
    "enable_grad": (tp.enable_grad, True, False),
    "inference_mode": (tp.inference_mode, False, True),
    "inference_mode(False)": (lambda: tp.inference_mode(False), True, False),
    "set_grad_enabled(False)": (lambda: tp.set_grad_enabled(False), False, False),
    "set_grad_enabled(True)": (lambda: tp.set_grad_enabled(True), True, False),
}


def state():
    return tp.is_grad_enabled(), tp.is_inference_mode_enabled()


@pytest.fixture(autouse=True)
def nothing_stays_behind():
    yield
    assert modes() == 0
    assert state() == (True, False)


@pytest.mark.parametrize("outer", SWITCHES)
@pytest.mark.parametrize("inner", SWITCHES)
def test_nesting_and_restoring(outer, inner):
    make, grad, inference = SWITCHES[outer]
    make_inner, inner_grad, _ = SWITCHES[inner]
    with make():
        assert state() == (grad, inference)
        with make_inner():
            assert tp.is_grad_enabled() is inner_grad
            assert (tp.ones(1, requires_grad=True) * 2).requires_grad is inner_grad
        assert state() == (grad, inference)
        with pytest.raises(KeyError), make_inner():
            raise KeyError
        assert state() == (grad, inference)
    assert state() == (True, False)


@pytest.mark.parametrize("name", SWITCHES)
def test_decorators(name):
    make, grad, inference = SWITCHES[name]

    @make()
    def inside(x, *, raises=None):
        "Says where it runs."
        if raises:
            raise raises
        return x, state()

    assert state() == (True, False), "decorating changes nothing"
    assert inside(3) == (3, (grad, inference))
    assert (inside.__name__, inside.__doc__) == ("inside", "Says where it runs.")
    with pytest.raises(KeyError):
        inside(3, raises=KeyError)
    assert inside(4) == (4, (grad, inference))
    with tp.no_grad():
        assert inside(5)[1][0] is grad


@pytest.mark.parametrize("switch", [tp.no_grad, tp.enable_grad, tp.inference_mode])
def test_decorators_without_brackets(switch):
    @switch
    def inside():
        return state()

    assert inside() == (switch is tp.enable_grad, switch is tp.inference_mode)
    with tp.no_grad():
        assert inside()[0] is (switch is tp.enable_grad)


def test_recursion_through_a_decorator():
    @tp.no_grad()
    def count(n):
        return [tp.is_grad_enabled()] + (count(n - 1) if n else [])

    assert count(5) == [False] * 6
    assert tp.is_grad_enabled()


def test_generators_run_inside_and_wait_outside():
    @tp.no_grad()
    def numbers(n):
        seen = []
        try:
            for i in range(n):
                assert not tp.is_grad_enabled()
                try:
                    seen.append((yield i))
                except ValueError as problem:
                    seen.append(str(problem))
        finally:
            assert not tp.is_grad_enabled()
            closed.append(True)
        return seen

    closed = []
    generator = numbers(3)
    assert next(generator) == 0
    assert tp.is_grad_enabled()
    assert generator.send("sent") == 1
    assert generator.throw(ValueError("thrown")) == 2
    assert tp.is_grad_enabled()
    with pytest.raises(StopIteration) as stop:
        generator.send("last")
    assert stop.value.value == ["sent", "thrown", "last"]
    half = numbers(3)
    next(half)
    half.close()
    assert closed == [True, True]

    @tp.no_grad()
    def failing():
        yield tp.is_grad_enabled()
        raise LookupError

    generator = failing()
    assert next(generator) is False
    with pytest.raises(LookupError):
        next(generator)


def test_one_object_entered_twice():
    switch = tp.no_grad()
    with switch:
        with switch:
            assert not tp.is_grad_enabled()
        assert not tp.is_grad_enabled()
    assert tp.is_grad_enabled()


def test_set_grad_enabled_at_once():
    tp.set_grad_enabled(False)
    try:
        assert not tp.is_grad_enabled()
        assert not (tp.ones(1, requires_grad=True) * 2).requires_grad
    finally:
        tp.set_grad_enabled(True)
    assert tp.is_grad_enabled()


def test_what_is_recorded():
    x = tp.ones(2, requires_grad=True)
    for switch in (tp.no_grad(), tp.inference_mode()):
        with switch:
            y = x * 2
            leaf = tp.ones(2, requires_grad=True)
            assert (y.requires_grad, y.grad_fn, leaf.requires_grad) == (False, None, True)
            x_again = x[0]
            assert not x_again.requires_grad
    with tp.no_grad(), tp.enable_grad():
        assert (x * 2).requires_grad


def test_threads_start_with_gradients_on():
    found = []
    with tp.no_grad():
        thread = threading.Thread(target=lambda: found.append(state()))
        thread.start()
        thread.join()
        context = contextvars.copy_context()
        assert context.run(state) == (False, False)
    assert found == [(True, False)]
    assert context.run(state) == (False, False)
    assert state() == (True, False)


def test_threads_do_not_see_each_other():
    barrier, wrong = threading.Barrier(4), []

    def work(number):
        x = tp.ones(2, requires_grad=True)
        for i in range(200):
            on = (i + number) % 2 == 0
            with tp.set_grad_enabled(on):
                barrier.wait()
                if (x * 2).requires_grad is not on:
                    wrong.append((number, i))
                barrier.wait()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong


def test_tasks_do_not_see_each_other():
    async def work(on):
        with tp.set_grad_enabled(on):
            for _ in range(20):
                await asyncio.sleep(0)
                assert tp.is_grad_enabled() is on

    async def main():
        await asyncio.gather(*[work(i % 2 == 0) for i in range(6)])

    asyncio.run(main())


def test_mask_bits_restores_what_was_there():
    with mask_bits(add=NO_GRAD):
        with mask_bits(add=INFERENCE, remove=NO_GRAD):
            assert modes() == INFERENCE
        assert modes() == NO_GRAD
        with pytest.raises(KeyError), mask_bits(remove=NO_GRAD):
            raise KeyError
        assert modes() == NO_GRAD


# ---- modes that see operators ---------------------------------------------------------------------------------------
class Log(tp.DispatchMode):
    def __init__(self, below=True, log=None, name=""):
        self.below_autograd = below
        self.names = [] if log is None else log
        self.name = name

    def __tensorplay_dispatch__(self, op, args):
        self.names.append(self.name + op.name)
        return op.call(*args)


def test_a_mode_above_autograd_sees_what_is_called():
    x = tp.tensor([1.0, 2.0], requires_grad=True)
    with Log(below=False) as log:
        y = (x * 3 + 1).exp()
        assert y.requires_grad, "the call goes on to autograd"
    assert log.names == ["mul", "add", "exp"]
    y.sum().backward()
    assert log.names == ["mul", "add", "exp"], "outside the block nothing is seen"


def test_a_mode_below_autograd_sees_what_runs():
    x = tp.tensor([1.0, 2.0], requires_grad=True)
    with Log() as log:
        y = x * x
        assert y.requires_grad
        forward = list(log.names)
        y.sum().backward()
        with tp.no_grad():
            x * 2
    assert forward == ["mul"]
    assert log.names.count("mul") >= 4  # forward, two in the backward, and without gradients
    assert "sum" in log.names
    assert x.grad.tolist() == [2.0, 4.0]


def test_views_and_writes_are_seen():
    x = tp.ones(3)
    with Log() as log:
        x[0]
        _ = x.t
        x.add_(1)
        x[1:] = 5
        tp.zeros(2)
    assert "index_view" in log.names
    assert log.names.count("write_") >= 2
    assert "full" in log.names
    assert x.tolist() == [2.0, 5.0, 5.0]


@pytest.mark.parametrize("below", [True, False])
def test_nested_modes_are_asked_from_the_inside(below):
    log = []
    with Log(below, log, "outer "), Log(below, log, "inner "):
        tp.ones(1) + 1
    assert log == ["inner full", "outer full", "inner add", "outer add"]


def test_a_mode_above_comes_before_one_below():
    log = []
    with Log(True, log, "below "), Log(False, log, "above "):
        tp.ones(1, requires_grad=True) * 2
    assert log == ["above full", "below full", "above mul", "below mul"]


def test_a_mode_entered_twice_is_left_twice():
    log = Log()
    with log:
        with log:
            tp.ones(1)
        assert log.names == ["full", "full"]
        tp.ones(1)
        assert log.names == ["full"] * 3
    tp.ones(1)
    assert log.names == ["full"] * 3


def test_a_mode_replaces_results_and_raises():
    class Doubling(tp.DispatchMode):
        def __tensorplay_dispatch__(self, op, args):
            if op.name == "sub":
                raise LookupError("no sub here")
            result = op.call(*args)
            return result + result if op.name == "mul" else result

    x = tp.ones(2)
    with Doubling():
        assert (x * 3).tolist() == [6.0, 6.0]
        with pytest.raises(LookupError, match="no sub here"):
            x - 1
        assert (x * 3).tolist() == [6.0, 6.0], "the mode is still there after the exception"
    assert (x * 3).tolist() == [3.0, 3.0]
    with pytest.raises(KeyError), Doubling():
        raise KeyError
    assert (x * 3).tolist() == [3.0, 3.0]


def test_modes_belong_to_their_thread():
    found = []

    def work():
        tp.ones(1) + 1
        found.append(modes())

    with Log() as log:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert (found, log.names) == ([0], [])


def test_modes_and_grad_modes_together():
    x = tp.ones(2, requires_grad=True)
    with Log(below=False) as log, tp.no_grad():
        y = x * 2
    assert (log.names, y.requires_grad) == (["mul"], False)
    with tp.no_grad(), Log(below=False) as log, tp.enable_grad():
        y = x * 2
    assert (log.names, y.requires_grad) == (["mul"], True)


# ---- the device context ---------------------------------------------------------------------------------------------
def test_device_context():
    meta = tp.device("meta")
    with meta:
        assert tp.get_default_device() is meta
        assert (tp.ones(2).device, tp.tensor([1]).device, tp.Tensor([1.0]).device, tp.arange(3).device) == (meta,) * 4
        assert tp.ones(2, device="cpu").device.type == "cpu"
        with tp.device("cpu"):
            assert tp.zeros(1).device.type == "cpu"
        assert tp.zeros(1).device is meta
        with meta:
            pass
        assert tp.zeros(1).device is meta
    assert tp.zeros(1).device.type == "cpu"
    with pytest.raises(KeyError), meta:
        raise KeyError
    assert tp.get_default_device().type == "cpu"


def test_default_device():
    found = []
    tp.set_default_device("meta")
    try:
        assert tp.zeros(1).is_meta
        with tp.device("cpu"):
            assert not tp.zeros(1).is_meta
        thread = threading.Thread(target=lambda: found.append(tp.zeros(1).is_meta))
        thread.start()
        thread.join()
    finally:
        tp.set_default_device(None)
    assert found == [True], "the default holds for every thread"
    assert tp.zeros(1).device.type == "cpu"


# ---- subclasses -----------------------------------------------------------------------------------------------------
class Logged(tp.Tensor):
    names: list = []

    @classmethod
    def __tensorplay_function__(cls, function, types, args):
        cls.names.append((function.op.name, [kind.__name__ for kind in types]))
        result = function(*[plain(arg) for arg in args])
        return result.as_subclass(cls) if isinstance(result, tp.Tensor) else result


def plain(x):
    if isinstance(x, (list, tuple)):
        return type(x)([plain(one) for one in x])
    return x.as_subclass(tp.Tensor) if isinstance(x, tp.Tensor) else x


class Inner(Logged):
    pass


class Refusing(tp.Tensor):
    @classmethod
    def __tensorplay_function__(cls, function, types, args):
        return NotImplemented


class Silent(tp.Tensor):
    pass


@pytest.fixture
def names():
    Logged.names.clear()
    return Logged.names


def test_subclasses_see_every_operator(names):
    x = Logged([1.0, 2.0])
    y = (x + 1).exp()
    assert (type(x), type(y)) == (Logged, Logged)
    assert names == [("add", ["Logged"]), ("exp", ["Logged"])]
    assert type(tp.cat([tp.ones(1), x])) is Logged
    assert names[-1] == ("cat", ["Logged"])
    assert type(2 * x) is type(x.reshape(2, 1)) is type(x[0]) is Logged


def test_gradients_through_subclasses(names):
    x = Logged([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
    assert [name for name, _ in names][:2] == ["mul", "sum"]


def test_writing_to_subclasses(names):
    x = Logged([1.0, 2.0])
    assert x.add_(1) is x
    x[0] = 7
    assert (type(x), x.tolist(), x._version) == (Logged, [7.0, 3.0], 2)
    assert {"write_", "add"} <= {name for name, _ in names}


def test_the_most_derived_class_is_asked_first(names):
    result = Logged([1.0]) + Inner([2.0])
    assert (type(result), names) == (Inner, [("add", ["Logged", "Inner"])])


def test_not_implemented_goes_to_the_next_class(names):
    assert type(Refusing([1.0]) + Logged([2.0])) is Logged
    with pytest.raises(NotSupported, match="add: no __tensorplay_function__ of Refusing handles this operator"):
        Refusing([1.0]) + 1


def test_a_subclass_without_the_method_costs_nothing():
    x = Silent([1.0])
    assert x.keyset == tp.ones(1).keyset
    assert type(x) is Silent
    assert (x + 1).tolist() == [2.0]
    x.label = "kept"
    assert x.label == "kept"


def test_subclasses_below_modes(names):
    with Log(below=False) as above, Log() as below:
        Logged([1.0]) + 1
    assert names == [("add", ["Logged"])]
    assert (above.names, below.names) == (["add"], ["add"])
