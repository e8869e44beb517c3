"""Write docs/reference/cli.md from the command's own help. ``--check`` only says whether it is up to date."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

TARGET = Path(__file__).parent.parent / "docs" / "reference" / "cli.md"
HEAD = """# The command line

Exit codes: 0 done; 1 done, and the answer is no (an invalid history, something that does not fit, nothing found); 2 the
input or an option is wrong, and nothing was written. Results go to standard output, everything else to standard error.
`--json` output is one JSON object (or one a line) whose keys are only ever added to.

This page is written by `python tools/write_cli_reference.py` from the command's own help.
"""


def page() -> str:
    """The whole page."""
    os.environ["COLUMNS"] = "100"
    from wakeful.cli import parser

    parts = [HEAD]
    for name, command in _commands(parser()):
        parts.append(f"\n## wakeful {name}\n\n```text\n{command.format_help().rstrip()}\n```\n")
    return "".join(parts)


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
