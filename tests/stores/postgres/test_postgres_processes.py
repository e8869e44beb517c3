"""Several processes on one database: nothing acknowledged is lost, nothing fires twice, nothing waits for ever."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from wakeful import ops as op
from wakeful.errors import StaleWriter, StoreBusy, StoreError
from wakeful.records import MemoryScope
from wakeful.stores.conformance.fixtures import (
    ACME,
    ANA,
    ANA_TODAY,
    BOB,
    EVERYTHING,
    MODEL,
    START,
    hour,
    ids,
    node,
    vector,
)
from wakeful.stores.postgres import open_postgres, words
from wakeful.stores.postgres.steps import sql

pytestmark = pytest.mark.postgres

WORKER = """
import json, sys
from datetime import timedelta
from wakeful import ops as op
from wakeful.records import MemoryScope
from wakeful.stores.conformance.fixtures import ANA, START, node
from wakeful.stores.postgres import open_postgres

url, task, number, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
store = open_postgres(url, pool_size=2)
print("ready", flush=True)
sys.stdin.readline()
if task == "write":
    for n in range(count):
        name = f"w{number}-{n}"
        row = node(ANA, name, f"worker {number} says {n} to everyone", at=START + timedelta(seconds=n))
        shared = node(ANA, f"shared-{n % 3}", f"everyone {n % 3}")
        store.execute((op.PutNodes(ANA, (row, shared)), op.Touch(ANA, (f"shared-{n % 3}",), START)))
        print(name, flush=True)
elif task == "count":
    for n in range(count):
        while True:
            (held,) = store.execute((op.GetNodes(ANA, ("counter",)),))[0]
            change = {"importance": held.importance, "properties": {"n": held.properties["n"] + 1},
                      "updated_at": held.updated_at + timedelta(seconds=1)}
            if store.execute((op.UpdateNodes(scope=ANA, changes={"counter": change},
                                             expected={"counter": held.updated_at}),))[0]:
                break
elif task == "claim":
    taken = []
    while True:
        (due,) = store.execute((op.ClaimDue(scope=ANA, at=START, limit=3, lease_seconds=3600),))
        if not due:
            break
        for each in due:
            taken.append(each.id)
            assert store.execute((op.AckDue(scope=ANA, id=each.id, occurrence=each.properties["due_at"]),))[0]
    print(json.dumps(taken), flush=True)
elif task == "cross":
    one, other = MemoryScope.parse("org:one"), MemoryScope.parse("org:other")
    first, second = (one, other) if number % 2 else (other, one)
    for n in range(count):
        store.execute((op.PutState(first, "k", n), op.PutNodes(first, (node(first, f"{number}-{n}-a", "to and fro"),)),
                       op.PutState(second, "k", n), op.PutNodes(second, (node(second, f"{number}-{n}-b", "to and fro"),))))
