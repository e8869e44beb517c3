"""The commands that tend memory."""

from __future__ import annotations

import json

from wakeful.needs import Usage
from wakeful.testing import Say, ScriptedModel


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


def test_a_nap_of_every_scope_below_one_leaves_the_others_and_says_what_it_came_to(wakeful, at):
    for name in ("org:acme/user:ana", "org:acme/user:bo", "org:other/user:x"):
        wakeful("remember", "I live in Oslo", "--scope", name)
    planned = wakeful("nap", "--all", "--scope", "org:acme", "--dry-run")
    assert "2 scopes: 2 done" in planned.err
    assert "would be changed" in planned.err
    done = wakeful("nap", "--all", "--scope", "org:acme", "--json")
    assert [report["scope"] for report in done.json] == ["org:acme/user:ana", "org:acme/user:bo"]
    assert wakeful("schedule").out.split("\t")[0] == "org:other/user:x"
    assert "no scope is due" in wakeful("nap", "--all", "--scope", "org:acme").err


def ripe(wakeful, tmp_path):
    """A session of a month ago, in the memory."""
    lines = [
        {"role": "user", "content": f"Well, about order A-10{i}: we talked at length about nothing new at all. " * 3}
        for i in range(10)
    ]
    (tmp_path / "talk.json").write_text(json.dumps(lines))
    for i, line in enumerate(lines):
        wakeful("remember", line["content"], "--layer", "episodic", "--session", "old", "--no-extract",
                "--at", f"2026-01-01T10:{i:02}")  # fmt: skip


def test_what_a_model_costs_is_in_the_report(wakeful, at, tmp_path, monkeypatch):
    ripe(wakeful, tmp_path)
    codes = ", ".join(f"A-10{i}" for i in range(10))
    model = ScriptedModel(
        [Say(json.dumps({"sentences": [{"text": f"Orders {codes}.", "turns": [0]}]}), usage=Usage(input_tokens=900))],
        name="claude-sonnet-4-5",
    )
    monkeypatch.setattr("wakeful.cli.chat.model_of", lambda named: model)
    done = wakeful("nap", "--cadence", "nightly", "--model", "anthropic/claude-sonnet-4-5", "--calls", "3")
    assert "10 turns digested (model)" in done.out
    assert "claude-sonnet-4-5: 1 calls, 900 tokens in and 0 out, $0.0027" in done.out
    assert len(model.requests) == 1


def test_a_model_that_is_not_named_is_not_asked(wakeful, at, tmp_path, monkeypatch):
    ripe(wakeful, tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    report = wakeful("nap", "--cadence", "nightly", "--json").json
    assert report["spending"] == []
    assert report["cost"] == 0


def test_a_bar_is_drawn_on_a_terminal_alone_and_taken_away(wakeful, at, monkeypatch):
    wakeful("remember", "Ana likes tea")
    assert wakeful("nap").err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    drawn = wakeful("nap", "--cadence", "nightly").err
    assert "13 of 13: prune" in drawn
    assert drawn.endswith("\r\x1b[K")


def test_a_dry_run_leaves_every_byte_of_the_file(wakeful, at, tmp_path):
    ripe(wakeful, tmp_path)
    before = (tmp_path / "memory.db").read_bytes()
    assert wakeful("nap", "--cadence", "deep_sleep", "--dry-run", "--json").json["changed"] > 0
    assert (tmp_path / "memory.db").read_bytes() == before
