"""SQL kept in files of its own, statement by statement under ``-- name: NAME`` lines."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def named_sql(file: str, package: str = "wakeful.stores") -> dict[str, str]:
    """Load a file's statements by name."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in files(package).joinpath(file).read_text("utf-8").splitlines():
        if line.startswith("-- name: "):
            lines = found.setdefault(line.removeprefix("-- name: ").strip(), [])
        else:
            lines.append(line)
    return {name: "\n".join(body).strip() for name, body in found.items()}
