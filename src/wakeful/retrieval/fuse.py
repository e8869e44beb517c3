"""Bring words, meaning and neighbourhood together into one score for each candidate.

The parts are brought to 0 to 1 and added with weights, never fused by rank: ranks throw away the margins, and a sure
hit by words would count no more than a narrow one. Source: Bruch, Gai and Ingber, "An Analysis of Fusion Functions for
Hybrid Retrieval", ACM TOIS 2023, section 4 (convex combination over reciprocal rank fusion).

What stands near in time counts too: a turn inherits from its neighbours, and most of all an answer from its question.
Windows, sessions and neighbours say much of short turns and little of long messages, so they fade with text length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from wakeful.retrieval import lexical
from wakeful.retrieval.dense import closeness
from wakeful.retrieval.pool import Pool
from wakeful.retrieval.query import Query
from wakeful.retrieval.settings import RecallSettings
from wakeful.sketches import Sketch, micros
from wakeful.terms import query_terms

FRONT = 16
"""Best candidates by which the fit of a recall is judged."""

Column = Sequence[float]
"""A value for each candidate, by its place."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """All candidates, scored."""

    pool: Pool
    idf: tuple[float, ...]
    """Weight of each query term among the candidates."""
    base: dict[str, Column]
    """Words, meaning, window and session, by name."""
    gains: Sequence[float]
    """What each inherits from the better of its neighbours."""
    origins: Sequence[str]
    """Which neighbour that is."""
    bonus: dict[str, Column]
    """What else adds to a score or takes from it, by name; 0 where it does not apply."""
    scores: list[float]

    def parts(self, place: int) -> dict[str, float]:
        """The parts of one candidate's score, by name."""
        parts = {name: column[place] for name, column in self.base.items()}
        if self.gains[place]:
            parts[self.origins[place]] = self.gains[place]
        return parts | {name: column[place] for name, column in self.bonus.items() if column[place]}

    def fit(self, ordered: Sequence[int]) -> float:
        """How well the best candidate fits the query in itself, 0 to 1: its share of the query's words, or its cosine."""
        best = 0.0
        for place in ordered[:FRONT]:
            shared = lexical.coverage(self.pool.sketches[place].counts, self.idf)
            best = max(best, shared, self.pool.cosines[place] or 0.0)
        return min(1.0, best)


def preliminary(pool: Pool, settings: RecallSettings) -> list[int]:
    """Order candidates by words and meaning alone, best first; gives their places."""
    words = _to_one([score or 0.0 for score in pool.words])
    near = closeness(pool.cosines)
    ranked = [
        (-(word + settings.dense * close), sketch.id, place)
        for place, (word, close, sketch) in enumerate(zip(words, near, pool.sketches, strict=True))
    ]
    ranked.sort()
    return [place for _, _, place in ranked]


def fuse(query: Query, pool: Pool, settings: RecallSettings) -> Weighed:
    """Score every candidate."""
    sketches = pool.sketches
    tallies = [sketch.counts for sketch in sketches]
    lengths = [sketch.length for sketch in sketches]
    terms = lexical.held(tallies)
    idf = lexical.weights(terms, len(tallies))
    short = _shortness(lengths, settings)
    base = _base(pool, tallies, lengths, terms, idf, short, settings)
    sums = _added(list(base.values()), len(pool))
    gains, origins = _inherited(pool, sums, short, settings)
    bonus = _bonus(query, sketches, settings)
    return Weighed(pool, tuple(idf), base, gains, origins, bonus, _added([sums, gains, *bonus.values()], len(pool)))


def _added(columns: Sequence[Column], size: int) -> list[float]:
    """Add columns up, place by place."""
    return list(map(sum, zip(*columns, strict=True))) if columns else [0.0] * size


def _shortness(lengths: Sequence[int], settings: RecallSettings) -> float:
    """1 for short turns, 0 for long messages, by the mean length of the candidates."""
    return _short(sum(lengths) / len(lengths) if lengths else 0.0, settings)


def _short(length: float, settings: RecallSettings) -> float:
    return min(1.0, max(0.0, (settings.long - length) / (settings.long - settings.short)))


