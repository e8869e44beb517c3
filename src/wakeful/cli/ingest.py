"""``wakeful ingest``: take a recorded conversation into memory."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from wakeful.cli.archive import add_reading
from wakeful.cli.chart import bar
from wakeful.cli.opening import add_embedder, add_place, opened, scope_of


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    command = commands.add_parser("ingest", help="take a recorded conversation into memory; can be interrupted")
    command.add_argument("file", metavar="FILE", help="LoCoMo, a list of messages, or JSON Lines")
    add_place(command)
    add_embedder(command)
    add_reading(command)
    command.add_argument("--session", metavar="ID", help="where the turns come from (default: the file's name)")
    command.add_argument("--no-extract", action="store_true", help="keep the turns alone, and take no facts from them")
    command.add_argument("--json", action="store_true", help="print the outcome as JSON")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Ingest, with a progress bar on a terminal."""
    from wakeful.engine.ingest import ingest, turns_of

    data = _read(arguments)
    session = arguments.session or Path(arguments.file).stem
    turns = turns_of(data, session=session, dialect=arguments.format)
    scope = scope_of(arguments)
    last = None
    with opened(arguments, make=True) as memory:
        for last in ingest(memory, scope, turns, extract=not arguments.no_extract):
            if sys.stderr.isatty():
                print(f"\r[{bar(last.done / last.total, 40)}] {last.done:,} of {last.total:,}", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    assert last is not None
    outcome = {"turns": last.total, "written": last.written, "already": last.total - last.written}
    if arguments.json:
        print(json.dumps(outcome))
    else:
        print(f"{outcome['written']:,} turns taken, {outcome['already']:,} were there already")
    return 0


def _read(arguments: argparse.Namespace) -> Any:
    """Decoded LoCoMo samples, or the messages of a conversation."""
    from wakeful.cli.files import read_conversation

    try:
        data = json.loads(Path(arguments.file).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        data = None
    samples = data if isinstance(data, list) else [data]
    if samples and all(isinstance(each, dict) and isinstance(each.get("conversation"), dict) for each in samples):
        return data
    return read_conversation(arguments.file, index=arguments.index).messages
