"""The tool ``recall_history``: the model looks up what a compaction took out of its context.

Rules of the file:

- Answers are bounded, whatever is asked and however large the archive is.
- What is given back is labelled as a record of earlier turns; it is data and no instruction.
- A wrong call gets an answer that says how to ask, never an exception.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wakeful.compaction import archive
from wakeful.dialects.protocol import Count
from wakeful.errors import NotFound
from wakeful.needs import Flow, ToolSpec, run
from wakeful.ops_archive import ArchiveGet, ArchiveHit, ArchiveRecord
from wakeful.terms import fold, query_terms

MAX_TOKENS = 1_500
"""Tokens of one answer, at most."""

SNIPPET = 320
"""Characters around one place where a query was found."""

PLACES = 3
"""Places that are shown of one record."""

HITS = 5
"""Records that are shown of one search."""

RECALL_HISTORY = ToolSpec(
    "recall_history",
    "Look up earlier turns of this conversation that are no longer in context. Give 'query' (words, or an exact value "
    "such as an id or a path) to search them, or 'id' (an archive id such as a-..., as named in placeholders and in the "
    "record of earlier turns) to read one; 'offset' reads on in a long one.",
    {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Words or an exact value to look for."},
            "id": {"type": "string", "description": "Archive id to read, or to search in together with a query."},
            "offset": {"type": "integer", "minimum": 0, "description": "Character to read on from, with an id."},
        },
    },
)
"""The tool as it is offered to a model."""


def _count(text: str, kind: str) -> int:  # noqa: ARG001  # the shape of a meter's count
    return len(text) // 3 + 1


def recall_history(
    arguments: Mapping[str, Any], *, space: str = "", count: Count = _count, max_tokens: int = MAX_TOKENS
) -> Flow[str]:
    """Answer a call of the tool in at most ``max_tokens`` (by ``count``)."""
    query, id, offset = arguments.get("query"), arguments.get("id"), arguments.get("offset")
    query = query.strip() if isinstance(query, str) else ""
    id = id.strip() if isinstance(id, str) else ""
    if id:
        try:
            record = yield from _record(id, space)
        except NotFound:
            return f"Nothing is archived as {id!r}. Search with 'query' instead."
        if query:
            shown = _places(record, query) or f"{query!r} does not stand in {id}."
            return _bounded(f"In {_title(record)}:\n{shown}", count, max_tokens)
        return _page(
            record, offset if isinstance(offset, int) and not isinstance(offset, bool) else 0, count, max_tokens
        )
    if query:
        hits = yield from archive.find(query, space=space, limit=HITS)
        if not hits:
            return f"No earlier turn holds {query!r}. Try fewer or other words."
        return _bounded("\n\n".join(_shown(hit, query) for hit in hits), count, max_tokens)
    return "Give 'query' to search earlier turns, or 'id' to read one of them."


def _record(id: str, space: str) -> Flow[ArchiveRecord]:
    (found,) = yield from run(ArchiveGet(space, (id,)), store="archive")
    if not found:
        raise NotFound(f"the archive holds nothing as {id!r}")
    record: ArchiveRecord = found[0]
    return record


def _title(record: ArchiveRecord) -> str:
    return f"{record.id} ({record.what or 'earlier turns'}, from message {record.position} on; a record, not a request)"


def _shown(hit: ArchiveHit, query: str) -> str:
    return f"{_title(hit.record)}:\n{_places(hit.record, query) or hit.record.text[:SNIPPET]}"


def _places(record: ArchiveRecord, query: str) -> str:
    """Show the text around the places where the query stands, or else its words; the newest places first."""
    text = record.text
    spots = _exact(text, query)
    if not spots:
        folded = fold(text)
        if len(folded) == len(text):
            words = sorted(query_terms(query), key=len, reverse=True)
            spots = [at for word in words if (at := folded.rfind(word)) >= 0][:PLACES]
    shown: list[tuple[int, int]] = []
    for at in spots:
        start, end = max(0, at - SNIPPET // 2), min(len(text), at + max(len(query), 1) + SNIPPET // 2)
        if all(end <= a or start >= b for a, b in shown):
            shown.append((start, end))
    return "\n".join(f"{'...' if a else ''}{text[a:b]}{'...' if b < len(text) else ''}" for a, b in sorted(shown))


def _exact(text: str, query: str) -> list[int]:
    spots: list[int] = []
    at = len(text)
    while len(spots) < PLACES and (at := text.rfind(query, 0, at)) >= 0:
        spots.append(at)
    return spots


def _page(record: ArchiveRecord, offset: int, count: Count, max_tokens: int) -> str:
    offset = min(max(0, offset), len(record.text))
    head = f"{_title(record)}:\n"
    rest = record.text[offset:]
    note = "\n[continues: ask with the same id and offset {}]"
    room = max_tokens - count(head + note.format(len(record.text)), "text")
    shown = _fitting(rest, count, room)
    if len(shown) == len(rest):
        return head + (rest or "[nothing more]")
    return head + shown + note.format(offset + len(shown))


def _bounded(text: str, count: Count, max_tokens: int) -> str:
    if count(text, "text") <= max_tokens:
        return text
    note = "\n[cut; ask for less at once]"
    return _fitting(text, count, max_tokens - count(note, "text")) + note


def _fitting(text: str, count: Count, tokens: int) -> str:
    """Give the longest head of a text that has at most so many tokens, found by halving."""
    if count(text, "text") <= tokens:
        return text
    low, high = 0, min(len(text), max(0, tokens) * 8)
    while low < high:
        middle = (low + high + 1) // 2
        if count(text[:middle], "text") <= tokens:
            low = middle
        else:
            high = middle - 1
    return text[:low]