def _base(
    pool: Pool,
    tallies: Sequence[Sequence[int]],
    lengths: Sequence[int],
    terms: Sequence[lexical.Held],
    idf: Sequence[float],
    short: float,
    settings: RecallSettings,
) -> dict[str, Column]:
    def bm25(terms: Sequence[lexical.Held], lengths: Sequence[int]) -> list[float]:
        return _to_one(lexical.bm25(terms, lengths, idf, k1=settings.k1, b=settings.b))

    base: dict[str, Column] = {"words": bm25(terms, lengths)}
    if any(pool.cosines):
        dense = settings.dense * short + settings.dense_long * (1 - short)
        base["meaning"] = [dense * close for close in closeness(pool.cosines)]
    if short:
        windows = bm25(*_windows(pool, tallies, lengths, terms))
        base["window"] = [short * settings.window * score for score in windows]
        sessions = _to_one(_sessions(pool.sketches, terms, idf, settings.session_saturation))
        base["session"] = [short * settings.session * score for score in sessions]
    return base


def _windows(
    pool: Pool, tallies: Sequence[Sequence[int]], lengths: Sequence[int], terms: Sequence[lexical.Held]
) -> tuple[list[lexical.Held], list[int]]:
    """Places of the terms, and lengths, of each candidate together with its neighbours."""
    beside = [
        (place, other)
        for neighbours in (pool.before, pool.after)
        for place, other in enumerate(neighbours)
        if other is not None
    ]
    spans = list(lengths)
    for place, other in beside:
        spans[place] += lengths[other]
    joined: list[lexical.Held] = []
    for places, column in zip(terms, zip(*tallies, strict=True), strict=True):
        counts = dict(places)
        for place, other in beside:
            if column[other]:
                counts[place] = counts.get(place, 0) + column[other]
        joined.append(list(counts.items()))
    return joined, spans


def _sessions(
    sketches: Sequence[Sketch], terms: Sequence[lexical.Held], idf: Sequence[float], saturation: float
) -> list[float]:
    """Score each candidate's session by the words of all its candidates."""
    numbers: dict[tuple[str, str], int] = {}
    groups = [
        numbers.setdefault(
            ("", sketch.id) if sketch.session is None else (sketch.scope.path, sketch.session), len(numbers)
        )
        for sketch in sketches
    ]
    scores = lexical.grouped(terms, groups, len(numbers), idf, saturation)
    return [scores[group] for group in groups]


def _inherited(
    pool: Pool, base: Sequence[float], short: float, settings: RecallSettings
) -> tuple[list[float], list[str]]:
    """What each text gains from the better of its two neighbours, and which one.

    A short answer seldom repeats the words of its question; a long one has words enough of its own, and gains from a
    question no more than from any other text.
    """
    gains, origins = [0.0] * len(pool), [""] * len(pool)
    sketches = pool.sketches
    more = settings.from_question - settings.from_before
    for place, before in enumerate(pool.before):
        if before is not None:
            asks = sketches[before].asks
            share = settings.from_before + (more * _short(sketches[place].length, settings) if asks else 0.0)
            gains[place] = share * base[before]
            origins[place] = "answers a question" if asks else "said after"
    for place, after in enumerate(pool.after):
        if after is not None:
            gain = short * (settings.from_answer if sketches[place].asks else settings.from_after) * base[after]
            if gain > gains[place]:
                gains[place], origins[place] = gain, "said before"
    return gains, origins


def _bonus(query: Query, sketches: Sequence[Sketch], settings: RecallSettings) -> dict[str, Column]:
    bonus: dict[str, Column] = {
        "asks": [-settings.question if sketch.asks else 0.0 for sketch in sketches],
        "length": [settings.length * _LOG[min(sketch.length, 60)] for sketch in sketches],
    }
    named = _named_speaker(query, sketches)
    if named is not None:
        bonus["speaker"] = [settings.speaker if sketch.speaker == named else 0.0 for sketch in sketches]
    if query.asks_when:
        bonus["tells a time"] = [settings.time_words if sketch.tells_time else 0.0 for sketch in sketches]
    if query.period is not None:
        start, end = micros(query.period.start), micros(query.period.end)
        bonus["in the period"] = [settings.in_period if start <= sketch.asserted < end else 0.0 for sketch in sketches]
    return bonus


def _named_speaker(query: Query, sketches: Sequence[Sketch]) -> str | None:
    """The one speaker whom the query names; None for none or several."""
    asked = set(query.terms)
    found = [
        name
        for name in {sketch.speaker for sketch in sketches}
        if name and (terms := query_terms(name)) and asked.issuperset(terms)
    ]
    return found[0] if len(found) == 1 else None


def _to_one(scores: Sequence[float]) -> list[float]:
    most = max(scores, default=0.0)
    return [score / most for score in scores] if most > 0 else [0.0] * len(scores)


_LOG = tuple(math.log1p(length) / 3 for length in range(61))
