"""How many turns a second are remembered in SQLite as the store grows, and what they take on disk.

    python bench/store_ingest.py --turns 200000
    python bench/store_ingest.py --turns 1000000 --verb store

``--verb remember`` is ``Memory.remember`` of raw turns in batches without extraction (scrubbed, with vectors of the light
embedder); ``--verb store`` is the store's part of it alone, words and vectors indexed, and leaves the embedder's time out.
Turns a second by wall and by CPU time, of each tenth of the run: a store that slows as it grows shows it. ``disk ratio``
is the bytes of all files of the store over those of the texts and of the vectors as stored (float16).
"""

from __future__ import annotations

import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from common import parse, save
from memories import START, Turns, nodes
from wakeful import Memory, Turn
from wakeful import ops as op
from wakeful.models.embed import StaticEmbedder
from wakeful.records import MemoryScope
from wakeful.stores.sqlite import SqliteStore

SCOPE = MemoryScope.parse("org:acme/user:ana")


def remember(memory: Memory, texts: list[str], first: int) -> None:
    """Remember a batch of turns."""
    turns = [
        Turn(text, speaker="Ana", at=START + timedelta(minutes=number), session=f"s{number // 50}", ref=f"D{number}")
        for number, text in enumerate(texts, first)
    ]
    memory.remember(SCOPE, turns, extract=False)


def run(folder: Path, count: int, batch: int, verb: str) -> dict[str, Any]:
    """Write every turn; give the speed of each tenth and the size."""
    path = folder / "store.db"
    embedder = StaticEmbedder()
    turns = Turns()
    embedder.embed(("warm",), "document")
    memory = Memory.open(f"sqlite:///{path}", embedder=embedder) if verb == "remember" else None
    store = SqliteStore(str(path)) if verb == "store" else None
    tenths: list[dict[str, int]] = []
    wall = cpu = 0.0
    text_bytes = done = 0
    for first in range(0, count, batch):
        texts = [turns.text() for _ in range(min(batch, count - first))]
        text_bytes += sum(len(text) for text in texts)
        put = None if store is None else op.PutNodes(SCOPE, nodes(SCOPE, texts, embedder, first))
        begun, used = time.perf_counter(), time.process_time()
        if memory is not None:
            remember(memory, texts, first)
        elif store is not None and put is not None:
            store.execute((put,))
        wall, cpu, done = wall + time.perf_counter() - begun, cpu + time.process_time() - used, done + len(texts)
        if first + batch >= count * (len(tenths) + 1) / 10:
            tenths.append({"turns a second": round(done / wall), "by CPU": round(done / cpu)})
            wall = cpu = 0.0
            done = 0
    for opened in (memory, store):
        if opened is not None:
            opened.close()
    size = sum(file.stat().st_size for file in folder.iterdir())
    whole = text_bytes + 2 * embedder.dimensions * count
    return {"tenths": tenths, "bytes a node": round(size / count), "disk ratio": round(size / whole, 2)}


def main() -> None:
    """Run and save."""
    parser = parse(__doc__)
    parser.add_argument("--turns", type=int, default=200_000)
    parser.add_argument("--batch", type=int, default=1_000)
    parser.add_argument("--verb", choices=("remember", "store"), default="remember")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = run(Path(folder), given.turns, given.batch, given.verb)
    print(result, file=sys.stderr)
    print(save(f"store_ingest_{given.verb}", result, inputs=[given.turns, given.batch], out=given.out))


if __name__ == "__main__":
    main()
