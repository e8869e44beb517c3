"""Getting a chat model from what a user has; functions, scripts and LangChain models as models."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from typing import Any

import anthropic
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from wakeful import dialects
from wakeful.errors import ConfigError, InvalidRequest, ModelError, Overloaded, RateLimited
from wakeful.models.anthropic import AnthropicModel
from wakeful.models.chat import (
    ChatModel,
    FunctionModel,
    afold,
    closed_schema,
    fold,
    is_strict,
    tool_call,
)
from wakeful.models.choose import coerce_model
from wakeful.models.langchain import LangChainModel
from wakeful.models.openai import OpenAIChatModel, OpenAIResponsesModel
from wakeful.needs import CallDelta, ChatReply, ChatRequest, Done, TextDelta, ThinkingDelta, ToolSpec, Usage
from wakeful.testing import FrozenClock, Say, ScriptedModel, call

GO = ChatRequest(prompt="Go.")


def test_each_thing_a_user_has_becomes_the_right_model():
    with anthropic.Anthropic(api_key="x") as claude, openai.OpenAI(api_key="x") as gpt:
        assert isinstance(coerce_model(claude, model="claude-opus-5-5"), AnthropicModel)
        assert isinstance(coerce_model((gpt, "gpt-5.5")), OpenAIChatModel)
        assert coerce_model((gpt, "gpt-5.5")).name == "gpt-5.5"
    assert isinstance(coerce_model("anthropic/claude-opus-5-5"), AnthropicModel)
    assert isinstance(coerce_model("openai/gpt-5.5"), OpenAIChatModel)
    assert isinstance(coerce_model("openai-responses/gpt-5.5"), OpenAIResponsesModel)
    assert coerce_model("openai/org/model").name == "org/model"
    assert isinstance(coerce_model(GenericFakeChatModel(messages=iter(()))), LangChainModel)
    assert isinstance(coerce_model(str.upper), FunctionModel)
    script = ScriptedModel()
    assert coerce_model(script) is script


@pytest.mark.parametrize("value", ["gpt-5.5", "nobody/gpt", "anthropic/", "", None, 3, object(), dict, ScriptedModel])
def test_anything_else_is_refused_with_what_would_do(value):
    with pytest.raises(ConfigError, match=r"SDK|give a ChatModel|client"):
        coerce_model(value)


def test_a_client_without_a_model_id_is_refused():
    with anthropic.Anthropic(api_key="x") as client, pytest.raises(ConfigError, match="model id"):
        coerce_model(client)


def test_a_name_is_turned_into_a_model_without_loading_an_sdk():
    code = (
        "import sys; from wakeful.models.choose import coerce_model; "
        "coerce_model('anthropic/claude-opus-5-5'); coerce_model('openai/gpt-5.5'); coerce_model(len); "
        "assert not {'anthropic', 'openai', 'httpx', 'pydantic', 'langchain_core', 'asyncio'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# Functions


def test_a_function_gets_the_whole_request_as_text():
    seen: list[str] = []

    def model(text: str) -> str:
        seen.append(text)
        return "short"

    request = ChatRequest(
        system="Be brief.", messages=({"role": "user", "content": "Hi."},), prompt="Go.", schema={"type": "object"}
    )
    reply = coerce_model(model).chat(request)
    assert reply.text == "short"
    assert reply.message == {"role": "assistant", "content": "short"}
    for part in ("Be brief.", "user: Hi.", "Go.", "JSON schema"):
        assert part in seen[0]


def test_an_async_function_is_awaited_and_refused_without_await():
    async def model(text: str) -> str:
        return text[::-1]

    it = coerce_model(model)
    assert asyncio.run(it.achat(ChatRequest(prompt="abc"))).text == "cba"
    with pytest.raises(ConfigError, match="async"):
        it.chat(GO)


def test_a_plain_function_does_not_block_the_loop():
    threads: list[Any] = []
    it = coerce_model(lambda _: threads.append(threading.current_thread()) or "x")
    assert asyncio.run(it.achat(GO)).text == "x"
    assert threads[0] is not threading.main_thread()


@pytest.mark.parametrize("value", [None, 3, b"x"])
def test_a_function_that_gives_no_text_is_a_model_error(value):
    with pytest.raises(ModelError, match="not text"):
        coerce_model(lambda _: value).chat(GO)


def test_what_a_function_raises_is_wrapped_once_with_its_cause():
    def broken(_: str) -> str:
        raise KeyError("x")

    async def abroken(_: str) -> str:
        raise KeyError("x")

    with pytest.raises(ModelError, match="broken") as caught:
        coerce_model(broken).chat(GO)
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(ModelError, match="abroken") as caught:
        asyncio.run(coerce_model(abroken).achat(GO))
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_function_streams_its_answer_and_takes_no_tools():
    it = coerce_model(lambda _: "hello")
    assert next(iter(it.stream(GO))) == TextDelta("hello")
    with pytest.raises(ConfigError, match="tools"):
        it.chat(ChatRequest(prompt="x", tools=(ToolSpec("f"),)))


# Scripts


def test_a_script_answers_in_order_and_keeps_what_it_was_asked():
    model = ScriptedModel(["one", Say("two"), Overloaded(), ChatReply(text="four"), lambda r: (r.prompt or "") + "!"])
    assert model.chat(GO).text == "one"
    assert asyncio.run(model.achat(GO)).text == "two"
    with pytest.raises(Overloaded):
        model.chat(GO)
    assert fold(model.stream(GO)).text == "four"
    assert asyncio.run(afold(model.astream(GO))).text == "Go.!"
    assert len(model.requests) == 5
    with pytest.raises(AssertionError, match="no answer"):
        model.chat(GO)


@pytest.mark.parametrize("dialect", dialects.NAMES)
def test_a_scripted_reply_is_native_and_goes_round(dialect):
    model = ScriptedModel(
        [Say("Look.", (call("c1", "f", a=1), call("c2", "f", a=2))), "Done."], dialect=dialect, strict=True
    )
    assert isinstance(model, ChatModel)
    own = dialects.get(dialect)
    history: list[Any] = [own.note("Go.")]
    reply = model.chat(ChatRequest(messages=tuple(history)))
    history.extend(reply.message if isinstance(reply.message, tuple) else (reply.message,))
    answers = [own.answer(each.id, "ok", name=each.name, error=False) for each in reply.calls]
    history.extend([own.merge(answers)] if own.facts.results_in_user else answers)
    assert model.chat(ChatRequest(messages=tuple(history))).text == "Done."


def test_a_strict_script_refuses_what_the_provider_would():
    model = ScriptedModel(["never"], dialect="anthropic", strict=True)
    orphan = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "gone", "content": "x"}]}
    with pytest.raises(InvalidRequest, match="A2"):
        model.chat(ChatRequest(messages=(orphan,)))


@given(st.text(max_size=60))
def test_the_words_of_a_streamed_script_join_to_its_text(text):
    parts = list(ScriptedModel([text]).stream(GO))
    assert "".join(p.text for p in parts if isinstance(p, TextDelta)) == text
    assert isinstance(parts[-1], Done)


def test_a_frozen_clock_moves_only_when_told():
    clock = FrozenClock()
    first = clock()
    assert clock() == first
    assert (clock.advance(hours=2, seconds=5) - first).total_seconds() == 7205
    with pytest.raises(ConfigError, match="timezone"):
        FrozenClock(first.replace(tzinfo=None))


# LangChain models


class Tooled(GenericFakeChatModel):
    """The fake chat model, with tools and the usual fields."""

    temperature: float | None = None
    max_output_tokens: int | None = None
    seen: list[Any] = []  # noqa: RUF012

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self.bind(tools=tools)

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        self.seen.append((messages, kwargs))
        return super()._generate(messages, stop=stop, run_manager=run_manager, **kwargs)


def langchain(*answers: Any) -> tuple[LangChainModel, list[Any]]:
    model = Tooled(messages=iter(answers), seen=[])
    return LangChainModel(model), model.seen


def test_a_langchain_reply_is_the_models_own_message():
    message = AIMessage(
        content=[
            {"type": "thinking", "thinking": "Hm.", "signature": "s"},
            {"type": "text", "text": "Hello."},
        ],
        tool_calls=[{"name": "f", "args": {"a": 1}, "id": "c1"}],
        invalid_tool_calls=[{"name": "g", "args": "{cut", "id": "c2", "error": "bad", "type": "invalid_tool_call"}],
        usage_metadata={
            "input_tokens": 10,
            "output_tokens": 4,
            "total_tokens": 14,
            "input_token_details": {"cache_read": 6, "cache_creation": 2},
        },
        response_metadata={"stop_reason": "tool_use", "model_name": "m-1"},
    )
    model, _ = langchain(message)
    reply = model.chat(GO)
    assert reply.message == message
    assert (reply.text, reply.thinking, reply.stop, reply.model) == ("Hello.", "Hm.", "tools", "m-1")
    assert [(c.id, c.invalid) for c in reply.calls] == [("c1", None), ("c2", "{cut")]
    assert reply.usage == Usage(input_tokens=10, output_tokens=4, cached_tokens=6, cache_write_tokens=2)


def test_a_langchain_request_carries_messages_tools_and_known_options():
    model, seen = langchain("ok")
    history = (
        HumanMessage("a"),
        AIMessage("b", tool_calls=[{"name": "f", "args": {}, "id": "c"}]),
        ToolMessage("r", tool_call_id="c"),
    )
    asyncio.run(
        model.achat(
            ChatRequest(
                messages=history,
                system=({"type": "text", "text": "S", "cache_control": {"type": "ephemeral"}},),
                tools=(ToolSpec("f", "F", {"properties": {}}),),
                max_tokens=50,
                temperature=0.2,
            )
        )
    )
    messages, options = seen[0]
    assert messages[1:] == list(history)
    assert isinstance(messages[0], SystemMessage)
    assert messages[0].content[0]["cache_control"] == {"type": "ephemeral"}
    assert options["max_output_tokens"] == 50
    assert options["temperature"] == 0.2
    assert options["tools"][0]["function"]["name"] == "f"


def test_a_langchain_stream_ends_with_an_ordinary_message():
    async def collect(model: LangChainModel) -> list[Any]:
        return [part async for part in model.astream(GO)]

    for read in (lambda m: list(m.stream(GO)), lambda m: asyncio.run(collect(m))):
        parts = read(langchain("hello there friend")[0])
        assert "".join(p.text for p in parts if isinstance(p, TextDelta)) == "hello there friend"
        reply = parts[-1].reply
        assert type(reply.message) is AIMessage
        assert reply.text == "hello there friend"
        assert not any(isinstance(p, ThinkingDelta | CallDelta) for p in parts)


class Failing(GenericFakeChatModel):
    def _generate(self, *args: Any, **kwargs: Any) -> Any:
        error = RuntimeError("slow down")
        error.status_code = 429  # type: ignore[attr-defined]
        raise error


def test_what_a_langchain_model_raises_is_typed():
    model = LangChainModel(Failing(messages=iter(())))
    for ask in (
        lambda: model.chat(GO),
        lambda: asyncio.run(model.achat(GO)),
        lambda: fold(model.stream(GO)),
        lambda: asyncio.run(afold(model.astream(GO))),
    ):
        with pytest.raises(RateLimited) as caught:
            ask()
        assert isinstance(caught.value.__cause__, RuntimeError)


# Schemas and arguments


def test_a_schema_is_closed_all_the_way_down_and_the_original_stays():
    schema = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "object", "properties": {"b": {"type": "string"}}}}},
        "required": ["a"],
    }
    closed = closed_schema(schema)
    assert closed["additionalProperties"] is False
    assert closed["properties"]["a"]["items"]["additionalProperties"] is False
    assert "additionalProperties" not in schema
    assert not is_strict(closed)
    closed["properties"]["a"]["items"]["required"] = ["b"]
    assert is_strict(closed)


@pytest.mark.parametrize(
    ("arguments", "expected", "invalid"),
    [
        ({"a": 1}, {"a": 1}, None),
        ('{"a": 1}', {"a": 1}, None),
        ("", {}, None),
        ("  ", {}, None),
        ('{"a": ', {}, '{"a": '),
        ("[1]", {}, "[1]"),
        ("null", {}, "null"),
        (None, {}, "null"),
    ],
)
def test_arguments_are_an_object_or_marked_invalid(arguments, expected, invalid):
    made = tool_call("c", "f", arguments)
    assert made.arguments == expected
    assert made.invalid == invalid
