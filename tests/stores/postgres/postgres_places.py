"""Helpers of the PostgreSQL tests: another database or role of a server, and emptying one."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

import psycopg


def on_database(url: str, name: str) -> str:
    """The same server, another database."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def as_role(url: str, role: str) -> str:
    """The same database, another role, whose password is its name."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{role}:{role}@{host}"))


def empty(url: str) -> None:
    """Delete every row but the schema's version."""
    with psycopg.connect(url) as connection:
        connection.execute(
            "TRUNCATE wakeful.scopes, wakeful.nodes, wakeful.words, wakeful.models, wakeful.vectors, wakeful.edges, "
            "wakeful.history, wakeful.states, wakeful.leases, wakeful.tombstones"
        )
        connection.execute("DELETE FROM wakeful.settings WHERE key <> 'schema'")
