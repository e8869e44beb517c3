"""PostgreSQL keeps every promise of a store."""

from __future__ import annotations

import pytest

from wakeful.stores.conformance import StoreContract

pytestmark = pytest.mark.postgres


class TestPostgresStore(StoreContract):
    persistent = True
