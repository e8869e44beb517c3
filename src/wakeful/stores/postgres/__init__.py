"""Memory in PostgreSQL: ``open_postgres(url)``, ``grant(url, role)`` for a plain role. Needs the extra ``postgres``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakeful.errors import MissingExtra
from wakeful.stores.protocol import EmbeddingSpace

if TYPE_CHECKING:
    from wakeful.stores.postgres.store import PostgresStore

__all__ = ["grant", "open_postgres"]


def open_postgres(
    url: str, *, embedding: EmbeddingSpace | None = None, adopt: bool = False, pool_size: int = 8
) -> PostgresStore:
    """Open the store in a PostgreSQL database, making or upgrading its schema when the role may.

    Raises ``MissingExtra`` without the extra ``postgres``; ``EmbeddingMismatch``, ``SchemaError``, ``StoreError``.
    """
    _driver()
    from wakeful.stores.postgres.store import PostgresStore

    return PostgresStore(url, embedding=embedding, adopt=adopt, pool_size=pool_size)


def grant(url: str, role: str) -> None:
    """Let a plain role use the store: rows as row-level security allows, nothing else.

    ``url`` names a role that owns the schema, or may make it. Raises ``StoreError`` when it may not.
    """
    _driver()
    from wakeful.stores.postgres import migrate

    migrate.grant(url, role)


def _driver() -> None:
    try:
        import psycopg  # noqa: F401
        import psycopg_pool  # noqa: F401
    except ImportError as error:
        raise MissingExtra("postgres", needed_for="a store in PostgreSQL") from error
