"""The cost of a nap follows what is recent: counted in operations, rows and steps of SQLite, not in seconds."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from types import SimpleNamespace

import pytest
from tending_world import ANA, NOW, World, memory

from wakeful.engine.recent import MemoryGraph, RecentSemanticNodes
from wakeful.ops import PutEdges, PutNodes, Touch
from wakeful.records import MemoryEdge
from wakeful.stores import open_store

STEPS = 10
"""SQLite calls back after so many of its instructions."""


class Counted:
    """A store whose work is counted."""

    def __init__(self, folder, old):
        self.store = open_store(f"sqlite:///{folder}/graph{old}.db")
        self._fill(old)
        self.counts = Counter()
        execute, pool = self.store.execute, self.store._pool
        opener = pool._opener

        def opened():
            connection = opener()
            connection.set_progress_handler(self._step, STEPS)
            return connection

        def counting(ops):
            results = execute(ops)
            self.counts.update(type(each).__name__ for each in ops)
            self.counts["rows"] += sum(len(result) for result in results if isinstance(result, tuple))
            return results

        pool._opener = opened
        pool._close_idle()
        pool._start()
        self.store.execute = counting

    def _step(self):
        self.counts["steps"] += STEPS

    def _fill(self, old):
        rows = [
            memory(f"o{i}", f"Old note {i} of Clara Jensen", hours=30 + i / 100, session=f"s{i // 20}",
                   layer=("semantic", "episodic")[i % 2])
            for i in range(old)
        ]  # fmt: skip
        recent = [
            memory(f"r{i}", f"Fresh note {i} of Clara Jensen", hours=1 + i / 100, session=f"r{i // 20}",
                   layer=("semantic", "episodic")[i % 2])
            for i in range(100)
        ]  # fmt: skip
        self.store.execute((PutNodes(ANA, tuple(rows + recent)),))
        edges = [
            MemoryEdge.new(scope=ANA, source_id=f"o{i}", target_id=f"o{i * 7 % old}", at=NOW - timedelta(hours=30))
            for i in range(old)
        ]
        self.store.execute((PutEdges(ANA, tuple(edges)), Touch(ANA, ("r1", "r2"), NOW - timedelta(minutes=9))))


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    made = [Counted(tmp_path_factory.mktemp("growth"), old) for old in (400, 6_000)]
    yield made
    for each in made:
        each.store.close()


def test_a_nap_in_a_large_graph_does_what_one_in_a_small_graph_does(graphs):
    found = []
    for each in graphs:
        each.counts.clear()
        report = World(each.store).tend("quick_nap")
        assert report.changed > 100
        found.append((report.rows_read, report.changed, dict(each.counts)))
    (small_read, small_changed, small), (large_read, large_changed, large) = found
    assert (small_read, small_changed) == (large_read, large_changed)
    assert small["steps"] > 100 * STEPS
    assert small.pop("steps") == pytest.approx(large.pop("steps"), rel=0.05)
    assert small == large


def test_a_window_of_recent_nodes_is_read_as_a_range_whatever_lies_outside(graphs):
    found = []
    for each in graphs:
        each.counts.clear()
        recent = RecentSemanticNodes(MemoryGraph(each.store))
        window = asyncio.run(recent.for_cycle(SimpleNamespace(scope=ANA, started_at=NOW)))
        found.append((len(window), each.counts["rows"], each.counts["steps"]))
    (small_window, small_rows, small_steps), (large_window, large_rows, large_steps) = found
    assert small_rows >= 50
    assert small_steps > 10 * STEPS
    assert small_window == large_window == 50
    assert small_rows == large_rows
    assert large_steps <= 1.05 * small_steps + 2 * STEPS


def test_a_burst_is_linked_in_edges_that_grow_with_its_nodes(tmp_path):
    changed = []
    for count in (200, 2_000):
        world = World()
        world.store.execute((PutNodes(ANA, tuple(memory(f"b{i}", session="s") for i in range(count))),))
        changed.append(world.phase("cooccurrence", cadence="quick_nap").changed / count)
    assert changed[1] == pytest.approx(changed[0], rel=0.02)
