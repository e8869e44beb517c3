"""Forget one memory for good, with what was taken or derived from it.

| derivative | what becomes of it |
|---|---|
| a fact taken from this memory alone | goes |
| a fact that has other sources too, or a twin that it was merged into | stays, and no longer names it |
| the digest that it stands in | goes; its other turns are current again, and are digested anew |
| what was retired behind it: turns of a digest, copies of a fact | goes: it says the same |
| an entity that nothing else mentions | goes |
| the parent of a cluster that it belongs to | goes; the next cycle that meets the cluster writes it anew |
| the profile | loses its lines |
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from wakeful.memory.remember import MENTIONED
from wakeful.needs import Flow, now, run
from wakeful.ops import DeleteNodes, GetEdges, GetNodes, QueryNodes, UpdateNodes, Visibility
from wakeful.records import MemoryEdge, MemoryLayer, MemoryNode, MemoryScope

TENDING = "consolidation"
"""``source.by`` of what cycles make."""
DIGEST, PROFILE = "digest", "profile"
"""Labels that cycles give."""
MENTIONS, PART_OF = "MENTIONS", "PART_OF"
"""Relations that cycles make: from a memory to an entity, and from an entity to its cluster's parent."""
MOST = 100_000
"""Edges of one memory that are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What a ``forget`` removed."""

    found: bool
    """False: the scope owns no such memory, and nothing was changed."""
    ids: tuple[str, ...] = ()
    """Rows that are gone: the one that was named, and what was taken or derived from it alone."""
    edges: int = 0
    kept: tuple[str, ...] = ()
    """Facts that were taken from it and have other sources too; they stay."""
    restored: tuple[str, ...] = ()
    """Turns that are current again, since the digest that stood for them is gone."""

    def __bool__(self) -> bool:
        return self.found


@dataclass(slots=True)
class _Work:
    """What is to go and what is to be changed."""

    scope: MemoryScope
    gone: dict[str, MemoryNode] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
    changes: dict[str, dict[str, Any]] = field(default_factory=dict)

    def own(self, nodes: Iterable[MemoryNode]) -> list[MemoryNode]:
        return [node for node in nodes if node.scope == self.scope and node.id not in self.gone]

    def let_go(self, nodes: Iterable[MemoryNode]) -> None:
        self.gone |= {node.id: node for node in self.own(nodes)}

    def unname(self, nodes: Iterable[MemoryNode]) -> None:
        """Take the names of what is gone out of the sources of what stays."""
        for node in self.own(nodes):
            entries = tuple(each for each in node.source.entries if each not in self.gone)
            self.changes[node.id] = {"source": replace(node.source, entries=entries)}


def forget(scope: MemoryScope, node_id: str) -> Flow[Forgotten]:
    """Delete a memory that the scope owns, for good: row, edges, history, index entries, vector, and what was taken or
    derived from it. What is not there, or is owned by another scope, is reported as not found."""
    rows, edges = yield from run(GetNodes(scope, (node_id,)), GetEdges(scope, (node_id,), limit_per_node=MOST))
    if not rows or rows[0].scope != scope:
        return Forgotten(found=False)
    work = _Work(scope)
    work.let_go(rows)
    yield from _facts(work, rows[0], edges)
    yield from _behind(work)
    restored = yield from _digests(work)
    yield from _entities(work)
    yield from _profile(work)
    ops: list[Any] = [DeleteNodes(scope, tuple(work.gone))]
    changes = {key: values for key, values in work.changes.items() if key not in work.gone}
    if changes:
        ops.insert(0, UpdateNodes(scope=scope, changes=changes))
    yield from run(*ops)
    return Forgotten(
        found=True, ids=tuple(work.gone), edges=len(edges), kept=tuple(work.kept), restored=tuple(restored)
    )


