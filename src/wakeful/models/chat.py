"""Chat models behind one small protocol, and what every kind of them shares.

A model speaks the messages of one dialect, natively: requests carry them unchanged, and ``ChatReply.message`` is the
provider's own assistant message, ready to be appended. Failures are ``ModelError`` and nothing else.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar, runtime_checkable

from wakeful import dialects
from wakeful.errors import ConfigError, ModelError
from wakeful.needs import ChatReply, ChatRequest, Done, StreamPart, TextDelta, ToolCall

T = TypeVar("T")


@runtime_checkable
class ChatModel(Protocol):
    """A chat model. Every method raises ``ModelError``, and leaves retries to its caller."""

    @property
    def name(self) -> str:
        """The model's id, as the catalogue and the provider know it."""
        ...

    @property
    def dialect(self) -> str:
        """Name of the dialect that the model's messages are written in."""
        ...

    def chat(self, request: ChatRequest) -> ChatReply:
        """Ask, and wait for the whole reply."""
        ...

    async def achat(self, request: ChatRequest) -> ChatReply:
        """Ask, and await the whole reply."""
        ...

    def stream(self, request: ChatRequest) -> Iterator[StreamPart]:
        """Ask, and get the reply in parts; the last one is ``Done``."""
        ...

    def astream(self, request: ChatRequest) -> AsyncIterator[StreamPart]:
        """Ask, and await the reply in parts; the last one is ``Done``."""
        ...


class FunctionModel:
    """A function from text to text as a chat model: enough for a summariser or an extractor.

    The function gets the request's prompt, after its system text; a request with messages is rendered a line a message.
    It may be async, and is then only reached through ``achat`` and ``astream``. Tools are not supported.
    """

    dialect = "openai_chat"

    def __init__(self, function: Callable[[str], Any], *, name: str | None = None) -> None:
        if not callable(function):
            raise ConfigError(f"a model function must be callable, not {type(function).__name__}")
        self._function = function
        self.name: str = name or str(getattr(function, "__name__", type(function).__name__))

    def chat(self, request: ChatRequest) -> ChatReply:
        """Call the function. Raises ``ConfigError`` when it is async."""
        value = self._call(self._prompt(request))
        if inspect.isawaitable(value):
            close = getattr(value, "close", None)
            if close is not None:
                close()
            raise ConfigError(f"the model function {self.name!r} is async; use the awaited verb (acompact, arun, ...)")
        return self._reply(value)

    async def achat(self, request: ChatRequest) -> ChatReply:
        """Call the function and await it; a plain one runs in a thread, so it does not block the loop."""
        import asyncio

        prompt = self._prompt(request)
        if inspect.iscoroutinefunction(self._function):
            value = self._call(prompt)
        else:
            value = await asyncio.to_thread(self._call, prompt)
        if inspect.isawaitable(value):
            try:
                value = await value
            except ModelError:
                raise
            except Exception as error:
                raise self._failed(error) from error
        return self._reply(value)

    def stream(self, request: ChatRequest) -> Iterator[StreamPart]:
        """Give the reply as one part."""
        yield from _as_parts(self.chat(request))

    async def astream(self, request: ChatRequest) -> AsyncIterator[StreamPart]:
        """Give the reply as one part."""
        for part in _as_parts(await self.achat(request)):
            yield part

    def _call(self, prompt: str) -> Any:
        try:
            return self._function(prompt)
        except ModelError:
            raise
        except Exception as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> ModelError:
        return ModelError(f"the model function {self.name!r} raised {type(error).__name__}: {error}")

    def _prompt(self, request: ChatRequest) -> str:
        if request.tools:
            raise ConfigError(f"the model function {self.name!r} takes text only; give a chat model to use tools")
        parts = [system_text(request)]
        parts.extend(_render(message) for message in request.messages)
        parts.append(request.prompt or "")
        if request.schema is not None:
            parts.append(schema_instruction(request.schema))
        return "\n\n".join(part for part in parts if part)

    def _reply(self, value: Any) -> ChatReply:
        if not isinstance(value, str):
            raise ModelError(f"the model function {self.name!r} returned {type(value).__name__}, not text")
        return ChatReply(text=value, message={"role": "assistant", "content": value}, model=self.name)


def _as_parts(reply: ChatReply) -> Iterator[StreamPart]:
    if reply.text:
        yield TextDelta(reply.text)
    yield Done(reply)


def _render(message: Any) -> str:
    view = dialects.guess([message]).read(message)
    texts = [getattr(block, "text", "") for block in view.blocks]
    return f"{view.role}: " + "\n".join(text for text in texts if text)


def fold(parts: Iterable[StreamPart]) -> ChatReply:
    """Read a stream to its end and give the whole reply."""
    for part in parts:
        if isinstance(part, Done):
            return part.reply
    raise ModelError("the stream ended without a reply")


async def afold(parts: AsyncIterator[StreamPart]) -> ChatReply:
    """Read an awaited stream to its end and give the whole reply."""
    async for part in parts:
        if isinstance(part, Done):
            return part.reply
    raise ModelError("the stream ended without a reply")


def system_text(request: ChatRequest) -> str:
    """Give the request's system prompt as plain text, the blocks joined by blank lines."""
    if request.system is None or isinstance(request.system, str):
        return request.system or ""
    return "\n\n".join(str(block.get("text", "")) for block in request.system)


def schema_instruction(schema: Mapping[str, Any]) -> str:
    """Word the demand for JSON of this schema, for models without structured output."""
    return "Answer with one JSON value that satisfies this JSON schema, and nothing else:\n" + json.dumps(schema)


def tool_call(id: str, name: str, arguments: Any) -> ToolCall:
    """Make a call from the arguments that a provider sent: a mapping, or JSON text."""
    if isinstance(arguments, Mapping):
        return ToolCall(id, name, dict(arguments))
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    if not raw.strip():
        return ToolCall(id, name, {})
    try:
        value = json.loads(raw)
    except ValueError:
        return ToolCall(id, name, {}, invalid=raw)
    return ToolCall(id, name, value) if isinstance(value, dict) else ToolCall(id, name, {}, invalid=raw)


def closed_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Give the schema with ``additionalProperties: false`` in every object that does not say otherwise.

    Source: both providers' structured output demands it:
    platform.claude.com/docs/en/build-with-claude/structured-outputs,
    platform.openai.com/docs/guides/structured-outputs.
    """
    closed: dict[str, Any] = _closed(schema)
    return closed


def _closed(node: Any) -> Any:
    if isinstance(node, Mapping):
        out = {key: _closed(value) for key, value in node.items()}
        if isinstance(out.get("properties"), dict) and out.get("type", "object") == "object":
            out.setdefault("additionalProperties", False)
        return out
    if isinstance(node, list | tuple):
        return [_closed(item) for item in node]
    return node


def is_strict(schema: Any) -> bool:
    """Say whether every object of the schema is closed and requires all its properties (OpenAI's strict mode)."""
    if isinstance(schema, Mapping):
        properties = schema.get("properties")
        if isinstance(properties, Mapping) and (
            schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(properties)
        ):
            return False
        if schema.get("type") == "object" and not isinstance(properties, Mapping):
            return False
        return all(is_strict(value) for value in schema.values())
    if isinstance(schema, list | tuple):
        return all(is_strict(item) for item in schema)
    return True
