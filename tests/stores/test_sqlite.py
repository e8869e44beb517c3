"""The SQLite store keeps every promise of a store, in memory and in the file."""

from __future__ import annotations

import math
import random
import re
import sqlite3
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from wakeful import ops as op
from wakeful.errors import ConfigError, SchemaError, StoreBusy
from wakeful.records import MemoryScope
from wakeful.stores import open_store
from wakeful.stores.conformance import StoreContract
from wakeful.stores.conformance.fixtures import ANA, EVERYTHING, MODEL, START, Opener, hour, ids, node, vector
from wakeful.stores.opening import sqlite_path
from wakeful.stores.sqlite import SqliteStore
from wakeful.stores.sqlite.migrate import migrate, migrations
from wakeful.stores.sqlite.transaction import statements


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Opener:
        return lambda **options: SqliteStore(str(tmp_path / "store.db"), **options)


class TestSqliteStoreSearchedInTheFile(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Opener:
        return lambda **options: SqliteStore(str(tmp_path / "store.db"), sidecar_bytes=0, **options)


WRITER = """
import sys, time
from datetime import UTC, datetime
from wakeful import ops as op
from wakeful.records import MemoryNode, MemoryScope
from wakeful.stores.sqlite import SqliteStore

path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = SqliteStore(path)
scope = MemoryScope.parse("org:acme/user:ana")
at = datetime(2026, 3, 1, tzinfo=UTC)
for number in range(count):
    node = MemoryNode.new(scope=scope, layer="episodic", id=f"{name}-{number}", content=f"word {name} {number}", at=at)
    store.execute((op.PutNodes(scope, (node,)), op.Log(scope, (op.Change(node=node, action="add", at=at),))))
    print(node.id, flush=True)
"""

CLAIMER = """
import sys
from datetime import UTC, datetime
from wakeful import ops as op
from wakeful.records import MemoryScope
from wakeful.stores.sqlite import SqliteStore

store = SqliteStore(sys.argv[1])
scope = MemoryScope.parse("org:acme/user:ana")
at = datetime(2026, 3, 1, tzinfo=UTC)
while found := store.execute((op.ClaimDue(scope=scope, at=at, limit=3),))[0]:
    for node in found:
        settled = store.execute((op.AckDue(scope=scope, id=node.id, occurrence=node.properties["due_at"]),))
        print(node.id, settled[0], flush=True)
"""


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def found(store: SqliteStore, terms: tuple[str, ...]) -> set[str]:
    search = op.SearchText(scope=ANA, terms=terms, visibility=EVERYTHING, limit=10_000)
    return set(ids(store.execute((search,))[0]))


def test_no_acknowledged_write_is_lost_when_processes_write_at_once_and_one_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(str(path))
    writers = [start(WRITER, path, f"w{number}", 60) for number in range(4)]
    victim = start(WRITER, path, "victim", 100_000)
    assert victim.stdout is not None
    acknowledged = {victim.stdout.readline().strip() for _ in range(20)}
    reads = 0
    while any(writer.poll() is None for writer in writers) and reads < 200:
        found(store, ("word",))
        reads += 1
    victim.kill()
    acknowledged |= {line.strip() for line in victim.communicate()[0].splitlines(keepends=True) if line.endswith("\n")}
    for writer in writers:
        out, errors = writer.communicate(timeout=60)
        assert (writer.returncode, errors) == (0, "")
        acknowledged |= set(out.split())
    assert len(acknowledged) >= 4 * 60 + 20
    assert acknowledged <= found(store, ("word",))
    store.close()
    again = SqliteStore(str(path))
    assert acknowledged <= found(again, ("word",))
    histories = again.execute(tuple(op.History(ANA, each) for each in sorted(acknowledged)))
    assert all(len(history) == 1 for history in histories)
    again.close()


def test_a_reminder_is_given_to_one_process_once(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(str(path))
    due = tuple(
        node(ANA, f"r{number}", layer="prospective", properties={"due_at": "2026-03-01T00:00:00+00:00"})
        for number in range(40)
    )
    store.execute((op.PutNodes(ANA, due),))
    claimers = [start(CLAIMER, path) for _ in range(3)]
    given = [line for claimer in claimers for line in claimer.communicate(timeout=60)[0].splitlines()]
    assert sorted(given) == sorted(f"{each.id} True" for each in due)
    store.close()


def test_threads_share_a_store(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "store.db"))

    def write(number: int) -> int:
        row = node(ANA, f"n{number}", "lighthouse", embedding=vector(1), embedding_model="m")
        near = op.SearchVector(scope=ANA, vector=vector(1), model="m", visibility=EVERYTHING, limit=1000)
        return len(store.execute((op.PutNodes(ANA, (row,)), near))[1])

    with ThreadPoolExecutor(6) as pool:
        counts = list(pool.map(write, range(60)))
    assert sorted(counts) == list(range(1, 61))
    assert found(store, ("lighthous",)) == {f"n{number}" for number in range(60)}
    store.close()


def test_a_locked_file_is_a_retryable_error_that_changed_nothing(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "store.db"), busy_seconds=0.01)
    other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy, match="try again"):
        store.execute((op.PutNodes(ANA, (node(ANA, "one"),)),))
    assert store.execute((op.GetNodes(ANA, ("one",)),)) == ((),)
    other.execute("ROLLBACK")
    assert store.execute((op.PutNodes(ANA, (node(ANA, "one"),)),)) == (1,)
    other.close()
    store.close()


