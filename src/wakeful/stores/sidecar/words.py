"""Postings of one owner's rows: which slots hold a term, how often, and how long their texts are.

Postings are sorted by term and slot; what was added since stands in a tail until it is worth merging. Beside each posting
stands the length of its text, so a term is scored by going through its postings once, without a look at the slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, count
from typing import Any

MERGE_SHARE = 0.05
"""Share of rows behind the sorted postings at which they are merged in; and ``MERGE_ROWS`` at least."""
MERGE_ROWS = 256
_MOST = 0xFFFF
"""Counts and lengths are kept up to this; beyond it one more changes no score."""


class Words:
    """The postings."""

    def __init__(self, np: Any) -> None:
        self._np = np
        self._vocabulary: dict[str, int] = {}
        self.lengths = np.empty(0, "u2")
        """Terms of each slot's text."""
        self._starts = np.zeros(1, "i8")
        self._slots = np.empty(0, "i4")
        self._counts = np.empty(0, "u2")
        self._spans = np.empty(0, "u2")
        self._sorted_slots = 0
        self._tail: dict[int, tuple[list[int], list[int]]] = {}

    @property
    def size(self) -> int:
        """Bytes held, about."""
        arrays = (self.lengths, self._starts, self._slots, self._counts, self._spans)
        return sum(int(array.nbytes) for array in arrays) + 90 * len(self._vocabulary)

    def reserve(self, room: int) -> None:
        """Make room for so many slots."""
        grown = self._np.zeros(room, "u2")
        grown[: len(self.lengths)] = self.lengths
        self.lengths = grown

    def add(self, first: int, texts: Sequence[str]) -> int:
        """Add the terms of slots from ``first`` on, a text of terms each; give how many terms they are together."""
        np = self._np
        split = [text.split() for text in texts]
        lengths = np.fromiter(map(len, split), "i8", len(split))
        slots = first + len(split)
        self.lengths[first:slots] = np.minimum(lengths, _MOST)
        total = int(lengths.sum())
        vocabulary = self._vocabulary
        if len(split) < MERGE_ROWS:
            for slot, terms in enumerate(split, first):
                for term in set(terms):
                    number = vocabulary.setdefault(term, len(vocabulary))
                    holding, counts = self._tail.setdefault(number, ([], []))
                    holding.append(slot)
                    counts.append(min(terms.count(term), _MOST))
            if slots - self._sorted_slots > max(MERGE_ROWS, MERGE_SHARE * slots):
                self._merge(np.empty(0, "i8"), np.empty(0, "i8"), slots)
            return total
        fresh = count(len(vocabulary))
        for term in chain.from_iterable(split):
            if term not in vocabulary:
                vocabulary[term] = next(fresh)
        numbers = np.fromiter(map(vocabulary.__getitem__, chain.from_iterable(split)), "i8", total)
        self._merge(numbers, np.repeat(np.arange(first, slots), lengths), slots)
        return total

    def _merge(self, numbers: Any, slots: Any, end: int) -> None:
        """Sort the postings by term and slot: those held, those of the tail, and one for each word given."""
        np = self._np
        keys, counts = np.unique(numbers * (1 << 32) + slots, return_counts=True)
        parts = [keys]
        weights = [np.minimum(counts, _MOST).astype("u2")]
        for number, (tail_slots, tail_counts) in self._tail.items():
            parts.append(np.array(tail_slots, "i8") + number * (1 << 32))
            weights.append(np.array(tail_counts, "u2"))
        if len(self._slots):
            held = np.repeat(np.arange(len(self._starts) - 1), np.diff(self._starts))
            parts.append(held * (1 << 32) + self._slots)
            weights.append(self._counts)
        key = np.concatenate(parts)
        order = np.argsort(key, kind="stable")
        key = key[order]
        self._counts = np.concatenate(weights)[order]
        self._slots = (key & 0xFFFFFFFF).astype("i4")
        self._spans = self.lengths[self._slots]
        sizes = np.bincount(key >> 32, minlength=len(self._vocabulary))
        self._starts = np.concatenate(([0], np.cumsum(sizes)))
        self._tail = {}
        self._sorted_slots = end

    def postings(self, term: str) -> tuple[Any, Any, Any]:
        """Slots that hold a term, rising, dead ones too; how often; and the lengths of their texts."""
        np = self._np
        number = self._vocabulary.get(term)
        if number is None:
            return np.empty(0, "i4"), np.empty(0, "u2"), np.empty(0, "u2")
        start = end = 0
        if number + 1 < len(self._starts):
            start, end = self._starts[number], self._starts[number + 1]
        found = self._slots[start:end], self._counts[start:end], self._spans[start:end]
        tail = self._tail.get(number)
        if tail is None:
            return found
        slots = np.array(tail[0], "i4")
        return tuple(
            map(np.concatenate, zip(found, (slots, np.array(tail[1], "u2"), self.lengths[slots]), strict=True))
        )

    def counts(self, term: str, slots: Any) -> Any:
        """How often each of these slots (int32) holds a term."""
        np = self._np
        holding, counts, _ = self.postings(term)
        if not len(holding):
            return np.zeros(len(slots), "u2")
        place = np.minimum(np.searchsorted(holding, slots), len(holding) - 1)
        return counts.take(place) * (holding.take(place) == slots)
