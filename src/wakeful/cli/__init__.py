"""The ``wakeful`` command. One module a command group: it parses, calls the library and renders, and decides nothing.

Exit codes: 0 done, 1 done and the answer is no (invalid history, nothing found), 2 the input or an option is wrong, and
then nothing was written. Results go to standard output, everything else to standard error.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

from wakeful.errors import UnknownFormat, WakefulError

GROUPS = (
    "inspect",
    "compact",
    "replay",
    "archive",
    "remember",
    "memory",
    "remind",
    "ingest",
    "consolidate",
    "context",
    "chat",
)
"""Modules of this package; each has ``register(commands)``."""


class _Parser(argparse.ArgumentParser):
    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse; what a subcommand does not know is its error, told with its own usage."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown and " " in self.prog:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(2, f"wakeful: {message}\n")


def parser() -> argparse.ArgumentParser:
    """Build the parser of the whole command."""
    from wakeful import __version__

    top = _Parser(prog="wakeful", description="The context layer for LLM agents.")
    top.add_argument("--version", action="version", version=f"wakeful {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for group in GROUPS:
        import_module(f"wakeful.cli.{group}").register(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    try:
        arguments = parser().parse_args(argv)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What a terminal can't show, half a character too, is escaped as JSON does it.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except UnknownFormat as error:
        print(f"wakeful: {str(error).replace('dialect=...', '--format NAME')}", file=sys.stderr)
        return 2
    except WakefulError as error:
        print(f"wakeful: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("wakeful: stopped", file=sys.stderr)
        return 130
    return code
