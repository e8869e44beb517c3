"""Score candidates by words: BM25 among themselves, of a turn with its neighbours, of a session.

The store's BM25 finds the candidates; here they are weighed against each other. A term's weight comes from how many of
the candidates hold it: that is the term's worth for this query, and needs no figure of the store.

Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009, formula 3.15; the form
of the idf that is never negative is Lucene's ``BM25Similarity``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from wakeful.terms import index_terms
from wakeful.timewords import tells_time

_TAIL = 80
"""Characters at the end of a text where a question mark makes it a question."""


@dataclass(frozen=True, slots=True)
class Bag:
    """What ranking needs to know of a text."""

    terms: Mapping[str, int]
    length: int
    """Terms, repetitions counted; at least 1."""
    asks: bool
    """It ends in a question."""
    tells_time: bool
    """Its content, label aside, tells a time."""


@lru_cache(maxsize=16384)
def bag_of(label: str, content: str) -> Bag:
    """Analyse a text once; the same text is the same value."""
    said = index_terms(content)
    terms = [*_label_terms(label), *said] if label else said
    tail = content[-_TAIL:]
    return Bag(
        Counter(terms),
        len(terms) or 1,
        "?" in tail or "？" in tail or "؟" in tail,
        tells_time(said),
    )


@lru_cache(maxsize=4096)
def _label_terms(label: str) -> tuple[str, ...]:
    return tuple(index_terms(label))


def weights(tallies: Sequence[Sequence[int]]) -> list[float]:
    """Weigh each query term by how few of the candidates hold it; ``tallies`` are the candidates' counts."""
    total = len(tallies)
    out = []
    for column in zip(*tallies, strict=True):
        holding = total - column.count(0)
        out.append(math.log(1 + (total - holding + 0.5) / (holding + 0.5)))
    return out


def counts(terms: Sequence[str], bag: Bag) -> tuple[int, ...]:
    """How often a text holds each query term."""
    get = bag.terms.get
    return tuple([get(term, 0) for term in terms])


def bm25(
    tallies: Sequence[Sequence[float]], lengths: Sequence[float], idf: Sequence[float], *, k1: float, b: float
) -> list[float]:
    """Score texts by their counts of the query's terms."""
    mean = sum(lengths) / len(lengths) if lengths else 1.0
    flat, slope = k1 * (1 - b), k1 * b / mean
    out = []
    for tally, length in zip(tallies, lengths, strict=True):
        norm = flat + slope * length
        score = 0.0
        for count, weight in zip(tally, idf, strict=True):
            if count:
                score += weight * count / (count + norm)
        out.append(score * (k1 + 1))
    return out


def saturated(tally: Sequence[float], idf: Sequence[float], saturation: float) -> float:
    """Score a group of texts by its counts, without regard to length."""
    return sum([w * n * (saturation + 1) / (n + saturation) for n, w in zip(tally, idf, strict=True) if n])


def coverage(tally: Sequence[float], idf: Sequence[float]) -> float:
    """The share of the query's weight whose terms a text holds, 0 to 1."""
    total = sum(idf)
    return sum(w for n, w in zip(tally, idf, strict=True) if n) / total if total else 0.0


def overlap(left: Bag, right: Bag) -> float:
    """Share of terms in common (Jaccard index of the two sets), 0 to 1."""
    a, b = left.terms.keys(), right.terms.keys()
    union = len(a | b)
    return len(a & b) / union if union else 1.0
