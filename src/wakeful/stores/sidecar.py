"""Search one owner's rows in memory: words by BM25 over sorted postings, vectors by sign codes and a second look.

A ``Segment`` holds what search needs of one owner's rows, as numpy arrays. A store loads it once, adds what was written
since, and asks it; every change made by another process is in the store's change numbers, so a segment is never behind
what the reader's transaction sees. A ``Sidecar`` keeps the segments used last within a bound of bytes. Nothing here is
durable and nothing is needed for correctness: the rows that it finds are read again through the store's own predicate.

Source of the sign codes with a second look at full vectors: the usual binary quantisation with rescoring; how far the
two agree is measured by ``bench/store_latency.py``.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

from wakeful.records import MemoryNode
from wakeful.stores import bm25

SECOND_LOOK = 800
"""Rows nearest by their codes that are compared in full, at least."""
SECOND_LOOK_SHARE = 0.02
"""Share of all rows that is compared in full, up to ``SECOND_LOOK_MOST``. Source: on turns of people who talk, a second
look at 2 % of the rows gives 0.97 of the exact first ten, one at 4 % gives 0.99."""
SECOND_LOOK_MOST = 4_000
TALLIED = 16_384
"""Rows, evenly spread, whose distances tell how far to reach for a second look."""
EXACT_BELOW = 2_000
"""Rows up to which every vector is compared in full."""
MERGE_SHARE = 0.05
"""Share of rows behind the sorted postings at which they are merged in; and ``MERGE_ROWS`` at least."""
MERGE_ROWS = 256
SPARSE_ROWS = 1_000
NODES_HELD = 20_000
"""Rows of one owner that are held as they were read, so that they need not be read again."""
NODE_BYTES = 1_500
"""What such a row takes, about."""
_DEAD = 255
_HIDDEN = 0xFFFF
_NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows a search may give: ``Visibility`` in the numbers that a segment keeps."""

    kinds: frozenset[int]
    """Allowed ``layer * 4 + status``."""
    at: int
    as_of: int | None
    superseded: bool
    expired: bool


