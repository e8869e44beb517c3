"""Connections to the file: settings, a pool, and sqlite3's errors in the store's words.

WAL lets readers go on while one writes. ``synchronous=NORMAL`` keeps every acknowledged commit when a process dies at
any point; only a power cut may take the last ones. ``secure_delete`` overwrites what is deleted.
Source: https://www.sqlite.org/wal.html, https://www.sqlite.org/pragma.html.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wakeful.errors import MemoryContractError, SchemaError, StoreBusy, StoreError
from wakeful.stores import rules, sqlite_mark

BUSY_SECONDS = 30.0
"""How long a writer waits for another before ``StoreBusy``. A write holds the lock for milliseconds."""

CACHE_KIB = 64 * 1024
"""Page cache of a connection."""

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class Pool:
    """Lend connections, one to a thread at a time; they outlive neither the pool nor a fork."""

    def __init__(self, path: str, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = Path(path)
        self._busy_seconds = busy_seconds
        self._idle: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._closed = False

    @contextmanager
    def lend(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection; one that broke inside is not lent again."""
        connection = self._take()
        try:
            yield connection
        finally:
            self._give_back(connection)

    def _take(self) -> sqlite3.Connection:
        with self._lock:
            if self._closed:
                raise StoreError("the store is closed")
            if self._process != os.getpid():
                # A connection must not be used, nor closed, across a fork: its locks belong to the parent.
                self._idle, self._process = [], os.getpid()
            if self._idle:
                return self._idle.pop()
        return self._open()

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            if not self._closed and not connection.in_transaction:
                self._idle.append(connection)
                return
        connection.close()

    def _open(self) -> sqlite3.Connection:
        with translated():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(
                self.path,
                timeout=self._busy_seconds,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
            )
            try:
                sqlite_mark.check(connection)
                connection.execute("PRAGMA journal_mode = WAL").fetchone()
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute("PRAGMA secure_delete = ON")
                connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
                connection.execute("PRAGMA temp_store = MEMORY")
                connection.create_function("has_properties", 2, _has_properties, deterministic=True)
            except BaseException:
                connection.close()
                raise
            return connection

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        if self._process == os.getpid():
            for connection in idle:
                connection.close()


def _has_properties(held: str, wanted: str) -> bool:
    return rules.has_properties(json.loads(held), json.loads(wanted))


@contextmanager
def translated() -> Iterator[None]:
    """Raise sqlite3's errors as the store's, with their cause."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in _BUSY:
            raise StoreBusy("the database is locked by another writer; nothing was changed, try again") from error
        if code == sqlite3.SQLITE_NOTADB:
            raise SchemaError("the file is not a SQLite database; give the store a file of its own") from error
        raise StoreError(f"SQLite could not do it, nothing was changed: {error}") from error
    except OSError as error:
        raise StoreError(f"the store's file can't be reached: {error}") from error
    except UnicodeEncodeError as error:
        raise MemoryContractError("a text holds a lone surrogate, which is not valid Unicode; remove it") from error
