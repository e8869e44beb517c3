"""The approximate index over vectors (HNSW): one for each embedding model, built when a scope's rows are many."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

from wakeful.stores.postgres.reading import EXACT_ROWS
from wakeful.stores.protocol import EmbeddingSpace

_LINKS, _BUILD_WIDTH = 16, 64
"""Links of a vector and candidates at building: pgvector's own defaults.
Source: https://github.com/pgvector/pgvector#hnsw"""


def build(connection: psycopg.Connection[Any], space: EmbeddingSpace) -> bool:
    """Build the index of a model's vectors unless it is there or no scope holds many. Gives whether it is there."""
    row = connection.execute("SELECT id FROM wakeful.models WHERE name = %s", (space.model,)).fetchone()
    if row is None:
        return False
    model: int = row[0]
    name = f"vectors_near_{model}"
    held = connection.execute(
        "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", (f"wakeful.{name}",)
    ).fetchone()
    if held is not None and held[0]:
        return True
    with connection.transaction():
        connection.execute("SELECT set_config('wakeful.reach', 'names', true)")
        largest = connection.execute("SELECT coalesce(max(nodes), 0) FROM wakeful.scopes").fetchone()
    if largest is None or largest[0] <= EXACT_ROWS:
        return False
    if held is not None:
        connection.execute(sql.SQL("DROP INDEX CONCURRENTLY wakeful.{}").format(sql.Identifier(name)))
    connection.execute("SET maintenance_work_mem = '512MB'")
    connection.execute(
        sql.SQL(
            "CREATE INDEX CONCURRENTLY {name} ON wakeful.vectors USING hnsw ((embedding::halfvec({size})) "
            "halfvec_ip_ops) WITH (m = {links}, ef_construction = {width}) WHERE model = {model}"
        ).format(
            name=sql.Identifier(name),
            size=sql.Literal(space.dimensions),
            links=sql.Literal(_LINKS),
            width=sql.Literal(_BUILD_WIDTH),
            model=sql.Literal(model),
        )
    )
    return True
