"""``wakeful replay``: a conversation, call by call, through several policies side by side."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from wakeful.cli.archive import add_reading
from wakeful.cli.chart import columns, table
from wakeful.cli.inspect import add_window

if TYPE_CHECKING:
    from wakeful.engine.replay import Replay

DEFAULT = ("none", "clear", "oldest_first", "ladder")


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    command = commands.add_parser("replay", help="play a conversation through a window, policy by policy")
    command.add_argument("file", metavar="FILE")
    add_reading(command)
    add_window(command, required=True)
    command.add_argument(
        "--policy", action="append", metavar="P", help=f"a policy, repeatable (default: {', '.join(DEFAULT)})"
    )
    command.add_argument("--trigger", type=float, metavar="SHARE", help="start above this share of the room (0-1)")
    command.add_argument("--target", type=float, metavar="SHARE", help="come down to this share of the room (0-1)")
    command.add_argument("--keep-recent", type=int, metavar="ROUNDS", help="newest rounds to leave alone")
    command.add_argument("--expected-calls", type=float, metavar="N", help="for the cost policy: calls still to come")
    command.add_argument("--html", metavar="FILE", help="write the picture as a page of its own")
    command.add_argument("--quiet", action="store_true", help="no progress")
    command.add_argument("--json", action="store_true", help="print every step as JSON")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Play, and print what each policy sent, kept and paid; exit code 1 when a policy sent an invalid request."""
    from wakeful.cli.files import read_conversation
    from wakeful.engine.replay import replays

    found = read_conversation(arguments.file, index=arguments.index)
    settings = {
        name: value
        for name in ("trigger", "target", "keep_recent", "expected_calls", "reserve")
        if (value := getattr(arguments, name)) is not None
    }
    played = replays(
        found.messages,
        arguments.policy or DEFAULT,
        model=arguments.model,
        window=arguments.window,
        dialect=arguments.format,
        prompt_tokens=arguments.prompt_tokens,
        settings=settings,
    )
    for replay in played:
        total = len(replay.points())
        for number, _ in enumerate(replay.steps(), 1):
            if not arguments.quiet and not arguments.json and sys.stderr.isatty():
                print(f"\r{replay.policy}: call {number} of {total}", end="", file=sys.stderr, flush=True)
    if not arguments.quiet and not arguments.json and sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    if arguments.html is not None:
        from wakeful.cli.compact import write_text
        from wakeful.cli.page import replay_page

        write_text(arguments.html, replay_page(found.name, played))
    if arguments.json:
        print(json.dumps(_data(found.name, played), ensure_ascii=False))
    else:
        print("\n".join(picture(found.name, played, shutil.get_terminal_size((100, 24)).columns)))
        if arguments.html is not None:
            print(f"\nwritten to {arguments.html}")
    return 1 if any(replay.summary().invalid for replay in played if replay.policy != "none") else 0


def _data(name: str, played: list[Replay]) -> dict[str, Any]:
    return {
        "file": name,
        "window": played[0].window,
        "policies": [
            {
                **asdict(replay.summary()),
                "cache_share": replay.summary().cache_share,
                "steps": [asdict(s) for s in replay.done],
            }
            for replay in played
        ],
    }


def picture(name: str, played: list[Replay], width: int) -> list[str]:
    """The replay as lines of text."""
    width = max(60, min(width, 120))
    window = played[0].window
    lines = [
        f"{name}: {len(played[0].messages)} messages, {len(played[0].points())} model calls, window {window:,}",
        "",
    ]
    rows = [["policy", "compactions", "largest", "over", "invalid", "input tokens", "cached", "cost", "user kept"]]
    for replay in played:
        each = replay.summary()
        rows.append(
            [
                each.policy,
                str(each.compactions),
                f"{each.largest:,}",
                str(each.over),
                str(each.invalid),
                f"{each.input_tokens:,}",
                f"{each.cache_share:.0%}",
                f"{each.cost:.4f}",
                f"{each.kept_users:.0%}",
            ]
        )
    lines += table(rows, right=tuple(range(1, 9)))
    lines.append(f"cost in {played[0].unit}; cached: share of the input that an ideal prompt cache holds")
    for replay in played:
        top = max(window, max((step.tokens for step in replay.done), default=1))
        lines += ["", f"{replay.policy}: tokens of each request (full height {top:,}); ^ marks a compaction"]
        lines += [f"  |{line}" for line in columns([step.tokens for step in replay.done], 6, width - 4, top=top)]
        lines.append("  +" + "".join(marks(replay, width - 4)))
    return lines


def marks(replay: Replay, width: int) -> list[str]:
    """One character a column: ``^`` where a compaction happened."""
    steps = replay.done
    count = min(len(steps), width)
    out = []
    for column in range(count):
        start = column * len(steps) // count
        stop = max(start + 1, (column + 1) * len(steps) // count)
        out.append("^" if any(step.compacted for step in steps[start:stop]) else "-")
    return out
