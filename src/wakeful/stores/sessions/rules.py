"""What every session store says and does alike."""

from __future__ import annotations

from wakeful.errors import NotFound, StaleWriter
from wakeful.ops_session import StoredCompaction


def stale(session: str, epoch: int, current: int) -> StaleWriter:
    """Refuse a writer that was overtaken."""
    return StaleWriter(
        f"session {session!r} was taken over (epoch {current}, this writer holds {epoch}); nothing was changed. "
        "Stop here; the next turn claims the session anew"
    )


def unknown(session: str) -> NotFound:
    """Refuse to write to a session that is not there."""
    return NotFound(f"there is no session {session!r}; claim it first")


def viewed_ids(compaction: StoredCompaction) -> tuple[str, ...]:
    """Ids of the stored entries that a view is made of."""
    found: dict[str, None] = {}
    for item in compaction.view:
        for each in item.get("parts") or (item["id"],):
            found[each] = None
    return tuple(found)
