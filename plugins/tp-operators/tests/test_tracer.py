"""One training step recorded as a flat list of operators and replayed, on the same device and on another one."""
from __future__ import annotations

import pytest
from tiny_model import Training
from tracer import Tracer

import tensorplay as tp


def recorded_step() -> tuple[Training, Tracer, tp.Tensor]:
    training = Training("cpu")
    ids, targets = training.batch(0)
    with Tracer() as trace:
        loss = training.step(ids, targets)
    return training, trace, loss


def test_the_whole_step_is_recorded() -> None:
    _, trace, _ = recorded_step()
    names = [line.op.name for line in trace.lines]
    for name in ("embedding", "linear", "scaled_dot_product_forward", "cross_entropy_forward",  # forward
                 "cross_entropy_backward", "scaled_dot_product_backward", "embedding_backward",  # backward
                 "adamw_step"):                                                                 # optimizer
        assert name in names
    assert names.index("cross_entropy_forward") < names.index("cross_entropy_backward") < names.index("adamw_step")
    assert all([text.count("%") for text in map(repr, trace.lines)])


@pytest.mark.parametrize(("device", "tolerance"), [("cpu", 0.0), ("refdev", 2e-5)])
def test_a_replay_gives_the_same_loss_and_parameters(device: str, tolerance: float) -> None:
    training, trace, loss = recorded_step()
    values = trace.replay(device)
    assert values[trace.slot(loss).number].item() == pytest.approx(loss.item(), abs=tolerance)
    for name, parameter in training.model.named_parameters():
        replayed = values[trace.slot(parameter).number]
        assert str(replayed.device).partition(":")[0] == device
        assert replayed.reshape(-1).tolist() == pytest.approx(parameter.detach().reshape(-1).tolist(), abs=tolerance), \
            name


def test_a_replay_starts_again_from_the_recorded_inputs() -> None:
    _, trace, loss = recorded_step()
    number = trace.slot(loss).number
    assert trace.replay("cpu")[number].item() == trace.replay("cpu")[number].item() == loss.item()


def test_other_inputs_give_other_results() -> None:
    training, trace, loss = recorded_step()
    ids, _ = training.batch(0)
    place = next(n for n, x in trace.inputs.items() if x.dtype is tp.int64 and x.shape == ids.shape)
    trace.inputs[place] = tp.zeros_like(ids)
    assert trace.replay("cpu")[trace.slot(loss).number].item() != loss.item()
