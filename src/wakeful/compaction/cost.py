"""When a compaction pays, and how deep it should go: the tokens it saves against the prompt cache that it breaks.

The unit is the price of one uncached input token. A call over a history of ``h`` tokens whose first ``c`` tokens are
cached costs ``c * read + (h - c) * write``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wakeful.pricing import Prices


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheShares:
    """Prices of cached tokens as shares of an uncached input token."""

    read: float = 0.1
    write: float = 1.25

    @classmethod
    def of(cls, prices: Prices | None) -> CacheShares:
        """Take them from list prices; the defaults when there are none."""
        return cls() if prices is None else cls(read=prices.read_ratio, write=prices.write_ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """One way to compact now."""

    target: int
    """Tokens of the history afterwards."""
    kept_prefix: int
    """Tokens at the front that stay byte-identical (the cache survives up to here)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEstimate:
    """What a decision is expected to cost, in uncached input tokens, over the calls still expected."""

    wait: float
    compact: float
    calls: float
    """Calls that were assumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostDecision:
    """Whether to compact before the next call, how deep, and what it is expected to cost."""

    compact: bool
    depth: Depth | None
    estimate: CostEstimate


def decide(
    *,
    tokens: int,
    room: int,
    depths: Sequence[Depth],
    growth: float,
    expected_calls: float | None,
    calls_so_far: int,
    shares: CacheShares,
    digest_cost: float = 0.0,
) -> CostDecision:
    """Decide for ``trigger="cost"``.

    ``tokens``: the history now; ``room``: what it may be at most; ``depths``: the ways to compact now, any order;
    ``growth``: tokens that a call adds on average; ``expected_calls`` still to come, None when unknown (then as many
    as there were so far, with a bound on the loss); ``digest_cost``: what making the digest costs.
    """
    raise NotImplementedError("the cost planner is being written")
