"""Train a small language model on real text, byte by byte, save it, load it and let it write.

    python tiny_lm.py                                  train on Python's own help texts, then write
    python tiny_lm.py --text FILE                      train on a text of yours
    python tiny_lm.py --resume                         go on where the last run stopped
    python tiny_lm.py --generate "The with statement"  load the saved model and write

Files (tiny_lm.safetensors, tiny_lm.resume.safetensors, loss.svg) go into the current folder.
"""
from __future__ import annotations

import argparse
import io
import math
import os
import shlex
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import tensorplay as tp
from tensorplay import nn
from tensorplay.nn.cache import DynamicCache
from tensorplay.nn.generation import stream

LENGTH = 128  # bytes that the model sees at once
MODEL_FILE = "tiny_lm.safetensors"
RESUME_FILE = "tiny_lm.resume.safetensors"
REPEAT = 40  # a held-out run of this many bytes that also occurs in the training part does not count as new


class DecoderLayer(nn.Module):
    """One transformer block whose mixer is grouped-query attention."""

    def __init__(self, hidden_size: int, num_heads: int, num_kv_heads: int, layer_idx: int) -> None:
        super().__init__()
        self.block = nn.TransformerBlock(hidden_size, nn.GroupedQueryAttention(
            hidden_size, num_heads, num_kv_heads=num_kv_heads, qk_norm=True, layer_idx=layer_idx))

    def forward(self, x, position_ids=None, past_key_values=None):
        return self.block(x, position_ids=position_ids, past_key_values=past_key_values)


class TinyLM(nn.Module):
    """A decoder-only language model over bytes: about 0.75 million parameters."""

    def __init__(self, vocab_size: int = 256, hidden_size: int = 128, num_layers: int = 4, num_heads: int = 8,
                 num_kv_heads: int = 2) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab_size, hidden_size)
        self.layers = nn.ModuleList(DecoderLayer(hidden_size, num_heads, num_kv_heads, i) for i in range(num_layers))
        self.norm = nn.RMSNorm(hidden_size)
        self.lm_head = nn.Linear(hidden_size, vocab_size, bias=False)

    def forward(self, input_ids, position_ids=None, past_key_values=None):
        x = self.embed_tokens(input_ids)
        for layer in self.layers:
            x = layer(x, position_ids=position_ids, past_key_values=past_key_values)
        return self.lm_head(self.norm(x))

    def create_empty_cache(self):
        return DynamicCache()


class Stop(Exception):
    """Something the person at the keyboard can change; printed without a traceback."""


# ---- text -----------------------------------------------------------------------------------------------------------


def read_text(path: str | None) -> bytes:
    """The text to learn: a file's, or that of the help topics which come with every Python."""
    if path is None:
        from pydoc_data import topics

        return "\n\n".join(topics.topics[name] for name in sorted(topics.topics)).encode()
    try:
        data = Path(path).read_bytes()
    except OSError as problem:
        raise Stop(f"cannot read {path}: {problem.strerror or problem}") from None
    try:
        data.decode()
    except UnicodeDecodeError as problem:
        raise Stop(f"{path} is not UTF-8 text: byte 0x{data[problem.start]:02x} at position {problem.start}; convert "
                   f"it, e.g. with iconv -f latin1 -t utf-8") from None
    if len(data) < 20 * (LENGTH + 1):
        raise Stop(f"{path} has {len(data)} bytes, too few to learn from: at least {20 * (LENGTH + 1)} are needed")
    return data


def new_bytes(train: bytes, held_out: bytes) -> list[bool]:
    """For each held-out byte whether it lies outside every 40-byte run that occurs in the training part."""
    runs = {held_out[i:i + REPEAT] for i in range(len(held_out) - REPEAT + 1)}
    known = {run for i in range(len(train) - REPEAT + 1) if (run := train[i:i + REPEAT]) in runs}
    new = [True] * len(held_out)
    for i in range(len(held_out) - REPEAT + 1):
        if held_out[i:i + REPEAT] in known:
            new[i:i + REPEAT] = [False] * REPEAT
    return new


def as_ids(data: bytes, device: str) -> tp.Tensor:
    return tp.frombuffer(bytearray(data), dtype=tp.uint8).to(device, tp.int64)


