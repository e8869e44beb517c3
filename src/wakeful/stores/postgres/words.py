"""The words of a scope, packed: what is written for a text, and how a query is scored by it.

A term is a 64-bit hash. For each owner, term and run of 1,024 documents one row holds an entry of four bytes a document:
its place in the run (10 bits), how often the term stands in it (6 bits, 63 at most) and its length in terms (16 bits,
65,535 at most). So a query reads a few hundred rows even for a term that stands in most of 200,000 texts, and BM25 is
exact. ``=`` on whole numbers is all that the database must judge, which it does inside an index even under row-level
security; the operators of full-text search it would judge only after it had read every row of the scope.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from typing import Any

from wakeful.stores import bm25
from wakeful.terms import index_terms

RUN = 1024
"""Documents of one row."""
_MAX_COUNT = 63
_MAX_LENGTH = 65_535


@lru_cache(maxsize=262_144)
def term_key(term: str) -> int:
    """Give a term's number: 64 bits of BLAKE2b, signed. Two of a million terms share one with a chance under 10^-7."""
    return int.from_bytes(blake2b(term.encode("utf-8", "replace"), digest_size=8).digest(), "big", signed=True)


@dataclass(frozen=True, slots=True)
class Text:
    """The terms of one document."""

    doc: int
    counts: Counter[str]
    length: int


def analysed(doc: int, label: str, content: str) -> Text:
    """Take a document apart."""
    terms = index_terms(f"{label}\n{content}")
    return Text(doc, Counter(terms), len(terms))


def entries(texts: Iterable[Text]) -> tuple[list[int], list[int], list[bytes]]:
    """Give terms, runs and packed entries of documents to be added, each (term, run) once."""
    packed: defaultdict[tuple[int, int], array[int]] = defaultdict(lambda: array("I"))
    for text in texts:
        run, place = divmod(text.doc, RUN)
        tail = min(text.length, _MAX_LENGTH)
        for term, count in text.counts.items():
            packed[term_key(term), run].append(place << 22 | min(count, _MAX_COUNT) << 16 | tail)
    keys = sorted(packed)
    return [term for term, _ in keys], [run for _, run in keys], [_bytes(packed[key]) for key in keys]


def without(held: bytes, places: set[int]) -> bytes:
    """Give a row's entries without those of some places."""
    return _bytes(array("I", (entry for entry in _array(held) if entry >> 22 not in places)))


def touched(texts: Iterable[Text]) -> dict[tuple[int, int], set[int]]:
    """Give which places of which (term, run) documents take."""
    found: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for text in texts:
        run, place = divmod(text.doc, RUN)
        for term in text.counts:
            found[term_key(term), run].add(place)
    return found


def _array(raw: bytes) -> array[int]:
    values = array("I")
    values.frombytes(raw)
    if _SWAP:
        values.byteswap()
    return values


def _bytes(values: array[int]) -> bytes:
    if _SWAP:
        values = array("I", values)
        values.byteswap()
    return values.tobytes()


_SWAP = sys.byteorder == "big"


@dataclass(frozen=True, slots=True)
class Scored:
    """Documents by score, best first."""

    owners: list[int]
    docs: list[int]
    scores: list[float]
    found: int
    """Documents that hold any of the terms, those not listed included."""

    def upto(self, many: int) -> int:
        """Give how many to take so that ``many`` are in and no tie is cut, as far as ties are bearable."""
        end = min(many, len(self.scores))
        limit = min(len(self.scores), many + _MAX_TIES)
        while end < limit and self.scores[end] == self.scores[end - 1]:
            end += 1
        return end


_MAX_TIES = 5_000
"""Documents of one score that are taken at once so that they can be put in id order."""


Row = tuple[int, int, Sequence[int], Sequence[int], bytes]
"""Owner, term, runs in rising order, bytes of each run's entries, and the entries of all of them together."""


Held = tuple[int, Sequence[int], Sequence[int], bytes]
"""The entries of a term and an owner: the owner's first place, and ``Row`` from its runs on."""


