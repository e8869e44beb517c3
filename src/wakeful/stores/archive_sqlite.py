"""An archive in one SQLite file, shared by many processes and threads.

Rules of the file:

- WAL with full synchronisation: what ``execute`` returned from is on disk, so a history may be shortened after it.
- Search terms are made by the project's own analysis and written to the index as plain ASCII words, so the index's own
  tokenizer decides nothing. The space is an indexed word too: a search never walks through other spaces' rows.
- Deleted text is overwritten, and the log that held it is cut.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from wakeful.errors import ConfigError, SchemaError
from wakeful.ids import content_id
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
from wakeful.stores import sqlite_mark
from wakeful.stores.archive import rank, size_of
from wakeful.stores.named_sql import named_sql
from wakeful.stores.sqlite_pool import Pool, transaction, translated
from wakeful.terms import index_terms, query_terms

SCHEMA = "1"
"""Version of the file's tables."""

BUSY_SECONDS = 10.0
"""How long a writer waits for another one before ``StoreBusy``."""

CANDIDATES = 64
"""Records that a search ranks, found by exact text and by words each."""


class SqliteArchive:
    """An archive in a file. Opening one makes it when it is not there, unless ``make`` is False.

    Raises ``SchemaError`` for a file that is no archive of this version, ``StoreBusy`` when it stays locked.
    """

    def __init__(self, path: str | Path, *, busy_seconds: float = BUSY_SECONDS, make: bool = True) -> None:
        self.path = str(path)
        self._sql = named_sql("archive.sql")
        self._pool = Pool(partial(_connect, self.path, busy_seconds, make), f"the archive {self.path}")
        try:
            with self._pool.lend() as db, translated("archive", self.path):
                self._prepare(db)
        except BaseException:
            self.close()
            raise

    def execute(self, ops: Sequence[ArchiveOp]) -> tuple[Any, ...]:
        """Run operations in one transaction, all or nothing."""
        writes = any(isinstance(op, ArchivePut | ArchiveRemove | ArchiveErase) for op in ops)
        with self._pool.lend() as db, translated("archive", self.path):
            with transaction(db, writes=writes):
                results = tuple(self._run(db, op) for op in ops)
            if any(isinstance(op, ArchiveErase) for op in ops):
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            return results

    async def aexecute(self, ops: Sequence[ArchiveOp]) -> tuple[Any, ...]:
        """Run operations in a thread."""
        import asyncio

        return await asyncio.to_thread(self.execute, ops)

    def list(self, space: str = "") -> tuple[ArchiveEntry, ...]:
        """List what a space holds, in the order it was put."""
        (found,) = self.execute((ArchiveList(space),))
        return found  # type: ignore[no-any-return]  # the documented result of the operation

    def close(self) -> None:
        """Close the file."""
        self._pool.close()

    def _prepare(self, db: sqlite3.Connection) -> None:
        with transaction(db, writes=True):
            if "archive_meta" not in _tables(db):
                for statement in self._sql["schema"].split(";\n"):
                    db.execute(statement)
                sqlite_mark.mark(db)
                db.execute("INSERT OR IGNORE INTO archive_meta VALUES ('schema', ?)", (SCHEMA,))
            found = db.execute("SELECT value FROM archive_meta WHERE key = 'schema'").fetchone()
        if found is None or found[0] != SCHEMA:
            raise SchemaError(
                f"{self.path} is an archive of schema {found and found[0]!r}; this version reads {SCHEMA}"
            )

    def _run(self, db: sqlite3.Connection, op: ArchiveOp) -> Any:
        match op:
            case ArchivePut(space, records, at):
                for record in records:
                    self._insert(db, space, record, at)
                return self._count(db, space)
            case ArchiveGet(space, ids):
                return tuple(self._get(db, space, ids))
            case ArchiveFind(space, query, limit):
                return self._find(db, space, query, limit)
            case ArchiveList(space, limit):
                rows = db.execute(self._sql["list"], {"space": space, "limit": -1 if limit is None else limit})
                return tuple(_entry(space, row) for row in rows)
            case ArchiveRemove(space, ids):
                found = [row for id in ids for row in db.execute(self._sql["rows_of"], {"space": space, "id": id})]
                return self._delete(db, found)
            case ArchiveErase(space):
                found = db.execute(self._sql["rows_within"], {"space": space}).fetchall()
                count = self._delete(db, found)
                db.execute("INSERT INTO archive_terms (archive_terms) VALUES ('optimize')")
                return count
            case ArchiveCount(space):
                return self._count(db, space)
        raise ConfigError(f"{type(op).__name__} is no archive operation")

    def _insert(self, db: sqlite3.Connection, space: str, record: ArchiveRecord, at: datetime | None) -> None:
        done = db.execute(
            self._sql["insert"],
            {
                "space": space,
                "id": record.id,
                "dialect": record.dialect,
                "position": record.position,
                "messages": json.dumps(record.messages),
                "entry_ids": json.dumps(record.entry_ids),
                "what": _clean(record.what),
                "tokens": record.tokens,
                "text": _clean(record.text),
                "count": len(record.messages),
                "bytes": size_of(record),
                "created_at": None if at is None else at.isoformat(),
            },
        )
        if done.rowcount:
            db.execute(self._sql["index"], _terms(done.lastrowid, space, _clean(record.text)))

    def _delete(self, db: sqlite3.Connection, rows: Iterable[tuple[int, str, str]]) -> int:
        count = 0
        for number, space, text in rows:
            db.execute(self._sql["unindex"], _terms(number, space, text))
            db.execute(self._sql["delete"], {"number": number})
            count += 1
        return count

    def _get(self, db: sqlite3.Connection, space: str, ids: Iterable[str]) -> Sequence[ArchiveRecord]:
        found = []
        for id in ids:
            row = db.execute(self._sql["get"], {"space": space, "id": id}).fetchone()
            if row is not None:
                found.append(_record(row))
        return found

    def _find(self, db: sqlite3.Connection, space: str, query: str, limit: int) -> tuple[ArchiveHit, ...]:
        wanted = _clean(query.strip())
        if not wanted or limit < 1:
            return ()
        most = max(CANDIDATES, limit)
        found = dict(db.execute(self._sql["exact"], {"space": space, "query": wanted, "limit": most}).fetchall())
        words = query_terms(wanted)
        if words:
            match = f"space : {_space_term(space)} AND terms : ({' OR '.join(map(_word, words))})"
            found |= dict(db.execute(self._sql["words"], {"space": space, "match": match, "limit": most}).fetchall())
        return rank(self._get(db, space, [found[number] for number in sorted(found)]), wanted, limit)

    def _count(self, db: sqlite3.Connection, space: str) -> ArchiveStats:
        records, messages, size = db.execute(self._sql["count"], {"space": space}).fetchone()
        return ArchiveStats(records=records, messages=messages, bytes=size)


