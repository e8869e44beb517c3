"""The honesty marker."""

from __future__ import annotations

import pytest

from wakeful.compaction.honesty import HONESTY_MARKER_SENTINEL, compose_memory_section

MARK = "[memory] Earlier turns exist in this conversation's history but are not currently in context."


def test_the_marker_is_the_exact_text_that_programs_look_for() -> None:
    assert HONESTY_MARKER_SENTINEL == MARK


@pytest.mark.parametrize(
    ("text", "index", "count", "expected"),
    [
        ("what was said", 4, 0, f"{MARK}\nwhat was said"),
        ("", 4, 0, MARK),
        ("what was said", 0, 0, "what was said"),
        ("what was said", -1, 0, "what was said"),
        ("what was said", 4, 2, "what was said"),
        ("", 0, 0, ""),
        (f"{MARK}\nwhat was said", 4, 0, f"{MARK}\nwhat was said"),
        (f"before\n{MARK}\nafter", 4, 0, f"before\n{MARK}\nafter"),
    ],
)
def test_the_marker_stands_once_and_only_when_turns_are_hidden(
    text: str, index: int, count: int, expected: str
) -> None:
    composed = compose_memory_section(summary_text=text, last_compacted_index=index, entries_count=count)
    assert composed == expected
    again = compose_memory_section(summary_text=composed, last_compacted_index=index, entries_count=count)
    assert again == composed
