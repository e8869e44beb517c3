"""Do other turns notice a nap? ``recall`` while the same scope is tended, beside ``recall`` with nothing going on.

Run: ``python bench/recall_during_nap.py`` (SQLite in a temporary folder; ``--url postgresql://...`` for an empty database).

One process recalls in a scope of 20,000 turns. Meanwhile quick naps run one behind another over 500 fresh turns each, in
another process, or in a thread of the same one. Idle and busy spells alternate, so that what else the machine does hits
both alike; a recall counts as busy when a nap ran at its beginning and at its end. Wall-clock milliseconds, and beside them
the CPU time of the recalling thread: what a recall itself does more while a nap runs, whatever else wants the processor. A
thread shares the interpreter's lock with the nap, so naps of a busy process belong into another one.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from common import save
from memories import START, Turns, nodes
from wakeful import Memory, MemoryScope
from wakeful.engine.worker import Tender
from wakeful.models.embed import StaticEmbedder
from wakeful.ops import PutNodes
from wakeful.stores import Store, open_store

SCOPE = MemoryScope.parse("org:acme/user:ana")
FRESH = 500
SIDE = 500
"""Rows written in one go."""


def fill(store: Store, texts: list[str]) -> None:
    embedder = StaticEmbedder()
    for first in range(0, len(texts), SIDE):
        store.execute((PutNodes(SCOPE, nodes(SCOPE, texts[first : first + SIDE], embedder, first)),))


@dataclass
class Count:
    """A number that threads of one process share."""

    value: int = 0


@dataclass
class Signals:
    """What the recalls and the naps tell each other."""

    wanted: Any
    """Set while naps are to run."""
    napping: Any
    """Set while the scope is being tended."""
    over: Any
    recalls: Any
    """Recalls made while naps were wanted."""
    naps: Any


def nap_on(url: str, signals: Signals, seed: int) -> None:
    """While it is wanted, write fresh turns, wait until recalls have met them, and tend the scope."""
    wanted, napping, over = signals.wanted, signals.napping, signals.over
    store = open_store(url)
    turns, embedder, tender = Turns(seed), StaticEmbedder(), Tender(store)
    at = START + timedelta(days=40)
    written = seed * 1_000_000
    while not over.is_set():
        if not wanted.wait(0.05):
            continue
        rows = nodes(SCOPE, [turns.text() for _ in range(FRESH)], embedder, written)
        written += FRESH
        at += timedelta(days=2)
        first = rows[0].asserted_at
        fresh = tuple(moved(row, at - timedelta(hours=10) + (row.asserted_at - first)) for row in rows)
        store.execute((PutNodes(SCOPE, fresh),))
        met = signals.recalls.value + 3  # it is the nap that is measured, not the reading of the fresh turns
        while signals.recalls.value < met and wanted.is_set():
            time.sleep(0.005)
        napping.set()
        report = tender.tend(SCOPE, "quick_nap", at=at)
        napping.clear()
        assert report.status == "done", report
        signals.naps.value += 1
    store.close()


def moved(row: Any, at: datetime) -> Any:
    from dataclasses import replace

    return replace(row, asserted_at=at, updated_at=at)


@contextmanager
def napper(url: str, where: str) -> Iterator[Signals]:
    """Something that naps on demand."""
    signals: Signals
    if where == "thread":
        signals = Signals(*(threading.Event() for _ in range(3)), Count(), Count())
        other: Any = threading.Thread(target=nap_on, args=(url, signals, 2))
    else:
        context = multiprocessing.get_context("spawn")
        signals = Signals(*(context.Event() for _ in range(3)), context.Value("i", 0), context.Value("i", 0))
        other = context.Process(target=nap_on, args=(url, signals, 3))
    other.start()
    try:
        yield signals
    finally:
        signals.over.set()
        other.join()


Time = tuple[float, float]
"""Milliseconds of one recall: on the wall, and of its thread's CPU."""


def spell(memory: Memory, ask: Callable[[], str], seconds: float, signals: Signals | None) -> list[Time]:
    """Recall for a while; with ``signals`` only what fell into a nap counts."""
    napping = signals.napping if signals is not None else None
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        question = ask()
        before = napping is None or napping.is_set()
        started, worked = time.perf_counter(), time.thread_time()
        memory.recall(SCOPE, question)
        spent = (time.perf_counter() - started) * 1_000, (time.thread_time() - worked) * 1_000
        if signals is not None:
            signals.recalls.value += 1
        if before and (napping is None or napping.is_set()):
            times.append(spent)
    return times


def measure(url: str, where: str, texts: list[str], spells: int, seconds: float) -> dict[str, Any]:
    rng, turns = random.Random(5), Turns(9)

    def ask() -> str:
        return turns.query(rng.choice(texts))

    idle: list[Time] = []
    busy: list[Time] = []
    with Memory.open(url, embedder="static") as memory, napper(url, where) as signals:
        spell(memory, ask, 2.0, None)
        for _ in range(spells):
            idle += spell(memory, ask, seconds, None)
            signals.wanted.set()
            busy += spell(memory, ask, seconds, signals)
            signals.wanted.clear()
            while signals.napping.is_set():
                time.sleep(0.01)
            time.sleep(0.2)
        count = signals.naps.value
    row: dict[str, Any] = {"naps": count, "idle_recalls": len(idle), "busy_recalls": len(busy)}
    for place, kind in ((0, ""), (1, "_cpu")):
        calm, tended = (sorted(each[place] for each in times) for times in (idle, busy))
        for share in (50, 95):
            at = share / 100
            row[f"idle_p{share}{kind}_ms"] = calm[int(len(calm) * at)]
            row[f"busy_p{share}{kind}_ms"] = tended[int(len(tended) * at)]
            row[f"ratio_p{share}{kind}"] = row[f"busy_p{share}{kind}_ms"] / row[f"idle_p{share}{kind}_ms"]
    return row


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--url", default=None)
    arguments.add_argument("--size", type=int, default=20_000)
    arguments.add_argument("--spells", type=int, default=6)
    arguments.add_argument("--seconds", type=float, default=4.0)
    options = arguments.parse_args()
    turns = Turns(1)
    texts = [turns.text() for _ in range(options.size)]
    with tempfile.TemporaryDirectory() as folder:
        url = options.url or f"sqlite:///{folder}/nap.db"
        store = open_store(url)
        fill(store, texts)
        store.close()
        found = {}
        for where in ("process", "thread"):
            found[where] = measure(url, where, texts, options.spells, options.seconds)
            print(where, {key: round(value, 2) for key, value in found[where].items()})
    kind = url.partition(":")[0]
    save(f"recall_during_nap_{kind}", {"rows": found}, inputs={"size": options.size, "fresh": FRESH})


if __name__ == "__main__":
    main()
