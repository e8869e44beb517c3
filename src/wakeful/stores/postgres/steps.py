"""The logic of the store, written once: generators that yield statements and are sent their rows.

``store.py`` drives them over a sync or an async connection. A statement is a name in ``queries.sql`` (or several, joined)
and its parameters; no value is ever put into its text.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from wakeful.errors import SchemaError
from wakeful.ops import Visibility
from wakeful.records import MemoryScope

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement to run."""

    sql: str
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """What a statement gave."""

    rows: list[tuple[Any, ...]]
    count: int
    """Rows given or changed."""


Steps: TypeAlias = Generator[Statement, Result, T]


@cache
def _blocks() -> dict[str, str]:
    """Read ``queries.sql``: fragments are put in, names are keys."""
    text = (Path(__file__).parent / "queries.sql").read_text("utf-8")
    fragments: dict[str, str] = {}
    named: dict[str, str] = {}
    for kind, name, body in re.findall(
        r"^-- (fragment|name): (\S+)\n(.*?)(?=^-- (?:fragment|name): |\Z)", text, re.M | re.S
    ):
        if name in fragments or name in named:
            raise SchemaError(f"queries.sql has two blocks named {name}")
        (fragments if kind == "fragment" else named)[name] = body.strip()
    return {name: _filled(body, fragments) for name, body in named.items()}


def _filled(body: str, fragments: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: fragments[found[1]], body)


@cache
def sql(*names: str) -> str:
    """Give named blocks of ``queries.sql``, joined into one statement."""
    blocks = _blocks()
    return "\n".join(blocks[name] for name in names)


def run(*names: str, **values: Any) -> Steps[list[tuple[Any, ...]]]:
    """Run a statement and give its rows."""
    result = yield Statement(sql(*names), values)
    return result.rows


def run_count(*names: str, **values: Any) -> Steps[int]:
    """Run a statement and give how many rows it changed."""
    result = yield Statement(sql(*names), values)
    return result.count


def reader(scope: MemoryScope) -> dict[str, Any]:
    """Parameters of whoever reads at a scope: its exact path, and the paths whose rows it sees."""
    return {"path": scope.path, "paths": [each.path for each in scope.visible()]}


def shown(visibility: Visibility) -> dict[str, Any]:
    """Parameters of the one visibility predicate (fragment ``visible``)."""
    return {
        "at": visibility.at,
        "as_of": visibility.as_of,
        "statuses": list(visibility.statuses),
        "layers": None if visibility.layers is None else [str(layer) for layer in visibility.layers],
        "superseded": visibility.superseded,
        "expired": visibility.expired,
    }
