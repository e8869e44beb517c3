"""The tables of the in-memory store: plain dictionaries, who sees and who owns their rows, and how to undo a change.

``_put`` and ``_drop`` are the only ways to change a table; both note how to undo it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from wakeful.ops import Change, Visibility
from wakeful.records import MemoryEdge, MemoryNode, MemoryScope
from wakeful.stores import rules
from wakeful.stores.protocol import EmbeddingSpace
from wakeful.stores.vectors import unit
from wakeful.terms import index_terms

_NOTHING = object()


@dataclass(frozen=True, slots=True)
class Row:
    """A node with what the indexes need of it."""

    node: MemoryNode
    """Without its vector."""
    vector: bytes | None
    place: int
    """Order of first writing."""
    terms: Counter[str]
    length: int

    def whole(self) -> MemoryNode:
        """Give the node with its vector."""
        return self.node if self.vector is None else replace(self.node, embedding=self.vector)


@dataclass(frozen=True, slots=True)
class Lease:
    """Who works on a scope, until when."""

    owner: str
    token: int
    until: datetime


class Tables:
    """Hold the rows and their indexes."""

    def __init__(self, embedding: EmbeddingSpace | None) -> None:
        self._undo: list[tuple[dict[Any, Any], Any, Any]] = []
        self._rows: dict[str, Row] = {}
        self._owners: defaultdict[MemoryScope, dict[str, None]] = defaultdict(dict)
        self._postings: defaultdict[tuple[MemoryScope, str], dict[str, None]] = defaultdict(dict)
        self._edges: dict[str, MemoryEdge] = {}
        self._touching: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._history: dict[str, tuple[Change, ...]] = {}
        self._claims: dict[str, datetime] = {}
        self._leases: dict[MemoryScope, Lease] = {}
        self._states: dict[tuple[MemoryScope, str], str] = {}
        self._tombstones: dict[str, datetime] = {}
        self._meta: dict[str, Any] = {"embedding": embedding, "token": 0, "place": 0}

    @property
    def embedding(self) -> EmbeddingSpace | None:
        """The declared model of the vectors."""
        held: EmbeddingSpace | None = self._meta["embedding"]
        return held

    def _begin(self) -> None:
        """Start a transaction."""
        self._undo.clear()

    def _roll_back(self) -> None:
        """Undo what was done since the transaction began."""
        while self._undo:
            table, key, held = self._undo.pop()
            if held is _NOTHING:
                table.pop(key, None)
            else:
                table[key] = held

    def _put(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        self._undo.append((table, key, table.get(key, _NOTHING)))
        table[key] = value

    def _drop(self, table: dict[Any, Any], key: Any) -> bool:
        if key not in table:
            return False
        self._undo.append((table, key, table.pop(key)))
        return True

    def _next(self, counter: str) -> int:
        self._put(self._meta, counter, self._meta[counter] + 1)
        value: int = self._meta[counter]
        return value

    def _write(self, node: MemoryNode) -> None:
        """Put a node and its index entries in the place of what was there."""
        old = self._rows.get(node.id)
        place = old.place if old is not None else self._next("place")
        if old is not None:
            self._unindex(old)
        terms = Counter(index_terms(f"{node.label}\n{node.content}"))
        vector = None if node.embedding is None else unit(node.embedding, f"the vector of node {node.id!r}")
        row = Row(replace(node, embedding=None), vector, place, terms, terms.total())
        self._put(self._rows, node.id, row)
        self._put(self._owners[node.scope], node.id, None)
        for term in terms:
            self._put(self._postings[node.scope, term], node.id, None)

    def _unindex(self, row: Row) -> None:
        for term in row.terms:
            self._drop(self._postings[row.node.scope, term], row.node.id)

    def _remove(self, row: Row) -> None:
        """Drop a node with everything that hangs on it."""
        self._unindex(row)
        for edge_id in list(self._touching[row.node.id]):
            self._remove_edge(edge_id)
        self._drop(self._history, row.node.id)
        self._drop(self._claims, row.node.id)
        self._drop(self._owners[row.node.scope], row.node.id)
        self._drop(self._rows, row.node.id)

    def _remove_edge(self, edge_id: str) -> bool:
        edge = self._edges.get(edge_id)
        if edge is None:
            return False
        self._drop(self._touching[edge.source_id], edge_id)
        self._drop(self._touching[edge.target_id], edge_id)
        return self._drop(self._edges, edge_id)

    def _seen(self, scope: MemoryScope, visibility: Visibility | None = None) -> Iterator[Row]:
        """Rows of the scope and its ancestors that the reader may be given."""
        for owner in scope.visible():
            for node_id in self._owners.get(owner, ()):
                row = self._rows[node_id]
                if visibility is None or visibility.admits(row.node):
                    yield row

    def _below(self, scope: MemoryScope) -> list[MemoryScope]:
        """Scopes at or below this one that own rows, in path order."""
        found = [owner for owner, held in self._owners.items() if held and scope.contains(owner)]
        return sorted(found, key=lambda each: each.path)

    def _visible_row(self, scope: MemoryScope, node_id: str) -> Row | None:
        row = self._rows.get(node_id)
        return row if row is not None and scope.sees(row.node.scope) else None

    def _owned(self, scope: MemoryScope, node_id: str) -> Row | None:
        row = self._rows.get(node_id)
        return row if row is not None and row.node.scope == scope else None

    def _erased_at(self, scope: MemoryScope) -> datetime | None:
        found = [self._tombstones.get(rules.tombstone_key(each)) for each in scope.visible()]
        return max((moment for moment in found if moment is not None), default=None)
