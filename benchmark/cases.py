"""What is timed: each case builds the same thing with `api` = tensorplay or torch and returns (run(n), check())."""
from __future__ import annotations

import importlib
import math
import random


def numbers(count: int, seed: int, scale: float = 1.0) -> list[float]:
    source = random.Random(seed)
    return [source.uniform(-scale, scale) for _ in range(count)]


def tensor(api, shape: tuple, seed: int, scale: float = 1.0):
    total = math.prod(shape)
    return api.tensor(numbers(total, seed, scale)).reshape(shape)


def nn(api):
    return importlib.import_module(f"{api.__name__}.nn")


def optim(api):
    return importlib.import_module(f"{api.__name__}.optim")


def fill(api, model) -> None:
    """The same weights on both sides."""
    with api.no_grad():
        for i, parameter in enumerate(model.parameters()):
            shape = tuple(parameter.shape)
            scale = 1.0 / math.sqrt(shape[-1]) if len(shape) > 1 else 0.1
            values = tensor(api, shape, 100 + i, scale)
            parameter.copy_(values + 1.0 if len(shape) == 1 and not hasattr(model, "plain_bias") else values)


def add(api, requires_grad: bool = False):
    a, b = tensor(api, (2, 2), 1), tensor(api, (2, 2), 2)
    if requires_grad:
        a.requires_grad_()

    def run(n: int) -> None:
        for _ in range(n):
            a + b

    return run, lambda: (a + b).reshape(-1).tolist()


def add_recorded(api):
    return add(api, True)


def mlp(api, sizes: tuple, batch: int, make_optimizer):
    model = nn(api).Sequential(nn(api).Linear(sizes[0], sizes[1]), nn(api).ReLU(), nn(api).Linear(sizes[1], sizes[2]))
    fill(api, model)
    optimizer = make_optimizer(model.parameters())
    x = tensor(api, (batch, sizes[0]), 3)
    y = api.tensor([i % sizes[2] for i in range(batch)])
    cross_entropy = nn(api).functional.cross_entropy

    def step():
        loss = cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    def run(n: int) -> None:
        for _ in range(n):
            step()

    return run, lambda: [step().item() for _ in range(5)]


def mlp_small(api):
    return mlp(api, (4, 8, 3), 8, lambda p: optim(api).SGD(p, lr=0.01))


def mlp_784(api):
    return mlp(api, (784, 128, 10), 32, lambda p: optim(api).AdamW(p, lr=1e-3, fused=True))


def tiny_lm(api):
    if api.__name__ == "torch":
        from torch_tiny_lm import TinyLM
    else:
        import pathlib
        import sys

        sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "examples"))
        from tiny_lm import TinyLM
    model = TinyLM()
    fill(api, model)
    return model


def language_model(api, batch: int, length: int):
    model = tiny_lm(api)
    optimizer = optim(api).AdamW(model.parameters(), lr=2e-3, fused=True)
    ids = api.tensor([[(i * 7 + j * 3) % 256 for j in range(length + 1)] for i in range(batch)])
    inputs, targets = ids[:, :-1], ids[:, 1:].reshape(-1)
    cross_entropy = nn(api).functional.cross_entropy

    def step():
        loss = cross_entropy(model(inputs).reshape(-1, 256), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    def run(n: int) -> None:
        for _ in range(n):
            step()

    return run, lambda: [step().item() for _ in range(3)]


def lm_step(api):
    return language_model(api, 1, 64)


def lm_main_job_step(api):
    return language_model(api, 16, 128)


def lm_decode(api):
    model = tiny_lm(api)
    prompt = api.tensor([[1, 2, 3, 4]])

    def decode() -> list[int]:
        with api.no_grad():
            cache, latest, out = model.create_empty_cache(), prompt, []
            for _ in range(64):
                token = model(latest, past_key_values=cache)[:, -1].argmax(-1)
                out.append(token)
                latest = token.unsqueeze(1)
            return [t.item() for t in out]

    def run(n: int) -> None:
        for _ in range(n):
            decode()

    return run, lambda: [float(t) for t in decode()]


def adamw(api, shapes: list):
    params = [nn(api).Parameter(api.ones(shape)) for shape in shapes]
    for i, parameter in enumerate(params):
        parameter.grad = api.ones(shapes[i]) * (0.5 + 0.01 * (i % 7))
    optimizer = optim(api).AdamW(params, lr=1e-3, fused=True)

    def run(n: int) -> None:
        for _ in range(n):
            optimizer.step()

    def check() -> list[float]:
        optimizer.step()
        return [p.reshape(-1)[0].item() for p in params[:5]]

    return run, check


def adamw_10m(api):
    return adamw(api, [(2500, 1000)] * 4)


def adamw_262k(api):
    return adamw(api, [(256, 256)] * 4)


def adamw_100_small(api):
    return adamw(api, [(8, 8)] * 100)


# name -> (builder, budget as ratio of CPU time, seconds of work in one round)
CASES = {
    "a+b": (add, 0.25, 0.03),
    "a+b recorded": (add_recorded, 0.5, 0.03),
    "MLP 4-8-3 SGD step": (mlp_small, 0.4, 0.1),
    "MLP 784-128-10 AdamW step": (mlp_784, 0.8, 0.1),
    "TinyLM step, 1 x 64": (lm_step, 0.7, 0.3),
    "TinyLM step, 16 x 128": (lm_main_job_step, 1.0, 0.8),
    "TinyLM decode 64": (lm_decode, 0.6, 0.3),
    "AdamW 10M": (adamw_10m, 1.0, 0.2),
    "AdamW 262k": (adamw_262k, 0.8, 0.1),
    "AdamW 100 small": (adamw_100_small, 0.4, 0.1),
}
