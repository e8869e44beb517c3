"""Cost-aware timing: whether a compaction pays now, and how deep (``trigger="cost"``)."""

from __future__ import annotations

from dataclasses import dataclass

from wakeful.compaction.cost import CostEstimate, Depth, decide
from wakeful.compaction.draft import Draft
from wakeful.compaction.policy import CostPolicy

DEPTHS = (0.1, 0.2, 0.35, 0.5, 0.7)
"""Targets that are weighed against each other, as shares of the history."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision of the planner."""

    compact: bool
    goal: int | None
    """Tokens to come down to."""
    reason: str
    estimate: CostEstimate


def worth_it(draft: Draft, cost: CostPolicy) -> Verdict:
    """Weigh the cache that a compaction breaks against the tokens that it saves over the calls still expected."""
    old = draft.old(draft.policy.keep_recent)
    head = sum(
        draft.weights[i].tokens
        for r in draft.rounds
        if r.stop <= (old[0].start if old else 0)
        for i in range(r.start, r.stop)
    )
    fixed = draft.tokens - sum(draft.weight_of(r) for r in old)
    depths = [
        Depth(target=max(fixed, int(draft.tokens * share)), kept_prefix=head)
        for share in DEPTHS
        if max(fixed, int(draft.tokens * share)) < draft.tokens
    ]
    calls = max(1, cost.calls_so_far or sum(1 for r in draft.rounds if r.calls))
    growth = cost.growth if cost.growth is not None else draft.tokens / calls
    decision = decide(
        tokens=draft.tokens,
        room=draft.room,
        depths=depths,
        growth=growth,
        expected_calls=cost.expected_calls,
        calls_so_far=calls,
        shares=cost.shares,
    )
    goal = min(decision.depth.target, draft.room) if decision.depth is not None else None
    return Verdict(decision.compact, goal, "compacted" if decision.compact else "not_worth_it", decision.estimate)
