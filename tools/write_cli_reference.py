"""Write docs/reference/cli.md from the command's own parser. ``--check`` only says whether it is up to date.

The page is laid out here, not by ``argparse``, whose wording and line breaks differ from one Python to the next.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

WIDTH, COLUMN = 98, 24
"""Characters of a line, and where help begins."""

TARGET = Path(__file__).parent.parent / "docs" / "reference" / "cli.md"
HEAD = """# The command line

Exit codes: 0 done; 1 done, and the answer is no (an invalid history, something that does not fit, nothing found); 2 the
input or an option is wrong, and nothing was written. Results go to standard output, everything else to standard error.
`--json` output is one JSON object (or one a line) whose keys are only ever added to.

This page is written by `python tools/write_cli_reference.py` from the command's own help.
"""


def page() -> str:
    """The whole page."""
    from wakeful.cli import parser

    parts = [HEAD]
    for name, command in _commands(parser()):
        parts.append(f"\n## wakeful {name}\n\n```text\n{_help(command)}\n```\n")
    return "".join(parts)


def _help(command: argparse.ArgumentParser) -> str:
    """Give a command's help: usage, description, positional arguments, options, epilogue."""
    shown = [action for action in command._actions if action.help != argparse.SUPPRESS]
    places = [action for action in shown if not action.option_strings]
    options = [action for action in shown if action.option_strings]
    parts = [_usage(command, options, places)]
    if command.description:
        parts.append(_wrapped(command.description % {"prog": command.prog}))
    for title, actions in (("positional arguments", places), ("options", options)):
        if actions:
            parts.append("\n".join([f"{title}:", *map(_entry, actions)]))
    if command.epilog:
        parts.append(_wrapped(command.epilog % {"prog": command.prog}))
    return "\n\n".join(parts)


def _wrapped(text: str) -> str:
    return "\n\n".join(textwrap.fill(paragraph, WIDTH) for paragraph in text.split("\n\n"))


def _usage(command: argparse.ArgumentParser, options: list[argparse.Action], places: list[argparse.Action]) -> str:
    grouped = {id(action): group for group in command._mutually_exclusive_groups for action in group._group_actions}
    words: list[str] = []
    for action in options:
        group = grouped.get(id(action))
        if group is None:
            words.append(_called(action) if action.required else f"[{_called(action)}]")
        elif action is group._group_actions[0]:
            members = [_called(each) for each in group._group_actions if each.help != argparse.SUPPRESS]
            words.append(f"({' | '.join(members)})" if group.required else f"[{' | '.join(members)}]")
    words += [_value(action) for action in places]
    head = f"usage: {command.prog} "
    lines, line = [], head
    for word in words:
        if len(line) + len(word) > WIDTH and line.strip():
            lines.append(line.rstrip())
            line = " " * len(head)
        line += word + " "
    return "\n".join([*lines, line.rstrip()])


def _called(action: argparse.Action) -> str:
    value = _value(action)
    return f"{action.option_strings[0]} {value}" if value else action.option_strings[0]


def _value(action: argparse.Action) -> str:
    """Give what stands for an action's value; "" for a flag."""
    if action.nargs == 0:
        return ""
    name = action.metavar
    if name is None and action.choices is not None:
        name = "{" + ",".join(map(str, action.choices)) + "}"
    if name is None:
        name = action.dest.upper() if action.option_strings else action.dest
    words: Sequence[str] = (name,) if isinstance(name, str) else name
    shown = " ".join(words)
    many = {"?": f"[{shown}]", "*": f"[{shown} ...]", "+": f"{shown} [{shown} ...]"}
    return many.get(str(action.nargs), shown)


def _entry(action: argparse.Action) -> str:
    value = _value(action)
    bare = action.metavar if isinstance(action.metavar, str) else action.dest
    names = ", ".join(action.option_strings) + (f" {value}" if value else "") if action.option_strings else bare
    text = (action.help or "") % {**vars(action), "prog": ""}
    lines = textwrap.wrap(text, WIDTH - COLUMN) or [""]
    head = f"  {names}"
    if len(head) + 2 > COLUMN:
        return "\n".join([head, *[" " * COLUMN + line for line in lines]]).rstrip()
    return "\n".join([head.ljust(COLUMN) + lines[0], *[" " * COLUMN + line for line in lines[1:]]]).rstrip()


def _commands(top: argparse.ArgumentParser, prefix: str = "") -> list[tuple[str, argparse.ArgumentParser]]:
    found = []
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                inner = _commands(command, f"{prefix}{name} ")
                found += inner or [(f"{prefix}{name}", command)]
    return found


def main() -> int:
    """Write the page, or check it."""
    text = page()
    if "--check" in sys.argv:
        return 0 if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text else 1
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(text, encoding="utf-8")
    print(f"wrote {TARGET.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
