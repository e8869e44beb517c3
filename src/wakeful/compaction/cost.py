"""When a compaction pays, and how deep it should go: the tokens it saves against the prompt cache that it breaks.

The unit is the price of one uncached input token. A call over a history of ``h`` tokens whose first ``c`` tokens are
cached costs ``c * read + (h - c) * write``.

The model behind the decision. A call adds ``g`` tokens. Without a compaction the next ``n`` calls cost
``read * (n*h + g*n*(n-1)/2) + write*g*n``. A compaction brings the history down to ``f`` tokens, of which the first ``p``
keep their cache, and costs ``(write - read) * (f - p)`` once, and what its digest costs. After it the history grows
again, and is compacted again when that pays: over ``n`` calls in ``j`` equal runs the reads cost
``read * (n*f + g*n*(n/j - 1)/2)``, the compactions between them ``(j - 1)`` times their price. The best ``j`` is near
``n / sqrt(2 * price / (read * g))``, bounded from below by what the room holds. To compact now is right when no later
moment is cheaper. ``write*g*n`` is the same for all, and left out.

Source: the square-root rule is that of the economic order quantity (F. W. Harris, "How many parts to make at once",
1913), with the cache's rewrite as the cost of an order and the reads as the cost of holding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, inf, sqrt

from wakeful.pricing import Prices

CAUTION = 0.25
"""Share of the average growth that the room must hold for waiting to stay a choice. Growth is uneven: most calls add far
less than the average, and a compaction made for fear of a large one may never have been needed. When the large one
comes, the history is compacted then, at the same price."""


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
    price: float = 0.0
    """What making it costs beside the cache (a summariser's call), in uncached input tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEstimate:
    """What a decision is expected to cost, in uncached input tokens, over the calls still expected."""

    wait: float
    """Without a compaction now: the best of compacting at any later call, and of never."""
    compact: float
    """With the best compaction now; infinite when there is none."""
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
) -> CostDecision:
    """Decide for ``trigger="cost"``.

    ``tokens``: the history that the next call would send; ``room``: what it may be at most (above it, compacting is not a
    choice); ``depths``: the ways to compact now, in any order; ``growth``: tokens that a call adds on average;
    ``expected_calls``: still to come, the next one included, None when unknown: then as many as there were so far (what
    has lasted long lasts longer), at least one.
    """
    calls = max(1.0, float(calls_so_far) if expected_calls is None else expected_calls)
    grows = growth if growth > 0.001 else 0.0
    useful = [depth for depth in depths if depth.target < tokens]
    best: Depth | None = None
    now = inf
    for depth in useful:
        cost = _price(depth, grows, shares) + _from(depth, calls, grows, room, shares)
        if cost < now:
            best, now = depth, cost
    wait = inf if tokens > room else _waiting(tokens, room, useful, grows, calls, shares)
    return CostDecision(
        compact=best is not None and now < wait,
        depth=best,
        estimate=CostEstimate(wait=wait, compact=now, calls=calls),
    )


def _price(depth: Depth, growth: float, shares: CacheShares) -> float:
    """What one compaction costs: its target is written anew but for the kept prefix, and its digest is made. The newest
    ``growth`` would have to be written in any case."""
    anew = max(0.0, depth.target - depth.kept_prefix - growth)
    return max(0.0, shares.write - shares.read) * anew + depth.price


def _reads(size: float, calls: float, growth: float, shares: CacheShares) -> float:
    """Reads of a history of ``size`` over so many calls, each adding ``growth`` after it was sent."""
    return shares.read * calls * (size + growth * max(0.0, calls - 1) / 2)


def _from(depth: Depth, calls: float, growth: float, room: int, shares: CacheShares) -> float:
    """Cost of the calls to come, right after a compaction of this depth, with the best number of further ones."""
    price = _price(depth, growth, shares)
    longest = inf if growth <= 0 else max(1.0, (room - depth.target) / growth)
    least = max(1, ceil(calls / longest))
    if growth <= 0 or shares.read <= 0:
        return _reads(depth.target, calls, growth, shares) + (least - 1) * price
    run = sqrt(max(1.0, 2 * price / (shares.read * growth)))
    wanted = calls / run
    cost = inf
    for runs in {least, max(least, floor(wanted)), max(least, ceil(wanted))}:
        if runs >= 1:
            cost = min(cost, runs * _reads(depth.target, calls / runs, growth, shares) + (runs - 1) * price)
    return cost


def _waiting(
    tokens: int, room: int, depths: Sequence[Depth], growth: float, calls: float, shares: CacheShares
) -> float:
    """Cheapest cost when at least one more call is made first: compact at a later one, or never."""
    fits = inf if growth <= 0 else max(0.0, (room - tokens) / (growth * CAUTION))
    cost = _reads(tokens, calls, growth, shares) if calls <= fits + 1 else inf
    for depth in depths:
        later = 1.0
        while later <= min(fits + 1, calls - 1):
            after = _price(depth, growth, shares) + _from(depth, calls - later, growth, room, shares)
            cost = min(cost, _reads(tokens, later, growth, shares) + after)
            later *= 2
    return cost