def secrets_in(folder: Path, *needles: str) -> list[str]:
    return [
        f"{needle} in {path.name}"
        for path in sorted(folder.iterdir())
        for needle in needles
        if needle.encode() in path.read_bytes()
    ]


NEEDLES = ("zanzibarqx", "erasedperson", "propertyneedle", "reasonneedle", "stateneedle", "workerneedle", "idneedle")


def fill_with_secrets(store: SqliteStore, copies: int = 40) -> None:
    owner = MemoryScope.parse("org:acme/user:erasedperson/session:s")
    row = node(
        *(owner, "idneedle", "zanzibarqx stays"),
        properties={"k": "propertyneedle"},
        embedding=vector(0.1, 0.2, 0.3),
        embedding_model=MODEL,
    )
    others = tuple(node(owner, f"idneedle{n}", f"zanzibarqx{n} and filler {'x' * n * 40}") for n in range(copies))
    store.execute(
        (
            op.PutNodes(owner, (row, *others)),
            op.PutNodes(ANA, tuple(node(ANA, f"kept{n}", f"lighthouse {n}") for n in range(copies))),
            op.Log(owner, (op.Change(node=row, action="add", reason="reasonneedle", at=START),)),
            op.PutState(owner, "k", "stateneedle"),
            op.AcquireLease(scope=owner, owner="workerneedle", at=START, seconds=9),
        )
    )
    for round_ in range(3):
        store.execute((op.UpdateNodes(scope=owner, changes={"idneedle": {"content": f"zanzibarqx again {round_}"}}),))


def test_no_file_of_the_store_holds_what_was_erased(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "store.db"))
    fill_with_secrets(store)
    assert secrets_in(tmp_path, *NEEDLES)
    (receipt,) = store.execute((op.Erase(MemoryScope.parse("org:acme/user:erasedperson"), hour(1)),))
    assert (receipt["nodes"], receipt["pending"]) == (41, ())
    assert secrets_in(tmp_path, *NEEDLES) == []
    assert len(found(store, ("lighthous",))) == 40
    store.close()
    assert secrets_in(tmp_path, *NEEDLES) == []


