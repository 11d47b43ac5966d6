"""The `tp` command: what is installed and in what state, and why an operator runs what it runs."""
from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def main(argv: list[str] | None = None) -> int:
    from ._errors import TensorPlayError

    try:
        arguments = _parser().parse_args(argv)
        if not hasattr(arguments, "run"):
            arguments = _parser().parse_args(["--help"])
        return int(arguments.run(arguments) or 0)
    except TensorPlayError as error:
        print(f"tp: {error.message}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # `tp ops | head`
        import os

        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser() -> ArgumentParser:
    from argparse import ArgumentParser

    from ._plugins import plugins

    parser = ArgumentParser(prog="tp", description="TensorPlay's tools: plugins, devices, operators.")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    command = commands.add_parser("doctor", help="what is installed, in what state, and how to mend it")
    command.set_defaults(run=_doctor)
    command = commands.add_parser("explain", help="what an operator runs on a device, with file and line")
    command.add_argument("op", metavar="OP")
    command.add_argument("--device", default=None, help="the default device if not given")
    command.set_defaults(run=_explain)
    command = commands.add_parser("ops", help="list operators")
    command.add_argument("pattern", nargs="?", default="*", help="such as 'arg*'")
    command.add_argument("--device", default=None, help="also say what each one runs there")
    command.set_defaults(run=_ops)
    if plugins("tools"):
        from ._hookspecs import call

        call("tensorplay_cli_commands", commands=commands)
    return parser


def _doctor(arguments: Namespace) -> int:
    from ._doctor import report

    _print(report())
    return 0


def _explain(arguments: Namespace) -> int:
    from ._device import as_device
    from ._explain import chain, find_op
    from ._plugins import plugins

    found = chain(find_op(arguments.op), as_device(arguments.device).type)
    _print(str(found))
    if plugins("tools"):
        from ._hookspecs import call

        for text in call("tensorplay_explain", op=found.op.name, device=found.device, chain=found):
            _print(str(text))
    return 0


def _ops(arguments: Namespace) -> int:
    from fnmatch import fnmatchcase

    from ._device import as_device
    from ._explain import chain, load_all, short_path
    from ._op import OPS

    failed = load_all()
    device = as_device(arguments.device).type if arguments.device else None
    for name in sorted(OPS):
        op = OPS[name]
        if fnmatchcase(name, arguments.pattern):
            detail = chain(op, device).outcome if device else ", ".join(sorted(op.rules))
            _print(f"{name:32} {short_path(*op.location):44} {detail}".rstrip())
    for problem in failed:
        print(f"tp: not loaded: {problem}", file=sys.stderr)
    return 0


def _print(text: str) -> None:
    """Print; characters that the terminal's encoding lacks are escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding))
