"""The promises of ``AgentMemory``: a value with branches that nothing here can change but the active one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful import AgentMemory, WindowManager
from wakeful.errors import InputError, NotFound
from wakeful.testing.conversations import DIALECTS, random_conversation

CTX = {"window": 600, "prompt_tokens": 0, "mid_round": False, "model": None}


class Acc:
    def __init__(self, memory: AgentMemory, name: str = "x") -> None:
        self.memory = memory
        self.name = name


def test_the_same_conversation_always_gets_the_same_ids() -> None:
    messages = random_conversation("anthropic", 1, 4)
    one, other = AgentMemory.of(messages), AgentMemory()
    for message in messages:
        other = other.add_message(message)
    assert [e.id for e in one.branch()] == [e.id for e in other.branch()]
    assert one.history() == messages


def test_equal_messages_have_different_ids() -> None:
    memory = AgentMemory.of([{"role": "user", "content": "ok"}] * 3)
    assert len({e.id for e in memory.branch()}) == 3


def test_an_id_that_is_taken_is_refused() -> None:
    memory = AgentMemory().add_message("a", "one")
    with pytest.raises(InputError, match="taken"):
        memory.add_message("b", "one")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("strategy", ["oldest_first", "sliding_window", "clear", "ladder"])
@given(seed=st.integers(0, 500), at=st.floats(0, 1))
def test_other_branches_are_untouched_by_a_compaction(dialect: str, strategy: str, seed: int, at: float) -> None:
    memory = AgentMemory.of(random_conversation(dialect, seed, 5))
    entries = memory.branch()
    forked = memory.fork(entries[int(at * (len(entries) - 1))].id)
    for message in random_conversation(dialect, seed + 1, 3):
        forked = forked.add_message(message)
    other = forked.branches()[1]
    acc, meta = WindowManager(strategy, reserve=0).maybe_compact(Acc(forked), CTX)  # type: ignore[misc]
    assert acc.memory.branches()[1] is other
    assert other == entries
    if meta.compacted:
        back = acc.memory.switch(entries[-1].id)
        assert back.history() == memory.history()


@pytest.mark.parametrize("strategy", ["oldest_first", "ladder", "clear", "sliding_window", "summarize"])
@given(seed=st.integers(0, 500), dialect=st.sampled_from(DIALECTS))
def test_ids_before_are_kept_or_dropped_once_over_many_compactions(strategy: str, seed: int, dialect: str) -> None:
    first = random_conversation(dialect, seed, 4)
    memory = AgentMemory.of(first)
    originals = {e.id: e.message for e in memory.branch()}
    manager = WindowManager(strategy, reserve=0, keep_recent=2)
    gone: dict[str, Any] = {}
    acc = Acc(memory)
    for turn in range(3):
        acc, meta = manager.maybe_compact(acc, CTX)  # type: ignore[misc]
        for entry in meta.dropped or ():
            assert entry.id not in gone, "one message is reported as dropped at most once"
            gone[entry.id] = entry.message
        kept = {id for e in acc.memory.branch() for id in e.ids}
        assert not kept & set(gone)
        assert set(originals) <= kept | set(gone)
        for message in random_conversation(dialect, seed + turn + 1, 2)[1:]:
            grown = acc.memory.add_message(message)
            originals[grown.branch()[-1].id] = message
            acc = Acc(grown)
    assert all(gone[id] is message for id, message in originals.items() if id in gone)


@given(seed=st.integers(0, 500), dialect=st.sampled_from([d for d in DIALECTS if d != "langchain"]))
def test_a_dumped_memory_is_loaded_as_it_was(seed: int, dialect: str) -> None:
    memory = AgentMemory.of(random_conversation(dialect, seed, 4))
    memory = memory.pin(memory.branch()[0].id).fork(memory.branch()[-1].id)
    acc, _ = WindowManager("ladder", reserve=0).maybe_compact(Acc(memory), CTX)  # type: ignore[misc]
    loaded = AgentMemory.load(acc.memory.dump())
    assert loaded.branches() == acc.memory.branches()
    assert loaded.head == acc.memory.head


def _dumped() -> dict[str, Any]:
    return AgentMemory.of(["a", "b", "c"]).dump()


def _cycle(data: dict[str, Any]) -> None:
    data["entries"][0]["parent_id"] = data["entries"][2]["id"]


def _twice(data: dict[str, Any]) -> None:
    data["entries"].append(dict(data["entries"][0]))


def _orphan(data: dict[str, Any]) -> None:
    data["entries"][1]["parent_id"] = "nobody"


def _headless(data: dict[str, Any]) -> None:
    data["head"] = "nobody"


def _format(data: dict[str, Any]) -> None:
    data["format"] = 99


def _bare(data: dict[str, Any]) -> None:
    del data["entries"][1]["id"]


@pytest.mark.parametrize("damage", [_cycle, _twice, _orphan, _headless, _format, _bare])
def test_damaged_data_is_an_error_and_never_a_loop(damage: Any) -> None:
    data = _dumped()
    damage(data)
    with pytest.raises(InputError):
        AgentMemory.load(data)


def test_what_is_appended_while_a_compaction_runs_stays_behind_it() -> None:
    before = AgentMemory.of(random_conversation("openai_chat", 3, 6))
    acc, meta = WindowManager("oldest_first", reserve=0).maybe_compact(Acc(before), CTX)  # type: ignore[misc]
    assert meta.compacted
    meanwhile = before.add_message({"role": "user", "content": "one more thing"})
    joined = meanwhile.rebase(before, acc.memory)
    assert joined.history() == [*acc.memory.history(), {"role": "user", "content": "one more thing"}]


def test_a_stale_change_is_not_taken_over() -> None:
    before = AgentMemory.of(["a", "b", "c"])
    after = before.with_branch(before.branch()[1:])
    elsewhere = before.fork(before.branch()[0].id).add_message("other")
    assert elsewhere.rebase(before, after) is elsewhere


def test_a_turn_is_deleted_from_the_active_branch_alone() -> None:
    memory = AgentMemory().add_message("a", "1", turn_id="t1").add_message("b", "2", turn_id="t2")
    memory = memory.add_message("c", "3", turn_id="t3").fork("3")
    shorter = memory.delete_turn("t2")
    assert shorter.history() == ["a", "c"]
    assert shorter.branch()[1].parent_id == "1"
    assert memory.history() == ["a", "b", "c"]


def test_thinking_is_dropped_by_the_dialect_of_the_messages() -> None:
    memory = AgentMemory.of(random_conversation("anthropic", 2, 3))
    bare = memory.drop_thinking()
    assert "thinking" in repr(memory.history())
    assert "'type': 'thinking'" not in repr(bare.history())
    assert [e.id for e in bare.branch()] == [e.id for e in memory.branch()]


def test_an_entry_that_is_nowhere_is_not_found() -> None:
    with pytest.raises(NotFound):
        AgentMemory.of(["a"]).fork("nobody")
