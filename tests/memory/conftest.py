from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from wakeful import Memory, MemoryScope

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class Clock:
    """A clock that moves when told."""

    def __init__(self, at: datetime = START) -> None:
        self.at = at

    def __call__(self) -> datetime:
        return self.at

    def go(self, **distance: float) -> datetime:
        self.at += timedelta(**distance)
        return self.at


Opener = Callable[..., Memory]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def scope() -> MemoryScope:
    return MemoryScope.parse("org:acme/user:ana")


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of an empty place for memory, over each store."""
    if request.param == "memory":
        return "memory://"
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'memory.db'}"
    url: str = request.getfixturevalue("shared_database")
    from postgres_places import empty

    empty(url)
    return url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def lasting_place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of an empty place that outlives its process."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'memory.db'}"
    url: str = request.getfixturevalue("shared_database")
    from postgres_places import empty

    empty(url)
    return url


@pytest.fixture
def open_memory(place: str, clock: Clock) -> Iterator[Opener]:
    """Open a memory over each store; with the same options again, what lasts is opened again."""
    opened: list[Memory] = []

    def make(*, embedder: object = False, **options: object) -> Memory:
        memory = Memory.open(place, embedder=embedder, clock=clock, **options)  # type: ignore[arg-type]
        opened.append(memory)
        return memory

    yield make
    for memory in opened:
        memory.store.close()


@pytest.fixture
def memory(open_memory: Opener) -> Memory:
    return open_memory()
