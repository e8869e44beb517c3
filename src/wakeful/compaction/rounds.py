"""Rounds: the atoms of compaction. Their parts are kept, moved or dropped together, so no call loses its result.

A round is a user's message with the text that answers it, or a model's step with calls and all their results. A user's
message that is pinned stands alone, so that what answers it may go without it. Rules of the file:

- Rounds cover a repaired history without gaps: ``rounds[i].stop == rounds[i + 1].start``.
- A round that must stay has a reason in ``pinned``; ``open`` is the model's step that is not over.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from wakeful.dialects.protocol import Facts, Flag, Weight


class Round(NamedTuple):
    """One atom: messages ``start`` to ``stop`` (exclusive)."""

    start: int
    stop: int
    pinned: str = ""
    """Why it must stay: ``system``, ``own`` (a note that a compaction made), ``first_user``, ``latest_user``, ``marked``,
    ``provisional`` or ``open``; empty when it may go."""
    calls: bool = False
    """It is a model's step with calls."""
    open: bool = False
    """That step is not over: its content may be shortened, its structure stays."""


def rounds_of(
    weights: Sequence[Weight], facts: Facts, *, marked: Collection[int] = (), own: Collection[int] = ()
) -> list[Round]:
    """Cut a repaired history into rounds, oldest first.

    ``marked``: indexes of messages that the caller pinned. The last step with calls is open while nothing follows it.
    ``own``: indexes of notes that an earlier compaction made (a summary); they are no user's messages.
    """
    first_user, latest_user = _users(weights, own)
    spans = _spans(weights, facts, {first_user, latest_user, *marked, *own})
    rounds: list[Round] = []
    add = rounds.append
    last = len(spans) - 1
    marks = sorted(marked)
    provisional = {i for i, w in enumerate(weights) if w[5] & Flag.PROVISIONAL}
    for at, (start, stop, calls) in enumerate(spans):
        pinned = ""
        kind = weights[start][0]
        if kind == 0 or kind == 5:
            pinned = "system"
        elif start in own:
            pinned = "own"
        elif start <= first_user < stop:
            pinned = "first_user"
        elif start <= latest_user < stop:
            pinned = "latest_user"
        if marks and any(start <= mark < stop for mark in marks):
            pinned = "marked"
        is_open = calls and at == last
        if calls and not pinned:
            if is_open:
                pinned = "open"
            elif provisional and any(start <= i < stop for i in provisional):
                pinned = "provisional"
        add(Round(start, stop, pinned, calls, is_open))
    return rounds


def _users(weights: Sequence[Weight], own: Collection[int]) -> tuple[int, int]:
    """Indexes of the first and the latest user's message; -1 for none."""
    users = [i for i, w in enumerate(weights) if w[0] == 1 and i not in own]
    return (users[0], users[-1]) if users else (-1, -1)


def _spans(weights: Sequence[Weight], facts: Facts, alone: Collection[int]) -> list[tuple[int, int, bool]]:
    """Cut into ``(start, stop, has calls)``."""
    items = facts.thinking == "items"
    spans: list[tuple[int, int, bool]] = []
    n = len(weights)
    i = 0
    while i < n:
        start = i
        kind = weights[i][0]
        i += 1
        if kind == 3 or (items and kind == 2):
            calls = kind == 3
            thought = not weights[start][5] & 1
            while items and i < n and weights[i][0] in (2, 3):
                thinks = weights[i][5] & 1
                if thinks and thought and not calls:
                    break
                thought = thought or not thinks
                calls = calls or weights[i][0] == 3
                i += 1
            if calls:
                while i < n and weights[i][3]:
                    i += 1
            spans.append((start, i, calls))
        elif kind == 1 and start not in alone:
            while i < n and weights[i][0] == 2 and i not in alone and not items:
                i += 1
            spans.append((start, i, False))
        elif kind == 4:
            # Results without their calls stand here only at the head of a history that was cut by others.
            while i < n and weights[i][3]:
                i += 1
            spans.append((start, i, True))
        else:
            spans.append((start, i, False))
    return spans


def last_start(weights: Sequence[Weight], facts: Facts) -> int:
    """Give the index at which the last round starts; 0 when there is none."""
    spans = _spans(weights, facts, ())
    return spans[-1][0] if spans else 0
