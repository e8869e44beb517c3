"""The verbs on single memories: link, history, approve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from wakeful.errors import MemoryContractError, NotFound
from wakeful.memory.remember import REPLACES
from wakeful.needs import Flow, now, run
from wakeful.ops import Change, GetEdges, GetNodes, History, Log, PutEdges, UpdateNodes
from wakeful.records import MemoryEdge, MemoryNode, MemoryScope


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
