"""Make and upgrade the schema. Each step is one transaction; whoever comes second waits, looks again and finds it done."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from wakeful.errors import SchemaError, StoreError
from wakeful.stores.postgres.failures import wrap

_FOLDER = Path(__file__).parent
_LOCK = 0x77616B6566756C
"""Key of the advisory lock of schema changes: "wakeful" in ASCII."""


def migrations() -> list[Path]:
    """Give the migrations in order; the schema's version is how many were applied."""
    return sorted((_FOLDER / "migrations").glob("[0-9]*.sql"))


def schema_version(connection: psycopg.Connection[Any]) -> int:
    """Give the version of the schema in the database; 0: there is none."""
    row = connection.execute("SELECT to_regclass('wakeful.settings') IS NOT NULL").fetchone()
    if row is None or not row[0]:
        return 0
    row = connection.execute("SELECT value FROM wakeful.settings WHERE key = 'schema'").fetchone()
    return int(row[0]) if row is not None else 0


def prepare(connection: psycopg.Connection[Any]) -> None:
    """Bring the schema to this version's.

    Raises ``SchemaError`` for a schema of a later version, and when there is none and the role may not make it.
    """
    wanted = len(migrations())
    if schema_version(connection) == wanted:
        return
    try:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            held = schema_version(connection)
            if held > wanted:
                raise SchemaError(f"the database has schema {held}, this version of Wakeful reads {wanted}; upgrade it")
            if held == 0:
                _apply(connection, _FOLDER / "schema.sql")
            for file in migrations()[held:] if held else ():
                _apply(connection, file)
            set_version(connection, wanted)
    except psycopg.errors.InsufficientPrivilege as error:
        raise SchemaError(
            "the database has no schema of this version and this role may not make it; open the store once as a role "
            f"that may, then grant() this one what it needs ({str(error).strip()})"
        ) from error
    except psycopg.errors.FeatureNotSupported as error:
        raise StoreError(f"PostgreSQL has no pgvector here; install the extension ({str(error).strip()})") from error


def set_version(connection: psycopg.Connection[Any], version: int) -> None:
    """Write down the version of the schema."""
    connection.execute(
        "INSERT INTO wakeful.settings (key, value) VALUES ('schema', %s) ON CONFLICT (key) DO UPDATE SET value = "
        "excluded.value",
        (json.dumps(version),),
    )


def _apply(connection: psycopg.Connection[Any], file: Path) -> None:
    connection.execute(file.read_bytes())


def grant(url: str, role: str) -> None:
    """Let a plain role use the store at ``url``: rows as row-level security allows, no tables of its own, no schema change.

    The workers' queue too, when its tables are there (package procrastinate makes them in the role's first schema).

    ``url`` names a role that owns the schema. Raises ``StoreError`` when it may not.
    """
    name = sql.Identifier(role)
    try:
        with psycopg.connect(url) as connection:
            prepare(connection)
            for statement in (
                "GRANT USAGE ON SCHEMA wakeful TO {}",
                "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA wakeful TO {}",
                "GRANT USAGE ON ALL SEQUENCES IN SCHEMA wakeful TO {}",
                "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA wakeful TO {}",
            ):
                connection.execute(sql.SQL(statement).format(name))
            for table, rights in connection.execute(_QUEUE).fetchall():
                connection.execute(sql.SQL("GRANT {} {} TO {}").format(sql.SQL(rights), sql.Identifier(table), name))
    except psycopg.Error as error:
        raise wrap(error) from error


_QUEUE = """
SELECT relname, CASE relkind WHEN 'S' THEN 'USAGE ON SEQUENCE' ELSE 'SELECT, INSERT, UPDATE, DELETE ON TABLE' END
FROM pg_class WHERE relname ^@ 'procrastinate_' AND relkind IN ('r', 'S') AND pg_table_is_visible(oid)
"""
"""The tables and sequences of the workers' queue, where they are."""