def _facts(work: _Work, origin: MemoryNode, edges: Collection[MemoryEdge]) -> Flow[None]:
    """Facts that were taken from it, and the twin that it was merged into."""
    derived = [edge.source_id for edge in edges if edge.relation == MENTIONED and edge.target_id == origin.id]
    heir = (origin.superseded_by,) if origin.status == "retracted" and origin.superseded_by else ()
    (facts,) = yield from run(GetNodes(work.scope, (*derived, *heir)))
    facts = [fact for fact in facts if fact.label != DIGEST]
    alone = [
        fact
        for fact in facts
        if fact.id not in heir and set(fact.source.entries) <= {origin.id} and not _said_elsewhere(fact, origin)
    ]
    work.let_go(alone)
    shared = work.own(facts)
    work.unname(shared)
    work.kept += [fact.id for fact in shared]


def _said_elsewhere(fact: MemoryNode, origin: MemoryNode) -> bool:
    return any(each not in (origin.id, origin.ref) for each in fact.properties.get("said_in", ()))


def _behind(work: _Work) -> Flow[None]:
    """Rows that were retired behind what goes."""
    front = tuple(work.gone)
    while front:
        entries = tuple({entry for key in front for entry in work.gone[key].source.entries} - work.gone.keys())
        found = (yield from run(GetNodes(work.scope, entries)))[0] if entries else ()
        behind = [node for node in found if node.status == "retracted" and node.superseded_by in work.gone]
        work.let_go(behind)
        front = tuple(node.id for node in behind)


def _digests(work: _Work) -> Flow[list[str]]:
    """Digests that hold what goes: they go too, and their other turns come back."""
    heirs = {node.superseded_by for node in work.gone.values() if node.superseded_by} - work.gone.keys()
    if not heirs:
        return []
    (found,) = yield from run(GetNodes(work.scope, tuple(heirs)))
    digests = {node.id: node for node in work.own(found) if node.label == DIGEST and node.source.by == TENDING}
    work.let_go(digests.values())
    entries = tuple({entry for node in digests.values() for entry in node.source.entries})
    (turns,) = yield from run(GetNodes(work.scope, entries))
    back = [turn.id for turn in work.own(turns) if turn.status == "retracted" and turn.superseded_by in digests]
    work.changes |= {key: {"status": "active", "superseded_at": None, "superseded_by": None} for key in back}
    return back


def _entities(work: _Work) -> Flow[None]:
    """Entities that nothing else mentions, and the parents of the clusters that it belonged to."""
    (out,) = yield from run(GetEdges(work.scope, tuple(work.gone), MENTIONS, "out", MOST))
    keys = tuple({edge.target_id for edge in out} - work.gone.keys())
    if not keys:
        return
    entities, mentions, parts = yield from run(
        GetNodes(work.scope, keys),
        GetEdges(work.scope, keys, MENTIONS, "in", MOST),
        GetEdges(work.scope, keys, PART_OF, "out", MOST),
    )
    made = [node for node in work.own(entities) if node.source.by == TENDING]
    elsewhere = {edge.target_id for edge in mentions if edge.source_id not in work.gone}
    work.let_go(node for node in made if node.id not in elsewhere)
    work.unname(node for node in made if node.id in elsewhere)
    (parents,) = yield from run(GetNodes(work.scope, tuple({edge.target_id for edge in parts})))
    work.let_go(node for node in parents if node.source.by == TENDING)


def _profile(work: _Work) -> Flow[None]:
    """The standing preferences, without the lines of what goes."""
    moment = yield from now()
    query = QueryNodes(
        scope=work.scope,
        visibility=Visibility(at=moment, layers=(MemoryLayer.SEMANTIC,)),
        label=PROFILE,
        owned_only=True,
    )
    (found,) = yield from run(query)
    lines = {line for node in work.gone.values() for line in node.content.splitlines()}
    for node in work.own(found):
        if node.source.by != TENDING or not set(node.source.entries) & work.gone.keys():
            continue
        left = [line for line in node.content.splitlines() if line not in lines]
        if not left:
            work.let_go((node,))
            continue
        work.unname((node,))
        work.changes[node.id]["content"] = "\n".join(left)
