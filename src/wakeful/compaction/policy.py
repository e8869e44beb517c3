"""Everything that a compaction is told, resolved: numbers, the dialect, the meter, what help there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from wakeful.compaction.budget import Budget
from wakeful.compaction.cost import CacheShares
from wakeful.compaction.digest_parts import Breaker
from wakeful.compaction.meter import Meter
from wakeful.dialects.protocol import Dialect

StrategyName: TypeAlias = Literal["oldest_first", "sliding_window", "summarize", "clear", "ladder"]
STRATEGIES: tuple[str, ...] = get_args(StrategyName)

KEEP_RECENT = 4
"""Newest rounds that are left alone when the caller does not say how many."""

MIN_CLEAR = 64
"""Tokens of a result under which it is not cleared: a placeholder has about 30, so less would not pay."""

MIN_BATCH = 0.02
"""Share of the room that clearing must save to be worth the cache that it breaks, unless it is all that is needed."""

DIGEST_SHARE = 0.8
"""Most of the target that a summary may fill: in a small window the facts of what left are worth more than quiet room."""

DIGEST_PLENTY = 1_000
"""Tokens that a summary may have in any window that is large enough (``DIGEST_SHARE``)."""

DIGEST_LARGE = 0.15
"""Share of the target that a summary may fill beyond ``DIGEST_PLENTY``: in a large window a longer one is not read."""


def digest_most(goal: int) -> int:
    """Most tokens of a summary in a history that is to come down to ``goal``."""
    return min(int(DIGEST_SHARE * goal), max(DIGEST_PLENTY, int(DIGEST_LARGE * goal)))


MIN_DIGEST = 48
"""Tokens under which no summary is tried: its label and archive ids alone need about so many."""


@dataclass(frozen=True, slots=True)
class CostPolicy:
    """What cost-aware timing (``trigger="cost"``) knows."""

    shares: CacheShares = field(default_factory=CacheShares)
    expected_calls: float | None = None
    """Model calls still to come; None: not known."""
    calls_so_far: int = 0
    growth: float | None = None
    """Tokens that a call adds on average; None: taken from the history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How to compact."""

    dialect: Dialect
    meter: Meter
    budget: Budget
    strategy: str = "ladder"
    keep_recent: int = KEEP_RECENT
    """Newest rounds that are left alone as long as possible."""
    yields: bool = False
    """Nobody asked for that number, so fewer are left alone when a digest has no room otherwise (``room``)."""
    mid_round: bool = False
    cost: CostPolicy | None = None
    summarizer: bool = False
    """There is a model to ask for digests; otherwise they are extracted."""
    summarizer_window: int | None = None
    archive: bool = False
    """There is an archive to write to."""
    space: str = ""
    """Whose archive it is."""
    instructions: str | None = None
    breaker: Breaker = field(default_factory=Breaker)
    entry_ids: Sequence[str] | None = None
    """Ids of the messages; None: made from their content when asked for."""
    marked: frozenset[int] = frozenset()
    """Indexes of messages that must stay."""
    dry_run: bool = False
    force: bool = False
    """Compact although it fits (a manual compaction)."""
