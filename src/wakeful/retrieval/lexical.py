"""Score candidates by words: BM25 among themselves, of a turn with its neighbours, of a session.

The store's BM25 finds the candidates; here they are weighed against each other. A term's weight comes from how many of
the candidates hold it: that is the term's worth for this query, and needs no figure of the store.

Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009, formula 3.15; the form
of the idf that is never negative is Lucene's ``BM25Similarity``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def weights(tallies: Sequence[Sequence[int]]) -> list[float]:
    """Weigh each query term by how few of the candidates hold it; ``tallies`` are the candidates' counts."""
    total = len(tallies)
    out = []
    for column in zip(*tallies, strict=True):
        holding = total - column.count(0)
        out.append(math.log(1 + (total - holding + 0.5) / (holding + 0.5)))
    return out


def bm25(
    tallies: Sequence[Sequence[float]], lengths: Sequence[float], idf: Sequence[float], *, k1: float, b: float
) -> list[float]:
    """Score texts by their counts of the query's terms."""
    mean = sum(lengths) / len(lengths) if lengths else 1.0
    flat, slope = k1 * (1 - b), k1 * b / mean
    out = []
    for tally, length in zip(tallies, lengths, strict=True):
        score = 0.0
        if any(tally):
            norm = flat + slope * length
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
