"""The middleware in real LangChain agents: calls fit, the state keeps everything, conversations stay apart."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from wakeful import dialects
from wakeful.adapters.langchain import ContextWindow
from wakeful.errors import ConfigError

WINDOW = 4_000


@tool
def read(page: int) -> str:
    """Read a page of the report."""
    return f"Page {page}: " + "revenue grew in the northern region and fell in the south; " * 12


class Reader(BaseChatModel):
    """Reads page after page and then answers; refuses what the format forbids."""

    pages: int = 12
    seen: list[Any] = []  # noqa: RUF012
    thinking: Any = None

    @property
    def _llm_type(self) -> str:
        return "reader"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        assert dialects.get("langchain").validate(messages, open_tail=False) == []
        self.seen.append(list(messages))
        done = sum(1 for call in self.seen if any(isinstance(m, HumanMessage) for m in call))
        calls = [{"name": "read", "args": {"page": done}, "id": f"c{done}"}]
        last = done > self.pages
        message = AIMessage(content="It grew." if last else "", tool_calls=[] if last else calls, id=f"r{done}")
        return ChatResult(generations=[ChatGeneration(message=message)])


def size(messages: list[Any]) -> int:
    return sum(len(str(m.content)) for m in messages) // 4


@pytest.mark.parametrize("awaited", [False, True])
def test_a_long_tool_loop_fits_at_every_call_and_the_state_keeps_it_all(awaited):
    model = Reader(seen=[])
    agent = create_agent(
        model, [read], middleware=[ContextWindow(window=WINDOW, reserve=500)], system_prompt="Be brief."
    )
    start = {"messages": [HumanMessage("What happened in the north?")]}
    options = {"recursion_limit": 100}
    out = asyncio.run(agent.ainvoke(start, options)) if awaited else agent.invoke(start, options)
    assert out["messages"][-1].content == "It grew."
    assert sum(isinstance(m, ToolMessage) for m in out["messages"]) == 12
    assert all(len(m.content) > 500 for m in out["messages"] if isinstance(m, ToolMessage))
    assert len(model.seen) == 13
    assert size(out["messages"]) > 2_000
    for call in model.seen:
        assert size(call) < WINDOW - 500
        assert any(m.content == "What happened in the north?" for m in call)
    assert max(size(call) for call in model.seen) > 1_000


def test_a_conversation_that_fits_reaches_the_model_as_it_is():
    model = Reader(pages=1, seen=[])
    agent = create_agent(model, [read], middleware=[ContextWindow(window=200_000)])
    out = agent.invoke({"messages": [HumanMessage("Go.", id="h")]})
    assert model.seen[-1] == out["messages"][:-1]


def test_each_thread_has_a_window_of_its_own():
    middleware = ContextWindow(window=WINDOW, reserve=500)
    agent = create_agent(Reader(pages=0, seen=[]), [read], middleware=[middleware], checkpointer=InMemorySaver())
    for thread in ("a", "b", "a"):
        agent.invoke({"messages": [HumanMessage("Hi.")]}, {"configurable": {"thread_id": thread}})
    assert sorted(middleware._windows) == ["a", "b"]
    assert middleware._windows["a"] is not middleware._windows["b"]


def test_conversations_unused_for_longest_are_forgotten_first(monkeypatch):
    monkeypatch.setattr("wakeful.adapters.langchain.CONVERSATIONS", 2)
    middleware = ContextWindow(window=WINDOW)
    agent = create_agent(Reader(pages=0, seen=[]), [read], middleware=[middleware], checkpointer=InMemorySaver())
    for thread in ("a", "b", "a", "c"):
        agent.invoke({"messages": [HumanMessage("Hi.")]}, {"configurable": {"thread_id": thread}})
    assert sorted(middleware._windows) == ["a", "c"]


def test_the_real_usage_teaches_the_conversations_window():
    class Counting(Reader):
        def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
            result = super()._generate(*args, **kwargs)
            usage = {"input_tokens": 2_000, "output_tokens": 5, "total_tokens": 2_005}
            result.generations[0].message.usage_metadata = usage
            return result

    middleware = ContextWindow(window=50_000)
    agent = create_agent(Counting(pages=0, seen=[]), [read], middleware=[middleware], checkpointer=InMemorySaver())
    text = "some ordinary words of a sentence " * 150
    agent.invoke({"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": "t"}})
    assert middleware._windows["t"].meter.samples == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [({"window": 0}, "window"), ({"windows": 5}, "windows"), ({"window": 1_000, "dialect": "anthropic"}, "LangChain")],
)
def test_a_bad_option_is_refused_where_the_middleware_is_made(options, message):
    with pytest.raises(ConfigError, match=message):
        ContextWindow(**options)
