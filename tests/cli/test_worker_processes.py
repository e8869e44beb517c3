"""Workers as real processes over one PostgreSQL: every scope is tended, whoever dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

psycopg = pytest.importorskip("psycopg")
pytest.importorskip("procrastinate")

from postgres_places import database_of_its_own  # noqa: E402
from wakeful.engine.memory import Memory  # noqa: E402
from wakeful.records import MemoryScope  # noqa: E402

pytestmark = pytest.mark.postgres
SCOPES = 24


@pytest.fixture
def url(server):
    with database_of_its_own(server, f"wakeful_workers_{os.getpid()}") as place:
        yield place


def start(*arguments):
    code = "import sys; from wakeful.cli import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def due(wakeful, url):
    out = wakeful("schedule", "--db", url, "--cadence", "nightly", "--json").out
    return [json.loads(line)["scope"] for line in out.splitlines()]


def test_workers_tend_every_scope_though_one_is_killed(wakeful, url):
    with Memory.open(url, embedder=False) as memory:
        for number in range(SCOPES):
            memory.remember(MemoryScope.parse(f"org:acme/user:u{number:02}"), "likes tea", extract=False)
    given = wakeful("schedule", "--db", url, "--cadence", "nightly", "--enqueue", "--json").json
    assert given["enqueued"] == SCOPES
    assert wakeful("schedule", "--db", url, "--cadence", "nightly", "--enqueue", "--json").json["enqueued"] == 0

    workers = [start("worker", "--db", url, "--once", "--concurrency", "2") for _ in range(3)]
    query = "SELECT count(*) FROM procrastinate_jobs WHERE task_name = 'wakeful.tend' AND status <> 'todo'"
    with psycopg.connect(url, autocommit=True) as connection:
        while not connection.execute(query).fetchone()[0] and workers[0].poll() is None:
            pass
        workers[0].send_signal(signal.SIGKILL)
        for each in workers:
            _, errors = each.communicate(timeout=120)
            assert each is workers[0] or each.returncode == 0, errors
        # The dead worker's heartbeat and lease run out: time is moved, not waited for.
        connection.execute("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 hour'")
        connection.execute("UPDATE procrastinate_jobs SET scheduled_at = now() WHERE status = 'todo'")
        connection.execute("UPDATE wakeful.leases SET until = now() - interval '1 hour'")
    last = start("worker", "--db", url, "--once")
    out, errors = last.communicate(timeout=120)
    assert last.returncode == 0, errors
    assert json.loads(out) == {"succeeded": SCOPES}
    assert due(wakeful, url) == []
