"""Faults that users report: loops without progress (K6), only turns checked (K8), one message larger than everything (K9),
the task lost (K11), the cache destroyed (K13), merging and running twice (K15)."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from wakeful import AgentMemory, Window, WindowManager, compact
from wakeful.compaction.archive import is_summary
from wakeful.compaction.shorten import is_shortened
from wakeful.dialects import get
from wakeful.dialects.protocol import Text, ToolResult, ToolUse
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
    random_conversation,
)
from wakeful.testing.promises import assert_promises

STRATEGIES = ("oldest_first", "sliding_window", "clear", "ladder")


def fixed(messages: list[Any], dialect: str, **options: Any) -> Any:
    options = {"reserve": 0, **options}
    done = compact(messages, dialect=dialect, **options)
    assert_promises(messages, done, again=lambda m: compact(m, dialect=dialect, **options), dialect=dialect)
    return done


def step(i: int, text: str = "") -> list[Step]:
    body = text or f"part {i}: " + "value " * 80
    return [Assistant("", (Call(f"c{i}", "read", {"part": i}),)), Results((Result(f"c{i}", "read", body),))]


def loop(rounds: int, text: str = "") -> list[Step]:
    return [s for i in range(rounds) for s in step(i, text)]


def texts(dialect: str, messages: list[Any]) -> list[str]:
    return [b.text for m in messages for b in get(dialect).read(m).blocks if isinstance(b, Text)]


def summaries(dialect: str, messages: list[Any]) -> list[str]:
    return [text for text in texts(dialect, messages) if is_summary(text)]


# -- K6 -----------------------------------------------------------------------------------------------------------

K6: dict[str, tuple[list[Step], int]] = {
    "the kept tail alone is above the trigger": ([User("Go."), *loop(3, "x" * 4_000)], 2_500),
    "a tiny history in a tinier window": ([User("Go."), Assistant("Ok."), User("On."), Assistant("Ok.")], 12),
    "nothing but what people wrote": ([User("word " * 300), Assistant("word " * 300), User("word " * 300)], 500),
    "one user's message and nothing else": ([User("word " * 500)], 100),
    "rounds too small to clear": ([User("Go."), *loop(60, "ok")], 300),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("case", K6)
def test_a_compaction_makes_progress_or_says_why_not_and_never_twice(dialect: str, strategy: str, case: str) -> None:
    steps, window = K6[case]
    done = fixed(conversation(dialect, *steps), dialect, window=window, strategy=strategy)
    assert done.meta.compacted or done.meta.reason in ("fits", "nothing_to_drop")
    assert done.meta.compacted or done.meta.reason == "fits" or done.meta.over_budget or done.plan.budget.trigger < 1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_second_trigger_without_new_content_does_nothing(strategy: str) -> None:
    window = Window(window=1_500, reserve=0, strategy=strategy)
    messages = conversation("openai_chat", User("Go."), *loop(40))
    first = window.fit(messages)
    assert first.meta.compacted
    for _ in range(3):
        assert not window.fit(messages).meta.compacted
        assert window.fit(first.messages).messages is first.messages
    assert window.compactions == 1


def test_usage_of_the_request_before_a_compaction_starts_no_second_one() -> None:
    window = Window(window=1_500, reserve=0, strategy="oldest_first")
    messages = conversation("openai_chat", User("Go."), *loop(40))
    first = window.fit(messages)
    window.observe(first.meta.tokens_before)
    assert not window.fit(messages).meta.compacted


def test_after_a_compaction_there_is_room_for_a_while() -> None:
    window = Window(window=4_000, reserve=0)
    whole = conversation("openai_chat", User("Go."), *loop(200))
    at = [stop for stop in range(3, len(whole) + 1, 2) if window.fit(whole[:stop]).meta.compacted]
    gaps = [b - a for a, b in pairwise(at)]
    assert gaps
    assert min(gaps) >= 8


# -- K8 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("strategy", ["ladder", "oldest_first"])
def test_a_long_loop_under_one_user_message_stays_in_its_window_at_every_call(dialect: str, strategy: str) -> None:
    whole = conversation(dialect, User("Read all sixty parts, never touch vendor/."), *loop(60))
    kinds = [get(dialect).weigh(m, lambda *_: 0).kind for m in whole]
    window = Window(window=1_500, reserve=0, strategy=strategy, dialect=dialect)
    for stop in range(1, len(whole) + 1):
        if kinds[stop - 1] != 4:
            continue
        done = window.fit(whole[:stop], mid_round=True)
        assert not done.meta.over_budget
        assert not get(dialect).validate(done.messages)
        assert any("never touch vendor/" in text for text in texts(dialect, done.messages))
    assert window.compactions > 2


# -- K9 -----------------------------------------------------------------------------------------------------------

HUGE = "entry of the log with a value; " * 600
HUGE_JSON = json.dumps({"rows": [{"id": i, "note": "text " * 20} for i in range(200)], "total": 200})


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("content", [HUGE, HUGE_JSON, json.dumps(HUGE), json.dumps([1] * 9_000)])
def test_the_newest_result_keeps_head_and_tail_and_a_pointer_to_the_whole(dialect: str, content: str) -> None:
    messages = conversation(dialect, User("Fetch."), *step(1, "ok"), *step(2, content))
    done = fixed(messages, dialect, window=1_000)
    assert done.meta.over_budget is None
    results = [b for m in done.messages for b in get(dialect).read(m).blocks if isinstance(b, ToolResult)]
    assert is_shortened(results[-1].text)
    assert not results[-1].error
    if content[0] in "[{":
        json.loads(results[-1].text)
    else:
        assert results[-1].text[:12] == content[:12] or dialect == "gemini"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_error_stays_an_error_when_it_is_shortened(dialect: str) -> None:
    flagged = Results((Result("c1", "read", HUGE, error=True),))
    messages = conversation(dialect, User("Fetch."), Assistant("", (Call("c1", "read", {}),)), flagged)
    before = [b.error for m in messages for b in get(dialect).read(m).blocks if isinstance(b, ToolResult)]
    done = fixed(messages, dialect, window=1_000)
    assert [b.error for m in done.messages for b in get(dialect).read(m).blocks if isinstance(b, ToolResult)] == before


@pytest.mark.parametrize("dialect", DIALECTS)
def test_huge_arguments_of_the_open_call_are_shortened_and_stay_an_object(dialect: str) -> None:
    write = Assistant("", (Call("c1", "write", {"path": "a.txt", "text": HUGE}),))
    messages = conversation(dialect, User("Write."), write, Results((Result("c1", "write", "ok"),)))
    done = fixed(messages, dialect, window=1_000)
    assert done.meta.over_budget is None
    (use,) = [b for m in done.messages for b in get(dialect).read(m).blocks if isinstance(b, ToolUse)]
    assert use.arguments["path"] == "a.txt"
    assert is_shortened(use.arguments["text"])


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_user_message_that_is_too_large_is_said_so_and_never_cut(dialect: str, strategy: str) -> None:
    messages = conversation(dialect, User("word " * 3_000))
    done = fixed(messages, dialect, window=1_000, strategy=strategy)
    assert done.messages is messages
    assert done.meta.over_budget is True
    assert done.meta.floor_tokens is not None
    assert done.meta.floor_tokens > 1_000


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_large_new_result_is_shortened_also_when_the_old_one_can_not_be(dialect: str) -> None:
    messages = conversation(dialect, User("Go."), *step(1, "tiny"), *step(2, HUGE))
    done = fixed(messages, dialect, window=800, keep_recent=10)
    assert done.meta.over_budget is None


# -- K11 ----------------------------------------------------------------------------------------------------------

RULE = 'Task B: tidy the parser. Rule: never touch vendor/ and keep "tests/golden" as it is.'


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("strategy", ["ladder", "oldest_first", "sliding_window"])
def test_the_task_in_hand_stands_verbatim_behind_the_summary(dialect: str, strategy: str) -> None:
    steps = [
        System("You are the engineer on call."),
        User("Task A: fix the build."),
        *loop(6),
        Assistant("Task A is done."),
    ]
    messages = conversation(dialect, *steps, User(RULE), *[s for i in range(100, 140) for s in step(i)])
    done = fixed(messages, dialect, window=1_500, strategy=strategy)
    shown = texts(dialect, done.messages)
    assert shown.count(RULE) == 1
    for summary in summaries(dialect, done.messages):
        assert shown.index(summary) < shown.index(RULE)
        assert shown[-1] != summary or len(done.messages) > 2
    if get(dialect).facts.system_in_messages:
        assert done.messages[0] is messages[0]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_summary_is_never_the_last_message(dialect: str) -> None:
    for seed in range(4):
        done = fixed(random_conversation(dialect, seed, 10), dialect, window=500, keep_recent=0)
        last = get(dialect).read(done.messages[-1]).blocks
        assert not (len(last) == 1 and isinstance(last[0], Text) and is_summary(last[0].text))


# -- K13 ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("strategy", ["ladder", "clear", "oldest_first"])
def test_few_calls_break_the_cache(dialect: str, strategy: str) -> None:
    whole = conversation(dialect, User("Go."), *loop(80))
    kinds = [get(dialect).weigh(m, lambda *_: 0).kind for m in whole]
    window = Window(window=6_000, reserve=0, strategy=strategy, dialect=dialect)
    broken, calls, before = 0, 0, []
    for stop in range(1, len(whole) + 1):
        if kinds[stop - 1] != 4:
            continue
        shown = [get(dialect).dumps(m) for m in window.fit(whole[:stop]).messages]
        calls += 1
        broken += shown[: len(before)] != before
        before = shown
    assert broken == window.compactions
    assert 0 < broken <= calls / 8


def test_placeholders_and_summaries_are_the_same_bytes_every_time() -> None:
    messages = conversation("anthropic", User("Go."), *loop(60))
    one, other = (compact(list(messages), window=1_500, reserve=0).messages for _ in range(2))
    assert one == other


# -- K15 ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_summary_before_is_folded_in_and_exactly_one_remains(dialect: str) -> None:
    window = Window(window=2_000, reserve=0, dialect=dialect)
    facts: list[Step] = [User("Keep the order ORD-77120 in mind."), *step(0)]
    steps: list[Step] = [*facts, Assistant("Noted."), User("Go on.")]
    whole = conversation(dialect, *steps, *[s for i in range(1, 80) for s in step(i)])
    kinds = [get(dialect).weigh(m, lambda *_: 0).kind for m in whole]
    for stop in range(1, len(whole) + 1):
        if kinds[stop - 1] == 4:
            done = window.fit(whole[:stop])
            assert len(summaries(dialect, done.messages)) <= 1
    assert window.compactions > 2
    assert len(summaries(dialect, done.messages)) == 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_summary_before_is_reported_as_dropped_when_it_is_folded(dialect: str) -> None:
    manager = WindowManager("ladder", reserve=0, dialect=dialect)
    whole = conversation(dialect, User("First."), Assistant("Ok."), User("Go."), *loop(120))

    class Acc:
        def __init__(self, memory: AgentMemory) -> None:
            self.memory = memory

    acc = Acc(AgentMemory.of(whole[:60]))
    seen: list[str] = []
    for message in [None, *whole[60:]]:
        if message is not None:
            acc = Acc(acc.memory.add_message(message))
        acc, meta = manager.maybe_compact(acc, {"window": 2_500})  # type: ignore[misc]
        seen += [entry.id for entry in meta.dropped or ()]
    assert len(seen) == len(set(seen))
    assert len(summaries(dialect, acc.memory.history())) <= 1


@pytest.mark.parametrize("strategy", ["ladder", "clear", "oldest_first"])
def test_what_was_there_can_be_had_back_though_the_callers_list_has_changed(strategy: str) -> None:
    messages = conversation("openai_chat", User("Go."), *loop(40))
    before = list(messages)
    done = compact(messages, window=1_500, reserve=0, strategy=strategy)
    messages[:] = done.messages
    assert done.undo() == before
    assert all(d.message is before[d.position] for d in done.dropped)
    assert len({d.id for d in done.dropped}) == len(done.dropped)
