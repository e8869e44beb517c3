"""The moves of a plan: what a compaction does to a history, as data.

``index`` is always a place in the list that the caller gave; tokens are estimates by the meter of the plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Repair:
    """Something broken was made valid."""

    kind: str
    """``orphan_result``, ``duplicate_result``, ``missing_result``, ``moved_result``, ``late_result``, ``merged``,
    ``opened``, ``duplicate_call`` or ``lone_reasoning``."""
    index: int
    """Place of the message concerned; -1 for a message that was added."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Clear:
    """The results (or long arguments) of a message give way to a placeholder that carries the archive id."""

    index: int
    archive_id: str
    tokens_before: int
    tokens_after: int
    what: str = "result"
    """``result``, ``arguments`` or ``media``."""
    reason: str = "old tool results are cleared first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """A span of rounds gives way to one summary."""

    indexes: tuple[int, ...]
    archive_id: str
    """Ids of its runs of neighbours, joined by commas; "" without an archive."""
    tokens_before: int
    tokens_after: int
    """Tokens of the summary; in a dry run the most that it may have."""
    source: str
    """``model``, ``extractive``, or ``planned`` in a dry run."""
    reason: str = "the oldest rounds are digested"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """A span of rounds is removed."""

    indexes: tuple[int, ...]
    archive_id: str
    """Ids of its runs of neighbours, joined by commas; "" without an archive."""
    tokens_before: int
    tokens_after: int = 0
    reason: str = "the oldest rounds are dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shorten:
    """The largest content of a message keeps its head and tail, with a pointer to the whole."""

    index: int
    archive_id: str
    tokens_before: int
    tokens_after: int
    reason: str = "the open round alone does not fit"


@dataclass(frozen=True, slots=True, kw_only=True)
class StripThinking:
    """Reasoning that is bound to the history before it is removed."""

    index: int
    tokens_before: int
    tokens_after: int
    """0 when nothing was left of the message."""
    reason: str = "the history before it changed"


Move: TypeAlias = Repair | Clear | Digest | Drop | Shorten | StripThinking
