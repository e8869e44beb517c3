"""Memory in the turn: recalled before it, written after it, and tended between turns."""

import asyncio

import pytest

from wakeful.assembly.context import AssembledContext
from wakeful.compaction.compactor import WindowManager
from wakeful.engine.agent import Agent
from wakeful.engine.memory import Memory
from wakeful.engine.schedule import NapCadence
from wakeful.engine.stream import ActivationEvent, MemoryEvent, TextEvent, UsageEvent
from wakeful.errors import ConfigError
from wakeful.needs import ToolCall
from wakeful.records import MemoryLayer, MemoryScope
from wakeful.stores.sessions.inmemory import InMemorySessions
from wakeful.testing import Say, ScriptedModel

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


class Assembling:
    """A context manager that assembles a fixed context, and counts."""

    def __init__(self, blocks=True, fails=False):
        self.blocks, self.fails, self.asked = blocks, fails, []

    async def assemble(self, *, query, scope, intent_verdict, auto_hydrate=True):
        self.asked.append((query, scope))
        if self.fails:
            raise RuntimeError("no context today")
        block = {"type": "text", "text": "You are kind.", "cache_control": {"type": "ephemeral"}}
        return AssembledContext(
            system_prompt="You are kind.\nIt is noon.",
            system_blocks=(block,) if self.blocks else (),
            turn_block="It is noon.",
        )


def look() -> str:
    """Look."""
    return "seen"


def looking(request):
    asked = any("toolu" in str(m) for m in request.messages)
    return "done" if asked else Say(calls=(ToolCall("toolu_1", "look", {}),))


@pytest.mark.parametrize("dialect", ["anthropic", "openai_chat", "gemini"])
def test_the_context_is_assembled_once_a_turn_and_stands_at_the_users_message(dialect):
    manager = Assembling()
    model = ScriptedModel(looking, dialect=dialect, strict=True)
    made = Agent(model, tools=[look], context=manager, scope=ANA, system="unused", tracer=False)
    made.run("what time is it?")
    assert manager.asked == [("what time is it?", ANA)]
    first, second = model.requests
    assert "It is noon." in str(first.messages[0])
    assert first.messages[0] == second.messages[0]
    assert "noon" not in str(first.system)
    assert isinstance(first.system, tuple if dialect == "anthropic" else str)
    assert "noon" not in str(made.session().messages())


def test_a_context_without_blocks_is_one_system_prompt():
    model = ScriptedModel(["ok"])
    asyncio.run(Agent(model, context=Assembling(blocks=False), scope=ANA, tracer=False).arun("x"))
    assert model.requests[0].system == "You are kind.\nIt is noon."
    assert "noon" not in str(model.requests[0].messages)


def test_a_context_that_fails_is_told_and_the_turn_goes_on_with_the_agents_own():
    model = ScriptedModel(["ok"])
    made = Agent(model, context=Assembling(fails=True), scope=ANA, system="Be brief.", tracer=False)
    events = list(made.stream("x"))
    assert any(isinstance(e, MemoryEvent) and "no context today" in (e.error or "") for e in events)
    assert model.requests[0].system == "Be brief."
