"""Anthropic Messages.

One message holds several blocks; a content that is a string is one text block. Results are blocks of a user message.
What the provider runs itself (``server_tool_use``, ``mcp_tool_use`` and every ``..._tool_result``) is paired inside the
assistant message and is no client-side call. Blocks and whole messages may be SDK objects.

The rules are checked in ``anthropic_rules``.

Source: https://docs.anthropic.com/en/api/messages, and the block types of the ``anthropic`` SDK.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from wakeful.dialects import serial
from wakeful.dialects.anthropic_rules import validate
from wakeful.dialects.facts import FACTS
from wakeful.dialects.native import (
    BLOCK_BYTES,
    CALL_OVERHEAD,
    NOTICE_CHARS,
    OPAQUE_CHARS,
    WIRE_OVERHEAD,
    brief,
    by_block,
    changed,
    describe,
    field,
    media_kind,
    opaque,
    plain,
    provisional,
    text_of,
    type_of,
)
from wakeful.dialects.protocol import (
    Block,
    Count,
    Edit,
    Facts,
    Flag,
    Kind,
    Media,
    Opaque,
    Problem,
    Remove,
    Role,
    SetArguments,
    SetMedia,
    SetResult,
    SetText,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    View,
    Weight,
)
from wakeful.errors import InputError

_FACTS = FACTS["anthropic"]
_OVERHEAD = _FACTS.message_overhead
_KINDS = {"user": Kind.USER, "assistant": Kind.ASSISTANT, "system": Kind.SYSTEM}
_SERVER_USES = frozenset({"server_tool_use", "mcp_tool_use"})
_MEDIA = frozenset({"image", "document", "container_upload"})
_OWN = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "image", "document"})
_FOREIGN = frozenset(
    {"image_url", "input_audio", "input_text", "output_text", "input_image", "input_file", "refusal", "file"}
)
_new = tuple.__new__


class Anthropic:
    """The dialect of Anthropic Messages."""

    name = "anthropic"
    facts: Facts = _FACTS

    def recognises(self, messages: Sequence[Any]) -> float:
        """Say how surely these are Anthropic messages; a list of roles and plain text alone scores 0.4."""
        sure = 0.4 if len(messages) else 0.0
        for message in messages:
            if type(message) is dict:
                if len(message) > 2 and (
                    "tool_calls" in message or "parts" in message or "tool_call_id" in message or "call_id" in message
                ):
                    return 0.0
                role, content = message.get("role"), message.get("content")
            else:
                role, content = getattr(message, "role", None), getattr(message, "content", None)
                if getattr(message, "type", None) == "message" and hasattr(message, "stop_reason"):
                    return 1.0
            if role != "user" and role != "assistant" and role != "system":
                return 0.0
            if type(content) is list:
                for block in content:
                    kind = block.get("type") if type(block) is dict else getattr(block, "type", None)
                    if type(kind) is not str:
                        return 0.0
                    if kind in _OWN:
                        return 1.0
                    if kind in _FOREIGN:
                        return 0.0
                    if kind != "text" or "cache_control" in (block if type(block) is dict else ()):
                        sure = 0.9
            elif type(content) is not str:
                return 0.0
        return sure

    def weigh(self, message: Any, count: Count) -> Weight:
        """Weigh a message in one pass. Arguments are measured by their ``repr``, which is as long as their JSON."""
        if type(message) is not dict:
            message = plain(message)
        try:
            kind = _KINDS[message["role"]]
        except (KeyError, TypeError):
            raise _no_role(message) from None
        content = message.get("content")
        if type(content) is str:
            tokens = _OVERHEAD + count(content, "text") if content else _OVERHEAD
            return _new(Weight, (kind, tokens, (), (), WIRE_OVERHEAD + len(content), 0))
        if type(content) is not list:
            content = _blocks(content)
        tokens, size, flags, own = _OVERHEAD, WIRE_OVERHEAD + BLOCK_BYTES * len(content), 0, False
        calls: tuple[str, ...] = ()
        results: tuple[str, ...] = ()
        for block in content:
            if type(block) is not dict:
                block = _block_dict(block)
            what = block.get("type")
            if what == "tool_result":
                inner = block.get("content")
                if type(inner) is str:
                    if inner:
                        size += len(inner)
                        if inner[0] in "{[":
                            tokens += count(inner, "json")
                            if len(inner) <= NOTICE_CHARS and provisional(inner):
                                flags |= Flag.PROVISIONAL
                        else:
                            tokens += count(inner, "text")
                elif inner:
                    tokens, size, flags = _sum(tokens, size, flags, _weigh_inner(inner, count))
                tokens += CALL_OVERHEAD
                call_id = block.get("tool_use_id")
                results += (call_id if type(call_id) is str else text_of(call_id),)
            elif what == "tool_use":
                shown = repr(block.get("input"))
                tokens += CALL_OVERHEAD + count(shown, "json")
                size += len(shown)
                call_id = block.get("id")
                calls += (call_id if type(call_id) is str else text_of(call_id),)
            elif what == "text":
                text = block.get("text")
                if type(text) is str and text:
                    tokens += count(text, "text")
                    size += len(text)
                own = True
            else:
                tokens, size, flags = _sum(tokens, size, flags, _weigh_other(block, count))
                own = True
        if calls:
            if kind == Kind.ASSISTANT:
                kind = Kind.CALLS
        elif results and not own and kind == Kind.USER:
            kind = Kind.RESULTS
        return _new(Weight, (kind, tokens, calls, results, size, flags))

    def read(self, message: Any) -> View:
        """Read a message whole."""
        message = plain(message)
        role = message.get("role")
        if type(role) is not str or role not in _KINDS:
            raise _no_role(message)
        blocks = _read(message.get("content"))
        shown: Role = role  # type: ignore[assignment]  # one of _KINDS
        if role == "user" and blocks and all(isinstance(block, ToolResult) for block in blocks):
            shown = "tool"
        message_id = message.get("id")
        return View(shown, blocks, message_id if type(message_id) is str else None)

    def rewrite(self, message: Any, edits: Sequence[Edit]) -> Any | None:
        """Return the message with the edits made, or None when nothing is left of it."""
        if not edits:
            return message
        content = field(message, "content")
        views = self.read(message).blocks
        todo = by_block(edits, views)
        if not todo:
            return message
        if isinstance(content, str):
            edit = todo[0]
            if isinstance(edit, Remove):
                return None
            return changed(message, {"content": edit.text}) if isinstance(edit, SetText) else message
        left: list[Any] = []
        for i, block in enumerate(_blocks(content)):
            edit_ = todo.get(i)
            if edit_ is None:
                left.append(block)
            elif not isinstance(edit_, Remove):
                left.append(_edited(block, edit_))
        return changed(message, {"content": left}) if left else None

    def note(self, text: str, *, role: Literal["user", "system"] = "user", id: str | None = None) -> Any:
        """Make a user message of one text: the system prompt stands outside the messages, and messages have no ids."""
        return {"role": "user", "content": text}

    def answer(self, call_id: str, text: str, *, name: str = "", error: bool = True) -> Any:
        """Make a user message with one result."""
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id, "content": text}
        if error:
            result["is_error"] = True
        return {"role": "user", "content": [result]}

    def merge(self, messages: Sequence[Any]) -> Any:
        """Make one message of neighbours of one role: results first (A3), everything else in order after them."""
        if len(messages) == 1:
            return messages[0]
        roles = {field(message, "role") for message in messages}
        if len(roles) != 1:
            raise InputError(f"only messages of one role can be merged; these are {sorted(map(str, roles))}")
        blocks: list[Any] = []
        for message in messages:
            content = field(message, "content")
            if isinstance(content, str):
                blocks += [{"type": "text", "text": content}] if content else []
            else:
                blocks += _blocks(content)
        first = [block for block in blocks if field(block, "type") == "tool_result"]
        if first:
            blocks = first + [block for block in blocks if field(block, "type") != "tool_result"]
        return {"role": roles.pop(), "content": blocks}

    def dumps(self, message: Any) -> str:
        """Serialise a message."""
        return serial.dumps(message)

    def loads(self, text: str) -> Any:
        """Give back a message from ``dumps``."""
        return serial.loads(text)

    def validate(
        self, messages: Sequence[Any], *, thinking: bool = False, open_tail: bool = True, strict: bool = False
    ) -> list[Problem]:
        """Check the rules of ``anthropic_rules`` over the whole list."""
        return validate(messages, thinking=thinking, open_tail=open_tail, strict=strict)


DIALECT = Anthropic()


def _no_role(message: Any) -> InputError:
    role = field(message, "role")
    return InputError(f"an Anthropic message needs a role of user or assistant; it has {brief(role)}: {brief(message)}")


def _blocks(content: Any) -> list[Any]:
    if content is None:
        return []
    if isinstance(content, (list, tuple)):
        return list(content)
    return [content]


def _block_dict(block: Any) -> dict[str, Any]:
    if type(block) is dict:
        return block
    if isinstance(block, str):
        return {"type": "text", "text": block}
    try:
        return plain(block, "a content block")
    except InputError:
        return {"type": type(block).__name__, "value": block}


def _sum(tokens: int, size: int, flags: int, more: tuple[int, int, int]) -> tuple[int, int, int]:
    return tokens + more[0], size + more[1], flags | more[2]


def _weigh_inner(content: Any, count: Count) -> tuple[int, int, int]:
    """Weigh a result's list of blocks: tokens, bytes, flags."""
    tokens = size = flags = 0
    blocks = [_block_dict(block) for block in _blocks(content)]
    for block in blocks:
        text = block.get("text")
        if type(text) is str:
            if text:
                tokens += count(text, "json" if text[0] in "{[" else "text")
                size += len(text) + BLOCK_BYTES
        else:
            more, bulk, bits = _weigh_other(block, count)
            tokens += more
            size += bulk + BLOCK_BYTES
            flags |= bits & Flag.MEDIA
    if blocks and provisional(_result_text(blocks)[0]):
        flags |= Flag.PROVISIONAL
    return tokens, size, flags


