"""The local model, with llama.cpp's Python binding played by a small double: no weights in the suite."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from types import ModuleType
from typing import Any

import pytest

from wakeful.errors import ConfigError, ContextOverflow, MissingExtra
from wakeful.models.chat import ChatModel
from wakeful.models.choose import coerce_model
from wakeful.models.local import LocalModel, calls_in_text, file_sha256
from wakeful.needs import CallDelta, ChatRequest, TextDelta, ToolSpec

TOOLS = (ToolSpec("search", "Search.", {"properties": {"q": {"type": "string"}}}),)


class Llama:
    """What the binding's class does, as far as the adapter uses it."""

    answer: str = "hello"
    asked: list[dict[str, Any]]

    def __init__(self, **options: Any) -> None:
        self.options = options
        type(self).made.append(self)

    made: list[Llama] = []  # noqa: RUF012

    def n_ctx(self) -> int:
        return self.options["n_ctx"] or 32_768

    def create_chat_completion(self, *, stream: bool = False, **params: Any) -> Any:
        self.__dict__.setdefault("asked", []).append(params)
        if sum(len(str(m)) for m in params["messages"]) > 5_000:
            raise ValueError("Requested tokens (9000) exceed context window of 8192")
        if stream:
            return iter(
                [
                    {"choices": [{"delta": {"role": "assistant"}, "finish_reason": None}]},
                    *({"choices": [{"delta": {"content": w}, "finish_reason": None}]} for w in ("hel", "lo")),
                    {"choices": [{"delta": {}, "finish_reason": "stop"}]},
                ]
            )
        return {
            "model": "m",
            "choices": [{"message": {"role": "assistant", "content": self.answer}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9},
        }


@pytest.fixture
def llama(monkeypatch):
    double = ModuleType("llama_cpp")
    kind = type("Llama", (Llama,), {"made": []})
    double.Llama = kind  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "llama_cpp", double)
    return kind


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tiny.gguf"
    path.write_bytes(b"GGUF" + b"\0" * 100)
    return path


def test_a_local_model_is_a_chat_model_and_loads_at_the_first_call(llama, file):
    model = LocalModel(file, context_window=8_192, threads=1)
    assert isinstance(model, ChatModel)
    assert coerce_model(model) is model
    assert llama.made == []
    reply = model.chat(ChatRequest(prompt="Hi.", system="Be brief.", max_tokens=5, temperature=0.0))
    assert (reply.text, reply.stop) == ("hello", "end")
    assert reply.model == model.name == "tiny"
    assert reply.usage is not None
    assert reply.usage.input_tokens == 7
    assert asyncio.run(model.achat(ChatRequest(prompt="Hi."))).text == "hello"
    assert len(llama.made) == 1
    asked = llama.made[0].asked[0]
    assert [m["role"] for m in asked["messages"]] == ["system", "user"]
    assert (asked["max_tokens"], asked["temperature"]) == (5, 0.0)
    assert llama.made[0].options["n_threads"] == 1
    assert model.context_window == 8_192


def test_the_pinned_file_is_checked_before_it_is_loaded(llama, file):
    right = hashlib.sha256(file.read_bytes()).hexdigest()
    assert file_sha256(file) == right
    assert LocalModel(file, sha256=right.upper()).chat(ChatRequest(prompt="x")).text == "hello"
    wrong = LocalModel(file, sha256="0" * 64)
    made = len(llama.made)
    with pytest.raises(ConfigError, match="not the pinned file"):
        wrong.chat(ChatRequest(prompt="x"))
    assert len(llama.made) == made


def test_a_missing_file_and_a_malformed_sum_are_refused_at_once(tmp_path, file):
    with pytest.raises(ConfigError, match="no model file"):
        LocalModel(tmp_path / "none.gguf")
    with pytest.raises(ConfigError, match="64"):
        LocalModel(file, sha256="abc")


def test_without_the_extra_the_error_names_it(monkeypatch, file):
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(MissingExtra, match=r"wakeful\[local\]"):
        LocalModel(file).chat(ChatRequest(prompt="x"))


def test_a_prompt_that_does_not_fit_is_a_context_overflow(llama, file):
    model = LocalModel(file)
    with pytest.raises(ContextOverflow):
        model.chat(ChatRequest(prompt="x" * 6_000))
    with pytest.raises(ContextOverflow):
        list(model.stream(ChatRequest(prompt="x" * 6_000)))


def test_the_answer_streams_in_parts(llama, file):
    async def read() -> list[Any]:
        return [part async for part in LocalModel(file).astream(ChatRequest(prompt="Hi."))]

    for parts in (list(LocalModel(file).stream(ChatRequest(prompt="Hi."))), asyncio.run(read())):
        assert [p.text for p in parts if isinstance(p, TextDelta)] == ["hel", "lo"]
        assert parts[-1].reply.text == "hello"
        assert parts[-1].reply.model == "tiny"
        assert parts[-1].reply.usage is None


def test_calls_that_the_model_writes_as_text_become_calls(llama, file):
    llama.answer = 'Let me see.\n<tool_call>\n{"name": "search", "arguments": {"q": "tank"}}\n</tool_call>'
    request = ChatRequest(messages=({"role": "user", "content": "Find it."},), tools=TOOLS)
    model = LocalModel(file)
    reply = model.chat(request)
    assert reply.stop == "tools"
    assert reply.text == "Let me see."
    assert dict(reply.calls[0].arguments) == {"q": "tank"}
    assert model.chat(request).calls[0].id == reply.calls[0].id
    parts = list(model.stream(request))
    assert [p.name for p in parts if isinstance(p, CallDelta)] == ["search"]
    history = (*request.messages, reply.message, {"role": "tool", "tool_call_id": reply.calls[0].id, "content": "ok"})
    model.chat(ChatRequest(messages=history, tools=TOOLS))
    sent = llama.made[-1].asked[-1]["messages"][1]
    assert sent["tool_calls"][0]["function"]["arguments"] == {"q": "tank"}
    assert reply.message["tool_calls"][0]["function"]["arguments"] == '{"q": "tank"}'


@pytest.mark.parametrize(
    ("text", "calls", "rest"),
    [
        ('{"name": "search", "arguments": {"q": "a"}}', [("search", '{"q": "a"}')], ""),
        ('{"name": "search", "parameters": {"q": "a"}}', [("search", '{"q": "a"}')], ""),
        ('<tool_call>{"name": "other", "arguments": {}}</tool_call>', [], None),
        ('{"name": "Ada", "age": 36}', [], None),
        ("{not json", [], None),
        ("plain", [], None),
        (
            '<tool_call>{"name": "search", "arguments": {}}</tool_call><tool_call>{"name": "search"}</tool_call>',
            [("search", "{}"), ("search", "{}")],
            "",
        ),
    ],
)
def test_only_calls_of_offered_tools_are_read_from_text(text, calls, rest):
    assert calls_in_text(text, {"search"}) == (calls, text if rest is None else rest)


def test_a_schema_is_a_grammar(llama, file):
    LocalModel(file).chat(ChatRequest(prompt="x", schema={"type": "object"}))
    assert llama.made[-1].asked[-1]["response_format"] == {"type": "json_object", "schema": {"type": "object"}}
