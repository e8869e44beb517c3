"""Parts of a Chat message: content parts, calls, results.

Source: https://platform.openai.com/docs/api-reference/chat/create (messages), and the types of the ``openai`` SDK.
"""

from __future__ import annotations

from typing import Any

from wakeful.dialects.native import data_url, decoded, describe, field, media_kind, opaque, plain, text_of
from wakeful.dialects.protocol import Block, Media, Text, ToolUse
from wakeful.errors import InputError

LEGACY = "function:"
"""A legacy function call has no id: it is paired by its name."""


def as_part(part: Any) -> dict[str, Any]:
    """Give a content part as a dictionary, whatever it is."""
    if type(part) is dict:
        return part
    try:
        return plain(part, "a content part")
    except InputError:
        return {"type": type(part).__name__, "value": part}


def content_block(part: dict[str, Any]) -> Block:
    """Read a content part."""
    kind = part.get("type")
    if kind == "text" or (kind is None and type(part.get("text")) is str):
        return Text(text_of(part.get("text")))
    if kind == "refusal":
        return Text(text_of(part.get("refusal")))
    if kind in ("image_url", "video_url"):
        source = part.get(kind)
        url = source.get("url") if isinstance(source, dict) else source
        media_type, size = data_url(url)
        return Media("image" if kind == "image_url" else "video", media_type, size)
    if kind == "input_audio":
        audio = part.get("input_audio")
        inner = audio if isinstance(audio, dict) else {}
        return Media("audio", text_of(inner.get("format")), len(text_of(inner.get("data"))))
    if kind == "file":
        file = part.get("file")
        inner = file if isinstance(file, dict) else {}
        data = inner.get("file_data")
        media_type, _ = data_url(data)
        return Media(media_kind(media_type, "document"), media_type, len(text_of(data)))
    return opaque(part)


def call_block(use: Any) -> ToolUse:
    """Read a call of ``tool_calls``."""
    call_id = text_of(field(use, "id"))
    if field(use, "type") == "custom" and field(use, "custom") is not None:
        custom = field(use, "custom")
        return ToolUse(call_id, text_of(field(custom, "name")), text_of(field(custom, "input")))
    function = field(use, "function") or {}
    return ToolUse(call_id, text_of(field(function, "name")), decoded(field(function, "arguments")))


def call_usual(use: Any) -> ToolUse | None:
    """Read a function call whose id, name and arguments are texts; None for any other."""
    try:
        function = use["function"]
        call_id, name, arguments = use["id"], function["name"], function["arguments"]
    except (KeyError, TypeError):
        return None
    if not (type(call_id) is type(name) is type(arguments) is str and type(use) is type(function) is dict):
        return None
    if use.get("type") == "custom" and use.get("custom") is not None:
        return None
    return ToolUse(call_id, name, decoded(arguments))


def raw_arguments(use: Any) -> str:
    """Give a call's arguments as they were sent."""
    if field(use, "type") == "custom" and field(use, "custom") is not None:
        return text_of(field(field(use, "custom"), "input"))
    return text_of(field(field(use, "function") or {}, "arguments"))


def legacy_block(call: Any) -> ToolUse:
    """Read a legacy ``function_call``."""
    name = text_of(field(call, "name"))
    return ToolUse(LEGACY + name, name, decoded(field(call, "arguments")))


def result_text(content: Any) -> tuple[str, int]:
    """Give the text of a result's content, and the bytes of its media."""
    if not isinstance(content, (list, tuple)):
        return text_of(content), 0
    texts, size = [], 0
    for part in content:
        block: Block = Text(part) if type(part) is str else content_block(as_part(part))
        if isinstance(block, Media):
            texts.append(describe(block))
            size += block.bytes
        else:
            texts.append(block.text)  # type: ignore[union-attr]  # a content part is text, media or opaque
    return "\n".join(texts), size
