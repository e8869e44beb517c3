"""The verbs on whole scopes: export, import, erase, re-embed.

Rules of the file:

- An export holds every layer, status and version; what an import meets and is as new or newer stays as it is.
- A scope that was erased takes no row recorded before the erasure: what was erased does not come back by an old export.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from wakeful.errors import ConfigError, MemoryContractError, NotFound, StaleWriter
from wakeful.ids import content_id
from wakeful.memory.embedding import EMBEDDED, text_of
from wakeful.memory.export import Export
from wakeful.memory.receipts import Erased, Imported, Reembedded
from wakeful.memory.settings import WritingSettings
from wakeful.needs import Flow, embed, now, run
from wakeful.ops import (
    Change,
    Erase,
    GetNodes,
    History,
    ListScopes,
    Log,
    PutEdges,
    PutNodes,
    QuerySubtree,
    SetEmbedding,
    Stats,
    UpdateNodes,
)
from wakeful.records import MemoryEdge, MemoryNode, MemoryScope


def export(scope: MemoryScope, settings: WritingSettings, *, vectors: bool = True) -> Flow[Export]:
    """Give every row, edge and version of the scope and of all below it."""
    nodes: list[MemoryNode] = []
    changes: list[Change] = []
    edges: Sequence[MemoryEdge] = ()
    after: str | None = None
    while True:
        first = after is None
        (found,) = yield from run(QuerySubtree(scope=scope, limit=settings.batch, after=after, edges=first))
        rows = found
        if first:
            rows, edges = found
        nodes += rows
        logs = yield from run(*(History(row.scope, row.id) for row in rows))
        changes += [entry for log in logs for entry in log]
        if len(rows) < settings.batch:
            return Export.of(nodes, edges, changes, vectors=vectors)
        after = rows[-1].id


def import_(
    scope: MemoryScope, data: Any, settings: WritingSettings, *, source: MemoryScope | None = None
) -> Flow[Imported]:
    """Write an export into the scope. Importing twice changes nothing the second time.

    ``source``: the scope that was exported; its rows come to stand under ``scope`` with new ids that follow from the
    old ones. None: rows keep scope and id, and one that is not at or below ``scope`` is refused.
    """
    records = data if isinstance(data, Export) else Export.read(data)
    move = _Move(scope, source)
    nodes = [move.node(node) for node in records.nodes()]
    edges = [move.edge(edge) for edge in records.edges()]
    changes = [replace(change, node=move.node(change.node)) for change in records.changes()]
    by_owner: defaultdict[MemoryScope, list[MemoryNode]] = defaultdict(list)
    refused: list[tuple[str, str]] = []
    for node in nodes:
        if scope.contains(node.scope):
            by_owner[node.scope].append(node)
        else:
            refused.append((node.id, f"it is owned by {node.scope.path}, which is not at or below {scope.path}"))
    total = Imported(refused=tuple(refused))
    # Ancestors first: an edge may lead to them.
    for owner in sorted(by_owner, key=lambda each: len(each.levels)):
        own = [change for change in changes if change.node.scope == owner]
        total = _added(total, (yield from _import_owner(owner, by_owner[owner], own, settings)))
    return (yield from _import_edges(scope, edges, total, settings))


class _Move:
    """Carries rows from one scope to another; without a source everything stays."""

    def __init__(self, scope: MemoryScope, source: MemoryScope | None) -> None:
        self.scope, self.source = scope, source

    def _owner(self, owner: MemoryScope) -> MemoryScope:
        if self.source is None:
            return owner
        if not self.source.contains(owner):
            raise ConfigError(f"the export holds rows of {owner.path}, which is not at or below {self.source.path}")
        return replace(self.scope, levels=(*self.scope.levels, *owner.levels[len(self.source.levels) :]))

    def _id(self, node_id: str) -> str:
        return node_id if self.source is None else content_id(self.scope.path, node_id, prefix="i-")

    def node(self, node: MemoryNode) -> MemoryNode:
        if self.source is None:
            return node
        return replace(
            node,
            id=self._id(node.id),
            scope=self._owner(node.scope),
            superseded_by=self._id(node.superseded_by) if node.superseded_by else None,
            source=replace(node.source, entries=tuple(self._id(each) for each in node.source.entries)),
        )

    def edge(self, edge: MemoryEdge) -> MemoryEdge:
        if self.source is None:
            return edge
        owner = self._owner(edge.scope)
        ends = self._id(edge.source_id), self._id(edge.target_id)
        return replace(
            edge,
            id=content_id(owner.path, ends[0], edge.relation, ends[1], prefix="x-"),
            scope=owner,
            source_id=ends[0],
            target_id=ends[1],
            evidence=tuple(self._id(each) for each in edge.evidence),
        )


def _added(total: Imported, more: Imported) -> Imported:
    return Imported(
        nodes=total.nodes + more.nodes,
        edges=total.edges + more.edges,
        changes=total.changes + more.changes,
        unchanged=total.unchanged + more.unchanged,
        refused=(*total.refused, *more.refused),
    )


def _import_owner(
    owner: MemoryScope, nodes: Sequence[MemoryNode], changes: Iterable[Change], settings: WritingSettings
) -> Flow[Imported]:
    logs: defaultdict[str, list[Change]] = defaultdict(list)
    for change in changes:
        logs[change.node.id].append(change)
    total = Imported()
    for start in range(0, len(nodes), settings.batch):
        part = nodes[start : start + settings.batch]
        total = _added(total, (yield from _import_part(owner, part, logs)))
    return total


def _import_part(
    owner: MemoryScope, part: Sequence[MemoryNode], logs: Mapping[str, Sequence[Change]]
) -> Flow[Imported]:
    (rows,) = yield from run(GetNodes(owner, tuple(node.id for node in part)))
    held = {row.id: row for row in rows if row.scope == owner}
    fresh = [node for node in part if node.id not in held or held[node.id].updated_at < node.updated_at]
    known = [node.id for node in fresh if node.id in held]
    seen = dict(zip(known, (yield from run(*(History(owner, each) for each in known))), strict=True))
    entries = [entry for node in fresh for entry in logs.get(node.id, ()) if not _holds(seen.get(node.id, ()), entry)]
    ops: list[Any] = [PutNodes(owner, tuple(fresh))] if fresh else []
    if entries:
        ops.append(Log(owner, tuple(entries)))
    try:
        yield from run(*ops)
    except StaleWriter:
        reason = "its scope was erased after it was recorded"
        return Imported(refused=tuple((node.id, reason) for node in fresh), unchanged=len(part) - len(fresh))
    except MemoryContractError as error:
        return Imported(refused=tuple((node.id, str(error)) for node in fresh), unchanged=len(part) - len(fresh))
    return Imported(nodes=len(fresh), changes=len(entries), unchanged=len(part) - len(fresh))


def _holds(log: Iterable[Change], entry: Change) -> bool:
    return any((each.at, each.action, each.reason) == (entry.at, entry.action, entry.reason) for each in log)


def _import_edges(
    scope: MemoryScope, edges: Sequence[MemoryEdge], total: Imported, settings: WritingSettings
) -> Flow[Imported]:
    if not edges:
        return total
    ((_, there),) = yield from run(QuerySubtree(scope=scope, limit=1, edges=True))
    held = {edge.id: edge for edge in there}
    refused = list(total.refused)
    gone = {node_id for node_id, _ in refused}
    by_owner: defaultdict[MemoryScope, list[MemoryEdge]] = defaultdict(list)
    for edge in edges:
        if not scope.contains(edge.scope) or edge.source_id in gone or edge.target_id in gone:
            refused.append((edge.id, "one of its ends was not imported, or its owner is not at or below the scope"))
        elif held.get(edge.id) != edge:
            by_owner[edge.scope].append(edge)
    written = 0
    for owner, fresh in by_owner.items():
        for start in range(0, len(fresh), settings.batch):
            part = fresh[start : start + settings.batch]
            bad = yield from _put_edges(owner, part)
            refused += bad
            written += len(part) - len(bad)
    return replace(total, edges=written, refused=tuple(refused))


def _put_edges(owner: MemoryScope, edges: Sequence[MemoryEdge]) -> Flow[list[tuple[str, str]]]:
    """Write edges together, and one by one when one of them can't be; gives the ids of those that can't, and why."""
    try:
        yield from run(PutEdges(owner, tuple(edges)))
    except (NotFound, MemoryContractError, StaleWriter) as error:
        if len(edges) == 1:
            return [(edges[0].id, str(error))]
        bad = []
        for edge in edges:
            bad += yield from _put_edges(owner, (edge,))
        return bad
    return []


def erase(scope: MemoryScope, *, dry_run: bool = False) -> Flow[Erased]:
    """Erase the scope and all below it, for good, and look afterwards whether anything is left."""
    moment = yield from now()
    if dry_run:
        return (yield from _count(scope, moment))
    (counts,) = yield from run(Erase(scope, moment))
    rows, scopes = yield from run(QuerySubtree(scope=scope, limit=1, edges=True), ListScopes(scope, limit=1))
    nodes, edges = rows
    return Erased(
        scope=scope,
        at=moment,
        counts={name: count for name, count in counts.items() if name != "pending"},
        pending=tuple(counts.get("pending", ())),
        remaining=len(nodes) + len(edges) + len(scopes),
    )


def _count(scope: MemoryScope, at: datetime) -> Flow[Erased]:
    """Count what an erasure would take."""
    counts = dict.fromkeys(("nodes", "edges", "history", "scopes"), 0)
    after: str | None = None
    while True:
        (scopes,) = yield from run(ListScopes(scope, limit=_PAGE, after=after))
        for held in (yield from run(*map(Stats, scopes))) if scopes else ():
            for name in ("nodes", "edges", "history"):
                counts[name] += held[name]
        counts["scopes"] += len(scopes)
        if len(scopes) < _PAGE:
            return Erased(scope=scope, at=at, counts=counts, remaining=counts["nodes"] + counts["edges"])
        after = scopes[-1].path


_PAGE = 500
"""Scopes counted in one transaction."""


def reembed(
    scope: MemoryScope | None, model: str, dimensions: int, settings: WritingSettings, *, limit: int | None = None
) -> Flow[Reembedded]:
    """Give every row a vector of the model in use, batch by batch; what is done stays done when it is interrupted.

    Meanwhile rows are found by words. ``scope`` None: the whole store. ``limit``: stop after so many rows.
    """
    yield from run(SetEmbedding(model, dimensions))
    roots = [scope] if scope is not None else (yield from _roots())
    done = remaining = 0
    for root in roots:
        after: str | None = None
        while True:
            rows: Sequence[MemoryNode]
            (rows,) = yield from run(QuerySubtree(scope=root, stale_for=model, limit=settings.batch, after=after))
            needing = [row for row in rows if row.layer in EMBEDDED and text_of(row)]
            room = len(needing) if limit is None else max(0, limit - done)
            remaining += len(needing[room:])
            done += yield from _reembed_part(needing[:room], model)
            if len(rows) < settings.batch:
                break
            after = rows[-1].id
    return Reembedded(model=model, done=done, remaining=remaining)


def _roots() -> Flow[list[MemoryScope]]:
    """Every scope that owns rows and lies below no other that does."""
    (scopes,) = yield from run(ListScopes())
    roots: list[MemoryScope] = []
    for each in sorted(scopes, key=lambda scope: len(scope.levels)):
        if not any(root.contains(each) for root in roots):
            roots.append(each)
    return roots


def _reembed_part(rows: Sequence[MemoryNode], model: str) -> Flow[int]:
    vectors = yield from embed(tuple(text_of(row) for row in rows))
    by_owner: defaultdict[MemoryScope, dict[str, dict[str, Any]]] = defaultdict(dict)
    seen: defaultdict[MemoryScope, dict[str, datetime]] = defaultdict(dict)
    for row, vector in zip(rows, vectors, strict=True):
        by_owner[row.scope][row.id] = {"embedding": vector, "embedding_model": model}
        seen[row.scope][row.id] = row.updated_at
    ops = [UpdateNodes(scope=owner, changes=changes, expected=seen[owner]) for owner, changes in by_owner.items()]
    return sum((yield from run(*ops)))