def test_a_blocked_clean_up_is_pending_in_the_receipt_and_done_later(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "store.db"))
    fill_with_secrets(store)
    reader = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM node").fetchone()
    (receipt,) = store.execute((op.Erase(MemoryScope.parse("org:acme/user:erasedperson"), hour(1)),))
    assert receipt["pending"]
    assert found(store, ("zanzibarqx",)) == set()
    reader.execute("COMMIT")
    reader.close()
    assert store.purge() == ()
    assert secrets_in(tmp_path, *NEEDLES) == []
    store.close()


def test_a_recent_window_and_neighbours_are_ranges_in_an_index(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "store.db"))
    store.execute((op.PutNodes(ANA, (node(ANA, "one"),)),))
    store.close()
    connection = sqlite3.connect(tmp_path / "store.db")
    connection.create_function("has_properties", 2, lambda held, wanted: True)
    expected = {
        "newest_nodes": "node_by_updated (scope=? AND layer=? AND updated>? AND updated<?)",
        "sorted_nodes": "node_by_updated (scope=? AND layer=? AND updated>? AND updated<?)",
        "recent_subtree_nodes": "node_by_updated (scope=? AND layer=? AND updated>?)",
        "labelled_nodes": "node_by_label (scope=? AND label=?)",
        "claimed_nodes": "node_by_claim (scope=? AND <expr>=? AND <expr>=?)",
        "accessed_nodes": "node_by_accessed (scope=? AND accessed>?)",
        "expiring_nodes": "node_by_expires (scope=? AND expires<?)",
        "superseded_nodes": "node_by_superseded (scope=? AND superseded<?)",
        "due_nodes": "node_by_due (scope=? AND due<?)",
        "beside": "node_by_session (scope=? AND session=? AND layer=?",
        "load_rows": "node_by_scope (scope=? AND rowid>?)",
        "subtree_nodes": "node_by_scope (scope=? AND rowid>?)",
        "revised_rows": "revision_by_change (scope=? AND change>?)",
        "scopes_below": "(path>? AND path<?)",
    }
    for name, index in expected.items():
        statement = statements()[name]
        parameters = dict.fromkeys(re.findall(r":(\w+)", statement), "1")
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)]
        assert any(index in step for step in plan), (name, plan)
        assert not [step for step in plan if step.startswith("SCAN") and "json_each" not in step and " j" not in step]
    connection.close()


def schema_of(connection: sqlite3.Connection) -> dict[str, str]:
    return dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))


def plain_connection(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def test_the_migrations_lead_to_the_schema(tmp_path: Path) -> None:
    fresh, stepwise = plain_connection(tmp_path / "fresh.db"), plain_connection(tmp_path / "stepwise.db")
    migrate(fresh)
    for script in migrations():
        stepwise.executescript(script)
    assert schema_of(stepwise) == schema_of(fresh)
    for table in schema_of(fresh):
        columns = [list(each.execute(f"PRAGMA table_xinfo({table})")) for each in (fresh, stepwise)]
        assert columns[0] == columns[1]
    fresh.close()
    stepwise.close()


@pytest.mark.parametrize("version", range(1, 4))
def test_a_store_of_every_earlier_schema_is_brought_to_the_last(tmp_path: Path, version: int) -> None:
    steps = (
        "CREATE TABLE thing (id INTEGER PRIMARY KEY);",
        "ALTER TABLE thing ADD COLUMN name TEXT;\nUPDATE thing SET name = 'n' || id;",
        "CREATE INDEX thing_by_name ON thing (name);",
    )
    connection = plain_connection(tmp_path / "store.db")
    migrate(connection, steps=steps[:version], whole="\n".join(steps[:version]))
    connection.execute("INSERT INTO thing (id) VALUES (7)")
    whole = "CREATE TABLE thing (id INTEGER PRIMARY KEY, name TEXT);\nCREATE INDEX thing_by_name ON thing (name);"
    migrate(connection, steps=steps, whole=whole)
    migrate(connection, steps=steps, whole=whole)
    assert connection.execute("PRAGMA user_version").fetchone() == (3,)
    assert connection.execute("SELECT id, name FROM thing").fetchall() == [(7, "n7" if version == 1 else None)]
    assert "thing_by_name" in schema_of(connection)
    connection.close()


def test_a_failed_migration_changes_nothing(tmp_path: Path) -> None:
    connection = plain_connection(tmp_path / "store.db")
    first = "CREATE TABLE thing (id INTEGER PRIMARY KEY);"
    migrate(connection, steps=(first,), whole=first)
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, steps=(first, "CREATE TABLE other (id);\nDROP TABLE missing;"), whole=first)
    assert list(schema_of(connection)) == ["thing"]
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    connection.close()


