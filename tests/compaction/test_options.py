from __future__ import annotations

from typing import Any

import pytest

from wakeful import Window, acompact, compact, plan_compaction
from wakeful.errors import ConfigError, InputError
from wakeful.testing.conversations import random_conversation

MESSAGES = random_conversation("openai_chat", 1, 4)

WRONG: list[tuple[str, Any]] = [
    ("window", 0),
    ("window", -5),
    ("window", 1.5),
    ("window", True),
    ("window", "200000"),
    ("reserve", -1),
    ("trigger", 0),
    ("trigger", 1.5),
    ("trigger", "always"),
    ("target", 0.0),
    ("target", 2),
    ("keep_recent", -1),
    ("keep_recent", 2.0),
    ("strategy", "bogus"),
    ("strategy", None),
    ("meter", 4),
    ("catalog", "mine"),
    ("archive", 3),
    ("instructions", 7),
    ("max_bytes", 0),
    ("expected_calls", -1),
    ("prompt_tokens", -1),
    ("prompt_tokens", None),
    ("mid_round", 1),
    ("space", None),
    ("model", 5),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_wrong_option_is_refused_by_name_with_its_value(name: str, value: Any) -> None:
    options: dict[str, Any] = {"window": 1_000, name: value}
    with pytest.raises(ConfigError) as refused:
        compact(MESSAGES, **options)
    assert name in str(refused.value)
    assert repr(value) in str(refused.value)
    assert isinstance(refused.value, ValueError)


@pytest.mark.parametrize(
    ("entry", "call"),
    [
        ("compact", lambda: compact(MESSAGES, window=10, keep_rounds=3)),  # type: ignore[call-arg]
        ("plan_compaction", lambda: plan_compaction(MESSAGES, window=10, keep_rounds=3)),  # type: ignore[call-arg]
        ("Window", lambda: Window(window=10, keep_rounds=3)),  # type: ignore[call-arg]
    ],
)
def test_an_unknown_option_is_an_error_that_names_it_and_the_known_ones(entry: str, call: Any) -> None:
    with pytest.raises(ConfigError, match=f"{entry} has no option 'keep_rounds'; known: .*keep_recent"):
        call()


def test_a_target_above_the_trigger_is_refused() -> None:
    with pytest.raises(ConfigError, match="target"):
        compact(MESSAGES, window=1_000, trigger=0.5, target=0.8)


def test_a_low_trigger_alone_brings_its_own_target() -> None:
    result = compact(MESSAGES, window=1_000, reserve=0, trigger=0.3, strategy="oldest_first", keep_recent=0)
    assert result.plan.budget.target == pytest.approx(0.2)


def test_a_model_that_nobody_knows_is_an_error_and_a_window_beside_it_is_not() -> None:
    with pytest.raises(ConfigError, match="does not know the window of model 'no-such-model'"):
        compact(MESSAGES, model="no-such-model")
    assert compact(MESSAGES, model="no-such-model", window=100_000).messages is MESSAGES


def test_without_a_size_there_is_an_error_but_for_what_needs_none() -> None:
    with pytest.raises(ConfigError, match="needs model="):
        compact(MESSAGES)
    assert compact(MESSAGES, strategy="sliding_window", keep_recent=2).meta.compacted
    assert compact(MESSAGES, max_bytes=10_000_000).messages is MESSAGES


class Table:
    def context_window(self, model: str) -> int | None:
        return {"mine": 5_000}.get(model)

    def output_limit(self, model: str) -> int | None:
        return 700

    def prices(self, model: str) -> None:
        return None


def test_an_explicit_window_wins_over_the_catalogue_and_the_reserve_is_its_output_limit() -> None:
    found = plan_compaction(MESSAGES, model="mine", catalog=Table()).budget
    assert (found.window, found.reserve) == (5_000, 700)
    given = plan_compaction(MESSAGES, model="mine", catalog=Table(), window=9_000, reserve=1).budget
    assert (given.window, given.reserve) == (9_000, 1)


def test_without_a_catalogue_4096_tokens_are_left_for_the_reply_and_at_most_half_the_window() -> None:
    assert plan_compaction(MESSAGES, window=100_000).budget.reserve == 4_096
    assert plan_compaction(MESSAGES, window=1_000).budget.reserve == 500


@pytest.mark.parametrize("messages", ["text", b"bytes", {"role": "user"}, 5, None])
def test_what_is_no_list_of_messages_is_an_input_error(messages: Any) -> None:
    with pytest.raises(InputError):
        compact(messages, window=1_000)


def test_an_empty_list_comes_back_as_it_is() -> None:
    messages: list[Any] = []
    assert compact(messages, window=10).messages is messages


async def _awaited() -> Any:
    return await acompact(MESSAGES, window=600, reserve=0)


def test_the_awaited_verb_gives_the_same_as_the_plain_one() -> None:
    import asyncio

    assert asyncio.run(_awaited()).messages == compact(MESSAGES, window=600, reserve=0).messages


def test_the_meter_is_any_function_of_a_text() -> None:
    heavy = compact(MESSAGES, window=100_000, reserve=0, meter=lambda text: 100 * len(text))
    light = compact(MESSAGES, window=100_000, reserve=0, meter=lambda text: 1)
    assert heavy.meta.compacted
    assert light.messages is MESSAGES


@pytest.mark.parametrize(
    ("name", "small", "large"),
    [
        ("keep_recent", 0, 6),
        ("target", 0.1, 0.85),
        ("prompt_tokens", 0, 900),
        ("reserve", 0, 900),
        ("trigger", 0.2, 1.0),
    ],
)
def test_each_number_changes_what_is_kept(name: str, small: float, large: float) -> None:
    messages = random_conversation("openai_chat", 3, 8, media=False)
    base: dict[str, Any] = {"window": 1_600, "reserve": 0, "strategy": "oldest_first", "target": 0.2}
    if name == "keep_recent":
        base["strategy"] = "sliding_window"
    one = compact(messages, **{**base, name: small})
    other = compact(messages, **{**base, name: large})
    if name in ("trigger", "target"):
        assert (
            plan_compaction(messages, **{**base, name: small}).budget
            != plan_compaction(messages, **{**base, name: large}).budget
        )
    else:
        assert len(one.messages) != len(other.messages)
