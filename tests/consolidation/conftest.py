"""A scope with memories, and the driver that runs cycles over a store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tending_world import World

from wakeful.stores import open_store


@pytest.fixture(params=["memory", "sqlite"])
def world(request, tmp_path) -> Iterator[World]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/world.db"
    store = open_store(url)
    yield World(store)
    store.close()
