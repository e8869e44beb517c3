"""The digest of the oldest closed rounds: one summary text, from a model or from the extractive ledger.

Rules of the file:

- A digest is accepted only when it says something and is smaller than its source. A refusal carries a reason code.
- The previous summary is folded in, so exactly one remains.
- The text is a record of earlier turns, labelled as one, and never worded as a request.
- Without a model, or when the model fails and ``limits.fallback`` is true, the ledger is the digest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from wakeful.dialects.protocol import Count, Dialect
from wakeful.needs import Flow

RefusedCode: TypeAlias = Literal[
    "nothing_to_digest",
    "blank",
    "acknowledgement",
    "not_text",
    "not_smaller",
    "missing_identifiers",
    "model_failed",
    "breaker_open",
    "too_large",
]


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
    """Index of the first message in the history; sources in the ledger are told as ``#index``."""


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
    raise NotImplementedError("the digest is being written")
    yield
