"""Reminders that fire once, leases with rising tokens, small state."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from wakeful import ops as op
from wakeful.errors import MemoryContractError, StaleWriter
from wakeful.records import MemoryNode
from wakeful.stores.conformance.fixtures import ANA, ANA_TODAY, BOB, LATER, START, hour, ids, node
from wakeful.stores.protocol import Store


def reminder(name: str, due: Any = START, **values: Any) -> MemoryNode:
    """A reminder that is due at an instant, or waits for an event (a string without digits)."""
    when = (
        {"event": due}
        if isinstance(due, str) and due.isalpha()
        else {"due_at": due if isinstance(due, str) else due.isoformat()}
    )
    return node(ANA, name, layer="prospective", properties={**when, "what": name}, at=hour(-9), **values)


def claim(store: Store, at: Any = START, **values: Any) -> list[str]:
    """Claim and give the ids."""
    return ids(store.execute((op.ClaimDue(**{"scope": ANA, "at": at, **values}),))[0])


def settle(store: Store, name: str, occurrence: str, **values: Any) -> bool:
    """Settle one occurrence."""
    result: bool = store.execute((op.AckDue(scope=ANA, id=name, occurrence=occurrence, **values),))[0]
    return result


class WorkPromises:
    """What workers rely on."""

    def test_a_due_reminder_is_given_once_until_its_lease_ends(self, store: Store) -> None:
        rows = (reminder("now"), reminder("late", hour(-5)), reminder("soon", hour(1)))
        store.execute((op.PutNodes(ANA, rows),))
        assert claim(store, lease_seconds=60) == ["late", "now"]
        assert claim(store, START + timedelta(seconds=59)) == []
        assert claim(store, START + timedelta(seconds=60)) == ["late", "now"]

    def test_a_settled_occurrence_never_fires_again(self, store: Store) -> None:
        store.execute((op.PutNodes(ANA, (reminder("one"),)),))
        assert claim(store) == ["one"]
        assert settle(store, "one", START.isoformat())
        assert not settle(store, "one", START.isoformat())
        assert claim(store, LATER) == []
        (kept,) = store.execute((op.GetNodes(ANA, ("one",)),))[0]
        assert kept.properties["done"] is True

    def test_the_next_occurrence_has_its_own_key(self, store: Store) -> None:
        store.execute((op.PutNodes(ANA, (reminder("one"),)),))
        assert claim(store) == ["one"]
        assert settle(store, "one", START.isoformat(), until=hour(24))
        assert not settle(store, "one", START.isoformat(), until=hour(48))
        assert claim(store, hour(23)) == []
        (due,) = store.execute((op.ClaimDue(scope=ANA, at=hour(24)),))[0]
        assert due.properties["due_at"] == hour(24).isoformat()
        assert due.updated_at == hour(-9)
        assert settle(store, "one", due.properties["due_at"])

    def test_an_instant_is_due_whatever_its_zone(self, store: Store) -> None:
        store.execute((op.PutNodes(ANA, (reminder("one", "2026-03-01T17:30:00+05:30"),)),))
        assert claim(store, START - timedelta(seconds=1)) == []
        assert claim(store) == ["one"]
        assert settle(store, "one", "2026-03-01T17:30:00+05:30")

    def test_an_event_is_given_to_those_that_wait_for_it_once(self, store: Store) -> None:
        store.execute((op.PutNodes(ANA, (reminder("one", "deploy"), reminder("two", "login"), reminder("due"))),))
        assert claim(store, event="deploy") == ["one"]
        assert claim(store, event="deploy") == []
        assert claim(store, event="unknown") == []
        assert settle(store, "one", "deploy")
        assert claim(store, LATER, event="deploy") == []
        assert claim(store, LATER) == ["due"]

    def test_a_snoozed_event_comes_back_by_time(self, store: Store) -> None:
        store.execute((op.PutNodes(ANA, (reminder("one", "deploy"),)),))
        assert claim(store, event="deploy") == ["one"]
        assert settle(store, "one", "deploy", until=hour(2))
        assert claim(store, hour(1)) == []
        assert claim(store, hour(2)) == ["one"]

    @pytest.mark.parametrize(
        "values",
        [
            *({"status": "retracted"}, {"status": "draft"}, {"expires_at": START}, {"superseded_at": hour(-1)}),
            *({"valid_from": hour(1)}, {"valid_until": START}),
        ],
    )
    def test_a_cancelled_expired_or_unapproved_one_never_fires(self, store: Store, values: dict[str, Any]) -> None:
        store.execute((op.PutNodes(ANA, (reminder("one", **values), reminder("two", "deploy", **values))),))
        assert claim(store) == []
        assert claim(store, event="deploy") == []

    def test_only_the_owner_claims_and_settles(self, store: Store) -> None:
        store.execute((op.PutNodes(ANA, (reminder("one"),)),))
        for other in (BOB, ANA_TODAY):
            assert claim(store, scope=other) == []
        assert not store.execute((op.AckDue(scope=BOB, id="one", occurrence=START.isoformat()),))[0]
        assert claim(store) == ["one"]

    def test_the_limit_takes_the_earliest(self, store: Store) -> None:
        store.execute((op.PutNodes(ANA, tuple(reminder(f"r{n}", hour(-n)) for n in range(5))),))
        assert claim(store, limit=2) == ["r4", "r3"]
        assert claim(store, limit=2) == ["r2", "r1"]

    def test_a_new_time_ends_the_claim_of_the_old(self, store: Store) -> None:
        store.execute((op.PutNodes(ANA, (reminder("one"),)),))
        assert claim(store, lease_seconds=9999) == ["one"]
        moved = reminder("one", hour(1))
        store.execute((op.UpdateNodes(scope=ANA, changes={"one": {"properties": moved.properties}}),))
        assert claim(store, hour(1)) == ["one"]

    @pytest.mark.parametrize("due", ["2026-03-01T12:00:00", "tomorrow at 5", 17, "2026-02-30T00:00:00+00:00"])
    def test_a_time_that_is_naive_or_none_is_refused(self, store: Store, due: Any) -> None:
        broken = node(ANA, "one", layer="prospective", properties={"due_at": due})
        with pytest.raises(MemoryContractError, match="due_at"):
            store.execute((op.PutNodes(ANA, (broken,)),))

    def test_a_lease_is_held_by_one_worker_and_passes_on_when_it_ends(self, store: Store) -> None:
        def acquire(owner: str, at: Any, scope: Any = ANA) -> int | None:
            token: int | None = store.execute((op.AcquireLease(scope=scope, owner=owner, at=at, seconds=60),))[0]
            return token

        first = acquire("a", START)
        assert first is not None
        assert acquire("b", START + timedelta(seconds=59)) is None
        assert acquire("b", START, BOB) is not None
        second = acquire("b", START + timedelta(seconds=60))
        assert second is not None
        assert second > first
        third = acquire("b", START + timedelta(seconds=61))
        assert third is not None
        assert third > second

    def test_only_the_holder_renews_and_releases(self, store: Store) -> None:
        (token,) = store.execute((op.AcquireLease(scope=ANA, owner="a", at=START, seconds=60),))

        def renew(owner: str, key: int, at: Any) -> bool:
            held: bool = store.execute((op.RenewLease(scope=ANA, owner=owner, token=key, at=at, seconds=60),))[0]
            return held

        assert renew("a", token, START + timedelta(seconds=30))
        assert not renew("b", token, START)
        assert not renew("a", token + 1, START)
        assert not renew("a", token, hour(1))
        assert store.execute((op.ReleaseLease(scope=ANA, owner="b", token=token),)) == (False,)
        assert store.execute((op.ReleaseLease(scope=ANA, owner="a", token=token),)) == (True,)
        (other,) = store.execute((op.AcquireLease(scope=ANA, owner="b", at=START, seconds=60),))
        assert other > token

    def test_a_worker_that_was_fenced_off_writes_nothing(self, store: Store) -> None:
        (old,) = store.execute((op.AcquireLease(scope=ANA, owner="a", at=START, seconds=1),))
        (new,) = store.execute((op.AcquireLease(scope=ANA, owner="b", at=hour(1), seconds=1),))
        with pytest.raises(StaleWriter):
            store.execute((op.PutNodes(ANA, (node(ANA, "late"),)), op.Fence(ANA, old)))
        with pytest.raises(StaleWriter):
            store.execute((op.Fence(BOB, new), op.PutNodes(BOB, (node(BOB, "late"),))))
        store.execute((op.Fence(ANA, new), op.PutNodes(ANA, (node(ANA, "mine"),))))
        assert ids(store.execute((op.GetNodes(ANA, ("late", "mine")),))[0]) == ["mine"]

    @pytest.mark.parametrize("value", [0, False, "", [], {}, {"a": [1, None, "é"]}, 1.5, "x" * 5000])
    def test_state_is_kept_for_its_scope_and_key_alone(self, store: Store, value: Any) -> None:
        store.execute((op.PutState(ANA, "k", "before"), op.PutState(ANA, "k", value), op.PutState(BOB, "k", 7)))
        reads = (op.GetState(ANA, "k"), op.GetState(ANA, "other"), op.GetState(ANA_TODAY, "k"))
        assert store.execute(reads) == (value, None, None)
        assert store.execute((op.PutState(ANA, "k", None), op.GetState(ANA, "k"), op.GetState(BOB, "k")))[1:] == (
            None,
            7,
        )
