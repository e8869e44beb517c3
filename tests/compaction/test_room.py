"""How many of the newest rounds stay, when a window is small: they yield to the digest, unless the caller said how many."""

from __future__ import annotations

from typing import Any

import pytest

from wakeful import compact
from wakeful.compaction.archive import is_summary
from wakeful.dialects import get
from wakeful.dialects.protocol import Text, ToolResult
from wakeful.testing.conversations import DIALECTS, Assistant, Call, Result, Results, Step, User, conversation
from wakeful.testing.promises import assert_promises


def orders(count: int, words: int = 60) -> list[Step]:
    steps: list[Step] = []
    for i in range(count):
        steps.append(Assistant("", (Call(f"c{i}", "get_order", {"order_id": f"ORD-{i:04}"}),)))
        text = f'{{"order_id": "ORD-{i:04}", "payment": "card_{7000 + i}", "note": "{"word " * words}"}}'
        steps.append(Results((Result(f"c{i}", "get_order", text),)))
    return steps


def squeezed(dialect: str, messages: list[Any], window: int, **options: Any) -> Any:
    options = {"reserve": 0, "trigger": 1.0, "target": 1.0, "mid_round": True, "window": window, **options}
    done = compact(messages, dialect=dialect, **options)
    assert_promises(messages, done, again=lambda m: compact(m, dialect=dialect, **options), dialect=dialect)
    return done


def shown(dialect: str, messages: list[Any]) -> str:
    blocks = [block for message in messages for block in get(dialect).read(message).blocks]
    return "\n".join(block.text for block in blocks if isinstance(block, (Text, ToolResult)))


def kept_whole(dialect: str, done: Any, count: int) -> int:
    """Rounds whose result stands as it was."""
    text = shown(dialect, done.messages)
    return sum(f'"payment": "card_{7000 + i}", "note": "{"word " * 60}"' in text for i in range(count))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_in_a_small_window_older_rounds_yield_to_the_digest(dialect: str) -> None:
    messages = conversation(dialect, User("Go through the orders."), *orders(12))
    done = squeezed(dialect, messages, 700)
    assert is_summary(next(text for text in shown(dialect, done.messages).split("\n") if text.startswith("[record")))
    text = shown(dialect, done.messages)
    assert all(f"card_{7000 + i}" in text for i in range(12))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_in_a_large_window_they_stay_word_for_word(dialect: str) -> None:
    messages = conversation(dialect, User("Go through the orders."), *orders(40))
    assert kept_whole(dialect, squeezed(dialect, messages, 3_200), 40) >= 4


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("keep", [2, 4])
def test_a_number_that_the_caller_gave_is_kept_to(dialect: str, keep: int) -> None:
    messages = conversation(dialect, User("Go through the orders."), *orders(12))
    assert kept_whole(dialect, squeezed(dialect, messages, 900, keep_recent=keep), 12) >= keep


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("size", [150, 500, 5_000])
def test_a_large_new_result_does_not_drive_out_all_that_went_before(dialect: str, size: int) -> None:
    messages = conversation(dialect, User("Go through the orders."), *orders(8), *orders(1, words=size))
    done = squeezed(dialect, messages, 500)
    assert not done.meta.over_budget
    text = shown(dialect, done.messages)
    assert sum(f"card_{7000 + i}" in text for i in range(8)) >= 5
