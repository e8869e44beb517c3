"""Which dialect a list of messages is in."""

from __future__ import annotations

from typing import Any

import pytest

from wakeful.dialects import NAMES, get, guess
from wakeful.errors import ConfigError, UnknownFormat
from wakeful.testing import (
    Assistant,
    Call,
    Result,
    Results,
    System,
    User,
    adversarial,
    conversation,
    random_conversation,
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(6))
def test_a_conversation_is_recognised_for_what_it_is(name: str, seed: int) -> None:
    messages = random_conversation(name, seed, 3, system=seed % 2 == 0, thinking=seed % 3 == 0)
    used = any(get(name).weigh(m, lambda *_: 0).calls for m in messages)
    # Without a call or an image, role and plain text are all that Anthropic and Chat show.
    assert guess(messages).name == name or (not used and name == "anthropic" and guess(messages).name == "openai_chat")


@pytest.mark.parametrize("name", [n for n in NAMES if n != "anthropic"])
def test_adversarial_inputs_are_recognised(name: str) -> None:
    for title, messages in adversarial(name).items():
        assert guess(messages).name == name, title


@pytest.mark.parametrize("name", ["openai_chat", "anthropic", "openai_responses"])
def test_the_first_call_decides_however_late_it_comes(name: str) -> None:
    plain = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}] * 200
    late = conversation(name, User("go"), Assistant("", (Call("a", "f"),)), Results((Result("a", "f", "ok"),)))
    assert guess([*plain, *late, *plain]).name == name


MIXED: list[tuple[str, list[Any]]] = [
    ("openai_chat", [{"role": "user", "content": "hi"}]),
    ("openai_chat", [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]),
    ("openai_chat", [{"role": "system", "content": "s"}, {"role": "user", "content": "hi"}]),
    ("openai_chat", [{"role": "developer", "content": "s"}]),
    ("openai_chat", [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]),
    (
        "anthropic",
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"type": "thinking", "thinking": ""}]}],
    ),
    (
        "anthropic",
        [{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]}],
    ),
    ("anthropic", [{"role": "user", "content": [{"type": "image", "source": {}}]}]),
    ("openai_responses", [{"role": "user", "content": "hi"}, {"type": "function_call", "call_id": "a", "name": "f"}]),
    ("openai_responses", [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}]),
    ("openai_responses", [{"type": "message", "role": "user", "content": "hi"}]),
    ("openai_responses", [{"type": "compaction", "encrypted_content": "x"}]),
    ("gemini", [{"role": "user", "parts": [{"text": "hi"}]}]),
    ("gemini", [{"parts": [{"text": "hi"}]}]),
    ("bedrock", [{"role": "user", "content": [{"text": "hi"}]}]),
    ("bedrock", [{"role": "user", "content": [{"image": {"format": "png", "source": {"bytes": b"x"}}}]}]),
]


@pytest.mark.parametrize(("name", "messages"), MIXED)
def test_small_signs_decide(name: str, messages: list[Any]) -> None:
    assert guess(messages).name == name


@pytest.mark.parametrize("messages", [[], [1, 2], [{"a": 1}], ["hi"], [{"role": "user"}, 3], [None]])
def test_what_nobody_knows_is_an_unknown_format(messages: list[Any]) -> None:
    with pytest.raises(UnknownFormat, match="dialect="):
        guess(messages)


def test_an_unknown_name_is_a_config_error_that_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="openai_chat"):
        get("openai")
    assert get(get("gemini")) is get("gemini")


def test_a_system_prompt_is_a_message_only_where_the_format_has_one() -> None:
    for name in NAMES:
        messages = conversation(name, System("be brief"), User("hi"))
        assert len(messages) == (2 if get(name).facts.system_in_messages else 1)
