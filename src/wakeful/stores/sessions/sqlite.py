"""Sessions in one SQLite file, shared by many processes and threads.

WAL with full synchronisation: what ``execute`` returned from is on disk. Writers take the lock when they begin, so an
epoch that was compared still holds when the write is committed. Source: https://www.sqlite.org/wal.html.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from wakeful.errors import SchemaError
from wakeful.ops_session import SessionOp
from wakeful.stores import sqlite_mark
from wakeful.stores.named_sql import named_sql
from wakeful.stores.sessions.sqlstore import READS, run_op
from wakeful.stores.sqlite_pool import Pool, transaction, translated

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
        self._sql = named_sql("sqlite.sql", "wakeful.stores.sessions")
        self._pool = Pool(partial(_connect, self.path, busy_seconds), f"the session store {self.path}")
        try:
            with self._pool.lend() as db, translated("session store", self.path):
                self._prepare(db)
        except BaseException:
            self._pool.close()
            raise

    def execute(self, ops: Sequence[SessionOp]) -> tuple[Any, ...]:
        """Run operations in one transaction, all or nothing."""
        writes = not all(isinstance(op, READS) for op in ops)
        with self._pool.lend() as db, translated("session store", self.path), transaction(db, writes=writes):
            bound = _Bound(db, self._sql)
            return tuple(run_op(bound, op) for op in ops)

    async def aexecute(self, ops: Sequence[SessionOp]) -> tuple[Any, ...]:
        """Run operations in a thread."""
        import asyncio

        return await asyncio.to_thread(self.execute, ops)

    def close(self) -> None:
        """Close the file."""
        self._pool.close()

    def _prepare(self, db: sqlite3.Connection) -> None:
        with transaction(db, writes=True):
            for statement in self._sql["schema"].split(";\n"):
                db.execute(statement)
            sqlite_mark.mark(db)
            db.execute("INSERT OR IGNORE INTO session_meta VALUES ('schema', ?)", (SCHEMA,))
            (found,) = db.execute("SELECT value FROM session_meta WHERE key = 'schema'").fetchone()
        if found != SCHEMA:
            raise SchemaError(f"{self.path} holds sessions of schema {found}; this version reads {SCHEMA}")


def _connect(path: str, busy_seconds: float) -> sqlite3.Connection:
    with translated("session store", path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None, check_same_thread=False)
        try:
            sqlite_mark.check(db)
            db.execute("PRAGMA journal_mode = WAL").fetchall()
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA foreign_keys = ON")
            db.execute("PRAGMA secure_delete = ON").fetchall()
        except BaseException:
            db.close()
            raise
        return db


class _Bound:
    """A connection inside a transaction, with the named statements."""

    def __init__(self, db: sqlite3.Connection, sql: Mapping[str, str]) -> None:
        self._db = db
        self._sql = sql

    def rows(self, name: str, **values: Any) -> list[tuple[Any, ...]]:
        return self._db.execute(self._sql[name], values).fetchall()

    def many(self, name: str, values: Sequence[Mapping[str, Any]]) -> None:
        self._db.executemany(self._sql[name], values)
