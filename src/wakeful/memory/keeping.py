"""The verbs on single memories: link, forget, history, approve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from wakeful.errors import MemoryContractError, NotFound
from wakeful.memory.remember import MENTIONED, REPLACES
from wakeful.needs import Flow, now, run
from wakeful.ops import Change, DeleteNodes, GetEdges, GetNodes, History, Log, PutEdges, UpdateNodes
from wakeful.records import MemoryEdge, MemoryNode, MemoryScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What a ``forget`` removed."""

    found: bool
    """False: the scope owns no such memory, and nothing was changed."""
    ids: tuple[str, ...] = ()
    """Rows that are gone: the one that was named, and facts that were taken from it alone."""
    edges: int = 0
    kept: tuple[str, ...] = ()
    """Facts that were taken from it and have other sources too; they stay."""

    def __bool__(self) -> bool:
        return self.found


def link(
    scope: MemoryScope,
    source: str,
    target: str,
    relation: str = "RELATED_TO",
    *,
    weight: float = 1.0,
    evidence: Sequence[str] = (),
    properties: dict[str, Any] | None = None,
) -> Flow[MemoryEdge]:
    """Relate two memories that the scope sees. Raises ``NotFound`` when it does not see both."""
    moment = yield from now()
    edge = MemoryEdge.new(
        scope=scope,
        source_id=source,
        target_id=target,
        relation=relation,
        at=moment,
        weight=weight,
        evidence=tuple(evidence),
        properties=properties or {},
    )
    yield from run(PutEdges(scope, (edge,)))
    return edge


def forget(scope: MemoryScope, node_id: str) -> Flow[Forgotten]:
    """Delete a memory that the scope owns, for good: row, edges, history, index entries, vector, and what was taken
    from it alone. What is not there, or is owned by another scope, is reported as not found."""
    rows, edges = yield from run(GetNodes(scope, (node_id,)), GetEdges(scope, (node_id,), limit_per_node=100_000))
    if not rows or rows[0].scope != scope:
        return Forgotten(found=False)
    derived = [edge.source_id for edge in edges if edge.relation == MENTIONED and edge.target_id == node_id]
    (facts,) = yield from run(GetNodes(scope, tuple(derived)))
    alone, shared = [], []
    for fact in facts:
        if fact.scope == scope and set(fact.source.entries) <= {node_id} and not _said_elsewhere(fact, rows[0]):
            alone.append(fact)
        elif fact.scope == scope:
            shared.append(fact)
    gone = (node_id, *(fact.id for fact in alone))
    ops: list[Any] = [DeleteNodes(scope, gone)]
    if shared:
        ops.insert(0, UpdateNodes(scope=scope, changes={fact.id: _without(fact, rows[0]) for fact in shared}))
    yield from run(*ops)
    return Forgotten(found=True, ids=gone, edges=len(edges), kept=tuple(fact.id for fact in shared))


def _said_elsewhere(fact: MemoryNode, origin: MemoryNode) -> bool:
    others = [each for each in fact.properties.get("said_in", ()) if each not in (origin.id, origin.ref)]
    return bool(others)


def _without(fact: MemoryNode, origin: MemoryNode) -> dict[str, Any]:
    entries = tuple(each for each in fact.source.entries if each != origin.id)
    return {"source": replace(fact.source, entries=entries)}


def history(scope: MemoryScope, node_id: str) -> Flow[tuple[Change, ...]]:
    """Every version of a memory, and of those that it replaced or that replaced it, oldest first.

    Raises ``NotFound`` when the scope does not see it.
    """
    (rows,) = yield from run(GetNodes(scope, (node_id,)))
    if not rows:
        raise NotFound(f"no memory {node_id!r} is visible in {scope.path}")
    chain: dict[str, MemoryNode] = {node_id: rows[0]}
    front: tuple[str, ...] = (node_id,)
    while front and len(chain) < 256:
        (edges,) = yield from run(GetEdges(scope, front, relation=REPLACES))
        ends = {end for edge in edges for end in (edge.source_id, edge.target_id)}
        named = {node.superseded_by for node in chain.values() if node.superseded_by}
        front = tuple(sorted((ends | named) - chain.keys()))
        if front:
            (nodes,) = yield from run(GetNodes(scope, front))
            chain |= {node.id: node for node in nodes}
            front = tuple(node.id for node in nodes)
    logs = yield from run(*(History(scope, each) for each in chain))
    changes: list[Change] = []
    for node, entries in zip(chain.values(), logs, strict=True):
        changes += entries or (_first(node),)
    return tuple(sorted(changes, key=lambda change: (change.at, change.node.asserted_at, change.node.id)))


def _first(node: MemoryNode) -> Change:
    return Change(node=node, action="add", reason="kept verbatim", at=node.recorded_at or node.asserted_at)


def approve(scope: MemoryScope, node_id: str, *, by: str = "user") -> Flow[MemoryNode]:
    """Make a draft active. Raises ``NotFound`` when the scope owns no such memory, ``MemoryContractError`` when it is
    no draft."""
    moment = yield from now()
    (rows,) = yield from run(GetNodes(scope, (node_id,)))
    if not rows or rows[0].scope != scope:
        raise NotFound(f"no memory {node_id!r} is owned by {scope.path}")
    node: MemoryNode = rows[0]
    if node.status == "active":
        return node
    if node.status != "draft":
        raise MemoryContractError(f"memory {node_id!r} is {node.status}; only a draft can be approved")
    properties = {name: value for name, value in node.properties.items() if name != "quarantine"}
    properties["approved_by"] = by
    approved = replace(node, status="active", properties=properties, updated_at=moment)
    yield from run(
        UpdateNodes(
            scope=scope,
            changes={node_id: {"status": "active", "properties": properties, "updated_at": moment}},
            expected={node_id: node.updated_at},
        ),
        Log(scope, (Change(node=approved, action="approve", reason=f"approved by {by}", at=moment),)),
    )
    return approved
