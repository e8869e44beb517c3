"""Session operations as data: what a turn asks of the store that keeps conversations.

Run with ``Run(ops, store="session")``: one transaction, all or nothing. Rules of the file:

- A session is a graph of entries and a head. Entries are never changed or removed (``SessionErase`` apart); which of
  them the model is shown is a matter of reading.
- Whoever writes names the epoch that it claimed. The epoch is compared in the same transaction as the write, and a
  writer that was overtaken gets ``StaleWriter``: nothing of its transaction is kept.
- The store gives an entry its parent, the head of that moment, so appends at the same time are all kept, in a row.
- A compaction is a record beside the entries: what is shown in place of everything up to ``after``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEntry:
    """One message of a session."""

    id: str
    message: str
    """As ``Dialect.dumps`` gave it."""
    turn_id: str | None = None
    pinned: bool = False
    parent_id: str | None = None
    """Given by the store."""
    seq: int = 0
    """Place in the order of writing; given by the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCompaction:
    """What a compaction left, so that nobody pays for it again."""

    id: str
    after: str | None
    """Head of the session when it was made: the view stands for everything up to here."""
    view: tuple[Mapping[str, Any], ...]
    """Entries of the view, oldest first: ``{"id"}`` for one as it was stored; with ``message`` when it was changed or is
    a summary; with ``parts`` (ids) when it was merged; with ``pinned`` and ``turn_id`` where they apply."""
    covered: tuple[str, ...] = ()
    """Ids of the entries that are no longer shown."""
    meta: Mapping[str, Any] | None = None
    """Numbers for people (tokens before and after, strategy)."""
    seq: int = 0
    """Place in the order of writing; given by the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """A session as it stands."""

    id: str
    epoch: int
    dialect: str
    head: str | None
    entries: tuple[StoredEntry, ...]
    """In the order of writing. A view: those that its compaction shows and those behind ``compaction.after``; without a
    compaction, those of the active branch. Full: all."""
    compaction: StoredCompaction | None = None
    """The newest record made on the active branch; None: nothing was compacted there, or the load was full."""
    turn: Mapping[str, Any] | None = None
    """State of the last turn, as ``TurnState.dump`` gave it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """The right to write."""

    epoch: int
    fresh: bool
    """True: the epoch is still the caller's own, so what it holds of the session is up to date."""
    created: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionClaim:
    """Become the session's writer, making the session when there is none. Result: ``Claimed``.

    ``epoch`` the one that the caller holds: it stays when nobody claimed since. Otherwise the epoch rises and every other
    writer is stale from now on.
    """

    session: str
    dialect: str
    at: datetime
    epoch: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionAppend:
    """Append entries behind the head, in order. Result: tuple of ``StoredEntry`` as stored.

    An entry whose id is there with the same message is left as it is (a write tried again); with another message it
    raises ``StoreError``.
    """

    session: str
    epoch: int
    entries: tuple[StoredEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSaveTurn:
    """Keep the state of the running turn; None: no turn runs. Result: None."""

    session: str
    epoch: int
    state: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCompact:
    """Keep a compaction. Result: None."""

    session: str
    epoch: int
    compaction: StoredCompaction


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionUndo:
    """Take back the last compaction of the branch that the head is on. Result: whether there was one."""

    session: str
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMoveHead:
    """Go on from another entry (None: from an empty branch); what followed it stays as another branch. Result: None."""

    session: str
    epoch: int
    head: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLoad:
    """Read a session. Result: ``StoredSession``, or None when there is none.

    ``full`` False: the compacted view of the active branch, whose cost does not grow with the session's age; True: every
    entry of every branch.
    """

    session: str
    full: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFork:
    """Copy a session's active branch up to ``at`` (None: up to its head) into another one. Result: None.

    The two know nothing of each other afterwards. Raises ``StoreError`` when ``new`` exists, ``NotFound`` for an unknown
    session or entry.
    """

    session: str
    new: str
    at_time: datetime
    at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionErase:
    """Delete a session with everything that belongs to it. Result: whether there was one."""

    session: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionList:
    """Ids of sessions in order, those behind ``after``. Result: tuple of strings."""

    prefix: str = ""
    after: str | None = None
    limit: int = 100


SessionOp: TypeAlias = (
    SessionClaim
    | SessionAppend
    | SessionSaveTurn
    | SessionCompact
    | SessionUndo
    | SessionMoveHead
    | SessionLoad
    | SessionFork
    | SessionErase
    | SessionList
)
