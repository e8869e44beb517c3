"""The commands that tend memory."""

from __future__ import annotations

import json


def test_a_nap_reports_each_phase_and_a_second_one_finds_nothing(wakeful, at):
    wakeful("remember", "Clara Jensen called about order A-17")
    done = wakeful("nap", "--cadence", "nightly")
    assert done.code == 0
    assert "cooccurrence" in done.out
    report = wakeful("nap", "--cadence", "nightly", "--json").json
    assert report["status"] == "done"
    assert report["changed"] == 0
    assert len(report["phases"]) == 13


def test_a_dry_run_changes_nothing(wakeful, at):
    wakeful("remember", "Ana likes tea")
    wakeful("remember", "Ana likes tea!")
    before = wakeful("memory", "ls", "--json").out
    report = wakeful("nap", "--cadence", "nightly", "--dry-run", "--json").json
    assert report["dry_run"]
    assert wakeful("memory", "ls", "--json").out == before


def test_every_scope_that_is_due_is_tended_once(wakeful, at):
    for name in ("ana", "bo", "cy"):
        wakeful("remember", "likes tea", "--scope", f"org:acme/user:{name}")
    due = [json.loads(line)["scope"] for line in wakeful("schedule", "--cadence", "nightly", "--json").out.splitlines()]
    assert due == ["org:acme/user:ana", "org:acme/user:bo", "org:acme/user:cy"]
    done = wakeful("nap", "--all", "--cadence", "nightly")
    assert done.code == 0
    assert len(done.out.splitlines()) == 3
    left = wakeful("schedule", "--cadence", "nightly")
    assert left.out == ""
    assert "no scope is due" in left.err


def test_workers_need_a_store_that_they_can_share(wakeful, at):
    for arguments in (("worker", "--once"), ("schedule", "--enqueue")):
        done = wakeful(*arguments)
        assert done.code == 2
        assert "PostgreSQL" in done.err


def test_an_unknown_cadence_is_refused(wakeful, at):
    assert wakeful("nap", "--cadence", "hourly").code == 2