store.close()
"""


def start(url: str, task: str, workers: int, count: int) -> list[subprocess.Popen[str]]:
    """Start workers, wait until all are ready, then let them go."""
    found = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, url, task, str(number), str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(workers)
    ]
    for each in found:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n", each.communicate()[1]
    for each in found:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    return found


def finish(workers: list[subprocess.Popen[str]]) -> list[str]:
    outputs = []
    for each in workers:
        output, errors = each.communicate(timeout=120)
        assert each.returncode == 0, errors
        outputs.append(output)
    return outputs


class TestProcesses:
    def test_no_acknowledged_write_is_lost_when_one_writer_is_killed(self, url: str) -> None:
        workers = start(url, "write", 4, 25)
        victim = workers.pop()
        assert victim.stdout is not None
        acknowledged = [victim.stdout.readline().strip() for _ in range(5)]
        victim.kill()
        rest, _ = victim.communicate()
        acknowledged += [line for line in rest.split("\n")[:-1] if line]
        for output in finish(workers):
            acknowledged += output.split()
        store = open_postgres(url)
        found, words, stats = store.execute(
            (
                op.GetNodes(ANA, tuple(acknowledged)),
                op.SearchText(scope=ANA, terms=("worker", "says"), visibility=EVERYTHING, limit=1000),
                op.Stats(ANA),
            )
        )
        assert ids(found) == acknowledged
        assert set(acknowledged) <= set(ids(words))
        assert stats["nodes"] == len(words) + 3
        shared = store.execute((op.GetNodes(ANA, ("shared-0", "shared-1", "shared-2")),))[0]
        assert sum(each.access_count for each in shared) == len(words)
        assert_counted(url)
        store.close()

    def test_compare_and_set_loses_no_update(self, url: str) -> None:
        store = open_postgres(url)
        store.execute((op.PutNodes(ANA, (node(ANA, "counter", properties={"n": 0}),)),))
        finish(start(url, "count", 3, 10))
        (held,) = store.execute((op.GetNodes(ANA, ("counter",)),))[0]
        assert (held.properties["n"], held.updated_at) == (30, START + timedelta(seconds=30))
        store.close()

    def test_each_reminder_is_given_to_one_worker_once(self, url: str) -> None:
        store = open_postgres(url)
        due = {"due_at": START.isoformat()}
        rows = tuple(node(ANA, f"r{n}", layer="prospective", properties=due, at=hour(-1)) for n in range(60))
        store.execute((op.PutNodes(ANA, rows),))
        taken = [json.loads(output) for output in finish(start(url, "claim", 3, 0))]
        assert Counter(name for each in taken for name in each) == {f"r{n}": 1 for n in range(60)}
        store.close()

    def test_writers_that_cross_never_wait_for_each_other_in_a_circle(self, url: str) -> None:
        finish(start(url, "cross", 4, 15))
        with psycopg.connect(url, autocommit=True) as connection:
            (deadlocks,) = connection.execute(
                "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
            ).fetchone()
            assert deadlocks == 0
        assert_counted(url)


def assert_counted(url: str) -> None:
    """What the scopes count, and the words they index, is what their rows are."""
    with psycopg.connect(url) as connection:
        scopes = connection.execute("SELECT id, nodes, words FROM wakeful.scopes").fetchall()
        rows = connection.execute("SELECT owner, doc, label, content FROM wakeful.nodes").fetchall()
        held = connection.execute("SELECT owner, term, chunk, entries FROM wakeful.words").fetchall()
    assert scopes
    for owner, nodes, count in scopes:
        texts = [words.analysed(doc, label, content) for each, doc, label, content in rows if each == owner]
        assert (nodes, count) == (len(texts), sum(text.length for text in texts))
        terms, runs, packed = words.entries(sorted(texts, key=lambda text: text.doc))
        wanted = {(term, run): sorted(_entries(raw)) for term, run, raw in zip(terms, runs, packed, strict=True)}
        assert {(t, c): sorted(_entries(raw)) for each, t, c, raw in held if each == owner} == wanted


def _entries(raw: bytes) -> list[bytes]:
    return [raw[place : place + 4] for place in range(0, len(raw), 4)]


class TestThreadsAndLoops:
    def test_claims_pass_over_rows_that_another_transaction_is_claiming(self, url: str) -> None:
        store = open_postgres(url)
        due = {"due_at": START.isoformat()}
        rows = tuple(node(ANA, f"r{n}", layer="prospective", properties=due, at=hour(-1)) for n in range(3))
        store.execute((op.PutNodes(ANA, rows),))
        with psycopg.connect(url) as other:
            other.execute("SELECT 1 FROM wakeful.nodes WHERE id = 'r0' FOR UPDATE")
            assert ids(store.execute((op.ClaimDue(scope=ANA, at=START),))[0]) == ["r1", "r2"]
        assert ids(store.execute((op.ClaimDue(scope=ANA, at=START),))[0]) == ["r0"]
        store.close()

    def test_nobody_takes_over_while_a_fenced_transaction_runs(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("wakeful.stores.postgres.store._SETTINGS", "SET lock_timeout = '50ms'")
        store = open_postgres(url)
        (token,) = store.execute((op.AcquireLease(scope=ANA, owner="a", at=START, seconds=1),))
        take_over = op.AcquireLease(scope=ANA, owner="b", at=hour(1), seconds=1)
        with psycopg.connect(url) as fenced:
            held = fenced.execute(sql("fence"), {"path": ANA.path}).fetchone()
            assert held == (token,)
            with pytest.raises(StoreBusy):
                store.execute((take_over,))
        assert store.execute((take_over,))[0] > token
        with pytest.raises(StaleWriter):
            store.execute((op.Fence(ANA, token), op.PutNodes(ANA, (node(ANA, "late"),))))
        store.close()

    def test_an_erasure_waits_for_writers_below_and_stops_those_that_come_late(self, url: str) -> None:
        store = open_postgres(url)

        def write() -> None:
            with suppress(StaleWriter):
                for n in range(20):
                    row = node(ANA_TODAY, f"t{n}", recorded_at=hour(0))
                    store.execute((op.PutNodes(ANA_TODAY, (row,)),))

        writers = [threading.Thread(target=write) for _ in range(2)]
        for each in writers:
            each.start()
        store.execute((op.PutNodes(ACME, (node(ACME, "policy"),)), op.Erase(ANA, hour(1))))
        for each in writers:
            each.join()
        left, other = store.execute((op.QuerySubtree(scope=ANA), op.GetNodes(ACME, ("policy",))))
        assert left == ()
        assert ids(other) == ["policy"]
        with pytest.raises(StaleWriter):
            store.execute((op.PutNodes(ANA_TODAY, (node(ANA_TODAY, "late", recorded_at=hour(0)),)),))
        store.close()

    def test_two_first_writers_declare_one_model(self, url: str) -> None:
        store = open_postgres(url)
        failures: list[Exception] = []

        def write(owner: MemoryScope, model: str) -> None:
            try:
                row = node(owner, owner.path, embedding=vector(1), embedding_model=model)
                store.execute((op.PutNodes(owner, (row,)),))
            except StoreError as error:
                failures.append(error)

        writers = [threading.Thread(target=write, args=args) for args in ((ANA, MODEL), (BOB, "other"))]
        for each in writers:
            each.start()
        for each in writers:
            each.join()
        assert len(failures) == 1
        assert "reembed" in str(failures[0])
        store.close()

    def test_many_awaited_operations_share_the_pool_in_any_loop(self, url: str) -> None:
        store = open_postgres(url, pool_size=3)

        async def many(first: int) -> Any:
            writes = (store.aexecute((op.PutNodes(ANA, (node(ANA, f"a{first + n}"),)),)) for n in range(12))
            assert await asyncio.gather(*writes) == [(1,)] * 12
            return await store.aexecute((op.Stats(ANA),))

        assert asyncio.run(many(0))[0]["nodes"] == 12
        assert asyncio.run(many(12))[0]["nodes"] == 24

        async def closing() -> None:
            await store.aexecute((op.Stats(ANA),))
            await store.aclose()

        asyncio.run(closing())
        with pytest.raises(StoreError, match="closed"):
            store.execute((op.Stats(ANA),))

    def test_a_connection_that_broke_is_replaced(self, url: str) -> None:
        store = open_postgres(url, pool_size=1)
        store.execute((op.PutState(ANA, "k", 1),))
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
                "AND pid <> pg_backend_pid()"
            )
        results: list[Any] = []
        for _ in range(3):
            try:
                results.append(store.execute((op.GetState(ANA, "k"),)))
            except (StoreError, StoreBusy):
                continue
        assert results[-1] == (1,)
        store.close()
