"""The in-memory store keeps every promise of a store."""

from __future__ import annotations

import asyncio

import pytest

from wakeful import ops as op
from wakeful.records import MemoryScope
from wakeful.stores import Store, open_store
from wakeful.stores.conformance import StoreContract
from wakeful.stores.conformance.fixtures import Opener
from wakeful.stores.inmemory import InMemoryStore


class TestInMemoryStore(StoreContract):
    persistent = False

    @pytest.fixture
    def open_store(self) -> Opener:
        return lambda **options: InMemoryStore(embedding=options.get("embedding"))


def test_the_url_opens_a_store_that_answers_the_protocol_sync_and_async() -> None:
    store = open_store("memory://", model_id="m", dimensions=4)
    assert isinstance(store, Store)
    scope = MemoryScope.parse("org:acme")
    assert asyncio.run(store.aexecute((op.PutState(scope, "k", 1), op.GetState(scope, "k")))) == (None, 1)
    asyncio.run(store.aclose())
