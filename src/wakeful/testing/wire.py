"""What a provider's endpoint says and refuses, for the three HTTP formats: bodies, event streams, rules.

Pure functions: a request's JSON in, problems or a reply's JSON out. The rules of the messages themselves are those of
``wakeful.dialects``; here stand the rules of the request around them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from wakeful import dialects
from wakeful.needs import ToolCall, Usage
from wakeful.testing.models import Say, native_message, response_items

Api: TypeAlias = Literal["anthropic", "openai_chat", "openai_responses"]

PATHS: dict[str, Api] = {
    "/v1/messages": "anthropic",
    "/v1/chat/completions": "openai_chat",
    "/v1/responses": "openai_responses",
}

MARKERS = 4
"""Most ``cache_control`` markers of a request (rule A15)."""

MIN_THINKING = 1_024
"""Least thinking budget, tokens. Source: platform.claude.com/docs/en/build-with-claude/extended-thinking."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused, in the provider's words."""

    message: str
    status: int = 400
    code: str = ""
    """OpenAI's error code, or Anthropic's error type when it is not ``invalid_request_error``."""
    param: str | None = None


def thinking_on(body: Mapping[str, Any]) -> bool:
    """Say whether an Anthropic request asks for thinking."""
    return (body.get("thinking") or {}).get("type") in ("enabled", "adaptive")


def messages_of(api: Api, body: Mapping[str, Any]) -> list[Any]:
    """Give the messages of a request (Responses: its items; a plain text is one user message)."""
    if api != "openai_responses":
        return list(body.get("messages") or ())
    items = body.get("input") or ()
    return [{"role": "user", "content": items}] if isinstance(items, str) else list(items)


def measured(api: Api, body: Mapping[str, Any]) -> str:
    """Give all that fills the window, as text."""
    parts = [messages_of(api, body), body.get("system") or body.get("instructions") or "", body.get("tools") or ()]
    return json.dumps(parts, ensure_ascii=False)


def check(api: Api, body: Mapping[str, Any], *, bind_thinking: bool = True) -> Refusal | None:
    """Find the first rule that a request breaks."""
    if not isinstance(body.get("model"), str):
        return Refusal("model: Field required", param="model")
    messages = messages_of(api, body)
    if not messages:
        return Refusal("messages: at least one message is required", param="messages")
    refusal = _check_tools(api, body)
    if refusal is None and api == "anthropic":
        refusal = _check_anthropic(body)
    if refusal is None and api == "openai_responses" and body.get("previous_response_id"):
        refusal = Refusal(
            f"Previous response with id '{body['previous_response_id']}' not found.", code="previous_response_not_found"
        )
    if refusal is not None:
        return refusal
    problems = dialects.get(api).validate(messages, thinking=api == "anthropic" and thinking_on(body), open_tail=False)
    if problems:
        first = problems[0]
        return Refusal(f"messages.{first.index}: {first.code}: {first.message}")
    return _check_signatures(messages) if api == "anthropic" and bind_thinking else None


def _check_tools(api: Api, body: Mapping[str, Any]) -> Refusal | None:
    names: set[str] = set()
    for index, tool in enumerate(body.get("tools") or ()):
        inner = tool.get("function") or {} if api == "openai_chat" else tool
        name = inner.get("name")
        if not isinstance(name, str) or not name:
            return Refusal(f"tools.{index}.name: Field required", param=f"tools[{index}].name")
        if name in names:
            return Refusal(f"tools: Tool names must be unique: {name}", param="tools")
        names.add(name)
    return None


def _check_anthropic(body: Mapping[str, Any]) -> Refusal | None:
    limit = body.get("max_tokens")
    if not isinstance(limit, int) or limit < 1:
        return Refusal("max_tokens: Field required, at least 1")
    found = _markers(body.get("system")) + _markers(body.get("messages")) + _markers(body.get("tools"))
    if found > MARKERS:
        return Refusal(f"A maximum of {MARKERS} blocks with cache_control may be provided. Found {found}.")
    thinking = body.get("thinking") or {}
    if not thinking_on(body):
        return None
    if body.get("temperature", 1) != 1:
        return Refusal("`temperature` may only be set to 1 when thinking is enabled.")
    budget = thinking.get("budget_tokens", MIN_THINKING)
    if budget < MIN_THINKING:
        return Refusal(f"thinking.enabled.budget_tokens: Input should be greater than or equal to {MIN_THINKING}")
    if thinking.get("type") == "enabled" and budget >= limit:
        return Refusal("`max_tokens` must be greater than `thinking.budget_tokens`.")
    return None


