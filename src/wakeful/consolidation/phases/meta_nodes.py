"""Clusters get a named parent: one for each entity that enough notes mention, refreshed when its members change.

The parent's text names the entity, the number of notes, and what they say: a sentence that a model wrote, when it holds no
number that its notes don't, else their most telling words. Its id follows from the entity's. An entity is looked at when
one of its members lies in the window, so the cost grows with what is recent.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from wakeful.consolidation.judging import consult, plain
from wakeful.consolidation.phase import Cycle, Outcome, Phase, least_trust, mark_of, marked
from wakeful.consolidation.phases.entity_links import RELATION as MENTIONS
from wakeful.consolidation.wording import folded, signature
from wakeful.ids import content_id
from wakeful.needs import Flow, run
from wakeful.ops import GetEdges, GetNodes, PutEdges, PutNodes
from wakeful.records import MemoryEdge, MemoryLayer, MemoryNode, Source
from wakeful.replies import Unreadable

LABEL = "cluster"
RELATION = "PART_OF"
TERMS = 6
MOST_MEMBERS = 500
TOGETHER = 8
"""Clusters of one model call."""
SHOWN = 12
"""Notes of a cluster that a model is shown: the newest."""
SYSTEM = (
    "You name clusters of notes in a long-term memory. For each cluster write one sentence that says what its notes "
    "together say of the thing that it is named after, in the language of the notes, with nothing that they don't say. "
    'Give "clusters"; each has "cluster", its number, and "sentence".'
)
"""System prompt for the names of clusters."""
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "clusters": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"cluster": {"type": "integer"}, "sentence": {"type": "string", "maxLength": 300}},
                "required": ["cluster", "sentence"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["clusters"],
    "additionalProperties": False,
}
"""JSON schema of the reply."""


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
    least = cycle.settings.cluster_members
    wanted = tuple({node_id for ids in members.values() if len(set(ids)) >= least for node_id in ids})
    (nodes,) = yield from run(GetNodes(cycle.scope, wanted, cycle.visible()))
    texts = {node.id: node for node in nodes}
    alive = {key: sorted({node_id for node_id in ids if node_id in texts}) for key, ids in members.items()}
    ripe = {key: ids for key, ids in alive.items() if len(ids) >= least}
    parents = {key: content_id(cycle.scope.path, key, prefix="cl-") for key in ripe}
    (known,) = yield from run(GetNodes(cycle.scope, tuple(parents.values())))
    old = {node.id: node for node in known}
    names = {node.id: node for node in entities}
    batches = []
    stale = {
        key: [texts[i] for i in ids if i in texts]
        for key, ids in ripe.items()
        if key in names and not _current(old.get(parents[key]), ids)
    }
    said, notes = yield from _said(cycle, [(names[key], members) for key, members in stale.items()])
    for key, found in stale.items():
        digest = content_id(*ripe[key])
        parent = _parent(cycle, parents[key], names[key], found, old.get(parents[key]), digest, said.get(key, ""))
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
    read = len(touching) + len(edges) + len(nodes)
    return Outcome(batches=tuple(batches), changed=2 * len(batches), rows_read=read, notes=notes)


def _current(parent: MemoryNode | None, members: list[str]) -> bool:
    return parent is not None and mark_of(parent, "members") == content_id(*members)


def _said(
    cycle: Cycle, clusters: list[tuple[MemoryNode, list[MemoryNode]]]
) -> Flow[tuple[dict[str, str], tuple[str, ...]]]:
    """Have a model say in a sentence what the notes of each entity say: (by the entity's id, why others have none)."""
    said: dict[str, str] = {}
    whys: dict[str, int] = {}
    for at in range(0, len(clusters) if cycle.model else 0, TOGETHER):
        part = clusters[at : at + TOGETHER]
        record = [line for number, (entity, members) in enumerate(part) for line in _shown(number, entity, members)]

        def read(data: Mapping[str, Any], part: Sequence[tuple[MemoryNode, list[MemoryNode]]] = part) -> dict[str, str]:
            items = data.get("clusters")
            if not isinstance(items, list):
                raise Unreadable("the reply holds no clusters")
            return dict(each for item in items if (each := _sentence(item, part)) is not None)

        answer = yield from consult(
            cycle, system=SYSTEM, record=record, schema=SCHEMA, read=read, most=100 + 120 * len(part)
        )
        found = answer.value or {}
        said |= found
        if left := len(part) - len(found):
            why = answer.why or "no valid sentence"
            whys[why] = whys.get(why, 0) + left
    return said, tuple(f"{count} clusters named by their words: {why}" for why, count in whys.items())


def _shown(number: int, entity: MemoryNode, members: list[MemoryNode]) -> list[str]:
    newest = sorted(members, key=lambda node: (node.asserted_at, node.id))[-SHOWN:]
    return [f"cluster {number}: {entity.content}", *(f"  note: {node.content[:200]}" for node in newest)]


def _sentence(item: Any, part: Sequence[tuple[MemoryNode, list[MemoryNode]]]) -> tuple[str, str] | None:
    """(id of the entity, sentence) of one item of the reply; None for one that is not of the shape, or makes numbers up."""
    if not isinstance(item, Mapping):
        return None
    number, text = item.get("cluster"), plain(item.get("sentence"), 300)
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(part) or not text:
        return None
    entity, members = part[number]
    known = folded("\n".join((entity.content, *(node.content for node in members))))
    return (entity.id, text) if all(each in known for each in signature(text)[0]) else None


def _parent(
    cycle: Cycle,
    key: str,
    entity: MemoryNode,
    members: list[MemoryNode],
    previous: MemoryNode | None,
    digest: str,
    said: str,
) -> MemoryNode:
    words = ", ".join(terms_of([node.content for node in members], TERMS))
    newest = max((node.asserted_at for node in members), default=entity.asserted_at)
    node = MemoryNode.new(
        id=key,
        scope=cycle.scope,
        layer=MemoryLayer.SEMANTIC,
        label=LABEL,
        content=f"{entity.content}: {len(members)} notes{'. ' + said if said else ' about ' + words}",
        at=newest,
        importance=previous.importance if previous else 4.0,
        source=Source(
            by="consolidation", entries=(entity.id, *(node.id for node in members[:16])), trust=least_trust(members)
        ),
        properties=dict(previous.properties) if previous else {},
    )
    return MemoryNode(
        **{**{name: getattr(node, name) for name in node.__slots__}, "properties": marked(node, "members", digest)}
    )


META_NODES = Phase(
    name="meta_nodes", reads=(f"edges:{MENTIONS}",), writes=("nodes:cluster", f"edges:{RELATION}"), run=meta_nodes
)
