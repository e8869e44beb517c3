"""Tool calls in what is remembered: a call has its result beside it, whatever was cut off, and both are tended."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from wakeful import Memory, MemoryLayer, MemoryScope
from wakeful.testing.conversations import DIALECTS, Assistant, Call, Result, Results, Step, User, conversation

DAY = datetime(2026, 2, 1, 12, tzinfo=UTC)
NAMES = ("search", "read_file", "send_mail")


def parallel(*texts: str) -> list[Step]:
    """Three calls in one batch, and what they returned."""
    return [
        User("Look the parcel up and write to Ana"),
        Assistant(calls=tuple(Call(f"c{n}", name, {"parcel": f"P-{n}"}) for n, name in enumerate(NAMES))),
        Results(tuple(Result(f"c{n}", NAMES[n], text) for n, text in enumerate(texts))),
        Assistant("It is on its way, and Ana knows."),
    ]


def told(memory: Memory, scope: MemoryScope, messages: list[Any], dialect: str, session: str = "s") -> list[Any]:
    receipt = memory.remember(scope, messages, dialect=dialect, session=session, at=DAY, extract=False)
    return list(receipt.nodes)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_result_stands_beside_its_call_and_is_recalled_as_text(
    memory: Memory, scope: MemoryScope, dialect: str
) -> None:
    nodes = told(memory, scope, conversation(dialect, *parallel("depot zeta", "", "sent quietly")), dialect)
    called = [node for node in nodes if "[calls " in node.content]
    returned = [node for node in nodes if node.source.by == "tool"]
    assert all(any(f"[calls {name} " in node.content for node in called) for name in NAMES)
    assert [node.source.speaker for node in returned] == list(NAMES)
    assert [node.content for node in returned] == ["depot zeta", "[returned no text]", "sent quietly"]
    assert {node.source.trust for node in returned} == {"low"}
    assert max(map(nodes.index, called)) < min(map(nodes.index, returned))
    for asked, text in (("zeta", "depot zeta"), ("quietly", "sent quietly")):
        found = memory.recall(scope, asked, k=1)
        assert found.hits[0].node.content == text
        assert isinstance(found.text, str)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_history_told_in_two_parts_is_the_history_told_at_once(
    memory: Memory, scope: MemoryScope, dialect: str
) -> None:
    messages = conversation(dialect, *parallel("depot zeta", "third shelf", "sent quietly"))
    whole = {node.id for node in told(memory, scope, messages, dialect)}
    other = MemoryScope.parse("org:acme/user:ben")
    told(memory, other, messages, dialect)
    for cut in range(1, len(messages)):
        again = told(memory, scope, messages[:cut], dialect)
        assert {node.id for node in again} <= whole
    assert memory.stats(scope)["nodes"] == len(whole)
    assert memory.stats(other)["nodes"] == len(whole)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_turns_of_tools_alone_are_kept_and_what_works_again_and_again_becomes_a_draft(
    memory: Memory, scope: MemoryScope, dialect: str
) -> None:
    steps: list[Step] = []
    for number, name in enumerate(("search", "send_mail")):
        steps.append(Assistant(calls=(Call(f"c{number}", name, {"n": number}),)))
        steps.append(Results((Result(f"c{number}", name, f"done {number}"),)))
    for session in range(4):
        nodes = told(memory, scope, conversation(dialect, *steps), dialect, f"s{session}")
        assert len(nodes) == 4
    report = memory.consolidate(scope, "nightly", now=DAY)
    assert report.errors == {}
    (skill,) = (node for node in memory.export(scope).nodes() if node.layer is MemoryLayer.PROCEDURAL)
    assert (skill.properties["tool"], skill.properties["preconditions"]) == ("send_mail", ["search"])
    assert skill.status == "draft"
    assert memory.skills(scope) == ()
