"""OpenAI and any OpenAI-compatible server through the official ``openai`` SDK: Chat Completions and Responses.

Facts from platform.openai.com/docs/api-reference: ``prompt_tokens`` and ``input_tokens`` hold cached tokens already;
with ``store=False`` reasoning goes back as encrypted items (rules R3, R4, R8); OpenAI names the output limit
``max_completion_tokens``, compatible servers ``max_tokens``.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

from wakeful.errors import AuthError, MissingExtra, TransportError
from wakeful.models.chat import closed_schema, is_strict, schema_instruction, system_text, tool_call
from wakeful.models.retry import make_error
from wakeful.models.sdk import Assembler, SdkModel, plain
from wakeful.needs import CallDelta, ChatReply, ChatRequest, StreamPart, TextDelta, ThinkingDelta, ToolCall, Usage

Stop = Literal["end", "tools", "length", "refused", "other"]

STOPS: dict[str, Stop] = {
    "stop": "end",
    "tool_calls": "tools",
    "function_call": "tools",
    "length": "length",
    "content_filter": "refused",
}
"""Finish reasons of Chat Completions."""

EMPTY: tuple[Any, ...] = (None, [], "")

LEAST_EFFORT = "none"
"""Effort asked for when a request wants no thinking; a model that has no such level keeps its own."""


class _OpenAIModel(SdkModel):
    """What both of OpenAI's formats share.

    ``client``: ``OpenAI``, ``AsyncOpenAI`` or an Azure variant, with any ``base_url``; None: made from the environment.
    ``effort``: how much the model reasons (``"low"``, ``"high"``, ...); None leaves the model's default.
    """

    def __init__(
        self,
        name: str,
        *,
        client: Any = None,
        effort: str | None = None,
        max_tokens: int | None = None,
    ) -> None:
        super().__init__(name, client=client)
        self._effort = effort
        self.max_tokens = max_tokens
        """Output limit of a request that names none."""

    def _is_async(self, client: Any) -> bool:
        return inspect.iscoroutinefunction(inspect.unwrap(client.chat.completions.create))

    def _make_client(self, *, asynchronous: bool) -> Any:
        try:
            import openai
        except ImportError as error:
            raise MissingExtra("openai", needed_for=f"the model {self.name!r}") from error
        try:
            return openai.AsyncOpenAI() if asynchronous else openai.OpenAI()
        except openai.OpenAIError as error:
            raise AuthError(str(error)) from error

    def _effort_of(self, request: ChatRequest) -> str | None:
        """Give the effort to ask for; None: say nothing."""
        if self._effort is None:
            return None
        return self._effort if request.thinking else LEAST_EFFORT

    @abstractmethod
    def _format(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Give the format's words for structured output."""


