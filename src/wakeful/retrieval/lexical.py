"""Score candidates by words: BM25 among themselves, of a turn with its neighbours, of a session.

The store's BM25 finds the candidates; here they are weighed against each other. A term's weight comes from how many of
the candidates hold it: that is the term's worth for this query, and needs no figure of the store.

Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009, formula 3.15; the form
of the idf that is never negative is Lucene's ``BM25Similarity``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import compress

Held = list[tuple[int, int]]
"""Places that hold a term, and how often, for one term of the query: most candidates hold few of a query's terms."""


def held(tallies: Sequence[Sequence[int]]) -> list[Held]:
    """Turn counts by candidate into the places of each term."""
    return [list(compress(enumerate(column), column)) for column in zip(*tallies, strict=True)]


def weights(terms: Iterable[Held], total: int) -> list[float]:
    """Weigh each query term by how few of so many candidates hold it."""
    return [math.log(1 + (total - len(places) + 0.5) / (len(places) + 0.5)) for places in terms]


def bm25(terms: Iterable[Held], lengths: Sequence[float], idf: Sequence[float], *, k1: float, b: float) -> list[float]:
    """Score texts of these lengths by how often they hold the query's terms."""
    mean = sum(lengths) / len(lengths) if lengths else 1.0
    flat, slope = k1 * (1 - b), k1 * b / mean
    norms = [flat + slope * length for length in lengths]
    scores = [0.0] * len(lengths)
    for places, weight in zip(terms, idf, strict=True):
        full = weight * (k1 + 1)
        for place, count in places:
            scores[place] += full * count / (count + norms[place])
    return scores


def grouped(
    terms: Iterable[Held], groups: Sequence[int], count: int, idf: Sequence[float], saturation: float
) -> list[float]:
    """Score so many groups of texts by their counts, without regard to length; ``groups`` is the group of each place."""
    scores = [0.0] * count
    for places, weight in zip(terms, idf, strict=True):
        sums: dict[int, int] = {}
        for place, times in places:
            group = groups[place]
            sums[group] = sums.get(group, 0) + times
        full = weight * (saturation + 1)
        for group, times in sums.items():
            scores[group] += full * times / (times + saturation)
    return scores


def coverage(tally: Sequence[float], idf: Sequence[float]) -> float:
    """The share of the query's weight whose terms a text holds, 0 to 1."""
    total = sum(idf)
    return sum(w for n, w in zip(tally, idf, strict=True) if n) / total if total else 0.0
