"""Turns with the real SDKs, against a local server that is as strict as the providers."""

import asyncio

import anthropic
import openai
import pytest

from wakeful.compaction.compactor import WindowManager
from wakeful.engine.agent import Agent
from wakeful.engine.stream import CompactionEvent, RetryEvent, TextEvent, ThinkingEvent, ToolResultEvent
from wakeful.errors import AuthError, ContextOverflow, InvalidRequest
from wakeful.models.anthropic import AnthropicModel
from wakeful.models.openai import OpenAIChatModel, OpenAIResponsesModel
from wakeful.testing import Failure, ProviderServer, Say, call

APIS = ("anthropic", "openai_chat", "openai_responses")
THINKING = {"type": "enabled", "budget_tokens": 1_024}


def search(q: str) -> str:
    """Search the files."""
    return f"found {q}: " + "lines of text " * 150


@pytest.fixture
def server():
    with ProviderServer() as running:
        yield running


@pytest.fixture(autouse=True)
def closed():
    """Close the SDKs' connections."""
    yield
    while CLIENTS:
        CLIENTS.pop().close()


CLIENTS: list = []


def model_of(api, server, *, thinking=False):
    if api == "anthropic":
        client = anthropic.Anthropic(base_url=server.anthropic_url, api_key="none", max_retries=0)
        CLIENTS.append(client)
        return AnthropicModel("claude", client=client, thinking=THINKING if thinking else None, max_tokens=2_000)
    client = openai.OpenAI(base_url=server.openai_url, api_key="none", max_retries=0)
    CLIENTS.append(client)
    kind = OpenAIChatModel if api == "openai_chat" else OpenAIResponsesModel
    return kind("gpt", client=client, max_tokens=2_000)


def agent_of(api, server, **options):
    thinking = options.pop("thinking", False)
    return Agent(model_of(api, server, thinking=thinking), tools=[search], tracer=False, backoff=0.0, **options)


@pytest.mark.parametrize("api", APIS)
def test_a_turn_with_thinking_and_parallel_calls_is_accepted(api, server):
    server.plan(
        Say("I will look.", calls=(call("c1", "search", q="a"), call("c2", "search", q="b")), thinking="hm"),
        Say(calls=(call("c3", "search", q="c"),), thinking="more"),
        Say("Found it.", thinking="well"),
        "You are welcome.",
    )
    made = agent_of(api, server, thinking=True)
    events = list(made.stream("look"))
    assert events[-1].result.text == "Found it."
    assert [e.call.id for e in events if isinstance(e, ToolResultEvent)].count("c3") == 1
    assert "".join(e.text for e in events if isinstance(e, TextEvent)) == "I will look.Found it."
    if api == "anthropic":
        assert any(isinstance(e, ThinkingEvent) for e in events)
    assert made.run("thanks").text == "You are welcome."
    assert not server.refusals
    assert events[-1].result.totals.input_tokens > 0


@pytest.mark.parametrize("api", APIS)
def test_failures_on_the_way_are_retried_and_shown_once(api, server):
    server.plan(Failure.rate_limit(), Failure.half_stream(), Failure.overloaded(), "there we are")
    made = agent_of(api, server)
    events = list(made.stream("x"))
    assert events[-1].result.text == "there we are"
    assert sum(isinstance(e, RetryEvent) for e in events) == 3
    server.plan(Failure.half_stream(), "once more and done")
    assert "".join(made.stream_text("y")).endswith("\nonce more and done")


@pytest.mark.parametrize("api", APIS)
def test_failures_that_stay_are_raised_by_their_type(api, server):
    made = agent_of(api, server)
    for failure, error in (
        (Failure.auth(), AuthError),
        (Failure.invalid(), InvalidRequest),
        (Failure.overflow(), ContextOverflow),
    ):
        server.plan(failure)
        with pytest.raises(error):
            made.run("x")
    server.plan("fine")
    assert made.run("x").text == "fine"


@pytest.mark.parametrize("api", APIS)
def test_a_long_tool_loop_with_thinking_stays_valid_in_a_small_window(api):
    count = 0

    def respond(received):
        nonlocal count
        count += 1
        if count % 9 == 0:
            return Say(f"done {count}", thinking="so")
        return Say(calls=(call(f"c{count}", "search", q=str(count)), call(f"d{count}", "search", q="x")), thinking="hm")

    with ProviderServer(respond, window=6_000) as server:
        made = agent_of(
            api, server, thinking=True, compactor=WindowManager(keep_recent=2), context_window=6_000, max_tokens=1_200
        )
        compactions = 0
        for turn in range(2):
            for event in made.stream(f"turn {turn}"):
                compactions += isinstance(event, CompactionEvent)
        assert [r for r in server.refusals if "long" not in r.message and "exceed" not in r.message] == []
    assert compactions >= 2


@pytest.mark.parametrize("api", APIS)
def test_an_overflow_is_answered_by_a_smaller_request(api):
    def respond(received):
        sizes.append(received.tokens)
        return "a long answer " * 240

    sizes = []
    with ProviderServer(respond, window=6_000) as server:
        # The agent believes in a window that is twice as large as the server's.
        made = agent_of(
            api, server, compactor=WindowManager(keep_recent=1, reserve=1_000), context_window=12_000, max_tokens=1_000
        )
        for turn in range(12):
            assert made.run(f"turn {turn}").ok
        refused = [each for each in server.requests if each.refusal is not None]
        assert refused
        later = [each.tokens for each in server.requests if each.refusal is None]
        assert max(later) <= 5_000


def test_the_awaited_sdk_does_the_same():
    async def run():
        with ProviderServer() as server:
            server.plan(Say(calls=(call("c1", "search", q="a"),)), "done")
            async with anthropic.AsyncAnthropic(base_url=server.anthropic_url, api_key="none", max_retries=0) as client:
                made = Agent(AnthropicModel("claude", client=client), tools=[search], tracer=False)
                return (await made.arun("x")).text, server.refusals

    assert asyncio.run(run()) == ("done", [])


def test_the_last_call_at_the_limit_is_accepted_with_its_tools_defined(server):
    server.plan(Say(calls=(call("c1", "search", q="a"),)), "that is all")
    made = agent_of("anthropic", server, max_iterations=1)
    assert made.run("x").stop == "iterations"
    body = server.requests[-1].body
    assert body["tool_choice"] == {"type": "none"}
    assert body["tools"]
