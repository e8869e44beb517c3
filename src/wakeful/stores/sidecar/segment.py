"""What search and ranking need of the rows of one owner."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wakeful.records import MemoryNode, MemoryScope
from wakeful.sketches import Sketch
from wakeful.stores.sidecar.outlines import Outlines
from wakeful.stores.sidecar.vectors import Vectors
from wakeful.stores.sidecar.words import Words

SPARSE_ROWS = 1_000
NODE_BYTES = 1_500
"""What a row held as it was read takes, about."""
_ID = 9
"""Place of the id in a row that is added."""
_DEAD = 255
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
    """The rows of one owner, a slot each in the order they came; a row that changed moves to a new slot."""

    def __init__(self, scope: MemoryScope, model: str) -> None:
        import numpy

        self.np = numpy
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
        self.terms = 0
        """Terms of all live rows together."""
        self.words = Words(numpy)
        self.outlines = Outlines(numpy, scope)
        self.vectors: Vectors | None = None
        self._kind = numpy.empty(0, "u1")
        self._timed: dict[int, tuple[int, int, int, int]] = {}
        self._timed_arrays: Any = None
        self._masks: dict[frozenset[int], Any] = {}

    @property
    def size(self) -> int:
        """Bytes held, about."""
        held = self._kind.nbytes + self.words.size + self.outlines.size + 200 * len(self._timed) + 4096
        held += NODE_BYTES * len(self.nodes)
        return int(held + (0 if self.vectors is None else self.vectors.size))

    @property
    def is_sparse(self) -> bool:
        """Whether so many slots are dead that it is better loaded anew."""
        return self.slots - self.alive > max(SPARSE_ROWS, self.alive // 2)

    def add(self, found: Sequence[tuple[Any, ...]]) -> None:
        """Add rows that are not there, in rising order of their numbers.

        A row: row, layer, status, valid_from, valid_until, superseded, expires, terms, float16 vector or None, and what
        ``Outlines.add`` takes.
        """
        if not found:
            return
        np = self.np
        first, last = self.slots, self.slots + len(found)
        self._reserve(last)
        (
            row,
            layer,
            status,
            *times,
            terms,
            data,
            ids,
            session,
            speaker,
            asserted,
            importance,
            uses,
            label,
            content,
            entry,
        ) = zip(*found, strict=True)
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
        self.terms += self.words.add(first, terms)
        self.outlines.add(
            rows=row, ids=ids, layers=layer, sessions=session, speakers=speaker, asserted=asserted, importance=importance,
            uses=uses, labels=label, contents=content, entries=entry, terms=terms,
        )  # fmt: skip
        self.last_row = max(self.last_row, row[-1])

    def replace(self, found: Sequence[tuple[Any, ...]]) -> None:
        """Put rows in the place of what was known of them."""
        for each in found:
            slot = self.outlines.places.get(each[_ID])
            if slot is not None:
                self._kind[slot] = _DEAD
                self.alive -= 1
                self.terms -= int(self.words.lengths[slot])
                self._timed.pop(slot, None)
                self.outlines.remove(slot)
        self.add(found)

    def sketches(self, slots: Sequence[int], terms: Sequence[str]) -> list[Sketch]:
        """Sketch the rows of these slots, counting terms."""
        places = self.np.array(slots, "i4")
        counts = [self.words.counts(term, places).tolist() for term in terms]
        lengths = self.words.lengths.take(places).tolist()
        return self.outlines.sketches(slots, places, lengths, counts)

    def beside(self, slot: int, shown: Any, distance: int) -> list[tuple[int, int]]:
        """Shown slots said just before and after this one in its session, each as (distance, slot)."""
        thread, here = self.outlines.thread_of(slot)
        found: list[tuple[int, int]] = []
        for step, places in ((-1, range(here - 1, -1, -1)), (1, range(here + 1, len(thread)))):
            met = 0
            for place in places:
                if met == distance:
                    break
                if shown[thread[place]]:
                    met += 1
                    found.append((met * step, thread[place]))
        return sorted(found)

    def _reserve(self, slots: int) -> None:
        np, held = self.np, len(self._kind)
        if slots <= held:
            return
        room = slots if held == 0 else max(slots, held * 5 // 4 + 64)
        kind = np.full(room, _DEAD, "u1")
        kind[:held] = self._kind
        self._kind = kind
        self.words.reserve(room)
        self.outlines.reserve(room)
        if self.vectors is not None:
            self.vectors.reserve(room)

    def _add_vectors(self, first: int, data: Sequence[bytes | None]) -> None:
        given = [(slot, each) for slot, each in enumerate(data, first) if each is not None]
        if given and self.vectors is None:
            self.vectors = Vectors(self.np, len(given[0][1]) // 2, len(self._kind))
        if self.vectors is not None:
            given = [(slot, each) for slot, each in given if len(each) == 2 * self.vectors.width]
            if given:
                self.vectors.add([slot for slot, _ in given], [each for _, each in given])

    def postings(self, term: str) -> tuple[Any, Any, Any]:
        """Slots of live rows that hold a term, how often, and the lengths of their texts."""
        slots, counts, lengths = self.words.postings(term)
        if self.alive < self.slots and len(slots):
            live = self._kind.take(slots) != _DEAD
            slots, counts, lengths = slots[live], counts[live], lengths[live]
        return slots, counts, lengths

    def mask(self, wanted: Wanted) -> Any:
        """Which slots a search may give."""
        np = self.np
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
