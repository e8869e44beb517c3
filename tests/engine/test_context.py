"""The two strategies, their parts, and the one place that chooses between them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wakeful.assembly.context import AssembledContext, ContextConfig, HydratedMemory, IntentVerdict, Prompt
from wakeful.assembly.template import Template
from wakeful.engine.context import (
    ContextManager,
    JITContextManager,
    StratifiedHMSContextManager,
    register_strategy,
    resolve_strategy_name,
    unregister_strategy,
)
from wakeful.engine.context_parts import ContextParts, make_context_manager
from wakeful.engine.memory import Memory
from wakeful.engine.memory_async import AsyncMemory
from wakeful.errors import ConfigError, ModelError
from wakeful.models.embed import CallableEmbedder
from wakeful.needs import ToolSpec
from wakeful.records import MemoryNode, MemoryScope, Source

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ANA = MemoryScope.parse("org:acme/user:ana")
TOOLS = (ToolSpec("refund_order", "Pay the money of an order back"), ToolSpec("get_weather", "Weather of a city"))


class Parts:
    """Parts that write down how they were called."""

    def __init__(self, hydrated=None, prompt="the prompt", tools=None) -> None:
        self.calls: list[tuple[str, dict]] = []
        self.hydrated = hydrated or HydratedMemory(context="remembered", entries_count=1, activation_log={"seeds": []})
        self.prompt, self.tools = prompt, tools

    async def hydrate(self, query, scope, *, intent_verdict):
        self.calls.append(("hydrate", {"query": query, "scope": scope, "intent_verdict": intent_verdict}))
        return self.hydrated

    async def resolve_tools(self, query, scope):
        self.calls.append(("resolve_tools", {"query": query, "scope": scope}))
        return self.tools

    async def build_prompt(self, **values):
        self.calls.append(("build_prompt", values))
        if isinstance(self.prompt, Exception):
            raise self.prompt
        return self.prompt

    def names(self):
        return [name for name, _ in self.calls]


def stratified(parts, **values):
    values.setdefault("read_strat_overrides", lambda: {"brain_prompt_version": "7", "system_prompt_hash": "h"})
    values.setdefault("enable_hms_prompt", True)
    return StratifiedHMSContextManager(
        hydrate=parts.hydrate, resolve_tools=parts.resolve_tools, build_prompt=parts.build_prompt, **values
    )


def assemble(manager, **values):
    values = {"query": "where does she live?", "scope": ANA, "intent_verdict": None, **values}
    return asyncio.run(manager.assemble(**values))


def test_both_strategies_are_context_managers():
    assert isinstance(JITContextManager(build_prompt=Parts().build_prompt), ContextManager)
    assert isinstance(stratified(Parts()), ContextManager)
    assert AssembledContext() == AssembledContext(
        system_prompt=None, memory_context=None, state_overrides={}, metadata={}
    )


def test_stratified_hydrates_routes_and_builds_with_the_whole_scope():
    parts = Parts(tools=["refund_order"])
    verdict = IntentVerdict("knowledge", 1.0)
    got = assemble(stratified(parts), intent_verdict=verdict)
    assert parts.names() == ["hydrate", "resolve_tools", "build_prompt"]
    assert parts.calls[0][1] == {"query": "where does she live?", "scope": ANA, "intent_verdict": verdict}
    built = parts.calls[2][1]
    assert built["scope"] is ANA
    assert built["memory_context"] == "remembered"
    assert built["active_tools"] == ["refund_order"]
    assert built["prospective_tasks"] == ""
    assert built["activation_log"] == {"seeds": []}
    assert got.system_prompt == "the prompt"
    assert got.memory_context is parts.hydrated
    assert got.state_overrides == {"brain_prompt_version": "7", "system_prompt_hash": "h"}
    assert got.activation_log == {"seeds": []}
    assert set(got.metadata) == {"strategy_name", "latency_ms", "entries_count"}
    assert (got.metadata["strategy_name"], got.metadata["entries_count"]) == ("stratified", 1)


def test_without_hydration_the_tenant_still_reaches_the_prompt():
    parts = Parts()
    got = assemble(stratified(parts), auto_hydrate=False)
    assert parts.names() == ["resolve_tools", "build_prompt"]
    assert parts.calls[1][1]["scope"] is ANA
    assert parts.calls[1][1]["memory_context"] == ""
    assert got.memory_context is None
    assert got.metadata["entries_count"] == 0


def test_without_a_scope_nothing_is_hydrated_and_no_tools_are_resolved():
    parts = Parts()
    got = assemble(stratified(parts), scope=None)
    assert parts.names() == ["build_prompt"]
    assert parts.calls[0][1]["active_tools"] is None
    assert got.system_prompt == "the prompt"
    assert got.memory_context is None


def test_without_a_prompt_what_was_hydrated_is_still_returned():
    parts = Parts()
    got = assemble(stratified(parts, enable_hms_prompt=False))
    assert parts.names() == ["hydrate"]
    assert got.system_prompt is None
    assert got.memory_context is parts.hydrated
    assert got.state_overrides == {}


@pytest.mark.parametrize("prompt", [None, ""])
def test_an_empty_prompt_brings_no_overrides(prompt):
    got = assemble(stratified(Parts(prompt=prompt)))
    assert got.system_prompt is None
    assert got.state_overrides == {}
    assert "error" not in got.metadata


def test_a_builder_that_raises_is_told_and_the_turn_goes_on():
    parts = Parts(prompt=RuntimeError("no template"))
    got = assemble(stratified(parts))
    assert got.system_prompt is None
    assert got.state_overrides == {}
    assert got.metadata["error"] == "RuntimeError: no template"
    assert got.memory_context is parts.hydrated


def test_jit_renders_the_short_prompt_and_never_hydrates():
    seen = []

    async def build(tenant_id, namespace, *, query, scope=None):
        seen.append((tenant_id, namespace, query, scope))
        return "short"

    manager = JITContextManager(build_prompt=build)
    got = assemble(manager, intent_verdict=IntentVerdict("action", 1.0))
    assert seen == [("acme", "ana", "where does she live?", ANA)]
    assert (got.system_prompt, got.memory_context, got.state_overrides, got.activation_log) == ("short", None, {}, None)
    assert set(got.metadata) == {"strategy_name", "latency_ms", "entries_count"}
    assemble(manager, scope=None)
    assert seen[-1] == ("unknown", "default", "where does she live?", None)
    labelled = MemoryScope.of(("org", "acme"), namespace="eu")
    assemble(manager, scope=labelled, auto_hydrate=False)
    assert seen[-1][:2] == ("acme", "eu")
    assemble(manager, scope=MemoryScope.of(("org", "acme")))
    assert seen[-1][:2] == ("acme", "default")


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (SimpleNamespace(context_strategy="jit", jit_context=False), "jit"),
        (SimpleNamespace(context_strategy="stratified", jit_context=True), "stratified"),
        (SimpleNamespace(context_strategy=None, jit_context=True), "jit"),
        (SimpleNamespace(context_strategy=None, jit_context=False), "stratified"),
        (SimpleNamespace(jit_context=True), "jit"),
        (ContextConfig(), "stratified"),
    ],
)
def test_the_strategy_is_decided_in_one_place(config, name):
    assert resolve_strategy_name(config) == name
    manager = make_context_manager(config)
    assert assemble(manager).metadata["strategy_name"] == name


@pytest.mark.parametrize("name", ["", "JIT", "magic", 7])
def test_an_unknown_strategy_is_a_value_error_that_lists_the_known_ones(name):
    with pytest.raises(ValueError, match="jit, stratified"):
        resolve_strategy_name(SimpleNamespace(context_strategy=name, jit_context=False))


def test_a_third_strategy_can_be_registered_by_name():
    class Silent:
        async def assemble(self, *, query, scope, intent_verdict, auto_hydrate=True):
            return AssembledContext(system_prompt="silence", metadata={"strategy_name": "silent"})

    register_strategy("silent", lambda parts: Silent())
    try:
        manager = make_context_manager(ContextConfig(context_strategy="silent"))
        assert assemble(manager).system_prompt == "silence"
        with pytest.raises(ConfigError, match="registered already"):
            register_strategy("silent", lambda parts: Silent())
    finally:
        unregister_strategy("silent")
    with pytest.raises(ConfigError):
        unregister_strategy("jit")


def test_the_seven_parts_together_replace_all_of_ours():
    parts = Parts(prompt="theirs")

    async def short(tenant_id, namespace, *, query, scope=None):
        return "short"

    manager = make_context_manager(
        SimpleNamespace(context_strategy=None, jit_context=False),
        hydrate=parts.hydrate, resolve_tools=parts.resolve_tools, build_hms_prompt=parts.build_prompt,
        build_jit_prompt=short, read_strat_overrides=dict, enable_hms_prompt=True,
    )  # fmt: skip
    got = assemble(manager)
    assert got.system_prompt == "theirs"
    assert parts.names() == ["hydrate", "resolve_tools", "build_prompt"]


def test_enable_hms_prompt_given_here_wins_over_the_configuration():
    assert assemble(make_context_manager(ContextConfig(), enable_hms_prompt=False)).system_prompt is None
    on = make_context_manager(ContextConfig(enable_hms_prompt=False), enable_hms_prompt=True)
    assert assemble(on).system_prompt is not None


@pytest.fixture(params=[Memory, AsyncMemory], ids=["sync", "async"])
def memory(request):
    filler = Memory.open("memory://", embedder=False, clock=lambda: NOW)
    filler.remember(ANA, "Ana lives in Gothenburg, Kungsgatan 12.", at=NOW - timedelta(days=1))
    filler.remember(ANA, "Ana drinks decaf coffee only.", at=NOW - timedelta(days=2))
    bo = MemoryScope.parse("org:acme/user:bo")
    filler.remember(bo, "Bo lives in Bergen, secret-bo-token.", at=NOW - timedelta(days=1))
    skill = MemoryNode.new(
        scope=MemoryScope.parse("org:acme"), layer="procedural", label="refund_order", content="look first", at=NOW,
        properties={"tool": "refund_order", "preconditions": ["lookup_order"]},
    )  # fmt: skip
    filler.remember(MemoryScope.parse("org:acme"), skill)
    return filler if request.param is Memory else AsyncMemory(filler.flows, clock=lambda: NOW)


def made(memory, **values):
    config = values.pop("config", ContextConfig())
    return make_context_manager(
        config, memory=memory, template=Template(name="Ada", description="Support of Acme"), tools=TOOLS,
        clock=lambda: NOW, **values,
    )  # fmt: skip


def test_ours_over_a_real_memory(memory):
    got = assemble(made(memory))
    assert "Kungsgatan 12" in got.system_prompt
    assert "secret-bo-token" not in got.system_prompt
    assert "Call lookup_order before refund_order." in got.system_prompt
    assert "Tenant: acme" in got.system_prompt
    assert got.metadata["entries_count"] == got.memory_context.entries_count == got.system_prompt.count("<memory ")
    assert got.system_prompt.endswith(got.turn_block)
    assert "Kungsgatan" not in str(got.system_blocks)
    assert len(got.system_blocks) == 2
    assert {section.name for section in got.sections} >= {"kernel", "tenant", "memory", "tools", "preflight"}


def test_pre_flight_rules_survive_without_hydration_in_both_strategies(memory):
    for config in (ContextConfig(), ContextConfig(jit_context=True)):
        got = assemble(made(memory, config=config), auto_hydrate=False)
        assert "Call lookup_order before refund_order." in got.system_prompt
        assert "Tenant: acme" in got.system_prompt
        assert "Kungsgatan" not in got.system_prompt


def test_the_prefix_is_the_same_bytes_over_changing_queries_and_clock(memory):
    seen = set()
    for number in range(30):
        manager = make_context_manager(
            ContextConfig(), memory=memory, template=Template(name="Ada"), tools=TOOLS,
            clock=lambda number=number: NOW + timedelta(hours=number),
        )  # fmt: skip
        got = assemble(manager, query=f"question {number} about coffee and refunds")
        seen.add((str(got.system_blocks), got.state_overrides["system_prompt_hash"]))
    assert len(seen) == 1


def test_a_turn_embeds_its_query_and_the_tools_only_once():
    asked = []

    def embedder(texts):
        asked.append(list(texts))
        return [[1.0, float(len(text))] for text in texts]

    with Memory.open("memory://", embedder=CallableEmbedder(embedder, model_id="two")) as memory:
        manager = make_context_manager(ContextConfig(), memory=memory, tools=TOOLS)
        for query in ("where?", "when?"):
            asyncio.run(manager.assemble(query=query, scope=ANA, intent_verdict=None))
    tools = [f"{tool.name}: {tool.description}" for tool in TOOLS]
    texts = [text for batch in asked for text in batch if text in tools]
    assert sorted(texts) == sorted(tools)


def test_an_embedder_that_fails_costs_the_meaning_and_not_the_turn():
    working = True

    def embedder(texts):
        if not working:
            raise ModelError("the embedder is down")
        return [[1.0, 0.0] for _ in texts]

    with Memory.open("memory://", embedder=CallableEmbedder(embedder, model_id="two")) as memory:
        memory.remember(ANA, "Ana only drinks decaf.")
        working = False
        manager = make_context_manager(ContextConfig(), memory=memory, tools=TOOLS)
        context = asyncio.run(manager.assemble(query="refund the decaf", scope=ANA, intent_verdict=None))
    assert "error" not in context.metadata
    assert "Tools for this turn:\nrefund_order" in context.turn_block
    assert "decaf" in context.turn_block


def test_due_reminders_appear_once(memory):
    memory_sync = Memory(memory.flows, clock=lambda: NOW)
    memory_sync.remind(ANA, "Call the bank", at=NOW - timedelta(minutes=1))
    first = assemble(made(memory))
    assert "- Call the bank" in first.turn_block
    assert "Call the bank" not in assemble(made(memory)).turn_block


def test_hooks_and_events_are_told_and_isolated(memory):
    told, events = [], []

    def broken(**_):
        raise RuntimeError("hook")

    manager = made(
        memory,
        on_hydration_complete=(broken, lambda **facts: told.append(facts)),
        on_event=lambda name, facts: events.append(name),
    )
    got = assemble(manager)
    assert told[0]["scope"] is ANA
    assert told[0]["count"] == got.metadata["entries_count"]
    assert told[0]["milliseconds"] >= 0
    assert events == ["triage", "hydration", "routing"]


@pytest.mark.parametrize(("mode", "skips"), [("off", False), ("observe", False), ("enforce", True)])
def test_only_enforced_triage_skips_layers(memory, mode, skips):
    Memory(memory.flows, clock=lambda: NOW).remember(
        ANA, MemoryNode.new(scope=ANA, layer="episodic", content="Ana asked to cancel order A-1", at=NOW)
    )
    got = assemble(made(memory, config=ContextConfig(triage=mode)), query="Cancel the order A-1 for Ana")
    assert ("layer=&quot;episodic" not in got.system_prompt and 'layer="episodic"' not in got.system_prompt) is skips


def test_the_hydrate_tool_answers_with_bounded_notes_and_errors_as_text(memory):
    parts = ContextParts(memory=memory, config=ContextConfig(memory_most=120))

    def call(**arguments):
        return asyncio.run(parts.hydrate_context(arguments, ANA))

    assert "Kungsgatan 12" in call(domain="where does Ana live", top_k=99)
    assert parts.count(call(domain="Ana")) <= 120
    assert call().startswith("error: ")
    assert asyncio.run(ContextParts().hydrate_context({"domain": "x"}, ANA)).startswith("error: ")


def test_an_edited_template_or_wrong_type_is_refused():
    with pytest.raises(ConfigError, match="Template"):
        make_context_manager(ContextConfig(), template={"name": "x"})


levels = st.sampled_from(["a", "a_b", "axb", "a%", "acme", "acme-corp", "acm", "*", "ａ"])


@given(
    owners=st.lists(st.tuples(levels, levels), min_size=1, max_size=6, unique=True), reader=st.tuples(levels, levels)
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_row_of_another_scope_reaches_the_prompt(owners, reader):
    memory = Memory.open("memory://", embedder=False, clock=lambda: NOW)
    here = MemoryScope.of(("org", reader[0]), ("user", reader[1]))
    for number, (org, user) in enumerate(owners):
        scope = MemoryScope.of(("org", org), ("user", user))
        memory.remember(scope, f"the secret word is token{number}", at=NOW, extract=False)
    got = assemble(
        make_context_manager(ContextConfig(), memory=memory, clock=lambda: NOW), query="secret word", scope=here
    )
    for number, owner in enumerate(owners):
        assert (f"token{number}" in got.system_prompt) is (owner == reader)


@given(
    texts=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1), max_size=6),
    budget=st.integers(0, 900),
)
@settings(max_examples=25, deadline=None)
def test_entries_reported_are_entries_in_the_prompt(texts, budget):
    nodes = [MemoryNode.new(scope=ANA, layer="semantic", content=text, at=NOW, source=Source()) for text in texts]

    async def hydrate(query, scope, *, intent_verdict):
        from wakeful.assembly.hydrate import hydrate_hits

        hits = [SimpleNamespace(node=node, score=1.0, reasons=()) for node in nodes]
        return hydrate_hits(hits, budget=600, tokens=len)

    manager = make_context_manager(ContextConfig(budget=budget), hydrate=hydrate, tokens=len, clock=lambda: NOW)
    got = assemble(manager)
    text = got.system_prompt or ""
    assert len(text) <= budget
    assert got.metadata["entries_count"] == got.memory_context.entries_count == text.count("<memory ")
    assert len(got.memory_context.nodes) == got.memory_context.entries_count


def test_a_prompt_brings_its_own_version_and_hash():
    prompt = Prompt(text="p", overrides={"brain_prompt_version": "1", "system_prompt_hash": "x"})
    got = assemble(stratified(Parts(prompt=prompt), read_strat_overrides=None))
    assert got.state_overrides == {"brain_prompt_version": "1", "system_prompt_hash": "x"}
