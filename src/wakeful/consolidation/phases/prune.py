"""Retired rows go for good once their grace is over."""

from __future__ import annotations

from datetime import timedelta

from wakeful.consolidation.phase import Cycle, Outcome, Phase, in_batches
from wakeful.needs import Flow, run
from wakeful.ops import DeleteNodes, QueryNodes


def prune(cycle: Cycle) -> Flow[Outcome]:
    """Delete retracted rows that were retired before the grace period. Superseded facts stay: they are history."""
    query = QueryNodes(
        scope=cycle.scope,
        visibility=cycle.visible(statuses=("retracted",), superseded=True, expired=True),
        superseded_before=cycle.started_at - timedelta(days=cycle.settings.grace_days),
        owned_only=True,
        limit=cycle.settings.window_limit,
    )
    (found,) = yield from run(query)
    ids = [node.id for node in cycle.own(found) if node.status == "retracted" and not node.pinned]
    return Outcome(
        batches=tuple((DeleteNodes(cycle.scope, part),) for part in in_batches(ids, cycle.settings.batch)),
        changed=len(ids),
        rows_read=len(found),
    )


PRUNE = Phase(name="prune", reads=("superseded_at", "status"), writes=("nodes",), run=prune)
