"""Claude through the official ``anthropic`` SDK (Messages API), on Anthropic, Bedrock or Vertex clients.

Facts from platform.claude.com/docs/en/api/messages: ``max_tokens`` is required; ``input_tokens`` leaves cached tokens
out; thinking blocks go back with their signatures; temperature may not be set while thinking is on.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

from wakeful.errors import AuthError, InvalidRequest, MissingExtra, ModelError, TransportError
from wakeful.models.chat import closed_schema, schema_instruction, system_text, tool_call
from wakeful.models.retry import make_error
from wakeful.models.sdk import Assembler, SdkModel, plain
from wakeful.needs import CallDelta, ChatReply, ChatRequest, StreamPart, TextDelta, ThinkingDelta, Usage

MAX_TOKENS = 8_192
"""Output asked for when the request names none; every model since Claude 3.5 can write as much."""

NONSTREAMING_TOKENS = 16_000
"""Above this, a whole reply is read as a stream: the SDK refuses calls that may take over ten minutes.

Source: platform.claude.com/docs/en/cli-sdks-libraries/sdks/python#long-requests (about 21,000 tokens).
"""

THINKING_OFF: Mapping[str, Any] = {"type": "disabled"}

Stop = Literal["end", "tools", "length", "refused", "other"]

STOPS: dict[str, Stop] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tools",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}
"""Reasons to stop. Others (``pause_turn``) are ``other``."""


class AnthropicModel(SdkModel):
    """A Claude model.

    ``client``: ``Anthropic``, ``AsyncAnthropic`` or a Bedrock or Vertex variant; None: made from the environment.
    ``thinking``: the provider's own thinking parameter, sent unless a request asks for no thinking; None leaves the
    model's default. ``max_tokens``: output limit when a request names none.
    """

    dialect = "anthropic"
    wishes: ClassVar[Mapping[str, str]] = {
        "temperature": "temperature",
        "output_config": "output_config",
        "output_format": "output_config",
        "output format": "output_config",
        "structured output": "output_config",
    }

    def __init__(
        self,
        name: str,
        *,
        client: Any = None,
        thinking: Mapping[str, Any] | None = None,
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        super().__init__(name, client=client)
        self._thinking = thinking
        self.max_tokens = max_tokens
        """Output limit of a request that names none."""

    def _is_async(self, client: Any) -> bool:
        return inspect.iscoroutinefunction(inspect.unwrap(client.messages.create))

    def _make_client(self, *, asynchronous: bool) -> Any:
        try:
            import anthropic
        except ImportError as error:
            raise MissingExtra("anthropic", needed_for=f"the model {self.name!r}") from error
        try:
            return anthropic.AsyncAnthropic() if asynchronous else anthropic.Anthropic()
        except anthropic.AnthropicError as error:
            raise AuthError(str(error)) from error

    def _send(self, client: Any) -> Callable[..., Any]:
        send: Callable[..., Any] = client.messages.create
        return send

    def _needs_stream(self, request: ChatRequest) -> bool:
        return (request.max_tokens or self.max_tokens) > NONSTREAMING_TOKENS

    def _params(self, request: ChatRequest) -> dict[str, Any]:
        messages = list(request.messages)
        if request.prompt is not None:
            messages.append({"role": "user", "content": request.prompt})
        params: dict[str, Any] = {
            "model": self.name,
            "max_tokens": request.max_tokens or self.max_tokens,
            "messages": messages,
        }
        if request.system:
            params["system"] = request.system if isinstance(request.system, str) else list(request.system)
        if request.tools:
            params["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": _object(tool.parameters)}
                for tool in request.tools
            ]
            if request.tool_choice == "none":
                params["tool_choice"] = {"type": "none"}
        thinking = self._thinking if request.thinking else THINKING_OFF
        if thinking is not None and "thinking" not in self.refused:
            params["thinking"] = dict(thinking)
        thinks = thinking is not None and thinking is not THINKING_OFF
        if request.temperature is not None and not thinks and "temperature" not in self.refused:
            # The SDK's own signature lost the parameter; models that take it still do.
            params["extra_body"] = {"temperature": request.temperature}
        if request.schema is not None:
            self._demand(params, request)
        if request.timeout is not None:
            params["timeout"] = request.timeout
        return params

    def _refused_wish(self, error: ModelError, params: Mapping[str, Any]) -> str | None:
        """Name the refused wish; "no thinking" is one, since some models always think (errors about blocks are not)."""
        text = str(error).lower()
        off = params.get("thinking") == THINKING_OFF and "thinking" not in self.refused
        if off and isinstance(error, InvalidRequest) and "thinking" in text and not re.search(r"messages\.\d", text):
            return "thinking"
        return super()._refused_wish(error, params)

    def _demand(self, params: dict[str, Any], request: ChatRequest) -> None:
        schema = request.schema or {}
        if "output_config" not in self.refused:
            params["output_config"] = {"format": {"type": "json_schema", "schema": closed_schema(schema)}}
            return
        words = schema_instruction(schema)
        system = params.get("system")
        if isinstance(system, list):
            params["system"] = [*system, {"type": "text", "text": words}]
        else:
            params["system"] = "\n\n".join(part for part in (system_text(request), words) if part)

    def _reply(self, raw: Any) -> ChatReply:
        return read_reply(plain(raw))

    def _assembler(self) -> Assembler:
        return _Assembler()


def _object(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", **parameters}


def read_reply(data: Mapping[str, Any]) -> ChatReply:
    """Read a whole message, as plain data. Raises ``TransportError`` when it is none."""
    content = data.get("content")
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        raise TransportError(f"the provider's reply is no message: {str(dict(data))[:200]}")
    # A text block without text is refused when it is sent back (A9).
    content = [block for block in content if block.get("type") != "text" or block.get("text")]
    text, thinking, calls = [], [], []
    for block in content:
        match block.get("type"):
            case "text":
                text.append(block.get("text") or "")
            case "thinking":
                thinking.append(block.get("thinking") or "")
            case "tool_use":
                calls.append(tool_call(block["id"], block["name"], block.get("input")))
            case _:
                pass
    return ChatReply(
        text="".join(text),
        calls=tuple(calls),
        message={"role": "assistant", "content": content} if content else None,
        thinking="\n\n".join(part for part in thinking if part),
        stop=STOPS.get(data.get("stop_reason") or "", "other"),
        usage=read_usage(data.get("usage")),
        model=data.get("model"),
    )


def read_usage(data: Mapping[str, Any] | None) -> Usage | None:
    """Read a usage object: cached tokens are counted beside ``input_tokens``, so all three are added."""
    if not data:
        return None
    cached = data.get("cache_read_input_tokens") or 0
    written = data.get("cache_creation_input_tokens") or 0
    return Usage(
        input_tokens=(data.get("input_tokens") or 0) + cached + written,
        output_tokens=data.get("output_tokens") or 0,
        cached_tokens=cached,
        cache_write_tokens=written,
    )


class _Assembler(Assembler):
    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._json: dict[int, list[str]] = {}
        self._calls: dict[int, int] = {}
        self._usage: dict[str, Any] = {}
        self._ended = False

    def feed(self, event: Any) -> list[StreamPart]:
        data = plain(event)
        match data.get("type"):
            case "message_start":
                self._message = dict(data.get("message") or {})
                self._usage.update(self._message.get("usage") or {})
            case "content_block_start":
                return self._start(data["index"], dict(data["content_block"]))
            case "content_block_delta":
                return self._delta(data["index"], data["delta"])
            case "message_delta":
                self._message.update({k: v for k, v in data["delta"].items() if v is not None})
                self._usage.update({k: v for k, v in (data.get("usage") or {}).items() if v is not None})
            case "message_stop":
                self._ended = True
            case "error":
                error = data.get("error") or {}
                raise make_error(None, kind=error.get("type") or "", message=error.get("message") or "")
            case _:
                pass
        return []

    def _start(self, index: int, block: dict[str, Any]) -> list[StreamPart]:
        self._blocks[index] = block
        match block.get("type"):
            case "tool_use":
                self._calls[index] = len(self._calls)
                return [CallDelta(self._calls[index], id=block["id"], name=block["name"])]
            case "text" if block.get("text"):
                return [TextDelta(block["text"])]
            case "thinking" if block.get("thinking"):
                return [ThinkingDelta(block["thinking"])]
            case _:
                return []

    def _delta(self, index: int, delta: Mapping[str, Any]) -> list[StreamPart]:
        if index not in self._blocks:
            raise TransportError(f"the stream speaks of block {index}, which it never began")
        block = self._blocks[index]
        match delta.get("type"):
            case "input_json_delta":
                piece = delta.get("partial_json") or ""
                self._json.setdefault(index, []).append(piece)
                return [CallDelta(self._calls[index], arguments=piece)] if piece and index in self._calls else []
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
                return []
            case kind:
                # Every other kind appends text to the field that it names (text, thinking, signature, content).
                for key, value in delta.items():
                    if key != "type" and isinstance(value, str):
                        block[key] = (block.get(key) or "") + value
        if kind == "text_delta" and delta.get("text"):
            return [TextDelta(delta["text"])]
        if kind == "thinking_delta" and delta.get("thinking"):
            return [ThinkingDelta(delta["thinking"])]
        return []

    def finish(self) -> ChatReply:
        if not self._ended or not self._message:
            raise TransportError("the stream ended before the message did")
        invalid = {}
        for index, pieces in self._json.items():
            block = self._blocks[index]
            call = tool_call(block.get("id") or "", block.get("name") or "", "".join(pieces))
            block["input"] = dict(call.arguments)
            if call.invalid is not None:
                invalid[call.id] = call
        content = [self._blocks[index] for index in sorted(self._blocks)]
        reply = read_reply({**self._message, "content": content, "usage": self._usage})
        if not invalid:
            return reply
        return replace(reply, calls=tuple(invalid.get(call.id, call) for call in reply.calls))
