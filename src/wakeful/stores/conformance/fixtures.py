"""Builders and fixtures that the promises share."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck

from wakeful.ops import Visibility
from wakeful.records import MemoryEdge, MemoryLayer, MemoryNode, MemoryScope
from wakeful.stores.protocol import Store

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
"""The instant from which the promises count."""
LATER = START + timedelta(days=365)
MODEL = "test/model"
EVERYTHING = Visibility(at=START, statuses=("active", "draft", "retracted"), superseded=True, expired=True)

SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.differing_executors]
"""Not asked by the properties: one store serves every example, and several classes inherit one promise."""

Opener = Callable[..., Store]


def hour(count: float) -> datetime:
    """The instant some hours after the start."""
    return START + timedelta(hours=count)


def scope(path: str) -> MemoryScope:
    """Read a scope."""
    return MemoryScope.parse(path)


ANA = scope("org:acme/user:ana")
BOB = scope("org:acme/user:bob")
ACME = scope("org:acme")
ANA_TODAY = scope("org:acme/user:ana/session:today")


def node(owner: MemoryScope, name: str, content: str = "", **values: Any) -> MemoryNode:
    """Make a node; its id is the name."""
    values.setdefault("layer", MemoryLayer.SEMANTIC)
    values.setdefault("at", START)
    return MemoryNode.new(scope=owner, id=name, content=content or name, **values)


def edge(owner: MemoryScope, source: str, target: str, **values: Any) -> MemoryEdge:
    """Make an edge."""
    values.setdefault("at", START)
    return MemoryEdge.new(scope=owner, source_id=source, target_id=target, **values)


def vector(*values: float) -> bytes:
    """Make a vector of four dimensions."""
    return struct.pack("<4f", *values, *(0.0,) * (4 - len(values)))


def now_visible(**values: Any) -> Visibility:
    """What a reader at the start may see."""
    return Visibility(**{"at": START, **values})


def ids(found: Any) -> list[str]:
    """Ids of nodes, hits or edges, in order."""
    return [getattr(each, "node", each).id for each in found]


class Fixtures:
    """The fixtures of the contract; ``open_store`` comes from the subclass."""

    persistent = True
    """Whether what was written is there when the store is opened again."""

    @pytest.fixture
    def store(self, open_store: Opener) -> Iterator[Store]:
        opened = open_store()
        yield opened
        opened.close()
