"""Faults where a framework and a provider meet: summariser requests, streams, sub-agents, callbacks, stored responses.

Each case is an input that such systems are reported to fail on, with the right behaviour.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, TypedDict

import anthropic
import openai
import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from wakeful import compact, dialects
from wakeful.adapters.langgraph import BaseAgentDeps, CompactionConfig, ModelConfig, create_context_window_node
from wakeful.compaction.history_share import is_summary
from wakeful.models.openai import OpenAIResponsesModel
from wakeful.needs import ChatRequest
from wakeful.testing import ProviderServer, Say, random_conversation

EAGER = CompactionConfig(soft_threshold_tokens=0, keep_recent_messages=2)


class Summariser:
    """Gives real LangChain models that stream their answer, and keeps what they were asked."""

    def __init__(self) -> None:
        self.asked: list[list[AnyMessage]] = []

    def get_chat_model(self, config: ModelConfig) -> Any:
        asked = self.asked

        class Recording(GenericFakeChatModel):
            def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
                asked.append(messages)
                return super()._generate(messages, *args, **kwargs)

        return Recording(messages=iter([AIMessage(content="SECRET SUMMARY TOKENS")]))


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    deps: Any


def history(rounds: int = 4) -> list[AnyMessage]:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    out: list[AnyMessage] = [HumanMessage(content=[{"type": "text", "text": "What is on it?"}, image], id="q")]
    for i in range(rounds):
        thought = {"type": "thinking", "thinking": f"plan {i}", "signature": f"sig{i}"}
        call = {"name": "look", "args": {"at": i}, "id": f"c{i}"}
        out.append(AIMessage(content=[thought], tool_calls=[call], id=f"a{i}"))
        out.append(
            ToolMessage(content=[{"type": "text", "text": f"seen {i}"}, image], tool_call_id=f"c{i}", id=f"t{i}")
        )
    return out


def graph_with(node: Any, speak: Any = None) -> Any:
    builder = StateGraph(State)
    builder.add_node("context_window", node)
    builder.add_edge(START, "context_window")
    if speak is None:
        builder.add_edge("context_window", END)
    else:
        builder.add_node("speak", speak)
        builder.add_edge("context_window", "speak")
        builder.add_edge("speak", END)
    return builder.compile()


def test_the_summariser_is_sent_plain_text_whatever_the_history_holds():
    """Tool blocks without a tool configuration, signed thinking and media are refused by providers."""
    summariser = Summariser()
    asyncio.run(create_context_window_node(EAGER)({"messages": history(), "deps": BaseAgentDeps(summariser)}))
    (message,) = summariser.asked[0]
    assert type(message) is HumanMessage
    assert isinstance(message.content, str)
    assert "look(" in message.content
    assert "seen 1" in message.content
    for hidden in ("sig0", "plan 0", "AAAA"):
        assert hidden not in message.content


def test_the_summarys_tokens_never_reach_the_users_stream():
    async def speak(state: State) -> dict[str, Any]:
        model = GenericFakeChatModel(messages=iter([AIMessage(content="the answer")]))
        return {"messages": [await model.ainvoke(state["messages"])]}

    async def read() -> list[Any]:
        graph = graph_with(create_context_window_node(EAGER), speak)
        start = {"messages": history(), "deps": BaseAgentDeps(Summariser())}
        return [chunk async for chunk, _ in graph.astream(start, stream_mode="messages")]

    chunks = asyncio.run(read())
    streamed = "".join(str(c.content) for c in chunks if isinstance(c, AIMessageChunk))
    assert streamed == "the answer"


def test_a_sub_agents_loop_is_compacted_like_any_other():
    inner = graph_with(create_context_window_node(EAGER))
    inside: list[AnyMessage] = []

    async def sub_agent(state: State) -> dict[str, Any]:
        out = await inner.ainvoke({"messages": history(), "deps": state["deps"]})
        inside.extend(out["messages"])
        return {"messages": [AIMessage(content="sub-agent's answer")]}

    start = {"messages": [HumanMessage(content="Delegate.")], "deps": BaseAgentDeps(Summariser())}
    out = asyncio.run(graph_with(sub_agent).ainvoke(start))
    assert [m.content for m in out["messages"]] == ["Delegate.", "sub-agent's answer"]
    assert is_summary(inside[0])
    assert len(inside) < len(history())


def test_its_own_output_can_be_compacted_again_media_included():
    messages = history()
    node = create_context_window_node(EAGER)
    dialect = dialects.get("langchain")
    for turn in range(4):
        update = asyncio.run(node({"messages": messages, "deps": BaseAgentDeps(Summariser())}))
        messages = list(add_messages(messages, update.get("messages", [])))
        assert dialect.validate(messages) == []
        assert sum(is_summary(m) for m in messages) == 1
        more = [m.model_copy(update={"id": f"{m.id}-{turn}"}) for m in history(1)]
        messages = [*messages, *more]


def test_what_callbacks_read_is_not_changed_by_a_compaction():
    messages = history()
    seen = [m.model_copy(deep=True) for m in messages]
    asyncio.run(create_context_window_node(EAGER)({"messages": messages, "deps": BaseAgentDeps(Summariser())}))
    assert messages == seen


def test_a_summary_stands_where_a_system_message_may_stand():
    for system in (True, False):
        start: list[AnyMessage] = [SystemMessage(content="Rules.", id="s")] if system else []
        messages = [*start, *history()]
        update = asyncio.run(
            create_context_window_node(EAGER)({"messages": messages, "deps": BaseAgentDeps(Summariser())})
        )
        out = list(add_messages(messages, update["messages"]))
        kinds = [isinstance(m, SystemMessage) for m in out]
        assert kinds == sorted(kinds, reverse=True)


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_responses_history_is_sent_whole_and_refers_to_nothing_stored(rounds):
    """With ``store=False`` there is no response to refer to; reasoning goes back encrypted."""
    with ProviderServer(lambda got: Say(f"step {len(got.body['input'])}", thinking="Hm.")) as server:
        http = openai.DefaultHttpxClient(verify=False)
        with openai.OpenAI(base_url=server.openai_url, api_key="none", max_retries=0, http_client=http) as client:
            model = OpenAIResponsesModel("gpt-5.5", client=client)
            items: list[Any] = [{"role": "user", "content": "Go."}]
            for _ in range(rounds):
                items.extend(model.chat(ChatRequest(messages=tuple(items))).message)
                items.append({"role": "user", "content": "On."})
            model.chat(ChatRequest(messages=tuple(items)))
    assert server.refusals == []
    for received in server.requests:
        assert received.body["store"] is False
        assert "previous_response_id" not in received.body
        assert received.body["include"] == ["reasoning.encrypted_content"]
    sent = server.requests[-1].body["input"]
    assert sum(item.get("type") == "reasoning" and bool(item["encrypted_content"]) for item in sent) == rounds


@pytest.mark.parametrize("history_of", dialects.NAMES)
@pytest.mark.parametrize("api", ["anthropic", "openai"])
def test_a_summary_request_is_valid_whatever_format_the_history_has(api, history_of):
    """Tool blocks without tools, an assistant-first list, reasoning of another model: all are refused by providers."""
    messages = random_conversation(history_of, 7, turns=14)
    summary = "They worked through the files. " * 12
    with ProviderServer(lambda _: Say(summary)) as server:
        if api == "anthropic":
            client: Any = anthropic.Anthropic(
                base_url=server.anthropic_url,
                api_key="none",
                max_retries=0,
                http_client=anthropic.DefaultHttpxClient(verify=False),
            )
        else:
            client = openai.OpenAI(
                base_url=server.openai_url,
                api_key="none",
                max_retries=0,
                http_client=openai.DefaultHttpxClient(verify=False),
            )
        with client:
            result = compact(
                messages, window=1_500, reserve=200, dialect=history_of, summarizer=(client, "summary-model")
            )
    assert result.meta.compacted
    assert server.requests
    assert server.refusals == []
    for received in server.requests:
        assert "tools" not in received.body
        for message in received.body["messages"]:
            assert message["role"] in ("system", "user")
            assert isinstance(message["content"], str)
    assert dialects.get(history_of).validate(list(result.messages)) == []
