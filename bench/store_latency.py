"""How long a recall takes in SQLite as one scope grows, and in one of many small scopes.

    python bench/store_latency.py --sizes 1000 10000 50000 200000 --scopes 5000

CPU milliseconds of this process, warm: ``recall`` is ``Memory.recall`` whole, the query's vector included; ``search`` is
the store's part of it, words and vectors, 50 hits each. ``in the file`` is the same search without memory: SQLite's own
full-text index and a scan of the vectors. ``vector recall`` is the share of the exact first ten among the first ten found
by codes. Turns and queries are generated (``memories``). ``alone`` is one scope in a store of its own, ``among`` the same
scope among many, each asked of a different scope.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from common import parse, save
from memories import START, VISIBLE, Turns, batches, nodes
from wakeful import Memory
from wakeful import ops as op
from wakeful.models.embed import StaticEmbedder
from wakeful.records import MemoryScope
from wakeful.stores.sqlite import SqliteStore
from wakeful.terms import query_terms

ONE = MemoryScope.parse("org:acme/user:ana")
QUERIES = 200


def spread(call: Callable[[Any], Any], given: Iterable[Any]) -> dict[str, float]:
    """CPU milliseconds of a call: median and 95th percentile."""
    taken = []
    for each in given:
        begun = time.process_time()
        call(each)
        taken.append((time.process_time() - begun) * 1000)
    taken.sort()
    return {"p50": round(taken[len(taken) // 2], 2), "p95": round(taken[int(len(taken) * 0.95)], 2)}


def fill(store: SqliteStore, scope: MemoryScope, texts: list[str], embedder: StaticEmbedder) -> None:
    """Write turns."""
    for first, size in batches(len(texts), 2_000):
        store.execute((op.PutNodes(scope, nodes(scope, texts[first : first + size], embedder, first)),))


def searches(scope: MemoryScope, query: str, embedder: StaticEmbedder, limit: int = 50) -> tuple[op.MemoryOp, ...]:
    """The searches of one recall."""
    (vector,) = embedder.embed((query,), "query")
    near = op.SearchVector(scope=scope, vector=vector, model=embedder.model_id, visibility=VISIBLE, limit=limit)
    return op.SearchText(scope=scope, terms=tuple(query_terms(query)), visibility=VISIBLE, limit=limit), near


def one_scope(path: Path, size: int, embedder: StaticEmbedder) -> dict[str, Any]:
    """Time recall in one scope of a size."""
    turns = Turns()
    texts = [turns.text() for _ in range(size)]
    store = SqliteStore(str(path))
    fill(store, ONE, texts, embedder)
    queries = [turns.query(turns.rng.choice(texts)) for _ in range(QUERIES)]
    begun = time.perf_counter()
    store.execute(searches(ONE, queries[0], embedder))
    cold = time.perf_counter() - begun
    in_file = SqliteStore(str(path), sidecar_bytes=0)
    agreed = 0
    for query in queries[:20]:
        found = [each.execute(searches(ONE, query, embedder, 10))[1] for each in (store, in_file)]
        agreed += len({hit.node.id for hit in found[0]} & {hit.node.id for hit in found[1]})
    result = {
        "search": spread(lambda query: store.execute(searches(ONE, query, embedder)), queries),
        "search in the file": spread(lambda query: in_file.execute(searches(ONE, query, embedder)), queries[:20]),
        "vector recall": agreed / 200,
        "cold seconds": round(cold, 2),
    }
    store.close()
    in_file.close()
    with Memory.open(f"sqlite:///{path}", embedder=embedder) as memory:
        memory.recall(ONE, queries[0])
        result["recall"] = spread(lambda query: memory.recall(ONE, query), queries[1:])
    return result


def many_scopes(folder: Path, count: int, embedder: StaticEmbedder) -> dict[str, Any]:
    """Time recall in one of many scopes of 20 nodes, and in one that stands alone."""
    turns = Turns(2)
    store = SqliteStore(str(folder / "many.db"))
    scopes = [MemoryScope.parse(f"org:acme/user:u{number}") for number in range(count)]
    texts = [[turns.text() for _ in range(20)] for _ in scopes]
    for first, size in batches(count, 100):
        store.execute(
            tuple(
                op.PutNodes(scopes[place], nodes(scopes[place], texts[place], embedder))
                for place in range(first, first + size)
            )
        )
    store.close()
    alone = SqliteStore(str(folder / "alone.db"))
    alone.execute((op.PutNodes(scopes[0], nodes(scopes[0], texts[0], embedder)),))
    alone.close()
    chosen = turns.rng.sample(range(count), min(count, QUERIES))
    result: dict[str, Any] = {}
    for name, file in (("alone", "alone.db"), ("among", "many.db")):
        places = [0] * len(chosen) if name == "alone" else chosen
        asked = [(scopes[place], turns.query(texts[place][7])) for place in places]
        with Memory.open(f"sqlite:///{folder / file}", embedder=embedder) as memory:
            if name == "among":
                result["among, cold"] = spread(lambda each: memory.recall(*each), asked)
            for each in asked[:20]:
                memory.recall(*each)
            result[name] = spread(lambda each: memory.recall(*each), asked)
    result["ratio p50"] = round(result["among"]["p50"] / result["alone"]["p50"], 2)
    return result


def main() -> None:
    """Run and save."""
    parser = parse(__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000, 10_000, 50_000, 200_000])
    parser.add_argument("--scopes", type=int, default=5_000)
    given = parser.parse_args()
    embedder = StaticEmbedder()
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for size in given.sizes:
            result[str(size)] = one_scope(Path(folder) / f"{size}.db", size, embedder)
            print(size, result[str(size)], file=sys.stderr)
        if given.scopes:
            result[f"{given.scopes} scopes"] = many_scopes(Path(folder), given.scopes, embedder)
            print(result[f"{given.scopes} scopes"], file=sys.stderr)
    print(save("store_latency", result, inputs=[given.sizes, given.scopes, str(START)], out=given.out))


if __name__ == "__main__":
    main()
