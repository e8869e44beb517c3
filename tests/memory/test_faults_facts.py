"""Duplicates, contradictions, time, languages: what becomes of a fact that is said again, or otherwise."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful import Memory, MemoryContractError, MemoryLayer, MemoryNode, MemoryScope, Turn


def day(month: int, number: int = 1, year: int = 2026) -> datetime:
    return datetime(year, month, number, tzinfo=UTC)


def contents(memory: Memory, scope: MemoryScope, query: str, **options: object) -> list[str]:
    return [hit.node.content for hit in memory.recall(scope, query, **options)]  # type: ignore[arg-type]


SAME = (
    "Ana likes green tea",
    "ana likes green tea",
    "Ana likes  green tea.",
    "Ana likes green tea!",
    "Ana likes green tea",
)


def test_the_same_fact_twenty_times_is_one_row_with_a_counter_and_its_sources(
    memory: Memory, scope: MemoryScope
) -> None:
    for number in range(20):
        memory.remember(scope, SAME[number % len(SAME)], ref=f"r{number}")
    assert memory.stats(scope)["nodes"] == 1
    (hit,) = memory.recall(scope, "green tea")
    assert hit.node.properties["times_said"] == 20
    assert set(hit.node.properties["said_in"]) <= {f"r{number}" for number in range(20)}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The meeting starts at 3 pm in the small room", "The meeting starts at 3:30 pm in the small room"),
        ("Ana likes strong coffee", "Ana does not like strong coffee"),
        ("The server runs version 1.2 of the program", "The server runs version 1.20 of the program"),
        ("Alex joined the Payments team in 2024", "Alex joined the Payments team in 2026"),
        ("The party for the whole team is on Monday", "The party for the whole team is on Tuesday"),
        ("The parcel was given to Maria at the front door", "The parcel was given to Marta at the front door"),
        ("会议在三点开始", "会议不在三点开始"),
    ],
)
def test_numbers_negation_dates_and_names_keep_two_facts_apart(
    memory: Memory, scope: MemoryScope, one: str, other: str
) -> None:
    memory.remember(scope, [one], at=day(1), extract=False)
    memory.remember(scope, [other], at=day(1), extract=False)
    assert memory.stats(scope)["nodes"] == 2
    assert set(contents(memory, scope, one)) == {one, other}


def test_merging_is_a_star_around_the_first_wording_and_never_a_chain(memory: Memory, scope: MemoryScope) -> None:
    words = [f"w{c}word" for c in "abcdefghijklmnop"]
    hub, near = " ".join(words[:10]), " ".join([*words[1:10], words[10]])
    far = " ".join(words[2:12])
    for text in (hub, near, far):
        memory.remember(scope, text, extract=False)
    assert memory.stats(scope)["nodes"] == 2
    first = next(hit.node for hit in memory.recall(scope, hub) if hit.node.content == hub)
    assert first.properties["also_said"] == [near]


def test_a_later_value_supersedes_and_the_old_one_keeps_its_interval(memory: Memory, scope: MemoryScope) -> None:
    memory.remember(scope, "Ana lives in Oslo", at=day(1))
    receipt = memory.remember(scope, "Ana moved to Rome", at=day(2, 20))
    assert receipt.written[0].action == "supersede"
    assert contents(memory, scope, "Where does Ana live?") == ["Ana moved to Rome"]
    assert contents(memory, scope, "Where does Ana live?", as_of=day(2)) == ["Ana lives in Oslo"]
    told = [(change.action, change.node.content) for change in memory.history(scope, receipt.ids[0])]
    assert ("supersede", "Ana lives in Oslo") in told
    assert ("add", "Ana moved to Rome") in told


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("I live in Oslo and work as a nurse", "I work as a nurse"),
        ("I work as a nurse, live in Oslo", "I work as a nurse"),
        ("I'm allergic to nuts and live in Oslo", "I'm allergic to nuts"),
        ("I live in Oslo, and I love jazz", "I love jazz"),
        ("I live in Oslo. I love jazz.", "I love jazz."),
        ("I live in Oslo. The cellar is full of jazz records.", "I live in Oslo. The cellar is full of jazz records."),
    ],
)
@pytest.mark.parametrize("as_turn", [True, False])
def test_what_is_said_beside_a_value_is_not_retired_with_it(
    memory: Memory, scope: MemoryScope, said: str, kept: str, as_turn: bool
) -> None:
    memory.remember(scope, [Turn(said, at=day(1))] if as_turn else said, at=day(1))
    memory.remember(scope, "I moved to Rome", at=day(2, 20))
    held = contents(memory, scope, "nurse nuts jazz records Oslo Rome", layers=["semantic"])
    assert "I moved to Rome" in held
    assert "I live in Oslo" not in {text.rstrip(".") for text in held}
    if not (as_turn and kept == said):  # The turn itself keeps what no pattern reads.
        assert kept in held


@pytest.mark.parametrize("said", ["Ana lives in Oslo, Norway", "I like rock and roll", "We decided to wait and see"])
def test_one_thing_said_is_one_fact(memory: Memory, scope: MemoryScope, said: str) -> None:
    assert [each.node.content for each in memory.remember(scope, said, at=day(1)).written] == [said]


@pytest.mark.parametrize("late", ["Ana was in Oslo until Feb", "Ana used to live in Oslo"])
def test_a_late_arrival_about_the_past_does_not_win(memory: Memory, scope: MemoryScope, late: str) -> None:
    memory.remember(scope, "Ana lives in Rome", at=day(2, 20))
    memory.remember(scope, late, at=day(2, 25))
    assert contents(memory, scope, "Where does Ana live?") == ["Ana lives in Rome"]


def test_an_older_statement_that_arrives_late_does_not_win(memory: Memory, scope: MemoryScope) -> None:
    memory.remember(scope, "Ana lives in Rome", at=day(2))
    receipt = memory.remember(scope, "Ana lives in Oslo", at=day(1))
    assert receipt.written[0].node.valid_until == day(2)
    assert contents(memory, scope, "Where does Ana live?") == ["Ana lives in Rome"]
    assert contents(memory, scope, "Where does Ana live?", as_of=day(1, 15)) == ["Ana lives in Oslo"]


def test_unrelated_facts_are_never_retired(memory: Memory, scope: MemoryScope) -> None:
    memory.remember(scope, "Ana lives in Oslo", at=day(1))
    for number in range(50):
        memory.remember(scope, f"Ben{chr(97 + number % 26)}x{number} lives in City{number}", at=day(2))
        memory.remember(scope, f"Ana bought item number {number}", at=day(2))
    assert memory.stats(scope)["superseded"] == 0


def test_a_batch_may_contradict_itself(memory: Memory, scope: MemoryScope) -> None:
    turns = [
        Turn("I live in Oslo.", speaker="Ana", at=day(1), session="a", ref="1"),
        Turn("I moved to Rome.", speaker="Ana", at=day(2), session="b", ref="2"),
    ]
    memory.remember(scope, turns)
    (fact,) = memory.recall(scope, "Ana lives Rome Oslo moved", layers=["semantic"])
    assert fact.node.content == "I moved to Rome."
    assert fact.node.ref == "2"


def test_a_write_that_fails_between_retire_and_insert_changes_nothing(
    memory: Memory, scope: MemoryScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.remember(scope, "Ana lives in Oslo", at=day(1))
    before = str(memory.export(scope))
    from wakeful.ops import Log, PutNodes

    whole = memory.store.execute

    def broken(ops: tuple[object, ...]) -> tuple[object, ...]:
        if any(isinstance(each, PutNodes) for each in ops):
            bad = [Log(each.scope, ({},)) if isinstance(each, Log) else each for each in ops]  # type: ignore[arg-type]
            return whole(bad)  # type: ignore[arg-type]
        return whole(ops)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(memory.store, "execute", broken)
        with pytest.raises((AttributeError, TypeError)):
            memory.remember(scope, "Ana moved to Rome", at=day(2))
    assert str(memory.export(scope)) == before


@pytest.mark.parametrize("hours", [14, -11, 0])
def test_instants_are_kept_in_utc_whatever_the_zone(memory: Memory, scope: MemoryScope, hours: int) -> None:
    at = datetime(2024, 2, 29, 23, 30, tzinfo=timezone(timedelta(hours=hours)))
    (node,) = memory.remember(scope, "a leap day", at=at).nodes
    assert node.asserted_at == at
    assert node.asserted_at.tzinfo is UTC


def test_a_naive_time_is_refused_by_every_verb_that_takes_one(memory: Memory, scope: MemoryScope) -> None:
    naive = datetime(2026, 1, 1)
    for call in (
        lambda: memory.remember(scope, "x y z", at=naive),
        lambda: memory.remember(scope, [Turn("x y z", at=naive)]),
        lambda: memory.recall(scope, "x", as_of=naive),
        lambda: memory.remind(scope, "x", at=naive),
    ):
        with pytest.raises(MemoryContractError, match="naive"):
            call()
    assert memory.stats(scope)["nodes"] == 0


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我们在北京讨论了预算问题", "北京预算"),
        ("東京の会議は水曜日です", "会議"),
        ("내일 서울에서 만나요", "서울"),
        ("ประชุมที่กรุงเทพ", "กรุงเทพ"),
        ("اجتماع في القاهرة", "القاهرة"),
        ("Iğdır'da buluştuk", "ığdır"),
        ("Der Ausschuss tagt in Köln", "köln"),
        ("cafe\u0301 am Markt", "caf\u00e9"),
        ("ｆｕｌｌ ｗｉｄｔｈ letters", "full width"),
        ("party 👩‍👩‍👧 at home", "👩‍👩‍👧"),
        ("written in C++ and node.js", "C++"),
        ("written in C++ and node.js", "node.js"),
        ("order CN-A10293 was sent", "CN-A10293"),
        ("order CN-A10293 was sent", "A10293"),
        ("猫", "猫"),
    ],
)
def test_any_language_is_found_and_kept_verbatim(memory: Memory, scope: MemoryScope, text: str, query: str) -> None:
    memory.remember(scope, "something quite different", extract=False)
    memory.remember(scope, [Turn(text, speaker="x")], extract=False)
    assert contents(memory, scope, query)[0] == text


def test_what_no_store_can_keep_is_cleaned_in_turns_and_refused_in_names(memory: Memory, scope: MemoryScope) -> None:
    turn = Turn("zero\x00byte and \ud800 half", speaker="a\x00b")
    message = {"role": "user", "content": "zero\x00byte and \ud800 \x00half"}
    for what in ([turn], "zero\x00byte and \ud800 \x00half", [message]):
        receipt = memory.remember(scope, what, extract=False)
        assert receipt.nodes[0].content == "zerobyte and \ufffd half"
        assert receipt.notes[0].startswith("3 characters that no store can keep")
    assert {hit.node.content for hit in memory.recall(scope, "half")} == {"zerobyte and \ufffd half"}
    assert memory.remember(scope, "whole", extract=False).notes == ()
    assert memory.remember(scope, [Turn("\x00", speaker="a")], extract=False).ids == ()
    at = memory._clock()
    kept = memory.stats(scope)["nodes"]
    for refused in (
        lambda: MemoryNode.new(scope=scope, layer="semantic", content="a\x00", at=at),
        lambda: MemoryNode.new(scope=scope, layer="semantic", content="a", label="\x00", at=at),
        lambda: memory.remember(scope, "a", properties={"k": ["\x00"]}),
        lambda: memory.remember(scope, "a", session="\x00"),
        lambda: memory.remember(scope, [Turn("first"), Turn("a", ref="\x00")]),
        lambda: memory.remember(scope, [Turn("a", session="\ud800")]),
        lambda: memory.remind(scope, "a", event="\x00"),
        lambda: memory.history(scope, "a\x00"),
        lambda: memory.forget(scope, "a\ud800"),
        lambda: memory.due(scope, event="a\x00"),
    ):
        with pytest.raises(MemoryContractError, match=r"NUL|surrogate"):
            refused()
    assert memory.stats(scope)["nodes"] == kept
    with pytest.raises(MemoryContractError):
        MemoryScope.of(("t", "a\x00"))


@given(st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=6))
def test_turns_are_kept_verbatim_and_giving_them_again_adds_nothing(texts: list[str]) -> None:
    memory = Memory.open("memory://", embedder=False)
    scope = MemoryScope.of(("t", "x"))
    turns = [Turn(text, at=day(1), session="s", ref=str(n)) for n, text in enumerate(texts)]
    from wakeful.memory.extract import clean
    from wakeful.memory.scrub import scrub_text

    first = memory.remember(scope, turns, extract=False)
    again = memory.remember(scope, turns, extract=False)
    assert first.ids == again.ids
    kept = [scrub_text(clean(turn.text))[0] for turn in turns if turn.text.strip()]
    assert [node.content for node in first.nodes] == kept
    assert memory.stats(scope)["nodes"] == len(set(first.ids))
    assert all(node.layer is MemoryLayer.EPISODIC for node in first.nodes)
