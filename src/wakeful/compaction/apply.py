"""Make the history that a draft describes: what is left, the summary at its place, neighbours joined."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import compress

from wakeful.compaction.draft import Draft
from wakeful.compaction.measure import History
from wakeful.compaction.moves import Repair
from wakeful.compaction.repair import join
from wakeful.dialects.protocol import Columns, Kind, Weight


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
    gone, columns = draft.gone, draft.columns()
    there = _mask(draft)
    kept = list(compress(range(len(there)), there))
    messages = list(compress(draft.messages, there))
    origins = list(kept) if type(base.origins) is range else [base.origins[i] for i in kept]
    weights: list[Weight] | Columns
    if columns is not None and draft.summary is None:
        weights = _picked(columns, there)
    else:
        weights = list(compress(draft.weights, there))
    if draft.summary is not None:
        before = bisect_left(kept, _summary_place(draft))
        messages.insert(before, draft.summary[0])
        assert isinstance(weights, list)
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
        return Final(history, list(compress(range(len(there)), there.translate(_OTHER))), ())
    alive = set(history.origins)
    for group in history.merged.values():
        alive.update(group)
    dropped = [i for i in range(draft.given) if i not in alive]
    return Final(history, dropped, tuple(repairs))


_OTHER = bytes([1, 0]) + bytes(254)


def _mask(draft: Draft) -> bytearray:
    """Give a 1 for each place that is not gone."""
    there = bytearray(b"\1") * len(draft.messages)
    spans = draft.removed
    for start, stop in spans:
        there[start:stop] = bytes(stop - start)
    if len(draft.gone) > sum([stop - start for start, stop in spans]):
        for i in draft.gone:
            there[i] = 0
    return there


def _picked(columns: Columns, there: bytearray) -> Columns:
    """Give the columns of some messages."""
    kinds, tokens, calls, results, sizes, flags = columns
    return Columns(
        bytes(compress(kinds, there)),
        list(compress(tokens, there)),
        list(compress(calls, there)),
        list(compress(results, there)),
        list(compress(sizes, there)),
        bytes(compress(flags, there)),
    )


def _summary_place(draft: Draft) -> int:
    """Place before which the summary stands: behind the system prompt, and behind the first user's message when that
    is next and not also the latest (the latest user's message always comes after the summary)."""
    n = len(draft.messages)
    for i, kind in enumerate(draft.history.kinds()):
        if i in draft.gone:
            continue
        if kind in (Kind.SYSTEM, Kind.OTHER) or i in draft.ours:
            continue
        if i == draft.first_user and draft.first_user != draft.latest_user:
            following = (j for j in range(i + 1, n) if j not in draft.gone)
            return next(following, n)
        return i
    return n
