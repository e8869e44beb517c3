"""``wakeful inspect``: what fills the window."""

from __future__ import annotations

import argparse
import json
import shutil
from dataclasses import asdict
from typing import TYPE_CHECKING

from wakeful.cli.archive import add_reading
from wakeful.cli.chart import bar, stacked, table

if TYPE_CHECKING:
    from wakeful.compaction.inspection import Inspection

SIGNS = {"system": "S", "user": "U", "assistant": "A", "tool": "T"}


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    command = commands.add_parser("inspect", help="show what fills the window")
    command.add_argument("file", metavar="FILE")
    add_reading(command)
    add_window(command, required=False)
    command.add_argument("--largest", type=int, default=8, metavar="N", help="how many of the largest contents to show")
    command.add_argument("--json", action="store_true", help="print everything as JSON")
    command.set_defaults(run=run)


def add_window(command: argparse.ArgumentParser, *, required: bool) -> None:
    """Add the options that say how large the window is."""
    window = command.add_mutually_exclusive_group(required=required)
    window.add_argument("--window", type=int, metavar="N", help="tokens of the model's window")
    window.add_argument("--model", metavar="M", help="a model of the catalogue, for its window and prices")
    command.add_argument(
        "--prompt-tokens", type=int, default=0, metavar="N", help="tokens of system prompt and tools beside the history"
    )
    command.add_argument("--reserve", type=int, metavar="N", help="tokens left for the reply")


def run(arguments: argparse.Namespace) -> int:
    """Print the inspection."""
    from wakeful.cli.files import read_conversation
    from wakeful.engine.inspect import inspect

    found = read_conversation(arguments.file, index=arguments.index)
    seen = inspect(
        found.messages,
        model=arguments.model,
        window=arguments.window,
        reserve=arguments.reserve,
        prompt_tokens=arguments.prompt_tokens,
        dialect=arguments.format,
        largest=arguments.largest,
    )
    if arguments.json:
        data = asdict(seen)
        data["budget"] |= {"room": None if seen.budget.window is None else seen.budget.room}
        print(json.dumps({"file": found.name, **data}, ensure_ascii=False))
    else:
        print("\n".join(picture(found.name, seen, shutil.get_terminal_size((100, 24)).columns)))
    return 0


def picture(name: str, seen: Inspection, width: int) -> list[str]:
    """The inspection as lines of text."""
    width = max(60, min(width, 120))
    lines = [
        f"{name}: {seen.messages} messages in {len(seen.rounds)} rounds, format {seen.dialect}, "
        f"about {seen.tokens:,} tokens, {seen.wire_bytes:,} bytes",
        "",
    ]
    window = seen.budget.window
    whole = max(window or seen.tokens, 1)
    parts = [(SIGNS[role], tokens / whole) for role, tokens in seen.by_role.items()]
    parts.insert(0, ("P", seen.budget.prompt_tokens / whole))
    legend = "  ".join(f"{SIGNS[role]} {role} {tokens:,}" for role, tokens in seen.by_role.items())
    lines.append(f"[{stacked(parts, width - 2)}]")
    lines.append(legend + (f"  P prompt {seen.budget.prompt_tokens:,}" if seen.budget.prompt_tokens else ""))
    if window is not None:
        used = seen.tokens + seen.budget.prompt_tokens
        state = "does not fit" if seen.over else "fits"
        lines.append(
            f"window {window:,}: {used:,} used ({used / window:.0%}), {seen.budget.reserve:,} kept for the reply; it {state}"
        )
    lines += ["", *_shares("kind", seen.by_kind, width), "", "largest contents:"]
    rows = [["message", "role", "kind", "tokens", ""]]
    rows += [[str(c.index), c.role, c.kind, f"{c.tokens:,}", c.preview[: width - 48]] for c in seen.largest]
    lines += table(rows, right=(0, 3))
    if seen.problems:
        lines += ["", f"{len(seen.problems)} problems of the format:"]
        lines += [f"  {problem.code}  message {problem.index}: {problem.message}" for problem in seen.problems[:20]]
        if len(seen.problems) > 20:
            lines.append(f"  ... and {len(seen.problems) - 20} more (wakeful validate lists them)")
    else:
        lines += ["", f"valid {seen.dialect}"]
    return lines


def _shares(title: str, tokens: dict[str, int], width: int) -> list[str]:
    total = sum(tokens.values()) or 1
    lines = [f"tokens by {title}:"]
    for name, count in sorted(tokens.items(), key=lambda item: -item[1]):
        lines.append(f"  {name:<9} {bar(count / total, width - 36)} {count:>9,} {count / total:>5.0%}")
    return lines