def _markers(value: Any) -> int:
    if isinstance(value, Mapping):
        return ("cache_control" in value) + sum(_markers(v) for k, v in value.items() if k != "cache_control")
    if isinstance(value, list | tuple):
        return sum(_markers(item) for item in value)
    return 0


def sign(prefix: Sequence[Mapping[str, Any]], thinking: str) -> str:
    """Sign a thinking block: the signature is bound to its text and to the messages before it (rules A6, A8)."""
    return f"sig.{_hash(_canonical(prefix))}.{_hash(thinking)}"


def _hash(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _canonical(messages: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Bring messages to the form in which two are the same to the model: no markers, no thinking, roles merged."""
    out: list[Any] = []
    for message in messages:
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
        kept = [
            {k: v for k, v in block.items() if k != "cache_control"}
            for block in blocks
            if block.get("type") not in ("thinking", "redacted_thinking")
        ]
        if out and out[-1][0] == message.get("role"):
            out[-1][1].extend(kept)
        else:
            out.append((message.get("role"), kept))
    return out


def _check_signatures(messages: Sequence[Mapping[str, Any]]) -> Refusal | None:
    for index, message in enumerate(messages):
        content = message.get("content")
        for place, block in enumerate(content if isinstance(content, list) else ()):
            if block.get("type") != "thinking":
                continue
            where = f"messages.{index}.content.{place}"
            parts = str(block.get("signature") or "").split(".")
            if len(parts) != 3 or parts[0] != "sig" or parts[2] != _hash(block.get("thinking") or ""):
                return Refusal(f"{where}: Invalid `signature` in `thinking` block")
            if parts[1] != _hash(_canonical(messages[:index])):
                return Refusal(f"{where}: The block is bound to a different conversation")
    return None


def error_body(api: Api, refusal: Refusal) -> dict[str, Any]:
    """Give the JSON of a refusal."""
    if api == "anthropic":
        kind = refusal.code or "invalid_request_error"
        return {"type": "error", "error": {"type": kind, "message": refusal.message}, "request_id": "req_local"}
    return {
        "error": {
            "message": refusal.message,
            "type": "invalid_request_error" if refusal.status == 400 else refusal.code or "server_error",
            "param": refusal.param,
            "code": refusal.code or None,
        }
    }


def reply_body(api: Api, body: Mapping[str, Any], say: Say, *, serial: int, usage: Usage) -> dict[str, Any]:
    """Give the JSON of a whole reply."""
    match api:
        case "anthropic":
            return _anthropic_reply(body, say, serial, usage)
        case "openai_chat":
            return _chat_reply(body, say, serial, usage)
        case _:
            return _response_reply(body, say, serial, usage)


def _anthropic_reply(body: Mapping[str, Any], say: Say, serial: int, usage: Usage) -> dict[str, Any]:
    signature = sign(body["messages"], say.thinking) if say.thinking else None
    stops = {"end": "end_turn", "tools": "tool_use", "length": "max_tokens", "refused": "refusal"}
    return {
        "id": f"msg_{serial}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": native_message(say, "anthropic", serial=serial, signature=signature)["content"],
        "stop_reason": stops.get(say.reason, "pause_turn"),
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens,
            "cache_read_input_tokens": usage.cached_tokens,
            "cache_creation_input_tokens": usage.cache_write_tokens,
            "output_tokens": usage.output_tokens,
        },
    }


def _chat_reply(body: Mapping[str, Any], say: Say, serial: int, usage: Usage) -> dict[str, Any]:
    stops = {"end": "stop", "tools": "tool_calls", "length": "length", "refused": "content_filter"}
    message = {"refusal": None, "annotations": [], **native_message(say, "openai_chat", serial=serial)}
    return {
        "id": f"chatcmpl-{serial}",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": stops.get(say.reason, "stop")}],
        "usage": {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.input_tokens + usage.output_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        },
    }


def _response_reply(body: Mapping[str, Any], say: Say, serial: int, usage: Usage) -> dict[str, Any]:
    incomplete = {"length": "max_output_tokens", "refused": "content_filter"}.get(say.reason)
    encrypted = f"enc.{_hash(say.thinking)}"
    return {
        "id": f"resp_{serial}",
        "object": "response",
        "created_at": 0,
        "model": body["model"],
        "status": "incomplete" if incomplete else "completed",
        "incomplete_details": {"reason": incomplete} if incomplete else None,
        "error": None,
        "output": response_items(say, serial=serial, encrypted=encrypted),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": usage.input_tokens,
            "input_tokens_details": {"cached_tokens": usage.cached_tokens},
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.input_tokens + usage.output_tokens,
        },
    }


Event: TypeAlias = "tuple[str | None, dict[str, Any] | str]"
"""Name (None: unnamed) and data of a server-sent event."""


def events(api: Api, reply: Mapping[str, Any], *, include_usage: bool = True) -> Iterator[Event]:
    """Cut a whole reply into the events of a stream."""
    match api:
        case "anthropic":
            return _anthropic_events(reply)
        case "openai_chat":
            return _chat_events(reply, include_usage)
        case _:
            return _response_events(reply)


def pieces(text: str, size: int = 12) -> list[str]:
    """Cut a text into pieces of at most ``size`` characters."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def _anthropic_events(reply: Mapping[str, Any]) -> Iterator[Event]:
    usage = reply["usage"]
    start = {**reply, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield "message_start", {"type": "message_start", "message": start}
    yield "ping", {"type": "ping"}
    for index, block in enumerate(reply["content"]):
        empty, deltas = _anthropic_block(block)
        yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    end = {"stop_reason": reply["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": end, "usage": {"output_tokens": usage["output_tokens"]}}
    yield "message_stop", {"type": "message_stop"}


def _anthropic_block(block: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    match block["type"]:
        case "text":
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
            return {"type": "text", "text": ""}, deltas
        case "thinking":
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
            return {"type": "thinking", "thinking": "", "signature": ""}, deltas
        case _:
            text = json.dumps(block["input"], ensure_ascii=False)
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *pieces(text))]
            return {**block, "input": {}}, deltas


def _chat_events(reply: Mapping[str, Any], include_usage: bool) -> Iterator[Event]:
    head = {**{k: reply[k] for k in ("id", "created", "model")}, "object": "chat.completion.chunk"}
    message = reply["choices"][0]["message"]

    def chunk(delta: dict[str, Any], finish: str | None = None) -> Event:
        return None, {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(message.get("reasoning_content") or ""):
        yield chunk({"reasoning_content": piece})
    for piece in pieces(message.get("content") or ""):
        yield chunk({"content": piece})
    for index, call in enumerate(message.get("tool_calls") or ()):
        function = call["function"]
        opening = {**call, "index": index, "function": {"name": function["name"], "arguments": ""}}
        yield chunk({"tool_calls": [opening]})
        for piece in pieces(function["arguments"]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, reply["choices"][0]["finish_reason"])
    if include_usage:
        yield None, {**head, "choices": [], "usage": reply["usage"]}
    yield None, "[DONE]"


def _response_events(reply: Mapping[str, Any]) -> Iterator[Event]:
    serial = 0

    def event(kind: str, **data: Any) -> Event:
        nonlocal serial
        serial += 1
        return kind, {"type": kind, "sequence_number": serial, **data}

    yield event("response.created", response={**reply, "status": "in_progress", "output": [], "usage": None})
    for index, item in enumerate(reply["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        match item["type"]:
            case "reasoning":
                yield event("response.output_item.added", output_index=index, item={**item, "summary": []})
                for piece in pieces(item["summary"][0]["text"]):
                    yield event("response.reasoning_summary_text.delta", **place, summary_index=0, delta=piece)
            case "message":
                yield event("response.output_item.added", output_index=index, item={**item, "content": []})
                for piece in pieces(item["content"][0]["text"]):
                    yield event("response.output_text.delta", **place, content_index=0, delta=piece, logprobs=[])
            case _:
                yield event("response.output_item.added", output_index=index, item={**item, "arguments": ""})
                for piece in pieces(item["arguments"]):
                    yield event("response.function_call_arguments.delta", **place, delta=piece)
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.completed" if reply["status"] == "completed" else "response.incomplete", response=reply)


def call(id: str, name: str, **arguments: Any) -> ToolCall:
    """Make a tool call for a script: ``Say(calls=(call("c1", "search", q="x"),))``."""
    return ToolCall(id, name, arguments)
