"""A store that grows: no verb reads or writes more for it, and no scope costs a table or a file of its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from wakeful import Memory, MemoryLayer, MemoryScope, Turn

from .conftest import Clock, Opener

SMALL, LARGE = 40, 400


class Counted:
    """Counts what passes between a memory and its store: operations, and rows that come back."""

    def __init__(self, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ops = self.rows = 0
        execute = memory.store.execute

        def counting(ops: Sequence[Any]) -> tuple[Any, ...]:
            results = execute(ops)
            self.ops += len(ops)
            self.rows += sum(len(each) for each in results if isinstance(each, tuple))
            return results

        monkeypatch.setattr(type(memory.store), "execute", lambda store, ops: counting(ops))

    def of(self, call: Callable[[], object]) -> tuple[int, int]:
        self.ops = self.rows = 0
        call()
        return self.ops, self.rows


def fill(memory: Memory, scope: MemoryScope, first: int, last: int) -> None:
    turns = [
        Turn(f"common text about subject{n} and thing{n % 7}", speaker="Ana", session=f"s{n // 10}", ref=f"r{n}")
        for n in range(first, last)
    ]
    memory.remember(scope, turns, extract=False)


def test_the_work_of_a_verb_does_not_grow_with_the_scope(
    memory: Memory, scope: MemoryScope, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(memory, scope, 0, SMALL * 10)
    for number in range(5):
        memory.remind(scope, f"reminder {number}", event=f"event{number}")
    clock.go(minutes=1)  # What was written in the very instant of a cycle is looked at again by the next.
    memory.consolidate(scope, "quick_nap")
    clock.go(days=60)
    counted = Counted(memory, monkeypatch)
    verbs: dict[str, Callable[[], object]] = {
        "remember": lambda: memory.remember(scope, "Ana lives in Oslo", extract=False),
        "recall": lambda: memory.recall(scope, "common subject7", k=5),
        "due": lambda: memory.due(scope, event="event9"),
        "stats": lambda: memory.stats(scope),
        "nap": lambda: memory.consolidate(scope, "quick_nap"),
        "forget": lambda: memory.forget(scope, memory.remember(scope, "Ben likes tea", extract=False).ids[0]),
    }
    small = {name: counted.of(call) for name, call in verbs.items()}
    fill(memory, scope, SMALL * 10, SMALL * 10 + LARGE * 3)
    clock.go(minutes=1)
    memory.consolidate(scope, "quick_nap")
    clock.go(days=60)
    large = {name: counted.of(call) for name, call in verbs.items()}
    for name in verbs:
        assert large[name][0] <= small[name][0] + 4, (name, small[name], large[name])
        assert large[name][1] <= small[name][1] * 1.5 + 40, (name, small[name], large[name])
    ops, rows = counted.of(lambda: memory.erase(scope))
    assert ops <= 3
    assert rows <= 2


def test_a_small_scope_beside_a_large_one_is_served_as_if_it_stood_alone(
    open_memory: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = open_memory()
    small, large = MemoryScope.parse("org:acme/user:small"), MemoryScope.parse("org:acme/user:large")
    fill(memory, small, 0, 3)
    counted = Counted(memory, monkeypatch)
    alone = memory.recall(small, "common subject1", k=3)
    before = counted.of(lambda: memory.recall(small, "common subject1", k=3))
    fill(memory, large, 0, LARGE)
    assert counted.of(lambda: memory.recall(small, "common subject1", k=3)) == before
    beside = memory.recall(small, "common subject1", k=3)
    assert [hit.node.id for hit in beside.hits] == [hit.node.id for hit in alone.hits]


@pytest.fixture
def lasting(lasting_place: str) -> Iterator[Memory]:
    with Memory.open(lasting_place, embedder=False) as memory:
        yield memory


def objects(memory: Memory, folder: Path) -> list[str]:
    """Names of tables and indexes, and of files, that the store has."""
    if memory.store.kind == "sqlite":
        with closing(sqlite3.connect(folder / "memory.db")) as connection:
            names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
        return sorted([*names, *(path.name for path in folder.iterdir())])
    import psycopg

    with psycopg.connect(memory.store.url) as connection:  # type: ignore[attr-defined]
        rows = connection.execute("SELECT relname FROM pg_class WHERE relnamespace = 'wakeful'::regnamespace")
        return sorted(name for (name,) in rows)


def test_a_scope_costs_no_table_no_index_and_no_file(lasting: Memory, tmp_path: Path) -> None:
    lasting.remember(MemoryScope.parse("org:acme/user:first"), "likes tea", extract=False)
    before = objects(lasting, tmp_path)
    for number in range(120):
        scope = MemoryScope.parse(f"org:o{number}/user:u")
        lasting.remember(scope, [Turn("likes tea", ref="a"), Turn("likes coffee", ref="b")], extract=False)
        lasting.note(scope, "scratch")
    assert objects(lasting, tmp_path) == before
    assert [hit.node.ref for hit in lasting.recall(scope, "tea", k=1, layers=(MemoryLayer.EPISODIC,))] == ["a"]
