"""How long erasing one user takes in SQLite, and how often what was erased is found in the files of the store after it.

    python bench/store_erase.py --nodes 20000 --others 80000

Every node of the user holds a word of its own; after ``Erase`` each byte of every file (database, log, shared memory) is
searched for those words and for the user's name.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from common import parse, save
from memories import START, Turns, batches, nodes
from wakeful import ops as op
from wakeful.models.embed import StaticEmbedder
from wakeful.records import MemoryScope
from wakeful.stores.sqlite import SqliteStore

ERASED = MemoryScope.parse("org:acme/user:personerased")
KEPT = MemoryScope.parse("org:acme/user:bob")
NEEDLE = re.compile(rb"zqneedle\d+|personerased")


def run(folder: Path, count: int, others: int) -> dict[str, Any]:
    """Write, erase, and search the files."""
    turns, embedder = Turns(), StaticEmbedder()
    store = SqliteStore(str(folder / "store.db"))
    for scope, total in ((KEPT, others), (ERASED, count)):
        for first, size in batches(total, 2_000):
            mark = "zqneedle" if scope is ERASED else "kept"
            texts = [f"{turns.text()} {mark}{number}" for number in range(first, first + size)]
            made = nodes(scope, texts, embedder, first)
            store.execute((op.PutNodes(scope, made), op.Log(scope, (op.Change(node=made[0], action="add", at=START),))))
    before = sum(len(NEEDLE.findall(file.read_bytes())) for file in folder.iterdir())
    begun = time.perf_counter()
    (receipt,) = store.execute((op.Erase(ERASED, START + timedelta(days=400)),))
    seconds = time.perf_counter() - begun
    after = sum(len(NEEDLE.findall(file.read_bytes())) for file in folder.iterdir())
    (kept,) = store.execute((op.Stats(KEPT),))
    store.close()
    return {
        "hits before": before,
        "hits after": after,
        "seconds": round(seconds, 2),
        "receipt": receipt,
        "kept nodes": kept["nodes"],
    }


def main() -> None:
    """Run and save."""
    parser = parse(__doc__)
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--others", type=int, default=80_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = run(Path(folder), given.nodes, given.others)
    print(result, file=sys.stderr)
    print(save("store_erase", result, inputs=[given.nodes, given.others], out=given.out))


if __name__ == "__main__":
    main()
