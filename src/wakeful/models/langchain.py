"""Any LangChain chat model (``BaseChatModel``), with LangChain's own messages.

The reply's message is the model's ``AIMessage`` itself, so ids, signatures and provider fields stay where they were.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from wakeful.errors import MissingExtra, ModelError
from wakeful.models.chat import schema_instruction, system_text, tool_call
from wakeful.models.retry import wrap
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

LIMIT_FIELDS = ("max_tokens", "max_output_tokens", "num_predict")
"""Names that LangChain's integrations give the output limit; the first that the model has is used."""

Stop: TypeAlias = Literal["end", "tools", "length", "refused", "other"]

STOPS: dict[str, Stop] = {
    "stop": "end",
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_calls": "tools",
    "tool_use": "tools",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "refused",
    "refusal": "refused",
    "safety": "refused",
}
"""What integrations write into ``response_metadata`` as the reason to stop, in lower case."""


class LangChainModel:
    """A LangChain chat model.

    A request's ``thinking=False`` can't be passed on: LangChain has no common word for it.
    """

    dialect = "langchain"

    def __init__(self, model: Any, *, name: str | None = None) -> None:
        self._model = model
        self.name: str = name or resolved_name(model) or type(model).__name__

    def chat(self, request: ChatRequest) -> ChatReply:
        """Ask, and wait for the whole reply."""
        runnable, messages = self._prepare(request)
        try:
            message = runnable.invoke(messages)
        except Exception as error:
            raise wrap(error) from error
        return read_message(message)

    async def achat(self, request: ChatRequest) -> ChatReply:
        """Ask, and await the whole reply."""
        runnable, messages = self._prepare(request)
        try:
            message = await runnable.ainvoke(messages)
        except Exception as error:
            raise wrap(error) from error
        return read_message(message)

    def stream(self, request: ChatRequest) -> Iterator[StreamPart]:
        """Ask, and get the reply in parts; the last one is ``Done``."""
        runnable, messages = self._prepare(request)
        whole: Any = None
        chunks = runnable.stream(messages)
        while True:
            try:
                chunk = next(chunks)
            except StopIteration:
                break
            except Exception as error:
                raise wrap(error) from error
            whole = chunk if whole is None else whole + chunk
            yield from _deltas(chunk)
        yield Done(_whole(whole))

    async def astream(self, request: ChatRequest) -> AsyncIterator[StreamPart]:
        """Ask, and await the reply in parts; the last one is ``Done``."""
        runnable, messages = self._prepare(request)
        whole: Any = None
        chunks = aiter(runnable.astream(messages))
        while True:
            try:
                chunk = await anext(chunks)
            except StopAsyncIteration:
                break
            except Exception as error:
                raise wrap(error) from error
            whole = chunk if whole is None else whole + chunk
            for part in _deltas(chunk):
                yield part
        yield Done(_whole(whole))

    def _prepare(self, request: ChatRequest) -> tuple[Any, list[Any]]:
        try:
            from langchain_core.messages import HumanMessage, SystemMessage
        except ImportError as error:
            raise MissingExtra("langchain", needed_for=f"the model {self.name!r}") from error
        messages = list(request.messages)
        if request.prompt is not None:
            messages.append(HumanMessage(content=request.prompt))
        if request.schema is not None:
            words = schema_instruction(request.schema)
            messages.insert(0, SystemMessage(content="\n\n".join(p for p in (system_text(request), words) if p)))
        elif request.system:
            blocks = request.system if isinstance(request.system, str) else [dict(b) for b in request.system]
            messages.insert(0, SystemMessage(content=blocks))
        runnable = self._model
        if request.tools:
            runnable = runnable.bind_tools(
                [
                    {
                        "type": "function",
                        "function": {
                            "name": tool.name,
                            "description": tool.description,
                            "parameters": {"type": "object", "properties": {}, **tool.parameters},
                        },
                    }
                    for tool in request.tools
                ],
                **({"tool_choice": "none"} if request.tool_choice == "none" else {}),
            )
        options = self._options(request)
        return (runnable.bind(**options) if options else runnable), messages

    def _options(self, request: ChatRequest) -> dict[str, Any]:
        """Give the call options that the model has a field for; others it may not know."""
        fields = getattr(type(self._model), "model_fields", {})
        options: dict[str, Any] = {}
        if request.max_tokens is not None:
            name = next((field for field in LIMIT_FIELDS if field in fields), None)
            if name is not None:
                options[name] = request.max_tokens
        if request.temperature is not None and "temperature" in fields:
            options["temperature"] = request.temperature
        if request.timeout is not None and {"timeout", "request_timeout", "default_request_timeout"} & set(fields):
            options["timeout"] = request.timeout
        return options


