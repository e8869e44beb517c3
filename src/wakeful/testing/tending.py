"""What tending must never do to a memory: a scope full of work for a cycle, and a look for sources that were lost."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta

from wakeful.engine.consolidate import consolidate_flow
from wakeful.engine.drive import drive
from wakeful.needs import Need, Run
from wakeful.ops import QuerySubtree, Visibility
from wakeful.records import MemoryNode, MemoryScope, Source
from wakeful.stores import Store, open_store


def work_to_tend(
    scope: MemoryScope, at: datetime, *, sessions: int = 4, turns: int = 10, facts: int = 30
) -> tuple[MemoryNode, ...]:
    """Make what a full cycle digests and merges: sessions of a month ago, and recent facts that are each said twice.

    Ids begin with the scope's path, so several scopes of one store never share one.
    """
    old = tuple(
        MemoryNode.new(
            id=f"{scope.path}-s{session}t{turn}",
            scope=scope,
            layer="episodic",
            content=f"well, so on the whole it was said at length that parcel {session}x{turn} would be looked at again",
            at=at - timedelta(days=40 + session) + timedelta(minutes=turn),
            source=Source(session=f"old{session}"),
        )
        for session in range(sessions)
        for turn in range(turns)
    )
    recent = tuple(
        MemoryNode.new(
            id=f"{scope.path}-f{number}{copy}",
            scope=scope,
            layer="semantic",
            content=f"shelf {number} holds the tea of crate {number * 7}{copy and '!'}",
            at=at - timedelta(hours=2, minutes=number) + timedelta(minutes=copy == "b"),
            source=Source(session="new"),
        )
        for number in range(facts)
        for copy in ("", "b")
    )
    return old + recent


def lost_sources(store: Store, scope: MemoryScope, at: datetime, ids: frozenset[str]) -> dict[str, str]:
    """Give the sources that are neither active nor behind an active derivative that names them, with what is wrong."""
    everything = Visibility(at=at, statuses=("active", "draft", "retracted"), superseded=True, expired=True)
    ((nodes, _),) = store.execute((QuerySubtree(scope=scope, visibility=everything, edges=True),))
    held = {node.id: node for node in nodes}
    wrong: dict[str, str] = {}
    for name in ids:
        node = held.get(name)
        if node is None:
            wrong[name] = "gone"
        elif node.status != "active":
            heir = held.get(node.superseded_by or "")
            if heir is None or heir.status != "active":
                wrong[name] = f"retired, and {node.superseded_by!r} does not stand for it"
            elif name not in heir.source.entries:
                wrong[name] = f"{heir.id!r} stands for it and does not name it"
    return wrong


def tend_until_killed(url: str, path: str, at: datetime, now: datetime) -> None:
    """Run a ``deep_sleep`` and print its status; ``ready`` is printed first, so that a parent knows when to kill.

    ``at`` is the cycle's clock, ``now`` that of the leases: later than a dead worker's, it takes its lease over.
    """
    store = open_store(url)

    def answer(need: Need) -> object:
        assert isinstance(need, Run)
        return store.execute(need.ops)

    print("ready", flush=True)
    report = drive(consolidate_flow(MemoryScope.parse(path), "deep_sleep", at=at), answer, clock=lambda: now)
    print(report.status, flush=True)
    store.close()


if __name__ == "__main__":
    tend_until_killed(sys.argv[1], sys.argv[2], *map(datetime.fromisoformat, sys.argv[3:5]))
