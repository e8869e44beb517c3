"""Kill a nap at random points and see what is left: every source is there, or behind a digest or head that names it.

    python bench/nap_kill.py --kills 100
    python bench/nap_kill.py --kills 100 --url postgresql://...

A process tends a scope full of work (``deep_sleep``); it is killed (SIGKILL) after a random time, what is left is looked
at, and the next process goes on. When a cycle got through, the next round has another scope. ``interrupted``: kills that
hit a cycle which had already written. Fails when a source is lost.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from common import parse, save
from wakeful.ops import GetState, PutNodes
from wakeful.records import MemoryScope
from wakeful.stores import Store, open_store
from wakeful.testing.tending import lost_sources, work_to_tend

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def child(url: str, scope: MemoryScope, now: datetime) -> subprocess.Popen[str]:
    """Start a process that tends, and wait until it begins."""
    command = [sys.executable, "-m", "wakeful.testing.tending", url, scope.path, AT.isoformat(), now.isoformat()]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    return running


def rounds(store: Store, url: str, kills: int, rng: random.Random) -> dict[str, Any]:
    """Kill so many times; give what happened."""
    figures = {"kills": 0, "interrupted": 0, "got_through": 0, "scopes": 0, "sources": 0}
    longest, now, scope = 0.0, AT, None
    while figures["kills"] < kills:
        if scope is None:
            scope = MemoryScope.parse(f"org:acme/user:u{figures['scopes']}")
            nodes = work_to_tend(scope, AT)
            store.execute((PutNodes(scope, nodes),))
            figures["scopes"] += 1
            figures["sources"] += len(nodes)
        now += timedelta(hours=1)
        running, began = child(url, scope, now), time.monotonic()
        try:
            running.wait(rng.uniform(0, longest) if longest else None)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGKILL)
        out, _ = running.communicate()
        lost = lost_sources(store, scope, AT, frozenset(node.id for node in nodes))
        assert not lost, lost
        if longest and running.returncode == -signal.SIGKILL:
            figures["kills"] += 1
            (state,) = store.execute((GetState(scope, "cycle:deep_sleep"),))
            figures["interrupted"] += "started_at" in (state or {})
        if "done" in out:
            longest = longest or (time.monotonic() - began)
            figures["got_through"] += 1
            scope = None
    return {**figures, "lost": 0, "cycle_seconds": round(longest, 2)}


def main() -> None:
    parser = parse(__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--url", help="store (default: SQLite in a temporary folder)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = arguments.url or f"sqlite:///{folder}/nap.db"
        store = open_store(url)
        figures = rounds(store, url, arguments.kills, random.Random(arguments.seed))
        store.close()
    print(figures)
    save("nap_kill", figures, inputs={"kills": arguments.kills, "seed": arguments.seed}, out=arguments.out)


if __name__ == "__main__":
    main()
