"""Write ``RESULTS.md`` from the results that the project keeps.

    python bench/report.py [--keep NAME ...]

``--keep`` first copies the latest result of a benchmark from ``bench/out`` to ``bench/results``.
"""

from __future__ import annotations

import argparse
import ast
import json
import shutil
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import goals
from common import BENCH, OUT, RESULTS

MOST_ROWS = 30
"""Rows of a list that the page shows."""

HEAD = """# Results

Written by `python bench/report.py` from `bench/results/*.json`; do not edit.

Two cores that may have run other work at the same time: compare figures of one table, and do not quote times. CPU seconds
are of the measuring process.

## What we want, and where we are

"""


def main() -> None:
    """Copy what is to be kept, then write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--keep", nargs="*", default=[], metavar="NAME", help="results to take over from bench/out")
    arguments = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    for name in arguments.keep:
        shutil.copyfile(OUT / f"{name}.json", RESULTS / f"{name}.json")
    records = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
    head = HEAD + "\n".join(goals.table({each["bench"]: each["result"] for each in records})) + "\n\n"
    (BENCH / "RESULTS.md").write_text(head + "\n".join(map(page, records)))


def page(record: dict[str, Any]) -> str:
    """Write one benchmark's section."""
    origin = ", ".join(str(record[key]) for key in ("machine", "python", "commit", "date") if record.get(key))
    lines = [
        f"## {record['bench']}",
        "",
        *question(record["command"]),
        f"`{record['command']}`",
        "",
        f"{origin}, input {record.get('input', '-')}",
        "",
    ]
    return "\n".join(lines + shown(record["result"])) + "\n"


def question(command: str) -> list[str]:
    """What a benchmark asks: the first line of its module's docstring."""
    name = next((part for part in command.split() if part.endswith(".py")), "")
    path = BENCH.parent / name
    if not path.is_file():
        return []
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return [text.splitlines()[0], ""] if text else []


def shown(value: Any, title: str = "") -> list[str]:
    """Show a result: rows of the same fields as a table, other values as a list; long lists of rows are left to the file."""
    if not isinstance(value, dict):
        return [cell(value), ""]
    out = [f"### {title}", ""] if title else []
    plain = {name: item for name, item in value.items() if not isinstance(item, dict | list)}
    out += [f"- {name}: {cell(item)}" for name, item in plain.items()]
    rest: list[str] = []
    groups: dict[str, dict[str, Any]] = {}
    for name, item in value.items():
        if isinstance(item, list) and item and isinstance(item[0], dict):
            if len(item) > MOST_ROWS:
                out.append(f"- {name}: {len(item)} rows in the file")
            else:
                rest += [f"### {name}", "", *table({str(at): row for at, row in enumerate(item)}, numbered=True)]
        elif isinstance(item, list):
            out.append(f"- {name}: {', '.join(map(cell, item)) or 'none'}")
        elif isinstance(item, dict) and item:
            groups[name] = item
    out += [""] if out and out[-1] else []
    if len(groups) > 1 and len({tuple(flat(row)) for row in groups.values()}) == 1:
        return out + table(groups) + rest
    for name, row in groups.items():
        out += shown(row, name)
    return out + rest


def flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row with the fields of its inner rows beside its own."""
    out: dict[str, Any] = {}
    for name, item in row.items():
        if isinstance(item, dict):
            out |= {f"{name} {inner}": value for inner, value in flat(item).items()}
        else:
            out[name] = item
    return out


def table(rows: dict[str, dict[str, Any]], *, numbered: bool = False) -> list[str]:
    """Show rows; ``numbered`` ones have no name."""
    flats = {name: flat(row) for name, row in rows.items()}
    fields = list(dict.fromkeys(field for row in flats.values() for field in row))
    first = [] if numbered else [""]
    out = [f"| {' | '.join([*first, *fields])} |", "|---" * (len(fields) + len(first)) + "|"]
    for name, row in flats.items():
        cells = [*([] if numbered else [name]), *(cell(row.get(field, "")) for field in fields)]
        out.append(f"| {' | '.join(cells)} |")
    return [*out, ""]


def cell(value: Any) -> str:
    """Show one value."""
    if isinstance(value, float):
        return f"{value:,.4g}" if value < 10_000 else f"{value:,.0f}"
    if isinstance(value, list | dict):
        return ", ".join(map(str, value)) or "none"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


if __name__ == "__main__":
    main()
