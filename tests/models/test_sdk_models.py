"""The adapters of the real SDKs, against a local server that is as strict as the providers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anthropic
import openai
import pytest

from wakeful import dialects
from wakeful.errors import (
    AuthError,
    ConfigError,
    ContextOverflow,
    InvalidRequest,
    ModelError,
    Overloaded,
    RateLimited,
    TransportError,
)
from wakeful.models.anthropic import AnthropicModel
from wakeful.models.chat import ChatModel
from wakeful.models.openai import OpenAIChatModel, OpenAIResponsesModel
from wakeful.needs import CallDelta, ChatReply, ChatRequest, Done, TextDelta, ThinkingDelta, ToolSpec, Usage
from wakeful.testing import Failure, ProviderServer, Say, call

APIS = ("anthropic", "openai_chat", "openai_responses")
THINKING = {"type": "enabled", "budget_tokens": 2_048}
TOOLS = (ToolSpec("search", "Search the files.", {"properties": {"q": {"type": "string"}}, "required": ["q"]}),)

COLOURS = ("chat", "stream", "achat", "astream")
"""The four ways to ask; what holds for one holds for all."""


class Asker:
    """One model, asked in one of the four ways."""

    def __init__(self, model: ChatModel, colour: str, loop: asyncio.Runner) -> None:
        self.model: Any = model
        self.colour = colour
        self.parts: list[Any] = []
        self._loop = loop

    def __call__(self, request: ChatRequest) -> ChatReply:
        match self.colour:
            case "chat":
                return self.model.chat(request)
            case "stream":
                self.parts = list(self.model.stream(request))
            case "achat":
                return self._loop.run(self.model.achat(request))
            case _:

                async def collect() -> list[Any]:
                    return [part async for part in self.model.astream(request)]

                self.parts = self._loop.run(collect())
        assert isinstance(self.parts[-1], Done)
        return self.parts[-1].reply


def make(api: str, url: str, *, awaited: bool, **options: Any) -> tuple[Any, Any]:
    sdk: Any = anthropic if api == "anthropic" else openai
    # Reading the machine's certificates costs 50 ms a client, and nothing here is encrypted.
    http = sdk.DefaultAsyncHttpxClient(verify=False) if awaited else sdk.DefaultHttpxClient(verify=False)
    shared = {"api_key": "none", "max_retries": 0, "timeout": 20.0, "http_client": http}
    if api == "anthropic":
        kind: Any = anthropic.AsyncAnthropic if awaited else anthropic.Anthropic
        client = kind(base_url=url, **shared)
        return AnthropicModel("claude-haiku-4-5", client=client, **options), client
    kind = openai.AsyncOpenAI if awaited else openai.OpenAI
    client = kind(base_url=f"{url}/v1", **shared)
    model = OpenAIChatModel if api == "openai_chat" else OpenAIResponsesModel
    return model("gpt-5.5", client=client, **options), client


@contextmanager
def asked(
    api: str, colour: str, server: ProviderServer, *, awaited: bool | None = None, **options: Any
) -> Iterator[Asker]:
    awaited = colour.startswith("a") if awaited is None else awaited
    with asyncio.Runner() as loop:
        model, client = make(api, server.anthropic_url, awaited=awaited, **options)
        try:
            yield Asker(model, colour, loop)
        finally:
            if awaited:
                loop.run(client.close())
            else:
                client.close()


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as running:
        yield running


every_api = pytest.mark.parametrize("api", APIS)
every_colour = pytest.mark.parametrize("colour", COLOURS)


@every_api
@every_colour
def test_an_answer_comes_whole_with_its_usage(server, api, colour):
    usage = Usage(input_tokens=120, output_tokens=7, cached_tokens=100)
    server.plan(Say("The answer is 42, or so they say.", usage=usage))
    with asked(api, colour, server) as ask:
        assert isinstance(ask.model, ChatModel)
        reply = ask(ChatRequest(prompt="What is it?", system="Be brief."))
    assert reply.text == "The answer is 42, or so they say."
    assert reply.stop == "end"
    assert reply.usage == usage
    assert reply.model == ask.model.name
    if ask.parts:
        assert "".join(p.text for p in ask.parts if isinstance(p, TextDelta)) == reply.text
        assert len(ask.parts) > 2


@every_api
@every_colour
def test_a_tool_loop_with_thinking_goes_round_unchanged(server, api, colour):
    """The native messages are appended as they came, and the strict server takes them."""
    thinks = "I should look both files up."
    server.plan(
        Say("Looking.", (call("toolu_1", "search", q="a"), call("toolu_2", "search", q="ü")), thinks),
        Say("", (call("toolu_3", "search", q="c"),), "One more."),
        Say("Found them.", thinking="Done."),
    )
    dialect = dialects.get(api)
    options = {"thinking": THINKING} if api == "anthropic" else {}
    history: list[Any] = [dialect.note("Find a and b.")]
    with asked(api, colour, server, **options) as ask:
        for _ in range(3):
            reply = ask(ChatRequest(messages=tuple(history), tools=TOOLS))
            history.extend(reply.message if isinstance(reply.message, tuple) else (reply.message,))
            if not reply.calls:
                break
            assert reply.stop == "tools"
            assert reply.thinking
            answers = [dialect.answer(each.id, f"hit for {each.name}", error=False) for each in reply.calls]
            history.extend([dialect.merge(answers)] if dialect.facts.results_in_user else answers)
    assert reply.text == "Found them."
    assert server.refusals == []
    assert len(server.requests) == 3


@every_api
@pytest.mark.parametrize("colour", ["stream", "astream"])
def test_a_stream_shows_thinking_and_calls_as_they_take_shape(server, api, colour):
    server.plan(Say("So.", (call("c1", "search", q="long enough to be cut"), call("c2", "search", q="b")), "Hm, well."))
    options = {"thinking": THINKING} if api == "anthropic" else {}
    with asked(api, colour, server, **options) as ask:
        reply = ask(ChatRequest(prompt="Go.", tools=TOOLS))
    assert "".join(p.text for p in ask.parts if isinstance(p, ThinkingDelta)) == reply.thinking == "Hm, well."
    deltas = [p for p in ask.parts if isinstance(p, CallDelta)]
    assert [d.id for d in deltas if d.id] == ["c1", "c2"]
    assert [d.name for d in deltas if d.name] == ["search", "search"]
    assert "".join(d.arguments for d in deltas if d.index == 0) == '{"q": "long enough to be cut"}'
    assert [dict(c.arguments) for c in reply.calls] == [{"q": "long enough to be cut"}, {"q": "b"}]


@every_api
@pytest.mark.parametrize(
    "say",
    [
        Say("Plain."),
        Say("", (call("c1", "search", q="x"),)),
        Say("Both.", (call("c1", "search", q="{}"), call("c2", "search")), "Thought."),
        Say("Ünïcödé 漢字 🎉 and\nlines", thinking="日本語"),
    ],
)
def test_streamed_and_whole_replies_are_the_same(server, api, say):
    replies = []
    options = {"thinking": THINKING} if api == "anthropic" else {}
    for colour in ("chat", "stream"):
        with ProviderServer(lambda _: say) as fresh, asked(api, colour, fresh, **options) as ask:
            replies.append(ask(ChatRequest(prompt="Go.", tools=TOOLS)))
    assert replies[0] == replies[1]


FAILURES = [
    (Failure.rate_limit(retry_after=7), RateLimited, True),
    (Failure.rate_limit(), RateLimited, True),
    (Failure.overloaded(), Overloaded, True),
    (Failure.overloaded(503), Overloaded, True),
    (Failure.overloaded(500), Overloaded, True),
    (Failure.auth(), AuthError, False),
    (Failure.overflow(), ContextOverflow, False),
    (Failure.invalid(), InvalidRequest, False),
    (Failure.garbage(), TransportError, True),
    (Failure.cut_json(), TransportError, True),
    (Failure.disconnect(), TransportError, True),
    (Failure.half_stream(), TransportError, True),
]


@every_api
@pytest.mark.parametrize("colour", ["chat", "astream"])
@pytest.mark.parametrize(("failure", "error", "retryable"), FAILURES, ids=lambda v: getattr(v, "kind", None))
def test_every_failure_is_typed_and_keeps_its_cause(server, api, colour, failure, error, retryable):
    server.plan(failure)
    with asked(api, colour, server) as ask, pytest.raises(ModelError) as caught:
        ask(ChatRequest(prompt="Go."))
    assert type(caught.value) is error
    assert caught.value.retryable is retryable
    assert caught.value.retry_after == failure.retry_after
    assert len(server.requests) == 1


@every_api
@pytest.mark.parametrize("colour", ["stream", "astream"])
@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (Failure.short_stream(), TransportError),
        (Failure.half_stream(), TransportError),
        (Failure.stream_error(), Overloaded),
    ],
    ids=lambda v: getattr(v, "kind", None),
)
def test_a_stream_that_breaks_never_gives_a_reply(server, api, colour, failure, error):
    server.plan(failure)
    with asked(api, colour, server) as ask, pytest.raises(error):
        ask(ChatRequest(prompt="Go."))
    assert not any(isinstance(part, Done) for part in ask.parts)


@every_api
@pytest.mark.parametrize("colour", ["chat", "achat"])
def test_a_request_that_takes_too_long_is_a_transport_error(server, api, colour):
    server.plan(Failure.hang())
    with asked(api, colour, server) as ask, pytest.raises(TransportError):
        ask(ChatRequest(prompt="Go.", timeout=0.2))


@every_api
def test_a_prompt_that_does_not_fit_is_a_context_overflow(api):
    with ProviderServer(lambda _: "ok", window=1_000) as small, asked(api, "chat", small) as ask:
        assert ask(ChatRequest(prompt="short", max_tokens=100)).text == "ok"
        with pytest.raises(ContextOverflow):
            ask(ChatRequest(prompt="long " * 2_000, max_tokens=100))
        with pytest.raises(ContextOverflow):
            ask(ChatRequest(prompt="word " * 700, max_tokens=900))


@every_api
@pytest.mark.parametrize("colour", ["chat", "achat"])
@pytest.mark.parametrize("wish", ["temperature", "schema", "thinking"])
def test_a_refused_wish_is_left_out_and_shown(api, colour, wish):
    name = {
        ("anthropic", "schema"): "output_config",
        ("openai_chat", "schema"): "response_format",
        ("openai_responses", "schema"): "text.format",
        ("anthropic", "thinking"): "thinking.type",
        ("openai_chat", "thinking"): "reasoning_effort",
        ("openai_responses", "thinking"): "reasoning.effort",
    }.get((api, wish), "temperature")
    options = {} if api == "anthropic" else {"effort": "low"}
    request = ChatRequest(
        prompt="Go.",
        temperature=0.0 if wish == "temperature" else None,
        schema={"type": "object", "properties": {"a": {"type": "integer"}}} if wish == "schema" else None,
        thinking=wish != "thinking",
    )
    with ProviderServer(lambda _: '{"a": 1}', unsupported=[name]) as picky, asked(api, colour, picky, **options) as ask:
        assert ask(request).text == '{"a": 1}'
        assert ask(request).text == '{"a": 1}'
        assert ask.model.refused == {name.partition(".")[0]}
        assert len(picky.requests) == 3
        if wish == "schema":
            assert "JSON schema" in str(picky.requests[-1].body)


@pytest.mark.parametrize(
    ("message", "leaves_out"),
    [
        ("`thinking.disabled` is not supported: this model always thinks", True),
        ("thinking: Input should be 'adaptive'", True),
        (
            "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be",
            False,
        ),
    ],
)
def test_no_thinking_is_left_out_for_a_model_that_always_thinks(message, leaves_out):
    with ProviderServer(lambda _: "ok") as picky, asked("anthropic", "chat", picky) as ask:
        picky.plan(Failure.invalid(message))
        if leaves_out:
            assert ask(ChatRequest(prompt="Go.", thinking=False)).text == "ok"
            assert "thinking" not in picky.requests[-1].body
        else:
            with pytest.raises(InvalidRequest):
                ask(ChatRequest(prompt="Go.", thinking=False))
            assert ask.model.refused == set()


@pytest.mark.parametrize(
    ("message", "resent_as"),
    [
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "new",
        ),
        ("max_tokens is too large: 99999. This model allows at most 4096 completion tokens.", None),
        ("temperature must be between 0 and 2", None),
    ],
)
def test_a_wrong_value_is_an_error_and_not_a_wish_to_leave_out(message, resent_as):
    with ProviderServer(lambda _: "ok") as picky, asked("openai_chat", "chat", picky) as ask:
        picky.plan(Failure.invalid(message))
        request = ChatRequest(prompt="Go.", max_tokens=50, temperature=3.0)
        if resent_as is None:
            with pytest.raises(InvalidRequest):
                ask(request)
            assert len(picky.requests) == 1
        else:
            assert ask(request).text == "ok"
            assert picky.requests[-1].body["max_completion_tokens"] == 50
            assert "max_tokens" not in picky.requests[-1].body


def test_encrypted_reasoning_is_left_out_for_models_without_it():
    with ProviderServer(lambda _: Failure.invalid("Encrypted content is not supported with this model.")) as picky:
        picky.plan(Failure.invalid("Encrypted content is not supported with this model."), "ok")
        with asked("openai_responses", "chat", picky) as ask:
            assert ask(ChatRequest(prompt="Go.")).text == "ok"
    assert "include" in picky.requests[0].body
    assert "include" not in picky.requests[1].body


@every_api
def test_structured_output_is_asked_for_in_the_providers_own_way(server, api):
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    server.plan('{"a": 1}')
    with asked(api, "chat", server) as ask:
        ask(ChatRequest(prompt="Go.", schema=schema))
    body = server.requests[0].body
    sent = {
        "anthropic": lambda: body["output_config"]["format"]["schema"],
        "openai_chat": lambda: body["response_format"]["json_schema"]["schema"],
        "openai_responses": lambda: body["text"]["format"]["schema"],
    }[api]()
    assert sent == {**schema, "additionalProperties": False}
    assert "additionalProperties" not in schema


def test_anthropic_system_blocks_keep_their_cache_markers(server):
    blocks = ({"type": "text", "text": "Stable.", "cache_control": {"type": "ephemeral"}},)
    server.plan("ok")
    with asked("anthropic", "chat", server) as ask:
        ask(ChatRequest(prompt="Go.", system=blocks))
    assert server.requests[0].body["system"] == list(blocks)


@pytest.mark.parametrize("api", ["openai_chat", "openai_responses"])
def test_system_blocks_become_plain_text_where_the_format_has_no_markers(server, api):
    blocks = (
        {"type": "text", "text": "One.", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "Two."},
    )
    server.plan("ok")
    with asked(api, "chat", server) as ask:
        ask(ChatRequest(prompt="Go.", system=blocks))
    body = server.requests[0].body
    system = body["instructions"] if api == "openai_responses" else body["messages"][0]["content"]
    assert system == "One.\n\nTwo."


def test_thinking_is_sent_unless_the_request_wants_none(server):
    server.plan("a", "b")
    with asked("anthropic", "chat", server, thinking=THINKING) as ask:
        ask(ChatRequest(prompt="Go.", temperature=0.0))
        ask(ChatRequest(prompt="Go.", temperature=0.0, thinking=False))
    on, off = (received.body for received in server.requests)
    assert on["thinking"] == THINKING
    assert "temperature" not in on
    assert off["thinking"] == {"type": "disabled"}
    assert off["temperature"] == 0.0


def test_a_long_answer_is_read_as_a_stream_where_the_sdk_demands_it(server):
    server.plan("a", "b")
    with asked("anthropic", "chat", server) as ask:
        assert ask(ChatRequest(prompt="Go.", max_tokens=64_000)).text == "a"
        assert ask(ChatRequest(prompt="Go.", max_tokens=1_000)).text == "b"
    assert [bool(received.body.get("stream")) for received in server.requests] == [True, False]


def test_a_compatible_server_gets_the_old_name_of_the_output_limit(server):
    server.plan("a")
    with asked("openai_chat", "chat", server) as ask:
        ask(ChatRequest(prompt="Go.", max_tokens=50))
    assert server.requests[0].body["max_tokens"] == 50
    with openai.OpenAI(api_key="none") as client:
        assert OpenAIChatModel("m", client=client)._limit_name() == "max_completion_tokens"


@pytest.mark.parametrize("api", ["openai_chat", "openai_responses"])
def test_arguments_that_are_no_json_object_are_marked_and_not_guessed(server, api):
    bad = call("c1", "search")
    bad = type(bad)(bad.id, bad.name, {}, invalid='{"q": "cut')
    server.plan(Say("", (bad, call("c2", "search", q="b"))))
    with asked(api, "stream", server) as ask:
        reply = ask(ChatRequest(prompt="Go.", tools=TOOLS))
    assert reply.calls[0].invalid == '{"q": "cut'
    assert reply.calls[0].arguments == {}
    assert reply.calls[1].invalid is None


@every_api
@pytest.mark.parametrize(("stop", "expected"), [("length", "length"), ("refused", "refused"), ("end", "end")])
def test_the_reason_to_stop_is_read(server, api, stop, expected):
    server.plan(Say("text", stop=stop), Say("text", stop=stop))
    for colour in ("chat", "stream"):
        with asked(api, colour, server) as ask:
            assert ask(ChatRequest(prompt="Go.")).stop == expected


@every_api
def test_an_awaited_call_with_a_plain_client_runs_in_a_thread(server, api):
    server.plan("one", "two words")
    with asked(api, "achat", server, awaited=False) as ask:
        assert ask(ChatRequest(prompt="Go.")).text == "one"
        ask.colour = "astream"
        assert ask(ChatRequest(prompt="Go.")).text == "two words"
    assert any(isinstance(part, TextDelta) for part in ask.parts)


@every_api
@pytest.mark.parametrize("awaited", [False, True])
def test_a_cancelled_stream_ends_as_cancelled(server, api, awaited):
    server.plan(Failure.hang())
    with asked(api, "astream", server, awaited=awaited) as ask:

        async def give_up() -> None:
            parts = ask.model.astream(ChatRequest(prompt="Go.", timeout=0.4))
            await asyncio.wait_for(anext(parts), 0.1)

        with pytest.raises(TimeoutError):
            ask._loop.run(give_up())


@every_api
@pytest.mark.parametrize("colour", ["chat", "stream"])
def test_a_plain_call_with_an_async_client_says_what_to_do(server, api, colour):
    with asked(api, colour, server, awaited=True) as ask, pytest.raises(ConfigError, match="awaited"):
        ask(ChatRequest(prompt="Go."))
    assert server.requests == []


@every_api
def test_a_stream_that_is_left_early_closes_its_connection(server, api):
    server.plan("many words that come in several pieces", "after")
    with asked(api, "chat", server) as ask:
        parts = ask.model.stream(ChatRequest(prompt="Go."))
        assert isinstance(next(parts), TextDelta)
        parts.close()
        assert ask(ChatRequest(prompt="Go.")).text == "after"


def test_a_model_without_credentials_is_an_auth_error(monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")
    for model in (AnthropicModel("claude-haiku-4-5"), OpenAIChatModel("gpt-5.5"), OpenAIResponsesModel("gpt-5.5")):
        with pytest.raises(AuthError):
            model.chat(ChatRequest(prompt="Go."))
