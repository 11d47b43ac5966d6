"""What type checkers see of the public API. Never run: pyright reads it against installed wheels (tools/ci/types.sh).
Each `ignore` stands on a line that must be an error, and pyright complains about an ignore that is not needed."""

# pyright: reportUnnecessaryTypeIgnoreComment=true
from __future__ import annotations

from typing import TYPE_CHECKING

import tensorplay as tp
from tensorplay import Tensor, autograd, io, nn, optim
from tensorplay.nn import functional
from tensorplay.nn.cache import DynamicCache
from tensorplay.nn.generation import generate
from tensorplay.optim import lr_scheduler

if TYPE_CHECKING:
    from typing_extensions import assert_type


def tensors() -> Tensor:
    x = tp.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert_type(tp.ones(2, 3, dtype=tp.float64, device="cpu"), Tensor)
    assert_type(x + 1, Tensor)
    assert_type(2.0 * x, Tensor)
    assert_type(x @ x, Tensor)
    assert_type(-x, Tensor)
    assert_type(x < 2, Tensor)
    assert_type(x[0, 1:], Tensor)
    assert_type(x.T, Tensor)
    assert_type(x.sum(0, keepdim=True), Tensor)
    assert_type(x.exp_(), Tensor)
    assert_type(tp.matmul(x, x), Tensor)
    assert_type(tp.clamp(x, min=0.0), Tensor)
    assert_type(tp.cat([x, x], 0), Tensor)
    assert_type(x.requires_grad, bool)
    assert_type(x.ndim, int)
    assert_type(x.numel(), int)
    assert_type(x.shape.numel(), int)
    assert_type(x.dtype, tp.dtype)
    assert_type(x.device, tp.device)
    assert_type(tp.is_tensor(x), bool)
    assert_type(tp.finfo(tp.float32).eps, float)
    x.no_such_method()  # pyright: ignore[reportAttributeAccessIssue]
    _ = x + "text"  # pyright: ignore[reportOperatorIssue]
    tp.no_such_function(x)  # pyright: ignore[reportAttributeAccessIssue]
    tp.sin()  # pyright: ignore[reportCallIssue]
    tp.softmax(x, dimension=0)  # pyright: ignore[reportCallIssue]
    tp.tanh("text")  # pyright: ignore[reportArgumentType]
    return x


class Model(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width, bias=False) for _ in range(2)])
        self.norm = nn.RMSNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = functional.gelu(layer(x))
        return self.norm(x)


def training(x: Tensor, target: Tensor) -> float:
    model = Model(4)
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)
    schedule = lr_scheduler.StepLR(optimizer, 10)
    assert_type(functional.cross_entropy(model(x), target), Tensor)
    loss = functional.cross_entropy(model(x), target)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    with tp.no_grad():
        io.save_file(model.state_dict(), "model.safetensors")
    autograd.grad(loss, [x])
    assert_type(generate(model, x, max_new_tokens=4, top_k=5), Tensor)
    optim.AdamW(model.parameters(), learning_rate=1e-3)  # pyright: ignore[reportCallIssue]
    nn.Linear(4)  # pyright: ignore[reportCallIssue]
    nn.NoSuchLayer()  # pyright: ignore[reportAttributeAccessIssue]
    return loss.item()


assert_type(DynamicCache(), DynamicCache)
assert_type(nn.Linear(2, 1).weight, nn.Parameter)
