"""The promises of ``Window``: call after call, what was seen costs nothing and what was compacted stays so."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful import Window
from wakeful.budgets import TaskBudget
from wakeful.dialects import get
from wakeful.errors import ConfigError, InputError
from wakeful.testing import ScriptedModel
from wakeful.testing.conversations import (
    DIALECTS,
    Assistant,
    Call,
    Result,
    Results,
    User,
    conversation,
    random_conversation,
)
from wakeful.testing.promises import assert_promises

STRATEGIES = ("ladder", "oldest_first", "sliding_window", "clear")


def growing(dialect: str, seed: int, turns: int = 9) -> list[list[Any]]:
    """The full history before each model call of a conversation."""
    messages = random_conversation(dialect, seed, turns)
    kinds = [get(dialect).weigh(m, lambda *_: 0).kind for m in messages]
    points = [i for i in range(1, len(kinds)) if kinds[i] in (2, 3) and kinds[i - 1] not in (2, 3)]
    return [messages[:i] for i in points]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=5)
@given(seed=st.integers(0, 1_000), window=st.sampled_from([300, 900, 3_000]))
def test_every_call_is_valid_whether_the_full_list_comes_or_the_last_result(
    dialect: str, strategy: str, seed: int, window: int
) -> None:
    kind = get(dialect)
    full = Window(window=window, reserve=0, strategy=strategy, dialect=dialect)
    own = Window(window=window, reserve=0, strategy=strategy, dialect=dialect)
    last: list[Any] = []
    seen = 0
    for history in growing(dialect, seed):
        one = full.fit(list(history))
        two = own.fit([*last, *history[seen:]])
        assert one.meta.error is None
        assert two.meta.error is None
        assert not kind.validate(one.messages)
        assert not kind.validate(two.messages)
        assert [kind.dumps(m) for m in one.messages] == [kind.dumps(m) for m in two.messages]
        assert one.meta.tokens_after is not None
        assert one.meta.over_budget or one.plan.budget.fits(one.meta.tokens_after, one.plan.bytes_after)
        last, seen = two.messages, len(history)
    assert full.compactions == own.compactions


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_history_that_fits_comes_back_as_the_same_list(dialect: str) -> None:
    window = Window(window=1_000_000)
    messages: list[Any] = []
    for message in random_conversation(dialect, 4, 5):
        messages.append(message)
        if get(dialect).weigh(message, lambda *_: 0).kind in (1, 4):
            assert window.fit(messages).messages is messages


@given(seed=st.integers(0, 1_000), dialect=st.sampled_from(DIALECTS))
def test_one_message_is_reported_as_dropped_at_most_once_with_one_id(seed: int, dialect: str) -> None:
    window = Window(window=700, reserve=0, strategy="oldest_first", dialect=dialect)
    gone: dict[str, Any] = {}
    for history in growing(dialect, seed):
        for dropped in window.fit(history).dropped:
            assert dropped.id not in gone
            gone[dropped.id] = dropped.message


def test_what_was_cleared_before_is_dropped_with_its_first_content() -> None:
    window = Window(window=900, reserve=0, keep_recent=1)
    originals = {id(m) for history in growing("openai_chat", 8, 14) for m in history}
    histories = growing("openai_chat", 8, 14)
    originals = {id(m) for m in histories[-1]}
    texts = set()
    for history in histories:
        for dropped in window.fit(history).dropped:
            texts.add(str(dropped.message))
    assert window.compactions > 1
    assert not any("[cleared: " in text and '"role": "tool"' in text for text in texts)
    assert originals


def test_the_first_compaction_keeps_the_promises() -> None:
    messages = random_conversation("anthropic", 11, 12)
    result = Window(window=900, reserve=0).fit(messages)
    assert result.meta.compacted
    assert_promises(messages, result, dialect="anthropic")


def test_results_appended_to_the_last_message_in_place_are_seen() -> None:
    window = Window(window=5_000, reserve=0)
    messages = random_conversation("anthropic", 2, 3)
    messages.append({"role": "user", "content": [{"type": "text", "text": "look"}]})
    before = window.fit(messages).meta.tokens_after
    messages[-1]["content"].append({"type": "text", "text": "more words " * 100})
    after = window.fit(messages).meta.tokens_after
    assert before is not None
    assert after is not None
    assert after > before + 100


def test_a_cache_marker_on_the_last_message_makes_no_compaction_of_its_own() -> None:
    marked = Window(window=1_500, reserve=0, strategy="oldest_first", dialect="anthropic")
    plain = Window(window=1_500, reserve=0, strategy="oldest_first", dialect="anthropic")
    whole = conversation("anthropic", *_loop(60))
    for stop in range(3, len(whole) + 1, 2):
        history = whole[:stop]
        shown = [*history[:-1], _marked(history[-1])]
        assert not get("anthropic").validate(marked.fit(shown).messages)
        plain.fit(history)
    assert marked.compactions == plain.compactions > 1


def _loop(steps: int) -> list[Any]:
    done: list[Any] = [User("Read every part.")]
    for i in range(steps):
        done.append(Assistant("", (Call(f"c{i}", "read", {"part": i}),)))
        done.append(Results((Result(f"c{i}", "read", f"part {i}: " + "value " * 30),)))
    return done


def _marked(message: Any) -> Any:
    return {
        **message,
        "content": [*message["content"][:-1], {**message["content"][-1], "cache_control": {"type": "ephemeral"}}],
    }


def test_a_content_that_was_replaced_is_measured_again() -> None:
    window = Window(window=100_000, reserve=0)
    messages = random_conversation("openai_chat", 3, 6)
    before = window.fit(messages).meta.tokens_after
    messages[1]["content"] = "entirely different and much longer " * 200
    after = window.fit(messages).meta.tokens_after
    assert before is not None
    assert after is not None
    assert after > before + 500


def test_forget_measures_deeper_edits_too() -> None:
    window = Window(window=100_000, reserve=0)
    messages: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "short"}]}]
    messages += [{"role": "assistant", "content": "yes"}, {"role": "user", "content": "and"}]
    before = window.fit(messages).meta.tokens_after
    messages[0]["content"][0]["text"] = "long " * 300
    assert window.fit(messages).meta.tokens_after == before
    window.forget()
    after = window.fit(messages).meta.tokens_after
    assert before is not None
    assert after is not None
    assert after > before + 100


class Slow:
    """A summariser during whose call the caller appends a message."""

    name = "slow"
    dialect = "openai_chat"

    def __init__(self, messages: list[Any]) -> None:
        self.messages = messages
        self.model = ScriptedModel(lambda request: "Goals: find the orders. " + " ".join(_words(request.prompt or "")))

    def chat(self, request: Any) -> Any:
        self.messages.append({"role": "user", "content": "appended meanwhile"})
        return self.model.chat(request)

    async def achat(self, request: Any) -> Any:
        await asyncio.sleep(0)
        return self.chat(request)

    def stream(self, request: Any) -> Any:
        raise NotImplementedError

    def astream(self, request: Any) -> Any:
        raise NotImplementedError


def _words(prompt: str) -> list[str]:
    return [word for word in prompt.split() if any(c.isdigit() for c in word)][:60]


def test_messages_appended_while_a_summariser_runs_are_kept() -> None:
    messages = random_conversation("openai_chat", 21, 10, media=False)
    window = Window(window=1_500, reserve=0, summarizer=Slow(messages))
    result = asyncio.run(window.afit(messages))
    assert result.meta.compacted
    assert result.messages[-1] == {"role": "user", "content": "appended meanwhile"}
    again = window.fit([*result.messages])
    assert any(m == {"role": "user", "content": "appended meanwhile"} for m in again.messages)


def test_two_compactions_started_at_once_are_one() -> None:
    messages = random_conversation("openai_chat", 22, 10, media=False)
    window = Window(window=1_500, reserve=0)

    async def both() -> list[Any]:
        return list(await asyncio.gather(window.afit(messages), window.afit(messages)))

    one, two = asyncio.run(both())
    assert window.compactions == 1
    assert one.messages == two.messages


@pytest.mark.parametrize(
    "usage",
    [
        9_000,
        {"input_tokens": 9_000},
        {"input_tokens": 1_000, "cache_read_input_tokens": 7_000, "cache_creation_input_tokens": 1_000},
        {"prompt_tokens": 9_000, "completion_tokens": 5},
        {"promptTokenCount": 9_000},
    ],
)
def test_a_report_of_real_usage_corrects_the_estimate(usage: Any) -> None:
    window = Window(window=1_000_000)
    messages = random_conversation("openai_chat", 1, 12)
    estimate = window.fit(messages).meta.tokens_after
    assert estimate is not None
    window.observe(usage)
    corrected = window.fit(messages).meta.tokens_after
    assert corrected is not None
    assert abs(corrected - 9_000) < abs(estimate - 9_000)


@pytest.mark.parametrize("usage", [None, 0, -5, {}, {"input_tokens": None}, True])
def test_a_missing_usage_teaches_nothing(usage: Any) -> None:
    window = Window(window=1_000_000)
    window.fit(random_conversation("openai_chat", 1, 12))
    window.observe(usage)
    assert window.meter.factor == 1.0


def test_usage_from_before_a_compaction_is_not_used() -> None:
    window = Window(window=1_200, reserve=0, strategy="oldest_first")
    messages = random_conversation("openai_chat", 6, 14, media=False)
    result = window.fit(messages)
    assert result.meta.compacted
    window.observe(result.meta.tokens_before)
    assert window.meter.factor == 1.0


def test_undo_gives_back_what_was_there_and_keeps_what_came_since() -> None:
    window = Window(window=1_200, reserve=0, strategy="oldest_first")
    messages = random_conversation("openai_chat", 6, 14, media=False)
    result = window.fit(messages)
    new = {"role": "user", "content": "since then"}
    window.fit([*result.messages, new])
    assert window.undo() == [*messages, new]
    with pytest.raises(InputError, match="no compaction"):
        window.undo()


def test_hooks_run_when_something_was_dropped_and_one_that_raises_is_isolated(caplog: Any) -> None:
    seen: list[int] = []

    def broken(meta: Any) -> None:
        raise RuntimeError("no")

    window = Window(
        window=1_200, reserve=0, strategy="oldest_first", after_compact=[broken, lambda m: seen.append(len(m.dropped))]
    )
    messages = random_conversation("openai_chat", 6, 14, media=False)
    window.fit(messages[:2])
    assert seen == []
    result = window.fit(messages)
    assert seen == [len(result.dropped)]
    assert "after_compact" in caplog.text


def test_the_task_budget_falls_by_usage_and_by_what_a_compaction_removed() -> None:
    budget = TaskBudget(100_000)
    window = Window(window=900, reserve=0, strategy="oldest_first", task_budget=budget)
    messages: list[Any] = [{"role": "user", "content": "go"}]
    for i in range(30):
        call = {"id": f"c{i}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{i}", "content": f"data {i} " * 30},
        ]
    result = window.fit(messages, mid_round=True)
    assert result.meta.tokens_removed
    assert window.budget is not None
    assert window.budget.remaining == 100_000 - result.meta.tokens_removed
    window.observe({"input_tokens": 500, "output_tokens": 20})
    assert window.budget.remaining == 100_000 - result.meta.tokens_removed - 520


def test_mid_round_the_history_is_untouched_while_it_fits_the_whole_room() -> None:
    messages = random_conversation("openai_chat", 6, 10, media=False)
    size = Window(window=10**6).fit(messages).meta.tokens_after
    assert size is not None
    window = round(size / 0.95)
    assert Window(window=window, reserve=0).fit(messages, mid_round=True).messages is messages
    assert Window(window=window, reserve=0).fit(messages).meta.compacted


@pytest.mark.parametrize("arguments", [{"prompt_tokens": -1}, {"prompt_tokens": 1.5}, {"mid_round": 1}])
def test_a_wrong_argument_of_a_call_is_refused(arguments: Any) -> None:
    with pytest.raises(ConfigError):
        Window(window=100).fit([{"role": "user", "content": "x"}], **arguments)


@pytest.mark.parametrize("dialect", [d for d in DIALECTS if d != "langchain"])
def test_a_format_that_shows_itself_late_is_recognised_then(dialect: str) -> None:
    window = Window(window=900, reserve=0)
    for history in growing(dialect, 5, 8):
        assert not get(dialect).validate(window.fit(history).messages)


def test_another_conversation_is_taken_as_it_stands() -> None:
    window = Window(window=1_200, reserve=0, strategy="oldest_first")
    window.fit(random_conversation("openai_chat", 6, 14, media=False))
    other = random_conversation("openai_chat", 9, 1, media=False)
    assert window.fit(other).messages is other
