"""The SQLite store keeps every promise of a store, in memory and in the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from wakeful.stores.conformance import StoreContract
from wakeful.stores.conformance.fixtures import Opener
from wakeful.stores.sqlite import SqliteStore


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Opener:
        return lambda **options: SqliteStore(str(tmp_path / "store.db"), **options)


class TestSqliteStoreSearchedInTheFile(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Opener:
        return lambda **options: SqliteStore(str(tmp_path / "store.db"), sidecar_bytes=0, **options)
