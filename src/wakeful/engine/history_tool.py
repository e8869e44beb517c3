"""``recall_history``: the tool by which a model looks into what compaction took out of its own conversation.

Answers are bounded, a session sees only its own spans, and a failure is told in words.
"""

from __future__ import annotations

from typing import Any

from wakeful.engine.compacting import archive_space
from wakeful.engine.tools import Tool, ToolContext, tool
from wakeful.errors import StoreError
from wakeful.ops_archive import ArchiveFind, ArchiveGet, ArchiveRecord

MOST = 6_000
"""Characters of an answer: about 1,500 tokens, so looking back can't fill the window again."""

HITS = 5
"""Spans of an answer to a query."""


def recall_history(archive: Any, compactor: Any) -> Tool:
    """Make the tool over an archive."""

    def recall_history(context: ToolContext, query: str | None = None, id: str | None = None) -> str:
        """Look up earlier parts of this conversation that are no longer in view.

        Give the id named in a placeholder or a record of earlier turns, or words to search for.

        Args:
            query: words or an exact string to search for
            id: archive id, as a placeholder or a record names it
        """
        space = archive_space(compactor, context.session)
        try:
            if id:
                (found,) = archive.execute((ArchiveGet(space, (id,)),))
                return _whole(found[0]) if found else f"Nothing is archived as {id!r} in this conversation."
            if query and query.strip():
                (hits,) = archive.execute((ArchiveFind(space, query, HITS),))
                if not hits:
                    return f"Nothing in the earlier conversation matches {query!r}."
                return _around([hit.record for hit in hits], query)
        except StoreError as error:
            return f"The archive could not be read: {error}"
        return "Give an id or a query."

    made: Tool = tool(recall_history)
    return made


def _whole(record: ArchiveRecord) -> str:
    text = record.text
    if len(text) <= MOST:
        return f"[{record.id}] {record.what}\n{text}"
    cut = MOST // 2
    gap = f"[... {len(text) - 2 * cut:,} characters left out; search for words ...]"
    return f"[{record.id}] {record.what}\n{text[:cut]}\n{gap}\n{text[-cut:]}"


def _around(records: list[ArchiveRecord], query: str) -> str:
    """Show each record near the first of the query's words that it holds."""
    each = MOST // len(records) - 80
    words = [query.lower(), *sorted(query.lower().split(), key=len, reverse=True)]
    parts = []
    for record in records:
        folded = record.text.lower()
        at = next((folded.find(word) for word in words if word in folded), 0)
        start = max(0, at - each // 3)
        piece = record.text[start : start + each]
        before, after = "..." if start else "", "..." if start + each < len(record.text) else ""
        parts.append(f"[{record.id}] {record.what}\n{before}{piece}{after}")
    return "\n\n".join(parts)