def resolved_name(model: Any) -> str | None:
    """Give the model id that a LangChain model says it has: ``model``, else ``model_name``."""
    for attribute in ("model", "model_name"):
        value = getattr(model, attribute, None)
        if isinstance(value, str) and value:
            return value
    return None


def text_of(message: Any) -> str:
    """Give the text of a LangChain message: a string content, or its text blocks joined."""
    content = getattr(message, "content", message)
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = []
    for block in content:
        if isinstance(block, str):
            parts.append(block)
        elif isinstance(block, Mapping) and block.get("type", "text") in ("text", "output_text"):
            parts.append(str(block.get("text") or ""))
    return "".join(parts)


def thinking_of(message: Any) -> str:
    """Give the readable reasoning of a LangChain message."""
    content = getattr(message, "content", None)
    parts = []
    for block in content if isinstance(content, list) else ():
        if isinstance(block, Mapping) and block.get("type") in ("thinking", "reasoning"):
            parts.append(str(block.get("thinking") or block.get("reasoning") or block.get("text") or ""))
    extra = getattr(message, "additional_kwargs", None) or {}
    parts.append(str(extra.get("reasoning_content") or ""))
    return "\n\n".join(part for part in parts if part)


def usage_of(message: Any) -> Usage | None:
    """Give the usage that a LangChain message carries (``usage_metadata``; its input tokens hold the cached ones)."""
    data = getattr(message, "usage_metadata", None)
    if not data:
        return None
    details = data.get("input_token_details") or {}
    return Usage(
        input_tokens=data.get("input_tokens") or 0,
        output_tokens=data.get("output_tokens") or 0,
        cached_tokens=details.get("cache_read") or 0,
        cache_write_tokens=details.get("cache_creation") or 0,
    )


def read_message(message: Any) -> ChatReply:
    """Read an ``AIMessage``. Raises ``ModelError`` for anything else."""
    if getattr(message, "type", None) not in ("ai", "AIMessageChunk"):
        raise ModelError(f"the LangChain model answered with {type(message).__name__}, not with an AIMessage")
    calls = [tool_call(c.get("id") or "", c.get("name") or "", c.get("args")) for c in message.tool_calls]
    calls += [
        ToolCall(c.get("id") or "", c.get("name") or "", {}, invalid=c.get("args") or "")
        for c in message.invalid_tool_calls
    ]
    metadata = message.response_metadata or {}
    reason = str(metadata.get("finish_reason") or metadata.get("stop_reason") or metadata.get("stopReason") or "")
    stop: Stop = STOPS.get(reason.lower(), "other" if reason else "end")
    return ChatReply(
        text=text_of(message),
        calls=tuple(calls),
        message=message,
        thinking=thinking_of(message),
        stop="tools" if calls and stop in ("end", "other") else stop,
        usage=usage_of(message),
        model=metadata.get("model_name") or metadata.get("model"),
    )


def _deltas(chunk: Any) -> Iterator[StreamPart]:
    thinking, text = thinking_of(chunk), text_of(chunk)
    if thinking:
        yield ThinkingDelta(thinking)
    if text:
        yield TextDelta(text)
    for call in getattr(chunk, "tool_call_chunks", None) or ():
        yield CallDelta(
            call.get("index") or 0,
            id=call.get("id") or "",
            name=call.get("name") or "",
            arguments=call.get("args") or "",
        )


def _whole(chunks: Any) -> ChatReply:
    """Make the streamed message an ordinary one, so that it is appended like any other."""
    if chunks is None:
        raise ModelError("the LangChain model streamed nothing")
    from langchain_core.messages import AIMessage, message_chunk_to_message

    message = message_chunk_to_message(chunks)
    if not isinstance(message, AIMessage):
        raise ModelError(f"the LangChain model streamed {type(message).__name__}, not an AIMessage")
    return read_message(message)