def _connect(path: str, busy_seconds: float, make: bool) -> sqlite3.Connection:
    with translated("archive", path):
        db = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None, check_same_thread=False)
        try:
            sqlite_mark.check(db)
            held = _tables(db)
            if "archive_meta" not in held and (not make or "archive_records" in held):
                raise SchemaError(f"{path} is no archive of this version")
            db.execute("PRAGMA journal_mode = WAL").fetchall()
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA secure_delete = ON").fetchall()
        except BaseException:
            db.close()
            raise
        return db


def _tables(db: sqlite3.Connection) -> frozenset[str]:
    return frozenset(name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))


def _clean(text: str) -> str:
    """Give a text that SQLite can hold: lone surrogates and NUL characters are shown as escapes."""
    if "\0" in text:
        text = text.replace("\0", "\\0")
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _word(term: str) -> str:
    """Write a term as one ASCII word, whatever signs it holds."""
    if term.isascii() and term.isalnum() and not term.startswith("zx"):
        return f'"{term}"'
    return f'"zx{term.encode("utf-8", "surrogatepass").hex()}"'


def _space_term(space: str) -> str:
    return "s" + content_id(space)


def _terms(number: int | None, space: str, text: str) -> dict[str, Any]:
    words = " ".join(_word(term)[1:-1] for term in dict.fromkeys(index_terms(text)))
    return {"number": number, "space_term": _space_term(space), "terms": words}


def _record(row: tuple[Any, ...]) -> ArchiveRecord:
    id, dialect, position, messages, entry_ids, what, tokens, text = row
    return ArchiveRecord(
        id=id,
        dialect=dialect,
        position=position,
        messages=tuple(json.loads(messages)),
        entry_ids=tuple(json.loads(entry_ids)),
        what=what,
        tokens=tokens,
        text=text,
    )


def _entry(space: str, row: tuple[Any, ...]) -> ArchiveEntry:
    id, dialect, position, what, tokens, count, size, created = row
    return ArchiveEntry(
        id=id,
        space=space,
        dialect=dialect,
        position=position,
        count=count,
        what=what,
        tokens=tokens,
        bytes=size,
        created_at=None if created is None else datetime.fromisoformat(created),
    )
