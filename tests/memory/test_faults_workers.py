"""Many who write and tend at once: no update is lost, no lock is held while a model thinks, no worker blocks a scope."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from wakeful import Memory, MemoryLayer, MemoryNode, MemoryScope, Turn
from wakeful.memory.receipts import Remembered

from .conftest import START, Clock, Opener

LONG_AGO = datetime(2026, 1, 5, 9, tzinfo=UTC)
SUBJECTS = ("harbour", "violin", "orchard", "glacier", "saffron", "meteor", "lantern", "quarry")


def old_session(memory: Memory, scope: MemoryScope, session: str = "old") -> Remembered:
    """A session that is ripe to be digested."""
    turns = [
        Turn(
            f"well, so on the whole it was said at length that the {subject} would be looked at again some time",
            speaker="Ana",
            at=LONG_AGO + timedelta(minutes=number),
            session=session,
            ref=f"{session}{number}",
        )
        for number, subject in enumerate(SUBJECTS)
    ]
    return memory.remember(scope, turns, extract=False)


class Slow:
    """A model during whose answer something else happens."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self.meanwhile, self.results = meanwhile, list[object]()

    def __call__(self, prompt: str) -> str:
        self.results.append(self.meanwhile())
        sentences = [
            {"text": f"The {subject} is looked at again.", "turns": [at]} for at, subject in enumerate(SUBJECTS)
        ]
        return json.dumps({"sentences": sentences})


def active(memory: Memory, scope: MemoryScope, session: str = "old") -> list[MemoryNode]:
    rows = [node for node in memory.export(scope).nodes() if node.source.session == session]
    return [node for node in rows if node.status == "active"]


def pair(open_memory: Opener, place: str, meanwhile: Callable[[Memory], object]) -> tuple[Memory, Memory, Slow]:
    """A memory whose model is slow, and another handle on the same place, used while the model thinks."""
    model = Slow(lambda: meanwhile(other))
    memory = open_memory(model=model)
    other = memory if place == "memory://" else open_memory(model=model)
    return memory, other, model


def test_nothing_is_locked_while_a_nap_asks_its_model_and_what_is_written_then_is_kept(
    open_memory: Opener, place: str, scope: MemoryScope
) -> None:
    memory, other, model = pair(
        open_memory, place, lambda other: other.remember(scope, "Ana moved to Rome", extract=False).ids[0]
    )
    old_session(memory, scope)
    report = memory.consolidate(scope, "nightly")
    assert (report.status, report.errors) == ("done", {})
    assert model.results
    (digest,) = active(memory, scope)
    assert digest.label == "digest"
    assert [hit.node.content for hit in other.recall(scope, "Rome")] == ["Ana moved to Rome"]


def edit(other: Memory, scope: MemoryScope, node: MemoryNode) -> object:
    return other.remember(
        scope,
        MemoryNode.new(scope=scope, layer="episodic", content="corrected", at=START, id=node.id, source=node.source),
    )


@pytest.mark.parametrize("what", ["edit", "forget", "erase"])
def test_a_nap_overrules_nothing_that_was_changed_while_its_model_thought(
    open_memory: Opener, place: str, scope: MemoryScope, clock: Clock, what: str
) -> None:
    def meanwhile(other: Memory) -> object:
        if what == "edit":
            return edit(other, scope, first.nodes[0])
        if what == "forget":
            return other.forget(scope, first.ids[0])
        clock.go(seconds=1)
        return other.erase(scope)

    memory, other, model = pair(open_memory, place, meanwhile)
    first = old_session(memory, scope)
    report = memory.consolidate(scope, "nightly")
    assert len(model.results) == 1
    rows = active(other, scope)
    assert not [node for node in rows if node.label == "digest"]
    if what == "edit":
        assert len(rows) == len(SUBJECTS)
        assert next(node for node in rows if node.id == first.ids[0]).content == "corrected"
    elif what == "forget":
        assert {node.id for node in rows} == set(first.ids[1:])
    else:
        assert report.status != "done"
        assert list(other.export(scope).nodes()) == []


def test_two_naps_of_one_scope_never_run_at_once_and_another_scope_is_not_held_up(
    open_memory: Opener, place: str, scope: MemoryScope
) -> None:
    neighbour = MemoryScope.parse("org:acme/user:ben")

    def meanwhile(other: Memory) -> object:
        if len(model.results) == 0:
            return other.consolidate(scope, "nightly").status, other.consolidate(neighbour, "nightly").status
        return None

    memory, other, model = pair(open_memory, place, meanwhile)
    old_session(memory, scope)
    other.remember(neighbour, "Ben likes tea")
    assert memory.consolidate(scope, "nightly").status == "done"
    assert model.results[0] == ("busy", "done")
    assert memory.consolidate(scope, "nightly").changed == 0