def _strict(schema: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    closed = closed_schema(schema)
    return (closed, True) if is_strict(closed) else (dict(schema), False)


class OpenAIChatModel(_OpenAIModel):
    """A model behind the Chat Completions API."""

    dialect = "openai_chat"
    wishes: ClassVar[Mapping[str, str]] = {
        "temperature": "temperature",
        "reasoning_effort": "reasoning_effort",
        "reasoning effort": "reasoning_effort",
        "response_format": "response_format",
        "json_schema": "response_format",
        "max_completion_tokens": "max_completion_tokens",
        "max_tokens": "max_tokens",
        "stream_options": "stream_options",
    }

    def _send(self, client: Any) -> Callable[..., Any]:
        send: Callable[..., Any] = client.chat.completions.create
        return send

    def _format(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        body, strict = _strict(schema)
        return {"type": "json_schema", "json_schema": {"name": "answer", "schema": body, "strict": strict}}

    def _params(self, request: ChatRequest) -> dict[str, Any]:
        params: dict[str, Any] = {"model": self.name, "messages": self._messages(request)}
        if request.tools:
            params["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": {"type": "object", "properties": {}, **tool.parameters},
                    },
                }
                for tool in request.tools
            ]
            if request.tool_choice == "none":
                params["tool_choice"] = "none"
        wishes = {
            "temperature": request.temperature,
            "reasoning_effort": self._effort_of(request),
            "response_format": None if request.schema is None else self._format(request.schema),
        }
        limit = request.max_tokens or self.max_tokens
        if limit is not None:
            wishes[self._limit_name()] = limit
        params.update({k: v for k, v in wishes.items() if v is not None and k not in self.refused})
        if request.timeout is not None:
            params["timeout"] = request.timeout
        return params

    def _limit_name(self) -> str:
        if "max_completion_tokens" in self.refused:
            return "max_tokens"
        if "max_tokens" in self.refused:
            return "max_completion_tokens"
        host = str(getattr(self.base_url, "host", "") or "api.openai.com")
        return "max_completion_tokens" if host.endswith(("openai.com", "azure.com")) else "max_tokens"

    def _messages(self, request: ChatRequest) -> list[Any]:
        messages = list(request.messages)
        if request.prompt is not None:
            messages.append({"role": "user", "content": request.prompt})
        system = system_text(request)
        if request.schema is not None and "response_format" in self.refused:
            system = "\n\n".join(part for part in (system, schema_instruction(request.schema)) if part)
        return [{"role": "system", "content": system}, *messages] if system else messages

    def _stream_params(self) -> dict[str, Any]:
        params: dict[str, Any] = {"stream": True}
        if "stream_options" not in self.refused:
            params["stream_options"] = {"include_usage": True}
        return params

    def _reply(self, raw: Any) -> ChatReply:
        return read_completion(plain(raw))

    def _assembler(self) -> Assembler:
        return ChatAssembler()


def read_completion(data: Mapping[str, Any]) -> ChatReply:
    """Read a chat completion, as plain data. Raises ``TransportError`` when it is none."""
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise TransportError(f"the provider's reply is no completion: {str(dict(data))[:200]}")
    message = choices[0].get("message")
    if not isinstance(message, Mapping):
        raise TransportError(f"the provider's reply has no message: {str(dict(data))[:200]}")
    native = {k: v for k, v in message.items() if v not in EMPTY}
    native["role"] = "assistant"
    native.setdefault("content", None if native.get("tool_calls") else "")
    calls = tuple(_chat_call(call) for call in native.get("tool_calls") or ())
    refusal = native.get("refusal")
    stop = STOPS.get(choices[0].get("finish_reason") or "", "other")
    return ChatReply(
        text=_text_of(native.get("content")) or refusal or "",
        calls=calls,
        message=native if native["content"] != "" or refusal else None,
        thinking=native.get("reasoning_content") or native.get("reasoning") or "",
        stop="refused" if refusal else "tools" if calls and stop == "end" else stop,
        usage=read_chat_usage(data.get("usage")),
        model=data.get("model"),
    )


def _chat_call(call: Mapping[str, Any]) -> ToolCall:
    if call.get("type") == "custom":
        custom = call.get("custom") or {}
        return tool_call(call.get("id") or "", custom.get("name") or "", {"input": custom.get("input") or ""})
    function = call.get("function") or {}
    return tool_call(call.get("id") or "", function.get("name") or "", function.get("arguments") or "")


