"""The night of a thousand tenants: workers as processes over one PostgreSQL, one of them killed in the middle.

    python bench/workers.py --tenants 1000 --workers 4
    WAKEFUL_TEST_POSTGRES=postgresql://... python bench/workers.py

Each tenant has a session of a month ago (12 turns, to be digested) and 24 recent facts, two of them the same (to be
merged). All nightly cycles are given to the queue, ``wakeful worker`` is started so many times, and one is killed
(SIGKILL) when a third of the jobs are done. The others work on; what the dead one held comes back when its heartbeat and
lease have run out, which is waited for in real time and told apart (``tail_seconds``). ``done``: tenants with one digest,
one merge in the history and a finished cycle; ``twice``: tenants whose history shows a source digested or a copy merged
twice; ``lost``: the rest, and any tenant with a turn that is neither active nor behind its digest. The load is what
``pg_stat_database`` counted for the database over the night, the queue's own work included.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from common import parse, save
from postgres_latency import stores
from wakeful.engine.worker import enqueue_due
from wakeful.ops import PutNodes
from wakeful.records import MemoryNode, MemoryScope, Source
from wakeful.stores.postgres.store import PostgresStore

COUNTERS = ("xact_commit", "xact_rollback", "tup_returned", "tup_fetched", "tup_inserted", "tup_updated", "tup_deleted")
TURNS, FACTS = 12, 24


def fill(store: PostgresStore, tenants: int) -> None:
    """Give each tenant its old session and its recent facts."""
    now = datetime.now(UTC)
    for number in range(tenants):
        scope = MemoryScope.parse(f"org:acme/user:u{number:05}")
        old = [
            MemoryNode.new(
                id=f"{number}-t{i}", scope=scope, layer="episodic", at=now - timedelta(days=40, minutes=-i),
                content=f"well, so on the whole it was said at length that parcel {i} would be looked at again some time",
                source=Source(session="old"),
            )
            for i in range(TURNS)
        ]  # fmt: skip
        facts = [
            MemoryNode.new(
                id=f"{number}-f{i}", scope=scope, layer="semantic", at=now - timedelta(hours=2, minutes=i),
                content=f"shelf {max(i, 1)} holds the tea of crate {max(i, 1) * 7}", source=Source(session="new"),
            )
            for i in range(FACTS)
        ]  # fmt: skip
        store.execute((PutNodes(scope, (*old, *facts)),))


def worker(url: str) -> subprocess.Popen[str]:
    """Start a worker that stops when no job is left."""
    code = "import sys; from wakeful.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "worker", "--db", url, "--once", "--concurrency", "2"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def jobs(admin: psycopg.Connection[Any]) -> dict[str, int]:
    """Count the jobs by status."""
    query = "SELECT status::text, count(*) FROM procrastinate_jobs WHERE task_name = 'wakeful.tend' GROUP BY 1"
    return dict(admin.execute(query).fetchall())


def load(admin: psycopg.Connection[Any]) -> dict[str, int]:
    """Give what the database's statistics counted until now."""
    admin.execute("SELECT pg_stat_clear_snapshot()")
    row = admin.execute(
        f"SELECT {', '.join(COUNTERS)} FROM pg_stat_database WHERE datname = current_database()"
    ).fetchone()
    assert row is not None
    return dict(zip(COUNTERS, row, strict=True))


def verdict(admin: psycopg.Connection[Any], tenants: int) -> dict[str, int]:
    """Count the tenants that were tended once, twice, or not wholly."""
    rows = admin.execute(
        """
        SELECT s.path,
            (SELECT count(*) FROM wakeful.nodes n WHERE n.owner = s.id AND n.label = 'digest'),
            (SELECT count(*) FROM wakeful.history h WHERE h.owner = s.id AND h.action = 'merge'),
            (SELECT count(DISTINCT h.place) FROM wakeful.history h WHERE h.owner = s.id AND h.action = 'merge'),
            (SELECT count(*) FROM wakeful.nodes n WHERE n.owner = s.id AND n.label <> 'digest'
                AND (n.status = 'active' OR EXISTS (SELECT 1 FROM wakeful.nodes d WHERE d.owner = s.id
                    AND d.id = n.superseded_by AND d.status = 'active'))),
            (SELECT count(*) FROM wakeful.states t WHERE t.owner = s.id AND t.key = 'cycle:nightly'
                AND t.value ->> 'finished_at' IS NOT NULL AND t.value ->> 'started_at' IS NULL)
        FROM wakeful.scopes s WHERE s.path LIKE 'org:acme/user:%'
        """
    ).fetchall()
    twice = sum(digests > 1 or merges > distinct for _, digests, merges, distinct, _, _ in rows)
    done = sum(
        (digests, merges, distinct, kept, finished) == (1, TURNS + 1, TURNS + 1, TURNS + FACTS, 1)
        for _, digests, merges, distinct, kept, finished in rows
    )
    return {"done": done, "twice": twice, "lost": tenants - done - twice}


def night(url: str, admin: psycopg.Connection[Any], tenants: int, workers: int) -> dict[str, Any]:
    """Run the night, and report."""
    given, _ = enqueue_due(url, "nightly")
    before, began = load(admin), time.monotonic()
    running = [worker(url) for _ in range(workers)]
    while jobs(admin).get("succeeded", 0) < tenants // 3:
        assert any(each.poll() is None for each in running), "every worker stopped before a third was done"
        time.sleep(0.2)
    running[0].send_signal(signal.SIGKILL)
    killed_at, held = jobs(admin).get("succeeded", 0), jobs(admin).get("doing", 0)
    for each in running:
        each.communicate()
    seconds, first = time.monotonic() - began, jobs(admin)
    while jobs(admin).get("succeeded", 0) < given and not jobs(admin).get("failed"):
        worker(url).communicate()
        time.sleep(2)
    whole = time.monotonic() - began
    time.sleep(2)  # the server writes its statistics when a session is idle or ends
    after = load(admin)
    return {
        "tenants": tenants,
        "workers": workers,
        "killed_after": killed_at,
        "held_at_kill": held,
        "seconds": round(seconds, 1),
        "tail_seconds": round(whole - seconds, 1),
        "cycles_per_second": round(first["succeeded"] / seconds, 1),
        "jobs": jobs(admin),
        **verdict(admin, tenants),
        "load": {name: after[name] - before[name] for name in COUNTERS},
        "load_per_cycle": {name: round((after[name] - before[name]) / tenants, 1) for name in COUNTERS},
    }


def main() -> None:
    parser = parse(__doc__)
    parser.add_argument("--tenants", type=int, default=1_000)
    parser.add_argument("--workers", type=int, default=4)
    arguments = parser.parse_args()
    with stores() as (store, _, url), psycopg.connect(url, autocommit=True) as admin:
        fill(store, arguments.tenants)
        figures = night(url, admin, arguments.tenants, arguments.workers)
    print(json.dumps(figures, indent=2))
    assert figures["done"] == arguments.tenants, figures
    save(
        "workers", figures, inputs={"tenants": arguments.tenants, "workers": arguments.workers, "cpus": os.cpu_count()}
    )


if __name__ == "__main__":
    main()
