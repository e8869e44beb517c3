"""A nap in a process that dies at any moment: every source is there, or behind a derivative that names it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta

import pytest
from tending_world import ANA, NOW

from wakeful.ops import GetNodes, GetState, PutNodes
from wakeful.stores import open_store
from wakeful.testing.tending import lost_sources, work_to_tend


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request, tmp_path):
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'memory.db'}"
        return
    pytest.importorskip("psycopg")
    from postgres_places import database_of_its_own

    with database_of_its_own(request.getfixturevalue("server"), f"wakeful_killed_{os.getpid()}") as place:
        yield place


def nap(url, hours):
    command = [sys.executable, "-m", "wakeful.testing.tending", url, ANA.path, NOW.isoformat()]
    return subprocess.Popen(
        [*command, (NOW + timedelta(hours=hours)).isoformat()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def phases_done(store):
    (state,) = store.execute((GetState(ANA, "cycle:deep_sleep"),))
    return len((state or {}).get("done", ()))


def test_no_source_is_lost_whenever_the_process_of_a_nap_is_killed(url):
    store = open_store(url)
    nodes = work_to_tend(ANA, NOW, sessions=3, facts=20)
    store.execute((PutNodes(ANA, nodes),))
    names = frozenset(node.id for node in nodes)
    for number, until in enumerate((1, 5, 8)):
        running = nap(url, number)
        while phases_done(store) < until and running.poll() is None:
            pass
        running.send_signal(signal.SIGKILL)
        running.communicate()
        assert lost_sources(store, ANA, NOW, names) == {}
    out, errors = nap(url, 10).communicate(timeout=60)
    assert out.split() == ["ready", "done"], errors
    assert lost_sources(store, ANA, NOW, names) == {}
    (held,) = store.execute((GetNodes(ANA, tuple(names)),))
    assert sum(node.status == "retracted" for node in held) == 3 * 10 + 20
    assert lost_sources(store, ANA, NOW, frozenset({"never written"})) == {"never written": "gone"}
    store.close()
