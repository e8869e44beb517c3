"""Keep the segments used last, within a bound of bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict

from wakeful.records import MemoryNode
from wakeful.stores.sidecar.segment import Segment

NODES_HELD = 20_000
"""Rows of one owner that are held as they were read, so that they need not be read again."""


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
