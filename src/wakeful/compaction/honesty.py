"""The honesty marker: tells a model that earlier turns exist which it does not see, so that it does not invent them."""

from __future__ import annotations

HONESTY_MARKER_SENTINEL = (
    "[memory] Earlier turns exist in this conversation's history but are not currently in context."
)
"""Exact text: programs look for it. It never changes."""


def compose_memory_section(*, summary_text: str, last_compacted_index: int, entries_count: int) -> str:
    """Put the marker in front of a memory section when turns were compacted and nothing of them is visible.

    ``last_compacted_index`` is above 0 once a compaction removed something; ``entries_count`` counts the entries that
    retrieval made visible. The marker stands alone for an empty text, and is never put twice, wherever in the text it
    already stands. Otherwise the text comes back unchanged. Pure.
    """
    if last_compacted_index <= 0 or entries_count != 0 or HONESTY_MARKER_SENTINEL in summary_text:
        return summary_text
    return f"{HONESTY_MARKER_SENTINEL}\n{summary_text}" if summary_text else HONESTY_MARKER_SENTINEL
