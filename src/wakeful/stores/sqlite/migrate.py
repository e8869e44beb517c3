"""Bring a file to the schema: a fresh one gets ``schema.sql``, an earlier one every migration that it lacks.

The version stands in ``PRAGMA user_version``; ``application_id`` marks the file as ours, so that another program's
database is refused and not written into.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from importlib.resources import files

from wakeful.errors import SchemaError
from wakeful.stores.sql import load_scripts

APPLICATION_ID = 0x57616B65
"""The bytes ``Wake``."""

_PACKAGE = "wakeful.stores.sqlite"


def migrations() -> tuple[str, ...]:
    """Every migration, the first one making the first schema."""
    return load_scripts(_PACKAGE, "migrations")


def schema() -> str:
    """The schema to which all migrations lead."""
    return files(_PACKAGE).joinpath("schema.sql").read_text("utf-8")


def migrate(connection: sqlite3.Connection, *, steps: Sequence[str] | None = None, whole: str | None = None) -> None:
    """Bring the file to the schema, in one transaction. A file that is there already costs one read.

    ``steps`` and ``whole`` default to ``migrations()`` and ``schema()``. Raises ``SchemaError`` for a file of another
    program or of a later version.
    """
    if _version(connection) == len(steps if steps is not None else migrations()) and _ours(connection):
        return
    steps = steps if steps is not None else migrations()
    connection.execute("BEGIN IMMEDIATE")
    try:
        version, ours = _version(connection), _ours(connection)
        empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if version > len(steps) and ours:
            raise SchemaError(
                f"the store's schema has version {version}, this version of Wakeful reads up to {len(steps)}; "
                "install the version that wrote it, or a later one"
            )
        if not empty and not ours:
            raise SchemaError("the file is a database of another program; give the store a file of its own")
        for script in [whole or schema()] if empty else steps[version:]:
            for statement in _statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def _ours(connection: sqlite3.Connection) -> bool:
    marked: bool = connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    return marked


def _statements(script: str) -> list[str]:
    """Split a script; ``executescript`` would end the transaction."""
    found: list[str] = []
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            found.append(pending)
            pending = ""
    return found