def held_out_losses(model: TinyLM, ids: tp.Tensor, windows: int | None = None) -> list[float]:
    """The loss of every byte but the first, in windows that each start afresh."""
    losses: list[float] = []
    count = (len(ids) - 1) // LENGTH if windows is None else min(windows, (len(ids) - 1) // LENGTH)
    model.eval()
    with tp.no_grad():
        for first in range(0, count, 16):
            rows = [ids[i * LENGTH:i * LENGTH + LENGTH + 1] for i in range(first, min(first + 16, count))]
            losses += byte_losses(model, tp.stack(rows))
        if windows is None and count * LENGTH + 1 < len(ids):
            losses += byte_losses(model, ids[count * LENGTH:].unsqueeze(0))
    model.train()
    return losses


def byte_losses(model: TinyLM, batch: tp.Tensor) -> list[float]:
    logits = model(batch[:, :-1])
    return nn.functional.cross_entropy(logits.reshape(-1, 256), batch[:, 1:].reshape(-1), reduction="none").tolist()


# ---- training -------------------------------------------------------------------------------------------------------


class Training:
    """The state of a run: everything that --resume needs is saved and loaded here."""

    def __init__(self, args: argparse.Namespace) -> None:
        tp.manual_seed(args.seed)
        self.args = args
        self.model = TinyLM().to(args.device)
        self.optimizer = tp.optim.AdamW(self.model.parameters(), lr=args.lr)
        self.generator = tp.Generator().manual_seed(args.seed)
        self.step = 0
        self.curve: list[tuple[int, float, float]] = []  # (step, training loss, held-out loss)

    def save(self) -> None:
        tp.io.save_file(self.model.state_dict(), MODEL_FILE, {"format": "tiny_lm", "step": str(self.step)})
        state = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        for number, values in self.optimizer.state_dict()["state"].items():
            state.update({f"optimizer.{number}.{name}": value for name, value in values.items()})
        state["generator"] = self.generator.get_state()
        state["curve"] = tp.tensor([value for point in self.curve for value in point], dtype=tp.float64)
        tp.io.save_file(state, RESUME_FILE, {"format": "tiny_lm.resume", "step": str(self.step)})

    def load(self) -> None:
        if not os.path.exists(RESUME_FILE):
            raise Stop(f"there is no {RESUME_FILE} here to go on from; start a run without --resume")
        state, about = tp.io.load_file(RESUME_FILE, self.args.device), tp.io.load_metadata(RESUME_FILE)
        if about.get("format") != "tiny_lm.resume":
            raise Stop(f"{RESUME_FILE} was not written by this program; start a run without --resume")
        load_weights(self.model, {name[6:]: value for name, value in state.items() if name.startswith("model.")},
                     RESUME_FILE)
        moments: dict[int, dict] = {}
        try:
            for name, value in state.items():
                if name.startswith("optimizer."):
                    _, number, field = name.split(".")
                    moments.setdefault(int(number), {})[field] = value
            self.generator.set_state(state["generator"])
            flat = state["curve"].tolist()
            self.curve = [(int(flat[i]), flat[i + 1], flat[i + 2]) for i in range(0, len(flat), 3)]
            self.step = int(about["step"])
        except (KeyError, ValueError, IndexError) as problem:
            raise Stop(f"{RESUME_FILE} is incomplete ({problem}); start a run without --resume") from None
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": moments, "param_groups": groups})

    def batch(self, ids: tp.Tensor) -> tp.Tensor:
        starts = tp.randint(0, len(ids) - LENGTH, (self.args.batch, 1), generator=self.generator, device=ids.device)
        return ids[starts + tp.arange(LENGTH + 1, device=ids.device)]

    def train_step(self, ids: tp.Tensor) -> float:
        batch = self.batch(ids)
        logits = self.model(batch[:, :-1])
        loss = nn.functional.cross_entropy(logits.reshape(-1, 256), batch[:, 1:].reshape(-1))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.step += 1
        return loss.item()


class CtrlC:
    """Ctrl-C is noted and acted on between two steps, so that what is saved is a whole number of them."""

    def __enter__(self) -> CtrlC:
        self.pressed = False
        self.before = signal.signal(signal.SIGINT, self.press)
        return self

    def press(self, number, frame) -> None:
        if self.pressed:  # pressed again: do not wait
            raise KeyboardInterrupt
        self.pressed = True

    def __exit__(self, *exc) -> None:
        signal.signal(signal.SIGINT, self.before)


