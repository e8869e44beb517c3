"""The flow of one compaction: measure, repair, plan, digest, apply, verify, archive.

Rules of the file:

- When nothing is wrong and it fits, the caller's own list comes back.
- Nothing of the caller's is changed. A failure at any step gives the caller's own list and says why.
- The archive is written before the changed history is returned; when that fails, nothing was dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wakeful.compaction.apply import Final, assemble
from wakeful.compaction.archive import make_record, put
from wakeful.compaction.draft import Draft
from wakeful.compaction.identity import ids_of
from wakeful.compaction.measure import History, measure
from wakeful.compaction.moves import Repair
from wakeful.compaction.plan import Plan
from wakeful.compaction.policy import Policy
from wakeful.compaction.repair import repair
from wakeful.compaction.result import CompactionMeta, CompactionResult, DroppedMessages
from wakeful.compaction.strategies import RUN, Failed
from wakeful.compaction.timing import Verdict, worth_it
from wakeful.compaction.verify import faults
from wakeful.errors import WakefulError
from wakeful.needs import Flow


def compact_flow(messages: list[Any], policy: Policy, *, history: History | None = None) -> Flow[CompactionResult]:
    """Compact messages by a policy. ``history``: they are measured already.

    Raises ``InputError`` only for what can't be a message of the dialect; every other failure is in ``meta.error``.
    """
    if history is None:
        history = measure(policy.dialect, messages, policy.meter.count)
    return (yield from _compact(messages, policy, history))


def _compact(messages: list[Any], policy: Policy, given: History) -> Flow[CompactionResult]:
    before = given.tokens, given.size
    try:
        history, repairs = repair(policy.dialect, given, policy.meter.count)
    except WakefulError as error:
        return unchanged(messages, policy, before, error=f"repair: {error}")
    start = policy.meter.unscaled(policy.budget.start)
    starts = policy.force or history.tokens > start or history.size > policy.budget.byte_start
    verdict: Verdict | None = None
    draft: Draft | None = None
    if policy.cost is not None and policy.budget.window is not None:
        draft = Draft(policy, history, len(messages))
        verdict = worth_it(draft, policy.cost)
        starts = verdict.compact
        if verdict.goal is not None:
            draft.goal = verdict.goal
    if not starts and not repairs:
        return unchanged(messages, policy, before, reason=verdict.reason if verdict else "fits", verdict=verdict)
    if draft is None:
        draft = Draft(policy, history, len(messages))
    if starts:
        failed = yield from RUN[policy.strategy](draft)
        if isinstance(failed, Failed):
            return unchanged(messages, policy, before, error=failed.reason, draft=draft, verdict=verdict)
    result = _finish(messages, policy, draft, given, repairs, verdict)
    if result.meta.compacted and policy.archive and result.taken and not policy.dry_run:
        try:
            yield from _archive(policy, result)
        except WakefulError as error:
            return unchanged(messages, policy, before, error=f"archive: {error}", draft=draft, verdict=verdict)
    return result


def _finish(
    messages: list[Any],
    policy: Policy,
    draft: Draft,
    given: History,
    repairs: tuple[Repair, ...],
    verdict: Verdict | None,
) -> CompactionResult:
    moved = bool(draft.moves)
    before = given.tokens, given.size
    if not moved and not repairs:
        return unchanged(messages, policy, before, reason="nothing_to_drop", draft=draft, verdict=verdict)
    draft.strip_thinking()
    final = assemble(draft)
    if moved and final.history.tokens >= before[0] and final.history.size >= before[1] and not policy.dry_run:
        if repairs:
            draft = Draft(policy, draft.history, draft.given)
            draft.strip_thinking()
            final, moved = assemble(draft), False
        else:
            return unchanged(messages, policy, before, reason="nothing_to_drop", draft=draft, verdict=verdict)
    wrong = faults(policy.dialect, draft, final, draft.given, dry_run=policy.dry_run)
    if wrong:
        return unchanged(messages, policy, before, error=f"verify: {wrong[0]}", draft=draft, verdict=verdict)
    return _changed(policy, draft, final, given, (*repairs, *final.repairs), moved, verdict)


def _changed(
    policy: Policy,
    draft: Draft,
    final: Final,
    given: History,
    repairs: tuple[Repair, ...],
    moved: bool,
    verdict: Verdict | None,
) -> CompactionResult:
    scaled = policy.meter.scaled
    tokens = draft.tokens if policy.dry_run else final.history.tokens
    size = final.history.size
    over = tokens > draft.room or size > draft.byte_room
    reason = "compacted" if moved else "repaired"
    gone = final.dropped
    ids = policy.entry_ids
    dropped = DroppedMessages(
        gone, given.messages, (lambda: ids) if ids is not None else lambda: ids_of(policy.dialect, given.messages)
    )
    plan = Plan(
        moves=(*repairs, *draft.moves),
        tokens_before=scaled(given.tokens),
        tokens_after=scaled(tokens),
        bytes_before=given.size,
        bytes_after=size,
        strategy=policy.strategy,
        budget=policy.budget,
        reason=reason,
        notes=tuple(draft.notes),
        over_budget=over,
        floor_tokens=scaled(tokens) if over else None,
        estimate=verdict.estimate if verdict else None,
    )
    meta = CompactionMeta(
        compacted=True,
        tokens_before=plan.tokens_before,
        tokens_after=plan.tokens_after,
        tokens_removed=scaled(_removed(draft)),
        strategy=policy.strategy,
        dropped=dropped if gone else None,
        reason=None if moved else "repaired",
        over_budget=True if over else None,
        floor_tokens=plan.floor_tokens,
        thinking_off=True if draft.thinking_off else None,
        notes=plan.notes or None,
    )
    return CompactionResult(
        messages=final.history.messages,
        meta=meta,
        plan=plan,
        dropped=dropped if gone else (),
        taken=tuple(draft.taken.values()),
        origins=final.history.origins,
        merged=final.history.merged,
        before=given.messages,
        breaker=draft.breaker,
    )


def _removed(draft: Draft) -> int:
    """Tokens of this turn's messages (from the latest user's on) that were removed or made lighter."""
    start = max(0, draft.latest_user)
    gone = draft.gone
    heavy = draft.history.running_tokens()
    spans = [(max(start, a), b) for a, b in draft.removed if b > start]
    total = sum([heavy[b] - heavy[a] for a, b in spans])
    if len(gone) > sum([b - a for a, b in draft.removed]):
        total = sum([heavy[i + 1] - heavy[i] for i in gone if i >= start])
    if draft.edited:
        first, now = draft.history.weights, draft.weights
        total += sum([max(0, first[i][1] - now[i][1]) for i in draft.edited if i >= start and i not in gone])
    return total


def unchanged(
    messages: list[Any],
    policy: Policy,
    before: tuple[int, int],
    *,
    reason: str | None = None,
    error: str | None = None,
    draft: Draft | None = None,
    verdict: Verdict | None = None,
) -> CompactionResult:
    """Give the result of doing nothing. ``before``: tokens (as counted) and bytes of the messages."""
    meter, budget = policy.meter, policy.budget
    tokens = meter.scaled(before[0])
    over = before[0] > meter.unscaled(budget.room) or before[1] > budget.byte_room
    notes = tuple(draft.notes) if draft is not None else ()
    plan = Plan(
        tokens_before=tokens,
        tokens_after=tokens,
        bytes_before=before[1],
        bytes_after=before[1],
        strategy=policy.strategy,
        budget=budget,
        reason=reason or "error",
        notes=notes,
        over_budget=over,
        floor_tokens=tokens if over else None,
        estimate=verdict.estimate if verdict else None,
    )
    meta = CompactionMeta(
        compacted=False,
        tokens_before=tokens,
        tokens_after=tokens,
        strategy=policy.strategy,
        error=error,
        reason=reason,
        over_budget=True if over else None,
        floor_tokens=plan.floor_tokens,
        notes=notes or None,
    )
    return CompactionResult(
        messages=messages,
        meta=meta,
        plan=plan,
        origins=range(len(messages)),
        before=messages,
        breaker=draft.breaker if draft is not None else policy.breaker,
    )


def _archive(policy: Policy, result: CompactionResult) -> Flow[None]:
    ids: Sequence[str] = policy.entry_ids or ids_of(policy.dialect, result.before)
    records = [
        make_record(
            policy.dialect,
            taken.messages,
            position=next((o for o in taken.origins if o >= 0), 0),
            entry_ids=tuple(ids[o] for o in taken.origins if o >= 0),
            what=taken.what,
            tokens=taken.tokens,
        )
        for taken in result.taken
    ]
    yield from put(records, space=policy.space)
