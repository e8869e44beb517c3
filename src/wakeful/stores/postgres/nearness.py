"""The approximate index over vectors (IVFFlat): one for each embedding model, built when a scope's rows are many."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

from wakeful.stores.postgres.reading import EXACT_ROWS
from wakeful.stores.protocol import EmbeddingSpace

_ROWS_OF_A_LIST = 200
"""Vectors of one list when the index is built. At 200,000 vectors, 1,000 lists find as much as 450 do in half the time."""
PROBES = 20
"""Lists compared for a query; more when rows of the scope are too few among them."""
_OUTGROWN = 4
"""An index over so many times the vectors that it was built for is built again."""

_MOST_LISTS = 32_768
"""Source: https://github.com/pgvector/pgvector, ``IVFFLAT_MAX_LISTS`` in ``src/ivfflat.h``."""


def build(connection: psycopg.Connection[Any], space: EmbeddingSpace) -> bool:
    """Build the index of a model's vectors unless it is there or no scope holds many. Gives whether it is there.

    One that its vectors have outgrown is built again; the old one serves until the new one is ready.
    """
    row = connection.execute("SELECT id FROM wakeful.models WHERE name = %s", (space.model,)).fetchone()
    if row is None:
        return False
    model: int = row[0]
    name = f"vectors_near_{model}"
    with connection.transaction():
        connection.execute("SELECT set_config('wakeful.reach', 'names', true)")
        counted = connection.execute(
            "SELECT coalesce(max(nodes), 0), coalesce(sum(nodes), 0)::bigint FROM wakeful.scopes"
        ).fetchone()
    largest, rows = counted or (0, 0)
    lists = max(1, rows // _ROWS_OF_A_LIST)
    held = _lists(connection, name)
    if held is not None and lists <= _OUTGROWN * held:
        return True
    if largest <= EXACT_ROWS:
        return held is not None
    connection.execute("SET maintenance_work_mem = '512MB'")
    fresh = sql.Identifier(f"{name}_new")
    connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS wakeful.{}").format(fresh))
    connection.execute(
        sql.SQL(
            "CREATE INDEX CONCURRENTLY {name} ON wakeful.vectors USING ivfflat ((embedding::halfvec({size})) "
            "halfvec_ip_ops) WITH (lists = {lists}) WHERE model = {model}"
        ).format(
            name=fresh,
            size=sql.Literal(space.dimensions),
            lists=sql.Literal(min(lists, _MOST_LISTS)),
            model=sql.Literal(model),
        )
    )
    connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS wakeful.{}").format(sql.Identifier(name)))
    connection.execute(sql.SQL("ALTER INDEX wakeful.{} RENAME TO {}").format(fresh, sql.Identifier(name)))
    return True


def _lists(connection: psycopg.Connection[Any], name: str) -> int | None:
    """Lists of an index that can be used; 0 for one that was broken off or is of another kind."""
    row = connection.execute(
        "SELECT i.indisvalid AND a.amname = 'ivfflat', "
        "(SELECT option_value::integer FROM pg_options_to_table(c.reloptions) WHERE option_name = 'lists') "
        "FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam "
        "WHERE i.indexrelid = to_regclass(%s)",
        (f"wakeful.{name}",),
    ).fetchone()
    if row is None:
        return None
    return row[1] if row[0] else 0
