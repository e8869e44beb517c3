"""Faults that users report: calls parted from results (K1), calls still pending (K2), reasoning damaged (K3)."""

from __future__ import annotations

from typing import Any

import pytest

from wakeful import compact
from wakeful.compaction.moves import Repair
from wakeful.compaction.repair import MISSING
from wakeful.dialects import get
from wakeful.dialects.protocol import Thinking, ToolResult, ToolUse
from wakeful.testing.conversations import (
    DIALECTS,
    Assistant,
    Call,
    Result,
    Results,
    Step,
    System,
    User,
    conversation,
)
from wakeful.testing.promises import assert_promises

STRATEGIES = ("oldest_first", "sliding_window", "clear", "ladder")
BIG = "a line of the file; " * 250


def call(*names: str) -> Assistant:
    return Assistant("", tuple(Call(name, f"tool_{name}", {"n": name}) for name in names))


def result(*names: str, text: str = "done") -> Results:
    return Results(tuple(Result(name, f"tool_{name}", text) for name in names))


def chat(n: int) -> list[Step]:
    return [step for i in range(n) for step in (User(f"Question {i}."), Assistant(f"Answer {i}."))]


def fixed(messages: list[Any], dialect: str, **options: Any) -> Any:
    options = {"window": 100_000, "reserve": 0, **options}
    done = compact(messages, dialect=dialect, **options)
    assert_promises(messages, done, again=lambda m: compact(m, dialect=dialect, **options), dialect=dialect)
    return done


def blocks(dialect: str, messages: list[Any], kind: type) -> list[Any]:
    return [b for m in messages for b in get(dialect).read(m).blocks if isinstance(b, kind)]


# -- K1 -----------------------------------------------------------------------------------------------------------

