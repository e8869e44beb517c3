"""Clusters get a named parent: one for each entity that enough notes mention, refreshed when its members change.

The parent's text names the entity, the number of notes and their most telling words; its id follows from the entity's. An
entity is looked at when one of its members lies in the window, so the cost grows with what is recent.
"""

from __future__ import annotations

import math
from collections import Counter

from wakeful.consolidation.phase import Cycle, Outcome, Phase, mark_of, marked
from wakeful.consolidation.phases.entity_links import RELATION as MENTIONS
from wakeful.consolidation.wording import folded
from wakeful.ids import content_id
from wakeful.needs import Flow, run
from wakeful.ops import GetEdges, GetNodes, PutEdges, PutNodes
from wakeful.records import MemoryEdge, MemoryLayer, MemoryNode, Source

LABEL = "cluster"
RELATION = "PART_OF"
TERMS = 6
MOST_MEMBERS = 500


def terms_of(texts: list[str], count: int) -> tuple[str, ...]:
    """The words that most of the texts share and that are not short: by number of texts, then by length, then by name."""
    seen = Counter(word for text in texts for word in set(folded(text).split()) if len(word) > 3 and not word.isdigit())
    ranked = sorted(seen.items(), key=lambda item: (-item[1] * math.log(len(item[0])), item[0]))
    return tuple(word for word, _ in ranked[:count])


def meta_nodes(cycle: Cycle) -> Flow[Outcome]:
    """Make and refresh the parents of the clusters that the window touches."""
    recent = tuple(node.id for node in cycle.own(cycle.recent))
    if not recent:
        return Outcome()
    (touching,) = yield from run(GetEdges(cycle.scope, recent, MENTIONS, "out"))
    keys = tuple(sorted({edge.target_id for edge in touching if edge.scope == cycle.scope}))
    if not keys:
        return Outcome(rows_read=len(touching))
    edges, entities = yield from run(
        GetEdges(cycle.scope, keys, MENTIONS, "in", MOST_MEMBERS), GetNodes(cycle.scope, keys)
    )
    members: dict[str, list[str]] = {key: [] for key in keys}
    for edge in edges:
        members.setdefault(edge.target_id, []).append(edge.source_id)
    ripe = {key: sorted(set(ids)) for key, ids in members.items() if len(set(ids)) >= cycle.settings.cluster_members}
    parents = {key: content_id(cycle.scope.path, key, prefix="cl-") for key in ripe}
    wanted = tuple({node_id for ids in ripe.values() for node_id in ids})
    (known, nodes) = yield from run(GetNodes(cycle.scope, tuple(parents.values())), GetNodes(cycle.scope, wanted))
    old = {node.id: node for node in known}
    texts = {node.id: node for node in nodes}
    names = {node.id: node for node in entities}
    batches = []
    changed = 0
    for key, ids in ripe.items():
        digest = content_id(*ids)
        previous = old.get(parents[key])
        if key not in names or (previous is not None and mark_of(previous, "members") == digest):
            continue
        parent = _parent(cycle, parents[key], names[key], [texts[i] for i in ids if i in texts], previous, digest)
        link = MemoryEdge.new(
            scope=cycle.scope,
            source_id=key,
            target_id=parent.id,
            relation=RELATION,
            weight=0.6,
            at=cycle.started_at,
            provenance="consolidation",
        )
        batches.append((PutNodes(cycle.scope, (parent,)), PutEdges(cycle.scope, (link,))))
        changed += 2
    return Outcome(batches=tuple(batches), changed=changed, rows_read=len(touching) + len(edges) + len(nodes))


def _parent(
    cycle: Cycle, key: str, entity: MemoryNode, members: list[MemoryNode], previous: MemoryNode | None, digest: str
) -> MemoryNode:
    words = ", ".join(terms_of([node.content for node in members], TERMS))
    newest = max((node.asserted_at for node in members), default=entity.asserted_at)
    node = MemoryNode.new(
        id=key,
        scope=cycle.scope,
        layer=MemoryLayer.SEMANTIC,
        label=LABEL,
        content=f"{entity.content}: {len(members)} notes about {words}",
        at=newest,
        importance=previous.importance if previous else 4.0,
        source=Source(by="consolidation", entries=(entity.id, *(node.id for node in members[:16]))),
        properties=dict(previous.properties) if previous else {},
    )
    return MemoryNode(
        **{**{name: getattr(node, name) for name in node.__slots__}, "properties": marked(node, "members", digest)}
    )


META_NODES = Phase(
    name="meta_nodes", reads=(f"edges:{MENTIONS}",), writes=("nodes:cluster", f"edges:{RELATION}"), run=meta_nodes
)
