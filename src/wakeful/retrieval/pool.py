"""The candidates of one recall, in columns: a place for each, found by its id.

Two hundred candidates are weighed for ten hits. In columns a step of the weighing is one pass over plain lists, and the
parts of a score are put together for those alone that are shown or explained.
"""

from __future__ import annotations

from collections.abc import Iterable

from wakeful.ops import Found
from wakeful.sketches import Sketch


class Pool:
    """The candidates; a working value of one recall."""

    __slots__ = ("after", "before", "cosines", "place", "sketches", "words")

    def __init__(self, found: Iterable[Found] = ()) -> None:
        held = list(found)
        self.sketches: list[Sketch] = [each.sketch for each in held]
        self.words: list[float | None] = [each.words for each in held]
        """The store's BM25; None: not found by words."""
        self.cosines: list[float | None] = [each.cosine for each in held]
        """None: not found by vector."""
        self.before: list[int | None] = [None] * len(held)
        """Places of the neighbours in time, as far as they are candidates."""
        self.after: list[int | None] = [None] * len(held)
        self.place = {sketch.id: place for place, sketch in enumerate(self.sketches)}

    def __len__(self) -> int:
        return len(self.sketches)

    def add(self, sketch: Sketch) -> int:
        """Add a candidate that no search found; gives its place, also when it is there already."""
        place = self.place.setdefault(sketch.id, len(self.sketches))
        if place == len(self.sketches):
            self.sketches.append(sketch)
            self.words.append(None)
            self.cosines.append(None)
            self.before.append(None)
            self.after.append(None)
        return place

    def put_beside(self, anchor_id: str, distance: int, sketch: Sketch) -> None:
        """Add what was said just before (``distance`` below 0) or after a candidate."""
        anchor, other = self.place[anchor_id], self.add(sketch)
        if distance < 0:
            self.before[anchor], self.after[other] = other, anchor
        else:
            self.after[anchor], self.before[other] = other, anchor
