"""Make the history that a draft describes: what is left, the summary at its place, neighbours joined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wakeful.compaction.draft import Draft
from wakeful.compaction.measure import History
from wakeful.compaction.moves import Repair
from wakeful.compaction.repair import join
from wakeful.dialects.protocol import Kind, Weight


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
    messages: list[Any] = []
    weights: list[Weight] = []
    origins: list[int] = []
    merged: dict[int, tuple[int, ...]] = {}
    at = _summary_place(draft) if draft.summary is not None else -1
    kept = [i for i in range(len(draft.messages)) if i not in gone] if gone else range(len(draft.messages))
    for i in kept:
        if i == at and draft.summary is not None:
            messages.append(draft.summary[0])
            weights.append(draft.summary[1])
            origins.append(-1)
        if i in base.merged:
            merged[len(origins)] = base.merged[i]
        messages.append(draft.messages[i])
        weights.append(draft.weights[i])
        origins.append(base.origins[i])
    if draft.summary is not None and at >= len(draft.messages):
        messages.append(draft.summary[0])
        weights.append(draft.summary[1])
        origins.append(-1)
    repairs: list[Repair] = []
    history = join(draft.dialect, History(messages, weights, origins, merged), draft.count, repairs)
    alive = set(history.origins)
    for group in history.merged.values():
        alive.update(group)
    dropped = [i for i in range(draft.given) if i not in alive]
    return Final(history, dropped, tuple(repairs))


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