class Segment:
    """What search needs of the rows of one owner."""

    def __init__(self, model: str) -> None:
        import numpy

        self._np = numpy
        self.model = model
        """Id of the model whose vectors it holds."""
        self.lock = threading.Lock()
        self.change = 0
        """Change number of the store up to which the segment is complete."""
        self.last_row = -1
        self.nodes: dict[int, MemoryNode] = {}
        """Rows read lately, by number, as they are at ``change``."""
        self.slots = 0
        self.alive = 0
        self.words = 0
        """Terms of all live rows together."""
        self._vocabulary: dict[str, int] = {}
        self.rows = numpy.empty(0, "i8")
        self._kind = numpy.empty(0, "u1")
        self._length = numpy.empty(0, "f4")
        self._embedded = numpy.empty(0, "?")
        self._vectors: Any = None
        self._codes: Any = None
        self._timed: dict[int, tuple[int, int, int, int]] = {}
        self._timed_arrays: Any = None
        self._masks: dict[frozenset[int], Any] = {}
        self._starts = numpy.zeros(1, "i8")
        self._docs = numpy.empty(0, "i4")
        self._counts = numpy.empty(0, "f4")
        self._sorted_slots = 0
        self._tail: dict[int, tuple[list[int], list[int]]] = {}
        self._norm: tuple[float, Any] | None = None

    @property
    def size(self) -> int:
        """Bytes held, about."""
        arrays = (self.rows, self._kind, self._length, self._embedded, self._docs, self._counts, self._starts)
        held = sum(array.nbytes for array in arrays) + 90 * len(self._vocabulary) + 200 * len(self._timed) + 4096
        held += NODE_BYTES * len(self.nodes)
        if self._vectors is not None:
            held += self._vectors.nbytes + self._codes.nbytes
        return int(held)

    @property
    def is_sparse(self) -> bool:
        """Whether so many slots are dead that it is better loaded anew."""
        return self.slots - self.alive > max(SPARSE_ROWS, self.alive // 2)

    def add(self, found: Sequence[tuple[Any, ...]]) -> None:
        """Add rows: (row, layer, status, valid_from, valid_until, superseded, expires, terms, float16 vector or None)."""
        if not found:
            return
        np = self._np
        first, last = self.slots, self.slots + len(found)
        self._reserve(last)
        row, layer, status, *times, terms, data = zip(*found, strict=True)
        self.rows[first:last] = row
        self._kind[first:last] = np.array(layer, "u1") * 4 + np.array(status, "u1")
        for slot, bounds in enumerate(zip(*times, strict=True), first):
            if bounds != (None, None, None, None):
                start, end, superseded, expires = bounds
                self._timed[slot] = (
                    *(-_NEVER if start is None else start, _NEVER if end is None else end),
                    *(_NEVER if superseded is None else superseded, _NEVER if expires is None else expires),
                )
        self._timed_arrays = None
        self._masks.clear()
        self._add_vectors(first, data)
        self.slots = last
        self.alive += len(found)
        self._add_terms(first, terms)
        self.last_row = max(self.last_row, max(row))

    def replace(self, found: Sequence[tuple[Any, ...]]) -> None:
        """Put rows in the place of what was known of them."""
        np = self._np
        for each in found:
            for slot in np.flatnonzero(self.rows[: self.slots] == each[0]):
                if self._kind[slot] != _DEAD:
                    self._kind[slot] = _DEAD
                    self.alive -= 1
                    self.words -= int(self._length[slot])
                    self._timed.pop(int(slot), None)
        self.add(found)

    def _reserve(self, slots: int) -> None:
        np = self._np
        held = len(self.rows)
        if slots <= held:
            return
        room = slots if held == 0 else max(slots, held * 5 // 4 + 64)
        self.rows = np.resize(self.rows, room) if held else np.empty(room, "i8")
        self._kind = self._grown(self._kind, room, _DEAD)
        self._length = self._grown(self._length, room, 0)
        self._embedded = self._grown(self._embedded, room, False)
        if self._vectors is not None:
            self._vectors = self._grown(self._vectors, room, 0)
            codes = np.zeros((len(self._codes), room), "u8")
            codes[:, :held] = self._codes
            self._codes = codes

    def _grown(self, array: Any, room: int, filler: Any) -> Any:
        out = self._np.full((room, *array.shape[1:]), filler, array.dtype)
        out[: len(array)] = array
        return out

    def _add_vectors(self, first: int, data: Sequence[bytes | None]) -> None:
        np = self._np
        given = [(slot, each) for slot, each in enumerate(data, first) if each is not None]
        if not given:
            return
        width = len(given[0][1]) // 2
        if self._vectors is None:
            self._vectors = np.zeros((len(self.rows), width), "f2")
            self._codes = np.zeros((-(-width // 64), len(self.rows)), "u8")
        given = [(slot, each) for slot, each in given if len(each) == 2 * self._vectors.shape[1]]
        slots = np.array([slot for slot, _ in given])
        matrix = np.frombuffer(b"".join(each for _, each in given), "<f2").reshape(len(given), -1)
        self._vectors[slots] = matrix
        self._codes[:, slots] = self._code(matrix).T
        self._embedded[slots] = True

    def _code(self, matrix: Any) -> Any:
        """One bit a dimension: its sign."""
        np = self._np
        words = -(-matrix.shape[1] // 64)
        bits = np.packbits(matrix > 0, axis=1)
        padded = np.zeros((len(matrix), words * 8), "u1")
        padded[:, : bits.shape[1]] = bits
        return padded.view("u8")

    def _add_terms(self, first: int, texts: Sequence[str]) -> None:
        np = self._np
        split = [text.split() for text in texts]
        lengths = np.fromiter(map(len, split), "f4", len(split))
        self._length[first : self.slots] = lengths
        self.words += int(lengths.sum())
        self._norm = None
        vocabulary = self._vocabulary
        if len(split) < MERGE_ROWS:
            for slot, terms in enumerate(split, first):
                for term in set(terms):
                    number = vocabulary.setdefault(term, len(vocabulary))
                    slots, counts = self._tail.setdefault(number, ([], []))
                    slots.append(slot)
                    counts.append(terms.count(term))
            if self.slots - self._sorted_slots > max(MERGE_ROWS, MERGE_SHARE * self.slots):
                self._merge_tail(np.empty(0, "i8"), np.empty(0, "i8"))
            return
        fresh = count(len(vocabulary))
        for term in chain.from_iterable(split):
            if term not in vocabulary:
                vocabulary[term] = next(fresh)
        numbers = np.fromiter(map(vocabulary.__getitem__, chain.from_iterable(split)), "i8", int(lengths.sum()))
        slots = np.repeat(np.arange(first, self.slots), lengths.astype("i8"))
        self._merge_tail(numbers, slots)

    def _merge_tail(self, numbers: Any, slots: Any) -> None:
        """Sort the postings by term and slot: those held, those of the tail, and one for each word given."""
        np = self._np
        keys, counts = np.unique(numbers * (1 << 32) + slots, return_counts=True)
        parts = [keys]
        weights = [counts.astype("f4")]
        for number, (tail_slots, tail_counts) in self._tail.items():
            parts.append(np.array(tail_slots, "i8") + number * (1 << 32))
            weights.append(np.array(tail_counts, "f4"))
        if len(self._docs):
            held = np.repeat(np.arange(len(self._starts) - 1), np.diff(self._starts))
            parts.append(held * (1 << 32) + self._docs)
            weights.append(self._counts)
        key = np.concatenate(parts)
        order = np.argsort(key, kind="stable")
        key = key[order]
        self._counts = np.concatenate(weights)[order]
        self._docs = (key & 0xFFFFFFFF).astype("i4")
        sizes = np.bincount(key >> 32, minlength=len(self._vocabulary))
        self._starts = np.concatenate(([0], np.cumsum(sizes)))
        self._tail = {}
        self._sorted_slots = self.slots

    def postings(self, term: str) -> tuple[Any, Any]:
        """Slots of live rows that hold a term, and how often."""
        np = self._np
        number = self._vocabulary.get(term)
        if number is None:
            return np.empty(0, "i4"), np.empty(0, "f4")
        if number + 1 < len(self._starts):
            start, end = self._starts[number], self._starts[number + 1]
            docs, counts = self._docs[start:end], self._counts[start:end]
        else:
            docs, counts = np.empty(0, "i4"), np.empty(0, "f4")
        tail = self._tail.get(number)
        if tail is not None:
            docs = np.concatenate((docs, np.array(tail[0], "i4")))
            counts = np.concatenate((counts, np.array(tail[1], "f4")))
        if self.alive < self.slots:
            live = self._kind[docs] != _DEAD
            docs, counts = docs[live], counts[live]
        return docs, counts

    def norm(self, mean: float) -> Any:
        """What BM25 adds to a term's count, by slot."""
        if self._norm is None or self._norm[0] != mean:
            share = self._length[: self.slots] * (bm25.K1 * bm25.B / (mean or 1.0))
            share += bm25.K1 * (1 - bm25.B)
            self._norm = (mean, share)
        return self._norm[1]

    def mask(self, wanted: Wanted) -> Any:
        """Which slots a search may give."""
        np = self._np
        mask = self._masks.get(wanted.kinds)
        if mask is None:
            table = np.zeros(256, "?")
            table[list(wanted.kinds)] = True
            if len(self._masks) > 8:
                self._masks.clear()
            mask = self._masks[wanted.kinds] = table[self._kind[: self.slots]]
        if not self._timed:
            return mask
        if self._timed_arrays is None:
            slots = np.fromiter(self._timed, "i8", len(self._timed))
            self._timed_arrays = (slots, np.array(list(self._timed.values()), "i8").T)
        slots, (start, end, superseded, expires) = self._timed_arrays
        if wanted.as_of is None:
            holds = (superseded == _NEVER) & (start <= wanted.at) & (wanted.at < end)
        else:
            close = np.where(end == _NEVER, superseded, end)
            holds = (start <= wanted.as_of) & (wanted.as_of < close)
        if wanted.superseded:
            holds |= superseded != _NEVER
        if not wanted.expired:
            holds &= wanted.at < expires
        mask = mask.copy()
        mask[slots] &= holds
        return mask

    def nearest(self, query: Any, wanted: Wanted, limit: int) -> tuple[Any, Any]:
        """Slots nearest to a query (float32, unit length) by cosine, and their cosines; more than ``limit`` on ties."""
        np = self._np
        none = np.empty(0, "i8"), np.empty(0, "f4")
        if self._vectors is None or len(query) != self._vectors.shape[1]:
            return none
        shown = self.mask(wanted) & self._embedded[: self.slots]
        look = max(SECOND_LOOK, 4 * limit, min(SECOND_LOOK_MOST, int(SECOND_LOOK_SHARE * self.slots)))
        if self.slots <= max(EXACT_BELOW, look):
            slots = np.flatnonzero(shown)
        else:
            slots = self._close(query, shown, look)
        scores = self._vectors[slots].astype("f4") @ query
        return best(np, slots, scores, limit)

    def _close(self, query: Any, shown: Any, look: int) -> Any:
        """About ``look`` shown slots whose codes differ least from the query's."""
        np = self._np
        code = self._code(query[None, :])[0]
        far = np.zeros(self.slots, "u2")
        for word, bits in zip(code, self._codes, strict=True):
            far += popcount(np, bits[: self.slots] ^ word)
        if not shown.all():
            far[~shown] = _HIDDEN
        for step in (max(1, self.slots // TALLIED), 1):
            tally = np.bincount(far[::step])[:_HIDDEN]
            reach = int(np.searchsorted(np.cumsum(tally), -(-look // step)))
            slots = np.flatnonzero(far <= min(reach, 64 * len(self._codes)))
            if step == 1 or len(slots) >= look // 2:
                break
        return slots


def popcount(np: Any, words: Any) -> Any:
    """Count the set bits of 64-bit words; numpy before 2 has no such function."""
    if hasattr(np, "bitwise_count"):
        return np.bitwise_count(words)
    halves = words.view("u2").reshape(len(words), 4)
    global _bits_of_half
    if _bits_of_half is None:
        _bits_of_half = np.array([number.bit_count() for number in range(1 << 16)], "u1")
    return _bits_of_half[halves].sum(axis=1, dtype="u2")


_bits_of_half: Any = None


def best(np: Any, slots: Any, scores: Any, limit: int) -> tuple[Any, Any]:
    """The ``limit`` best of scored slots, in no order, with a bounded number of those that tie with the last."""
    if len(slots) > limit:
        floor = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        kept = np.flatnonzero(scores >= floor)
        if len(kept) > limit + 256:
            above = np.flatnonzero(scores > floor)
            kept = np.concatenate((above, np.flatnonzero(scores == floor)[: limit + 256 - len(above)]))
        slots, scores = slots[kept], scores[kept]
    return slots, scores


def search_words(
    segments: Sequence[Segment], terms: Iterable[str], wanted: Wanted, limit: int
) -> list[tuple[int, float]]:
    """Rows of all segments that hold any of the terms, with their BM25; a few more than ``limit`` on ties."""
    found: list[tuple[int, float]] = []
    rows = sum(segment.alive for segment in segments)
    mean = sum(segment.words for segment in segments) / rows if rows else 0.0
    held = [[segment.postings(term) for segment in segments] for term in dict.fromkeys(terms)]
    weights = [bm25.idf(rows, sum(len(docs) for docs, _ in each)) * (bm25.K1 + 1) for each in held]
    for place, segment in enumerate(segments):
        np = segment._np
        norm = segment.norm(mean)
        scores = np.zeros(segment.slots, "f4")
        for each, weight in zip(held, weights, strict=True):
            docs, counts = each[place]
            if len(docs):
                scores[docs] += counts / (counts + norm[docs]) * np.float32(weight)
        slots = np.flatnonzero((scores > 0) & segment.mask(wanted))
        slots, kept = best(np, slots, scores[slots], limit)
        found += zip(segment.rows[slots].tolist(), kept.tolist(), strict=True)
    return found


def search_vectors(segments: Sequence[Segment], query: bytes, wanted: Wanted, limit: int) -> list[tuple[int, float]]:
    """Rows of all segments nearest to a query (float32 bytes, unit length); a few more than ``limit`` on ties."""
    import numpy

    found: list[tuple[int, float]] = []
    vector = numpy.frombuffer(query, "<f4")
    for segment in segments:
        slots, scores = segment.nearest(vector, wanted, limit)
        found += zip(segment.rows[slots].tolist(), scores.tolist(), strict=True)
    return found


class Sidecar:
    """Keep the segments used last, within a bound of bytes."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._lock = threading.Lock()
        self._held: OrderedDict[int, Segment] = OrderedDict()

    def get(self, owner: int) -> Segment | None:
        """The segment of an owner, if it is held."""
        with self._lock:
            segment = self._held.get(owner)
            if segment is not None:
                self._held.move_to_end(owner)
            return segment

    def put(self, owner: int, segment: Segment) -> None:
        """Keep a segment; the ones used longest ago make room."""
        with self._lock:
            self._held[owner] = segment
            self._held.move_to_end(owner)
            total = sum(each.size for each in self._held.values())
            while total > self.budget and len(self._held) > 1:
                _, dropped = self._held.popitem(last=False)
                total -= dropped.size

    def nodes(self, owner: int, change: int) -> dict[int, MemoryNode]:
        """The rows held of an owner, as they are at ``change``; a dictionary of its own when there are none such.

        What is put into it stays only when it was read at the segment's own change: an older reader's row must not.
        """
        segment = self._held.get(owner)
        if segment is None or segment.change != change:
            return {}
        if len(segment.nodes) > NODES_HELD:
            segment.nodes.clear()
        return segment.nodes

    def forget(self, owner: int | None = None) -> None:
        """Drop the segment of an owner; of all for None."""
        with self._lock:
            if owner is None:
                self._held.clear()
            else:
                self._held.pop(owner, None)
