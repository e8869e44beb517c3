"""Connections to a SQLite file: lent and given back, closed with their pool, and left alone after a fork."""

from __future__ import annotations

import gc
import os
import sqlite3
import sys
import threading
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from wakeful import ops
from wakeful.errors import StoreError
from wakeful.ops_archive import ArchivePut, ArchiveRecord, ArchiveStats
from wakeful.ops_session import SessionClaim, SessionList
from wakeful.records import MemoryScope
from wakeful.stores.archive_sqlite import SqliteArchive
from wakeful.stores.sessions.sqlite import SqliteSessions
from wakeful.stores.sqlite import SqliteStore
from wakeful.stores.sqlite_pool import Pool

STORES: dict[str, Callable[[str], Any]] = {
    "memory": SqliteStore,
    "sessions": SqliteSessions,
    "archive": SqliteArchive,
}


def opened(path: Path) -> list[str]:
    return [link for link in map(_target, os.listdir("/proc/self/fd")) if link.startswith(str(path))]


def _target(number: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        return ""


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="this system does not list a process's open files")
@pytest.mark.parametrize("name", STORES)
def test_a_store_that_is_dropped_closes_its_file_without_a_warning(tmp_path: Path, name: str) -> None:
    # An unclosed connection warns where it is collected, and a warning is an error in these tests.
    store = STORES[name](str(tmp_path / "dropped.db"))
    assert opened(tmp_path)
    del store
    gc.collect()
    assert not opened(tmp_path)


@pytest.mark.parametrize("name", STORES)
def test_a_store_may_be_closed_twice_and_says_so_when_it_is_used_later(tmp_path: Path, name: str) -> None:
    store = STORES[name](str(tmp_path / "closed.db"))
    store.close()
    store.close()
    with pytest.raises(StoreError, match="is closed"):
        use(store, "late")


def use(store: Any, name: str) -> int:
    """Write something of this name, and give how many were written in all."""
    if isinstance(store, SqliteArchive):
        (stats,) = store.execute(
            (ArchivePut("space", (ArchiveRecord(id=name, dialect="openai_chat", position=0, messages=("{}",)),)),)
        )
        assert isinstance(stats, ArchiveStats)
        return stats.records
    if isinstance(store, SqliteSessions):
        store.execute((SessionClaim(session=name, dialect="openai_chat", at=datetime(2026, 1, 1, tzinfo=UTC)),))
        (found,) = store.execute((SessionList(),))
        return len(found)
    scope = MemoryScope.parse("org:a")
    store.execute((ops.PutState(scope, name, 1),))
    return sum(store.execute((ops.GetState(scope, each),))[0] is not None for each in NAMES)


NAMES = ("parent", "child", "parent again")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
@pytest.mark.parametrize("name", STORES)
def test_a_forked_child_uses_connections_of_its_own_and_leaves_its_parents_as_they_are(
    tmp_path: Path, name: str
) -> None:
    store = STORES[name](str(tmp_path / "forked.db"))
    assert use(store, "parent") == 1
    child = os.fork()
    if child == 0:
        status = 1
        try:
            inherited = list(store._pool._idle)
            count = use(store, "child")
            mine = store._pool._idle
            store.close()
            # The parent's connections are still open: closed ones would refuse.
            alive = [each.execute("SELECT 1").fetchone() for each in inherited]
            status = 0 if count == 2 and alive and not set(map(id, mine)) & set(map(id, inherited)) else 2
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert use(store, "parent again") == 3
    store.close()


def test_a_connection_is_lent_to_one_at_a_time_and_one_that_broke_inside_is_not_lent_again(tmp_path: Path) -> None:
    path = str(tmp_path / "lent.db")
    pool = Pool(lambda: sqlite3.connect(path, isolation_level=None, check_same_thread=False), "the pool")
    with pool.lend() as first, pool.lend() as second:
        assert first is not second
    with pool.lend() as again:
        assert again in (first, second)
        again.execute("BEGIN")
    with pool.lend() as other, pool.lend() as third:
        assert again not in (other, third)
    with pytest.raises(sqlite3.ProgrammingError):
        again.execute("SELECT 1")
    with pool.lend() as lent:
        pool.close()
        assert lent.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(sqlite3.ProgrammingError):
        lent.execute("SELECT 1")


def test_threads_never_share_a_connection(tmp_path: Path) -> None:
    path = str(tmp_path / "threads.db")
    pool = Pool(lambda: sqlite3.connect(path, isolation_level=None, check_same_thread=False), "the pool")
    lent: set[int] = set()
    shared: list[int] = []
    lock = threading.Lock()

    def borrow() -> None:
        for _ in range(200):
            with pool.lend() as connection:
                with lock:
                    if id(connection) in lent:
                        shared.append(id(connection))
                    lent.add(id(connection))
                connection.execute("SELECT 1").fetchone()
                with lock:
                    lent.discard(id(connection))

    threads = [threading.Thread(target=borrow) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pool.close()
    assert not shared
