"""Use since the last cycle raises importance, saturating below 10.

``importance' = 10 - (10 - importance) (1 - rate) ^ uses``, the linear operator of learning (Bush and Mosteller 1955,
Stochastic Models for Learning, chapter 1). Uses are those since the last credit, not lifetime counts, so the same use
is never counted twice.
"""

from __future__ import annotations

from typing import Any

from wakeful.consolidation.phase import Cycle, Outcome, Phase, in_batches, mark_of, marked, seen
from wakeful.needs import Flow, run
from wakeful.ops import QueryNodes, UpdateNodes
from wakeful.records import MemoryLayer

CEILING = 10.0
LAYERS = (MemoryLayer.SEMANTIC, MemoryLayer.EPISODIC, MemoryLayer.PROCEDURAL)
"""Not reminders and working entries: whether they matter is a question of time, and others write their properties."""


def raised(importance: float, uses: int, rate: float) -> float:
    """Importance (1-10) after so many uses."""
    return CEILING - (CEILING - importance) * (1 - rate) ** uses


def strengthen(cycle: Cycle) -> Flow[Outcome]:
    """Credit the uses of nodes that were accessed since the last cycle."""
    query = QueryNodes(
        scope=cycle.scope,
        visibility=cycle.visible(layers=LAYERS),
        accessed_since=cycle.since,
        owned_only=True,
        limit=None,
    )
    (used,) = yield from run(query)
    changes: dict[str, dict[str, Any]] = {}
    for node in cycle.own(used):
        credited = mark_of(node, "uses") or 0
        uses = node.access_count - credited
        if uses <= 0:
            continue
        changes[node.id] = {
            "importance": round(raised(node.importance, uses, cycle.settings.strengthen_rate), 6),
            "properties": marked(node, "uses", node.access_count),
        }
    parts, read = in_batches(changes.items(), cycle.settings.batch), seen(used)
    return Outcome(
        batches=tuple((UpdateNodes(scope=cycle.scope, changes=dict(part), expected=read),) for part in parts),
        changed=len(changes),
        rows_read=len(used),
    )


STRENGTHEN = Phase(name="strengthen", reads=("access_count",), writes=("importance", "properties"), run=strengthen)