def score(sizes: Sequence[Sequence[int]], rows: Sequence[Row], keep: int) -> Scored:
    """Score every document that holds any of the terms by BM25.

    ``sizes``: owner, documents, terms in all, documents ever numbered. ``keep``: how many of the best are wanted; more are
    given when scores tie.
    """
    total = sum(size[1] for size in sizes)
    mean = sum(size[2] for size in sizes) / total if total else 0.0
    by_term: defaultdict[int, list[Held]] = defaultdict(list)
    base: dict[int, int] = {}
    reach = 0
    runs: dict[int, int] = {}
    for owner, _, _, numbered, *_ in sizes:
        base[owner], runs[owner] = reach, numbered // RUN + 1
        reach += runs[owner] * RUN
    for owner, term, held, counts, raw in rows:
        # What was written after the sizes were read is left to the next query.
        known = bisect_left(held, runs.get(owner, 0))
        if known < len(held):
            held, counts = held[:known], counts[:known]
            raw = raw[: sum(counts)]
        if known:
            by_term[term].append((base[owner], held, counts, raw))
    found, count = _score_arrays(by_term, reach, total, mean, keep)
    places = sorted((start, owner) for owner, start in base.items())
    starts = [start for start, _ in places]
    at = [bisect_right(starts, document) - 1 for document, _ in found]
    return Scored(
        [places[place][1] for place in at],
        [document - starts[place] for place, (document, _) in zip(at, found, strict=True)],
        [value for _, value in found],
        count,
    )


def _score_arrays(
    by_term: dict[int, list[Held]],
    reach: int,
    total: int,
    mean: float,
    keep: int,
) -> tuple[list[tuple[int, float]], int]:
    try:
        import numpy as np
    except ModuleNotFoundError:
        plain = _score_plainly(by_term, total, mean)
        return plain, len(plain)
    if not by_term:
        return [], 0
    starts: list[Any] = []
    sizes: list[int] = []
    weights: list[float] = []
    lengths: list[int] = []
    for held in by_term.values():
        size = sum(len(raw) for *_, raw in held) // 4
        weights.append(bm25.idf(total, min(size, total)) * (bm25.K1 + 1))
        lengths.append(size)
        for start, runs, counts, _ in held:
            starts.append(start + np.array(runs) * RUN)
            sizes += counts
    packed = np.frombuffer(b"".join(raw for held in by_term.values() for *_, raw in held), dtype="<u4")
    places = np.repeat(np.concatenate(starts), np.array(sizes) // 4)
    places += packed >> 22
    frequency = (packed >> 16 & 63).astype(np.float32)
    share = (packed & 65_535).astype(np.float32)
    share *= np.float32(bm25.K1 * bm25.B / (mean or 1.0))
    share += frequency + np.float32(bm25.K1 * (1 - bm25.B))
    np.divide(frequency, share, out=share)
    share *= np.repeat(np.array(weights, dtype=np.float32), lengths)
    scores = np.bincount(places, weights=share, minlength=reach)
    count = int(np.count_nonzero(scores > 0))
    hit = np.flatnonzero(scores >= _least(scores, places, by_term, keep) if count > keep else scores > 0)
    values = scores[hit]
    if len(hit) > keep:
        bar = np.partition(values, len(values) - keep)[len(values) - keep]
        strong = values >= bar
        hit, values = hit[strong], values[strong]
    order = np.lexsort((hit, -values))
    result: list[tuple[int, float]] = list(zip(hit[order].tolist(), values[order].tolist(), strict=True))
    return result, count


def _least(scores: Any, places: Any, by_term: dict[int, list[Held]], keep: int) -> float:
    """A score that the best ``keep`` documents surely reach: so many hold the rarest term that has as many documents.

    It spares a look at all documents that hold a common term and nothing else.
    """
    start, fewest, chosen = 0, sys.maxsize, None
    for held in by_term.values():
        count = sum(len(raw) for *_, raw in held) // 4
        if keep <= count < fewest:
            fewest, chosen = count, slice(start, start + count)
        start += count
    if chosen is None:
        return sys.float_info.min
    reached = scores[places[chosen]]
    reached.partition(len(reached) - keep)
    return float(reached[len(reached) - keep])


def _score_plainly(by_term: dict[int, list[Held]], total: int, mean: float) -> list[tuple[int, float]]:
    scores: defaultdict[int, float] = defaultdict(float)
    for held in by_term.values():
        weight = bm25.idf(total, min(sum(len(raw) for *_, raw in held) // 4, total))
        for start, runs, counts, raw in held:
            entries = iter(_array(raw))
            for run, size in zip(runs, counts, strict=True):
                for entry in islice(entries, size // 4):
                    value = bm25.saturation(entry >> 16 & 63, entry & 65_535, mean)
                    scores[start + run * RUN + (entry >> 22)] += weight * value
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))
