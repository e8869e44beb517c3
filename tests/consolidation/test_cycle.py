"""A cycle: one lease, one report, idempotent, resumable, and a failed phase stops no other."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import timedelta

import pytest
from tending_world import ANA, NOW, memory

from wakeful.consolidation import phases
from wakeful.consolidation.settings import TendingSettings
from wakeful.engine.consolidate import CadenceCounter, due_scopes
from wakeful.engine.drive import drive
from wakeful.errors import ConfigError
from wakeful.ops import AcquireLease, Erase, GetState, QuerySubtree, Visibility
from wakeful.records import MemoryScope

EVERYTHING = Visibility(at=NOW, statuses=("active", "draft", "retracted"), superseded=True, expired=True)


def picture(world):
    nodes, edges = world.store.execute(
        (QuerySubtree(scope=MemoryScope.parse("org:acme"), visibility=EVERYTHING, edges=True),)
    )[0]
    return sorted(nodes, key=lambda node: node.id), sorted(edges, key=lambda edge: edge.id)


def busy_world(world):
    world.put(
        *(memory(f"n{i}", f"Clara Jensen said thing {i % 4}", layer=("semantic", "episodic")[i % 2], session=f"s{i % 3}",
                 hours=1 + i / 60) for i in range(24)),
        memory("old", hours=24 * 70), memory("expired", expires_at=NOW),
    )  # fmt: skip


@pytest.mark.parametrize("cadence", ["quick_nap", "nightly", "deep_sleep"])
def test_a_second_cycle_with_the_same_clock_changes_nothing(world, cadence):
    busy_world(world)
    assert world.tend(cadence).changed > 0
    before = picture(world)
    again = world.tend(cadence)
    assert again.changed == 0
    assert picture(world) == before


def test_a_dry_run_reports_and_changes_nothing(world):
    busy_world(world)
    before = picture(world)
    report = world.tend(dry_run=True)
    assert report.dry_run
    assert report.changed > 0
    assert report.operations
    assert picture(world) == before
    assert world.store.execute((GetState(ANA, "cycle:nightly"),))[0] is None


def test_a_phase_that_found_nothing_differs_from_one_that_did_not_run(world):
    report = world.tend("quick_nap")
    assert [(phase.name, phase.status, phase.changed) for phase in report.phases] == [
        (phase.name, "ran", 0) for phase in phases.LIGHT
    ]


def test_a_failed_phase_is_recorded_and_the_others_run(world, monkeypatch):
    def broken(cycle):
        raise RuntimeError("bad luck")
        yield

    roster = tuple(replace(phase, run=broken) if phase.name == "merge" else phase for phase in phases.FULL)
    monkeypatch.setitem(phases.ROSTERS, "nightly", roster)
    busy_world(world)
    report = world.tend()
    assert report.status == "partial"
    assert report.errors == {"merge": "RuntimeError: bad luck"}
    assert sum(phase.status == "ran" for phase in report.phases) == len(phases.FULL) - 1


def test_two_workers_never_tend_one_scope_at_once(world):
    world.store.execute((AcquireLease(scope=ANA, owner="other", at=NOW, seconds=60),))
    assert world.tend().status == "busy"
    world.now = NOW + timedelta(seconds=61)
    assert world.tend(at=world.now).status == "done"


def test_a_worker_that_lost_its_lease_changes_nothing_more(world, monkeypatch):
    def slow(cycle):
        world.now += timedelta(seconds=120)
        world.store.execute((AcquireLease(scope=ANA, owner="thief", at=world.now, seconds=600),))
        return phases.PRUNE.run and (yield from phases.COOCCURRENCE.run(cycle))

    roster = (replace(phases.STRENGTHEN, run=slow), *phases.FULL[1:])
    monkeypatch.setitem(phases.ROSTERS, "nightly", roster)
    busy_world(world)
    before = picture(world)
    assert world.tend().status == "stopped"
    assert picture(world) == before


def test_a_missed_night_is_caught_up(world):
    world.tend()
    world.put(memory("n1", "Ana likes tea", hours=-2), memory("n2", "ana likes tea!", hours=-1))
    world.now = NOW + timedelta(days=5)
    assert next(phase for phase in world.tend(at=world.now).phases if phase.name == "merge").changed == 2
    world.now = NOW + timedelta(days=12)
    assert next(phase for phase in world.tend(at=world.now).phases if phase.name == "merge").rows_read == 0


def test_a_history_longer_than_a_portion_is_worked_off_over_several_cycles(world):
    world.put(*(
        memory(f"s{session}t{turn}", f"Well, about parcel {session}: we talked at length about nothing new at all.",
               hours=24 * 50 + session * 24 - turn / 60, layer="episodic", session=f"s{session}")
        for session in range(6) for turn in range(10)
    ))  # fmt: skip
    digested = []
    for night in range(6):
        at = NOW + timedelta(hours=night)
        report = world.tend(at=at, settings=TendingSettings(window_limit=20))
        assert report.errors == {}
        digested.append(sum(node.label == "digest" for node in picture(world)[0]))
        assert next(phase for phase in report.phases if phase.name == "episodic_summary").rows_read <= 80
    assert digested == [2, 4, 6, 6, 6, 6]
    assert world.store.execute((GetState(ANA, "backlog:episodic_summary:0"),)) == (None,)


def test_a_window_that_is_full_says_so(world):
    busy_world(world)
    assert world.tend("quick_nap", dry_run=True).notes == ()
    (note,) = world.tend("quick_nap", settings=TendingSettings(window_limit=10)).notes
    assert "newest 10 rows" in note


class Killed(BaseException):
    """The process dies here."""


@pytest.mark.parametrize("at", range(0, 40, 3))
def test_a_cycle_that_was_killed_goes_on_and_ends_like_one_that_was_not(world, at):
    busy_world(world)
    count = 0
    execute = world.store.execute

    def dying(ops):
        nonlocal count
        count += 1
        if count == at + 1:
            raise Killed
        return execute(ops)

    world.store.execute = dying
    with contextlib.suppress(Killed):
        world.tend()
    world.store.execute = execute
    world.now = NOW + timedelta(seconds=90)
    world.tend()
    survivor = picture(world)
    twin = type(world)()
    busy_world(twin)
    twin.tend()
    assert [node.id for node in survivor[0]] == [node.id for node in picture(twin)[0]]
    assert [(node.status, node.superseded_by) for node in survivor[0]] == [
        (node.status, node.superseded_by) for node in picture(twin)[0]
    ]


def test_reading_and_tending_never_make_a_node_look_used(world):
    busy_world(world)
    before = {node.id: (node.updated_at, node.accessed_at) for node in picture(world)[0]}
    world.tend("deep_sleep")
    after = {node.id: (node.updated_at, node.accessed_at) for node in picture(world)[0]}
    assert {name: after[name] for name in before if name in after} == {n: t for n, t in before.items() if n in after}


def test_everything_that_consolidation_made_is_erased_with_its_scope(world):
    busy_world(world)
    world.tend("deep_sleep")
    world.store.execute((Erase(ANA, NOW + timedelta(seconds=1)),))
    assert picture(world) == ([], [])


def test_due_scopes_come_longest_waiting_first(world):
    bo = MemoryScope.parse("org:acme/user:bo")
    world.put(memory("a"), memory("b", scope=bo))

    def due():
        found = drive(due_scopes("nightly", at=world.now), world.answer, clock=lambda: world.now)
        return [each.scope for each in found]

    assert due() == [ANA, bo]
    world.tend(scope=ANA)
    assert due() == [bo]
    world.now = NOW + timedelta(days=1)
    assert due() == [bo, ANA]


def test_a_cadence_counts_the_turns_of_each_scope_alone():
    counter = CadenceCounter(every_turns=2)
    bo = MemoryScope.parse("org:acme/user:bo")
    assert [counter.turn(scope) for scope in (ANA, bo, ANA, bo, ANA)] == [False, False, True, True, False]


@pytest.mark.parametrize("values", [{"lookback": 1}, {"batch": 0}, {"decay_days": (30, -1)}])
def test_unknown_or_impossible_settings_are_refused(values):
    with pytest.raises(ConfigError):
        TendingSettings.of(values)


def test_an_unknown_cadence_is_refused_by_name(world):
    with pytest.raises(ConfigError, match="quick_nap"):
        world.tend("hourly")
