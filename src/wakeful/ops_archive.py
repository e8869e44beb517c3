"""Archive operations as data: what compaction asks of the store that holds what it took out of a conversation.

Run with ``Run(ops, store="archive")``: one transaction, all or nothing. Every operation names a *space*: a path of
parts joined by ``/`` (a conversation, or a tenant and a conversation). An operation sees its own space and nothing
else; ``ArchiveErase`` alone reaches the spaces below it.

Records are found by their content hash, so writing one twice changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveRecord:
    """A run of neighbouring messages that a compaction took out, or one whose content it cleared."""

    id: str
    """Content hash (``compaction.archive.archive_id``)."""
    dialect: str
    """Name of the dialect that serialised the messages."""
    position: int
    """Index of the first message in the history that it was taken from."""
    messages: tuple[str, ...]
    """Each message as ``Dialect.dumps`` gave it, oldest first."""
    entry_ids: tuple[str, ...] = ()
    """Entry id of each message; empty when they have none."""
    what: str = ""
    """What it is, in a few words for people: ``result of get_order``, ``42 messages``."""
    tokens: int = 0
    """Estimate of what it weighed."""
    text: str = ""
    """The messages rendered for search and reading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveEntry:
    """One line of an archive's list: a record without its content."""

    id: str
    space: str
    dialect: str
    position: int
    count: int
    """Messages."""
    what: str
    tokens: int
    bytes: int
    """Size of the serialised messages."""
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ArchiveHit:
    """A record that holds what was asked for."""

    record: ArchiveRecord
    score: float
    """Higher is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveStats:
    """How much a space holds."""

    records: int
    messages: int
    bytes: int
    """Serialised messages and their rendered text, UTF-8."""


@dataclass(frozen=True, slots=True)
class ArchivePut:
    """Keep records. Result: ``ArchiveStats`` of the space afterwards. A record that is there already stays as it is."""

    space: str
    records: tuple[ArchiveRecord, ...]
    at: datetime | None = None
    """When; for people only, it is no part of any id."""


@dataclass(frozen=True, slots=True)
class ArchiveGet:
    """Records by id. Result: tuple of ``ArchiveRecord`` in the order asked, misses left out."""

    space: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ArchiveFind:
    """Records whose text holds the words or the exact string, best first. Result: tuple of ``ArchiveHit``."""

    space: str
    query: str
    limit: int = 5


@dataclass(frozen=True, slots=True)
class ArchiveList:
    """What the space holds, in the order it was put. Result: tuple of ``ArchiveEntry``."""

    space: str
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class ArchiveRemove:
    """Delete records. Result: number deleted."""

    space: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ArchiveErase:
    """Delete everything of the space and of the spaces below it (``space/...``). Result: number of records deleted."""

    space: str


@dataclass(frozen=True, slots=True)
class ArchiveCount:
    """Count what the space holds. Result: ``ArchiveStats``."""

    space: str


ArchiveOp: TypeAlias = ArchivePut | ArchiveGet | ArchiveFind | ArchiveList | ArchiveRemove | ArchiveErase | ArchiveCount