def load_weights(model: TinyLM, state: dict, path: str) -> None:
    try:
        model.load_state_dict(state)
    except tp.TensorPlayError as problem:
        faults = str(problem).splitlines()[1:] or [str(problem)]
        raise Stop(f"{path} does not fit this program's model: {faults[0].strip()}"
                   + (f" and {len(faults) - 1} more differences" if len(faults) > 1 else "")) from None


def check_folder() -> None:
    """Rather now than after the training."""
    try:
        with tempfile.TemporaryFile(dir="."):
            pass
    except OSError as problem:
        raise Stop(f"cannot write into this folder ({os.getcwd()}): {problem.strerror or problem}") from None


def progress_bar() -> Any:
    try:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        print("(a progress bar needs rich: pip install rich)")
        return PlainProgress()
    return Progress(TextColumn("training"), BarColumn(), MofNCompleteColumn(),
                    TextColumn("loss {task.fields[loss]:.3f}  held-out {task.fields[held_out]:.3f}"),
                    TextColumn("{task.fields[speed]:,.0f} tokens/s"), TimeRemainingColumn())


class PlainProgress:
    """A line every 50 steps, where rich is not installed."""

    def __enter__(self) -> PlainProgress:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def add_task(self, description: str, total: int, **fields: float) -> int:
        self.total = total
        return 0

    def update(self, task: int, completed: int, loss: float, held_out: float, speed: float) -> None:
        if completed % 50 == 0 or completed == self.total:
            print(f"step {completed}/{self.total}  loss {loss:.3f}  held-out {held_out:.3f}  {speed:,.0f} tokens/s",
                  flush=True)


def train(args: argparse.Namespace) -> None:
    check_folder()
    text = read_text(args.text)
    border = len(text) * 9 // 10
    train_part, held_part = text[:border], text[border:]
    run = Training(args)
    if args.resume:
        run.load()
    train_ids, held_ids = as_ids(train_part, args.device), as_ids(held_part, args.device)
    print(run.model)
    print(f"{len(train_part):,} bytes to learn from, {len(held_part):,} held out")
    try:
        held = run_steps(run, train_ids, held_ids)
    except KeyboardInterrupt:
        run.save()
        print(f"\nstopped after {run.step} of {args.steps} steps and saved; go on with: {resume_command(args)}")
        return
    run.save()
    write_curve(run.curve, "loss.svg")
    new = new_bytes(train_part, held_part)[1:]
    everywhere = sum(held) / len(held)
    on_new = [loss for loss, is_new in zip(held, new) if is_new]
    print(f"saved {MODEL_FILE} and loss.svg")
    generate(args, "The with statement")
    score = f"{sum(on_new) / len(on_new):.3f} on new bytes" if on_new else "no new bytes"
    print(f"held-out {everywhere:.3f} nats/byte, {score}")


def resume_command(args: argparse.Namespace) -> str:
    options = [f"--{name}={getattr(args, name)}" for name in ("text", "steps", "batch", "lr", "seed", "device")
               if getattr(args, name) != DEFAULTS[name]]
    return shlex.join(["python", sys.argv[0], "--resume", *options])


def run_steps(run: Training, train_ids: tp.Tensor, held_ids: tp.Tensor) -> list[float]:
    """Train to the wanted step and return the loss of every held-out byte."""
    args = run.args
    started, seen = time.perf_counter(), 0
    held = run.curve[-1][2] if run.curve else float("nan")
    with CtrlC() as ctrl_c, progress_bar() as progress:
        task = progress.add_task("", total=args.steps, completed=run.step, loss=float("nan"), held_out=held, speed=0.0)
        while run.step < args.steps and not ctrl_c.pressed:
            loss = run.train_step(train_ids)
            if not math.isfinite(loss):
                raise Stop(f"the loss is {loss} after {run.step} steps; a smaller --lr than {args.lr} helps")
            seen += args.batch * LENGTH
            if run.step % 50 == 0 or run.step in (1, args.steps):
                sample = held_out_losses(run.model, held_ids, 16)
                held = sum(sample) / len(sample)
                run.curve.append((run.step, loss, held))
            progress.update(task, completed=run.step, loss=loss, held_out=held,
                            speed=seen / (time.perf_counter() - started))
    if run.step < args.steps:
        raise KeyboardInterrupt
    return held_out_losses(run.model, held_ids)


