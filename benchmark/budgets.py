"""The ratio budgets of the design, TensorPlay against torch: `python benchmark/budgets.py --torch-python PYTHON`."""
from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

from cases import CASES

HERE = pathlib.Path(__file__).parent
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TP_NUM_THREADS": "1"}


class Side:
    """A worker process of one framework."""

    def __init__(self, python: str, api: str) -> None:
        self.process = subprocess.Popen([python, str(HERE / "worker.py"), api], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env={**os.environ, **ONE_THREAD})

    def ask(self, **request: object):
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the worker ended: {request}")
        return json.loads(line)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def agree(name: str, ours: list[float], theirs: list[float]) -> None:
    for a, b in zip(ours, theirs):
        if abs(a - b) > 2e-3 * max(1.0, abs(b)):
            raise SystemExit(f"{name}: the results differ, so nothing is timed: {ours} and {theirs}")


def compare(name: str, ours: Side, theirs: Side, rounds: int) -> tuple[float, float, float]:
    """(median ratio, our ns, their ns) for one repetition."""
    _, _, seconds = CASES[name]
    for side in (ours, theirs):
        side.ask(build=name)
    agree(name, ours.ask(check=name), theirs.ask(check=name))
    counts = {}
    for side in (ours, theirs):
        n = 1
        while (taken := side.ask(run=name, n=n)) < seconds * 2e8:
            n = max(n * 2, int(n * seconds * 2.5e8 / max(taken, 1)))
        counts[side] = max(1, int(n * seconds * 1e9 / taken))
    times: dict = {ours: [], theirs: []}
    for _ in range(rounds):
        for side in (ours, theirs):
            times[side].append(side.ask(run=name, n=counts[side]) / counts[side])
    ratios = [a / b for a, b in zip(times[ours], times[theirs])]
    return statistics.median(ratios), statistics.median(times[ours]), statistics.median(times[theirs])


def import_time() -> tuple[float, bool]:
    """Milliseconds of CPU for `import tensorplay as tp; tp.ones(2) + 1` in a fresh process, without the interpreter's
    own start; and whether numpy was loaded."""
    code = ("import time; t = time.process_time(); import tensorplay as tp; tp.ones(2) + 1; "
            "t = time.process_time() - t; import sys; print(t * 1000, 'numpy' in sys.modules)")
    results = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
               for _ in range(9)]
    return statistics.median(float(ms) for ms, _ in results), any(numpy == "True" for _, numpy in results)


def peak_memory(torch_python: str) -> tuple[float, float]:
    """MiB that TinyLM training (16 x 128) adds to each process's peak after the import."""
    peaks = []
    for python, api in ((sys.executable, "tensorplay"), (torch_python, "torch")):
        side = Side(python, api)
        before = side.ask(memory=True)
        side.ask(build="TinyLM step, 16 x 128")
        side.ask(run="TinyLM step, 16 x 128", n=10)
        peaks.append((side.ask(memory=True) - before) / 1024)
        side.close()
    return peaks[0], peaks[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch-python", required=True, help="an interpreter that has torch 2.13.0")
    parser.add_argument("-k", default="", help="only cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", help="also write a report")
    args = parser.parse_args()
    ours, theirs = Side(sys.executable, "tensorplay"), Side(args.torch_python, "torch")
    report, missed = {}, []
    for name, (_, budget, _) in CASES.items():
        if args.k not in name:
            continue
        ratio, our_ns, their_ns = compare(name, ours, theirs, args.rounds)
        report[name] = {"ratio": ratio, "budget": budget, "tensorplay_us": our_ns / 1e3, "torch_us": their_ns / 1e3}
        missed += [name] if ratio > budget else []
        print(f"{name:28s} {ratio:6.2f}  budget {budget:4.2f}  {our_ns / 1e3:10.1f} us, torch {their_ns / 1e3:10.1f} us"
              f"{'   MISSED' if ratio > budget else ''}", flush=True)
    ours.close(), theirs.close()
    if args.k in "import":
        ms, numpy = import_time()
        missed += ["import"] if ms > 60 or numpy else []
        report["import"] = {"cpu_ms": ms, "budget_ms": 60, "numpy": numpy}
        print(f"{'import and first operation':28s} {ms:6.1f} ms CPU, budget 60, numpy {'' if numpy else 'not '}loaded")
    if args.k in "peak memory":
        mine, torchs = peak_memory(args.torch_python)
        missed += ["peak memory"] if mine > torchs else []
        report["peak memory"] = {"tensorplay_mib": mine, "torch_mib": torchs}
        print(f"{'peak memory of training':28s} {mine / torchs:6.2f}  budget 1.00  {mine:.0f} MiB, "
              f"torch {torchs:.0f} MiB")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(report, indent=1) + "\n")
    print("all budgets hold" if not missed else f"missed: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
