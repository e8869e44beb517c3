"""A model that answers by a script, and a clock that stands still."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias

from wakeful import dialects
from wakeful.errors import ConfigError, InvalidRequest
from wakeful.needs import (
    CallDelta,
    ChatReply,
    ChatRequest,
    Done,
    StreamPart,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    Usage,
)


@dataclass(frozen=True, slots=True)
class Say:
    """One answer of a script."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    thinking: str = ""
    stop: Literal["end", "tools", "length", "refused", "other"] | None = None
    """None: ``tools`` when there are calls, else ``end``."""
    usage: Usage | None = None
    """None: estimated from the request and the answer, four characters a token."""

    @property
    def reason(self) -> Literal["end", "tools", "length", "refused", "other"]:
        """Why the answer stops."""
        return self.stop or ("tools" if self.calls else "end")


Line: TypeAlias = str | Say | ChatReply | Exception
Script: TypeAlias = "Iterable[Line | Callable[[ChatRequest], Line]] | Callable[[ChatRequest], Line]"


class ScriptExhausted(AssertionError):
    """The model was asked more often than its script has answers."""


class ScriptedModel:
    """A chat model that answers by a script and keeps what it was asked.

    ``script``: answers in order (text, ``Say``, ``ChatReply``, an exception to raise, or a function of the request), or
    one function that answers every request. ``dialect``: the format of the replies' native messages. ``strict``: refuse
    messages that break the rules of the format, as the provider would.
    """

    def __init__(
        self, script: Script = (), *, dialect: str = "openai_chat", name: str = "scripted", strict: bool = False
    ) -> None:
        if dialect not in dialects.NAMES:
            raise ConfigError(f"unknown dialect {dialect!r}; known: {', '.join(dialects.NAMES)}")
        self.name = name
        self.dialect = dialect
        self.requests: list[ChatRequest] = []
        """Every request, oldest first."""
        self._strict = strict
        self._counted: tuple[tuple[Any, ...], int] = (), 0
        self._script = script if callable(script) else iter(script)

    def chat(self, request: ChatRequest) -> ChatReply:
        """Give the next answer, or raise it."""
        self.requests.append(request)
        if self._strict:
            self._check(request)
        if callable(self._script):
            line: Any = self._script(request)
        else:
            line = next(self._script, None)
            if line is None:
                raise ScriptExhausted(f"the script of {self.name!r} has no answer to request {len(self.requests)}")
            if callable(line):
                line = line(request)
        if isinstance(line, Exception):
            raise line
        if isinstance(line, ChatReply):
            return line
        return self._reply(request, line if isinstance(line, Say) else Say(line))

    async def achat(self, request: ChatRequest) -> ChatReply:
        """Give the next answer, or raise it."""
        return self.chat(request)

    def stream(self, request: ChatRequest) -> Iterator[StreamPart]:
        """Give the next answer word by word."""
        yield from parts_of(self.chat(request))

    async def astream(self, request: ChatRequest) -> AsyncIterator[StreamPart]:
        """Give the next answer word by word."""
        for part in parts_of(self.chat(request)):
            yield part

    def _check(self, request: ChatRequest) -> None:
        messages: list[Any] = []
        for entry in request.messages:
            messages.extend(entry if isinstance(entry, tuple) else (entry,))
        problems = dialects.get(self.dialect).validate(messages, open_tail=False) if messages else []
        if problems:
            first = problems[0]
            raise InvalidRequest(f"{first.code} at message {first.index}: {first.message}")

    def _length(self, messages: tuple[Any, ...]) -> int:
        """Count the characters of messages; those of the last request are not counted again."""
        known, length = self._counted
        if not known or messages[: len(known)] != known:
            known, length = (), 0
        length += sum(len(str(message)) for message in messages[len(known) :])
        self._counted = messages, length
        return length

    def _reply(self, request: ChatRequest, say: Say) -> ChatReply:
        size = len(request.prompt or "") + self._length(request.messages) + len(str(request.system or ""))
        written = len(say.text) + len(say.thinking) + sum(len(str(call.arguments)) for call in say.calls)
        return ChatReply(
            text=say.text,
            calls=say.calls,
            message=native_message(say, self.dialect, serial=len(self.requests)),
            thinking=say.thinking,
            stop=say.reason,
            usage=say.usage or Usage(input_tokens=size // 4, output_tokens=written // 4),
            model=self.name,
        )


def parts_of(reply: ChatReply) -> Iterator[StreamPart]:
    """Cut a whole reply into the parts of a stream, a word at a time."""
    if reply.thinking:
        yield ThinkingDelta(reply.thinking)
    for word in _words(reply.text):
        yield TextDelta(word)
    for index, call in enumerate(reply.calls):
        yield CallDelta(index, id=call.id, name=call.name)
        yield CallDelta(index, arguments=_arguments(call))
    yield Done(reply)


def _words(text: str) -> list[str]:
    words = text.split(" ") if text else []
    return [word if i == 0 else " " + word for i, word in enumerate(words)]


def _arguments(call: ToolCall) -> str:
    return call.invalid if call.invalid is not None else json.dumps(dict(call.arguments), ensure_ascii=False)


def native_message(say: Say, dialect: str, *, serial: int = 1, signature: str | None = None) -> Any:
    """Make the assistant message that a provider of this dialect would send (Responses: a tuple of items)."""
    signature = signature or f"sig-{serial}"
    match dialect:
        case "anthropic":
            return {"role": "assistant", "content": _anthropic_blocks(say, signature)}
        case "openai_chat":
            return _chat_message(say)
        case "openai_responses":
            return tuple(response_items(say, serial=serial, encrypted=signature))
        case "gemini":
            return {"role": "model", "parts": _gemini_parts(say, signature)}
        case "bedrock":
            return {"role": "assistant", "content": _bedrock_blocks(say, signature)}
        case _:
            return _langchain_message(say, serial)


def _anthropic_blocks(say: Say, signature: str) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if say.thinking:
        blocks.append({"type": "thinking", "thinking": say.thinking, "signature": signature})
    if say.text:
        blocks.append({"type": "text", "text": say.text})
    for call in say.calls:
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)})
    return blocks


