"""Clients of the SDKs that an adapter makes by itself: one a loop, and closed when nobody can use them any more."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from typing import Any

import pytest

from wakeful import Agent
from wakeful.models.choose import coerce_model
from wakeful.needs import ChatRequest
from wakeful.testing import ProviderServer, Say

MODELS = ["anthropic/claude-sonnet-5", "openai/gpt-5.5", "openai-responses/gpt-5.5"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProviderServer]:
    pytest.importorskip("anthropic")
    pytest.importorskip("openai")
    with ProviderServer() as running:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", running.anthropic_url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_BASE_URL", running.openai_url)
        running.plan(*(Say(f"answer {number}") for number in range(20)))
        yield running


def made_by(model: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The clients that this adapter makes from now on."""
    clients: list[Any] = []
    make = model._make_client

    def recorded(*, asynchronous: bool) -> Any:
        clients.append(make(asynchronous=asynchronous))
        return clients[-1]

    monkeypatch.setattr(model, "_make_client", recorded)
    return clients


@pytest.mark.parametrize("name", MODELS)
def test_an_adapter_serves_one_loop_after_another_and_closes_its_clients_with_them(
    server: ProviderServer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    model = coerce_model(name)
    clients = made_by(model, monkeypatch)

    async def twice() -> list[str]:
        return [(await model.achat(ChatRequest(prompt="Go."))).text for _ in range(2)]

    for turn in range(2):
        assert asyncio.run(twice()) == [f"answer {turn * 2}", f"answer {turn * 2 + 1}"]
        assert len(clients) == turn + 1
        assert clients[-1].is_closed()


@pytest.mark.parametrize("name", MODELS)
def test_an_agent_that_is_dropped_closes_the_client_it_made(
    server: ProviderServer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    agent = Agent(name, tracer=False)
    clients = made_by(agent.parts.model, monkeypatch)
    assert agent.run("x").text == "answer 0"
    assert not clients[0].is_closed()
    monkeypatch.undo()
    del agent
    gc.collect()
    assert clients[0].is_closed()


@pytest.mark.parametrize("name", MODELS)
def test_a_stream_that_is_left_in_the_middle_leaves_no_connection_open(
    server: ProviderServer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    model = coerce_model(name)
    clients = made_by(model, monkeypatch)

    async def first_part() -> None:
        async for _ in model.astream(ChatRequest(prompt="Go.")):
            break

    asyncio.run(first_part())
    assert clients[0].is_closed()
    gc.collect()


@pytest.mark.parametrize("name", MODELS)
def test_a_client_that_was_given_stays_open(server: ProviderServer, name: str) -> None:
    anthropic, openai = pytest.importorskip("anthropic"), pytest.importorskip("openai")
    kind = anthropic.AsyncAnthropic if name.startswith("anthropic") else openai.AsyncOpenAI

    async def ask() -> bool:
        async with kind() as client:
            agent = Agent((client, name.partition("/")[2]), tracer=False)
            await agent.arun("x")
            del agent
            gc.collect()
            return bool(client.is_closed())

    assert asyncio.run(ask()) is False
