"""Reminders on the command line."""

from __future__ import annotations

import pytest


def test_a_reminder_is_given_once_and_settled(wakeful, at):
    wakeful("remind", "call the dentist", "--at", "2026-01-01T09:00+00:00")
    wakeful("remind", "far away", "--at", "2999-01-01")
    first = wakeful("due", "--ack", "--json")
    assert [(each["text"], each["late"], each["settled"]) for each in first.json["due"]] == [
        ("call the dentist", True, True)
    ]
    assert wakeful("due", "--ack").code == 1


def test_a_claimed_one_is_settled_later_by_its_id(wakeful, at):
    node_id = wakeful("remind", "water the plants", "--at", "2026-01-01", "--json").json["id"]
    assert node_id in wakeful("due").out
    assert wakeful("due").code == 1
    assert wakeful("due", "--settle", node_id).code == 0
    assert wakeful("due", "--settle", node_id).code == 1
    assert wakeful("due", "--settle", "no-such-id").code == 1


def test_a_series_goes_on(wakeful, at):
    made = wakeful("remind", "stand up", "--every", "2 weeks", "--at", "2026-01-01T09:00+00:00", "--json")
    assert made.json["properties"]["every"] == {"unit": "week", "count": 2, "zone": None}
    assert wakeful("due", "--ack").code == 0
    shown = wakeful("memory", "show", made.json["id"], "--json").json
    assert shown["properties"]["due_at"] > "2026-01-01T09:00"
    assert shown["properties"].get("done") is not True


@pytest.mark.parametrize(
    ("way", "miss", "hit"),
    [
        (["--event", "parcel-arrived"], ["--event", "rain"], ["--event", "parcel-arrived"]),
        (["--when", "invoice"], ["--query", "the weather"], ["--query", "where is my invoice?"]),
    ],
)
def test_events_and_queries_call_their_own_reminders(wakeful, at, way, miss, hit):
    wakeful("remind", "tell them about the discount", *way)
    assert wakeful("due", *miss).code == 1
    assert "discount" in wakeful("due", *hit, "--ack").out


def test_another_scope_is_not_reminded(wakeful, at):
    wakeful("remind", "call the dentist", "--at", "2026-01-01")
    assert wakeful("due", "--scope", "org:acme/user:ben").code == 1
