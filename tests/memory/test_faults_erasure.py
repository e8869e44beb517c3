"""What consolidation made of a memory goes with it: export shows all of it, and erasure leaves none of it in any file."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from wakeful import Memory, MemoryNode, MemoryScope, Turn
from wakeful.needs import ChatRequest
from wakeful.ops import PutState
from wakeful.records import Source
from wakeful.testing import ScriptedModel

from .conftest import START, Clock, Opener

MARK = "zqplanted"
"""Stands in everything that is said of the person, and nowhere else."""
NEIGHBOUR = MemoryScope.parse("org:acme/user:ben")


def reply(request: ChatRequest) -> str:
    """Answer each kind of question that a cycle asks, with the mark in every answer."""
    wanted = dict(request.schema or {}).get("properties", {})
    if "sentences" in wanted:
        text = f"The digest speaks of {MARK} and of orders {', '.join(f'A-{number}' for number in range(10))}."
        return json.dumps({"sentences": [{"text": text, "turns": [0]}]})
    if "clusters" in wanted:
        return json.dumps({"clusters": [{"cluster": 0, "sentence": f"It is all about {MARK}."}]})
    if "facts" in wanted:
        return json.dumps({"facts": []})
    return json.dumps({"rulings": [{"pair": at, "verdict": "same", "reason": f"both say {MARK}"} for at in range(20)]})


def fill(memory: Memory, scope: MemoryScope) -> None:
    """Give every phase of a full cycle something to make."""

    def say(text: str, session: str, hours: float, **values: object) -> None:
        turn = Turn(text, speaker="Ana", at=START - timedelta(hours=hours), session=session)
        memory.remember(scope, [turn], extract=False, **values)  # type: ignore[arg-type]

    for number in range(10):
        say(
            f"Well, about order A-{number} of {MARK}: we talked at length of nothing much at all. " * 3,
            "old",
            900 - number,
        )
    for number in range(6):
        say(f"again Clara {MARK.title()} painted picture {number}", f"s{number % 2}", 2)
        say(f"we never eat {MARK} fish", f"s{number % 2}", 3 + number / 100)
    for number in range(3):
        for minute, tool in enumerate((f"look{MARK}", f"mend{MARK}")):
            at, source = START - timedelta(minutes=60 - minute), Source(session=f"t{number}", by="tool")
            node = MemoryNode.new(scope=scope, layer="episodic", content=f"{tool} {number}", at=at, source=source,
                                  properties={"tool": tool, "ok": True})  # fmt: skip
            memory.remember(scope, node)
    for text in (f"the {MARK} door sticks", f"{MARK} doors really stick", f"the {MARK} gate creaks loudly today",
                 f"the {MARK} gate creaks noisily today"):  # fmt: skip
        memory.remember(scope, text, label="note", extract=False)
    memory.remember(scope, f"Ana wants {MARK} units", label="preference", extract=False)
    memory.remind(scope, f"call {MARK}", at=START + timedelta(days=1))
    memory.note(scope, f"working on {MARK}")
    memory.store.execute((PutState(scope, f"kept {MARK}", {"text": MARK}),))


@pytest.fixture
def tended(open_memory: Opener, scope: MemoryScope, clock: Clock) -> Memory:
    memory = open_memory(model=ScriptedModel(reply))
    memory.remember(NEIGHBOUR, "Ben likes tea", extract=False)
    fill(memory, scope)
    memory.recall(scope, f"the {MARK} door", k=1)
    report = memory.consolidate(scope, "deep_sleep")
    assert report.errors == {}
    changed = {phase.name for phase in report.phases if phase.changed}
    made = {"cooccurrence", "entity_links", "merge", "episodic_summary", "meta_nodes", "promote", "profile"}
    assert changed >= made
    assert report.spending[0].calls >= 3
    clock.go(hours=1)
    return memory


def places(url: str) -> list[str]:
    """Where the mark is found: the store's files, or PostgreSQL's tables."""
    if url.startswith("sqlite"):
        folder = Path(url.removeprefix("sqlite:///")).parent
        files = [file for file in folder.rglob("*") if file.is_file()]
        return [file.name for file in files if MARK.encode() in file.read_bytes().lower()]
    import psycopg

    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname NOT IN "
            "('pg_catalog', 'information_schema')"
        ).fetchall()
        return [
            table
            for (table,) in tables
            if connection.execute(
                f"SELECT 1 FROM {table} AS t WHERE t::text ILIKE %s LIMIT 1", (f"%{MARK}%",)
            ).fetchone()
        ]


def test_an_export_holds_all_that_consolidation_made(tended: Memory, scope: MemoryScope) -> None:
    export = tended.export(scope)
    labels = {node.label for node in export.nodes()}
    assert labels >= {"digest", "cluster", "entity", "fact", "profile", "note"}
    assert {node.status for node in export.nodes()} == {"active", "draft", "retracted"}
    assert {edge.relation for edge in export.edges()} >= {"CO_OCCURS", "MENTIONS", "PART_OF"}
    assert {change.action for change in export.changes()} >= {"merge"}
    assert any("judged" in change.reason for change in export.changes())
    copied = Memory.open("memory://", embedder=False, clock=tended._clock)
    copied.import_(scope, export)
    assert {node.id for node in copied.export(scope).nodes()} == {node.id for node in export.nodes()}
    assert {edge.id for edge in copied.export(scope).edges()} == {edge.id for edge in export.edges()}


def test_nothing_that_consolidation_made_is_in_any_file_after_an_erasure(
    tended: Memory, scope: MemoryScope, place: str
) -> None:
    lasting = not place.startswith("memory")
    if lasting:
        assert places(place)
    receipt = tended.erase(scope)
    assert receipt.remaining == 0
    if lasting:
        assert places(place) == []
    assert MARK not in tended.export(scope)
    assert tended.recall(scope, MARK).hits == ()
    assert [hit.node.content for hit in tended.recall(NEIGHBOUR, "tea")] == ["Ben likes tea"]


def rows(memory: Memory, scope: MemoryScope) -> list[MemoryNode]:
    return list(memory.export(scope).nodes())


def test_forgetting_a_digested_turn_takes_the_digest_and_brings_the_other_turns_back(
    tended: Memory, scope: MemoryScope
) -> None:
    turn = next(node for node in rows(tended, scope) if "order A-3" in node.content and node.status == "retracted")
    gone = tended.forget(scope, turn.id)
    assert {turn.id, turn.superseded_by} <= set(gone.ids)
    assert len(gone.restored) == 9
    assert "A-3" not in tended.export(scope)
    assert {node.status for node in rows(tended, scope) if node.id in gone.restored} == {"active"}
    tended.consolidate(scope, "nightly")
    digests = [node for node in rows(tended, scope) if node.label == "digest"]
    assert [set(node.source.entries) for node in digests] == [set(gone.restored)]


def test_forgetting_a_fact_takes_the_copies_that_were_merged_into_it(tended: Memory, scope: MemoryScope) -> None:
    head = next(node for node in rows(tended, scope) if "door" in node.content and node.status == "active")
    gone = tended.forget(scope, head.id)
    assert len(gone.ids) >= 2
    assert "door" not in tended.export(scope)


def test_forgetting_a_copy_leaves_the_fact_that_says_the_same(tended: Memory, scope: MemoryScope) -> None:
    copy = next(node for node in rows(tended, scope) if "door" in node.content and node.status == "retracted")
    gone = tended.forget(scope, copy.id)
    assert gone.ids == (copy.id,)
    assert gone.kept == (copy.superseded_by,)
    assert copy.id not in tended.export(scope)


def test_forgetting_what_names_a_thing_takes_the_thing_when_nothing_else_names_it(
    tended: Memory, scope: MemoryScope
) -> None:
    name = f"Clara {MARK.title()}"
    named = [node for node in rows(tended, scope) if node.layer == "episodic" and name in node.content]
    assert len(named) == 6
    first = tended.forget(scope, named[0].id)
    left = {node.label: node for node in rows(tended, scope) if node.content.startswith(name)}
    assert set(left) == {"entity"}
    assert named[0].id not in left["entity"].source.entries
    assert len(first.ids) == 2
    for node in named[1:]:
        tended.forget(scope, node.id)
    assert name not in tended.export(scope)


def test_forgetting_a_preference_takes_its_line_out_of_the_profile(tended: Memory, scope: MemoryScope) -> None:
    tended.remember(scope, "Ana wants a window seat", label="preference", extract=False)
    tended.consolidate(scope, "nightly")
    wanted = next(node for node in rows(tended, scope) if node.label == "preference" and MARK in node.content)
    tended.forget(scope, wanted.id)
    (profile,) = (node for node in rows(tended, scope) if node.label == "profile")
    assert profile.content == "Ana wants a window seat"
    assert wanted.id not in profile.source.entries


def test_a_promoted_fact_stays_until_the_last_statement_of_it_is_forgotten(tended: Memory, scope: MemoryScope) -> None:
    said = [node for node in rows(tended, scope) if "fish" in node.content and node.layer == "episodic"]
    (fact,) = (node for node in rows(tended, scope) if node.label == "fact")
    for node in said[:-1]:
        assert tended.forget(scope, node.id).kept == (fact.id,)
    assert fact.id in tended.forget(scope, said[-1].id).ids
    assert "fish" not in tended.export(scope)
