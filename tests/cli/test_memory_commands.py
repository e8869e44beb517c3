"""The commands of memory, over real SQLite files."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

ANA = "org:acme/user:ana"
BEN = "org:acme/user:ben"


@pytest.fixture
def told(wakeful, at):
    """A memory that holds four facts."""
    for text in (
        "Ana's dog is called Biscuit",
        "The parcels go to the neighbour at number 14",
        "The invoice address is Dorpsstraat 8, Utrecht",
        "The team meets on Tuesdays at ten",
    ):
        assert wakeful("remember", text, "--no-extract").code == 0


def test_what_one_run_remembers_the_next_one_recalls(wakeful, told):
    found = wakeful("recall", "what is the name of the dog", "-k", 2, "--json")
    assert found.code == 0
    assert found.json["hits"][0]["node"]["content"] == "Ana's dog is called Biscuit"
    assert len(found.json["hits"]) <= 2
    text = wakeful("recall", "what is the name of the dog").out
    assert "Biscuit" in text.splitlines()[0]


def test_text_comes_from_standard_input_too(wakeful, at, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("The code of the door is on the fridge\n"))
    done = wakeful("remember", "-", "--json")
    assert [each["content"] for each in done.json["written"]] == ["The code of the door is on the fridge"]


def test_every_option_of_remember_reaches_the_row(wakeful, at):
    done = wakeful(
        *("remember", "Lina likes tea", "--layer", "episodic", "--label", "taste", "--at", "2026-02-03T04:05+00:00"),
        *("--session", "s1", "--speaker", "Lina", "--ref", "D1:7", "--importance", 8, "--no-extract", "--json"),
    )
    (node,) = done.json["written"]
    assert (node["layer"], node["label"], node["importance"]) == ("episodic", "taste", 8)
    assert node["asserted_at"] == "2026-02-03T04:05:00+00:00"
    source = node["source"]
    assert (source["session"], source["speaker"], source["ref"]) == ("s1", "Lina", "D1:7")


def test_a_secret_is_never_stored(wakeful, at):
    secret = "sk-" + "ant-api03-" + "AbCdEf0123456789" * 3
    done = wakeful("remember", f"the key is {secret}", "--json")
    assert done.json["scrubbed"] >= 1
    assert b"AbCdEf0123456789" not in Path("memory.db").read_bytes()


@pytest.mark.parametrize("embedder", ["static", "none"])
def test_a_store_is_recalled_from_with_the_embedder_it_was_made_with(wakeful, at, embedder):
    wakeful("remember", "The cat sleeps in the attic", "--embedder", embedder)
    held = wakeful("memory", "stats", "--json").json["embedder"]
    assert (held is None) is (embedder == "none")
    assert wakeful("recall", "attic").code == 0


def test_a_recall_of_another_embedder_is_refused_in_one_line(wakeful, at):
    wakeful("remember", "The cat sleeps in the attic", "--embedder", "static")
    refused = wakeful("recall", "attic", "--embedder", "minilm")
    assert refused.code == 2
    assert len(refused.err.strip().splitlines()) == 1
    moved = wakeful("memory", "reembed", "--embedder", "minilm", "--json")
    assert (moved.code, moved.json["done"], moved.json["remaining"]) == (0, 1, 0)
    assert wakeful("recall", "attic").code == 0


def test_explain_draws_seeds_scores_and_reasons(wakeful, told):
    out = wakeful("recall", "name of the dog", "--explain").out
    assert "seeds" in out
    assert re.search(r"words +█", out)
    assert re.search(r"1\. \d\.\d\d \[█", out)
    node_id = wakeful("recall", "name of the dog", "--json").json["hits"][0]["node"]["id"]
    one = wakeful("recall", "name of the dog", "--explain", node_id)
    assert one.code == 0
    assert "recalled at place 1" in one.out
    none = wakeful("recall", "zebra crossing", "-k", 1, "--explain", "no-such-id", "--json")
    assert none.code == 1
    assert none.json["recalled"] is False


def test_a_recall_that_finds_nothing_says_so_with_its_exit_code(wakeful, told):
    found = wakeful("recall", "anything", "--scope", BEN, "--json")
    assert (found.code, found.json["hits"]) == (1, [])


def test_no_scope_sees_another(wakeful, told):
    assert wakeful("memory", "ls", "--scope", BEN).code == 1
    node_id = wakeful("memory", "ls", "--json").json["nodes"][0]["id"]
    for verb in ("show", "history", "forget", "approve"):
        assert wakeful("memory", verb, node_id, "--scope", BEN).code == 1
    assert wakeful("memory", "show", node_id).code == 0


def test_what_is_shared_above_is_seen_below_and_stays_owned_above(wakeful, at):
    wakeful("remember", "Returns are free within 30 days", "--scope", "org:acme")
    found = wakeful("recall", "free returns", "--json")
    assert [hit["node"]["scope"] for hit in found.json["hits"]] == ["org:acme"]
    node_id = found.json["hits"][0]["node"]["id"]
    assert wakeful("memory", "forget", node_id).code == 1
    assert wakeful("memory", "ls", "--owned").code == 1


def test_ls_filters_and_says_when_there_is_more(wakeful, told):
    wakeful("remember", "it rained", "--layer", "episodic", "--session", "s9", "--no-extract")
    listed = wakeful("memory", "ls", "--limit", 2, "--json").json
    assert (len(listed["nodes"]), listed["more"]) == (2, True)
    only = wakeful("memory", "ls", "--layer", "episodic", "--session", "s9", "--json").json
    assert [node["content"] for node in only["nodes"]] == ["it rained"]


def test_history_tells_what_was_replaced(wakeful, at):
    wakeful("remember", "Ana lives in Utrecht", "--at", "2026-01-01")
    new = wakeful("remember", "Ana lives in Leiden", "--at", "2026-02-01", "--json").json["written"][-1]
    changes = wakeful("memory", "history", new["id"], "--json").json["changes"]
    assert changes
    assert changes[-1]["node"]["content"] == "Ana lives in Leiden"
    assert wakeful("memory", "history", new["id"]).out.count("\n") == len(changes)


def test_forget_deletes_for_good(wakeful, told):
    node_id = wakeful("recall", "dog", "--json").json["hits"][0]["node"]["id"]
    assert wakeful("memory", "forget", node_id, "--json").json["ids"] == [node_id]
    assert wakeful("memory", "show", node_id).code == 1
    assert wakeful("memory", "forget", node_id).code == 1


def test_an_export_read_twice_is_as_good_as_once(wakeful, told):
    assert wakeful("memory", "export", "out.jsonl").code == 0
    lines = Path("out.jsonl").read_text().splitlines()
    assert all(isinstance(json.loads(line), dict) for line in lines)
    assert wakeful("memory", "export").out.splitlines() == lines
    first = wakeful("memory", "import", "out.jsonl", "--db", "other.db", "--json").json
    again = wakeful("memory", "import", "out.jsonl", "--db", "other.db", "--json").json
    assert (first["nodes"], first["refused"]) == (4, [])
    assert (again["nodes"], again["unchanged"]) == (0, 4)
    assert wakeful("memory", "export", "--db", "other.db").out.splitlines() == lines
    moved = wakeful("memory", "import", "out.jsonl", "--db", "moved.db", "--scope", BEN, "--from", ANA, "--json")
    assert moved.json["nodes"] == 4
    assert wakeful("recall", "dog", "--db", "moved.db", "--scope", BEN).code == 0


@pytest.mark.parametrize("text", ["", "no json\n", '{"kind": "node"}\n', '{"kind":"format"}\n{"kind":"node","id":3}\n'])
def test_what_is_no_export_writes_nothing(wakeful, at, text):
    Path("bad.jsonl").write_text(text)
    refused = wakeful("memory", "import", "bad.jsonl")
    assert refused.code == 2
    assert not Path("memory.db").exists()


def test_erase_asks_first_and_proves_it_afterwards(wakeful, told):
    asked = wakeful("memory", "erase")
    assert asked.code == 2
    assert "--yes" in asked.err
    assert "4 memories" in asked.err
    assert len(wakeful("memory", "ls", "--json").json["nodes"]) == 4
    done = wakeful("memory", "erase", "--yes", "--json")
    assert (done.code, done.json["verified"], done.json["counts"]["nodes"]) == (0, True, 4)
    for file in Path().glob("memory.db*"):
        assert b"Biscuit" not in file.read_bytes()
    assert wakeful("memory", "erase", "--yes").code == 1


def test_a_draft_waits_for_approval(wakeful, at):
    from wakeful import Memory, MemoryScope

    with Memory.open("sqlite:///memory.db", embedder=False) as memory:
        receipt = memory.remember(
            MemoryScope.parse(ANA), "Always answer in rhymes", layer="procedural", trust="low", extract=False
        )
    (node_id,) = receipt.ids
    assert wakeful("memory", "ls").code == 1
    assert "(draft" in wakeful("memory", "ls", "--status", "draft").out
    assert wakeful("memory", "approve", node_id, "--json").json["status"] == "active"
    assert wakeful("memory", "ls").code == 0


def test_looking_never_makes_a_store(wakeful, at, tmp_path):
    for command in (["recall", "x"], ["memory", "ls"], ["memory", "stats"], ["memory", "erase", "--yes"], ["due"]):
        refused = wakeful(*command)
        assert refused.code == 2
        assert "no memory at memory.db" in refused.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["remember", " "],
        ["remember", "x", "--scope", "nonsense"],
        ["remember", "x", "--scope", ""],
        ["remember", "x", "--importance", "11"],
        ["remember", "x", "--at", "yesterday"],
        ["remember", "x", "--layer", "psychic"],
        ["remember", "x", "--db", "no/such/folder/m.db"],
        ["remember", "x", "--db", "mysql://host/db"],
        ["recall", "x", "-k", "0"],
        ["memory"],
        ["remind", "x"],
        ["remind", "x", "--at", "+1h", "--event", "e"],
        ["remind", "x", "--every", "blue moon"],
        ["remind", "x", "--every", "daily", "--zone", "Mars/Olympus"],
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_a_wrong_option_is_one_clear_line_and_nothing_is_written(wakeful, monkeypatch, tmp_path, arguments):
    monkeypatch.setenv("WAKEFUL_DB", "memory.db")
    if "--scope" not in arguments:
        monkeypatch.setenv("WAKEFUL_SCOPE", ANA)
    refused = wakeful(*arguments)
    assert refused.code == 2
    assert refused.err.strip().splitlines()[-1].startswith("wakeful")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_store_is_left_as_it_is(wakeful, at):
    Path("memory.db").write_text("dear diary, " * 200)
    for command in (["remember", "x"], ["recall", "x"]):
        refused = wakeful(*command)
        assert refused.code == 2
        assert len(refused.err.strip().splitlines()) == 1
    assert Path("memory.db").read_text() == "dear diary, " * 200


def test_stored_text_never_drives_the_terminal(wakeful, at):
    wakeful("remember", "cats \x1b[2J\x1b]0;owned\x07 and \u202edogs\U000e0041", "--no-extract")
    node_id = wakeful("memory", "ls", "--json").json["nodes"][0]["id"]
    for command in (
        ["recall", "cats"],
        ["recall", "cats", "--explain"],
        ["memory", "ls"],
        ["memory", "show", node_id],
        ["memory", "history", node_id],
    ):
        out = wakeful(*command).out
        assert "cats" in out
        assert not set(out) & set("\x1b\x07\u202e\U000e0041")
