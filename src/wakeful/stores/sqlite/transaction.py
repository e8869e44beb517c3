"""What one transaction knows: its connection, the time, the scopes it met, and the counters it moves on."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import Any

from wakeful.records import MemoryNode, MemoryScope
from wakeful.stores import rules
from wakeful.stores.protocol import EmbeddingSpace
from wakeful.stores.sidecar import Sidecar
from wakeful.stores.sql import load_statements
from wakeful.stores.sqlite.rows import moment, read_node


@lru_cache(maxsize=1)
def statements() -> dict[str, str]:
    """Every named statement of the store."""
    return load_statements("wakeful.stores.sqlite", "queries")


@dataclass(frozen=True, slots=True)
class SeenScope:
    """A scope that the reader sees, as the file has it."""

    id: int
    path: str
    change: int
    gone: int


class Transaction:
    """Run named statements, and write the counters when it ends."""

    def __init__(self, connection: sqlite3.Connection, sidecar: Sidecar | None) -> None:
        self.sidecar = sidecar
        self.now = datetime.now(UTC)
        self._connection = connection
        self._statements = statements()
        self._scopes: dict[str, MemoryScope] = {}
        self._changed: dict[int, bool] = {}
        self._row = -1
        self._marks = 0
        self.touched_scopes: set[int] = set()
        """Scopes whose rows changed in this transaction."""

    def forget_scope(self, scope: int) -> None:
        """Drop what the process holds of an owner's rows."""
        if self.sidecar is not None:
            self.sidecar.forget(scope)

    def run(self, name: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> sqlite3.Cursor:
        """Run a named statement."""
        return self._connection.execute(self._statements[name], parameters)

    def run_many(self, name: str, parameters: Iterable[Sequence[Any]]) -> None:
        """Run a named statement for each set of parameters."""
        self._connection.executemany(self._statements[name], parameters)

    def one(self, name: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> Any:
        """Run a named statement and give its first row, or None."""
        return self._connection.execute(self._statements[name], parameters).fetchone()

    def nodes(self, name: str, parameters: dict[str, Any]) -> tuple[MemoryNode, ...]:
        """Run a statement that gives ``{columns}``, and read its nodes."""
        return tuple(read_node(row, self._scopes) for row in self.run(name, parameters))

    def numbered_nodes(self, name: str, parameters: dict[str, Any]) -> list[tuple[int, MemoryNode]]:
        """Run a statement that gives ``{columns}``; give row numbers and nodes."""
        return [(row[0], read_node(row, self._scopes)) for row in self.run(name, parameters)]

    def whole_nodes(self, name: str, parameters: dict[str, Any]) -> list[tuple[int, MemoryNode]]:
        """Run a statement that gives ``{columns}`` and a vector; give row numbers and nodes with vectors."""
        found = self.run(name, parameters)
        return [(row[0], read_node(row[:-1], self._scopes, vector=row[-1])) for row in found]

    def scope_id(self, scope: MemoryScope) -> int | None:
        """The number of a scope, None when nothing was ever written for it."""
        found = self.one("scope_id", {"path": scope.path})
        return None if found is None else int(found[0])

    def own_scope_id(self, scope: MemoryScope) -> int:
        """The number of a scope that is written to, made when it is not there."""
        found = self.scope_id(scope)
        if found is None:
            found = self.run("add_scope", {"path": scope.path}).lastrowid
            assert found is not None
        return found

    def seen_scopes(self, scope: MemoryScope) -> list[SeenScope]:
        """The scopes whose rows a reader sees, as far as they are there."""
        return [SeenScope(*row) for row in self.run("seen_scopes", {"paths": paths(scope)})]

    def scopes_below(self, scope: MemoryScope) -> list[tuple[int, str]]:
        """Numbers and paths of the scopes at or below this one, in path order."""
        return list(self.run("scopes_below", {"path": scope.path}))

    def erased_at(self, scope: MemoryScope) -> datetime | None:
        """When the scope, or one above it, was last erased."""
        marks = json.dumps([rules.tombstone_key(each) for each in scope.visible()])
        return moment(self.one("erased_at", {"marks": marks})[0])

    @cached_property
    def counters(self) -> tuple[int, int]:
        """The last change and the last row before this transaction."""
        change, row, *_ = self.one("counters")
        return int(change), int(row)

    @property
    def change(self) -> int:
        """The number of the change that is being made."""
        return self.counters[0] + 1 + self._marks

    def new_rows(self, count: int) -> int:
        """Take numbers for new rows; gives the first."""
        if self._row < 0:
            self._row = self.counters[1]
        first = self._row + 1
        self._row += count
        return first

    def changed(self, scope: int, *, gone: bool = False) -> None:
        """Note that rows of a scope changed, or are gone."""
        self._changed[scope] = self._changed.get(scope, False) or gone
        self.touched_scopes.add(scope)

    def mark(self) -> None:
        """Write down what was noted since the last mark, so that a search sees it; what follows is another change."""
        if not self._changed:
            return
        for scope, gone in self._changed.items():
            self.run("changed_scope", {"scope": scope, "change": self.change, "gone": gone})
        self.run("count_on", {"change": self.change, "row": max(self._row, self.counters[1])})
        self._changed.clear()
        self._marks += 1

    def embedding(self) -> EmbeddingSpace | None:
        """The declared model of the vectors."""
        *_, model, dimensions, _ = self.one("counters")
        return None if model is None else EmbeddingSpace(model, dimensions)

    def set_embedding(self, space: EmbeddingSpace | None) -> None:
        """Declare the model of the vectors."""
        model, dimensions = (None, 0) if space is None else (space.model, space.dimensions)
        self.run("set_embedding", {"model": model, "dimensions": dimensions})


def paths(scope: MemoryScope) -> str:
    """Paths of the scopes that a reader sees, as a JSON list."""
    return json.dumps([each.path for each in scope.visible()])


def ids_text(ids: Iterable[str]) -> str:
    """Ids as a JSON list, each once, in order."""
    return json.dumps(list(dict.fromkeys(ids)))
