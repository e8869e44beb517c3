"""``wakeful compact``: fit a conversation into a window."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from wakeful.cli.archive import add_reading
from wakeful.cli.chart import bar
from wakeful.cli.inspect import add_window
from wakeful.errors import InputError

FEW = 4
"""Moves of one kind that are listed without ``--verbose``."""

STRATEGIES = ("ladder", "oldest_first", "sliding_window", "summarize", "clear")


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    command = commands.add_parser("compact", help="fit a conversation into a window")
    command.add_argument("file", metavar="FILE")
    add_reading(command)
    add_window(command, required=True)
    command.add_argument("--strategy", choices=STRATEGIES, default="ladder")
    command.add_argument("--trigger", type=float, metavar="SHARE", help="start above this share of the room (0-1)")
    command.add_argument("--target", type=float, metavar="SHARE", help="come down to this share of the room (0-1)")
    command.add_argument("--keep-recent", type=int, metavar="ROUNDS", help="newest rounds to leave alone")
    command.add_argument("--instructions", metavar="TEXT", help="what a digest should dwell on")
    command.add_argument("--dry-run", action="store_true", help="show the plan and change nothing")
    command.add_argument("--out", metavar="FILE", help="write the compacted messages here, as JSON")
    command.add_argument("--archive", metavar="DB", help="keep what is taken out in this SQLite file")
    command.add_argument("--verbose", action="store_true", help="list every move")
    command.add_argument("--json", action="store_true", help="print plan and result as JSON")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compact, or show the plan; exit code 1 when the result does not fit or compaction failed."""
    from wakeful import compact, plan_compaction
    from wakeful.cli.files import read_conversation

    found = read_conversation(arguments.file, index=arguments.index)
    if arguments.out is not None and Path(arguments.out).exists() and Path(arguments.out).samefile(arguments.file):
        raise InputError(f"--out {arguments.out} is the input itself; give another file, so that nothing is lost")
    options = _options(arguments)
    if arguments.dry_run or arguments.archive is not None:
        # Planned before an archive is made: what is no conversation leaves no file behind.
        plan = plan_compaction(found.messages, **options)
    if arguments.dry_run:
        _show(arguments, found.name, plan, None, found.messages)
        return 1 if plan.over_budget else 0
    archive = None
    if arguments.archive is not None:
        from wakeful.stores.archive_sqlite import SqliteArchive

        archive = options["archive"] = SqliteArchive(arguments.archive)
    try:
        result = compact(found.messages, **options)
    finally:
        if archive is not None:
            archive.close()
    if arguments.out is not None and not result.meta.error:
        text = json.dumps({"messages": result.messages}, ensure_ascii=False, indent=1)
        write_text(arguments.out, text + "\n")
    _show(arguments, found.name, result.plan, result, found.messages)
    return 1 if result.meta.error or result.meta.over_budget else 0


def write_text(path: str, text: str) -> None:
    """Write a file whole or not at all. Half a character (a lone surrogate) is written as JSON escapes it."""
    target = Path(path)
    part = target.with_name(target.name + ".part")
    try:
        part.write_text(text, encoding="utf-8", errors="backslashreplace")
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(f"can't write {path}: {error.strerror or error}") from None


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    options: dict[str, Any] = {
        "strategy": arguments.strategy,
        "prompt_tokens": arguments.prompt_tokens,
    }
    for name in ("window", "model", "reserve", "trigger", "target", "instructions", "keep_recent"):
        value = getattr(arguments, name)
        if value is not None:
            options[name] = value
    if arguments.format is not None:
        options["dialect"] = arguments.format
    return options


def _show(arguments: argparse.Namespace, name: str, plan: Any, result: Any, messages: list[Any]) -> None:
    if arguments.json:
        print(json.dumps(_data(name, plan, result, messages), ensure_ascii=False))
        return
    window = plan.budget.window
    print(f"{name}: {plan.tokens_before:,} -> {plan.tokens_after:,} tokens ({plan.strategy}, {plan.reason})")
    print(f"  before [{bar(plan.tokens_before / max(window or 1, plan.tokens_before), 60)}]")
    print(f"  after  [{bar(plan.tokens_after / max(window or 1, plan.tokens_before), 60)}] of a window of {window:,}")
    for line in _lines(plan.moves, every=arguments.verbose):
        print(f"  {line}")
    for note in plan.notes:
        print(f"  note: {note}")
    if plan.over_budget:
        print(f"  over budget: {plan.floor_tokens:,} tokens can't shrink", file=sys.stderr)
    if result is not None and result.meta.error:
        print(f"  failed, nothing was changed: {result.meta.error}", file=sys.stderr)
    if arguments.out and result is not None and not result.meta.error:
        print(f"  written to {arguments.out}: {len(result.messages)} of {len(messages)} messages")


def _lines(moves: Sequence[Any], *, every: bool) -> Iterator[str]:
    """One line a move; of more than a few of a kind only the first ones, unless every one is wanted."""
    for _, group in groupby(moves, key=type):
        alike = list(group)
        shown = alike if every or len(alike) <= FEW + 1 else alike[:FEW]
        yield from map(_line, shown)
        if len(shown) < len(alike):
            rest = alike[FEW:]
            saved = sum(getattr(move, "tokens_before", 0) - getattr(move, "tokens_after", 0) for move in rest)
            yield f"... and {len(rest)} more like it, {saved:,} tokens saved (--verbose lists them)"


def _line(move: Any) -> str:
    fields = {name: getattr(move, name) for name in move.__slots__}
    where = fields.get("indexes")
    place = f"messages {where[0]}-{where[-1]}" if where else f"message {fields.get('index')}"
    saved = ""
    if "tokens_before" in fields:
        saved = f", {fields['tokens_before']:,} -> {fields['tokens_after']:,} tokens"
    archived = f" [{fields['archive_id']}]" if fields.get("archive_id") else ""
    return f"{type(move).__name__.lower()} {place}{saved}: {fields.get('reason', '')}{archived}"


def _data(name: str, plan: Any, result: Any, messages: list[Any]) -> dict[str, Any]:
    data: dict[str, Any] = {
        "file": name,
        "window": plan.budget.window,
        "room": plan.budget.room,
        "strategy": plan.strategy,
        "reason": plan.reason,
        "tokens_before": plan.tokens_before,
        "tokens_after": plan.tokens_after,
        "over_budget": plan.over_budget,
        "floor_tokens": plan.floor_tokens,
        "moves": [
            {"move": type(move).__name__.lower(), **{slot: getattr(move, slot) for slot in move.__slots__}}
            for move in plan.moves
        ],
        "notes": list(plan.notes),
        "messages_before": len(messages),
    }
    if result is not None:
        data |= {
            "compacted": result.meta.compacted,
            "error": result.meta.error,
            "messages_after": len(result.messages),
            "dropped": [{"id": entry.id, "position": entry.position} for entry in result.dropped],
            "messages": result.messages,
        }
    return data
