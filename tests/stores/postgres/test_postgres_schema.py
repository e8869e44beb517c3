"""Migrations leave the schema that a fresh database gets, from every earlier version; the plans use the indexes."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from postgres_places import on_database
from wakeful import ops as op
from wakeful.errors import ConfigError, SchemaError, StoreBusy, StoreError
from wakeful.records import MemoryLayer, MemoryScope, Source
from wakeful.sketches import Sketch, sketch_of
from wakeful.stores import open_store as open_any
from wakeful.stores.conformance.fixtures import ACME, ANA, EVERYTHING, MODEL, START, hour, node, vector
from wakeful.stores.postgres import migrate, open_postgres
from wakeful.stores.postgres.steps import reader, shown, sql
from wakeful.stores.postgres.store import PostgresStore

pytestmark = pytest.mark.postgres

CATALOGUE = {
    "columns": "SELECT table_name, column_name, ordinal_position, data_type, udt_name, is_nullable, column_default, "
    "collation_name, is_identity, generation_expression FROM information_schema.columns WHERE table_schema = 'wakeful'",
    "indexes": "SELECT indexdef FROM pg_indexes WHERE schemaname = 'wakeful'",
    "constraints": "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
    "WHERE connamespace = 'wakeful'::regnamespace",
    "policies": "SELECT tablename, policyname, permissive, roles::text, cmd, qual, with_check FROM pg_policies "
    "WHERE schemaname = 'wakeful'",
    "functions": "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'wakeful'::regnamespace",
    "relations": "SELECT relname, relkind, relrowsecurity, relforcerowsecurity, reloptions::text FROM pg_class "
    "WHERE relnamespace = 'wakeful'::regnamespace",
    "storage": "SELECT attrelid::regclass::text, attname, attstorage FROM pg_attribute JOIN pg_class c ON c.oid = attrelid "
    "WHERE relnamespace = 'wakeful'::regnamespace AND relkind = 'r' AND attnum > 0",
    "version": "SELECT value::text FROM wakeful.settings WHERE key = 'schema'",
}


def catalogue(url: str) -> dict[str, list[Any]]:
    with psycopg.connect(url) as connection:
        return {name: sorted(connection.execute(query).fetchall(), key=repr) for name, query in CATALOGUE.items()}


def migrated(url: str, versions: int) -> None:
    """Make the schema as an earlier version left it."""
    with psycopg.connect(url) as connection:
        for file in migrate.migrations()[:versions]:
            connection.execute(file.read_bytes())
        migrate.set_version(connection, versions)


@pytest.fixture(scope="class")
def fresh(database: str) -> dict[str, list[Any]]:
    return catalogue(database)


class TestMigrations:
    @pytest.mark.parametrize("versions", range(1, len(migrate.migrations()) + 1))
    def test_an_upgrade_from_any_version_leaves_the_schema_of_a_fresh_database(
        self, server: str, fresh: dict[str, list[Any]], versions: int
    ) -> None:
        with psycopg.connect(server, autocommit=True) as connection:
            name = f"wakeful_upgrade_{versions}_{connection.info.backend_pid}"
            connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
            try:
                url = on_database(server, name)
                migrated(url, versions)
                open_postgres(url).close()
                upgraded = catalogue(url)
            finally:
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
        assert upgraded == fresh
        assert all(fresh.values())

    def test_a_row_of_before_the_outlines_is_weighed_by_its_text_and_gets_its_outline_with_its_next_change(
        self, url: str
    ) -> None:
        said = Source(session="s", speaker="Ana")
        rows = tuple(
            node(ANA, name, text, layer=MemoryLayer.EPISODIC, at=hour(n), label=label, source=said)
            for n, (name, text, label) in enumerate(
                (("q", "Did you see the lighthouse?", ""), ("a", "Yes, in May", "1 May 2023"), ("z", "  Fine ", ""))
            )
        )
        with closing(open_postgres(url)) as store:
            store.execute((op.PutNodes(ANA, rows),))
            with psycopg.connect(url) as connection:
                connection.execute("UPDATE wakeful.nodes SET terms = NULL, asks = NULL, tells_time = NULL, said = NULL")
            terms = ("lighthous", "may")
            find = op.FindCandidates(
                scope=ANA, terms=terms, vector=None, model="", visibility=EVERYTHING, by_words=9, by_meaning=9
            )
            beside = op.Adjacent(scope=ANA, ids=("q", "a"), visibility=EVERYTHING, terms=terms)

            def sketches() -> dict[str, Sketch]:
                found, near = store.execute((find, beside))
                return {each.sketch.id: each.sketch for each in found} | {each.id: each for _, _, each in near}

            of_before = sketches()
            held = store.execute((op.GetNodes(ANA, ("q", "a", "z")),))[0]
            assert of_before == {each.id: sketch_of(each, terms)._replace(node=None) for each in held}
            store.execute((op.UpdateNodes(scope=ANA, changes={name: {"importance": 5.0} for name in "qaz"}),))
            assert sketches() == of_before
            with psycopg.connect(url) as connection:
                (left,) = connection.execute("SELECT count(*) FROM wakeful.nodes WHERE terms IS NULL").fetchone() or (
                    1,
                )
            assert left == 0

    def test_a_schema_of_a_later_version_is_refused_untouched(self, url: str) -> None:
        with psycopg.connect(url) as connection:
            migrate.set_version(connection, 99)
        with pytest.raises(SchemaError, match="99"):
            open_postgres(url)
        with psycopg.connect(url) as connection:
            assert migrate.schema_version(connection) == 99
            migrate.set_version(connection, len(migrate.migrations()))


class TestNames:
    def test_no_two_statements_share_a_name_and_none_holds_a_value(self) -> None:
        from wakeful.stores.postgres.steps import _blocks

        blocks = _blocks()
        assert len(blocks) > 50
        assert not [name for name, body in blocks.items() if re.search(r"\{|\bLIKE\b", body)]


@pytest.fixture(scope="class")
def plans(database: str) -> str:
    store = open_postgres(database)
    rows = tuple(
        node(
            *(ANA, f"n{n}", f"text {n % 50}"),
            at=START + timedelta(minutes=n),
            label=f"l{n}",
            layer=MemoryLayer.PROCEDURAL if n % 300 == 7 else MemoryLayer.SEMANTIC,
            properties={"subject": f"u{n}", "attribute": "city"} if n % 3 else {},
            source=Source(session=f"s{n % 7}"),
            accessed_at=hour(n) if n % 9 == 0 else None,
            expires_at=hour(n) if n % 9 == 1 else None,
            superseded_at=hour(n) if n % 9 == 2 else None,
            embedding=vector(1, n),
            embedding_model=MODEL,
        )
        for n in range(3000)
    )
    others = tuple(node(MemoryScope.parse("org:other"), f"o{n}", f"text {n % 50}") for n in range(3000))
    store.execute((op.PutNodes(ANA, rows), op.PutNodes(others[0].scope, others)))
    store.close()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("ANALYZE")
    return database


class TestPlans:
    """What is promised to be a range or a look-up in an index is one, even under row-level security."""

    @pytest.mark.parametrize(
        ("names", "value", "condition"),
        [
            ("updated_since", hour(40), r"updated_at >= "),
            ("idle_since", hour(45), r"used_at >= "),
            ("idle_before", hour(1), r"used_at < "),
            ("accessed_since", hour(2900), r"accessed_at >= "),
            ("expires_before", hour(30), r"expires_at <= "),
            ("superseded_before", hour(30), r"superseded_at < "),
            ("session", "s3", r"session = "),
            ("label", "l7", r"label_key = "),
            ("claim", {"subject": "u7", "attribute": "city"}, r"claim_key = "),
        ],
    )
    def test_a_filter_is_a_condition_of_an_index(self, plans: str, names: str, value: Any, condition: str) -> None:
        named = value if isinstance(value, dict) else {names: value}
        values = {**reader(ANA), **shown(EVERYTHING), "limit": 50, **named}
        for table_owner in (True, False):
            order = "query_nodes.updated_down" if names == "updated_since" else "query_nodes.picked_down"
            blocks = ("query_nodes", f"query_nodes.{names}", order, "query_nodes.owners", order)
            plan = self._plan(plans, blocks, values, table_owner)
            found = re.search(rf"Index Cond: .*{condition}", plan)
            assert found, plan
            assert "owner = " in found[0], plan

    @pytest.mark.parametrize("superuser", [True, False])
    def test_the_rows_of_a_small_layer_are_read_without_the_others(self, plans: str, superuser: bool) -> None:
        skills = replace(EVERYTHING, layers=(MemoryLayer.PROCEDURAL,))
        values = {**reader(ANA), **shown(skills), "limit": 50}
        order = "query_nodes.importance_down"
        plan = self._plan(
            plans, ("query_nodes", "query_nodes.standing", order, "query_nodes.owners", order), values, superuser
        )
        assert "nodes_standing" in plan, plan

    @pytest.mark.parametrize("superuser", [True, False])
    def test_the_newest_rows_come_in_order_from_the_index(self, plans: str, superuser: bool) -> None:
        order = "query_nodes.updated_down"
        values = {**reader(ANA), **shown(EVERYTHING), "limit": 5}
        plan = self._plan(plans, ("query_nodes", order, "query_nodes.owners", order), values, superuser)
        assert "Index Scan Backward using nodes_updated" in plan, plan
        assert "Presorted Key: n.updated_at" in plan, plan

    @staticmethod
    def _plan(url: str, names: tuple[str, ...], values: dict[str, Any], superuser: bool) -> str:
        with psycopg.connect(url) as connection:
            if not superuser:
                connection.execute("CREATE ROLE looker")
                connection.execute("GRANT USAGE ON SCHEMA wakeful TO looker")
                connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA wakeful TO looker")
                connection.execute("SET LOCAL ROLE looker")
            connection.execute(
                "SELECT set_config('wakeful.scope', %(path)s, true), set_config('wakeful.reach', 'up', true)", values
            )
            rows = connection.execute("EXPLAIN (COSTS OFF) " + sql(*names), values).fetchall()
            connection.rollback()
        return "\n".join(row[0] for row in rows)

    @pytest.mark.parametrize("superuser", [True, False])
    def test_a_page_of_the_subtree_begins_where_the_last_one_ended(self, plans: str, superuser: bool) -> None:
        values = {**reader(ANA), "limit": 5, "after_path": ANA.path, "after_doc": 700}
        plan = self._plan(plans, ("subtree", "subtree.scopes"), values, superuser)
        assert re.search(r"Index Cond: .*owner = o\.id.* AND \(doc > CASE", plan), plan

    @pytest.mark.parametrize("superuser", [True, False])
    def test_words_are_looked_up_by_owner_and_term(self, plans: str, superuser: bool) -> None:
        plan = self._plan(plans, ("words",), {**reader(ANA), "terms": [1, 2]}, superuser)
        assert re.search(r"Index Cond: .*owner = ANY.*term = ANY", plan), plan

    @pytest.mark.parametrize("superuser", [True, False])
    def test_neighbours_are_a_range_by_session_and_time(self, plans: str, superuser: bool) -> None:
        values = {**reader(ANA), **shown(EVERYTHING), "ids": ["n7"], "distance": 2}
        plan = self._plan(plans, ("adjacent",), values, superuser)
        assert len(re.findall(r"Index Cond: .*session = .*ROW\(asserted_at, place\)", plan)) == 2, plan
        assert "Seq Scan on nodes" not in plan


class TestConnections:
    def test_a_url_opens_a_store(self, url: str) -> None:
        store = open_any(url, model_id="m", dimensions=4)
        assert isinstance(store, PostgresStore)
        assert store.kind == "postgresql"
        store.close()
        with pytest.raises(ConfigError):
            open_any("mysql://localhost/x")

    def test_a_server_that_is_not_there_is_an_error_with_its_cause(self) -> None:
        with pytest.raises(StoreError) as caught:
            open_postgres("postgresql://nobody@127.0.0.1:1/none?connect_timeout=2")
        assert isinstance(caught.value.__cause__, psycopg.Error)

    def test_a_held_lock_and_an_empty_pool_are_busy_and_change_nothing(
        self, url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("wakeful.stores.postgres.store._SETTINGS", "SET lock_timeout = '50ms'")
        monkeypatch.setattr("wakeful.stores.postgres.store._LOCK_SECONDS", 0.2)
        store = open_postgres(url, pool_size=1)
        store.execute((op.PutState(ANA, "k", 1),))
        with psycopg.connect(url) as other:
            other.execute("UPDATE wakeful.states SET value = '2'")
            with pytest.raises(StoreBusy) as caught:
                store.execute((op.PutState(ACME, "k", 3), op.PutState(ANA, "k", 3)))
            assert isinstance(caught.value.__cause__, psycopg.errors.LockNotAvailable)
            other.rollback()
        assert store.execute((op.GetState(ANA, "k"), op.GetState(ACME, "k"))) == (1, None)
        with store._pool.connection(), pytest.raises(StoreBusy):
            store.execute((op.GetState(ANA, "k"),))
        store.close()

    def test_a_name_that_no_index_can_keep_is_refused(self, url: str) -> None:
        store = open_postgres(url)
        long = "".join(chr(0x4E00 + n * 7919 % 20000) for n in range(9_000))
        with pytest.raises(ValueError, match="too long"):
            store.execute((op.PutNodes(ANA, (node(ANA, long, "text"),)),))
        assert store.execute((op.GetNodes(ANA, (long,)),)) == ((),)
        store.close()
