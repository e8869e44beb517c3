"""Bring words, meaning and neighbourhood together into one score for each candidate.

The parts are brought to 0 to 1 and added with weights, never fused by rank: ranks throw away the margins, and a sure
hit by words would count no more than a narrow one. Source: Bruch, Gai and Ingber, "An Analysis of Fusion Functions for
Hybrid Retrieval", ACM TOIS 2023, section 4 (convex combination over reciprocal rank fusion).

What stands near in time counts too: a turn inherits from its neighbours, and most of all an answer from its question.
Windows, sessions and neighbours say much of short turns and little of long messages, so they fade with text length.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import add

from wakeful.records import MemoryNode
from wakeful.retrieval import lexical
from wakeful.retrieval.dense import closeness
from wakeful.retrieval.query import Query
from wakeful.retrieval.settings import RecallSettings
from wakeful.terms import query_terms

FRONT = 16
"""Best candidates by which the fit of a recall is judged."""


@dataclass(slots=True)
class Candidate:
    """A row that is weighed; a working value of one recall."""

    node: MemoryNode
    words: float | None = None
    """The store's BM25; None: not found by words."""
    cosine: float | None = None
    """None: not found by vector."""
    before: str | None = None
    after: str | None = None
    """Ids of its neighbours in time, as far as they are candidates."""
    bag: lexical.Bag = field(init=False)
    session: tuple[object, str] = field(init=False)
    """Key of its session; a row without one is its own."""
    tally: tuple[int, ...] = ()
    base: float = 0.0
    """Words, meaning, window and session together."""
    parts: dict[str, float] = field(default_factory=dict)
    score: float = 0.0

    def __post_init__(self) -> None:
        node = self.node
        self.bag = lexical.bag_of(node.label, node.content)
        session = node.source.session
        self.session = (None, node.id) if session is None else (node.scope.levels, session)


@dataclass(frozen=True, slots=True)
class Weighed:
    """All candidates, scored."""

    candidates: Mapping[str, Candidate]
    idf: tuple[float, ...]
    """Weight of each query term among the candidates."""

    def fit(self) -> float:
        """How well the best candidate fits the query in itself, 0 to 1: its share of the query's words, or its cosine."""
        best = 0.0
        front = sorted(self.candidates.values(), key=lambda each: -each.score)[:FRONT]
        for each in front:
            best = max(best, lexical.coverage(each.tally, self.idf), each.cosine or 0.0)
        return min(1.0, best)


def preliminary(candidates: Iterable[Candidate], settings: RecallSettings) -> list[Candidate]:
    """Order candidates by words and meaning alone, best first."""
    held = list(candidates)
    most = max((each.words or 0.0 for each in held), default=0.0) or 1.0
    near = closeness({each.node.id: each.cosine for each in held if each.cosine is not None})

    def score(each: Candidate) -> float:
        return (each.words or 0.0) / most + settings.dense * near.get(each.node.id, 0.0)

    return sorted(held, key=lambda each: (-score(each), each.node.id))


def fuse(query: Query, candidates: Mapping[str, Candidate], settings: RecallSettings) -> Weighed:
    """Score every candidate. Works on the candidates given, and on nothing else."""
    held = list(candidates.values())
    bags = [each.bag for each in held]
    for each in held:
        each.tally = lexical.counts(query.terms, each.bag)
    idf = lexical.weights([each.tally for each in held])
    short = _shortness(bags, settings)
    _base(held, candidates, idf, short, settings)
    inherited = [_inherited(each, candidates, short, settings) for each in held]
    bonus = _bonus(query, held, settings)
    for each, (gain, origin), extras in zip(held, inherited, bonus, strict=True):
        if gain:
            each.parts[origin] = gain
        each.parts |= extras
        each.score = each.base + gain + sum(extras.values())
    return Weighed(candidates, tuple(idf))


def _shortness(bags: Sequence[lexical.Bag], settings: RecallSettings) -> float:
    """1 for short turns, 0 for long messages, by the mean length of the candidates."""
    mean = sum(bag.length for bag in bags) / len(bags) if bags else 0.0
    return min(1.0, max(0.0, (settings.long - mean) / (settings.long - settings.short)))


