"""Amazon Bedrock Converse messages.

One message holds several blocks; a block is a dictionary with one key that names it. Media are raw ``bytes``. A
``cachePoint`` is a block of its own that weighs nothing.

The rules are checked in ``bedrock_rules``.

Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from wakeful.dialects import serial
from wakeful.dialects.bedrock_rules import validate
from wakeful.dialects.facts import FACTS
from wakeful.dialects.native import (
    BLOCK_BYTES,
    CALL_OVERHEAD,
    OPAQUE_CHARS,
    WIRE_OVERHEAD,
    brief,
    by_block,
    changed,
    describe,
    field,
    opaque,
    plain,
    provisional,
    provisional_value,
    text_of,
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

_FACTS = FACTS["bedrock"]
_OVERHEAD = _FACTS.message_overhead
_KINDS = {"user": Kind.USER, "assistant": Kind.ASSISTANT}
_MEDIA: dict[str, Literal["image", "document", "audio", "video"]] = {
    "image": "image",
    "document": "document",
    "video": "video",
    "audio": "audio",
}
_NAMES = frozenset(
    {
        *_MEDIA,
        "text",
        "toolUse",
        "toolResult",
        "reasoningContent",
        "guardContent",
        "cachePoint",
        "citationsContent",
        "searchResult",
    }
)
_SIGNS = 8
"""Messages that are looked at: the shape of the first ones decides."""
_new = tuple.__new__


class Bedrock:
    """The dialect of Amazon Bedrock Converse."""

    name = "bedrock"
    facts: Facts = _FACTS

    def recognises(self, messages: Sequence[Any]) -> float:
        """Say how surely these are Converse messages: lists of blocks named by their key, without a ``type``."""
        if not len(messages):
            return 0.0
        sure = 0.0
        for message in messages[:_SIGNS]:
            if type(message) is not dict or message.get("role") not in ("user", "assistant") or len(message) > 4:
                return 0.0
            content = message.get("content")
            if type(content) is not list:
                return 0.0
            for block in content:
                if type(block) is not dict or "type" in block or not any(key in _NAMES for key in block):
                    return 0.0
                sure = 1.0
        return sure

    def weigh(self, message: Any, count: Count) -> Weight:
        """Weigh a message in one pass. Arguments and JSON results are measured by their ``repr``, as long as their JSON."""
        if type(message) is not dict:
            message = plain(message)
        kind = _KINDS[_role(message)]
        content = _content(message)
        tokens, size, flags, own = _OVERHEAD, WIRE_OVERHEAD + BLOCK_BYTES * len(content), 0, False
        calls: tuple[str, ...] = ()
        results: tuple[str, ...] = ()
        for block in content:
            if type(block) is not dict:
                block = _block_dict(block)
            if "text" in block:
                text = text_of(block["text"])
                if text:
                    tokens += count(text, "text")
                    size += len(text)
                own = True
            elif "toolUse" in block:
                use = block["toolUse"]
                shown = repr(field(use, "input"))
                tokens += CALL_OVERHEAD + count(shown, "json")
                size += len(shown)
                if field(use, "type") != "server_tool_use":
                    calls += (text_of(field(use, "toolUseId")),)
            elif "toolResult" in block:
                more, bulk, bits = _weigh_result(block["toolResult"], count)
                tokens += more
                size += bulk
                flags |= bits
                if _is_client(block["toolResult"]):
                    results += (text_of(field(block["toolResult"], "toolUseId")),)
            elif "cachePoint" not in block:
                more, bulk, bits = _weigh_other(block, count)
                tokens += more
                size += bulk
                flags |= bits
                own = True
        if calls and kind == Kind.ASSISTANT:
            kind = Kind.CALLS
        elif results and not own and kind == Kind.USER:
            kind = Kind.RESULTS
        return _new(Weight, (kind, tokens, calls, results, size, flags))

    def read(self, message: Any) -> View:
        """Read a message whole."""
        message = plain(message)
        role: Role = _role(message)
        blocks = tuple(_block(_block_dict(block)) for block in _content(message))
        told = [block for block in blocks if not (isinstance(block, Opaque) and block.kind == "cachePoint")]
        if role == "user" and told and all(isinstance(block, ToolResult) for block in told):
            role = "tool"
        return View(role, blocks)

    def rewrite(self, message: Any, edits: Sequence[Edit]) -> Any | None:
        """Return the message with the edits made, or None when nothing but cache points is left of it."""
        if not edits:
            return message
        _role(plain(message))
        content = _content(message)
        blocks = [_block(_block_dict(block)) for block in content]
        todo = by_block(edits, blocks)
        if not todo:
            return message
        left: list[Any] = []
        for i, block in enumerate(content):
            edit = todo.get(i)
            if edit is None:
                left.append(block)
            elif not isinstance(edit, Remove):
                left.append(_edited(block, edit))
        if all(isinstance(block, dict) and "cachePoint" in block for block in left):
            return None
        return changed(message, {"content": left})

    def note(self, text: str, *, role: Literal["user", "system"] = "user", id: str | None = None) -> Any:
        """Make a user message of one text: the system prompt stands outside the messages, which have no ids."""
        return {"role": "user", "content": [{"text": text}]}

    def answer(self, call_id: str, text: str, *, name: str = "", error: bool = True) -> Any:
        """Make a user message with one result."""
        result: dict[str, Any] = {"toolUseId": call_id, "content": [{"text": text}]}
        if error:
            result["status"] = "error"
        return {"role": "user", "content": [{"toolResult": result}]}

    def merge(self, messages: Sequence[Any]) -> Any:
        """Make one message of neighbours of one role: results first, everything else in order after them."""
        if len(messages) == 1:
            return messages[0]
        roles = {_role(plain(message)) for message in messages}
        if len(roles) != 1:
            raise InputError(f"only messages of one role can be merged; these are {sorted(roles)}")
        blocks = [{"text": block} if isinstance(block, str) else block for m in messages for block in _content(m)]
        first = [block for block in blocks if "toolResult" in block]
        if first:
            blocks = first + [block for block in blocks if "toolResult" not in block]
        return {"role": roles.pop(), "content": blocks}

    def dumps(self, message: Any) -> str:
        """Serialise a message; raw bytes are kept."""
        return serial.dumps(message)

    def loads(self, text: str) -> Any:
        """Give back a message from ``dumps``."""
        return serial.loads(text)

    def validate(
        self,
        messages: Sequence[Any],
        *,
        thinking: bool = False,
        open_tail: bool = True,
        strict: bool = False,
        tool_config: bool = True,
    ) -> list[Problem]:
        """Check the rules of ``bedrock_rules``. ``tool_config``: the request has one (B1); ``thinking`` changes nothing."""
        parsed = [(_role(plain(m)), [_block_dict(block) for block in _content(plain(m))]) for m in messages]
        return validate(parsed, open_tail=open_tail, strict=strict, tool_config=tool_config)


DIALECT = Bedrock()


def _role(message: dict[str, Any]) -> Literal["user", "assistant"]:
    role = message.get("role")
    if role == "user" or role == "assistant":
        return role  # type: ignore[no-any-return]  # one of the two by the line above
    raise InputError(f"a Converse message needs a role of user or assistant; it has {brief(role)}: {brief(message)}")


def _content(message: Any) -> list[Any]:
    content = field(message, "content")
    if content is None or content == "":
        return []
    return list(content) if isinstance(content, (list, tuple)) else [content]


def _block_dict(block: Any) -> dict[str, Any]:
    if type(block) is dict:
        return block
    if isinstance(block, str):
        return {"text": block}
    try:
        return plain(block, "a content block")
    except InputError:
        return {type(block).__name__: block}


def _is_client(result: Any) -> bool:
    kind = field(result, "type")
    return kind is None or kind == "tool_result"


def _weigh_result(result: Any, count: Count) -> tuple[int, int, int]:
    tokens, size, flags = CALL_OVERHEAD, 0, 0
    for inner in _content(result):
        inner = _block_dict(inner)
        text = inner.get("text")
        if type(text) is not str:
            if "json" in inner:
                text = repr(inner["json"])
            else:
                more, bulk, bits = _weigh_other(inner, count)
                tokens += more
                size += bulk
                flags |= bits
                continue
        if text:
            tokens += count(text, "json" if text[0] in "{[" else "text")
            size += len(text)
    return tokens, size, flags | (Flag.PROVISIONAL if _waits(result) else 0)


def _weigh_other(block: dict[str, Any], count: Count) -> tuple[int, int, int]:
    found = _block(block)
    if isinstance(found, Media):
        return _FACTS.media_tokens, found.bytes, Flag.MEDIA
    if isinstance(found, Thinking):
        hidden = field(block.get("reasoningContent"), "redactedContent")
        size = len(hidden) if isinstance(hidden, (str, bytes)) else 0
        tokens = count(found.text, "text") if found.text else size // OPAQUE_CHARS
        return tokens, size + len(found.text), Flag.THINKING
    text = found.text if isinstance(found, (Opaque, Text)) else ""
    return count(text, "json") if text else 0, len(text), 0


def _block(block: dict[str, Any]) -> Block:
    if "text" in block:
        return Text(text_of(block["text"]))
    if "toolUse" in block:
        use = block["toolUse"]
        server = field(use, "type") == "server_tool_use"
        return ToolUse(
            text_of(field(use, "toolUseId")), text_of(field(use, "name")), field(use, "input"), server=server
        )
    if "toolResult" in block:
        result = block["toolResult"]
        text, size = _result_text(result)
        return ToolResult(
            text_of(field(result, "toolUseId")),
            text,
            error=field(result, "status") == "error",
            provisional=_waits(result),
            server=not _is_client(result),
            media_bytes=size,
        )
    if "reasoningContent" in block:
        inner = field(block["reasoningContent"], "reasoningText")
        return Thinking(text_of(field(inner, "text")) if inner is not None else "")
    for name, kind in _MEDIA.items():
        if name in block:
            return _medium(kind, block[name])
    if "cachePoint" in block:
        return Opaque("cachePoint")
    if "citationsContent" in block:
        texts = [text_of(field(part, "text")) for part in field(block["citationsContent"], "content") or ()]
        return Opaque("citationsContent", "\n".join(texts) or opaque(block).text)
    return opaque(block, next(iter(block), "empty"))


def _medium(kind: Literal["image", "document", "audio", "video"], value: Any) -> Media:
    source = field(value, "source")
    data = field(source, "bytes") if source is not None else None
    if data is None and source is not None:
        data = field(source, "text")
    # Raw bytes go on the wire as base64: four characters for three bytes.
    size = (len(data) + 2) // 3 * 4 if isinstance(data, (bytes, bytearray)) else len(text_of(data))
    return Media(kind, text_of(field(value, "format")), size)


def _result_text(result: Any) -> tuple[str, int]:
    texts, size = [], 0
    for inner in _content(result):
        inner = _block_dict(inner)
        if "json" in inner:
            texts.append(text_of(inner["json"]))
            continue
        block = _block(inner)
        if isinstance(block, Media):
            texts.append(describe(block))
            size += block.bytes
        else:
            texts.append(block.text if isinstance(block, (Text, Opaque)) else "")
    return "\n".join(texts), size


def _waits(result: Any) -> bool:
    content = _content(result)
    if len(content) != 1:
        return False
    only = _block_dict(content[0])
    return provisional_value(only["json"]) if "json" in only else provisional(text_of(only.get("text")))


def _edited(block: Any, edit: Edit) -> Any:
    if isinstance(edit, SetText):
        return edit.text if isinstance(block, str) else changed(block, {"text": edit.text})
    if isinstance(edit, SetMedia):
        return {"text": edit.text}
    if isinstance(edit, SetArguments):
        return changed(block, {"toolUse": changed(block["toolUse"], {"input": edit.arguments})})
    if isinstance(edit, SetResult):
        return changed(block, {"toolResult": changed(block["toolResult"], {"content": [{"text": edit.text}]})})
    raise InputError(f"{type(edit).__name__} is no edit of a block")
