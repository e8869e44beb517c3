"""Make the history that a draft describes: what is left, the summary at its place, neighbours joined."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

from wakeful.compaction.draft import Draft
from wakeful.compaction.measure import History
from wakeful.compaction.moves import Repair
from wakeful.compaction.repair import join
from wakeful.dialects.protocol import Kind


@dataclass(frozen=True, slots=True)
class Final:
    """A history ready to be checked and returned."""

    history: History
    """Its origins are indexes in the list that the caller gave."""
    dropped: list[int]
    """Indexes, in the caller's list, of messages that are not in it, oldest first."""
    repairs: tuple[Repair, ...]
    """Neighbours that were joined since a cut made them so."""


def assemble(draft: Draft) -> Final:
    """Lay out what is left, in the order it was in."""
    base = draft.history
    gone = draft.gone
    kept = _kept(gone, len(draft.messages))
    messages = [draft.messages[i] for i in kept]
    weights = [draft.weights[i] for i in kept]
    origins = list(kept) if type(base.origins) is range else [base.origins[i] for i in kept]
    if draft.summary is not None:
        before = bisect_left(kept, _summary_place(draft))
        messages.insert(before, draft.summary[0])
        weights.insert(before, draft.summary[1])
        origins.insert(before, -1)
    else:
        before = len(kept)
    merged = {}
    for i, group in base.merged.items():
        if i not in gone:
            at = bisect_left(kept, i)
            merged[at + (at >= before)] = group
    repairs: list[Repair] = []
    laid = History(messages, weights, origins, merged)
    history = join(draft.dialect, laid, draft.count, repairs)
    if history is laid and type(base.origins) is range and not merged:
        return Final(history, sorted(gone), ())
    alive = set(history.origins)
    for group in history.merged.values():
        alive.update(group)
    dropped = [i for i in range(draft.given) if i not in alive]
    return Final(history, dropped, tuple(repairs))


def _kept(gone: set[int], count: int) -> Sequence[int]:
    """Give the places that are not gone, in order."""
    if not gone:
        return range(count)
    there = bytearray(b"\1") * count
    for i in gone:
        there[i] = 0
    return list(compress(range(count), there))


def _summary_place(draft: Draft) -> int:
    """Place before which the summary stands: behind the system prompt, and behind the first user's message when that
    is next and not also the latest (the latest user's message always comes after the summary)."""
    n = len(draft.messages)
    for i in range(n):
        if i in draft.gone:
            continue
        kind = draft.weights[i].kind
        if kind in (Kind.SYSTEM, Kind.OTHER) or i in draft.ours:
            continue
        if i == draft.first_user and draft.first_user != draft.latest_user:
            following = (j for j in range(i + 1, n) if j not in draft.gone)
            return next(following, n)
        return i
    return n
