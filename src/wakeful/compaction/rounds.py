"""Rounds: the atoms of compaction. Their parts are kept, moved or dropped together, so no call loses its result.

A round is a user's message with the text that answers it, or a model's step with calls and all their results. A user's
message that is pinned stands alone, so that what answers it may go without it. Rules of the file:

- Rounds cover a repaired history without gaps: ``rounds[i].stop == rounds[i + 1].start``.
- A round that must stay has a reason in ``pinned``; ``open`` is the model's step that is not over.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Sequence
from itertools import accumulate, repeat
from typing import NamedTuple

from wakeful.compaction.measure import History
from wakeful.dialects.protocol import Columns, Facts, Flag, Weight


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
    history: History, facts: Facts, *, marked: Collection[int] = (), own: Collection[int] = ()
) -> list[Round]:
    """Cut a repaired history into rounds, oldest first.

    ``marked``: indexes of messages that the caller pinned. The last step with calls is open while nothing follows it.
    ``own``: indexes of notes that an earlier compaction made (a summary); they are no user's messages.
    """
    columns = history.columns()
    kinds, flags = columns.kinds, columns.flags
    first_user, latest_user = users(kinds, own)
    alone = {first_user, latest_user, *marked, *own}
    reasons = {at: "latest_user" for at in (latest_user,) if at >= 0}
    if first_user >= 0:
        reasons[first_user] = "first_user"
    reasons.update(dict.fromkeys(own, "own"))
    reasons.update(dict.fromkeys(marked, "marked"))
    if any(flags):
        waits = Flag.PROVISIONAL
        for i in [i for i, bits in enumerate(flags) if bits & waits]:
            reasons.setdefault(i, "provisional")
    new = tuple.__new__
    if facts.thinking == "items":
        spans = _item_spans(history.weights)
        starts = [a for a, _ in spans]
        rounds = [new(Round, (a, b, _PINNED[kinds[a]], _CALLS in kinds[a:b], False)) for a, b in spans]
    else:
        groups = _ROUND.findall(_codes(columns, facts, alone))
        stops = list(accumulate(map(len, groups)))
        starts = [0, *stops[:-1]] if stops else []
        calls = [3 <= group[0] <= 4 for group in groups]
        rounds = list(map(new, repeat(Round), zip(starts, stops, repeat(""), calls, repeat(False))))
        for found in _STANDING.finditer(kinds):
            reasons.setdefault(found.start(), "system")
    for i, reason in reasons.items():
        at = bisect_right(starts, i) - 1
        stronger = max(rounds[at].pinned, reason, key=_STRENGTH.index)
        rounds[at] = rounds[at]._replace(pinned=stronger)
    if rounds and rounds[-1].calls:
        rounds[-1] = rounds[-1]._replace(open=True, pinned=rounds[-1].pinned or "open")
    return rounds


_PINNED = ("system", "", "", "", "", "system")
"""Why a round must stay by the kind of its first message."""
_STANDING = re.compile(rb"[\x00\x05]")
"""Kinds of messages that stay."""
_CALLS = 3
_STRENGTH = ("", "provisional", "latest_user", "first_user", "own", "system", "marked")
"""Reasons by weight: of several the last one counts."""


def users(kinds: bytes, own: Collection[int]) -> tuple[int, int]:
    """Give the indexes of the first and the latest user's message, notes of our own left out; -1 for none."""
    first = kinds.find(1)
    while first in own and first >= 0:
        first = kinds.find(1, first + 1)
    latest = kinds.rfind(1)
    while latest in own and latest >= 0:
        latest = kinds.rfind(1, 0, latest)
    return first, latest


_ROUND = re.compile(rb"\x03[\x04\x06]*|\x01\x02*|\x04[\x04\x06]*|[\x00-\xff]", re.DOTALL)
"""A step with its results; a user's message with the text that answers it; results at the head of a history that others
cut; anything else alone. 6 is a user's message that holds results, 7 a user's message that stands alone."""


def _codes(columns: Columns, facts: Facts, alone: Collection[int]) -> bytes:
    """Give a code for each message, for ``_ROUND``."""
    codes = bytearray(columns.kinds)
    for i in alone:
        if i >= 0 and codes[i] == 1:
            codes[i] = 7
        elif i >= 0 and codes[i] == 2:
            codes[i] = 8
    if facts.results_in_user:
        for i, results in enumerate(columns.results):
            if results and codes[i] != 4:
                codes[i] = 6
    return bytes(codes)


def _item_spans(weights: Sequence[Weight]) -> list[tuple[int, int]]:
    """Cut a history whose messages are items: a model's response is a run of them, reasoning first."""
    spans: list[tuple[int, int]] = []
    n = len(weights)
    i = 0
    while i < n:
        start = i
        kind = weights[i][0]
        i += 1
        if kind == 3 or kind == 2:
            calls = kind == 3
            thought = not weights[start][5] & 1
            while i < n and weights[i][0] in (2, 3):
                thinks = weights[i][5] & 1
                if thinks and thought and not calls:
                    break
                thought = thought or not thinks
                calls = calls or weights[i][0] == 3
                i += 1
            while calls and i < n and weights[i][3]:
                i += 1
        elif kind == 4:
            while i < n and weights[i][3]:
                i += 1
        spans.append((start, i))
    return spans


def last_start(history: History, facts: Facts) -> int:
    """Give the index at which the last round starts; 0 when there is none."""
    if not history.messages:
        return 0
    if facts.thinking == "items":
        return _item_spans(history.weights)[-1][0]
    return len(history.messages) - len(_ROUND.findall(_codes(history.columns(), facts, ()))[-1])
