"""What ranking needs of the rows of one owner, by slot: all of a ``Sketch`` but what is counted in the text."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import repeat
from typing import Any

from wakeful.records import MemoryLayer, MemoryScope
from wakeful.sketches import Sketch, asks, said_key
from wakeful.terms import index_terms
from wakeful.timewords import tell, time_classes

SLOT_BYTES = 300
"""What a slot takes beside its numbers, about: its id, its places in lists and dictionaries."""
_FEW = 200
"""Rows of a session up to which the place of one is found by going through them."""
_LAYERS = tuple(MemoryLayer)

_Thread = tuple[str, MemoryLayer]


class Outlines:
    """The outlines of rows, and who was said beside whom."""

    def __init__(self, np: Any, scope: MemoryScope) -> None:
        self._np = np
        self._scope = scope
        self.places: dict[str, int] = {}
        """The live slot of each id."""
        self._ids: list[str] = []
        self._layers: list[MemoryLayer] = []
        self._sessions: list[str | None] = []
        self._speakers: list[str | None] = []
        self._skills: dict[int, str] = {}
        self._entries: dict[int, str] = {}
        self._names: dict[str | None, str | None] = {}
        """Sessions and speakers, each once."""
        self._threads: dict[_Thread, list[int]] = {}
        """The slots of each session, in the order in which it was said unless it is among ``_unsorted``."""
        self._unsorted: set[_Thread] = set()
        self.rows = np.empty(0, "i8")
        """Row numbers."""
        self._asserted = np.empty(0, "i8")
        self._importance = np.empty(0, "f8")
        self._uses = np.empty(0, "i8")
        self._said = np.empty(0, "i8")
        self._asks = np.empty(0, "?")
        self._tells = np.empty(0, "?")

    @property
    def size(self) -> int:
        """Bytes held, about."""
        arrays = (self.rows, self._asserted, self._importance, self._uses, self._said, self._asks, self._tells)
        return sum(int(array.nbytes) for array in arrays) + SLOT_BYTES * len(self._ids)

    def reserve(self, room: int) -> None:
        """Make room for so many slots."""
        for name in ("rows", "_asserted", "_importance", "_uses", "_said", "_asks", "_tells"):
            array = getattr(self, name)
            grown = self._np.zeros(room, array.dtype)
            grown[: len(array)] = array
            setattr(self, name, grown)

    def add(
        self,
        *,
        rows: Sequence[int],
        ids: Sequence[str],
        layers: Sequence[int],
        sessions: Sequence[str | None],
        speakers: Sequence[str | None],
        asserted: Sequence[int],
        importance: Sequence[float],
        uses: Sequence[int],
        labels: Sequence[str],
        contents: Sequence[str],
        entries: Sequence[str | None],
        terms: Sequence[str],
    ) -> None:
        """Add rows in the slots behind the last. ``entries``: ``Sketch.entry``; ``terms``: each row's, in one text."""
        first, last = len(self._ids), len(self._ids) + len(rows)
        name, known = self._names.setdefault, [_LAYERS[layer] for layer in layers]
        self._ids += ids
        self._layers += known
        self._sessions += [name(each, each) for each in sessions]
        self._speakers += [name(each, each) for each in speakers]
        self.places.update(zip(ids, range(first, last), strict=True))
        self._entries.update((slot, entry) for slot, entry in enumerate(entries, first) if entry is not None)
        self.rows[first:last] = rows
        self._asserted[first:last] = asserted
        self._importance[first:last] = importance
        self._uses[first:last] = uses
        self._said[first:last] = list(map(said_key, known, speakers, labels, contents))
        self._asks[first:last] = list(map(asks, contents))
        self._tells[first:last] = list(map(_tells_time, labels, terms))
        for slot, layer in enumerate(known, first):
            if layer is MemoryLayer.PROCEDURAL and labels[slot - first]:
                self._skills[slot] = labels[slot - first]
            session = self._sessions[slot]
            if session is not None:
                self._join((session, layer), slot)

    def _join(self, key: _Thread, slot: int) -> None:
        thread = self._threads.setdefault(key, [])
        if thread and self._order(thread[-1]) > self._order(slot):
            self._unsorted.add(key)
        thread.append(slot)

    def _order(self, slot: int) -> tuple[int, int]:
        return (int(self._asserted[slot]), int(self.rows[slot]))

    def remove(self, slot: int) -> None:
        """Take a row out of its session and from its id."""
        del self.places[self._ids[slot]]
        session = self._sessions[slot]
        if session is not None:
            self._threads[session, self._layers[slot]].remove(slot)

    def use(self, id_: str, uses: int) -> None:
        """Set how often a row was used."""
        slot = self.places.get(id_)
        if slot is not None:
            self._uses[slot] = uses

    def thread_of(self, slot: int) -> tuple[Sequence[int], int]:
        """The slots of a row's session in the order in which it was said, and the row's place among them."""
        session = self._sessions[slot]
        if session is None:
            return (), 0
        key = (session, self._layers[slot])
        thread = self._threads[key]
        if key in self._unsorted:
            thread.sort(key=self._order)
            self._unsorted.discard(key)
        if len(thread) <= _FEW:
            return thread, thread.index(slot)
        return thread, bisect_left(thread, self._order(slot), key=self._order)

    def sketches(
        self, slots: Sequence[int], places: Any, lengths: Sequence[int], counts: Sequence[Sequence[int]]
    ) -> list[Sketch]:
        """Sketch the rows of slots (``places``: the same as an array), given their lengths and each term's counts."""
        return list(
            map(
                _sketch,
                zip(
                    map(self._ids.__getitem__, slots),
                    repeat(self._scope),
                    map(self._layers.__getitem__, slots),
                    map(self._sessions.__getitem__, slots),
                    map(self._speakers.__getitem__, slots),
                    self._asserted.take(places).tolist(),
                    self._importance.take(places).tolist(),
                    self._uses.take(places).tolist(),
                    [length or 1 for length in lengths],
                    zip(*counts, strict=True) if counts else repeat(()),
                    self._asks.take(places).tolist(),
                    self._tells.take(places).tolist(),
                    map(self._skills.get, slots, repeat("")),
                    self._said.take(places).tolist(),
                    map(self._entries.get, slots),
                    repeat(None),
                    strict=False,
                ),
            )
        )


_sketch = partial(tuple.__new__, Sketch)


def _tells_time(label: str, terms: str) -> bool:
    """Whether a row's content tells a time, by the terms of label and content together."""
    classes = time_classes(terms.split())
    if not classes or not label:
        return tell(classes)
    for kind in _label_classes(label):
        if kind in classes:
            classes.remove(kind)
    return tell(classes)


@lru_cache(maxsize=4096)
def _label_classes(label: str) -> tuple[int, ...]:
    return tuple(time_classes(index_terms(label)))
