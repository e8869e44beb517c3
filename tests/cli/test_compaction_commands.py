"""The commands of compaction on the recorded conversations, and on files that are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wakeful.cli import main

SAMPLES = Path(__file__).parents[2] / "samples"
FILES = [SAMPLES / "audit.openai.json", SAMPLES / "audit.anthropic.json"]


@pytest.fixture
def run(capsys):
    def go(*arguments):
        code = main([str(each) for each in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return go


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_inspect_shows_rounds_kinds_and_the_largest_contents(run, file):
    code, out, _ = run("inspect", file, "--window", 40_000)
    assert code == 0
    assert "does not fit" in out
    assert "tokens by kind" in out
    code, out, _ = run("inspect", file, "--model", "claude-sonnet-4-5", "--json")
    data = json.loads(out)
    assert data["problems"] == []
    assert sum(data["by_kind"].values()) == sum(data["by_role"].values())
    assert [c["tokens"] for c in data["largest"]] == sorted((c["tokens"] for c in data["largest"]), reverse=True)
    assert sum(r["stop"] - r["start"] for r in data["rounds"]) == data["messages"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
@pytest.mark.parametrize("strategy", ["ladder", "oldest_first", "sliding_window", "summarize", "clear"])
def test_compact_writes_a_valid_history_that_fits(run, tmp_path, file, strategy):
    out_file = tmp_path / "out.json"
    code, out, _ = run(
        "compact", file, "--window", 70_000, "--reserve", 30_000, "--strategy", strategy, "--out", out_file, "--json"
    )
    data = json.loads(out)
    assert (code == 1) is bool(data["over_budget"])
    assert data["compacted"]
    assert json.loads(out_file.read_text())["messages"] == data["messages"]
    assert run("validate", out_file)[0] == 0
    if not data["over_budget"]:
        assert data["tokens_after"] <= data["room"]


def test_a_dry_run_writes_nothing(run, tmp_path):
    code, out, _ = run(
        "compact", FILES[0], "--window", 40_000, "--dry-run", "--out", tmp_path / "x", "--archive", tmp_path / "y"
    )
    assert code == 0
    assert "digest" in out
    assert list(tmp_path.iterdir()) == []


def test_the_input_is_never_overwritten(run, tmp_path):
    copy = tmp_path / "copy.json"
    copy.write_bytes(FILES[0].read_bytes())
    code, _, err = run("compact", copy, "--window", 40_000, "--out", copy)
    assert code == 2
    assert "is the input itself" in err
    assert copy.read_bytes() == FILES[0].read_bytes()


def test_restore_gives_back_every_archived_span_byte_exact(run, tmp_path):
    archive = tmp_path / "archive.db"
    assert run("compact", FILES[1], "--window", 40_000, "--archive", archive)[0] == 0
    original = json.loads(FILES[1].read_text())["messages"]
    listed = run("restore", archive)[1].splitlines()
    assert len(listed) > 10
    for line in listed:
        archive_id, position, *_ = line.split("\t")
        span = json.loads(run("restore", archive, archive_id, "--json")[1])
        at = int(position)
        assert span["messages"] == original[at : at + len(span["messages"])]


def test_restore_says_what_is_not_there(run, tmp_path):
    code, _, err = run("restore", tmp_path / "none.db", "a-x")
    assert code == 2
    assert "no such archive" in err
    archive = tmp_path / "archive.db"
    run("compact", FILES[1], "--window", 40_000, "--archive", archive)
    code, _, err = run("restore", archive, "a-nothing")
    assert code == 2
    assert "a-nothing" in err


def test_replay_compares_policies_and_writes_a_page(run, tmp_path):
    page = tmp_path / "replay.html"
    code, out, _ = run(
        "replay", FILES[0], "--window", 24_000, "--policy", "none", "--policy", "ladder", "--html", page, "--quiet"
    )
    assert code == 0
    assert "ladder" in out
    html = page.read_text()
    assert "<svg" in html
    assert "http" not in html.replace("http-equiv", "")
    code, out, _ = run("replay", FILES[0], "--window", 24_000, "--policy", "ladder", "--policy", "none", "--json")
    ladder, nothing = json.loads(out)["policies"]
    assert ladder["invalid"] == 0
    assert ladder["over"] == 0
    assert ladder["compactions"] > 0
    assert nothing["over"] > 0
    assert len(ladder["steps"]) == len(nothing["steps"])
    assert ladder["cost"] < nothing["cost"]


def test_validate_names_the_rule_that_is_broken(run, tmp_path):
    broken = tmp_path / "broken.json"
    broken.write_text(
        json.dumps([{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "x", "content": "y"}])
    )
    code, out, _ = run("validate", broken)
    assert code == 1
    assert out.startswith("C1")
    code, out, _ = run("validate", broken, "--json")
    assert json.loads(out)["problems"][0]["code"] == "C1"


BAD = {
    "empty": b"",
    "blank": b"  \n\n",
    "broken": b'[{"role": "user", "content": "x"}',
    "not messages": b'{"a": 1}',
    "a number": b"7",
    "a list of numbers": b"[1, 2]",
    "no message": b"[]",
    "binary": b"\x00\x01\x02SQLite",
    "not utf-8": b'[{"role": "user", "content": "\xff\xfe"}]',
    "unknown shape": b'[{"foo": "bar"}]',
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("command", ["inspect", "compact", "replay", "validate"])
@pytest.mark.parametrize("content", BAD.values(), ids=BAD.keys())
def test_a_file_that_is_no_conversation_is_a_clear_error(run, tmp_path, command, content):
    bad = tmp_path / "bad.json"
    bad.write_bytes(content)
    window = ["--window", "1000"] if command != "validate" else []
    out_file = tmp_path / "out.json"
    extra = ["--out", out_file] if command == "compact" else []
    code, out, err = run(command, bad, *window, *extra)
    assert code == 2
    assert out == ""
    assert err.startswith("wakeful: ")
    assert len(err.splitlines()) == 1
    assert not out_file.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["compact", FILES[0]],
        ["compact", FILES[0], "--window", "-5"],
        ["compact", FILES[0], "--window", "ten"],
        ["compact", FILES[0], "--model", "no-such-model"],
        ["compact", FILES[0], "--window", "9000", "--strategy", "magic"],
        ["compact", FILES[0], "--window", "9000", "--format", "morse"],
        ["inspect", FILES[0], "--index", "3"],
        ["inspect", "no-such-file.json"],
        ["inspect", "."],
        ["replay", FILES[0], "--window", "9000", "--policy", "magic"],
        ["frobnicate"],
    ],
    ids=lambda arguments: " ".join(str(a).rsplit("/")[-1] for a in arguments),
)
def test_a_wrong_option_is_a_clear_error(run, arguments):
    code, out, err = run(*arguments)
    assert code == 2
    assert out == ""
    assert "wakeful: " in err


def test_known_file_shapes_are_read(run, tmp_path):
    messages = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
    shapes = {
        "list.json": json.dumps(messages),
        "object.json": json.dumps({"messages": messages}),
        "lines.jsonl": "\n".join(map(json.dumps, messages)),
        "lines.json": "\n".join(map(json.dumps, messages)),
        "tau.json": json.dumps([{"task_id": 1, "traj": messages}, {"task_id": 2, "traj": messages[:1]}]),
        "swe.json": json.dumps({"history": messages, "trajectory": [], "info": {}}),
    }
    for name, text in shapes.items():
        (tmp_path / name).write_text(text)
        code, out, _ = run("inspect", tmp_path / name, "--json")
        assert code == 0
        assert json.loads(out)["messages"] == 2, name
    assert json.loads(run("inspect", tmp_path / "tau.json", "--index", 1, "--json")[1])["messages"] == 1
