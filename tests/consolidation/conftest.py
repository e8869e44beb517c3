"""A scope with memories, and the driver that runs cycles over a store."""

from __future__ import annotations

import pytest
from tending_world import World


@pytest.fixture
def world() -> World:
    return World()
