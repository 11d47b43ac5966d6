"""Learning rate schedules against their formulas, and that a saved schedule goes on where it stopped."""
from __future__ import annotations

import math

import pytest

import tensorplay as tp
from tensorplay import nn, optim
from tensorplay.optim import lr_scheduler

MAKE = {
    "StepLR": lambda o: lr_scheduler.StepLR(o, 3, gamma=0.5),
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, 6, eta_min=0.01),
    "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, lambda step: 1 / (1 + step)),
    "LambdaLR list": lambda o: lr_scheduler.LambdaLR(o, [lambda step: 1 / (1 + step)] * len(o.param_groups)),
}
FORMULA = {
    "StepLR": lambda base, t: base * 0.5 ** (t // 3),
    "CosineAnnealingLR": lambda base, t: 0.01 + (base - 0.01) * (1 + math.cos(math.pi * t / 6)) / 2,
    "LambdaLR": lambda base, t: base / (1 + t),
    "LambdaLR list": lambda base, t: base / (1 + t),
}


def optimizer() -> optim.SGD:
    return optim.SGD([{"params": [nn.Parameter(tp.ones(1))], "lr": 0.5}, {"params": [nn.Parameter(tp.ones(1))]}],
                     lr=0.1)


@pytest.mark.parametrize("name", MAKE)
def test_formula(name) -> None:
    target = optimizer()
    schedule = MAKE[name](target)
    for step in range(20):
        rates = [FORMULA[name](0.5, step), FORMULA[name](0.1, step)]
        assert schedule.get_last_lr() == pytest.approx(rates, rel=1e-12)
        assert [group["lr"] for group in target.param_groups] == pytest.approx(rates, rel=1e-12)
        assert schedule.last_epoch == step
        schedule.step()


@pytest.mark.parametrize("name", MAKE)
def test_state_goes_on(name) -> None:
    first = MAKE[name](optimizer())
    for _ in range(5):
        first.step()
    target = optimizer()
    second = MAKE[name](target)
    second.load_state_dict(first.state_dict())
    assert second.get_last_lr() == first.get_last_lr() and second.last_epoch == 5
    first.step(), second.step()
    assert second.get_last_lr() == first.get_last_lr()


def test_last_epoch_goes_on_from_the_loaded_optimizer() -> None:
    first = optimizer()
    schedule = MAKE["StepLR"](first)
    for _ in range(4):
        schedule.step()
    second = optimizer()
    second.load_state_dict(first.state_dict())
    resumed = lr_scheduler.StepLR(second, 3, gamma=0.5, last_epoch=4)
    schedule.step()
    assert resumed.get_last_lr() == schedule.get_last_lr()


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: lr_scheduler.StepLR("sgd", 3), TypeError, "StepLR takes an optimizer, got str"),
    (lambda: lr_scheduler.StepLR(optimizer(), 0), ValueError, "step_size must be at least 1, got 0"),
    (lambda: lr_scheduler.CosineAnnealingLR(optimizer(), 0), ValueError, "T_max must be at least 1, got 0"),
    (lambda: lr_scheduler.StepLR(optimizer(), 3, last_epoch=4), KeyError, "param_groups[0] must have 'initial_lr'"),
    (lambda: lr_scheduler.LambdaLR(optimizer(), [abs]), ValueError, "LambdaLR: 1 functions for 2 parameter groups"),
    (lambda: lr_scheduler.LRScheduler(optimizer()), NotImplementedError, "LRScheduler has no get_lr"),
])
def test_refuses(make, error, message) -> None:
    with pytest.raises(error) as caught:
        make()
    assert message in str(caught.value)
