"""BM25: how well a text answers a query by its words.

Score of a text = sum over the query's terms of ``idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * length / mean length))``
with ``idf = ln(1 + (N - df + 0.5) / (df + 0.5))``. Source: Robertson and Zaragoza, "The Probabilistic Relevance
Framework: BM25 and Beyond" (2009), section 3; the added 1 in the logarithm keeps it positive (Lucene's form).
N, df and the mean length are counted over the rows of the scopes that the reader sees, so a tenant's scores never
depend on another tenant's rows.
"""

from __future__ import annotations

import math

K1 = 1.2
"""How soon repetitions of a term stop to count. Source: the usual default (Lucene, SQLite FTS5)."""
B = 0.75
"""How far long texts are held back, share. Source: as above."""


def idf(rows: int, holding: int) -> float:
    """Weight of a term that ``holding`` of ``rows`` texts hold."""
    return math.log(1 + (rows - holding + 0.5) / (holding + 0.5))


def saturation(count: int, length: int, mean_length: float) -> float:
    """Weight of ``count`` repetitions in a text of ``length`` terms."""
    return count * (K1 + 1) / (count + K1 * (1 - B + B * length / (mean_length or 1.0)))