def test_a_worker_whose_lease_ran_out_writes_nothing_more(
    open_memory: Opener, place: str, scope: MemoryScope, clock: Clock
) -> None:
    def meanwhile(other: Memory) -> object:
        if model.results:
            return None
        clock.go(hours=3)
        model.results.append("taken over")
        return other.consolidate(scope, "nightly").status

    memory, other, model = pair(open_memory, place, meanwhile)
    old_session(memory, scope)
    late = memory.consolidate(scope, "nightly")
    assert model.results[-1] == "done"
    assert late.status == "stopped"
    assert len(active(other, scope)) == 1


@pytest.mark.parametrize("jump", [timedelta(days=-400), timedelta(days=-1), timedelta(days=400)])
def test_a_clock_that_jumps_fires_nothing_twice_and_loses_nothing(
    memory: Memory, scope: MemoryScope, clock: Clock, jump: timedelta
) -> None:
    memory.remind(scope, "Call Ben", at=START - timedelta(minutes=1))
    (due,) = memory.due(scope)
    assert memory.ack(scope, due)
    first = memory.remember(scope, "Ana lives in Oslo", extract=False)
    clock.at = START + jump
    assert memory.due(scope) == ()
    assert memory.consolidate(scope, "quick_nap").status == "done"
    second = memory.remember(scope, "Ana plays the violin", extract=False)
    kept = {node.id for node in memory.export(scope).nodes()}
    assert {*first.ids, *second.ids} <= kept


def test_a_backlog_of_scopes_is_worked_off_longest_waiting_first(memory: Memory) -> None:
    from wakeful.engine.worker import Tender

    scopes = [MemoryScope.parse(f"org:acme/user:u{number:02}") for number in range(30)]
    for scope in scopes:
        memory.remember(scope, "likes tea", extract=False)
    tender = Tender(memory.store)
    left = [left for left, report in tender.tend_due("nightly") if report.status == "done"]
    assert left == list(range(len(scopes) - 1, -1, -1))
    assert tender.due("nightly") == ()


def test_writers_in_threads_lose_no_update(open_memory: Opener, place: str, scope: MemoryScope) -> None:
    shared = open_memory()
    handles = [shared if place == "memory://" else open_memory() for _ in range(4)]
    failures: list[Exception] = []

    def write(handle: Memory, name: int) -> None:
        try:
            for number in range(12):
                text = f"worker {name} says word{name}x{number}"
                handle.remember(scope, [Turn(text, session=f"s{name}", ref=f"{name}-{number}")], extract=False)
                handle.recall(scope, "says", k=3)
        except Exception as error:
            failures.append(error)

    writers = [threading.Thread(target=write, args=each) for each in zip(handles, range(4), strict=True)]
    for each in writers:
        each.start()
    shared.consolidate(scope, "nightly")
    for each in writers:
        each.join()
    assert failures == []
    refs = Counter(node.ref for node in shared.export(scope).nodes() if node.layer is MemoryLayer.EPISODIC)
    assert refs == {f"{name}-{number}": 1 for name in range(4) for number in range(12)}
    assert [hit.node.ref for hit in shared.recall(scope, "word3x11", k=1)] == ["3-11"]


WRITER = """
import sys
from wakeful import Memory, MemoryScope, Turn
url, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
scope = MemoryScope.parse("org:acme/user:ana")
with Memory.open(url, embedder=False) as memory:
    print("ready", flush=True)
    for number in range(count):
        if name == "napper":
            memory.consolidate(scope, "nightly")
        else:
            turn = Turn(f"worker {name} says {number}", session=name, ref=f"{name}-{number}")
            memory.remember(scope, [turn], extract=False)
            print(turn.ref, flush=True)
"""


def test_no_acknowledged_turn_is_lost_when_a_writer_and_a_tender_are_killed(
    lasting_place: str, scope: MemoryScope
) -> None:
    Memory.open(lasting_place, embedder=False).close()
    names = {"a": 25, "b": 25, "victim": 10_000, "napper": 10_000}
    running = {
        name: subprocess.Popen(
            [sys.executable, "-c", WRITER, lasting_place, name, str(count)], stdout=subprocess.PIPE, text=True
        )
        for name, count in names.items()
    }
    for each in running.values():
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    victim = running["victim"]
    assert victim.stdout is not None
    acknowledged = [victim.stdout.readline().strip() for _ in range(10)]
    for name in ("victim", "napper"):
        running[name].kill()
    acknowledged += [line for line in victim.communicate()[0].split("\n")[:-1] if line]
    running["napper"].communicate()
    for name in ("a", "b"):
        output, _ = running[name].communicate(timeout=120)
        assert running[name].returncode == 0
        acknowledged += output.split()
    with Memory.open(lasting_place, embedder=False, clock=lambda: datetime.now(UTC) + timedelta(hours=2)) as memory:
        kept = Counter(node.ref for node in memory.export(scope).nodes())
        assert {ref: kept[ref] for ref in acknowledged} == dict.fromkeys(acknowledged, 1)
        assert memory.consolidate(scope, "nightly").status == "done"