def test_a_file_of_a_later_version_of_another_program_or_of_no_database_is_refused(tmp_path: Path) -> None:
    SqliteStore(str(tmp_path / "later.db")).close()
    later = plain_connection(tmp_path / "later.db")
    later.execute(f"PRAGMA user_version = {len(migrations()) + 1}")
    later.close()
    other = plain_connection(tmp_path / "other.db")
    other.execute("CREATE TABLE theirs (id)")
    other.close()
    (tmp_path / "text.db").write_text("no database at all, but long enough to look like one" * 50)
    for name, words in (("later", "version"), ("other", "another program"), ("text", "not a SQLite database")):
        with pytest.raises(SchemaError, match=words):
            SqliteStore(str(tmp_path / f"{name}.db"))
    left = plain_connection(tmp_path / "other.db")
    assert list(schema_of(left)) == ["theirs"]
    left.close()


@pytest.mark.parametrize(
    ("url", "path"),
    [("sqlite:///a.db", "a.db"), ("sqlite:////tmp/a.db", "/tmp/a.db"), ("sqlite:///my%20notes.db", "my notes.db")],
)
def test_three_slashes_are_relative_and_four_absolute(url: str, path: str) -> None:
    assert sqlite_path(url) == path


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite://host/a.db", "mysql://x", "notes.db", ""])
def test_a_url_of_no_store_is_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        open_store(url)


def test_scopes_that_do_not_fit_in_memory_are_searched_in_the_file(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "store.db"), sidecar_bytes=20_000)
    rows = tuple(
        node(ANA, f"n{n}", f"lighthouse {n}", embedding=vector(1, n / 100), embedding_model=MODEL) for n in range(90)
    )
    near = op.SearchVector(scope=ANA, vector=vector(1), model=MODEL, visibility=EVERYTHING, limit=3)
    store.execute((op.PutNodes(ANA, rows[:3]),))
    assert len(found(store, ("lighthous",))) == 3
    store.execute((op.PutNodes(ANA, rows),))
    assert len(found(store, ("lighthous",))) == 90
    assert ids(store.execute((near,))[0]) == ["n0", "n1", "n2"]
    store.close()


def test_large_scopes_find_the_nearest_by_codes_and_a_second_look(tmp_path: Path) -> None:
    rng = random.Random(3)

    def point() -> bytes:
        values = [rng.gauss(0, 1) for _ in range(128)]
        length = math.hypot(*values)
        return struct.pack("<128f", *(value / length for value in values))

    rows = tuple(node(ANA, f"n{n}", embedding=point(), embedding_model=MODEL) for n in range(2_500))
    exact = SqliteStore(str(tmp_path / "store.db"), sidecar_bytes=0)
    exact.execute((op.PutNodes(ANA, rows),))
    coded = SqliteStore(str(tmp_path / "store.db"))
    agreed = 0
    for _ in range(10):
        near = op.SearchVector(scope=ANA, vector=point(), model=MODEL, visibility=EVERYTHING, limit=10)
        agreed += len(set(ids(exact.execute((near,))[0])) & set(ids(coded.execute((near,))[0])))
    assert agreed >= 90
    exact.close()
    coded.close()
