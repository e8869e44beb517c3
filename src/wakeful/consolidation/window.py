"""The window of recent nodes that a cycle works over: a range in the store's index, read once."""

from __future__ import annotations

from datetime import datetime, timedelta

from wakeful.needs import Flow, run
from wakeful.ops import QueryNodes, Visibility
from wakeful.records import MemoryLayer, MemoryNode, MemoryScope


def cutoff(started_at: datetime, lookback_hours: float) -> datetime:
    """The oldest ``updated_at`` that is recent, inclusive, judged from the start of the cycle."""
    return started_at - timedelta(hours=lookback_hours)


def recent_nodes(
    scope: MemoryScope,
    started_at: datetime,
    *,
    lookback_hours: float,
    since: datetime | None = None,
    layers: tuple[MemoryLayer, ...] = (MemoryLayer.SEMANTIC, MemoryLayer.EPISODIC),
    limit: int | None = None,
    owned_only: bool = False,
) -> Flow[tuple[MemoryNode, ...]]:
    """Nodes that the scope sees, updated within the lookback or after ``since``, newest first. No upper bound."""
    start = cutoff(started_at, lookback_hours)
    query = QueryNodes(
        scope=scope,
        visibility=Visibility(at=started_at, layers=layers),
        updated_since=start if since is None else min(start, since),
        owned_only=owned_only,
        limit=limit,
    )
    (found,) = yield from run(query)
    return tuple(found)
