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


@pytest.fixture(params=["memory", "sqlite"])
def open_memory(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Opener]:
    """Open a memory over each store; with the same options again, a file is opened again."""
    opened: list[Memory] = []

    def make(*, embedder: object = False, **options: object) -> Memory:
        url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'memory.db'}"
        memory = Memory.open(url, embedder=embedder, clock=clock, **options)  # type: ignore[arg-type]
        opened.append(memory)
        return memory

    make.kind = request.param  # type: ignore[attr-defined]
    yield make
    for memory in opened:
        memory.store.close()


@pytest.fixture
def memory(open_memory: Opener) -> Memory:
    return open_memory()