def _weigh_other(block: dict[str, Any], count: Count) -> tuple[int, int, int]:
    """Weigh a block of the rarer kinds: tokens, bytes, flags."""
    what = type_of(block)
    if what == "thinking":
        text, signature = block.get("thinking"), block.get("signature")
        size = len(signature) if type(signature) is str else 0
        if type(text) is not str or not text:
            return 0, size, Flag.THINKING
        return count(text, "text"), size + len(text), Flag.THINKING
    if what == "redacted_thinking":
        size = len(text_of(block.get("data")))
        return size // OPAQUE_CHARS, size, Flag.THINKING
    if what in _MEDIA:
        medium, text = _medium(block)
        if text:
            return count(text, "text"), len(text), Flag.MEDIA
        return _FACTS.media_tokens, medium.bytes, Flag.MEDIA
    view = _read_block(block)
    if isinstance(view, ToolUse):
        shown = repr(block.get("input"))
        return CALL_OVERHEAD + count(shown, "json"), len(shown), 0
    if isinstance(view, ToolResult):
        flags = (Flag.PROVISIONAL if view.provisional else 0) | (Flag.MEDIA if view.media_bytes else 0)
        return CALL_OVERHEAD + (count(view.text, "json") if view.text else 0), len(view.text) + view.media_bytes, flags
    text = view.text if isinstance(view, (Opaque, Text)) else ""
    return count(text, "json") if text else 0, len(text), 0


