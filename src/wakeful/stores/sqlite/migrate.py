"""Bring a file to the schema: a fresh one gets ``schema.sql``, an earlier one every migration that it lacks.

The version stands in ``PRAGMA user_version``. A file that another store of ours made first gets the tables beside its own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from importlib.resources import files

from wakeful.errors import SchemaError
from wakeful.stores import sqlite_mark
from wakeful.stores.sql import load_scripts

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
    if _version(connection) == len(steps if steps is not None else migrations()) and sqlite_mark.is_marked(connection):
        return
    steps = steps if steps is not None else migrations()
    connection.execute("BEGIN IMMEDIATE")
    try:
        sqlite_mark.check(connection)
        version = _version(connection)
        if version > len(steps):
            raise SchemaError(
                f"the store's schema has version {version}, this version of Wakeful reads up to {len(steps)}; "
                "install the version that wrote it, or a later one"
            )
        for script in steps[version:] if version else [whole or schema()]:
            for statement in _statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        sqlite_mark.mark(connection)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


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