K1: dict[str, list[Step]] = {
    "between the results of three parallel calls": [
        System("You help."), User("Compare."), call("c1", "c2", "c3"),
        Results((Result("c1", "tool_c1", BIG), Result("c2", "tool_c2", "b"), Result("c3", "tool_c3", "c"))),
        Assistant("Compared."), User("And now?"),
    ],
    "between a call and its result": [User("Read."), call("c1"), result("c1", text=BIG), Assistant("Read."), *chat(6)],
    "where the first kept message would be a result": [
        User("Read."), *[s for i in range(8) for s in (call(f"c{i}"), result(f"c{i}", text=BIG[:400]))], User("Go on."),
    ],
    "where no user stands before the first kept call": [
        Assistant("Welcome."),
        *[s for i in range(8) for s in (call(f"c{i}"), result(f"c{i}", text=BIG[:400]))],
        User("Go on."),
    ],
    "many calls for one user's message": [
        User("Do it all."), *[s for i in range(30) for s in (call(f"a{i}", f"b{i}"), result(f"a{i}", f"b{i}"))],
    ],
}  # fmt: skip


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("case", K1)
def test_a_call_and_its_results_move_as_one_wherever_the_cut_falls(dialect: str, strategy: str, case: str) -> None:
    messages = conversation(dialect, *K1[case])
    weights = [get(dialect).weigh(m, lambda t, _: len(t) // 4).tokens for m in messages]
    step = 1 + len(weights) // 16
    for window in {max(30, sum(weights[i:])) for i in range(0, len(weights), step)}:
        done = fixed(messages, dialect, window=window, strategy=strategy, keep_recent=1)
        uses = [use.id for use in blocks(dialect, done.messages, ToolUse)]
        results = [r.call_id for r in blocks(dialect, done.messages, ToolResult)]
        assert sorted(uses) == sorted(results), "each result exactly once"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_round_that_alone_is_over_budget_keeps_its_structure_and_loses_content(dialect: str) -> None:
    messages = conversation(dialect, User("Compare."), call("c1", "c2"), Results((
        Result("c1", "tool_c1", BIG * 3), Result("c2", "tool_c2", "small")
    )))  # fmt: skip
    done = fixed(messages, dialect, window=600)
    assert done.meta.over_budget is None
    assert len(blocks(dialect, done.messages, ToolUse)) == len(blocks(dialect, done.messages, ToolResult)) == 2
    assert "small" in [r.text for r in blocks(dialect, done.messages, ToolResult)]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_under_budget_nothing_is_touched(dialect: str, strategy: str) -> None:
    messages = conversation(dialect, System("You help."), User("Read."), call("c1"), result("c1"))
    assert fixed(messages, dialect, strategy=strategy).messages is messages


Breaks: list[tuple[str, list[Step], list[str]]] = [
    ("a result without a call", [User("a"), result("gone"), Assistant("b"), User("c")], ["orphan_result"]),
    ("a call without a result", [User("a"), call("c1"), User("b"), Assistant("c")], ["missing_result"]),
    ("one of two results", [User("a"), call("c1", "c2"), result("c1"), User("b")], ["missing_result"]),
    ("a stranger in a run of results", [User("a"), call("c1"), result("stranger", "c1"), Assistant("b")], ["orphan_result"]),
    ("a result twice", [User("a"), call("c1"), result("c1"), Assistant("b"), result("c1"), User("c")], ["duplicate_result"]),
]  # fmt: skip


@pytest.mark.parametrize("dialect", [d for d in DIALECTS if d != "gemini"])
@pytest.mark.parametrize(("name", "steps", "kinds"), Breaks, ids=[b[0] for b in Breaks])
def test_a_broken_history_is_repaired_and_the_report_says_how(
    dialect: str, name: str, steps: list[Step], kinds: list[str]
) -> None:
    messages = conversation(dialect, *steps, join=False)
    assert get(dialect).validate(messages)
    done = fixed(messages, dialect)
    assert not get(dialect).validate(done.messages)
    assert done.meta.reason == "repaired"
    found = [move.kind for move in done.plan.moves if isinstance(move, Repair)]
    assert set(kinds) <= set(found)


def test_server_tools_stay_paired_inside_their_message() -> None:
    use = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
    answer = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}
    message = {"role": "assistant", "content": [use, answer, {"type": "text", "text": "found"}]}
    messages = [{"role": "user", "content": "search"}, message, *conversation("anthropic", *chat(20))]
    for strategy in STRATEGIES:
        done = fixed(messages, "anthropic", window=200, strategy=strategy)
        kept = [m for m in done.messages if "srv_1" in str(m["content"]) and m["role"] == "assistant"]
        assert all(m is message for m in kept)


# -- K2 -----------------------------------------------------------------------------------------------------------

WAITS = '{"status": "pending"}'


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_call_that_is_still_unanswered_pins_its_round(dialect: str, strategy: str) -> None:
    messages = conversation(dialect, User("Start."), *chat(4), User("Confirm."), call("c1"), *chat(20), join=False)
    done = fixed(messages, dialect, window=300, strategy=strategy, keep_recent=2)
    assert len(blocks(dialect, done.messages, ToolUse)) == 1
    assert [r.text for r in blocks(dialect, done.messages, ToolResult)] == [MISSING] or dialect in ("gemini",)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_call_whose_answer_is_provisional_pins_its_round(dialect: str, strategy: str) -> None:
    messages = conversation(dialect, User("Start."), call("c1"), result("c1", text=WAITS), *chat(20))
    done = fixed(messages, dialect, window=200, strategy=strategy, keep_recent=2)
    assert [use.name for use in blocks(dialect, done.messages, ToolUse)] == ["tool_c1"]


@pytest.mark.parametrize("dialect", [d for d in DIALECTS if d != "gemini"])
def test_the_real_result_replaces_the_provisional_one(dialect: str) -> None:
    steps: list[Step] = [
        User("Start."),
        call("c1"),
        result("c1", text=WAITS),
        User("And?"),
        Assistant("Still running."),
    ]
    steps.append(result("c1", text="finished"))
    done = fixed(conversation(dialect, *steps, join=False), dialect)
    assert [r.text for r in blocks(dialect, done.messages, ToolResult)] == ["finished"]
    assert "late_result" in [move.kind for move in done.plan.moves if isinstance(move, Repair)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_user_who_speaks_between_call_and_result_is_heard_after_it(dialect: str) -> None:
    steps: list[Step] = [
        User("Start."),
        call("c1"),
        User("Still there?"),
        result("c1", text="slow answer"),
        Assistant("Here."),
    ]
    done = fixed(conversation(dialect, *steps, join=False), dialect)
    shown = "".join(get(dialect).dumps(m) for m in done.messages)
    assert shown.index("slow answer") < shown.index("Still there?")
    assert not get(dialect).validate(done.messages)


# -- K3 -----------------------------------------------------------------------------------------------------------


def thoughtful(dialect: str, rounds: int = 12) -> list[Any]:
    steps: list[Step] = [User("Work.")]
    for i in range(rounds):
        steps.append(Assistant("So far.", (Call(f"c{i}", "read", {"i": i}),), f"thought {i}"))
        steps.append(Results((Result(f"c{i}", "read", BIG[:300]),)))
    return conversation(dialect, *steps)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("mid_round", [False, True])
def test_reasoning_is_whole_or_gone_never_half(dialect: str, strategy: str, mid_round: bool) -> None:
    messages = thoughtful(dialect)
    done = fixed(messages, dialect, window=700, strategy=strategy, keep_recent=2, mid_round=mid_round)
    assert done.meta.compacted
    left = blocks(dialect, done.messages, Thinking)
    if get(dialect).facts.thinking in ("all", "items"):
        assert not left
        assert done.meta.thinking_off


def test_ids_that_point_to_reasoning_which_is_gone_go_with_it() -> None:
    done = fixed(thoughtful("openai_responses"), "openai_responses", window=700)
    made = [
        item
        for item in done.messages
        if item.get("type") in ("function_call", "message") and item.get("role") != "user"
    ]
    assert made
    assert not any("id" in item for item in made if item.get("role") != "system")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_reasoning_of_a_history_that_fits_is_the_same_object(dialect: str) -> None:
    messages = thoughtful(dialect, 3)
    assert fixed(messages, dialect).messages is messages
