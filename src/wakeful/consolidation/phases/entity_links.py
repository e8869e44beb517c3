"""Entities named in recent episodes become nodes, linked from the episodes that name them.

An entity needs ``entity_mentions`` episodes of the window before it becomes a node; afterwards each further episode is
linked to it. The node's id follows from the scope and the folded name, so two cycles make one node.
"""

from __future__ import annotations

from collections import defaultdict

from wakeful.consolidation.phase import Cycle, Outcome, Phase, least_trust
from wakeful.consolidation.wording import entities, folded
from wakeful.ids import content_id
from wakeful.needs import Flow, run
from wakeful.ops import GetEdges, GetNodes, PutEdges, PutNodes
from wakeful.records import MemoryEdge, MemoryLayer, MemoryNode, MemoryScope, Source

RELATION = "MENTIONS"
LABEL = "entity"


def entity_id(scope: MemoryScope, name: str) -> str:
    """The id of an entity's node."""
    return content_id(scope.path, folded(name), prefix="en-")


def entity_links(cycle: Cycle) -> Flow[Outcome]:
    """Find entities in the window's episodes and link them."""
    episodes = cycle.layer(MemoryLayer.EPISODIC)
    mentions: dict[str, list[MemoryNode]] = defaultdict(list)
    names: dict[str, str] = {}
    for episode in reversed(episodes):
        for name in entities(episode.content):
            if folded(name):
                key = entity_id(cycle.scope, name)
                names.setdefault(key, name)
                mentions[key].append(episode)
    if not mentions:
        return Outcome(rows_read=len(episodes))
    known, edges = yield from run(
        GetNodes(cycle.scope, tuple(mentions)), GetEdges(cycle.scope, tuple(mentions), RELATION, "in", 100_000)
    )
    existing = {node.id for node in known}
    linked = {(edge.source_id, edge.target_id) for edge in edges}
    batches, changed = [], 0
    for key, found in mentions.items():
        if key not in existing and len(found) < cycle.settings.entity_mentions:
            continue
        fresh = [episode for episode in found if (episode.id, key) not in linked]
        if not fresh:
            continue
        nodes = () if key in existing else (_entity(cycle, key, names[key], found),)
        links = tuple(
            MemoryEdge.new(
                scope=cycle.scope,
                source_id=episode.id,
                target_id=key,
                relation=RELATION,
                weight=0.8,
                at=cycle.started_at,
                provenance="consolidation",
                evidence=(episode.id,),
            )
            for episode in fresh
        )
        put = (PutNodes(cycle.scope, nodes),) if nodes else ()
        batches.append((*put, PutEdges(cycle.scope, links)))
        changed += len(nodes) + len(links)
    merged = _joined(batches, cycle.settings.batch)
    return Outcome(batches=merged, changed=changed, rows_read=len(episodes) + len(known) + len(edges))


def _entity(cycle: Cycle, key: str, name: str, found: list[MemoryNode]) -> MemoryNode:
    return MemoryNode.new(
        id=key,
        scope=cycle.scope,
        layer=MemoryLayer.SEMANTIC,
        label=LABEL,
        content=name,
        at=found[0].asserted_at,
        importance=4.0,
        source=Source(by="consolidation", entries=tuple(node.id for node in found[:8]), trust=least_trust(found)),
    )


def _joined(batches: list[tuple[PutNodes | PutEdges, ...]], size: int) -> tuple[tuple[PutNodes | PutEdges, ...], ...]:
    """Join small batches into transactions of about ``size`` operations."""
    joined: list[tuple[PutNodes | PutEdges, ...]] = []
    current: list[PutNodes | PutEdges] = []
    for batch in batches:
        current += batch
        if len(current) >= size:
            joined.append(tuple(current))
            current = []
    return (*joined, tuple(current)) if current else tuple(joined)


ENTITY_LINKS = Phase(
    name="entity_links", reads=("content",), writes=("nodes:entity", f"edges:{RELATION}"), run=entity_links
)
