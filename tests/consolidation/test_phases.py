"""Each phase does what its first line says, once, and to rows of its own scope alone."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tending_world import ANA, NOW, memory

from wakeful.consolidation.phases.entity_links import entity_id
from wakeful.consolidation.phases.profile import profile_id
from wakeful.ops import GetEdges, GetState, History, PutEdges, PutState, QueryNodes, Touch, Visibility
from wakeful.records import MemoryEdge, MemoryScope, Source


def alive(world, scope=ANA, **values):
    query = QueryNodes(scope=scope, visibility=Visibility(at=world.now, **values), limit=None)
    return {node.id for node in world.store.execute((query,))[0]}


def edges(world, name, relation):
    return world.store.execute((GetEdges(ANA, (name,), relation),))[0]


def test_use_raises_importance_once_and_saturates(world):
    world.put(memory("a"), memory("b"))
    world.store.execute((Touch(ANA, ("a",), NOW - timedelta(minutes=5)),))
    assert world.phase("strengthen").changed == 1
    raised = world.get("a").importance
    assert 5 < raised < 10
    assert world.get("b").importance == 5
    assert world.phase("strengthen").changed == 0
    assert world.get("a").importance == raised
    for _ in range(200):
        world.store.execute((Touch(ANA, ("a",), NOW),))
    world.now = NOW + timedelta(hours=1)
    world.tend(at=world.now)
    assert raised < world.get("a").importance <= 10


def test_what_was_asserted_together_is_linked_and_the_degree_is_capped(world):
    world.put(
        *(memory(f"n{i}", hours=1 + i / 3600, session="s") for i in range(40)), memory("alone", hours=9, session="s")
    )
    assert world.phase("cooccurrence").changed > 0
    assert edges(world, "alone", "CO_OCCURS") == ()
    degrees = [len(edges(world, f"n{i}", "CO_OCCURS")) for i in range(40)]
    assert max(degrees) <= 6
    assert world.phase("cooccurrence").changed == 0


def test_sessions_are_not_mixed(world):
    world.put(memory("a", session="s1"), memory("b", session="s2"))
    world.tend()
    assert edges(world, "a", "CO_OCCURS") == ()


def test_an_entity_becomes_a_node_when_two_episodes_name_it(world):
    world.put(
        memory("e1", "we met Clara Jensen today", layer="episodic"),
        memory("e2", "then Clara Jensen left", layer="episodic"),
        memory("e3", "nobody saw Peter Onceler", layer="episodic"),
    )
    world.tend()
    key = entity_id(ANA, "Clara Jensen")
    assert world.get(key).content == "Clara Jensen"
    assert {edge.source_id for edge in edges(world, key, "MENTIONS")} == {"e1", "e2"}
    assert entity_id(ANA, "Peter Onceler") not in alive(world)
    assert world.phase("entity_links").changed == 0


def test_pending_pairs_become_edges_and_are_used_up(world):
    world.put(memory("a"), memory("b"))
    world.store.execute((PutState(ANA, "pending_edges", [["a", "b", 3], ["a", "gone", 1]]),))
    assert world.phase("pending_edges").changed == 1
    (edge,) = edges(world, "a", "RELATED_TO")
    assert edge.weight == pytest.approx(1 - 0.8**3)
    assert world.store.execute((GetState(ANA, "pending_edges"),))[0] is None


def test_a_reminder_that_was_shown_is_not_strengthened(world):
    world.put(memory("r", layer="prospective", properties={"due_at": NOW.isoformat()}))
    world.store.execute((Touch(ANA, ("r",), NOW - timedelta(minutes=5)),))
    assert world.phase("strengthen").changed == 0


def city(name, value, hours, **values):
    properties = {"subject": "Ana", "attribute": "city", "value": value, "exclusive": True}
    return memory(name, f"Ana lives in {value}", hours=hours, properties=properties, **values)


def test_the_later_fact_is_current_whatever_arrived_first(world):
    world.put(city("rome", "Rome", 1), city("oslo", "Oslo", 20), memory("other", "Bo lives in Bergen"))
    assert world.phase("supersede").changed == 1
    old = world.get("oslo")
    assert old.superseded_by == "rome"
    assert old.valid_until == world.get("rome").asserted_at
    assert alive(world) >= {"rome", "other"}
    assert "oslo" not in alive(world)
    actions = [change.action for change in world.store.execute((History(ANA, "oslo"),))[0]]
    assert "supersede" in actions
    assert world.phase("supersede").changed == 0


def test_only_the_same_subject_and_attribute_can_retire_each_other(world):
    world.put(
        *(
            city(
                f"c{i}",
                f"City{i}",
                i + 1,
            )
            for i in range(1)
        )
    )
    world.put(*(
        memory(f"u{i}", f"fact {i}", properties={"subject": f"S{i}", "attribute": "city", "value": i, "exclusive": True})
        for i in range(50)
    ))  # fmt: skip
    assert world.phase("supersede").changed == 0


def test_each_value_keeps_its_interval_and_the_reason_names_its_heir(world):
    world.put(city("oslo", "Oslo", 20), city("rome", "Rome", 10), city("oslo again", "Oslo", 1))
    assert world.phase("supersede").changed == 2
    assert (world.get("oslo").superseded_by, world.get("rome").superseded_by) == ("rome", "oslo again")
    assert world.get("oslo").valid_until == world.get("rome").asserted_at
    assert world.get("rome").valid_until == world.get("oslo again").asserted_at
    reasons = [each.reason for each in world.store.execute((History(ANA, "rome"),))[0] if each.action == "supersede"]
    assert reasons == ["another city of ana holds since 2026-03-01 (oslo again)"]


def test_facts_of_one_time_and_facts_that_are_not_exclusive_stand_side_by_side(world):
    many = {"subject": "Ana", "attribute": "likes", "kind": "preference"}
    world.put(
        city("a", "Rome", 2), city("b", "Oslo", 2),
        memory("tea", hours=5, properties={**many, "value": "tea"}),
        memory("coffee", hours=1, properties={**many, "value": "coffee"}),
    )  # fmt: skip
    assert world.phase("supersede").changed == 0


def test_a_denied_taste_retires_the_taste(world):
    likes = {"subject": "Ana", "attribute": "likes", "value": "tea", "kind": "preference"}
    world.put(memory("yes", "Ana likes tea", hours=5, properties=likes),
              memory("no", "Ana does not like tea", hours=1, properties={**likes, "negated": True}))  # fmt: skip
    assert world.phase("supersede").changed == 1
    assert world.get("yes").superseded_by == "no"


def test_what_came_from_outside_retires_nothing_that_was_said(world):
    world.put(city("said", "Oslo", 20), city("web", "Rome", 1, source=Source(by="tool", trust="low")))
    assert world.phase("supersede").changed == 0
    world.put(city("moved", "Bergen", 0.5))
    assert world.phase("supersede").changed == 2


@pytest.mark.parametrize(
    ("left", "right", "merges"),
    [
        ("Ana likes tea.", "ana likes TEA", True),
        ("Caf\u00e9 at noon", "Cafe\u0301 at noon", True),
        ("the red door sticks", "Red doors really stick", True),
        (
            "the walls of the kitchen in the house at the lake shall be red",
            "the walls of the kitchen in the house at the lake shall be blue",
            False,
        ),
        (
            "the meeting on the second floor of the old town hall is on",
            "the meeting on the second floor of the old town hall is cancelled",
            False,
        ),
        ("she flew from here to there", "she flew to here from there", False),
        ("she was the head of it", "she is the head of it", False),
        ("meeting at 3 pm", "meeting at 3:30 pm", False),
        ("Ana likes fish", "Ana does not like fish", False),
        ("uses version 1.2", "uses version 1.20", False),
        ("the trip of 2024 was good", "the trip of 2026 was good", False),
        ("we met Clara there", "we met Peter there", False),
    ],
)
def test_duplicates_merge_and_numbers_negations_dates_and_names_keep_facts_apart(world, left, right, merges):
    world.put(memory("old", left, hours=2), memory("new", right, hours=1))
    assert (world.phase("merge").changed > 0) is merges
    assert alive(world) == ({"old"} if merges else {"old", "new"})
    if merges:
        assert world.get("new").superseded_by == "old"
        assert "new" in world.get("old").source.entries
    assert world.phase("merge").changed == 0


def test_merging_is_by_star_and_counts_are_added_up(world):
    world.put(*(memory(f"d{i}", "Ana likes tea" + "!" * i, hours=9 - i, access_count=i) for i in range(5)))
    world.tend()
    assert alive(world) == {"d0"}
    assert {world.get(f"d{i}").superseded_by for i in range(1, 5)} == {"d0"}
    assert world.get("d0").access_count == 10
    assert world.get("d0").properties["times_said"] == 5


def test_idle_nodes_fade_a_step_at_each_threshold_and_no_clock_fades_twice(world):
    world.put(
        memory("idle", hours=24 * 31), memory("fresh", hours=24 * 5), memory("pinned", hours=24 * 31, pinned=True),
        memory("me", label="identity", hours=24 * 31),
    )  # fmt: skip
    before = world.get("idle")
    assert world.phase("decay").changed == 1
    after = world.get("idle")
    assert after.importance == pytest.approx(1 + (before.importance - 1) * 0.8)
    assert (after.updated_at, after.accessed_at) == (before.updated_at, before.accessed_at)
    assert world.phase("decay").changed == 0
    world.now = NOW + timedelta(days=1)
    assert world.phase("decay", at=world.now).changed == 0
    world.now = NOW + timedelta(days=30)
    assert world.phase("decay", at=world.now).changed == 2
    assert world.get("idle").importance < after.importance


def test_expired_nodes_are_retired_and_working_memory_is_deleted(world):
    gone = NOW - timedelta(minutes=1)
    world.put(
        memory("fact", expires_at=gone), memory("scratch", layer="working", expires_at=gone),
        memory("later", expires_at=NOW + timedelta(hours=1)),
    )  # fmt: skip
    assert world.phase("expire").changed == 2
    assert world.get("fact").status == "retracted"
    assert alive(world, statuses=("active", "draft", "retracted"), superseded=True, expired=True) == {"fact", "later"}
    assert world.phase("expire").changed == 0


def old_session(count=10, name="talk"):
    return [
        memory(
            f"{name}{i}",
            f"Well, about order A-10{i}: it was a long and quiet day, and we talked at length about nothing new at all. "
            "It was a long and quiet day, and we talked at length about nothing new at all, as we often do.",
            hours=24 * 40 - i / 60,
            layer="episodic",
            session=name,
        )
        for i in range(count)
    ]


def test_an_old_session_is_digested_and_its_turns_point_to_the_digest(world):
    world.put(*old_session())
    report = world.phase("episodic_summary")
    assert report.changed >= 0
    sources = [world.get(f"talk{i}") for i in range(10)]
    digests = {node.superseded_by for node in sources}
    if None in digests:
        assert all(node.status == "active" for node in sources)
        assert "left as it is" in report.notes[0]
        return
    (digest,) = (world.get(key) for key in digests)
    assert all(f"A-10{i}" in digest.content for i in range(10))
    assert set(digest.source.entries) == {node.id for node in sources}
    assert world.phase("episodic_summary").changed == 0


def test_a_cluster_gets_a_parent_that_follows_its_members(world):
    world.put(*(memory(f"e{i}", f"again Clara Jensen painted picture {i}", layer="episodic") for i in range(5)))
    assert world.phase("meta_nodes").changed == 2
    parents = {i for i in alive(world) if i.startswith("cl-")}
    (parent,) = parents
    assert "Clara Jensen" in world.get(parent).content
    assert world.phase("meta_nodes").changed == 0
    world.put(memory("e9", "and Clara Jensen painted more", layer="episodic", hours=0.5))
    assert world.phase("meta_nodes").changed == 2
    assert "6 notes" in world.get(parent).content


def test_a_statement_said_in_several_sessions_becomes_a_fact(world):
    said = [memory(f"e{i}", "I never eat any fish", layer="episodic", session=f"s{i % 2}") for i in range(3)]
    world.put(*said, *(memory(f"q{i}", "do you hear me?", layer="episodic", session=f"s{i}") for i in range(3)))
    report = world.phase("promote")
    assert report.changed == 1
    (fact,) = (node for node in alive(world) if node.startswith("fa-"))
    assert set(world.get(fact).source.entries) == {"e0", "e1", "e2"}
    assert world.phase("promote").changed == 0


def test_a_successful_pattern_becomes_a_draft_and_low_trust_promotes_nothing(world):
    def step(name, tool, session, minute, **values):
        return memory(name, tool, layer="episodic", hours=2 - minute / 60, properties={"tool": tool, "ok": True},
                      source=Source(session=session, **values))  # fmt: skip

    for i in range(3):
        world.put(step(f"a{i}", "lookup", f"s{i}", 1), step(f"b{i}", "refund", f"s{i}", 2))
        world.put(step(f"c{i}", "x", f"t{i}", 1, trust="low"), step(f"d{i}", "y", f"t{i}", 2, trust="low"))
    world.tend()
    drafts = [world.get(i) for i in alive(world, statuses=("draft",))]
    assert [(node.properties["tool"], node.properties["preconditions"]) for node in drafts] == [("refund", ["lookup"])]


def test_the_profile_follows_corrected_preferences(world):
    world.put(memory("p1", "Ana wants metric units", label="preference"))
    assert world.phase("profile").changed == 1
    key = profile_id(ANA)
    assert world.get(key).content == "Ana wants metric units"
    assert world.get(key).pinned
    assert world.phase("profile").changed == 0
    world.put(memory("p2", "Ana wants imperial units", label="preference", hours=0.5))
    world.tend()
    assert world.get(key).content.splitlines()[-1] == "Ana wants imperial units"


def test_retired_rows_go_after_their_grace_and_history_stays(world):
    long_ago, lately = NOW - timedelta(days=31), NOW - timedelta(days=29)
    world.put(
        memory("gone", status="retracted", superseded_at=long_ago), memory("kept", status="retracted", superseded_at=lately),
        memory("old_fact", superseded_at=long_ago),
    )  # fmt: skip
    assert world.phase("prune").changed == 1
    assert alive(world, statuses=("active", "retracted"), superseded=True) == {"kept", "old_fact"}


def test_a_phase_never_changes_a_row_of_another_scope(world):
    org, bo = MemoryScope.parse("org:acme"), MemoryScope.parse("org:acme/user:bo")
    for scope, name in ((org, "o"), (bo, "b"), (ANA.child("session", "x"), "c")):
        world.put(
            *(memory(f"{name}{i}", "Ana likes tea", scope=scope, hours=24 * 31 * (i % 2) + i, session="s") for i in range(4)),
            memory(f"{name}exp", scope=scope, expires_at=NOW - timedelta(hours=1)),
        )  # fmt: skip
    world.put(memory("mine", "Ana likes tea"))
    before = {
        i: world.get(i, scope) for scope, name in ((org, "o"), (bo, "b")) for i in [f"{name}{k}" for k in range(4)]
    }
    for cadence in ("quick_nap", "nightly", "deep_sleep"):
        world.tend(cadence)
    for name, node in before.items():
        assert world.get(name, node.scope) == node


def test_what_a_copy_was_linked_to_its_head_is_linked_to(world):
    world.put(memory("head", "Ana likes tea", hours=9), memory("copy", "ana likes tea!", hours=1), memory("x"))
    edge = MemoryEdge.new(scope=ANA, source_id="x", target_id="copy", relation="ABOUT", weight=0.7, at=NOW)
    world.store.execute((PutEdges(ANA, (edge,)),))
    world.tend()
    (handed_on,) = edges(world, "head", "ABOUT")
    assert (handed_on.source_id, handed_on.target_id, handed_on.weight) == ("x", "head", 0.7)
    assert world.phase("merge").changed == 0


def test_a_digest_mentions_what_its_turns_mentioned_and_counts_as_one_note(world):
    world.put(
        *(memory(f"t{i}", f"Then Clara Jensen spoke of parcel {i}. " + "We talked of nothing new at all. " * 4,
                 hours=24 * 29.9 - i / 60, layer="episodic", session="old") for i in range(8)),
    )  # fmt: skip
    world.now = NOW - timedelta(days=29.5)
    world.tend(at=world.now)
    key = entity_id(ANA, "Clara Jensen")
    assert len(edges(world, key, "MENTIONS")) == 8
    world.now = NOW + timedelta(days=1)
    world.put(*(memory(f"n{i}", f"again Clara Jensen, {word}", layer="episodic", hours=-20)
                for i, word in enumerate(("hungry", "tired", "merry"))))  # fmt: skip
    world.tend(at=world.now)
    (digest,) = {world.get(f"t{i}").superseded_by for i in range(8)}
    assert digest in {edge.source_id for edge in edges(world, key, "MENTIONS")}
    (parent,) = (world.get(i) for i in alive(world) if i.startswith("cl-"))
    assert "4 notes" in parent.content
