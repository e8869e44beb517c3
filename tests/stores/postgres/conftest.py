"""One database a test class, emptied for each test."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("psycopg")

from postgres_places import empty
from wakeful.stores.postgres import open_postgres
from wakeful.stores.postgres.store import PostgresStore


@pytest.fixture(scope="class")
def database(empty_database: str) -> str:
    """URL of a database of one's own, with the schema."""
    open_postgres(empty_database).close()
    return empty_database


@pytest.fixture
def url(database: str) -> str:
    """URL of a database with the schema and no rows."""
    empty(database)
    return database


@pytest.fixture
def open_store(url: str) -> Callable[..., PostgresStore]:
    """Open the same place each time."""
    return lambda **options: open_postgres(url, **options)
