"""The promises of a compaction, over generated histories of every dialect, every kind of cut and size of window."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful import compact, plan_compaction, restore
from wakeful.compaction.archive import is_summary, summary_ids
from wakeful.compaction.moves import Digest
from wakeful.stores.archive import MemoryArchive
from wakeful.testing.conversations import DIALECTS, adversarial, random_conversation
from wakeful.testing.promises import assert_promises

STRATEGIES = ("oldest_first", "sliding_window", "clear", "ladder", "summarize")
WINDOWS = st.sampled_from([40, 150, 400, 900, 2_000, 20_000])
ALLOWED_ERRORS = (
    "blank",
    "no_room_for_a_summary",
    "not_smaller",
    "too_large",
    "nothing_to_digest",
    "missing_identifiers",
)
"""A failed digest is an error of the strategy ``summarize``."""


def check(messages: list[Any], dialect: str, **options: Any) -> None:
    def again(given: list[Any]) -> Any:
        return compact(given, dialect=dialect, reserve=0, **options)

    result = again(messages)
    if result.meta.error:
        assert options["strategy"] == "summarize"
        assert result.meta.error.startswith(ALLOWED_ERRORS)
        assert result.messages is messages
        return
    assert_promises(messages, result, again=again, dialect=dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("strategy", STRATEGIES)
@given(
    seed=st.integers(0, 10_000),
    turns=st.integers(1, 9),
    cut=st.floats(0, 1),
    window=WINDOWS,
    keep_recent=st.integers(0, 5),
    open_tail=st.booleans(),
    archived=st.booleans(),
)
def test_the_promises_hold_wherever_a_history_is_cut(
    dialect: str,
    strategy: str,
    seed: int,
    turns: int,
    cut: float,
    window: int,
    keep_recent: int,
    open_tail: bool,
    archived: bool,
) -> None:
    messages = random_conversation(dialect, seed, turns, open_tail=open_tail)
    messages = messages[: max(1, round(cut * len(messages)))]
    archive = MemoryArchive() if archived else None
    check(messages, dialect, strategy=strategy, window=window, keep_recent=keep_recent, archive=archive)


def test_a_digest_names_archive_ids_exactly_where_there_is_an_archive() -> None:
    messages = random_conversation("openai_chat", 5, 12)
    for archive in (None, MemoryArchive()):
        result = compact(messages, window=900, reserve=0, keep_recent=1, archive=archive)
        (move,) = [move for move in result.plan.moves if isinstance(move, Digest)]
        (summary,) = [m["content"] for m in result.messages if is_summary(str(m["content"]))]
        assert bool(summary_ids(summary)) is bool(move.archive_id) is (archive is not None)
        if archive is not None:
            assert restore(archive, summary_ids(summary)[-1]).messages
        for dropped in result.dropped:
            assert restore(result, dropped.id).messages == (messages[dropped.position],)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(
    seed=st.integers(0, 10_000),
    gone=st.lists(st.floats(0, 1), min_size=1, max_size=4),
    doubled=st.floats(0, 1),
    window=WINDOWS,
)
def test_the_promises_hold_for_histories_with_messages_missing_doubled_and_swapped(
    dialect: str, seed: int, gone: list[float], doubled: float, window: int
) -> None:
    messages = random_conversation(dialect, seed, 5)
    for share in gone:
        if len(messages) > 1:
            del messages[int(share * (len(messages) - 1))]
    at = int(doubled * (len(messages) - 1))
    messages.insert(at, messages[at])
    if len(messages) > 3:
        messages[at - 1], messages[at - 2] = messages[at - 2], messages[at - 1]
    check(messages, dialect, strategy="ladder", window=window)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("window", [250, 1_000, 6_000])
def test_the_nine_adversarial_inputs_are_valid_in_budget_or_marked_and_lose_nothing(
    dialect: str, strategy: str, window: int
) -> None:
    for messages in adversarial(dialect).values():
        check(messages, dialect, strategy=strategy, window=window)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_ladder_brings_every_adversarial_input_into_its_budget_but_for_the_user_too_large(dialect: str) -> None:
    for name, messages in adversarial(dialect).items():
        result = compact(messages, dialect=dialect, window=1_000, reserve=0)
        assert result.meta.error is None
        assert bool(result.meta.over_budget) == (name == "one_big_user"), name


@pytest.mark.parametrize("dialect", DIALECTS)
@given(seed=st.integers(0, 10_000), size=st.integers(400, 20_000))
def test_the_promises_hold_for_a_budget_in_bytes(dialect: str, seed: int, size: int) -> None:
    messages = random_conversation(dialect, seed, 6)
    check(messages, dialect, strategy="ladder", window=1_000_000, max_bytes=size)


@pytest.mark.parametrize("strategy", ["oldest_first", "sliding_window", "clear", "ladder"])
@given(seed=st.integers(0, 10_000), window=WINDOWS)
def test_a_plan_is_what_the_compaction_does(strategy: str, seed: int, window: int) -> None:
    messages = random_conversation("anthropic", seed, 5)
    plan = plan_compaction(messages, window=window, reserve=0, strategy=strategy)
    done = compact(messages, window=window, reserve=0, strategy=strategy).plan
    assert plan.moves == done.moves
    assert (plan.tokens_before, plan.tokens_after) == (done.tokens_before, done.tokens_after)
