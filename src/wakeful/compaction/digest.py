"""The digest of the oldest closed rounds: one summary text, from a model or from the extractive ledger.

Rules of the file:

- A digest is accepted only when it says something and is smaller than its source. A refusal carries a reason code.
- The previous summary is folded in, so exactly one remains.
- The text is a record of earlier turns, labelled as one, and never worded as a request.
- Without a model, or when the model fails and ``limits.fallback`` is true, the ledger is the digest.
"""

from __future__ import annotations

from collections.abc import Sequence

from wakeful.compaction.archive import SummaryHead, summary_head
from wakeful.compaction.digest_parts import Digest, DigestLimits, DigestSource, Refused
from wakeful.compaction.extract import extract
from wakeful.compaction.layout import lay_out
from wakeful.compaction.summarizer import ask_summary
from wakeful.needs import Flow


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
