"""Cost-aware timing: the planner against every schedule that it could have chosen."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.compaction.cost import CacheShares, Depth, decide
from wakeful.pricing import Prices

SHARES = CacheShares(read=0.1, write=1.25)


def cost_of(size: int, growth: int, calls: int, target: int, when: tuple[int, ...], room: int = 10**9) -> float:
    """Run the cache by hand: compact before the calls named in ``when``."""
    cached, cost = max(0, size - growth), 0.0
    for call in range(calls):
        if call in when and target < size:
            size, cached = target, 0
        if size > room:
            return inf
        cost += cached * SHARES.read + (size - cached) * SHARES.write
        cached = size
        size += growth
    return cost


def planned(size: int, growth: int, calls: int, target: int, room: int = 10**9) -> tuple[int, ...]:
    """Ask the planner before every call."""
    when = []
    for call in range(calls):
        decision = decide(
            tokens=size,
            room=room,
            depths=[Depth(target=target, kept_prefix=0)],
            growth=growth,
            expected_calls=calls - call,
            calls_so_far=call,
            shares=SHARES,
        )
        if decision.compact:
            when.append(call)
            size = target
        size += growth
    return tuple(when)


@given(st.integers(500, 20_000), st.integers(10, 3_000), st.integers(1, 9), st.integers(100, 2_000))
def test_the_plan_is_close_to_the_best_of_all_schedules(size: int, growth: int, calls: int, target: int) -> None:
    best = min(cost_of(size, growth, calls, target, when) for n in range(4) for when in combinations(range(calls), n))
    assert cost_of(size, growth, calls, target, planned(size, growth, calls, target)) <= best * 1.12 + 1


def test_with_one_call_left_the_cache_is_never_broken() -> None:
    assert planned(150_000, 1_000, 1, 20_000) == ()


def test_a_long_loop_is_compacted_long_before_the_window_is_full() -> None:
    when = planned(5_000, 200, 500, 2_000)
    gaps = [b - a for a, b in pairwise(when)]
    assert len(when) > 5
    assert max(gaps) < 60


def test_above_the_room_there_is_no_choice() -> None:
    decision = decide(
        tokens=11_000,
        room=10_000,
        depths=[Depth(target=9_900, kept_prefix=0)],
        growth=10,
        expected_calls=1,
        calls_so_far=5,
        shares=SHARES,
    )
    assert decision.compact
    assert decision.estimate.wait == inf


def test_the_room_is_kept_while_it_can_be() -> None:
    room, size, growth, target = 10_000, 3_000, 400, 2_000
    assert cost_of(size, growth, 60, target, planned(size, growth, 60, target, room), room) < inf


def test_the_cheaper_of_two_depths_is_taken() -> None:
    shallow, deep = Depth(target=40_000, kept_prefix=39_000), Depth(target=10_000, kept_prefix=1_000)
    common = {"tokens": 100_000, "room": 200_000, "growth": 500, "calls_so_far": 50, "shares": SHARES}
    soon_over = decide(depths=[deep, shallow], expected_calls=3, **common)
    long_way = decide(depths=[shallow, deep], expected_calls=400, **common)
    assert soon_over.depth == shallow
    assert long_way.depth == deep


def test_a_summarisers_price_puts_a_compaction_off() -> None:
    common = {
        "tokens": 30_000,
        "room": 10**6,
        "growth": 100.0,
        "expected_calls": 20,
        "calls_so_far": 50,
        "shares": SHARES,
    }
    assert decide(depths=[Depth(target=3_000, kept_prefix=0)], **common).compact
    assert not decide(depths=[Depth(target=3_000, kept_prefix=0, price=200_000)], **common).compact


@pytest.mark.parametrize("depths", [[], [Depth(target=9_000, kept_prefix=0)]], ids=["none", "none that shrinks"])
def test_without_a_way_to_shrink_nothing_is_planned(depths: list[Depth]) -> None:
    decision = decide(
        tokens=8_000, room=5_000, depths=depths, growth=10, expected_calls=9, calls_so_far=1, shares=SHARES
    )
    assert not decision.compact
    assert decision.depth is None


def test_unknown_calls_are_taken_to_be_as_many_as_there_were() -> None:
    decision = decide(
        tokens=8_000,
        room=50_000,
        depths=[Depth(target=1_000, kept_prefix=0)],
        growth=100,
        expected_calls=None,
        calls_so_far=37,
        shares=SHARES,
    )
    assert decision.estimate.calls == 37


@given(
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.floats(0, 10**5),
    st.one_of(st.none(), st.floats(0, 10**4)),
    st.integers(0, 10**4),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), max_size=4),
    st.sampled_from([SHARES, CacheShares(read=1.0, write=1.0), CacheShares(read=0.0, write=1.0)]),
)
def test_any_sizes_give_a_decision(
    tokens: int,
    room: int,
    growth: float,
    expected: float | None,
    so_far: int,
    depths: list[tuple[int, int]],
    shares: CacheShares,
) -> None:
    ways = [Depth(target=target, kept_prefix=prefix) for target, prefix in depths]
    decision = decide(
        tokens=tokens,
        room=room,
        depths=ways,
        growth=growth,
        expected_calls=expected,
        calls_so_far=so_far,
        shares=shares,
    )
    assert not decision.compact or (decision.depth in ways and decision.depth.target < tokens)


def test_shares_come_from_list_prices() -> None:
    shares = CacheShares.of(Prices(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75))
    assert (shares.read, shares.write) == pytest.approx((0.1, 1.25))
    assert CacheShares.of(None) == CacheShares()
