"""``wakeful chat`` with the real SDK against a strict provider on this machine."""

from __future__ import annotations

import io

import pytest

from wakeful.testing import ProviderServer, Say


@pytest.fixture
def chat(wakeful, at, monkeypatch):
    with ProviderServer() as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.anthropic_url)

        def talk(*lines, replies=(), options=()):
            server.plan(*(Say(reply) for reply in replies))
            monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines) + "\n"))
            return wakeful("chat", "--model", "anthropic/claude-sonnet-5", *options)

        talk.server = server
        yield talk


def test_it_answers_and_goes_on_with_the_conversation_in_another_run(chat):
    first = chat("My order is A-4471.", "/context", replies=["Noted, A-4471."])
    assert first.code == 0
    assert "Noted, A-4471." in first.out
    assert "2 messages in context" in first.out
    second = chat("Which order?", replies=["A-4471"])
    assert "A-4471" in second.out
    assert len(chat.server.requests) == 2
    assert "My order is A-4471." in str(chat.server.requests[-1].body)


def test_the_commands_answer(chat):
    done = chat(
        "/help",
        "/memory order",
        "/forget",
        "/nap",
        "/undo",
        "/compact",
        "/frobnicate",
        "/quit",
        "never said",
        replies=[],
    )
    for part in ("/compact FOCUS", "which one?", "rows read", "no compaction to take back", "no such command"):
        assert part in done.out
    assert chat.server.requests == []


def test_without_a_key_it_says_how_to_get_a_model(wakeful, at, monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for options in ((), ("--model", "openai/gpt-5")):
        done = wakeful("chat", *options)
        assert done.code == 2
        assert "--model" in done.err
        assert len(done.err.splitlines()) == 1