def write_curve(curve: list[tuple[int, float, float]], path: str) -> None:
    """The losses as a small SVG picture."""
    width, height, left, bottom = 640, 360, 50, 30
    last, top = max(step for step, _, _ in curve), max(max(a, b) for _, a, b in curve)

    def points(which: int) -> str:
        return " ".join(f"{left + (width - left - 10) * point[0] / last:.1f},"
                        f"{(height - bottom) * (1 - point[which] / top) + 5:.1f}" for point in curve)

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
             f'font-size="12"><rect width="{width}" height="{height}" fill="white"/>']
    for i in range(int(top) + 1):
        y = (height - bottom) * (1 - i / top) + 5
        lines.append(f'<line x1="{left}" y1="{y:.1f}" x2="{width - 10}" y2="{y:.1f}" stroke="#ddd"/>'
                     f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{i}</text>')
    for which, colour, label in ((1, "#1f77b4", "training"), (2, "#d62728", "held out")):
        lines.append(f'<polyline points="{points(which)}" fill="none" stroke="{colour}" stroke-width="2"/>'
                     f'<text x="{width - 90}" y="{20 * which + 5}" fill="{colour}">{label}</text>')
    lines.append(f'<text x="{width / 2}" y="{height - 6}">steps (0 to {last}), loss in nats per byte</text></svg>')
    with tp.io.atomic_write(path) as file:
        file.write(("\n".join(lines) + "\n").encode())


# ---- writing --------------------------------------------------------------------------------------------------------


def generate(args: argparse.Namespace, prompt: str) -> None:
    """Load the saved model and print what it writes after the prompt, as it comes."""
    import codecs

    if not prompt:
        raise Stop("--generate needs at least one character to go on from")
    if not os.path.exists(MODEL_FILE):
        raise Stop(f"there is no {MODEL_FILE} here; train one first, without --generate")
    model = TinyLM()
    load_weights(model, tp.io.load_file(MODEL_FILE), MODEL_FILE)
    model.to(args.device)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    generator = tp.Generator().manual_seed(args.seed)
    print(prompt, end="", flush=True)
    written = prompt.encode(errors="surrogateescape")
    for _ in range(6):  # the model was trained on 128 bytes at a time: go on from the latest 64, 64 more each time
        ids = as_ids(written[-LENGTH // 2:], args.device).unsqueeze(0)
        for token in stream(model, ids, max_new_tokens=LENGTH // 2, do_sample=True, temperature=0.8, top_k=50,
                            generator=generator):
            written += bytes([token.item()])
            print(decoder.decode(written[-1:]), end="", flush=True)
    print()


DEFAULTS = {"text": None, "steps": 800, "batch": 16, "lr": 2e-3, "seed": 0, "device": "cpu"}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a small language model on text, byte by byte.")
    parser.add_argument("--text", help="a UTF-8 file to learn from (default: Python's help topics)")
    parser.add_argument("--steps", type=int, help="how many in all, those of a resumed run included (800)")
    parser.add_argument("--batch", type=int, help=f"sequences of {LENGTH} bytes in a step (16)")
    parser.add_argument("--lr", type=float, help="learning rate (2e-3)")
    parser.add_argument("--seed", type=int, help="of weights, batches and generated text (0)")
    parser.add_argument("--device", help="(cpu)")
    parser.add_argument("--resume", action="store_true", help="go on from the last save in this folder")
    parser.add_argument("--generate", metavar="PROMPT", help="load the saved model and continue this text")
    parser.set_defaults(**DEFAULTS)
    return parser.parse_args()


def main() -> int:
    for stream_of_text in (sys.stdout, sys.stderr):
        if isinstance(stream_of_text, io.TextIOWrapper):  # a character that the terminal does not have becomes "?"
            stream_of_text.reconfigure(errors="replace")
    args = parse_arguments()
    try:
        for name in ("steps", "batch"):
            if getattr(args, name) < 1:
                raise Stop(f"--{name} must be at least 1, got {getattr(args, name)}")
        if args.generate is not None:
            generate(args, args.generate)
        else:
            train(args)
    except (Stop, tp.TensorPlayError, OSError) as problem:
        print(f"tiny_lm: {' '.join(str(problem).split())}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ntiny_lm: stopped; nothing was saved by this run", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