def _read(content: Any) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(content),) if content else ()
    return tuple(_read_block(_block_dict(block)) for block in _blocks(content))


def _read_block(block: dict[str, Any]) -> Block:
    kind = type_of(block)
    if kind == "text":
        return Text(text_of(block.get("text")))
    if kind == "tool_use":
        return ToolUse(text_of(block.get("id")), text_of(block.get("name")), block.get("input"))
    if kind == "tool_result":
        text, size = _result_text(block.get("content"))
        return ToolResult(
            text_of(block.get("tool_use_id")),
            text,
            error=block.get("is_error") is True,
            provisional=provisional(text),
            media_bytes=size,
        )
    if kind == "thinking":
        return Thinking(text_of(block.get("thinking")))
    if kind == "redacted_thinking":
        return Thinking()
    if kind in _MEDIA:
        return _medium(block)[0]
    if kind in _SERVER_USES:
        return ToolUse(text_of(block.get("id")), text_of(block.get("name")), block.get("input"), server=True)
    if isinstance(kind, str) and kind.endswith("_tool_result"):
        text, size = _result_text(block.get("content"))
        error = block.get("is_error") is True or "error" in str(field(block.get("content"), "type", ""))
        return ToolResult(text_of(block.get("tool_use_id")), text, error=error, server=True, media_bytes=size)
    if kind == "compaction":
        return Opaque("compaction", text_of(block.get("content")))
    return opaque(block)


