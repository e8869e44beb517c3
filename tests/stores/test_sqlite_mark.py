"""Every store of ours knows its own files, shares one with the others, and leaves another program's as it is."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from wakeful.errors import SchemaError
from wakeful.ops_archive import ArchiveList
from wakeful.stores.archive_sqlite import SqliteArchive
from wakeful.stores.sessions.sqlite import SqliteSessions
from wakeful.stores.sqlite import SqliteStore

STORES: dict[str, Callable[[str], Any]] = {
    "memory": SqliteStore,
    "sessions": SqliteSessions,
    "archive": SqliteArchive,
}


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
@pytest.mark.parametrize("name", STORES)
def test_another_programs_file_is_refused_and_not_one_byte_of_it_changes(
    tmp_path: Path, name: str, journal: str
) -> None:
    path = tmp_path / "theirs.db"
    theirs = sqlite3.connect(path, isolation_level=None)
    theirs.execute(f"PRAGMA journal_mode = {journal}")
    theirs.execute("CREATE TABLE invoices (id INTEGER PRIMARY KEY, total REAL)")
    theirs.execute("INSERT INTO invoices (total) VALUES (12.5)")
    theirs.close()
    before = path.read_bytes()
    with pytest.raises(SchemaError, match="another program"):
        STORES[name](str(path))
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["theirs.db"]


@pytest.mark.parametrize("order", list(permutations(STORES)), ids="-".join)
def test_one_file_holds_them_all_whichever_came_first(tmp_path: Path, order: tuple[str, ...]) -> None:
    path = str(tmp_path / "all.db")
    for _ in range(2):
        opened = [STORES[name](path) for name in order]
        for store in opened:
            store.close()
    connection = sqlite3.connect(path)
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.close()
    assert {"node", "session_meta", "archive_meta"} <= tables


def test_an_archive_that_is_only_looked_for_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    SqliteStore(str(path)).close()
    before = path.read_bytes()
    with pytest.raises(SchemaError, match="no archive"):
        SqliteArchive(path, make=False)
    assert path.read_bytes() == before
    SqliteArchive(path).close()
    found = SqliteArchive(path, make=False)
    assert found.execute((ArchiveList(""),)) == ((),)
    found.close()
