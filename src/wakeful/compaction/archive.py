"""What compaction takes out: ids, placeholders, records, and the flows that keep and give them back.

Rules of the file:

- An id is a hash of dialect and content, so the same input gives the same bytes. No counters, no times.
- A placeholder or a summary that we made is recognised by its text alone, whatever the history went through.
- Records are put before the changed history is returned. A put that fails raises, and nothing may be dropped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from wakeful.dialects import get
from wakeful.dialects.protocol import Dialect
from wakeful.errors import NotFound
from wakeful.ids import content_id
from wakeful.needs import Flow, run
from wakeful.ops_archive import (
    ArchiveCount,
    ArchiveEntry,
    ArchiveFind,
    ArchiveGet,
    ArchiveHit,
    ArchiveList,
    ArchivePut,
    ArchiveRecord,
    ArchiveRemove,
    ArchiveStats,
)

PREFIX = "a-"
"""Every archive id starts so."""

_ID = r"a-[0-9a-z]{20}"
_PLACEHOLDER = re.compile(rf"\[cleared: .{{0,600}}? - archived as ({_ID})\]", re.DOTALL)

SUMMARY_LABEL = "[record of earlier turns"
"""A summary's text starts so."""

_SUMMARY_HEAD = re.compile(
    rf"\[record of earlier turns(?: #(\d+)-#(\d+))?, not a request(?:, archived as ({_ID}(?:, {_ID})*))?\]"
)


def archive_id(dialect: str, messages: Sequence[str]) -> str:
    """Give the id of serialised messages: the same content always has the same id."""
    return content_id(dialect, *messages, prefix=PREFIX)


def make_record(
    dialect: Dialect,
    messages: Sequence[Any],
    *,
    position: int,
    entry_ids: Sequence[str] = (),
    what: str = "",
    tokens: int = 0,
    text: str | None = None,
) -> ArchiveRecord:
    """Make the record of a run of neighbouring messages, oldest first.

    ``text`` None: rendered here from every block. Raises ``InputError`` for a message that can't be serialised.
    """
    serialised = tuple(dialect.dumps(message) for message in messages)
    if text is None:
        from wakeful.compaction.render import render

        text = render(dialect, messages)
    return ArchiveRecord(
        id=archive_id(dialect.name, serialised),
        dialect=dialect.name,
        position=position,
        messages=serialised,
        entry_ids=tuple(entry_ids),
        what=what,
        tokens=tokens,
        text=text,
    )


def placeholder(id: str, what: str, tokens: int, values: str = "") -> str:
    """Give the text that stands where content was cleared: ``what`` it was, its size, its id.

    ``values``: the most telling ones of the content (``ledger.telling``), so that what was named there can still be used.
    """
    words = _plain(what)[:120] or "content"
    shown = f"; {_plain(values)[:400]}" if values else ""
    return f"[cleared: {words}, about {tokens:,} tokens{shown} - archived as {id}]"


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("[", "(").replace("]", ")")


def placeholder_id(text: str) -> str | None:
    """Give the archive id of a text that is one of our placeholders; None for any other text."""
    if not text.startswith("[cleared: "):
        return None
    found = _PLACEHOLDER.fullmatch(text)
    return found.group(1) if found else None


@dataclass(frozen=True, slots=True)
class SummaryHead:
    """The first line of a summary: what it stands for."""

    first: int | None = None
    """Number of the first message it covers; messages are numbered from 0 over all compactions."""
    last: int | None = None
    ids: tuple[str, ...] = ()
    """Archive ids of what it stands for, oldest first."""

    def __str__(self) -> str:
        numbers = f" #{self.first}-#{self.last}" if self.first is not None else ""
        ids = f", archived as {', '.join(self.ids)}" if self.ids else ""
        return f"{SUMMARY_LABEL}{numbers}, not a request{ids}]"


def summary_head(text: str) -> tuple[SummaryHead, str] | None:
    """Take a summary's text apart into head and body; None for any other text."""
    found = _SUMMARY_HEAD.match(text) if text.startswith(SUMMARY_LABEL) else None
    if found is None:
        return None
    first, last, ids = found.groups()
    head = SummaryHead(
        None if first is None else int(first),
        None if last is None else int(last),
        tuple(ids.split(", ")) if ids else (),
    )
    return head, text[found.end() :].lstrip("\n")


def is_summary(text: str) -> bool:
    """Tell whether a message's text is a summary that compaction made."""
    return text.startswith(SUMMARY_LABEL) and _SUMMARY_HEAD.match(text) is not None


def summary_ids(text: str) -> tuple[str, ...]:
    """Give the archive ids that a summary's head names; empty for any other text."""
    found = summary_head(text)
    return found[0].ids if found else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Messages given back, as they were."""

    id: str
    position: int
    """Index of the first one in the history that it was taken from."""
    messages: tuple[Any, ...]
    """Native messages, oldest first."""
    entry_ids: tuple[str, ...] = ()
    dialect: str = ""
    what: str = ""
    tokens: int = 0


def span_of(record: ArchiveRecord) -> Span:
    """Give a record's messages back as native ones."""
    dialect = get(record.dialect)
    return Span(
        id=record.id,
        position=record.position,
        messages=tuple(dialect.loads(text) for text in record.messages),
        entry_ids=record.entry_ids,
        dialect=record.dialect,
        what=record.what,
        tokens=record.tokens,
    )


def put(records: Sequence[ArchiveRecord], *, space: str = "", at: datetime | None = None) -> Flow[ArchiveStats | None]:
    """Keep records, all or none; gives the size of the space afterwards (None when there was nothing to keep)."""
    if not records:
        return None
    (stats,) = yield from run(ArchivePut(space, tuple(records), at), store="archive")
    return stats  # type: ignore[no-any-return]  # a store answers operations with their documented results


def restore_span(id: str, *, space: str = "") -> Flow[Span]:
    """Give a span back. Raises ``NotFound`` for an id that the space does not hold."""
    (found,) = yield from run(ArchiveGet(space, (id,)), store="archive")
    if not found:
        raise NotFound(f"the archive holds nothing as {id!r}")
    return span_of(found[0])


def find(query: str, *, space: str = "", limit: int = 5) -> Flow[tuple[ArchiveHit, ...]]:
    """Search the archive's text, best first."""
    (hits,) = yield from run(ArchiveFind(space, query, limit), store="archive")
    return hits  # type: ignore[no-any-return]


def entries(*, space: str = "", limit: int | None = None) -> Flow[tuple[ArchiveEntry, ...]]:
    """List what the space holds, in the order it was put."""
    (found,) = yield from run(ArchiveList(space, limit), store="archive")
    return found  # type: ignore[no-any-return]


def remove(ids: Sequence[str], *, space: str = "") -> Flow[int]:
    """Delete records; gives their number."""
    if not ids:
        return 0
    (count,) = yield from run(ArchiveRemove(space, tuple(ids)), store="archive")
    return count  # type: ignore[no-any-return]


def size(*, space: str = "") -> Flow[ArchiveStats]:
    """Tell how much the space holds."""
    (stats,) = yield from run(ArchiveCount(space), store="archive")
    return stats  # type: ignore[no-any-return]
