"""Nodes that are not used fade, a step each time their idle time passes a threshold; pinned ones and identity do not.

The thresholds double (30, 60, 120, 240 days), and a step leaves 0.8 of the importance above 1: forgetting follows a
power law of time (Wixted and Ebbesen 1991, On the Form of Forgetting). Only nodes that passed a threshold since the last
cycle are read, by a range of their last use, so the cost grows with them and not with the graph; the same clock fades no
node twice, since the step that it has had is kept on the node.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from wakeful.consolidation.backlog import portions
from wakeful.consolidation.phase import Cycle, Outcome, Phase, in_batches, mark_of, marked, seen
from wakeful.needs import Flow
from wakeful.ops import QueryNodes, UpdateNodes
from wakeful.records import MemoryLayer, MemoryNode

PORTION = 20_000
"""Rows of a threshold that a cycle reads at most; a long history fades over several cycles."""
IDENTITY = frozenset(("identity", "profile", "name"))
"""Labels that never fade."""


def faded(importance: float, share: float) -> float:
    """Importance (1-10) after one step."""
    return 1.0 + (importance - 1.0) * share


def decay(cycle: Cycle) -> Flow[Outcome]:
    """Fade what has been idle for long enough."""
    layers = (MemoryLayer.SEMANTIC, MemoryLayer.EPISODIC)
    queries = []
    gaps = [timedelta(days=days) for days in cycle.settings.decay_days]
    for gap, longer in zip(gaps, (*gaps[1:], None), strict=True):
        # In a first cycle each range ends where the next begins, so no row is read twice.
        whole = None if longer is None else cycle.started_at - longer
        queries.append(
            QueryNodes(
                scope=cycle.scope,
                visibility=cycle.visible(layers=layers),
                idle_since=whole if cycle.first else cycle.since - gap,
                idle_before=cycle.started_at - gap,
                owned_only=True,
            )
        )
    found, marks = yield from portions(cycle, "decay", queries, PORTION)
    changes: dict[str, dict[str, Any]] = {}
    for step, nodes in enumerate(found, 1):
        for node in cycle.own(nodes):
            base = _base(node)
            if node.pinned or node.label in IDENTITY or base[0] >= step:
                continue
            changes[node.id] = {
                "importance": round(faded(node.importance, cycle.settings.decay_share), 6),
                "properties": marked(node, "faded", [step, _used(node)]),
            }
    parts = in_batches(changes.items(), cycle.settings.batch)
    read = seen(node for nodes in found for node in nodes if node.id in changes)
    batches = tuple((UpdateNodes(scope=cycle.scope, changes=dict(part), expected=read),) for part in parts)
    return Outcome(
        batches=(*batches, marks) if marks else batches,
        changed=len(changes),
        rows_read=sum(len(nodes) for nodes in found),
    )


def _used(node: MemoryNode) -> str:
    last = node.updated_at if node.accessed_at is None else max(node.updated_at, node.accessed_at)
    return last.isoformat()


def _base(node: MemoryNode) -> tuple[int, str]:
    """(steps faded, last use that they were counted from); steps of an earlier idle time count no more."""
    mark = mark_of(node, "faded")
    if isinstance(mark, list) and len(mark) == 2 and mark[1] == _used(node):
        return int(mark[0]), str(mark[1])
    return 0, ""


DECAY = Phase(name="decay", reads=("updated_at", "accessed_at"), writes=("importance", "properties"), run=decay)
