"""Reminders fire once for each occurrence, whatever polls, crashes or changes its clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful import Memory, MemoryScope
from wakeful.errors import ConfigError, NotFound
from wakeful.memory import Schedule

from .conftest import START, Clock


def texts(memory: Memory, scope: MemoryScope, **options: object) -> list[str]:
    return [due.text for due in memory.due(scope, **options)]  # type: ignore[arg-type]


def test_a_reminder_is_given_to_one_caller_and_settled_once(memory: Memory, scope: MemoryScope, clock: Clock) -> None:
    memory.remind(scope, "call mum", at=START + timedelta(minutes=5))
    assert texts(memory, scope) == []
    clock.go(minutes=5)
    (due,) = memory.due(scope)
    assert not due.late
    assert texts(memory, scope) == []
    assert memory.ack(scope, due)
    assert not memory.ack(scope, due)
    clock.go(days=400)
    assert texts(memory, scope) == []


def test_a_look_gives_what_a_claim_would_and_changes_nothing(memory: Memory, scope: MemoryScope, clock: Clock) -> None:
    memory.remind(scope, "by time", at=START + timedelta(minutes=5))
    memory.remind(scope, "later", at=START + timedelta(days=5))
    memory.remind(scope, "on arrival", event="arrived")
    memory.remind(scope, "of the invoice", when="invoice")
    memory.forget(scope, memory.remind(scope, "cancelled", at=START).id)
    memory.remind(scope, "expired", at=START, expires_at=START + timedelta(minutes=1))
    clock.go(minutes=6)
    for options in (
        {},
        {"query": "where is my invoice?"},
        {"query": "hello"},
        {"event": "arrived"},
        {"event": "other"},
    ):
        looked = [texts(memory, scope, claim=False, **options) for _ in range(2)]
        claimed = texts(memory, scope, **options)
        assert looked[0] == looked[1]
        assert sorted(looked[0]) == sorted(claimed)
        clock.go(minutes=2)
    (due,) = memory.due(scope)
    assert memory.ack(scope, due)
    assert texts(memory, scope, claim=False) == []


def test_a_crash_between_claim_and_ack_gives_it_again_with_the_same_key(
    memory: Memory, scope: MemoryScope, clock: Clock
) -> None:
    memory.remind(scope, "once", at=START)
    (first,) = memory.due(scope)
    clock.go(seconds=61)
    (again,) = memory.due(scope)
    assert again.occurrence == first.occurrence
    assert memory.ack(scope, again)
    assert not memory.ack(scope, first)


def test_what_was_missed_is_given_once_and_marked_late(memory: Memory, scope: MemoryScope, clock: Clock) -> None:
    memory.remind(scope, "tablets", every="daily", at=START)
    clock.go(days=10, hours=1)
    (due,) = memory.due(scope)
    assert due.late
    assert memory.ack(scope, due)
    assert texts(memory, scope) == []
    clock.go(days=1)
    assert texts(memory, scope) == ["tablets"]


def test_a_cancelled_expired_or_erased_reminder_never_fires(memory: Memory, scope: MemoryScope, clock: Clock) -> None:
    memory.forget(scope, memory.remind(scope, "cancelled", at=START + timedelta(hours=1)).id)
    memory.remind(scope, "expired", at=START + timedelta(hours=1), expires_at=START + timedelta(minutes=1))
    memory.remind(scope, "stays", at=START + timedelta(hours=1))
    clock.go(hours=2)
    assert texts(memory, scope) == ["stays"]
    memory.remind(scope, "erased", at=START)
    memory.erase(scope)
    clock.go(hours=2)
    assert texts(memory, scope) == []


def test_an_event_fires_once_and_only_in_its_scope(memory: Memory, scope: MemoryScope) -> None:
    memory.remind(scope, "say hello", event="login")
    assert texts(memory, scope, event="logout") == []
    assert texts(memory, scope.child("session", "s"), event="login") == []
    assert texts(memory, scope, event="login") == ["say hello"]
    assert texts(memory, scope, event="login") == []


def test_a_trigger_on_a_query_fires_when_all_its_words_are_asked(memory: Memory, scope: MemoryScope) -> None:
    memory.remind(scope, "mention the discount", when="annual plan")
    assert texts(memory, scope, query="which plan do I have?") == []
    (due,) = memory.due(scope, query="what does the annual plan cost?")
    assert due.text == "mention the discount"
    assert memory.ack(scope, due)
    assert texts(memory, scope, query="annual plan") == []


def test_a_snoozed_reminder_comes_back_at_its_time(memory: Memory, scope: MemoryScope, clock: Clock) -> None:
    memory.remind(scope, "later", at=START)
    (due,) = memory.due(scope)
    assert memory.snooze(scope, due, START + timedelta(hours=1))
    clock.go(minutes=59)
    assert texts(memory, scope) == []
    clock.go(minutes=1)
    assert texts(memory, scope) == ["later"]


@pytest.mark.parametrize(
    ("every", "zone", "first", "expected"),
    [
        ("daily", "Europe/Oslo", datetime(2026, 3, 28, 7, tzinfo=UTC), datetime(2026, 3, 29, 6, tzinfo=UTC)),
        ("daily", "Europe/Oslo", datetime(2026, 3, 28, 1, 30, tzinfo=UTC), datetime(2026, 3, 29, 1, 30, tzinfo=UTC)),
        ("daily", "Europe/Oslo", datetime(2026, 10, 24, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
        ("weekly", "America/New_York", datetime(2026, 3, 5, 14, tzinfo=UTC), datetime(2026, 3, 12, 13, tzinfo=UTC)),
        ("monthly", None, datetime(2026, 1, 31, 9, tzinfo=UTC), datetime(2026, 2, 28, 9, tzinfo=UTC)),
        ("yearly", None, datetime(2024, 2, 29, 9, tzinfo=UTC), datetime(2025, 2, 28, 9, tzinfo=UTC)),
        ("every 90 minutes", None, datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 1, 30, tzinfo=UTC)),
    ],
)
def test_a_series_keeps_its_local_time_across_clock_changes(
    every: str, zone: str | None, first: datetime, expected: datetime
) -> None:
    assert Schedule.read(every, zone).after(first, first) == expected


@given(
    st.sampled_from(["daily", "2 weeks", "monthly", "yearly", "3 hours"]),
    st.sampled_from([None, "Europe/Oslo", "America/New_York", "Australia/Lord_Howe"]),
    st.integers(0, 40_000),
)
def test_the_next_time_of_a_series_always_lies_in_the_future_and_within_a_period(
    every: str, zone: str | None, hours: int
) -> None:
    schedule, moment = Schedule.read(every, zone), START + timedelta(hours=hours)
    found = schedule.after(START, moment)
    assert moment < found
    longest = {"day": 1, "week": 7, "month": 31, "year": 366, "second": 1}[schedule.unit] * schedule.count
    assert schedule.unit == "second" or found - moment <= timedelta(days=longest, hours=1)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"at": START, "event": "x"},
        {"every": "sometimes"},
        {"every": "daily", "zone": "Mars/Base"},
        {"when": "the of"},
    ],
)
def test_a_reminder_that_could_never_fire_is_refused(
    memory: Memory, scope: MemoryScope, options: dict[str, object]
) -> None:
    with pytest.raises(ConfigError):
        memory.remind(scope, "x", **options)  # type: ignore[arg-type]


def test_settling_what_the_scope_does_not_own_is_not_found(memory: Memory, scope: MemoryScope) -> None:
    node = memory.remind(scope, "x", at=START)
    with pytest.raises(NotFound):
        memory.ack(scope.child("session", "s"), node.id)


def test_working_memory_is_bounded_and_ends(memory: Memory, scope: MemoryScope, clock: Clock) -> None:
    for number in range(40):
        clock.go(seconds=1)
        memory.note(scope, f"entry {number}", session="s")
    assert [node.content for node in memory.working(scope, session="s")] == [f"entry {n}" for n in range(8, 40)]
    clock.go(days=1)
    assert memory.working(scope, session="s") == ()
