"""Sessions in a real PostgreSQL."""

import psycopg
import pytest

from wakeful.stores.sessions.conformance import SessionStoreContract
from wakeful.stores.sessions.postgres import PostgresSessions

pytestmark = pytest.mark.postgres


class TestPostgres(SessionStoreContract):
    @pytest.fixture
    def open_store(self, empty_database):
        with psycopg.connect(empty_database) as connection:
            connection.execute("DROP TABLE IF EXISTS wakeful_sessions CASCADE")
            connection.execute("DROP TABLE IF EXISTS wakeful_session_entries, wakeful_session_compactions")
        return lambda: PostgresSessions(empty_database)
