"""An agent with assembled context: rules before tools, memory that is pulled, reminders, and narrowed definitions."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wakeful import AsyncMemory, ContextConfig, Memory, MemoryNode, MemoryScope, make_context_manager
from wakeful.assembly.context import AssembledContext
from wakeful.assembly.template import Template
from wakeful.compaction.compactor import WindowManager
from wakeful.engine.agent import Agent
from wakeful.engine.stream import MemoryEvent
from wakeful.errors import StoreError
from wakeful.needs import ToolCall
from wakeful.records import Source
from wakeful.testing import FrozenClock, Say, ScriptedModel

ANA = MemoryScope.parse("org:acme/user:ana")
ACME = MemoryScope.parse("org:acme")
BOB = MemoryScope.parse("org:acme/user:bob")
START = datetime(2026, 5, 4, 9, tzinfo=UTC)


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory.open("memory://", embedder=False) as opened:
        yield opened


@pytest.fixture(params=["run", "arun"])
def go(request: pytest.FixtureRequest) -> Any:
    """Runs a turn in either colour."""
    if request.param == "run":
        return lambda agent, text, **options: agent.run(text, **options)
    return lambda agent, text, **options: asyncio.run(agent.arun(text, **options))


def skill(scope: MemoryScope = ANA, tool: str = "refund", before: Any = ("lookup",), **values: Any) -> MemoryNode:
    return MemoryNode.new(
        scope=scope,
        layer="procedural",
        label=f"{tool}-rule",
        content="Look first.",
        at=START,
        properties={"tool": tool, "preconditions": list(before) if isinstance(before, tuple) else before},
        **values,
    )


class Desk:
    """A model that makes the calls it is told to, one a round, and two tools that count."""

    def __init__(self, *rounds: tuple[str, ...], fails: tuple[str, ...] = ()) -> None:
        self.ran: list[str] = []
        self.numbers = itertools.count()
        self.model = ScriptedModel(lambda request: self.replies.pop(0) if self.replies else "done", strict=True)
        self.replies: list[Any] = []
        self.calls(*rounds)

        def made(name: str) -> Any:
            def run() -> str:
                """Do it."""
                self.ran.append(name)
                if name in fails:
                    raise ValueError("no such order")
                return f"{name} is done"

            run.__name__ = name
            return run

        self.tools = [made("lookup"), made("refund"), made("greet")]

    def calls(self, *rounds: tuple[str, ...]) -> None:
        """Have the model make these calls next."""
        for names in rounds:
            ids = (f"toolu_{next(self.numbers)}" for _ in names)
            self.replies.append(Say(calls=tuple(ToolCall(id, name, {}) for id, name in zip(ids, names, strict=True))))

    def results(self) -> str:
        return str(self.model.requests[-1].messages)


# --- the gate --------------------------------------------------------------------------------------------------------


def test_a_call_with_an_unmet_precondition_is_answered_with_what_is_missing(memory: Memory, go: Any) -> None:
    memory.remember(ANA, skill())
    desk = Desk(("refund",), ("lookup",), ("refund",))
    go(Agent(desk.model, tools=desk.tools, memory=memory, scope=ANA, tracer=False), "Refund me")
    assert desk.ran == ["lookup", "refund"]
    assert "refund was not run: call lookup first" in desk.results()


def test_calls_of_one_batch_do_not_meet_each_others_preconditions(memory: Memory) -> None:
    memory.remember(ANA, skill())
    desk = Desk(("lookup", "refund"))
    Agent(desk.model, tools=desk.tools, memory=memory, scope=ANA, tracer=False).run("Refund me")
    assert desk.ran == ["lookup"]


def test_a_precondition_that_failed_is_not_met(memory: Memory) -> None:
    memory.remember(ANA, skill())
    desk = Desk(("lookup",), ("refund",), fails=("lookup",))
    Agent(desk.model, tools=desk.tools, memory=memory, scope=ANA, tracer=False).run("Refund me")
    assert desk.ran == ["lookup"]


def test_what_succeeded_in_an_earlier_turn_of_the_session_counts_and_in_another_session_does_not(
    memory: Memory,
) -> None:
    memory.remember(ANA, skill())
    desk = Desk(("lookup",))
    agent = Agent(desk.model, tools=desk.tools, memory=memory, scope=ANA, tracer=False)
    agent.run("Look", session="one")
    for session, ran in (("two", ["lookup"]), ("one", ["lookup", "refund"])):
        desk.calls(("refund",))
        agent.run("Refund", session=session)
        assert desk.ran == ran


def test_a_rewound_conversation_calls_the_precondition_again(memory: Memory) -> None:
    memory.remember(ANA, skill())
    desk = Desk(("lookup",))
    agent = Agent(desk.model, tools=desk.tools, memory=memory, scope=ANA, tracer=False)
    agent.run("Look")
    agent.session().rewind(None)
    desk.calls(("refund",))
    agent.run("Refund")
    assert desk.ran == ["lookup"]


@pytest.mark.parametrize(
    "node",
    [
        skill(ACME),
        skill(before="lookup"),
        skill(before=[1]),
        skill(importance=1.0),
    ],
    ids=["of a parent", "one name", "unreadable", "of no importance"],
)
def test_the_gate_holds_for_every_active_skill_in_force(memory: Memory, node: MemoryNode) -> None:
    memory.remember(ANA, [skill(tool=f"other{i}", importance=9.0) for i in range(250)])
    memory.remember(node.scope, node)
    desk = Desk(("refund",))
    Agent(desk.model, tools=desk.tools, memory=memory, scope=ANA, tracer=False).run("Refund me")
    assert desk.ran == []


@pytest.mark.parametrize(
    "node", [skill(BOB), skill(source=Source(trust="low")), skill(status="draft")], ids=["sibling", "low", "draft"]
)
def test_a_skill_of_somebody_else_or_of_no_trust_holds_nobody_up(memory: Memory, node: MemoryNode) -> None:
    memory.remember(node.scope, node)
    desk = Desk(("refund",))
    Agent(desk.model, tools=desk.tools, memory=memory, scope=ANA, tracer=False).run("Refund me")
    assert desk.ran == ["refund"]


def test_no_tool_is_run_while_the_skills_cannot_be_read(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(scope: Any, names: Any) -> Any:
        raise StoreError("the disk is gone")

    monkeypatch.setattr(memory.flows, "skills_about", broken)
    desk = Desk(("greet",))
    Agent(desk.model, tools=desk.tools, memory=memory, scope=ANA, tracer=False).run("Hello")
    assert desk.ran == []
    assert "can't be read now" in desk.results()


@pytest.mark.parametrize("jit", [True, False])
def test_the_gate_stands_behind_a_context_without_a_memory_of_the_agents(memory: Memory, go: Any, jit: bool) -> None:
    memory.remember(ANA, skill())
    desk = Desk(("refund",))
    manager = make_context_manager(ContextConfig(jit_context=jit), memory=memory)
    go(Agent(desk.model, tools=desk.tools, context=manager, scope=ANA, tracer=False), "Refund me")
    assert desk.ran == []
    assert "Do not call refund until lookup has succeeded." in str(desk.model.requests[0].system)


# --- the short prompt ------------------------------------------------------------------------------------------------


def test_the_short_prompt_comes_with_the_tool_that_it_speaks_of(memory: Memory, go: Any) -> None:
    memory.remember(ANA, "Ana only drinks decaf.")
    memory.remember(BOB, "Bob only drinks tea.")
    call = Say(calls=(ToolCall("toolu_1", "hydrate_context", {"domain": "drinks", "top_k": 50}),))
    model = ScriptedModel([call, "decaf"], strict=True)
    agent = Agent(model, context=ContextConfig(jit_context=True), memory=memory, scope=ANA, tracer=False)
    assert go(agent, "What do I drink?").text == "decaf"
    first, second = model.requests
    assert [spec.name for spec in first.tools] == ["hydrate_context"]
    assert "hydrate_context" in str(first.system)
    assert "decaf" not in str(first.messages)
    assert "decaf" in str(second.messages)
    assert "tea" not in str(second.messages)


def test_what_was_looked_up_is_not_remembered_anew(memory: Memory) -> None:
    memory.remember(ANA, "Ana only drinks decaf.")
    call = Say(calls=(ToolCall("toolu_1", "hydrate_context", {"domain": "drinks"}),))
    model = ScriptedModel([call, "decaf", *["word " * 400] * 6], strict=True)
    agent = Agent(
        model,
        context=ContextConfig(jit_context=True),
        memory=memory,
        scope=ANA,
        tracer=False,
        compactor=WindowManager("oldest_first"),
        context_window=1_500,
        max_tokens=300,
    )
    for text in ("What do I drink?", *["word " * 200] * 5):
        agent.run(text)
    assert agent.session().messages()
    assert "decaf" not in str(agent.session().messages())
    held = [node for node in memory.export(ANA).nodes() if "decaf" in node.content and node.source.speaker == "tool"]
    assert held == []


# --- reminders -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("context", [None, ContextConfig()], ids=["memory alone", "assembled"])
def test_a_due_reminder_is_shown_in_one_turn_and_settled(go: Any, context: ContextConfig | None) -> None:
    clock = FrozenClock(START)
    with Memory.open("memory://", embedder=False, clock=clock) as memory:
        memory.remind(ANA, "Call the <bank>", at=START + timedelta(hours=1))
        memory.remind(BOB, "Feed the cat", at=START + timedelta(hours=1))
        model = ScriptedModel(["early", "told", "later", "again"], strict=True)
        agent = Agent(model, memory=memory, scope=ANA, context=context, tracer=False, clock=clock)
        go(agent, "Good morning")
        clock.advance(hours=2)
        go(agent, "Hello")
        clock.advance(hours=2)
        go(agent, "And now?")
        shown = ["Call the &lt;bank&gt;" in str(request.messages) for request in model.requests]
        assert shown == [False, True, False]
        assert "cat" not in str(model.requests)
        assert memory.due(ANA) == ()


def test_a_reminder_of_a_turn_that_failed_comes_again() -> None:
    clock = FrozenClock(START)
    with Memory.open("memory://", embedder=False, clock=clock) as memory:
        memory.remind(ANA, "Call the bank", at=START)

        def broken(request: Any) -> str:
            raise RuntimeError("no")

        failing = Agent(ScriptedModel(broken), memory=memory, scope=ANA, tracer=False, clock=clock)
        list(failing.stream("Hello"))
        assert memory.due(ANA) == ()
        clock.advance(hours=1)
        model = ScriptedModel(["told"])
        agent = Agent(model, memory=memory, scope=ANA, tracer=False, clock=clock)
        events = list(agent.stream("Hello"))
        assert "Call the bank" in str(model.requests[0].messages)
        assert any(isinstance(event, MemoryEvent) and event.kind == "reminders" for event in events)
        clock.advance(hours=1)
        assert memory.due(ANA) == ()


def test_reminders_that_do_not_fit_are_not_settled() -> None:
    clock = FrozenClock(START)
    with Memory.open("memory://", embedder=False, clock=clock) as memory:
        memory.remind(ANA, "short", at=START)
        memory.remind(ANA, "long " * 4_000, at=START)
        manager = make_context_manager(ContextConfig(budget=700), memory=memory, clock=clock)
        made = asyncio.run(manager.assemble(query="hello", scope=ANA, intent_verdict=None))
        assert [due.text for due in made.due] == ["short"]


# --- definitions -----------------------------------------------------------------------------------------------------


def named(name: str, doc: str) -> Any:
    def run() -> str:
        return name

    run.__name__, run.__doc__ = name, doc
    return run


TOOLS = [named("lookup_order", "Find an order by its number."), named("weather", "Tell the weather of a city.")]


@pytest.mark.parametrize("narrow", [False, True])
def test_definitions_stay_fixed_unless_they_are_to_be_narrowed(memory: Memory, go: Any, narrow: bool) -> None:
    config = ContextConfig(narrow_definitions=narrow)
    model = ScriptedModel(["a", "b", "c"], strict=True)
    agent = Agent(model, tools=TOOLS, memory=memory, context=config, scope=ANA, tracer=False)
    go(agent, "find my order")
    go(agent, "weather in Oslo?")
    go(agent, "xyzzy")
    sent = [[spec.name for spec in request.tools] for request in model.requests]
    both = ["lookup_order", "weather"]
    assert sent == ([["lookup_order"], ["weather"], both] if narrow else [both] * 3)
    assert len({str(request.system) for request in model.requests}) == 1
    assert "Tools for this turn:\nlookup_order" in str(model.requests[0].messages[0]).replace("\\n", "\n")


def test_what_narrowing_costs_is_told() -> None:
    specs = tuple(tool.spec for tool in Agent(ScriptedModel(["x"]), tools=TOOLS, tracer=False).parts.tools.values())
    manager = make_context_manager(ContextConfig(narrow_definitions=True), tools=specs, tokens=len)
    made = asyncio.run(manager.assemble(query="find my order", scope=ANA, intent_verdict=None))
    told = made.metadata["narrowed"]
    assert made.active_tools == ("lookup_order",)
    assert made.withheld_tools == ("weather",) == tuple(told["names"])
    stable = sum(section.tokens for section in made.sections if section.stratum != "L2")
    assert told["tokens_saved"] > len("Tell the weather of a city.")
    assert told["tokens_uncached"] > stable > 0
    wide = make_context_manager(ContextConfig(), tools=specs)
    made = asyncio.run(wide.assemble(query="find my order", scope=ANA, intent_verdict=None))
    assert made.active_tools == ("lookup_order",)
    assert made.withheld_tools == ()
    assert "narrowed" not in made.metadata


# --- making it -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "context", [Template(name="Ada", rules=("Be brief.",)), ContextConfig()], ids=["template", "config"]
)
def test_a_template_or_a_configuration_is_enough(memory: Memory, context: Any) -> None:
    memory.remember(ANA, "Ana only drinks decaf.")
    model = ScriptedModel(["decaf"], strict=True)
    agent = Agent(model, tools=TOOLS, memory=memory, context=context, system="Speak plainly.", scope=ANA, tracer=False)
    agent.run("What does Ana drink?")
    system = str(model.requests[0].system)
    assert "Speak plainly." in system
    assert "weather: Tell the weather of a city." in system
    assert ("Be brief." in system) == isinstance(context, Template)
    assert "decaf" in str(model.requests[0].messages)
    assert "decaf" not in system


def test_an_awaited_memory_serves_gate_reminders_and_pulls() -> None:
    async def turn() -> Desk:
        clock = FrozenClock(START)
        async with AsyncMemory.open("memory://", embedder=False, clock=clock) as memory:
            await memory.remember(ANA, skill())
            await memory.remind(ANA, "Call the bank", at=START)
            desk = Desk(("refund",))
            agent = Agent(
                desk.model,
                tools=desk.tools,
                memory=memory,
                context=ContextConfig(),
                scope=ANA,
                tracer=False,
                clock=clock,
            )
            await agent.arun("Refund me")
            clock.advance(hours=1)
            assert await memory.due(ANA) == ()
            return desk

    desk = asyncio.run(turn())
    assert desk.ran == []
    assert "Call the bank" in str(desk.model.requests[0].messages)


def test_a_prompt_that_fails_is_an_event() -> None:
    seen: list[tuple[str, Any]] = []

    async def broken(*args: Any, **options: Any) -> str:
        raise ValueError("no template today")

    for jit in (True, False):
        manager = make_context_manager(
            ContextConfig(jit_context=jit),
            build_hms_prompt=broken,
            build_jit_prompt=broken,
            on_event=lambda name, facts: seen.append((name, facts["error"])),
        )
        made = asyncio.run(manager.assemble(query="x", scope=ANA, intent_verdict=None))
        assert isinstance(made, AssembledContext)
        assert made.system_prompt is None
    assert [event for event in seen if event[0] == "prompt_failed"] == [
        ("prompt_failed", "ValueError: no template today")
    ] * 2
