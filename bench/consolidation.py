"""How the cost of tending grows: with what is recent, or with the graph?

Run: ``python bench/consolidation.py`` (about two minutes, SQLite in a temporary folder; ``--quick`` for small graphs only).

Each figure is process CPU time of one cycle over one scope. The peer's figures in ``RESULTS.md`` are those published for
symfonic-core 9.12 on two shared cores (its package can't be installed beside this one).
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from common import save
from wakeful.consolidation.phase import Cycle
from wakeful.consolidation.phases.cooccurrence import cooccurrence
from wakeful.consolidation.phases.merge import merge
from wakeful.consolidation.settings import TendingSettings
from wakeful.engine.drive import drive
from wakeful.engine.worker import Tender
from wakeful.ops import PutEdges, PutNodes, Touch
from wakeful.records import MemoryEdge, MemoryNode, MemoryScope, Source
from wakeful.stores import Store, open_store

SCOPE = MemoryScope.parse("org:acme/user:ana")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
WORDS = "river stone light garden window letter morning coffee train music paper bridge winter market harbour".split()


def text(rng: random.Random) -> str:
    return f"Note {rng.randrange(10**6)} about the {' '.join(rng.choices(WORDS, k=8))}"


def nodes(
    count: int, rng: random.Random, *, newest_hours: float, oldest_hours: float, tag: str
) -> Iterator[MemoryNode]:
    for i in range(count):
        at = NOW - timedelta(hours=rng.uniform(newest_hours, oldest_hours))
        layer = "episodic" if i % 3 else "semantic"
        source = Source(session=f"s{tag}{i // 50}")
        yield MemoryNode.new(id=f"{tag}{i}", scope=SCOPE, layer=layer, content=text(rng), at=at, source=source)


def fill(store: Store, rows: Iterator[MemoryNode], size: int = 2_000) -> None:
    batch: list[MemoryNode] = []
    for row in rows:
        batch.append(row)
        if len(batch) == size:
            store.execute((PutNodes(SCOPE, tuple(batch)),))
            batch = []
    if batch:
        store.execute((PutNodes(SCOPE, tuple(batch)),))


def cpu(action: Any) -> tuple[float, Any]:
    start = time.process_time()
    value = action()
    return time.process_time() - start, value


def nap(graph: int, recent: int = 500) -> dict[str, float]:
    """A quick nap with so many recent nodes in a graph of so many: median of five over fresh copies of the window."""
    rng = random.Random(graph)
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{folder}/nap.db")
        fill(store, nodes(graph, rng, newest_hours=48, oldest_hours=24 * 20, tag="o"))
        spent = []
        for run in range(5):
            at = NOW + timedelta(days=2 * run)
            shifted = (
                MemoryNode.new(
                    id=f"r{run}-{i}", scope=SCOPE, layer="semantic" if i % 2 else "episodic", content=text(rng),
                    at=at - timedelta(hours=rng.uniform(0, 20)), source=Source(session=f"r{run}-{i // 20}"),
                )
                for i in range(recent)
            )  # fmt: skip
            fill(store, shifted)
            seconds, report = cpu(lambda at=at: Tender(store).tend(SCOPE, "quick_nap", at=at))
            assert report.status == "done", report
            spent.append(seconds)
        store.close()
    return {"graph": graph, "recent": recent, "seconds": sorted(spent)[2]}


def full(graph: int, edges: int, touched: float) -> dict[str, float]:
    """A deep sleep over a graph of which a share was touched since the last one."""
    rng = random.Random(graph)
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{folder}/full.db")
        fill(store, nodes(graph, rng, newest_hours=30, oldest_hours=24 * 20, tag="o"))
        ids = [f"o{i}" for i in range(graph)]
        rows = [
            MemoryEdge.new(scope=SCOPE, source_id=rng.choice(ids), target_id=rng.choice(ids), at=NOW)
            for _ in range(edges)
        ]
        for at in range(0, len(rows), 2_000):
            store.execute((PutEdges(SCOPE, tuple(rows[at : at + 2_000])),))
        Tender(store).tend(SCOPE, "deep_sleep", at=NOW - timedelta(hours=25))
        count = int(graph * touched)
        fill(store, nodes(count, rng, newest_hours=0, oldest_hours=20, tag="n"))
        store.execute((Touch(SCOPE, tuple(rng.sample(ids, count)), NOW - timedelta(hours=1)),))
        seconds, report = cpu(lambda: Tender(store).tend(SCOPE, "deep_sleep", at=NOW))
        assert report.status == "done", report
        store.close()
    phases = {phase.name: round(phase.milliseconds, 1) for phase in report.phases}
    return {"graph": graph, "edges": edges, "touched": count, "seconds": seconds, "changed": report.changed, **phases}


def burst(count: int) -> dict[str, float]:
    """Co-occurrence in a burst of nodes asserted together: the phase and its writes."""
    rows = tuple(
        MemoryNode.new(id=f"b{i}", scope=SCOPE, layer="semantic", content=f"b {i}", at=NOW, source=Source(session="s"))
        for i in range(count)
    )
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{folder}/burst.db")
        store.execute((PutNodes(SCOPE, rows),))
        cycle = Cycle(scope=SCOPE, cadence="quick_nap", started_at=NOW, since=NOW, first=True, recent=rows)

        def run() -> None:
            outcome = drive(cooccurrence(cycle), lambda need: store.execute(need.ops))
            for batch in outcome.batches:
                store.execute(batch)

        seconds, _ = cpu(run)
        store.close()
    return {"nodes": count, "seconds": seconds}


def duplicates(count: int) -> dict[str, float]:
    """The merge scan over near-duplicates: a tenth as many facts, each said ten times in other words' order."""
    rng = random.Random(7)
    facts = [text(rng) for _ in range(max(1, count // 10))]
    rows = tuple(
        MemoryNode.new(
            id=f"d{i}", scope=SCOPE, layer="semantic", content=facts[i % len(facts)] + "." * (i % 3),
            at=NOW - timedelta(minutes=i / 60),
        )
        for i in range(count)
    )  # fmt: skip
    settings = TendingSettings(window_limit=10_000)
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{folder}/merge.db")
        store.execute((PutNodes(SCOPE, rows),))
        cycle = Cycle(scope=SCOPE, cadence="nightly", started_at=NOW, since=NOW, recent=rows, settings=settings)
        seconds, outcome = cpu(lambda: drive(merge(cycle), lambda need: store.execute(need.ops)))
        store.close()
    return {"nodes": count, "seconds": seconds, "changed": outcome.changed}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true")
    quick = arguments.parse_args().quick
    sizes = (2_000, 20_000) if quick else (10_000, 500_000)
    figures = {
        "quick_nap": [nap(size) for size in sizes],
        "full_cycle": [full(10_000, 20_000, 0.05)] + ([] if quick else [full(50_000, 100_000, 0.05)]),
        "burst": [burst(count) for count in (1_000, 2_000, 4_000)],
        "merge": [duplicates(count) for count in (1_250, 2_500, 5_000)],
    }
    for name, rows in figures.items():
        for row in rows:
            print(name, {key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()})
    save("consolidation", figures, inputs={"seed": "graph size", "sizes": sizes})


if __name__ == "__main__":
    main()
