"""The LangGraph face: in a real graph with the ``add_messages`` reducer, and case by case."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from wakeful.adapters.langgraph import (
    HONESTY_MARKER_SENTINEL,
    BaseAgentDeps,
    CallbackManager,
    CompactionConfig,
    LLMEndEvent,
    LLMStartEvent,
    MemoryFlusher,
    ModelConfig,
    ModelProvider,
    NoOpObservabilityHook,
    ObservabilityHook,
    compose_memory_section,
    create_context_window_node,
    flush_memory,
)
from wakeful.compaction.history_share import budget_chars, exceeds, is_summary, size_chars, split, summary_prompt
from wakeful.errors import ConfigError

HEAD = f"{HONESTY_MARKER_SENTINEL}\n[Conversation Summary]\n"
EAGER = CompactionConfig(soft_threshold_tokens=0, keep_recent_messages=4)


class Provider:
    """Gives a model that answers with one text, or fails, and keeps what it was asked."""

    def __init__(self, *answers: Any, **attributes: Any) -> None:
        self.answers = list(answers) or ["A summary."]
        self.configs: list[ModelConfig] = []
        self.prompts: list[list[Any]] = []
        self.attributes = attributes

    def get_chat_model(self, config: ModelConfig) -> Any:
        self.configs.append(config)
        return self.Model(self)

    class Model:
        def __init__(self, provider: Provider) -> None:
            self.provider = provider
            self.__dict__.update(provider.attributes)

        async def ainvoke(self, messages: list[Any]) -> Any:
            self.provider.prompts.append(messages)
            answers = self.provider.answers
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
            if isinstance(answer, Exception):
                raise answer
            if isinstance(answer, AIMessage):
                return answer
            return AIMessage(content=answer, usage_metadata={"input_tokens": 9, "output_tokens": 3, "total_tokens": 12})


class Recorder:
    """A hook or a callback manager; fails when told to."""

    def __init__(self, *, noop: bool = False, broken: bool = False) -> None:
        self.is_noop = noop
        self.broken = broken
        self.seen: list[tuple[str, tuple[Any, ...]]] = []

    async def on_llm_start(self, *args: Any) -> None:
        self.seen.append(("start", args))
        if self.broken:
            raise RuntimeError("broken hook")

    async def on_llm_end(self, *args: Any) -> None:
        self.seen.append(("end", args))
        if self.broken:
            raise RuntimeError("broken hook")


class Flusher:
    def __init__(self, *, broken: bool = False) -> None:
        self.broken = broken
        self.states: list[Any] = []

    async def flush(self, state: Any) -> None:
        self.states.append(state)
        if self.broken:
            raise RuntimeError("disk full")


def deps(provider: Any, *others: Any, hook: Any = None, manager: Any = None) -> BaseAgentDeps:
    box = BaseAgentDeps(provider, *others)
    if hook is not None:
        box.provide(ObservabilityHook, hook)
    if manager is not None:
        box.provide(CallbackManager, manager)
    return box


def talk(count: int, *, words: str = "some words", ids: bool = True) -> list[AnyMessage]:
    out: list[AnyMessage] = []
    for i in range(count):
        kind: Any = AIMessage if i % 2 else HumanMessage
        out.append(kind(content=f"{words} {i}", id=f"m{i}" if ids else None))
    return out


def tool_loop(rounds: int, *, system: bool = True, parallel: int = 2) -> list[AnyMessage]:
    out: list[AnyMessage] = [SystemMessage(content="You are careful.", id="sys")] if system else []
    out.append(HumanMessage(content="Fix the build.", id="task"))
    for i in range(rounds):
        calls = [{"name": "run", "args": {"cmd": f"step {i}.{j}"}, "id": f"c{i}.{j}"} for j in range(parallel)]
        out.append(AIMessage(content="", tool_calls=calls, id=f"a{i}"))
        out.extend(
            ToolMessage(content=f"out {i}.{j}", tool_call_id=f"c{i}.{j}", id=f"t{i}.{j}") for j in range(parallel)
        )
    return out


def run(config: CompactionConfig, state: dict[str, Any], **options: Any) -> dict[str, Any]:
    return asyncio.run(create_context_window_node(config, **options)(state))


def applied(messages: list[AnyMessage], update: dict[str, Any]) -> list[AnyMessage]:
    return list(add_messages(list(messages), update.get("messages", [])))


def check_valid(messages: list[AnyMessage]) -> None:
    """Every result follows its call, no call misses a result, no system message stands after another kind."""
    open_calls: set[str] = set()
    seen_other = False
    assert messages
    for message in messages:
        if isinstance(message, SystemMessage):
            assert not seen_other, "a system message in the middle"
            continue
        seen_other = True
        if isinstance(message, ToolMessage):
            assert message.tool_call_id in open_calls
            open_calls.discard(message.tool_call_id)
            continue
        assert not open_calls
        if isinstance(message, AIMessage):
            open_calls = {call["id"] for call in message.tool_calls}
    assert not open_calls
    assert len({m.id for m in messages}) == len(messages)


# In a real graph


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    deps: Any
    run_id: str


def graph_of(config: CompactionConfig, **compiled: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("context_window", create_context_window_node(config))
    builder.add_edge(START, "context_window")
    builder.add_edge("context_window", END)
    return builder.compile(**compiled)


@pytest.mark.parametrize("keep", [0, 1, 3, 4, 5, 9])
@pytest.mark.parametrize("system", [True, False])
def test_in_a_real_graph_the_summary_stands_before_all_that_is_kept(keep, system):
    messages = [*([SystemMessage(content="Rules.", id="sys")] if system else []), *talk(14)]
    config = CompactionConfig(soft_threshold_tokens=0, keep_recent_messages=keep)
    state = {"messages": messages, "deps": deps(Provider("They spoke."))}
    out = asyncio.run(graph_of(config).ainvoke(state))["messages"]
    at = next(i for i, m in enumerate(out) if is_summary(m))
    assert out[at].content == HEAD + "They spoke."
    assert at == int(system)
    if system:
        assert out[0].content == "Rules."
    human = [m for m in out if isinstance(m, HumanMessage) and m.content == "some words 12"]
    assert len(human) == (1 if keep else 0)
    assert [m.id for m in out[len(out) - keep :]] == [m.id for m in messages[len(messages) - keep :]]
    check_valid(out)


@pytest.mark.parametrize("keep", range(8))
@pytest.mark.parametrize("system", [True, False])
def test_a_tool_loop_under_one_request_stays_valid_and_keeps_the_request(keep, system):
    messages = tool_loop(6, system=system)
    config = CompactionConfig(soft_threshold_tokens=0, keep_recent_messages=keep)
    out = asyncio.run(graph_of(config).ainvoke({"messages": messages, "deps": deps(Provider())}))["messages"]
    check_valid(out)
    texts = [m.content for m in out if isinstance(m, HumanMessage)]
    assert texts == (["Fix the build."] if keep else [])
    assert is_summary(out[int(system)])
    assert len(out) < len(messages)


def test_turn_after_turn_exactly_one_summary_remains_and_the_prompt_stays_first():
    provider = Provider()
    graph = graph_of(CompactionConfig(soft_threshold_tokens=40, keep_recent_messages=4), checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}
    start: list[AnyMessage] = [SystemMessage(content="Rules.", id="sys")]
    box = deps(provider)
    graph_deps = {"deps": None}
    node = create_context_window_node(CompactionConfig(soft_threshold_tokens=40, keep_recent_messages=4))
    messages = start
    for turn in range(30):
        messages = [*messages, HumanMessage(content=f"question {turn}", id=f"q{turn}")]
        messages = applied(messages, asyncio.run(node({"messages": messages, "deps": box})))
        check_valid(messages)
        assert messages[0].content == "Rules."
        assert sum(is_summary(m) for m in messages) <= 1
        messages = [*messages, AIMessage(content=f"answer {turn}", id=f"r{turn}")]
    assert sum(is_summary(m) for m in messages) == 1
    assert len(messages) < 20
    assert len(provider.prompts) > 2
    assert "[Conversation Summary]" in provider.prompts[-1][0].content
    # Through a checkpointed graph as well, where deps can't be stored.
    assert asyncio.run(graph.ainvoke({"messages": talk(2), **graph_deps}, config))["messages"]


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.sampled_from(["human", "ai", "round", "round3"]), min_size=1, max_size=14),
    keep=st.integers(0, 12),
    system=st.booleans(),
)
def test_any_valid_history_stays_valid_and_loses_nothing_unsaid(shape, keep, system):
    messages: list[AnyMessage] = [SystemMessage(content="Rules.", id="sys")] if system else []
    for i, kind in enumerate(shape):
        if kind == "human":
            messages.append(HumanMessage(content=f"human {i}", id=f"h{i}"))
        elif kind == "ai":
            messages.append(AIMessage(content=f"ai {i}", id=f"a{i}"))
        else:
            width = 3 if kind == "round3" else 1
            calls = [{"name": "run", "args": {"n": j}, "id": f"c{i}.{j}"} for j in range(width)]
            messages.append(AIMessage(content="", tool_calls=calls, id=f"a{i}"))
            messages.extend(
                ToolMessage(content=f"out {i}.{j}", tool_call_id=f"c{i}.{j}", id=f"t{i}.{j}") for j in range(width)
            )
    provider = Provider()
    update = run(
        CompactionConfig(soft_threshold_tokens=0, keep_recent_messages=keep),
        {"messages": messages, "deps": deps(provider)},
    )
    if not update:
        return
    out = applied(messages, update)
    check_valid(out)
    prompt = provider.prompts[0][0].content
    left = {m.content for m in out}
    for message in messages:
        if message.content and message.content not in left:
            assert message.content in prompt
    if system:
        assert out[0].content == "Rules."
    humans = [m for m in messages if isinstance(m, HumanMessage)]
    if humans and keep:
        assert humans[-1].content in left
    assert sum(is_summary(m) for m in out) == 1


# Thresholds and boundary


@pytest.mark.parametrize(
    ("config", "model", "expected"),
    [
        (CompactionConfig(), None, 400_000),
        (CompactionConfig(), ModelConfig("m", context_window=32_000), 64_000),
        (CompactionConfig(), ModelConfig("m"), 400_000),
        (CompactionConfig(context_window_tokens=1_000), ModelConfig("m", context_window=32_000), 2_000),
        (CompactionConfig(context_window_tokens=1_000, max_history_share=1, chars_per_token=3), None, 3_000),
        (CompactionConfig(context_window_tokens=1, max_history_share=0.1), None, 0),
    ],
)
def test_the_hard_budget_is_window_times_share_times_characters(config, model, expected):
    assert budget_chars(config, model) == expected


def test_nothing_happens_below_both_thresholds():
    quiet = CompactionConfig(keep_recent_messages=1)
    assert run(quiet, {"messages": talk(50), "deps": None}) == {}


@pytest.mark.parametrize(
    ("config", "compacted"),
    [
        (CompactionConfig(context_window_tokens=200, soft_threshold_tokens=10**6, keep_recent_messages=1), True),
        (CompactionConfig(context_window_tokens=200_000, soft_threshold_tokens=10**6, keep_recent_messages=1), False),
        (CompactionConfig(context_window_tokens=200_000, soft_threshold_tokens=200, keep_recent_messages=1), True),
        (CompactionConfig(context_window_tokens=200_000, soft_threshold_tokens=300, keep_recent_messages=1), False),
    ],
)
def test_either_threshold_alone_starts_a_compaction(config, compacted):
    messages = [
        HumanMessage(content="x" * 500, id="a"),
        AIMessage(content="y" * 499, id="b"),
        HumanMessage("z", id="c"),
    ]
    assert bool(run(config, {"messages": messages, "deps": deps(Provider())})) is compacted


@pytest.mark.parametrize("count", [0, 1, 4])
def test_no_more_messages_than_are_kept_is_left_alone(count):
    assert run(EAGER, {"messages": talk(count), "deps": None}) == {}


def test_an_image_counts_a_fixed_size_and_not_its_base64():
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 2_000_000}}
    message = HumanMessage(content=[{"type": "text", "text": "look"}, image])
    assert size_chars(message) == 4 + 1_600 * 4
    assert "AAAA" not in summary_prompt([message])
    assert "[image_url]" in summary_prompt([message])


def test_calls_and_their_arguments_count_and_are_rendered():
    message = AIMessage(content="", tool_calls=[{"name": "book", "args": {"id": "PNR-7741"}, "id": "c"}])
    assert size_chars(message) > 10
    prompt = summary_prompt([message, ToolMessage(content="ok 2026-01-05", tool_call_id="c")])
    assert "AIMessage: [call book(" in prompt
    assert "PNR-7741" in prompt
    assert "ToolMessage: ok 2026-01-05" in prompt


def test_reasoning_and_signatures_never_reach_the_summariser():
    thought = {"type": "thinking", "thinking": "secret plan", "signature": "sig=="}
    prompt = summary_prompt([AIMessage(content=[thought, {"type": "text", "text": "Hello."}])])
    assert "Hello." in prompt
    assert "secret" not in prompt
    assert "sig==" not in prompt


@pytest.mark.parametrize(("keep", "first_kept"), [(1, "h2"), (2, "h2"), (3, "h2"), (4, "a1")])
def test_the_boundary_moves_forward_past_leading_tool_results(keep, first_kept):
    calls = [{"name": "f", "args": {}, "id": "c1"}, {"name": "f", "args": {}, "id": "c2"}]
    messages = [
        HumanMessage(content="one", id="h1"),
        AIMessage(content="", tool_calls=calls, id="a1"),
        ToolMessage(content="r1", tool_call_id="c1", id="t1"),
        ToolMessage(content="r2", tool_call_id="c2", id="t2"),
        HumanMessage(content="two", id="h2"),
    ]
    chosen = split(messages, keep)
    assert chosen is not None
    kept = [m.id for i, m in enumerate(messages) if i not in chosen.old]
    assert kept[0] == first_kept


def test_keeping_nothing_compacts_the_latest_request_too_but_not_the_system_prompt():
    messages = [SystemMessage(content="Rules.", id="sys"), *talk(5)]
    update = run(
        CompactionConfig(soft_threshold_tokens=0, keep_recent_messages=0),
        {"messages": messages, "deps": deps(Provider())},
    )
    out = applied(messages, update)
    assert [type(m) for m in out] == [SystemMessage, SystemMessage]
    assert out[0].content == "Rules."


def test_a_system_prompt_that_speaks_of_summaries_is_no_summary():
    prompt = SystemMessage(content="Write [Conversation Summary] blocks when asked.", id="sys")
    assert not is_summary(prompt)
    messages = [prompt, *talk(9)]
    out = applied(messages, run(EAGER, {"messages": messages, "deps": deps(Provider())}))
    assert out[0] == prompt


def test_a_summary_alone_is_not_summarised_again():
    messages = [SystemMessage(content=HEAD + "Before.", id="s"), *talk(4, words="many words " * 50)]
    provider = Provider()
    assert run(EAGER, {"messages": messages, "deps": deps(provider)}) == {}
    assert provider.configs == []


# Ids


def test_every_old_message_with_an_id_is_removed_and_the_summary_takes_the_first_place():
    update = run(EAGER, {"messages": talk(10), "deps": deps(Provider())})["messages"]
    assert [m.id for m in update if isinstance(m, RemoveMessage)] == [f"m{i}" for i in range(6)]
    assert isinstance(update[-1], SystemMessage)
    assert update[-1].id == "m0"


def test_messages_without_ids_are_summarised_but_not_removed():
    messages = talk(10)
    for message in (messages[0], messages[3]):
        message.id = None
    update = run(EAGER, {"messages": messages, "deps": deps(Provider())})["messages"]
    assert [m.id for m in update if isinstance(m, RemoveMessage)] == ["m1", "m2", "m4", "m5"]
    assert update[-1].id == "m1"
    bare = run(EAGER, {"messages": talk(10, ids=False), "deps": deps(Provider())})["messages"]
    assert [type(m) for m in bare] == [SystemMessage]


def test_the_nodes_input_is_never_changed():
    messages = tool_loop(5)
    before = [m.model_copy(deep=True) for m in messages]
    run(EAGER, {"messages": messages, "deps": deps(Provider())})
    assert messages == before


# The summariser


def test_the_summary_role_is_used_as_it_is():
    mine = ModelConfig("my-summariser", max_tokens=77, temperature=0.1)
    provider = Provider()
    run(EAGER, {"messages": talk(9), "deps": deps(provider)}, role_models={"summary": mine})
    assert provider.configs == [mine]
    assert provider.configs[0] is mine


@pytest.mark.parametrize(
    "roles", [None, {}, {"other": ModelConfig("x")}, {"summary": "not-a-config"}, {"summary": None}]
)
def test_without_a_summary_role_the_configured_model_is_used(roles):
    provider = Provider()
    config = CompactionConfig(
        soft_threshold_tokens=0, keep_recent_messages=4, compaction_model="mini", max_chunk_tokens=9
    )
    run(config, {"messages": talk(9), "deps": deps(provider)}, role_models=roles)
    assert provider.configs == [ModelConfig("mini", max_tokens=9)]


def test_the_prompt_is_one_human_message_with_a_line_a_message():
    provider = Provider()
    run(EAGER, {"messages": talk(9), "deps": deps(provider)})
    (prompt,) = provider.prompts[0]
    assert isinstance(prompt, HumanMessage)
    assert "HumanMessage: some words 0\nAIMessage: some words 1\n" in prompt.content
    for word in ("concise", "decision", "fact", "context"):
        assert word in prompt.content.lower()


def test_a_history_larger_than_the_summarisers_window_is_cut_visibly_and_fits():
    provider = Provider()
    mine = ModelConfig("small", max_tokens=500, context_window=2_000)
    messages = talk(30, words="word " * 2_000)
    run(EAGER, {"messages": messages, "deps": deps(provider)}, role_models={"summary": mine})
    text = provider.prompts[0][0].content
    assert len(text) < 2_000 * 4
    assert "characters left out" in text


@pytest.mark.parametrize(
    "answer",
    ["", "   \n", RuntimeError("429"), AIMessage(content=[{"type": "thinking", "thinking": "hm", "signature": "s"}])],
    ids=["empty", "blank", "failed", "only reasoning"],
)
def test_a_blank_or_failed_summary_removes_nothing_and_is_reported(answer, caplog):
    flusher = Flusher()
    with caplog.at_level(logging.WARNING, logger="wakeful.adapters.langgraph"):
        assert run(EAGER, {"messages": talk(9), "deps": deps(Provider(answer), flusher)}) == {}
    assert caplog.records
    assert flusher.states == []


def test_a_real_langchain_model_summarises():
    class Real:
        def get_chat_model(self, config: ModelConfig) -> Any:
            return GenericFakeChatModel(messages=iter([AIMessage(content=[{"type": "text", "text": "From blocks."}])]))

    update = run(EAGER, {"messages": talk(9), "deps": BaseAgentDeps(Real())})
    assert update["messages"][-1].content == HEAD + "From blocks."


@pytest.mark.parametrize("state", [{}, {"messages": talk(9)}, {"messages": talk(9), "deps": BaseAgentDeps()}])
def test_an_exception_leaves_the_state_unchanged_and_is_reported(state, caplog):
    with caplog.at_level(logging.ERROR, logger="wakeful.adapters.langgraph"):
        assert run(EAGER, state) == {}
    assert "stays as it was" in caplog.text


# Hooks and callbacks


def test_both_the_hook_and_the_manager_see_the_call_with_the_resolved_model():
    hook, manager = Recorder(), Recorder()
    state = {"messages": talk(9), "deps": deps(Provider(), hook=hook, manager=manager), "run_id": "run-1"}
    run(EAGER, state)
    (start, (model, messages, run_id)), (end, (end_model, text, usage, end_run)) = hook.seen
    assert (start, end) == ("start", "end")
    assert (model, run_id) == (end_model, end_run) == ("claude-haiku-4-5", "run-1")
    assert isinstance(messages[0], HumanMessage)
    assert text == "A summary."
    assert usage["output_tokens"] == 3
    (_, (began,)), (_, (ended,)) = manager.seen
    assert isinstance(began, LLMStartEvent)
    assert isinstance(ended, LLMEndEvent)
    assert began.node_name == ended.node_name == "context_window_summariser"
    assert ended.duration_ms >= 0
    assert ended.started_at_utc.tzinfo is not None
    assert ended.usage["input_tokens"] == 9
    assert ended.run_id == "run-1"


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"model": "from-model", "model_name": "from-name"}, "from-model"),
        ({"model_name": "from-name"}, "from-name"),
        ({"model": None, "model_name": "from-name"}, "from-name"),
        ({}, "claude-haiku-4-5"),
    ],
)
def test_the_models_own_name_wins_over_the_configs(attributes, expected):
    hook = Recorder()
    run(EAGER, {"messages": talk(9), "deps": deps(Provider(**attributes), hook=hook)})
    assert hook.seen[0][1][0] == expected


def test_the_states_manager_wins_over_that_of_the_deps():
    mine, theirs = Recorder(), Recorder()
    state = {"messages": talk(9), "deps": deps(Provider(), manager=theirs), "_callback_manager": mine}
    run(EAGER, state)
    assert len(mine.seen) == 2
    assert theirs.seen == []


def test_a_manager_without_listeners_is_not_called():
    manager = Recorder(noop=True)
    run(EAGER, {"messages": talk(9), "deps": deps(Provider(), manager=manager)})
    assert manager.seen == []


def test_hooks_that_raise_are_logged_and_isolated(caplog):
    hook, manager = Recorder(broken=True), Recorder(broken=True)
    update = run(EAGER, {"messages": talk(9), "deps": deps(Provider(), hook=hook, manager=manager)})
    assert update["messages"][-1].content == HEAD + "A summary."
    assert len(hook.seen) == len(manager.seen) == 2
    assert caplog.text.count("a hook failed") == 4


def test_a_failed_call_is_ended_for_hook_and_manager():
    hook, manager = Recorder(), Recorder()
    run(EAGER, {"messages": talk(9), "deps": deps(Provider(RuntimeError("no")), hook=hook, manager=manager)})
    assert [name for name, _ in hook.seen] == ["start", "end"]
    assert manager.seen[1][1][0].error == "RuntimeError: no"


# Memory flush


def test_memory_is_flushed_with_the_state_after_a_compaction():
    flusher = Flusher()
    state = {"messages": talk(9), "deps": deps(Provider(), flusher)}
    assert run(EAGER, state)
    assert flusher.states == [state]


def test_a_flush_that_raises_leaves_the_state_unchanged(caplog):
    assert run(EAGER, {"messages": talk(9), "deps": deps(Provider(), Flusher(broken=True))}) == {}
    assert "disk full" in caplog.text


def test_the_flush_can_be_switched_off_and_is_not_run_without_a_compaction():
    flusher = Flusher()
    off = CompactionConfig(soft_threshold_tokens=0, keep_recent_messages=4, enable_memory_flush=False)
    assert run(off, {"messages": talk(9), "deps": deps(Provider(), flusher)})
    assert run(EAGER, {"messages": talk(2), "deps": deps(Provider(), flusher)}) == {}
    assert flusher.states == []


@pytest.mark.parametrize("state", [{}, {"deps": None}, {"deps": object()}, {"deps": {}}, {"deps": BaseAgentDeps()}])
def test_flushing_without_a_container_or_a_flusher_does_nothing(state):
    assert asyncio.run(flush_memory(state)) is None


def test_flushing_alone_raises_what_the_flusher_raises():
    with pytest.raises(RuntimeError, match="disk full"):
        asyncio.run(flush_memory({"deps": BaseAgentDeps(Flusher(broken=True))}))


# Container and config


def test_the_container_resolves_by_type():
    provider, flusher = Provider(), Flusher()
    box = BaseAgentDeps(provider, flusher)
    assert box.require(ModelProvider) is provider
    assert box.get(MemoryFlusher) is flusher
    assert box.get(CallbackManager) is None
    assert isinstance(box.require(ObservabilityHook), NoOpObservabilityHook)
    with pytest.raises(ConfigError, match="CallbackManager"):
        box.require(CallbackManager)


def test_the_container_takes_a_table_by_type_too():
    provider, hook = Provider(), Recorder()
    box = BaseAgentDeps({ModelProvider: provider, ObservabilityHook: hook})
    assert box.require(ModelProvider) is provider
    assert box.require(ObservabilityHook) is hook


def test_another_containers_hook_and_a_plain_answer_do_as_well():
    provider, hook = Provider(), Recorder()

    class Theirs:
        def require(self, kind: Any) -> Any:
            return {ModelProvider: provider, ObservabilityHook: hook}[kind]

        def get(self, kind: Any) -> Any:
            return None

    class Plain(Provider.Model):
        async def ainvoke(self, messages: list[Any]) -> Any:
            return SimpleNamespace(content="Plain.")

    provider.Model = Plain  # type: ignore[misc]
    update = run(EAGER, {"messages": talk(9), "deps": Theirs()})
    assert update["messages"][-1].content == HEAD + "Plain."
    assert hook.seen[1][1][2] == {}


def test_a_subclass_may_hold_its_collaborators_as_attributes():
    class Mine(BaseAgentDeps):
        def __init__(self) -> None:
            self.provider = Provider()

    box = Mine()
    assert box.require(ModelProvider) is box.provider
    other = Provider()
    assert box.provide(ModelProvider, other).require(ModelProvider) is other


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("context_window_tokens", 0),
        ("context_window_tokens", -5),
        ("max_history_share", 0),
        ("max_history_share", 1.01),
        ("max_history_share", -0.1),
        ("max_history_share", float("nan")),
        ("chars_per_token", 0),
        ("keep_recent_messages", -1),
        ("max_chunk_tokens", 0),
        ("soft_threshold_tokens", -1),
        ("keep_recent_messages", 2.5),
        ("keep_recent_messages", True),
    ],
)
def test_a_bad_setting_is_a_value_error_that_names_it(field, value):
    with pytest.raises(ValueError, match=field):
        CompactionConfig(**{field: value})


def test_the_defaults_are_those_of_the_contract():
    config = CompactionConfig()
    assert config.context_window_tokens is None
    assert config.max_history_share == 0.5
    assert config.chars_per_token == 4
    assert config.keep_recent_messages == 10
    assert config.max_chunk_tokens == 30_000
    assert config.compaction_model == "claude-haiku-4-5"
    assert config.soft_threshold_tokens == 4_000
    assert config.enable_memory_flush is True
    assert not exceeds([], config)


def test_another_kind_of_config_is_refused_where_the_node_is_made():
    with pytest.raises(ConfigError, match="CompactionConfig"):
        create_context_window_node({"max_history_share": 0.5})  # type: ignore[arg-type]


def test_the_section_is_composed_by_the_honesty_rules():
    assert compose_memory_section(summary_text="", last_compacted_index=3, entries_count=0) == HONESTY_MARKER_SENTINEL
    assert compose_memory_section(summary_text="x", last_compacted_index=0, entries_count=0) == "x"
