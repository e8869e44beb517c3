"""Write ``RESULTS.md`` from the results that the project keeps.

    python bench/report.py [--keep NAME ...]

``--keep`` first copies the latest result of a benchmark from ``bench/out`` to ``bench/results``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from common import BENCH, OUT, RESULTS

HEAD = """# Results

Written by `python bench/report.py` from `bench/results/*.json`; do not edit.

Measured on two cores that ran other work at the same time: compare figures of one table, and do not quote times. What falls
short of what we want: cold compaction of 5,000 messages against LangChain's middleware (0.34 of its time without a digest,
above 1 with one), the whole of `recall` (7 ms and more, though each index lookup is short) and with it assembly over a
memory, `remember` below 8,000 turns a second, co-occurrence in a burst of 4,000 nodes (0.75 s), and PostgreSQL's recall.

"""


def main() -> None:
    """Copy what is to be kept, then write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--keep", nargs="*", default=[], metavar="NAME", help="results to take over from bench/out")
    arguments = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    for name in arguments.keep:
        shutil.copyfile(OUT / f"{name}.json", RESULTS / f"{name}.json")
    pages = [page(json.loads(path.read_text())) for path in sorted(RESULTS.glob("*.json"))]
    (BENCH / "RESULTS.md").write_text(HEAD + "\n".join(pages))


def page(record: dict[str, Any]) -> str:
    """Write one benchmark's section."""
    origin = ", ".join(str(record[key]) for key in ("machine", "python", "commit", "date") if record.get(key))
    lines = [
        f"## {record['bench']}",
        "",
        f"`{record['command']}`",
        "",
        f"{origin}, input {record.get('input', '-')}",
        "",
    ]
    return "\n".join(lines + shown(record["result"])) + "\n"


def shown(value: Any, title: str = "") -> list[str]:
    """Show a result: rows of the same fields as a table, other values as a list; long lists of rows are left to the file."""
    if isinstance(value, dict):
        rows = {name: row for name, row in value.items() if isinstance(row, dict)}
        plain = {name: item for name, item in value.items() if not isinstance(item, dict | list)}
        lists = {name: item for name, item in value.items() if isinstance(item, list)}
        out = [f"### {title}", ""] if title else []
        out += [f"- {name}: {cell(item)}" for name, item in plain.items()] + ([""] if plain else [])
        for name, item in lists.items():
            rows_only = bool(item) and isinstance(item[0], dict)
            out.append(f"- {name}: {len(item)} rows in the file" if rows_only else f"- {name}: {item}")
        out += [""] if lists else []
        if rows and len({tuple(row) for row in rows.values()}) == 1 and all(rows.values()):
            return out + table(rows)
        for name, row in rows.items():
            out += shown(row, name)
        return out
    return [cell(value), ""]


def table(rows: dict[str, dict[str, Any]]) -> list[str]:
    """Show rows of the same fields."""
    fields = list(next(iter(rows.values())))
    out = ["| | " + " | ".join(fields) + " |", "|---" * (len(fields) + 1) + "|"]
    for name, row in rows.items():
        out.append(f"| {name} | " + " | ".join(cell(row[key]) for key in fields) + " |")
    return [*out, ""]


def cell(value: Any) -> str:
    """Show one value."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


if __name__ == "__main__":
    main()
