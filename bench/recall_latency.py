"""Measure what a recall costs, end to end, in one SQLite scope of growing size: encode, search, rank.

    python bench/recall_latency.py --data FOLDER [--sizes 1000,10000,50000,200000]

Rows are LoCoMo's turns, a third of the words of each exchanged beyond the first pass; questions are LoCoMo's. Static
embedder, warm, CPU milliseconds of 300 questions; ``remember`` in batches of 2,000 turns without extraction.

Words are scored in all rows that hold any of them. Vectors are found by codes, so ``same hits`` tells what that costs: of
the ten hits of each of a hundred questions, the share that comes too when every vector is compared in full.
"""

from __future__ import annotations

import random
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import common
import locomo
from wakeful import Memory, MemoryScope, Turn
from wakeful.stores.sidecar import vectors

START = datetime(2023, 1, 1, tzinfo=UTC)
BATCH = 2000
ASKED_AGAIN = 100
"""Questions whose hits are held against those of an exhaustive search."""


def turns(talks: list[locomo.Talk], count: int) -> list[Turn]:
    """Make ``count`` turns in sessions of twenty."""
    rng = random.Random(1)
    base = [turn for talk in talks for turn in talk.turns]
    vocabulary = [word for turn in base for word in turn.text.split()]
    made = []
    for number in range(count):
        turn = base[number % len(base)]
        words = turn.text.split()
        for _ in range(len(words) // 3 if number >= len(base) else 0):
            words[rng.randrange(len(words))] = rng.choice(vocabulary)
        at, session = START + timedelta(minutes=number), f"s{number // 20}"
        made.append(Turn(" ".join(words), speaker=turn.speaker, at=at, session=session, ref=str(number)))
    return made


def exhaustive(path: Path, scope: MemoryScope, questions: list[str]) -> list[set[str]]:
    """The hits of each question when every vector is compared in full."""
    held, vectors.EXACT_BELOW = vectors.EXACT_BELOW, 1 << 60
    try:
        with Memory.open(f"sqlite:///{path}", embedder="static") as memory:
            return [{hit.node.id for hit in memory.recall(scope, question).hits} for question in questions]
    finally:
        vectors.EXACT_BELOW = held


def measure(talks: list[locomo.Talk], size: int, folder: Path) -> dict[str, Any]:
    """Fill one scope and ask it."""
    questions = [question.text for talk in talks for question in talk.questions]
    random.Random(2).shuffle(questions)
    path = folder / f"recall-{size}.db"
    rows = turns(talks, size)
    with Memory.open(f"sqlite:///{path}", embedder="static") as memory:
        scope = MemoryScope.of(("user", "ana"))
        memory.remember(scope.child("session", "warm"), rows[:10], extract=False)
        started = time.process_time()
        for first in range(0, size, BATCH):
            memory.remember(scope, rows[first : first + BATCH], extract=False)
        spent = time.process_time() - started
        for question in questions[:100]:
            memory.recall(scope, question)
        found = [{hit.node.id for hit in memory.recall(scope, question).hits} for question in questions[:ASKED_AGAIN]]
        times = []
        for question in questions[100:400]:
            begun = time.process_time()
            memory.recall(scope, question)
            times.append(1000 * (time.process_time() - begun))
    times.sort()
    exact = exhaustive(path, scope, questions[:ASKED_AGAIN])
    return {
        "p50 ms": round(times[len(times) // 2], 2),
        "p95 ms": round(times[int(len(times) * 0.95)], 2),
        "same hits": round(sum(len(a & b) for a, b in zip(found, exact, strict=True)) / sum(map(len, exact)), 4),
        "remember turns per CPU second": round(size / spent),
        "bytes a node": round(sum(each.stat().st_size for each in folder.glob(f"{path.name}*")) / size),
    }


def main() -> None:
    """Run and save."""
    parser = common.parse(__doc__)
    parser.add_argument("--sizes", default="1000,10000,50000,200000")
    options = parser.parse_args()
    talks = locomo.locomo(options.data)
    result = {}
    with tempfile.TemporaryDirectory() as folder:
        for size in map(int, options.sizes.split(",")):
            result[str(size)] = measure(talks, size, Path(folder))
            print(size, result[str(size)], flush=True)
    common.save("recall_latency", result, inputs=[len(talks), options.sizes], out=options.out)


if __name__ == "__main__":
    main()
