"""Connections to the file: their settings, and sqlite3's errors in the store's words.

WAL lets readers go on while one writes. ``synchronous=NORMAL`` keeps every acknowledged commit when a process dies at
any point; only a power cut may take the last ones. ``secure_delete`` overwrites what is deleted.
Source: https://www.sqlite.org/wal.html, https://www.sqlite.org/pragma.html.
"""

from __future__ import annotations

import json
import sqlite3
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


def connect(path: str, busy_seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    """Open a connection with the store's settings; the file and its folder are made when they are not there."""
    with translated():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(
            path, timeout=busy_seconds, isolation_level=None, check_same_thread=False, cached_statements=256
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
