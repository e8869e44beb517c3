"""The verbs of compaction: ``compact``, ``acompact``, ``plan_compaction``, ``restore``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack, overload

from wakeful.compaction.archive import Span, restore_span
from wakeful.compaction.flow import compact_flow
from wakeful.compaction.options import CompactOptions, check
from wakeful.compaction.plan import Plan
from wakeful.compaction.result import CompactionResult
from wakeful.engine.answer import aanswers, answers, as_summarizer
from wakeful.engine.drive import adrive, drive
from wakeful.engine.policies import policy_of
from wakeful.errors import InputError, NotFound


def compact(messages: list[Any], **options: Unpack[CompactOptions]) -> CompactionResult:
    """Fit a conversation into the model's window: always a valid request, nothing lost for good.

    ``messages`` are native to any dialect, oldest first; they are never changed. When they are valid and fit, the very
    same list comes back in ``result.messages``; untouched messages are always the caller's own objects. Options:
    ``CompactOptions``; ``model`` or ``window`` is needed. Linear in the messages; without a summariser no model is
    asked.

    Raises: ``ConfigError`` for an unknown or wrong option or a model without a known window, ``InputError`` for what
    can't be messages. Every other failure leaves the messages as they were and is told in ``result.meta.error``.
    """
    check(options, "compact")
    messages = _listed(messages)
    policy = policy_of(options, messages, "compact")
    summarizer = as_summarizer(options.get("summarizer"))
    return drive(compact_flow(messages, policy), answers(summarizer, options.get("archive")))


async def acompact(messages: list[Any], **options: Unpack[CompactOptions]) -> CompactionResult:
    """Fit a conversation into the model's window, as ``compact`` does, awaiting the summariser and the archive."""
    check(options, "acompact")
    messages = _listed(messages)
    policy = policy_of(options, messages, "acompact")
    summarizer = as_summarizer(options.get("summarizer"))
    return await adrive(compact_flow(messages, policy), aanswers(summarizer, options.get("archive")))


def plan_compaction(messages: list[Any], **options: Unpack[CompactOptions]) -> Plan:
    """Give the plan that ``compact`` would carry out: its moves, tokens before and after, and why. A dry run.

    No model is asked and nothing is archived. With a summariser the plan holds the most that its digest may weigh.
    """
    check(options, "plan_compaction")
    messages = _listed(messages)
    policy = policy_of(options, messages, "plan_compaction", dry_run=True)
    return drive(compact_flow(messages, policy), answers(None, None)).plan


@overload
def restore(source: CompactionResult, id: str) -> Span: ...
@overload
def restore(source: Any, id: str, *, space: str = "") -> Span: ...
def restore(source: Any, id: str, *, space: str = "") -> Span:
    """Give back what a compaction took out, exactly as it was, with its position.

    ``source``: a ``CompactionResult`` or an archive. ``id``: an archive id (from a placeholder, a summary or a move), or
    with a result the id of a dropped message. Raises ``NotFound`` for an id that is not there.
    """
    if isinstance(source, CompactionResult):
        return _restore_from_result(source, id)
    return drive(restore_span(id, space=space), answers(None, source))


def _restore_from_result(result: CompactionResult, id: str) -> Span:
    for taken in result.taken:
        if taken.id == id:
            position = next((o for o in taken.origins if o >= 0), 0)
            return Span(id=id, position=position, messages=taken.messages, what=taken.what, tokens=taken.tokens)
    for dropped in result.dropped:
        if dropped.id == id:
            return Span(id=id, position=dropped.position, messages=(dropped.message,), entry_ids=(id,))
    raise NotFound(f"this compaction took nothing out as {id!r}")


def _listed(messages: Sequence[Any]) -> list[Any]:
    if isinstance(messages, list):
        return messages
    if isinstance(messages, (str, bytes)) or not isinstance(messages, Sequence):
        raise InputError(f"messages must be a list of native messages, not {type(messages).__name__}")
    return list(messages)