def _text_of(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
    return content or ""


def read_chat_usage(data: Mapping[str, Any] | None) -> Usage | None:
    """Read the usage of a completion."""
    if not data:
        return None
    details = data.get("prompt_tokens_details") or {}
    return Usage(
        input_tokens=data.get("prompt_tokens") or 0,
        output_tokens=data.get("completion_tokens") or 0,
        cached_tokens=details.get("cached_tokens") or 0,
        cache_write_tokens=details.get("cache_write_tokens") or 0,
    )


class ChatAssembler(Assembler):
    """Puts a streamed chat completion together; chunks may be plain data."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._usage: dict[str, Any] | None = None
        self._text: dict[str, list[str]] = {}
        self._calls: dict[int, dict[str, Any]] = {}
        self._finish: str | None = None

    def feed(self, event: Any) -> list[StreamPart]:
        """Take one chunk."""
        data = plain(event)
        self._head.setdefault("model", data.get("model"))
        self._usage = data.get("usage") or self._usage
        parts: list[StreamPart] = []
        for choice in (data.get("choices") or ())[:1]:
            parts.extend(self._delta(choice.get("delta") or {}))
            self._finish = choice.get("finish_reason") or self._finish
        return parts

    def _delta(self, delta: Mapping[str, Any]) -> list[StreamPart]:
        parts: list[StreamPart] = []
        for key in ("content", "reasoning_content", "reasoning", "refusal"):
            piece = delta.get(key)
            if isinstance(piece, str) and piece:
                self._text.setdefault(key, []).append(piece)
                parts.append(ThinkingDelta(piece) if key.startswith("reasoning") else TextDelta(piece))
        for call in delta.get("tool_calls") or ():
            parts.append(self._call(call))
        return parts

    def _call(self, piece: Mapping[str, Any]) -> CallDelta:
        index = piece.get("index", len(self._calls))
        function = piece.get("function") or {}
        call = self._calls.setdefault(index, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        call["id"] = piece.get("id") or call["id"]
        call["function"]["name"] += function.get("name") or ""
        call["function"]["arguments"] += function.get("arguments") or ""
        return CallDelta(
            index, id=piece.get("id") or "", name=function.get("name") or "", arguments=function.get("arguments") or ""
        )

    def finish(self) -> ChatReply:
        """Give the whole reply. Raises ``TransportError`` when no chunk said why the answer stopped."""
        if self._finish is None:
            raise TransportError("the stream ended before the message did")
        message: dict[str, Any] = {key: "".join(pieces) for key, pieces in self._text.items()}
        if self._calls:
            message["tool_calls"] = [self._calls[index] for index in sorted(self._calls)]
        choice = {"message": message, "finish_reason": self._finish}
        return read_completion({**self._head, "choices": [choice], "usage": self._usage})


class OpenAIResponsesModel(_OpenAIModel):
    """A model behind the Responses API, without server-side state: the history is ours.

    The reply's message is a tuple of items. ``summary``: ask for a readable summary of the reasoning (``"auto"``).
    """

    dialect = "openai_responses"
    wishes: ClassVar[Mapping[str, str]] = {
        "temperature": "temperature",
        "reasoning.effort": "reasoning",
        "reasoning.summary": "reasoning",
        "encrypted content": "include",
        "encrypted_content": "include",
        "json_schema": "text",
        "text.format": "text",
    }

    def __init__(
        self,
        name: str,
        *,
        client: Any = None,
        effort: str | None = None,
        summary: str | None = None,
        max_tokens: int | None = None,
    ) -> None:
        super().__init__(name, client=client, effort=effort, max_tokens=max_tokens)
        self._summary = summary

    def _send(self, client: Any) -> Callable[..., Any]:
        send: Callable[..., Any] = client.responses.create
        return send

    def _format(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        body, strict = _strict(schema)
        return {"format": {"type": "json_schema", "name": "answer", "schema": body, "strict": strict}}

    def _params(self, request: ChatRequest) -> dict[str, Any]:
        items = [
            item for entry in request.messages for item in (entry if isinstance(entry, list | tuple) else (entry,))
        ]
        if request.prompt is not None:
            items.append({"role": "user", "content": request.prompt})
        params: dict[str, Any] = {"model": self.name, "input": items, "store": False}
        instructions = system_text(request)
        if request.schema is not None and "text" in self.refused:
            instructions = "\n\n".join(part for part in (instructions, schema_instruction(request.schema)) if part)
        if instructions:
            params["instructions"] = instructions
        if request.tools:
            params["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": {"type": "object", "properties": {}, **tool.parameters},
                    "strict": False,
                }
                for tool in request.tools
            ]
            if request.tool_choice == "none":
                params["tool_choice"] = "none"
        limit = request.max_tokens or self.max_tokens
        if limit is not None:
            params["max_output_tokens"] = limit
        params.update(self._wishes(request))
        if request.timeout is not None:
            params["timeout"] = request.timeout
        return params

    def _wishes(self, request: ChatRequest) -> dict[str, Any]:
        effort = self._effort_of(request)
        reasoning = {k: v for k, v in (("effort", effort), ("summary", self._summary)) if v is not None}
        wishes = {
            "temperature": request.temperature,
            "reasoning": reasoning or None,
            "include": ["reasoning.encrypted_content"],
            "text": None if request.schema is None else self._format(request.schema),
        }
        return {k: v for k, v in wishes.items() if v is not None and k not in self.refused}

    def _reply(self, raw: Any) -> ChatReply:
        return read_response(plain(raw))

    def _assembler(self) -> Assembler:
        return _ResponsesAssembler()


def read_response(data: Mapping[str, Any]) -> ChatReply:
    """Read a response, as plain data. Raises ``TransportError`` when it is none, or what made it fail."""
    output = data.get("output")
    error = data.get("error")
    if isinstance(error, Mapping) and error:
        raise make_error(None, code=error.get("code") or "", message=error.get("message") or "the response failed")
    if not isinstance(output, list) or not all(isinstance(item, dict) for item in output):
        raise TransportError(f"the provider's reply is no response: {str(dict(data))[:200]}")
    text: list[str] = []
    thinking: list[str] = []
    calls: list[ToolCall] = []
    refused = False
    for item in output:
        match item.get("type"):
            case "message":
                for part in item.get("content") or ():
                    refused = refused or part.get("type") == "refusal"
                    text.append(part.get("text") or part.get("refusal") or "")
            case "reasoning":
                parts = item.get("summary") or item.get("content") or ()
                thinking.extend(part.get("text") or "" for part in parts)
            case "function_call":
                calls.append(tool_call(item["call_id"], item["name"], item.get("arguments") or ""))
            case "custom_tool_call":
                calls.append(tool_call(item["call_id"], item["name"], {"input": item.get("input") or ""}))
            case _:
                pass
    return ChatReply(
        text="".join(text),
        calls=tuple(calls),
        message=tuple(output) or None,
        thinking="\n\n".join(part for part in thinking if part),
        stop="refused" if refused else _response_stop(data, bool(calls)),
        usage=read_response_usage(data.get("usage")),
        model=data.get("model"),
    )


def _response_stop(data: Mapping[str, Any], has_calls: bool) -> Stop:
    match data.get("status"):
        case "completed" | None:
            return "tools" if has_calls else "end"
        case "incomplete":
            reason = (data.get("incomplete_details") or {}).get("reason")
            return "length" if reason == "max_output_tokens" else "refused" if reason == "content_filter" else "other"
        case _:
            return "other"


def read_response_usage(data: Mapping[str, Any] | None) -> Usage | None:
    """Read the usage of a response."""
    if not data:
        return None
    details = data.get("input_tokens_details") or {}
    return Usage(
        input_tokens=data.get("input_tokens") or 0,
        output_tokens=data.get("output_tokens") or 0,
        cached_tokens=details.get("cached_tokens") or 0,
        cache_write_tokens=details.get("cache_write_tokens") or 0,
    )


class _ResponsesAssembler(Assembler):
    def __init__(self) -> None:
        self._response: dict[str, Any] | None = None
        self._calls: dict[int, int] = {}

    def feed(self, event: Any) -> list[StreamPart]:
        data = plain(event)
        match data.get("type"):
            case "response.output_text.delta" | "response.refusal.delta" if data.get("delta"):
                return [TextDelta(data["delta"])]
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" if data.get("delta"):
                return [ThinkingDelta(data["delta"])]
            case "response.output_item.added":
                item = data.get("item") or {}
                if item.get("type") == "function_call":
                    place = self._calls.setdefault(data["output_index"], len(self._calls))
                    return [CallDelta(place, id=item.get("call_id") or "", name=item.get("name") or "")]
            case "response.function_call_arguments.delta":
                place = self._calls.setdefault(data["output_index"], len(self._calls))
                return [CallDelta(place, arguments=data.get("delta") or "")]
            case "response.completed" | "response.incomplete" | "response.failed":
                self._response = data.get("response") or {}
            case "error":
                error = data.get("error") or data
                raise make_error(None, code=error.get("code") or "", message=error.get("message") or "")
            case _:
                pass
        return []

    def finish(self) -> ChatReply:
        if self._response is None:
            raise TransportError("the stream ended before the response did")
        return read_response(self._response)
