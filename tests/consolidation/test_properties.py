"""What holds for every cycle over every tree of scopes: ownership, times of use, idempotence, no loss."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tending_world import NOW, World, memory

from wakeful.ops import PutEdges, PutNodes, PutState, QuerySubtree, Touch, Visibility
from wakeful.records import MemoryEdge, MemoryScope
from wakeful.stores import open_store
from wakeful.testing.tending import lost_sources

EVERYTHING = Visibility(at=NOW, statuses=("active", "draft", "retracted"), superseded=True, expired=True)
ROOT = MemoryScope.parse("org:acme")
PATHS = (
    "org:acme", "org:acme/user:ana", "org:acme/user:ana/session:1", "org:acme/user:ana/session:2",
    "org:acme/user:bo", "org:acme/user:bo/session:1", "org:acme/user:ana/session:1/step:1",
)  # fmt: skip
TEXTS = (
    "Ana likes tea", "ana likes TEA!", "Clara Jensen called about order A-17", "we met Clara Jensen there",
    "I never eat any fish", "Well, it was a long and quiet day, and we talked at length about nothing new at all. " * 2,
    "the red door sticks", "Ana lives in Oslo", "Ana lives in Rome",
)  # fmt: skip


@st.composite
def trees(draw):
    """Rows of several scopes of one tree, alike enough to be merged, linked, digested and retired across them."""
    rows = []
    for path in draw(st.lists(st.sampled_from(PATHS), min_size=2, max_size=5, unique=True)):
        scope = MemoryScope.parse(path)
        for number in range(draw(st.integers(2, 14))):
            text = draw(st.sampled_from(TEXTS))
            old = draw(st.booleans())
            city = text.rpartition(" ")[2]
            claims = (
                {"subject": "Ana", "attribute": "city", "value": city, "exclusive": True} if "lives" in text else {}
            )
            rows.append(
                memory(
                    f"{path}#{number}",
                    text,
                    scope=scope,
                    hours=24 * 40 + number / 60 if old else 1 + number / 60,
                    layer=draw(st.sampled_from(("semantic", "episodic", "working"))),
                    session=draw(st.sampled_from(("s1", "s2", "old") if not old else ("old",))),
                    label=draw(st.sampled_from(("", "", "preference"))),
                    properties=claims,
                    pinned=draw(st.integers(0, 9)) == 0,
                    expires_at=draw(st.sampled_from((None, None, None, NOW - timedelta(minutes=5)))),
                )
            )
    return rows


def picture(store, root=ROOT):
    (found,) = store.execute((QuerySubtree(scope=root, visibility=EVERYTHING, edges=True),))
    return {node.id: node for node in found[0]}, {edge.id: edge for edge in found[1]}


def planted(rows, url="memory://"):
    store = open_store(url)
    for row in rows:
        store.execute((PutNodes(row.scope, (row,)),))
    for scope in sorted({row.scope for row in rows}, key=lambda scope: scope.path):
        mine = [row.id for row in rows if row.scope == scope]
        edge = MemoryEdge.new(scope=scope, source_id=mine[0], target_id=mine[1], at=NOW)
        store.execute(
            (
                PutEdges(scope, (edge,)),
                Touch(scope, tuple(mine[:3]), NOW - timedelta(minutes=3)),
                PutState(scope, "pending_edges", [[mine[0], mine[-1], 2]]),
            )
        )
    return store


CADENCE = st.sampled_from(("quick_nap", "nightly", "deep_sleep"))
SLOW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SLOW
@given(trees(), CADENCE, st.data())
def test_a_cycle_changes_nothing_of_parents_siblings_and_children(rows, cadence, data):
    scope = data.draw(st.sampled_from(sorted({row.scope for row in rows}, key=lambda scope: scope.path)))
    store = planted(rows)
    nodes, edges = picture(store)
    report = World(store).tend(cadence, scope)
    assert report.errors == {}
    nodes_after, edges_after = picture(store)
    strangers = {key: node for key, node in nodes.items() if node.scope != scope}
    assert {key: node for key, node in nodes_after.items() if node.scope != scope} == strangers
    strange = {key: edge for key, edge in edges.items() if edge.scope != scope}
    assert {key: edge for key, edge in edges_after.items() if edge.scope != scope} == strange
    store.close()


@SLOW
@given(trees(), CADENCE)
def test_a_cycle_never_makes_a_row_look_used_loses_no_source_and_runs_once(rows, cadence):
    store = planted(rows)
    scope = rows[0].scope
    before, _ = picture(store)
    world = World(store)
    assert world.tend(cadence, scope).errors == {}
    after, edges = picture(store)
    for key in before.keys() & after.keys():
        old, new = before[key], after[key]
        assert (new.updated_at, new.accessed_at, new.asserted_at) == (old.updated_at, old.accessed_at, old.asserted_at)
        assert new.access_count >= old.access_count
    expired = {row.id for row in rows if row.expires_at is not None}
    own = frozenset(row.id for row in rows if row.scope == scope and row.id not in expired)
    assert lost_sources(store, scope, NOW, own) == {}
    again = world.tend(cadence, scope)
    assert again.changed == 0
    assert picture(store) == (after, edges)
    store.close()


@SLOW
@given(trees(), st.integers(0, 60))
def test_a_dry_run_tells_the_first_phases_work_and_changes_nothing(rows, minutes):
    store = planted(rows)
    scope, before = rows[0].scope, picture(store)
    world = World(store)
    at = NOW + timedelta(minutes=minutes)
    planned = world.tend("nightly", scope, at=at, dry_run=True)
    assert picture(store) == before
    done = world.tend("nightly", scope, at=at)
    assert [phase.name for phase in planned.phases] == [phase.name for phase in done.phases]
    first, real = planned.phases[0], done.phases[0]
    assert replace(first, milliseconds=0) == replace(real, milliseconds=0)
    store.close()