def _base(
    held: Sequence[Candidate],
    candidates: Mapping[str, Candidate],
    idf: Sequence[float],
    short: float,
    settings: RecallSettings,
) -> None:
    def bm25(tallies: Sequence[Sequence[float]], lengths: Sequence[float]) -> list[float]:
        return _to_one(lexical.bm25(tallies, lengths, idf, k1=settings.k1, b=settings.b))

    words = bm25([each.tally for each in held], [each.bag.length for each in held])
    near = closeness({each.node.id: each.cosine for each in held if each.cosine is not None})
    dense = settings.dense * short + settings.dense_long * (1 - short)
    window = session = [0.0] * len(held)
    if short:
        window = bm25(*_windows(held, candidates))
        session = _to_one(_sessions(held, idf, settings.session_saturation))
    for index, each in enumerate(held):
        each.parts = {
            "words": words[index],
            "meaning": dense * near.get(each.node.id, 0.0),
            "window": short * settings.window * window[index],
            "session": short * settings.session * session[index],
        }
        each.base = sum(each.parts.values())


def _windows(
    held: Sequence[Candidate], candidates: Mapping[str, Candidate]
) -> tuple[list[tuple[int, ...]], list[float]]:
    tallies, lengths = [], []
    for each in held:
        tally, length = each.tally, each.bag.length
        for neighbour_id in (each.before, each.after):
            other = candidates.get(neighbour_id) if neighbour_id is not None else None
            if other is not None:
                tally = tuple(map(add, tally, other.tally))
                length += other.bag.length
        tallies.append(tally)
        lengths.append(float(length))
    return tallies, lengths


def _sessions(held: Sequence[Candidate], idf: Sequence[float], saturation: float) -> list[float]:
    groups: defaultdict[tuple[object, str], list[Candidate]] = defaultdict(list)
    for each in held:
        groups[each.session].append(each)
    scores = {}
    for key, members in groups.items():
        total: Sequence[float] = members[0].tally
        if len(members) > 1:
            total = [sum(column) for column in zip(*[member.tally for member in members], strict=True)]
        scores[key] = lexical.saturated(total, idf, saturation)
    return [scores[each.session] for each in held]


def _inherited(
    each: Candidate, candidates: Mapping[str, Candidate], short: float, settings: RecallSettings
) -> tuple[float, str]:
    """What a text gains from the better of its two neighbours, and which one."""
    gain, origin = 0.0, ""
    before = candidates.get(each.before) if each.before is not None else None
    if before is not None:
        asks = before.bag.asks
        gain = (settings.from_question if asks else settings.from_before) * before.base
        origin = "answers a question" if asks else "said after"
    after = candidates.get(each.after) if each.after is not None else None
    if after is not None:
        share = short * (settings.from_answer if each.bag.asks else settings.from_after)
        if share * after.base > gain:
            gain, origin = share * after.base, "said before"
    return gain, origin


def _bonus(query: Query, held: Sequence[Candidate], settings: RecallSettings) -> list[dict[str, float]]:
    named = _named_speaker(query, held)
    out = []
    for each in held:
        extras = {
            "asks": -settings.question if each.bag.asks else 0.0,
            "length": settings.length * _LOG[min(each.bag.length, 60)],
        }
        if named is not None and each.node.source.speaker == named:
            extras["speaker"] = settings.speaker
        if query.asks_when and each.bag.tells_time:
            extras["tells a time"] = settings.time_words
        if query.period is not None and query.period.holds(each.node.asserted_at):
            extras["in the period"] = settings.in_period
        out.append(extras)
    return out


def _named_speaker(query: Query, held: Sequence[Candidate]) -> str | None:
    """The one speaker whom the query names; None for none or several."""
    speakers = {each.node.source.speaker for each in held} - {None, ""}
    asked = set(query.terms)
    found = [name for name in speakers if name and (terms := query_terms(name)) and asked.issuperset(terms)]
    return found[0] if len(found) == 1 else None


def _to_one(scores: Sequence[float]) -> list[float]:
    most = max(scores, default=0.0)
    return [score / most for score in scores] if most > 0 else [0.0] * len(scores)


_LOG = tuple(math.log1p(length) / 3 for length in range(61))
