"""Archives: where compaction keeps what it took out of a conversation.

``MemoryArchive`` lives in the process; ``SqliteArchive`` (``archive_sqlite``) is one file that many processes and threads
share. Both answer the operations of ``ops_archive`` and give the same answers.

A search finds records that hold the query exactly, as it stands, before records that hold its words.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from wakeful.errors import ConfigError, StoreError
from wakeful.ops_archive import (
    ArchiveCount,
    ArchiveEntry,
    ArchiveErase,
    ArchiveFind,
    ArchiveGet,
    ArchiveHit,
    ArchiveList,
    ArchiveOp,
    ArchivePut,
    ArchiveRecord,
    ArchiveRemove,
    ArchiveStats,
)
from wakeful.terms import index_terms, query_terms


@runtime_checkable
class Archive(Protocol):
    """Keeps archive records. ``execute`` runs its operations in one transaction, all or nothing."""

    def execute(self, ops: Sequence[ArchiveOp]) -> tuple[Any, ...]:
        """Run operations in order; one result an operation. Raises ``StoreError`` when nothing was changed."""
        ...

    async def aexecute(self, ops: Sequence[ArchiveOp]) -> tuple[Any, ...]:
        """Run operations without blocking the event loop."""
        ...

    def list(self, space: str = "") -> tuple[ArchiveEntry, ...]:
        """List what a space holds, in the order it was put."""
        ...

    def close(self) -> None:
        """Give back every resource."""
        ...


class MemoryArchive:
    """An archive in the process, gone with it. Threads may share it."""

    def __init__(self) -> None:
        self._spaces: dict[str, dict[str, tuple[ArchiveRecord, datetime | None]]] = {}
        self._lock = threading.Lock()
        self._closed = False

    def execute(self, ops: Sequence[ArchiveOp]) -> tuple[Any, ...]:
        """Run operations, all or nothing."""
        with self._lock:
            if self._closed:
                raise StoreError("this archive is closed")
            before = {space: dict(records) for space, records in self._spaces.items()} if _writes(ops) else None
            try:
                return tuple(self._run(op) for op in ops)
            except BaseException:
                if before is not None:
                    self._spaces = before
                raise

    async def aexecute(self, ops: Sequence[ArchiveOp]) -> tuple[Any, ...]:
        """Run operations; nothing here blocks for long."""
        return self.execute(ops)

    def list(self, space: str = "") -> tuple[ArchiveEntry, ...]:
        """List what a space holds, in the order it was put."""
        (found,) = self.execute((ArchiveList(space),))
        return found  # type: ignore[no-any-return]  # the documented result of the operation

    def close(self) -> None:
        """Forget everything."""
        self._spaces = {}
        self._closed = True

    def _run(self, op: ArchiveOp) -> Any:
        match op:
            case ArchivePut(space, records, at):
                held = self._spaces.setdefault(space, {})
                for record in records:
                    held.setdefault(record.id, (record, at))
                return self._stats(space)
            case ArchiveGet(space, ids):
                held = self._spaces.get(space, {})
                return tuple(held[id][0] for id in ids if id in held)
            case ArchiveFind(space, query, limit):
                return rank([record for record, _ in self._spaces.get(space, {}).values()], query, limit)
            case ArchiveList(space, limit):
                rows = [entry_of(record, space, at) for record, at in self._spaces.get(space, {}).values()]
                return tuple(rows if limit is None else rows[:limit])
            case ArchiveRemove(space, ids):
                held = self._spaces.get(space, {})
                return sum(held.pop(id, None) is not None for id in ids)
            case ArchiveErase(space):
                gone = [name for name in self._spaces if is_within(name, space)]
                return sum(len(self._spaces.pop(name)) for name in gone)
            case ArchiveCount(space):
                return self._stats(space)
        raise ConfigError(f"{type(op).__name__} is no archive operation")

    def _stats(self, space: str) -> ArchiveStats:
        held = [record for record, _ in self._spaces.get(space, {}).values()]
        return ArchiveStats(
            records=len(held),
            messages=sum(len(record.messages) for record in held),
            bytes=sum(size_of(record) for record in held),
        )


def _writes(ops: Sequence[ArchiveOp]) -> bool:
    return len(ops) > 1 and any(isinstance(op, ArchivePut | ArchiveRemove | ArchiveErase) for op in ops)


def is_within(space: str, root: str) -> bool:
    """Say whether a space is ``root`` or below it. The empty root holds itself alone: no archive is emptied by accident."""
    return space == root or (root != "" and space.startswith(root + "/"))


def size_of(record: ArchiveRecord) -> int:
    """Bytes of a record's messages and text, UTF-8."""
    return sum(_bytes(text) for text in record.messages) + _bytes(record.text)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def entry_of(record: ArchiveRecord, space: str, at: datetime | None) -> ArchiveEntry:
    """Make a record's line in a list."""
    return ArchiveEntry(
        id=record.id,
        space=space,
        dialect=record.dialect,
        position=record.position,
        count=len(record.messages),
        what=record.what,
        tokens=record.tokens,
        bytes=size_of(record),
        created_at=at,
    )


EXACT = 1_000.0
"""Score of a record that holds the query as it stands; words come on top, so among those the best still leads."""


def rank(records: Sequence[ArchiveRecord], query: str, limit: int) -> tuple[ArchiveHit, ...]:
    """Rank records for a query: exact matches first, then by the share of the query's words that they hold; newest first.

    ``records`` stand in the order they were put.
    """
    wanted = query.strip()
    words = query_terms(wanted)
    if not wanted or limit < 1:
        return ()
    hits: list[tuple[float, int, ArchiveRecord]] = []
    for order, record in enumerate(records):
        score = EXACT if wanted in record.text else 0.0
        if words:
            held = set(index_terms(record.text))
            score += sum(word in held for word in words) / len(words)
        if score > 0:
            hits.append((-score, order, record))
    hits.sort(key=lambda hit: (hit[0], -hit[1]))
    return tuple(ArchiveHit(record, -score) for score, _, record in hits[:limit])
