"""What the verbs of writing give back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from wakeful.records import MemoryNode, MemoryScope

Action: TypeAlias = Literal["add", "revise", "supersede", "skip"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What became of one memory, and why."""

    node: MemoryNode
    """The row as it stands now: the new one, or the one that was there."""
    action: Action
    reason: str = ""
    retired: tuple[str, ...] = ()
    """Ids of the rows that it superseded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What a ``remember`` did."""

    scope: MemoryScope
    written: tuple[Written, ...] = ()
    scrubbed: int = 0
    """Secrets that were removed."""
    quarantined: tuple[str, ...] = ()
    """Ids of memories that wait for approval, since their text gives orders and comes from outside."""
    parked: tuple[str, ...] = ()
    """Why an extraction was put off; the turns themselves are kept."""
    notes: tuple[str, ...] = ()
    """What else the caller should know: characters that no store can keep and that were therefore taken out."""

    @property
    def nodes(self) -> tuple[MemoryNode, ...]:
        """The rows as they stand now, in the order given; facts after the turns they were taken from."""
        return tuple(each.node for each in self.written)

    @property
    def ids(self) -> tuple[str, ...]:
        """Their ids."""
        return tuple(each.node.id for each in self.written)

    @property
    def facts(self) -> tuple[MemoryNode, ...]:
        """The rows that extraction made or met."""
        return tuple(each.node for each in self.written if each.node.source.by == "extractor")

    def count(self, action: Action) -> int:
        """How many memories were added, revised, superseded others or were skipped."""
        return sum(each.action == action for each in self.written)

    def __iter__(self) -> Iterator[MemoryNode]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.written)


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """The receipt of an erasure."""

    scope: MemoryScope
    at: datetime
    counts: Mapping[str, int] = field(default_factory=dict)
    """Rows removed, by kind; of a dry run, those that would be."""
    pending: tuple[str, ...] = ()
    """Clean-up that the store could not do yet: until then bytes may still lie in its files."""
    remaining: int = 0
    """Rows that the scan after the erasure still found; 0 when it is proven. Of a dry run, all that are there."""

    @property
    def found(self) -> bool:
        """Whether there was anything to erase."""
        return any(self.counts.get(name) for name in ("nodes", "edges", "history", "state"))

    @property
    def verified(self) -> bool:
        """Whether the scan after it found nothing: no path of the store gives any of it back."""
        return self.remaining == 0

    @property
    def complete(self) -> bool:
        """Whether it is verified and no clean-up is pending: the store's own files hold nothing of it either.

        PostgreSQL always leaves clean-up pending: dead rows until the next vacuum, its log until that is recycled.
        """
        return self.verified and not self.pending


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import did."""

    nodes: int = 0
    edges: int = 0
    changes: int = 0
    """History entries written."""
    unchanged: int = 0
    """Nodes that were there already, the same or newer."""
    refused: tuple[tuple[str, str], ...] = ()
    """Ids that were not imported, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reembedded:
    """What a re-embedding did."""

    model: str
    done: int = 0
    remaining: int = 0
    """Rows that still lack a vector of the model; run it again for them."""
