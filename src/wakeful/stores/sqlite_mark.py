"""Whose a SQLite file is: every store of ours marks its file, and leaves one of another program as it is.

Memory, sessions and the archive may share a file, whichever of them made it.
"""

from __future__ import annotations

import sqlite3

from wakeful.errors import SchemaError

APPLICATION_ID = 0x57616B65
"""The bytes ``Wake``, in the header field that SQLite keeps for this.

Source: https://www.sqlite.org/pragma.html#pragma_application_id.
"""

_OURS = frozenset(("archive_meta", "session_meta"))
"""Tables by which a file that was made without the mark is known."""


def check(connection: sqlite3.Connection) -> None:
    """Raise ``SchemaError`` for the file of another program. Reads alone; to be called before any setting is made."""
    if is_marked(connection):
        return
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if tables and not tables & _OURS:
        raise SchemaError("the file is a database of another program; give the store a file of its own")


def is_marked(connection: sqlite3.Connection) -> bool:
    """Whether the file bears the mark."""
    marked: bool = connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    return marked


def mark(connection: sqlite3.Connection) -> None:
    """Mark the file as ours, in the transaction that is open."""
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
