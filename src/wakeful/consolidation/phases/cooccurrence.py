"""Nodes asserted together are linked: each to the next few of its burst, so the work is linear in the nodes.

Only pairs with a node that the last cycle has not seen are made, and none with what consolidation made itself. A burst is
a run of nodes of one session whose assertions follow each other within ``burst_seconds``. The weight falls
with the distance in the run, ``1 / (1 + distance)``, as words further apart count less for each other in GloVe (Pennington,
Socher and Manning 2014, section 4.2). A node gets no further link once it has ``degree_limit``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import groupby

from wakeful.consolidation.phase import Cycle, Outcome, Phase, in_batches
from wakeful.needs import Flow, run
from wakeful.ops import GetEdges, PutEdges
from wakeful.records import MemoryEdge, MemoryNode

RELATION = "CO_OCCURS"


def pairs(
    nodes: Iterable[MemoryNode], *, seconds: float, neighbours: int
) -> Iterator[tuple[MemoryNode, MemoryNode, int]]:
    """Pairs (earlier, later, distance) of nodes that belong together; at most ``neighbours`` a node."""
    ordered = sorted(nodes, key=lambda node: (node.source.session or "", node.asserted_at, node.id))
    apart = timedelta(seconds=seconds)
    for _, group in groupby(ordered, key=lambda node: node.source.session or ""):
        row = list(group)
        for at, node in enumerate(row):
            for distance, other in enumerate(row[at + 1 : at + 1 + neighbours], 1):
                if other.asserted_at - node.asserted_at > apart:
                    break
                yield node, other, distance


def cooccurrence(cycle: Cycle) -> Flow[Outcome]:
    """Link what was asserted together within the window."""
    settings = cycle.settings
    nodes = [node for node in cycle.own(cycle.recent) if node.source.by != "consolidation"]
    if len(nodes) < 2 or not any(cycle.fresh(node) for node in nodes):
        return Outcome(rows_read=len(nodes))
    ids = tuple(node.id for node in nodes)
    (known,) = yield from run(GetEdges(cycle.scope, ids, RELATION, limit_per_node=settings.degree_limit))
    degree = Counter(end for edge in known for end in (edge.source_id, edge.target_id))
    linked = {(edge.source_id, edge.target_id) for edge in known}
    fresh = {node.id for node in nodes if cycle.fresh(node)}
    edges: list[MemoryEdge] = []
    for one, other, distance in pairs(nodes, seconds=settings.burst_seconds, neighbours=settings.neighbours):
        left, right = one.id, other.id
        if (left, right) in linked or (right, left) in linked:
            continue
        if left not in fresh and right not in fresh:
            continue
        if max(degree.get(left, 0), degree.get(right, 0)) >= settings.degree_limit:
            continue
        degree[left] = degree.get(left, 0) + 1
        degree[right] = degree.get(right, 0) + 1
        edges.append(
            MemoryEdge.new(
                scope=cycle.scope,
                source_id=left,
                target_id=right,
                relation=RELATION,
                weight=1 / (1 + distance),
                at=cycle.started_at,
                provenance="consolidation",
            )
        )
    return Outcome(
        batches=tuple((PutEdges(cycle.scope, part),) for part in in_batches(edges, settings.batch)),
        changed=len(edges),
        rows_read=len(nodes) + len(known),
    )


COOCCURRENCE = Phase(
    name="cooccurrence", reads=("asserted_at", "source"), writes=(f"edges:{RELATION}",), run=cooccurrence
)