def _chat_message(say: Say) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": say.text or (None if say.calls else "")}
    if say.thinking:
        message["reasoning_content"] = say.thinking
    if say.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _arguments(call)}}
            for call in say.calls
        ]
    return message


def response_items(say: Say, *, serial: int, encrypted: str) -> list[dict[str, Any]]:
    """Make the output items of a response."""
    items: list[dict[str, Any]] = []
    if say.thinking:
        items.append(
            {
                "type": "reasoning",
                "id": f"rs_{serial}",
                "summary": [{"type": "summary_text", "text": say.thinking}],
                "encrypted_content": encrypted,
            }
        )
    if say.text:
        items.append(
            {
                "type": "message",
                "id": f"msg_{serial}",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": say.text, "annotations": []}],
            }
        )
    for index, call in enumerate(say.calls):
        items.append(
            {
                "type": "function_call",
                "id": f"fc_{serial}_{index}",
                "call_id": call.id,
                "name": call.name,
                "arguments": _arguments(call),
                "status": "completed",
            }
        )
    return items


def _gemini_parts(say: Say, signature: str) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if say.thinking:
        parts.append({"text": say.thinking, "thought": True})
    if say.text:
        parts.append({"text": say.text})
    for index, call in enumerate(say.calls):
        part: dict[str, Any] = {"functionCall": {"id": call.id, "name": call.name, "args": dict(call.arguments)}}
        if index == 0:
            part["thoughtSignature"] = signature
        parts.append(part)
    return parts


def _bedrock_blocks(say: Say, signature: str) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if say.thinking:
        blocks.append({"reasoningContent": {"reasoningText": {"text": say.thinking, "signature": signature}}})
    if say.text:
        blocks.append({"text": say.text})
    for call in say.calls:
        blocks.append({"toolUse": {"toolUseId": call.id, "name": call.name, "input": dict(call.arguments)}})
    return blocks


def _langchain_message(say: Say, serial: int) -> Any:
    from langchain_core.messages import AIMessage

    content: Any = say.text
    if say.thinking:
        content = [{"type": "thinking", "thinking": say.thinking, "signature": f"sig-{serial}"}]
        if say.text:
            content.append({"type": "text", "text": say.text})
    return AIMessage(
        content=content,
        id=f"run-{serial}",
        tool_calls=[{"id": c.id, "name": c.name, "args": dict(c.arguments), "type": "tool_call"} for c in say.calls],
    )


class FrozenClock:
    """A clock that stands still until it is told to move: a drop-in for ``clock=``."""

    def __init__(self, start: datetime | None = None) -> None:
        self.moment = start or datetime(2026, 1, 1, tzinfo=UTC)
        if self.moment.tzinfo is None:
            raise ConfigError("a clock's time must be timezone-aware")

    def __call__(self) -> datetime:
        """Tell the time."""
        return self.moment

    def advance(self, *, seconds: float = 0.0, hours: float = 0.0, days: float = 0.0) -> datetime:
        """Move the time on, and tell it."""
        self.moment += timedelta(seconds=seconds, hours=hours, days=days)
        return self.moment
