"""Blocks of a LangChain message's content: the standard ones, and those that providers' packages pass through.

Source: ``langchain_core.messages.content`` and the content that langchain-anthropic, -openai, -google-genai and -aws keep.
"""

from __future__ import annotations

import json
from typing import Any

from wakeful.dialects.native import data_url, decoded, describe, media_kind, opaque, provisional, text_of, type_of
from wakeful.dialects.protocol import Block, Media, Opaque, Text, Thinking, ToolResult, ToolUse

GONE: Any = object()
"""Stands for an element that is taken out of its list."""

CALL_TYPES = frozenset({"tool_use", "tool_call", "function_call", "custom_tool_call", "tool_call_chunk"})
"""Blocks that stand for a client-side call."""

_SERVER = frozenset({"server_tool_use", "server_tool_call", "mcp_tool_use", "web_search_call", "file_search_call"})
_REASONING = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})
_MEDIA = frozenset(
    {"image", "image_url", "audio", "input_audio", "video", "file", "document", "media", "input_image", "input_file"}
)


def is_reasoning(part: dict[str, Any]) -> bool:
    """Tell whether a block is reasoning."""
    return type_of(part) in _REASONING


def block_id(part: dict[str, Any]) -> str | None:
    """Give the id that pairs a call's block with its result (Responses blocks have an item id beside it); else None."""
    found = part["call_id"] if "call_id" in part else part.get("id")
    return found if isinstance(found, str) else None


def content_block(part: Any) -> Block:
    """Read one block of a content."""
    if isinstance(part, str):
        return Text(part)
    if not isinstance(part, dict):
        return opaque(part)
    kind = type_of(part)
    if kind in ("text", "output_text", "input_text") or (kind is None and isinstance(part.get("text"), str)):
        return Text(text_of(part.get("text")))
    if kind in _REASONING:
        return _reasoning(part)
    if kind in CALL_TYPES:
        return ToolUse(text_of(block_id(part)), text_of(part.get("name")), _arguments(part))
    if kind in _SERVER:
        return ToolUse(text_of(block_id(part)), text_of(part.get("name") or kind), _arguments(part), server=True)
    if kind in _MEDIA:
        return _medium(part)
    if kind == "tool_result":
        text, size, _ = result_text(part.get("content"))
        error = part.get("is_error") is True
        return ToolResult(
            text_of(part.get("tool_use_id")), text, error=error, provisional=provisional(text), media_bytes=size
        )
    if isinstance(kind, str) and kind.endswith("_tool_result"):
        text, size, _ = result_text(part.get("content", part.get("output")))
        call_id = part.get("tool_use_id", part.get("tool_call_id"))
        error = part.get("is_error") is True or part.get("status") == "error"
        return ToolResult(text_of(call_id), text, error=error, server=True, media_bytes=size)
    if kind == "refusal":
        return Opaque("refusal", text_of(part.get("refusal")))
    return opaque(part)


def result_text(content: Any) -> tuple[str, int, int]:
    """Give the text of a result's content, the bytes of its media, and their number."""
    if isinstance(content, str):
        return content, 0, 0
    texts, size, media = [], 0, 0
    for part in content if isinstance(content, (list, tuple)) else [] if content is None else [content]:
        block = content_block(part)
        if isinstance(block, Media):
            texts.append(describe(block))
            size += block.bytes
            media += 1
        elif isinstance(block, (Text, Thinking, Opaque, ToolResult)):
            texts.append(block.text)
        else:
            texts.append(text_of(part))
    return "\n".join(texts), size, media


def _arguments(part: dict[str, Any]) -> Any:
    for key in ("input", "args", "arguments", "action"):
        if part.get(key) is not None:
            return decoded(part[key])
    return {}


def _reasoning(part: dict[str, Any]) -> Thinking:
    found = part.get("id")
    text = part.get("thinking") or part.get("reasoning") or part.get("text")
    if not text and isinstance(part.get("summary"), list):
        text = "\n".join(text_of(item.get("text")) for item in part["summary"] if isinstance(item, dict))
    inner = part.get("reasoning_content")
    if not text and isinstance(inner, dict):
        text = inner.get("text")
    return Thinking(text_of(text), found if isinstance(found, str) else None)


def _medium(part: dict[str, Any]) -> Media:
    kind = type_of(part)
    media_type = text_of(part.get("mime_type") or part.get("media_type"))
    data: Any = part.get("base64") or part.get("data")
    source = part.get("source")
    if isinstance(source, dict):
        media_type = media_type or text_of(source.get("media_type"))
        data = source.get("data") or source.get("bytes")
    inner = part.get("image_url", part.get("input_audio", part.get("file")))
    url = inner.get("url") if isinstance(inner, dict) else inner if isinstance(inner, str) else part.get("url")
    if isinstance(inner, dict) and data is None:
        data = inner.get("data") or inner.get("file_data")
    if data is None:
        media_type, size = data_url(url)
    else:
        size = len(data) if isinstance(data, (str, bytes)) else 0
    default: Any = {"image_url": "image", "input_image": "image", "input_audio": "audio", "input_file": "file"}.get(
        str(kind), kind if kind in ("image", "audio", "video", "document") else "file"
    )
    return Media(media_kind(media_type, default), media_type, size)


def raw_call(call: dict[str, Any], raw: str, gone: bool) -> Any:
    """Give the provider's own form of a call with other arguments, or ``GONE``."""
    if gone:
        return GONE
    return {**call, "function": {**(call.get("function") or {}), "arguments": raw}}


def with_arguments(part: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Give a call's block with other arguments, in the field and form that it has."""
    raw = json.dumps(arguments, ensure_ascii=False)
    changes: dict[str, Any] = {}
    for key in ("input", "args", "arguments"):
        if key in part:
            changes[key] = raw if isinstance(part[key], str) else arguments
    if "partial_json" in part:
        changes["partial_json"] = raw
    return {**part, **(changes or {"input": arguments})}


def forget_ids(message: Any, changes: dict[str, Any]) -> None:
    """Take away the ids of the Responses API: an item that lost its reasoning is refused under its id."""
    content = changes.get("content", message.content)
    if isinstance(content, list):
        kept = [
            {k: v for k, v in part.items() if k != "id"} if isinstance(part, dict) and _has_item_id(part) else part
            for part in content
        ]
        if kept != content:
            changes["content"] = kept
    extra = changes.get("additional_kwargs", message.additional_kwargs)
    if "__openai_function_call_ids__" in extra:
        changes["additional_kwargs"] = {k: v for k, v in extra.items() if k != "__openai_function_call_ids__"}
    meta = message.response_metadata
    if isinstance(meta.get("id"), str) and meta["id"].startswith("resp_"):
        changes["response_metadata"] = {k: v for k, v in meta.items() if k != "id"}


def _has_item_id(part: dict[str, Any]) -> bool:
    return not is_reasoning(part) and isinstance(part.get("id"), str) and part["id"].startswith(("msg_", "fc_", "ctc_"))
