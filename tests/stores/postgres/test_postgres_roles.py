"""A plain role that owns nothing: it keeps every promise, and the database itself shows it one scope at a time."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from postgres_places import as_role, empty
from wakeful import ops as op
from wakeful.errors import SchemaError, StoreError
from wakeful.records import MemoryScope
from wakeful.stores.conformance import StoreContract
from wakeful.stores.conformance.fixtures import ACME, ANA, ANA_TODAY, BOB, MODEL, START, hour, now_visible, vector
from wakeful.stores.conformance.scopes import LOOK_ALIKES, fill
from wakeful.stores.postgres import grant, open_postgres
from wakeful.stores.postgres.store import PostgresStore

pytestmark = pytest.mark.postgres

TABLES = ("scopes", "nodes", "words", "vectors", "edges", "history", "states", "leases", "tombstones")
"""Every table that holds anything of a tenant."""


@pytest.fixture(scope="class")
def role(server: str) -> Iterator[str]:
    name = f"plain_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{name}'")
        yield name
        connection.execute(f"DROP ROLE {name}")


@pytest.fixture(scope="class")
def plain_database(server: str, database: str, role: str) -> Iterator[str]:
    """URL of a database with the schema, as the plain role."""
    grant(database, role)
    yield as_role(database, role)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"DROP OWNED BY {role}")


@pytest.fixture
def plain_url(database: str, plain_database: str) -> str:
    empty(database)
    return plain_database


class TestPlainRole(StoreContract):
    """The whole contract, as a role that owns nothing."""

    persistent = True

    @pytest.fixture
    def open_store(self, plain_url: str) -> Callable[..., PostgresStore]:
        return lambda **options: open_postgres(plain_url, **options)


def counts(connection: psycopg.Connection[Any]) -> dict[str, int]:
    return {table: connection.execute(f"SELECT count(*) FROM wakeful.{table}").fetchone()[0] for table in TABLES}


def enter(connection: psycopg.Connection[Any], path: str, reach: str = "up") -> None:
    connection.execute(
        "SELECT set_config('wakeful.scope', %s, true), set_config('wakeful.reach', %s, true)", (path, reach)
    )


class TestRowSecurity:
    """What the database shows to statements that forgot every condition."""

    @pytest.fixture
    def filled(self, plain_url: str) -> Iterator[psycopg.Connection[Any]]:
        store = open_postgres(plain_url)
        for owner, name in ((ANA, "ana"), (BOB, "bob"), (ACME, "acme"), (ANA_TODAY, "today")):
            fill(store, owner, name)
            store.execute((op.AcquireLease(scope=owner, owner="w", at=START, seconds=9),))
        gone = MemoryScope.parse("org:gone")
        fill(store, gone, "gone")
        store.execute((op.Erase(gone, hour(1)),))
        store.close()
        with psycopg.connect(plain_url) as connection:
            yield connection

    def test_a_connection_that_set_no_scope_sees_and_changes_nothing(self, filled: Any) -> None:
        assert counts(filled) == dict.fromkeys(TABLES, 0)
        for table in TABLES:
            if table != "tombstones":
                assert filled.execute(f"DELETE FROM wakeful.{table}").rowcount == 0
        assert filled.execute("UPDATE wakeful.nodes SET content = 'taken'").rowcount == 0

    @pytest.mark.parametrize("reach", ["", "up", "down", "everything"])
    def test_an_empty_scope_is_never_everything(self, filled: Any, reach: str) -> None:
        enter(filled, "", reach)
        assert counts(filled) == dict.fromkeys(TABLES, 0)
        assert filled.execute("DELETE FROM wakeful.nodes").rowcount == 0

    def test_a_scope_lasts_for_its_transaction_alone(self, filled: Any) -> None:
        enter(filled, ANA.path)
        assert counts(filled)["nodes"] > 0
        filled.commit()
        assert counts(filled)["nodes"] == 0

    @pytest.mark.parametrize(
        ("reader", "reach", "owners"),
        [
            (ANA, "up", {ACME.path, ANA.path}),
            (ANA_TODAY, "up", {ACME.path, ANA.path, ANA_TODAY.path}),
            (ACME, "up", {ACME.path}),
            (ANA, "down", {ANA.path, ANA_TODAY.path}),
            (ACME, "down", {ACME.path, ANA.path, BOB.path, ANA_TODAY.path}),
        ],
    )
    def test_unbound_statements_see_what_the_scope_may(
        self, filled: Any, reader: MemoryScope, reach: str, owners: set[str]
    ) -> None:
        enter(filled, reader.path, reach)
        for table in TABLES:
            if table in ("scopes", "tombstones"):
                continue
            rows = filled.execute(
                f"SELECT DISTINCT o.path FROM wakeful.{table} t JOIN wakeful.scopes o ON o.id = t.owner"
            )
            assert {path for (path,) in rows} == owners, table

    def test_names_show_paths_and_no_rows(self, filled: Any) -> None:
        enter(filled, "", "names")
        found = counts(filled)
        assert found.pop("scopes") == 4
        assert found == dict.fromkeys(found, 0)

    @pytest.mark.parametrize("reach", ["up", "down", "names"])
    def test_writes_reach_own_rows_alone_whatever_is_seen(self, filled: Any, reach: str) -> None:
        enter(filled, ACME.path, reach)
        changed = filled.execute("UPDATE wakeful.nodes SET content = 'taken' RETURNING id").fetchall()
        assert {row[0] for row in changed} <= {"acme-1", "acme-2", "acme-3"}
        enter(filled, ANA_TODAY.path)
        deleted = filled.execute("DELETE FROM wakeful.nodes RETURNING id").fetchall()
        assert {row[0] for row in deleted} == {"today-1", "today-2", "today-3"}

    def test_a_row_can_not_be_written_into_or_moved_to_another_scope(self, filled: Any) -> None:
        enter(filled, ANA.path, "down")
        (today,) = filled.execute("SELECT id FROM wakeful.scopes WHERE path = %s", (ANA_TODAY.path,)).fetchone()
        filled.commit()
        for statement in (
            f"UPDATE wakeful.nodes SET owner = {today}",
            f"INSERT INTO wakeful.words (owner, term, chunk, entries) VALUES ({today}, 1, 0, '')",
            f"INSERT INTO wakeful.states (owner, key, value) VALUES ({today}, 'k', '1')",
            "INSERT INTO wakeful.scopes (path) VALUES ('org:elsewhere')",
            "INSERT INTO wakeful.tombstones (mark, erased_at) VALUES ('x', now())",
        ):
            enter(filled, ANA.path)
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                filled.execute(statement)
            filled.rollback()

    def test_the_plain_role_can_neither_lift_nor_change_the_lock(self, filled: Any) -> None:
        for statement in (
            "ALTER TABLE wakeful.nodes DISABLE ROW LEVEL SECURITY",
            "DROP POLICY see ON wakeful.nodes",
            "CREATE OR REPLACE FUNCTION wakeful.readable() RETURNS integer[] LANGUAGE sql AS 'SELECT ARRAY[1]'",
            "TRUNCATE wakeful.nodes",
            "CREATE TABLE wakeful.mine (a integer)",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                filled.execute(statement)
            filled.rollback()
        filled.execute("SET row_security = off")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            filled.execute("SELECT count(*) FROM wakeful.nodes")

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        held=st.lists(st.sampled_from(LOOK_ALIKES), min_size=1, max_size=2),
        asked=st.lists(st.sampled_from(LOOK_ALIKES), min_size=1, max_size=2),
    )
    def test_look_alike_paths_are_told_apart_by_the_policies(
        self, database: str, plain_url: str, held: list[str], asked: list[str]
    ) -> None:
        empty(database)
        one, other = (MemoryScope(tuple(zip(("org", "user"), path, strict=False))) for path in (held, asked))
        with psycopg.connect(plain_url) as connection:
            enter(connection, one.path)
            connection.execute("INSERT INTO wakeful.scopes (path) VALUES (%s)", (one.path,))
            for reach, expected in (("up", other.sees(one)), ("down", other.sees(one) or other.contains(one))):
                enter(connection, other.path, reach)
                (seen,) = connection.execute("SELECT count(*) FROM wakeful.scopes").fetchone()
                assert bool(seen) is expected, (reach, one.path, other.path)

    def test_the_owner_of_the_tables_is_held_by_the_lock_too(self, database: str, plain_url: str, role: str) -> None:
        with psycopg.connect(database, autocommit=True) as connection:
            rows = connection.execute(
                "SELECT relname, relrowsecurity, relforcerowsecurity FROM pg_class c JOIN pg_namespace n "
                "ON n.oid = c.relnamespace WHERE nspname = 'wakeful' AND relkind = 'r'"
            ).fetchall()
        locked = {name for name, enabled, forced in rows if enabled and forced}
        assert locked == set(TABLES)
        assert {name for name, *_ in rows} - locked == {"settings", "models"}


class TestOpeningAsPlainRole:
    def test_a_missing_schema_is_an_error_that_says_what_to_do(
        self, server: str, empty_database: str, role: str
    ) -> None:
        with pytest.raises(SchemaError, match="grant"):
            open_postgres(as_role(empty_database, role))


class TestOpeningWithoutRights:
    def test_missing_rights_are_an_error_that_names_grant(self, server: str, database: str, role: str) -> None:
        with pytest.raises(StoreError, match="grant"):
            open_postgres(as_role(database, role))


class TestSearchingAsPlainRole:
    def test_vectors_are_searched_as_a_plain_role(self, plain_url: str) -> None:
        store = open_postgres(plain_url)
        fill(store, ANA, "ana")
        search = op.SearchVector(scope=ANA, vector=vector(1), model=MODEL, visibility=now_visible())
        assert [hit.node.id for hit in store.execute((search,))[0]] == ["ana-1"]
        store.close()
