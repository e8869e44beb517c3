"""Work with a SQLite file: connections that are lent, transactions, and sqlite3's errors in the stores' words.

A connection is lent to one thread at a time, and outlives neither its pool nor a fork.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from wakeful.errors import SchemaError, StoreBusy, StoreError

_INHERITED: list[list[sqlite3.Connection]] = []
"""Connections of a parent process, held so that they are neither used nor closed here: their locks are the parent's.

Source: https://www.sqlite.org/howtocorrupt.html#_carrying_an_open_database_file_across_a_fork_.
"""


class Pool:
    """Connections that ``opener`` makes; ``what`` names their owner where one asks for a connection after ``close``.

    ``opener`` must not hold the pool's owner: one that is dropped without ``close`` takes its connections with it.
    """

    def __init__(self, opener: Callable[[], sqlite3.Connection], what: str) -> None:
        self._opener = opener
        self._what = what
        self._lock = threading.Lock()
        self._closed = False
        self._start()

    def _start(self) -> None:
        self._idle: list[sqlite3.Connection] = []
        self._process = os.getpid()
        self._close_idle = weakref.finalize(self, _close, self._idle, self._process)

    @contextmanager
    def lend(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection; one that comes back inside a transaction is not lent again."""
        connection = self._take()
        try:
            yield connection
        finally:
            self._give_back(connection)

    def _take(self) -> sqlite3.Connection:
        with self._lock:
            if self._closed:
                raise StoreError(f"{self._what} is closed")
            if self._process != os.getpid():
                self._close_idle()
                self._start()
            if self._idle:
                return self._idle.pop()
        return self._opener()

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            if not self._closed and not connection.in_transaction:
                self._idle.append(connection)
                return
        connection.close()

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._closed

    def close(self) -> None:
        """Close every connection: those that wait now, those that are lent when they come back."""
        with self._lock:
            self._closed = True
            self._close_idle()


def _close(idle: list[sqlite3.Connection], process: int) -> None:
    if process != os.getpid():
        _INHERITED.append(idle)
        return
    while idle:
        idle.pop().close()


@contextmanager
def transaction(db: sqlite3.Connection, *, writes: bool) -> Iterator[None]:
    """Do all or nothing. A write takes the lock at once: one that reads first could be refused when it comes to write."""
    db.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


@contextmanager
def translated(kind: str, path: str) -> Iterator[None]:
    """Raise sqlite3's errors as the stores', with their cause; ``kind`` says what the file is to be."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if "locked" in text or "busy" in text:
            raise StoreBusy(f"the {kind} {path} is locked by another writer; nothing was changed, try again") from error
        if "not a database" in text or "malformed" in text:
            raise SchemaError(f"{path} is no {kind}: {text}") from error
        raise StoreError(f"the {kind} {path} failed: {text}; nothing was changed") from error
