"""The compactor in a turn: what it remembers changes nothing of what it decides, and the archive stays within a session."""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful.compaction.compactor import CompactContext, WindowManager
from wakeful.conversation import AgentMemory
from wakeful.dialects import get
from wakeful.engine.agent import Agent
from wakeful.engine.drive import drive
from wakeful.engine.stream import CompactionEvent, ToolResultEvent
from wakeful.needs import ToolCall
from wakeful.stores.archive_sqlite import SqliteArchive
from wakeful.testing import Say, ScriptedModel
from wakeful.testing.models import native_message


@dataclass(frozen=True)
class Acc:
    memory: AgentMemory


def messages_of(dialect, kind, number):
    if kind == "user":
        return [dialect.note(f"question {number} " + "why " * 30)]
    if kind == "text":
        return [native_message(Say(f"answer {number} " + "because " * 30), dialect.name)]
    calls = tuple(ToolCall(f"c{number}-{i}", "look", {"n": i}) for i in range(2))
    made = native_message(Say(calls=calls), dialect.name)
    answers = [dialect.answer(c.id, f"result {number} " * 40, name="look", error=False) for c in calls]
    if dialect.facts.results_in_user:
        answers = [dialect.merge(answers)]
    return [*(made if isinstance(made, tuple) else (made,)), *answers]


@settings(max_examples=30)
@given(
    st.sampled_from(["openai_chat", "anthropic", "openai_responses"]),
    st.lists(st.sampled_from(["user", "text", "calls", "calls"]), min_size=1, max_size=24),
    st.integers(600, 4000),
)
def test_a_manager_that_remembers_decides_like_one_that_does_not(name, script, window):
    dialect = get(name)
    manager = WindowManager(reserve=100, keep_recent=1, dialect=name)
    memory = AgentMemory().add_message(dialect.note("begin"), "m0", turn_id="t")
    for number, kind in enumerate(script):
        for index, message in enumerate(messages_of(dialect, kind, number)):
            memory = memory.add_message(message, f"m{number}.{index}", turn_id="t")
        ctx = CompactContext(window=window, mid_round=kind == "calls")
        fresh = WindowManager(reserve=100, keep_recent=1, dialect=name)
        old, old_meta = settle(fresh.flow(Acc(memory), ctx))
        new, new_meta = settle(manager.flow(Acc(memory), ctx))
        assert new.memory.branch() == old.memory.branch()
        assert dict(new_meta) == dict(old_meta)
        if not new_meta.compacted:
            assert new.memory is memory
        memory = new.memory


def settle(flow):
    return drive(flow, lambda need: None)


def test_the_model_finds_again_what_was_cleared_and_other_sessions_do_not(tmp_path):
    archive = SqliteArchive(tmp_path / "archive.db")

    def look(n: int) -> str:
        """Look something up."""
        return f"record {n}: code K-{n}77 " + "filler words that take up room " * 60

    def script(request):
        last = request.messages[-1]
        if last["role"] == "tool":
            return "noted"
        if "recall" in last["content"]:
            return Say(calls=(ToolCall(f"r{len(request.messages)}", "recall_history", {"query": "K-177"}),))
        number = int(last["content"].split()[-1])
        return Say(calls=(ToolCall(f"c{number}", "look", {"n": number}),))

    made = Agent(
        ScriptedModel(script, strict=True),
        tools=[look],
        compactor=WindowManager(reserve=300, keep_recent=1),
        archive=archive,
        context_window=4000,
    )
    assert "recall_history" in made.parts.tools
    events = [event for n in range(1, 12) for event in made.stream(f"look at {n}", session="one")]
    assert any(isinstance(e, CompactionEvent) for e in events)
    assert "K-177 filler" not in str(made.session("one").messages())
    found = [e for e in made.stream("recall it", session="one") if isinstance(e, ToolResultEvent)]
    assert "K-177" in found[0].text
    assert len(found[0].text) < 8_000
    other = [e for e in made.stream("recall it", session="two") if isinstance(e, ToolResultEvent)]
    assert other[0].text.startswith("Nothing in the earlier conversation")
    archive.close()
