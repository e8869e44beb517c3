"""Helpers of tests over PostgreSQL: another database or role of a server, and emptying one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg

TABLES = ("scopes", "nodes", "words", "models", "vectors", "edges", "history", "states", "leases", "tombstones")


def on_database(url: str, name: str) -> str:
    """The same server, another database."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def as_role(url: str, role: str) -> str:
    """The same database, another role, whose password is its name."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{role}:{role}@{host}"))


@contextmanager
def database_of_its_own(server: str, name: str) -> Iterator[str]:
    """Create a database, give its URL, drop it."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
        yield on_database(server, name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def empty(url: str) -> None:
    """Delete every row but the schema's version. Few rows are deleted in less time than files are cut to nothing."""
    with psycopg.connect(url) as connection:
        connection.execute("SET session_replication_role = replica; SET row_security = off")
        for table in TABLES:
            connection.execute(f"DELETE FROM wakeful.{table}")
        connection.execute("DELETE FROM wakeful.settings WHERE key <> 'schema'")
