"""``wakeful ingest`` takes recorded conversations in, once, also when it was interrupted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wakeful.engine import ingest as module
from wakeful.engine.memory import Memory
from wakeful.records import MemoryScope

SAMPLE = Path(__file__).parents[2] / "samples" / "audit.anthropic.json"
LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ana",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [{"speaker": "Ana", "dia_id": "D1:1", "text": "I adopted a grey cat named Misty."}],
            "session_2_date_time": "7:05 am on 25 August, 2023",
            "session_2": [{"speaker": "Bo", "dia_id": "D2:1", "text": "We moved to Gothenburg."}],
        },
        "qa": [],
    }
]


def test_a_recorded_conversation_is_taken_once(wakeful, at):
    first = wakeful("ingest", SAMPLE, "--json").json
    assert first["written"] == first["turns"] > 100
    assert wakeful("recall", "where should the results be sent").out.count("Kungsgatan 12") >= 1
    again = wakeful("ingest", SAMPLE, "--json").json
    assert again == {"turns": first["turns"], "written": 0, "already": first["turns"]}


def test_locomo_keeps_speakers_sessions_dates_and_ids(wakeful, at, tmp_path):
    (tmp_path / "locomo.json").write_text(json.dumps(LOCOMO))
    assert wakeful("ingest", "locomo.json", "--json").json["written"] == 2
    hit = wakeful("recall", "which cat did Ana adopt", "--json", "-k", "1").out
    assert "Misty" in hit
    assert "D1:1" in hit
    assert "2023-05-08T13:56" in hit


def test_json_lines_are_taken(wakeful, at, tmp_path):
    lines = [{"role": "user", "content": "I like tea"}, {"role": "assistant", "content": "Noted"}]
    (tmp_path / "talk.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert wakeful("ingest", "talk.jsonl", "--json").json["written"] == 2


def test_an_interrupted_run_goes_on_and_nothing_is_there_twice(monkeypatch):
    monkeypatch.setattr(module, "BATCH", 7)
    scope = MemoryScope.parse("org:acme/user:ana")
    turns = module.turns_of([{"role": "user", "content": f"turn number {i}"} for i in range(30)], session="s")
    with Memory.open("memory://", embedder=False) as memory:
        run = module.ingest(memory, scope, turns, extract=False)
        for _ in range(3):
            next(run)
        run.close()
        last = list(module.ingest(memory, scope, turns, extract=False))[-1]
        assert (last.done, last.written) == (30, 16)
        assert memory.stats(scope)["nodes"] == 30


@pytest.mark.parametrize(
    "content", ["[]", "7", "{}", "not json", '[{"role": "tool", "tool_call_id": "x", "content": "y"}]']
)
def test_what_is_no_conversation_is_one_clear_line(wakeful, at, tmp_path, content):
    (tmp_path / "bad.json").write_text(content)
    done = wakeful("ingest", "bad.json")
    assert done.code == 2
    assert len(done.err.splitlines()) == 1
    assert not (tmp_path / "memory.db").exists()