def _medium(block: dict[str, Any]) -> tuple[Media, str]:
    """Give an image, document or upload, and the text of a document that is plain text."""
    kind = type_of(block)
    if kind == "container_upload":
        return Media("file"), ""
    source = block.get("source")
    if type(source) is not dict:
        source = {}
    media_type = text_of(source.get("media_type"))
    data = source.get("data")
    size = len(data) if isinstance(data, (str, bytes)) else 0
    if kind == "image":
        return Media("image", media_type, size), ""
    if source.get("type") == "text":
        return Media("document", media_type or "text/plain", size), text_of(data)
    if source.get("type") == "content":
        text, bulk = _result_text(source.get("content"))
        return Media("document", "text/plain", bulk + len(text)), text
    return Media(media_kind(media_type, "document"), media_type, size), ""


def _result_text(content: Any) -> tuple[str, int]:
    if isinstance(content, str):
        return content, 0
    if isinstance(content, dict):
        return text_of(content), 0
    texts: list[str] = []
    size = 0
    for inner in _blocks(content):
        block = _block_dict(inner)
        kind = type_of(block)
        if kind == "text":
            texts.append(text_of(block.get("text")))
        elif kind in _MEDIA:
            medium, text = _medium(block)
            texts.append(text or describe(medium))
            size += medium.bytes
        else:
            texts.append(text_of(block))
    return "\n".join(texts), size


def _edited(block: Any, edit: Edit) -> Any:
    if isinstance(edit, SetText):
        return edit.text if isinstance(block, str) else changed(block, {"text": edit.text})
    if isinstance(edit, SetResult):
        if field(block, "type") not in ("tool_result", "mcp_tool_result"):
            return _server_result(block, edit.text)
        as_list = isinstance(field(block, "content"), (list, tuple))
        return changed(block, {"content": [{"type": "text", "text": edit.text}] if as_list else edit.text})
    if isinstance(edit, SetArguments):
        return changed(block, {"input": edit.arguments})
    if isinstance(edit, SetMedia):
        note = {"type": "text", "text": edit.text}
        marker = field(block, "cache_control")
        return {**note, "cache_control": marker} if marker else note
    raise InputError(f"{type(edit).__name__} is no edit of a block")


def _server_result(block: Any, text: str) -> Any:
    """Shorten what the provider's own tool gave, in the shape that its type demands; one without room for a text stays.

    Search results become an empty list: a text is no search result.
    """
    content = field(block, "content")
    if isinstance(content, (list, tuple)):
        return changed(block, {"content": []})
    if field(content, "stdout") is not None:
        return changed(block, {"content": changed(content, {"stdout": text, "stderr": ""})})
    document = field(content, "content")
    if field(document, "source") is not None:
        source = {"type": "text", "media_type": "text/plain", "data": text}
        return changed(block, {"content": changed(content, {"content": changed(document, {"source": source})})})
    return block
