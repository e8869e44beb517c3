"""Pick the best of scored slots without sorting them all."""

from __future__ import annotations

from typing import Any

GROUPS = 64
"""Slots of one group when the floor of the best is sought."""
TIES = 256
"""Slots that may be given beyond the limit because they tie with the last."""


def best(np: Any, slots: Any, scores: Any, limit: int) -> tuple[Any, Any]:
    """The ``limit`` best of scored slots, in no order, with a bounded number of those that tie with the last."""
    if len(slots) > limit:
        floor = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        kept = np.flatnonzero(scores >= floor)
        if len(kept) > limit + TIES:
            above = np.flatnonzero(scores > floor)
            kept = np.concatenate((above, np.flatnonzero(scores == floor)[: limit + TIES - len(above)]))
        slots, scores = slots[kept], scores[kept]
    return slots, scores


def best_above_zero(np: Any, scores: Any, limit: int) -> tuple[Any, Any]:
    """The same of a score for every slot; those at 0 are never given.

    The greatest of each group are looked at first: the ``limit``-th of them is a floor that no slot sought lies under.
    """
    groups = len(scores) // GROUPS
    floor = 0.0
    if groups > limit:
        greatest = scores[: groups * GROUPS].reshape(GROUPS, groups).max(axis=0)
        floor = np.partition(greatest, groups - limit)[groups - limit]
    slots = np.flatnonzero(scores >= floor) if floor > 0 else np.flatnonzero(scores)
    return best(np, slots, scores[slots], limit)
