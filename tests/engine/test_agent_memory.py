"""Memory in the turn: recalled before it, written after it, and tended between turns."""

import asyncio

import pytest

from wakeful.compaction.compactor import WindowManager
from wakeful.engine.agent import Agent
from wakeful.engine.memory import Memory
from wakeful.engine.schedule import NapCadence
from wakeful.engine.stream import ActivationEvent, MemoryEvent, TextEvent, UsageEvent
from wakeful.errors import ConfigError
from wakeful.records import MemoryLayer, MemoryScope
from wakeful.stores.sessions.inmemory import InMemorySessions
from wakeful.testing import ScriptedModel

ANA = MemoryScope.parse("org:acme/user:ana")
BOB = MemoryScope.parse("org:acme/user:bob")


@pytest.fixture
def memory():
    with Memory.open("memory://", embedder=False) as opened:
        yield opened


def agent(memory, script=lambda request: "noted", scope=ANA, **options):
    return Agent(ScriptedModel(script, strict=True), memory=memory, scope=scope, tracer=False, **options)


def test_what_was_said_in_one_session_is_recalled_in_another_and_by_nobody_else(memory):
    agent(memory).run("My parrot is called Kiwi", session="monday")
    model = ScriptedModel(["Kiwi"])
    asking = Agent(model, memory=memory, scope=ANA)
    events = list(asking.stream("What is my parrot called?", session="friday"))
    assert any(isinstance(e, ActivationEvent) and e.entries for e in events)
    assert "Kiwi" in str(model.requests[0].messages)
    other = ScriptedModel(["?"])
    Agent(other, memory=memory, scope=BOB).run("What is my parrot called?")
    assert "Kiwi" not in str(other.requests[0].messages)


def test_recalled_text_stands_in_the_request_and_in_no_stored_message(memory):
    made = agent(memory)
    made.run("My parrot is called Kiwi", session="one")
    model = made.parts.model
    made.run("What is my parrot called?", session="two")
    assert "<memor" in str(model.requests[-1].messages)
    assert "<memor" not in str(made.session("two").messages())
    assert len(model.requests[-1].messages) == 1


def test_a_turn_leaves_its_episodes_once_even_when_it_is_finished_twice(memory):
    store = InMemorySessions()

    class Crash(BaseException):
        pass

    class Dying:
        """Dies when the turn is to be marked as over."""

        def execute(self, ops):
            if any(getattr(op, "state", 0) is None for op in ops):
                raise Crash
            return store.execute(ops)

    with pytest.raises(Crash):
        agent(memory, sessions=Dying()).run("My parrot is called Kiwi", session="s")
    again = agent(memory, sessions=store)
    assert again.session("s").turn().phase == "finalizing"
    assert list(again.resume("s"))[-1].result.text == "noted"
    said = [n for n in memory.export(ANA).nodes() if n.layer is MemoryLayer.EPISODIC]
    assert sorted(n.content for n in said) == ["My parrot is called Kiwi", "noted"]
    assert {n.source.session for n in said} == {"s"}


def test_a_memory_that_fails_is_told_and_the_answer_stands(memory):
    made = agent(memory)

    def broken(*args, **kwargs):
        raise OSError("disk full")

    memory.store.execute = broken
    events = list(made.stream("hello"))
    assert events[-1].result.text == "noted"
    errors = [e for e in events if isinstance(e, MemoryEvent) and e.error]
    assert {e.kind for e in errors} >= {"recall", "episodes"}


def test_what_a_compaction_drops_goes_to_the_episodes(memory):
    made = agent(
        memory,
        lambda request: "words " * 120,
        compactor=WindowManager("oldest_first", keep_recent=1, reserve=100),
        context_window=1200,
        scope=ANA,
    )
    events = [e for turn in range(8) for e in made.stream(f"fact number {turn} is kept")]
    assert any(isinstance(e, MemoryEvent) and e.kind == "dropped" and e.count for e in events)
    said = [n.content for n in memory.export(ANA).nodes() if n.layer is MemoryLayer.EPISODIC]
    assert [s for s in said if s == "fact number 0 is kept"] == ["fact number 0 is kept"]


def test_a_nap_comes_every_so_many_turns_whichever_agent_ran_them(memory):
    def new():
        return agent(memory, nap_every=3)

    napped = []
    for _ in range(7):
        events = list(new().stream("hello"))
        napped.append(any(isinstance(e, MemoryEvent) and e.kind == "nap" for e in events))
    assert napped == [False, False, True, False, False, True, False]


def test_facts_are_extracted_by_a_model_of_its_own_and_its_words_stay_inside():
    extractor = ScriptedModel(lambda request: '{"facts": []}', name="small")
    with Memory.open("memory://", embedder=False, model=extractor) as memory:
        events = list(agent(memory).stream("My parrot is called Kiwi"))
    assert extractor.requests
    assert "".join(e.text for e in events if isinstance(e, TextEvent)) == "noted"
    assert {e.role for e in events if isinstance(e, UsageEvent)} == {"main", "extractor"}


def test_the_awaited_turn_remembers_as_well(memory):
    async def run():
        made = agent(memory)
        await made.arun("My parrot is called Kiwi", session="one")
        return [e async for e in made.astream("What is my parrot called?", session="two")]

    assert any(isinstance(e, ActivationEvent) for e in asyncio.run(run()))


def test_a_memory_without_a_scope_is_refused(memory):
    with pytest.raises(ConfigError, match="scope"):
        Agent(ScriptedModel(["x"]), memory=memory)
    with pytest.raises(ConfigError):
        NapCadence(-1)
