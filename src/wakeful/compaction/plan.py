"""A compaction as data: the moves, what they save and why, before anything is changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from wakeful.compaction.budget import Budget
from wakeful.compaction.moves import Move


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a compaction does, or would do."""

    moves: tuple[Move, ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0
    """In a dry run the most that is left when a digest is planned."""
    bytes_before: int = 0
    bytes_after: int = 0
    strategy: str = "ladder"
    """The strategy that ran."""
    budget: Budget = field(default_factory=lambda: Budget(window=None))
    reason: str = ""
    """Why the plan is as it is, as a code: ``fits``, ``compacted``, ``repaired``, ``nothing_to_drop``, ..."""
    notes: tuple[str, ...] = ()
    """What a person should know: rungs that were skipped, digests that were refused, and why."""
    over_budget: bool = False
    floor_tokens: int | None = None
    """When over budget: tokens of what can't shrink."""
    estimate: Any = None
    """With ``trigger="cost"``: the estimate of costs on which the decision rests."""

    def __iter__(self) -> Iterator[Move]:
        return iter(self.moves)

    def __len__(self) -> int:
        return len(self.moves)

    def __bool__(self) -> bool:
        return True
