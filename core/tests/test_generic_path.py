"""TP_GENERIC=1: Python's meta, an allocated result and the kernel give what the fused native calls give."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tensorplay as tp
from tensorplay import _resolve, library
from tensorplay._op import OPS

pytest.importorskip("tp_cpu")
pytest.importorskip("tp_tpx")


def cases():
    """(name, results or the error's class and text): a sample of every family, with gradients, writes and errors."""
    tp.manual_seed(3)
    a = tp.tensor([[1.5, -2.0, 0.25], [3.0, 0.5, -1.25]])
    b, row, flags = a.flip(0) * 0.5, tp.tensor([1.0, 2.0, -3.0]), tp.tensor([[True, False, True], [False, True, True]])
    i, small, wide = tp.tensor([[1, 2, 3], [4, 5, 6]]), tp.tensor([1, 200], dtype=tp.uint8), a.double()
    calls = {
        "add": lambda: a + b, "broadcast": lambda: a * row, "number": lambda: 2 - a, "power": lambda: a.abs() ** 1.5,
        "divide": lambda: i / 2, "floor": lambda: i // 4, "remainder": lambda: -i % 4, "compare": lambda: a > row,
        "promote": lambda: i + a, "promote kinds": lambda: flags + small[:1], "wrap": lambda: small + small,
        "half": lambda: a.half() * 3, "bfloat16": lambda: (a.bfloat16() + 1).float(), "double": lambda: wide.sin(),
        "complex": lambda: (a.to(tp.complex64) * (1 + 2j)).abs(), "strided": lambda: a.t() + b.t(),
        "stepped": lambda: a[:, ::2].exp(), "reversed": lambda: a[:, ::-1].tanh(),
        "expanded": lambda: row.expand(2, 3) + a,
        "empty": lambda: a[:0] + row, "0-d": lambda: a[0, 0] * a[1, 1], "where": lambda: tp.where(flags, a, b),
        "clamp": lambda: a.clamp(-1, 1), "sum": lambda: a.sum(1), "mean": lambda: a.mean((0, 1)),
        "amax": lambda: a.amax(0),
        "argmax": lambda: a.argmax(1), "std": lambda: a.std(1), "cumsum": lambda: a.cumsum(1),
        "sort": lambda: a.sort(1)[1],
        "topk": lambda: a.topk(2, 1)[0], "matmul": lambda: a @ b.t(), "vector": lambda: a @ row, "batch": lambda:
        a.expand(3, 2, 3) @ b.t(), "integer matmul": lambda: i @ i.t(), "cat": lambda: tp.cat([a, b], 1),
        "stack": lambda: tp.stack([a, b]), "gather": lambda: a.gather(1, i % 3), "index": lambda: a[tp.tensor([1, 0])],
        "mask": lambda: a[flags], "softmax": lambda: a.softmax(1), "log_softmax": lambda: a.log_softmax(0),
        "layer_norm": lambda: tp.nn.functional.layer_norm(a, (3,), row, row), "gelu": lambda: tp.nn.functional.gelu(a),
        "linear": lambda: tp.nn.functional.linear(a, b, row[:2]), "cross_entropy": lambda:
        tp.nn.functional.cross_entropy(a, tp.tensor([2, 0])), "tril": lambda: tp.ones(3, 3).tril(),
        "eye": lambda: tp.eye(2),
        "arange": lambda: tp.arange(1, 2, 0.25), "rand": lambda: tp.rand(5), "randn": lambda: tp.randn(5),
        "cast": lambda: a.to(tp.int32), "to bool": lambda: i.bool(), "nonzero": lambda: flags.nonzero(),
        "in place": lambda: a.clone().add_(row).mul_(2), "in place stepped": lambda: written(a.clone()),
        "out": lambda: tp.mul(a, b, out=tp.empty(0)), "gradient": lambda: gradient(a, b),
        "shape error": lambda: a + i[:, :2],
        "matmul error": lambda: a @ b, "dtype error": lambda: a & i, "in place error": lambda: i.clone().add_(0.5),
        "index error": lambda: a.gather(1, i), "dim error": lambda: a.sum(5), "cat error": lambda: tp.cat([a, a.t()]),
        "expanded target": lambda: row[:1].expand(3).add_(1), "dim of softmax": lambda: a.softmax(2),
    }
    for name, call in calls.items():
        try:
            result = call()
        except tp.TensorPlayError as problem:
            yield name, [type(problem).__name__, problem.message]
        else:
            yield name, [result.dtype.name, list(result.shape), list(result.stride()), result.tolist()]


def written(x):
    x[:, ::2] *= 10
    x.t()[1].fill_(7)
    return x


def gradient(a, b):
    x, w = a.clone().requires_grad_(), b.clone().requires_grad_()
    y = ((x @ w.t()).softmax(1) * x.exp().sum()).log()
    y[0] *= 2
    y.sum().backward()
    return tp.cat([x.grad, w.grad])


FAILURES = {"shape error", "matmul error", "dtype error", "in place error", "index error", "dim error", "cat error",
            "expanded target", "dim of softmax"}


def test_the_generic_path_in_a_process_of_its_own():
    pytest.importorskip("tp_nn")
    code = "import json, test_generic_path as t; from tensorplay import _resolve; assert _resolve.GENERIC; " \
           "print(json.dumps(dict(t.cases())))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300,
                          cwd=Path(__file__).parent, env={**os.environ, "TP_GENERIC": "1"})
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    expected = json.loads(json.dumps(dict(cases())))
    assert list(found) == list(expected)
    for name, value in expected.items():
        assert (name in FAILURES) is (len(value) == 2), (name, value)
        assert found[name][:3] == value[:3], name
        if name not in FAILURES:
            assert flat(found[name][3]) == pytest.approx(flat(value[3]), rel=3e-6, abs=1e-7), name


def flat(values):
    return [number for value in values for number in flat(value)] if isinstance(values, list) else [values]


@pytest.mark.parametrize(("value", "expected"), [("1", True), ("yes", True), ("0", False), ("", False)])
def test_the_environment_variable(value, expected):
    done = subprocess.run([sys.executable, "-c", "from tensorplay import _resolve; print(_resolve.GENERIC)"],
                          capture_output=True, text=True, timeout=60, env={**os.environ, "TP_GENERIC": value})
    assert done.stdout.strip() == str(expected), done.stderr


def test_generic_path_for_a_block():
    x = tp.ones(2)
    before = _resolve.GENERIC
    x + x
    native = OPS["add"].table[x.keyset]
    with library.generic_path():
        assert _resolve.GENERIC
        assert (x + x).tolist() == [2.0, 2.0]
        generic = OPS["add"].table[x.keyset]
        with library.generic_path():
            pass
        assert _resolve.GENERIC
    assert _resolve.GENERIC is before
    assert not OPS["add"].table, "kernels of the generic path are forgotten"
    assert before or generic is not native
    with pytest.raises(KeyError), library.generic_path():
        raise KeyError
    assert _resolve.GENERIC is before
