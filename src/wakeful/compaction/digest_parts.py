"""What a digest is made from, what it may be and cost, and what comes out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from wakeful.compaction.accept import RefusedCode
from wakeful.dialects.protocol import Count, Dialect


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestSource:
    """What is to be digested: whole closed rounds, oldest first, read only as far as needed."""

    dialect: Dialect
    messages: Sequence[Any]
    """Native messages, without an earlier summary (that one is ``previous``)."""
    tokens: int
    """What they and the earlier summary weigh, by the meter."""
    archive_ids: tuple[str, ...] = ()
    """Ids under which they are archived; the summary names them."""
    position: int = 0
    """Index of the first message in the history; sources in the ledger are told as ``#number``."""
    positions: Sequence[int] | None = None
    """Index of each message when they are not neighbours; None: they are.

    With an earlier summary that tells what it covers, numbering goes on from there: numbers count messages over all
    compactions, whatever indexes the shortened history has."""
    people: Sequence[int] | None = None
    """Indexes, among ``messages``, of those that people wrote; None: found when they are needed."""
    weights: Sequence[int] | None = None
    """Tokens of each message, by the meter; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """Keeps a failing summariser from being asked again and again: opens after failures, closes again by itself."""

    failures: int = 0
    """In a row."""
    opened_at: float | None = None
    """Seconds since the epoch; None: closed."""
    limit: int = 3
    """Failures that open it."""
    cooldown: float = 300.0
    """Seconds after which one try is let through."""

    def allows(self, at: float) -> bool:
        """Whether the summariser may be asked now."""
        return self.opened_at is None or at - self.opened_at >= self.cooldown

    def failed(self, at: float) -> Breaker:
        """Count a failure; the ``limit``-th in a row opens the breaker, and each further one opens it anew."""
        failures = self.failures + 1
        return replace(self, failures=failures, opened_at=at if failures >= self.limit else self.opened_at)

    def succeeded(self) -> Breaker:
        """Close it."""
        return replace(self, failures=0, opened_at=None) if self.failures else self

    @property
    def state(self) -> Literal["closed", "open"]:
        """For reports."""
        return "closed" if self.opened_at is None else "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestLimits:
    """What a digest may be and cost."""

    max_tokens: int
    """Most tokens of the summary's text, by ``count``."""
    count: Count
    min_saving: float = 0.1
    """Least share by which it must be smaller than its source."""
    fallback: bool = True
    """True: the ledger stands in when the model fails. False: the failure is the answer."""
    summarizer_window: int | None = None
    """Tokens of the summariser's window, by ``count``; None: 32,000."""
    attempts: int = 2
    timeout: float | None = 60.0
    """Seconds, of one model call."""
    breaker: Breaker = Breaker()


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """An accepted summary."""

    text: str
    """The summary message's whole text, label and archive ids included, ready for ``Dialect.note``."""
    tokens: int
    """Of ``text``, by the limits' count."""
    by: Literal["extractive", "model"]
    fallback: str | None = None
    """Reason code of the model's failure when the ledger stands in."""
    asks: int = 0
    """Model calls made."""
    breaker: Breaker = Breaker()
    """The breaker afterwards; pass it to the next digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """No summary, and why."""

    code: RefusedCode
    detail: str = ""
    asks: int = 0
    breaker: Breaker = Breaker()
