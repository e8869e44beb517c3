"""Sessions in one SQLite file, shared by many processes and threads.

WAL with full synchronisation: what ``execute`` returned from is on disk. Writers take the lock when they begin, so an
epoch that was compared still holds when the write is committed. Source: https://www.sqlite.org/wal.html.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wakeful.errors import SchemaError, StoreBusy, StoreError
from wakeful.ops_session import SessionOp
from wakeful.stores import sqlite_mark
from wakeful.stores.named_sql import named_sql
from wakeful.stores.sessions.sqlstore import READS, run_op

SCHEMA = "1"
"""Version of the file's session tables."""

BUSY_SECONDS = 30.0
"""How long a writer waits for another one before ``StoreBusy``."""


class SqliteSessions:
    """Sessions in a file; opening one makes it when it is not there. It may be the file of a memory store.

    Raises ``SchemaError`` for a file that is no database or of another version, ``StoreBusy`` when it stays locked.
    """

    def __init__(self, path: str | Path, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = str(path)
        self._busy_seconds = busy_seconds
        self._sql = named_sql("sqlite.sql", "wakeful.stores.sessions")
        self._idle: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._closed = False
        with self._lend() as db, _translated(self.path):
            self._prepare(db)

    def execute(self, ops: Sequence[SessionOp]) -> tuple[Any, ...]:
        """Run operations in one transaction, all or nothing."""
        writes = not all(isinstance(op, READS) for op in ops)
        with self._lend() as db, _translated(self.path), _transaction(db, writes=writes):
            bound = _Bound(db, self._sql)
            return tuple(run_op(bound, op) for op in ops)

    async def aexecute(self, ops: Sequence[SessionOp]) -> tuple[Any, ...]:
        """Run operations in a thread."""
        import asyncio

        return await asyncio.to_thread(self.execute, ops)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for db in idle:
            db.close()

    @contextmanager
    def _lend(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._closed:
                raise StoreError(f"the session store {self.path} is closed")
            if self._process != os.getpid():
                # A connection must not be used, nor closed, across a fork: its locks belong to the parent.
                self._idle, self._process = [], os.getpid()
            db = self._idle.pop() if self._idle else None
        if db is None:
            with _translated(self.path):
                db = self._open()
        try:
            yield db
        finally:
            with self._lock:
                keep = not self._closed and not db.in_transaction
                if keep:
                    self._idle.append(db)
            if not keep:
                db.close()

    def _open(self) -> sqlite3.Connection:
        Path(self.path).parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self.path, timeout=self._busy_seconds, isolation_level=None, check_same_thread=False)
        try:
            sqlite_mark.check(db)
        except BaseException:
            db.close()
            raise
        db.execute("PRAGMA journal_mode = WAL").fetchall()
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA secure_delete = ON").fetchall()
        return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        with _transaction(db, writes=True):
            for statement in self._sql["schema"].split(";\n"):
                db.execute(statement)
            sqlite_mark.mark(db)
            db.execute("INSERT OR IGNORE INTO session_meta VALUES ('schema', ?)", (SCHEMA,))
            (found,) = db.execute("SELECT value FROM session_meta WHERE key = 'schema'").fetchone()
        if found != SCHEMA:
            raise SchemaError(f"{self.path} holds sessions of schema {found}; this version reads {SCHEMA}")


class _Bound:
    """A connection inside a transaction, with the named statements."""

    def __init__(self, db: sqlite3.Connection, sql: Mapping[str, str]) -> None:
        self._db = db
        self._sql = sql

    def rows(self, name: str, **values: Any) -> list[tuple[Any, ...]]:
        return self._db.execute(self._sql[name], values).fetchall()

    def many(self, name: str, values: Sequence[Mapping[str, Any]]) -> None:
        self._db.executemany(self._sql[name], values)


@contextmanager
def _transaction(db: sqlite3.Connection, *, writes: bool) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


@contextmanager
def _translated(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if "locked" in text or "busy" in text:
            raise StoreBusy(f"the session store {path} is locked by another writer; nothing was changed") from error
        if "not a database" in text or "malformed" in text:
            raise SchemaError(f"{path} is no session store: {text}") from error
        raise StoreError(f"the session store {path} failed: {text}; nothing was changed") from error
