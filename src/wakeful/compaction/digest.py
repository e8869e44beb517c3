"""The digest of the oldest closed rounds: one summary text, from a model or from the extractive ledger.

Rules of the file:

- A digest is accepted only when it says something and is smaller than its source. A refusal carries a reason code.
- The previous summary is folded in, so exactly one remains.
- The text is a record of earlier turns, labelled as one, and never worded as a request.
- Without a model, or when the model fails and ``limits.fallback`` is true, the ledger is the digest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from wakeful.compaction.accept import RefusedCode
from wakeful.compaction.archive import SummaryHead, summary_head
from wakeful.compaction.layout import lay_out
from wakeful.compaction.ledger import extract
from wakeful.dialects.protocol import Count, Dialect
from wakeful.needs import Flow


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


def digest(
    source: DigestSource,
    limits: DigestLimits,
    *,
    summarizer: bool = False,
    previous: str | None = None,
    instructions: str | None = None,
) -> Flow[Digest | Refused]:
    """Digest closed rounds and the ``previous`` summary's text into one summary.

    ``summarizer``: ask the model of the role ``summarizer`` (``Ask(request, "summarizer")``, ``Now`` for the breaker).
    False: no need is yielded, the ledger is the digest. ``instructions``: what a manual compaction should dwell on.
    Never raises for a model's failure.
    """
    if not source.messages and not previous:
        return Refused(code="nothing_to_digest", breaker=limits.breaker)
    head, folded, numbers = _frame(source, previous)
    failed: Refused | None = None
    if summarizer:
        from wakeful.compaction.summarizer import ask_summary

        answer = yield from ask_summary(source, limits, head, folded, numbers, instructions)
        if isinstance(answer, Digest) or not limits.fallback:
            return answer
        failed = answer
    return _extractive(source, limits, head, folded, numbers, failed)


def _frame(source: DigestSource, previous: str | None) -> tuple[SummaryHead, str, Sequence[int]]:
    """Give the head of the summary to come, the earlier summary's body, and the number of each message."""
    found = summary_head(previous) if previous else None
    old, folded = found if found else (SummaryHead(), previous or "")
    count = len(source.messages)
    numbers = range(source.position, source.position + count) if source.positions is None else source.positions
    if old.last is not None and count:
        shift = old.last + 1 - numbers[0]
        numbers = [number + shift for number in numbers]
    first = old.first if old.first is not None else numbers[0] if count else None
    last = numbers[-1] if count else old.last
    ids = tuple(dict.fromkeys((*old.ids, *source.archive_ids)))[-MOST_IDS:]
    return SummaryHead(first, last, ids), folded, numbers


MOST_IDS = 4
"""Archive ids that a summary names, newest last. Older records hold the older summary, which names those before it."""


def _extractive(
    source: DigestSource,
    limits: DigestLimits,
    head: SummaryHead,
    folded: str,
    numbers: Sequence[int],
    failed: Refused | None,
) -> Digest | Refused:
    label = str(head)
    room = limits.max_tokens - limits.count(label + "\n", "text")
    asks, breaker = (failed.asks, failed.breaker) if failed else (0, limits.breaker)
    if room < 8:
        return Refused(code="too_large", detail="no room for a summary", asks=asks, breaker=breaker)
    ledger = extract(
        source.dialect, source.messages, room=room * 4, numbers=numbers, folded=folded, people=source.people
    )
    body = lay_out(ledger, room, limits.count)
    if not body:
        return Refused(code="blank", detail="nothing in it can be extracted", asks=asks, breaker=breaker)
    text = f"{label}\n{body}"
    tokens = limits.count(text, "text")
    if tokens > source.tokens * (1 - limits.min_saving):
        return Refused(code="not_smaller", asks=asks, breaker=breaker)
    return Digest(
        text=text,
        tokens=tokens,
        by="extractive",
        fallback=failed.code if failed else None,
        asks=asks,
        breaker=breaker,
    )
