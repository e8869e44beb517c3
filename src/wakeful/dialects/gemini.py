"""Gemini generateContent: contents of role ``user`` and ``model`` with parts.

Keys come in camelCase (REST) or snake_case (the Python SDK); both are read, and an edit keeps the one that is there. A part
is one block. Calls may carry no id: then they are paired by name and place (``native.with_ordinals``). A thought part is
thinking; a ``thoughtSignature`` on a call or text is part of it and stays with it.

The rules are checked in ``gemini_rules``.

Source: https://ai.google.dev/api/generate-content (Content, Part), https://ai.google.dev/gemini-api/docs/thought-signatures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from wakeful.dialects import serial
from wakeful.dialects.facts import FACTS
from wakeful.dialects.gemini_rules import validate
from wakeful.dialects.native import (
    BLOCK_BYTES,
    CALL_OVERHEAD,
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

_FACTS = FACTS["gemini"]
_OVERHEAD = _FACTS.message_overhead
_ROLES: dict[str, Role] = {"user": "user", "model": "assistant", "function": "user", "tool": "user", "system": "system"}
_KINDS: dict[Role, int] = {"user": Kind.USER, "assistant": Kind.ASSISTANT, "system": Kind.SYSTEM}
_CALL = ("functionCall", "function_call")
_RESPONSE = ("functionResponse", "function_response")
_INLINE = ("inlineData", "inline_data")
_FILE = ("fileData", "file_data")
_CODE = ("executableCode", "executable_code")
_CODE_RESULT = ("codeExecutionResult", "code_execution_result")
_SIGNS = 8
"""Messages that are looked at: the shape of the first ones decides."""
_new = tuple.__new__


class Gemini:
    """The dialect of Gemini generateContent."""

    name = "gemini"
    facts: Facts = _FACTS

    def recognises(self, messages: Sequence[Any]) -> float:
        """Say how surely these are Gemini contents: parts in place of content."""
        for message in messages[:_SIGNS]:
            role = field(message, "role")
            if field(message, "parts") is None or field(message, "content") is not None:
                return 0.0
            if role is not None and (type(role) is not str or role not in _ROLES):
                return 0.0
        return 1.0 if len(messages) else 0.0

    def weigh(self, message: Any, count: Count) -> Weight:
        """Weigh a content in one pass. Arguments and responses are measured by their ``repr``, as long as their JSON."""
        if type(message) is not dict:
            message = plain(message)
        kind = _KINDS[_role(message)]
        parts = _parts(message)
        tokens, size, flags, own = _OVERHEAD, WIRE_OVERHEAD + BLOCK_BYTES * len(parts), 0, False
        calls: list[str] = []
        results: list[str] = []
        seen: dict[str, int] = {}
        for part in parts:
            if type(part) is not dict:
                part = _part(part)
            text = part.get("text")
            if type(text) is str:
                if text:
                    tokens += count(text, "text")
                    size += len(text)
                if part.get("thought") is True:
                    flags |= Flag.THINKING
                own = True
                continue
            call = _get(part, _CALL)
            response = _get(part, _RESPONSE) if call is None else None
            if call is not None:
                shown = repr(field(call, "args"))
                tokens += CALL_OVERHEAD + count(shown, "json")
                size += len(shown)
                calls.append(_pair_id(call, seen))
            elif response is not None:
                more, bulk, bits = _weigh_response(response, count)
                tokens += more
                size += bulk
                flags |= bits
                results.append(_pair_id(response, seen))
            else:
                more, bulk, bits = _weigh_other(part, count)
                tokens += more
                size += bulk
                flags |= bits
                own = True
        if calls and kind == Kind.ASSISTANT:
            kind = Kind.CALLS
        elif results and not own and kind == Kind.USER:
            kind = Kind.RESULTS
        return _new(Weight, (kind, tokens, tuple(calls), tuple(results), size, flags))

    def read(self, message: Any) -> View:
        """Read a content whole."""
        message = plain(message)
        role = _role(message)
        blocks = _read(_parts(message))
        if role == "user" and blocks and all(isinstance(block, ToolResult) for block in blocks):
            role = "tool"
        return View(role, blocks)

    def rewrite(self, message: Any, edits: Sequence[Edit]) -> Any | None:
        """Return the content with the edits made, or None when nothing is left of it."""
        if not edits:
            return message
        _role(plain(message))
        parts = _parts(message)
        blocks = _read(parts)
        todo = by_block(edits, blocks)
        if not todo:
            return message
        left: list[Any] = []
        for i, part in enumerate(parts):
            edit = todo.get(i)
            if edit is None:
                left.append(part)
            elif not isinstance(edit, Remove):
                left.append(_edited(part, blocks[i], edit))
        return changed(message, {"parts": left}) if left else None

    def note(self, text: str, *, role: Literal["user", "system"] = "user", id: str | None = None) -> Any:
        """Make a user content of one text: the system instruction stands outside the contents, which have no ids."""
        return {"role": "user", "parts": [{"text": text}]}

    def answer(self, call_id: str, text: str, *, name: str = "", error: bool = True) -> Any:
        """Make a user content with one function response; an id that was made from the name is left out again."""
        made = not name or call_id == name or call_id.startswith(f"{name}#")
        response: dict[str, Any] = {"name": name if name else call_id.partition("#")[0]}
        if not made:
            response["id"] = call_id
        response["response"] = {"error" if error else "result": text}
        return {"role": "user", "parts": [{"functionResponse": response}]}

    def merge(self, messages: Sequence[Any]) -> Any:
        """Make one content of neighbours of one role: function responses first, everything else in order after them."""
        if len(messages) == 1:
            return messages[0]
        roles = {_role(plain(message)) for message in messages}
        if len(roles) != 1:
            raise InputError(f"only contents of one role can be merged; these are {sorted(roles)}")
        parts = [part for message in messages for part in _parts(message)]
        first = [part for part in parts if _get(part, _RESPONSE) is not None]
        if first:
            parts = first + [part for part in parts if _get(part, _RESPONSE) is None]
        role = field(messages[0], "role") or "user"
        return {"role": role, "parts": parts}

    def dumps(self, message: Any) -> str:
        """Serialise a content."""
        return serial.dumps(message)

    def loads(self, text: str) -> Any:
        """Give back a content from ``dumps``."""
        return serial.loads(text)

    def validate(
        self, messages: Sequence[Any], *, thinking: bool = False, open_tail: bool = True, strict: bool = False
    ) -> list[Problem]:
        """Check the rules of ``gemini_rules`` over the whole list."""
        parsed = [(_role(plain(m)), [_part(part) for part in _parts(m)], self.read(m).blocks) for m in messages]
        return validate(parsed, thinking=thinking, open_tail=open_tail, strict=strict)


DIALECT = Gemini()


def _role(message: dict[str, Any]) -> Role:
    role = message.get("role")
    if role is None and message.get("parts") is not None:
        return "user"
    if type(role) is not str or role not in _ROLES:
        raise InputError(f"a Gemini content needs a role of user or model; it has {brief(role)}: {brief(message)}")
    return _ROLES[role]


def _parts(message: Any) -> list[Any]:
    parts = field(message, "parts")
    if parts is None:
        return []
    return list(parts) if isinstance(parts, (list, tuple)) else [parts]


def _part(part: Any) -> dict[str, Any]:
    if type(part) is dict:
        return part
    if isinstance(part, str):
        return {"text": part}
    try:
        return plain(part, "a part")
    except InputError:
        return {type(part).__name__: part}


def _get(part: Any, keys: tuple[str, str]) -> Any:
    found = field(part, keys[0])
    return found if found is not None else field(part, keys[1])


def _key(part: Any, keys: tuple[str, str]) -> str:
    """Give the spelling that the part uses."""
    return keys[0] if field(part, keys[0]) is not None else keys[1]


def _pair_id(value: Any, seen: dict[str, int]) -> str:
    found = field(value, "id")
    if isinstance(found, str) and found:
        return found
    name = text_of(field(value, "name"))
    seen[name] = count = seen.get(name, 0) + 1
    return name if count == 1 else f"{name}#{count}"


def _weigh_response(response: Any, count: Count) -> tuple[int, int, int]:
    text, media, size = _response_text(field(response, "response"), field(response, "parts"))
    tokens = CALL_OVERHEAD + media * _FACTS.media_tokens
    if text:
        tokens += count(text, "json" if text[0] in "{[" else "text")
    waits = provisional_value(field(response, "response")) or provisional(text)
    flags = (Flag.MEDIA if media else 0) | (Flag.PROVISIONAL if waits else 0)
    return tokens, len(text) + size, flags


def _weigh_other(part: dict[str, Any], count: Count) -> tuple[int, int, int]:
    block = _block(part, {})
    if isinstance(block, Media):
        return _FACTS.media_tokens, block.bytes, Flag.MEDIA
    text = block.text if isinstance(block, (Opaque, ToolResult, Thinking)) else ""
    if isinstance(block, ToolUse):
        text = text_of(block.arguments)
    flags = Flag.THINKING if isinstance(block, Thinking) else 0
    return count(text, "json") if text else 0, len(text), flags


def _read(parts: Sequence[Any]) -> tuple[Block, ...]:
    seen: dict[str, int] = {}
    return tuple(_block(_part(part), seen) for part in parts)


def _block(part: dict[str, Any], seen: dict[str, int]) -> Block:
    text = part.get("text")
    if isinstance(text, str):
        return Thinking(text) if part.get("thought") is True else Text(text)
    call = _get(part, _CALL)
    if call is not None:
        return ToolUse(_pair_id(call, seen), text_of(field(call, "name")), field(call, "args", {}))
    response = _get(part, _RESPONSE)
    if response is not None:
        value = field(response, "response")
        shown, _, size = _response_text(value, field(response, "parts"))
        return ToolResult(
            _pair_id(response, seen),
            shown,
            error=isinstance(value, dict) and bool(value.get("error")),
            provisional=provisional_value(value) or provisional(shown),
            media_bytes=size,
            name=text_of(field(response, "name")),
        )
    inline = _get(part, _INLINE)
    file = _get(part, _FILE)
    if inline is not None or file is not None:
        return _medium(inline, file)
    if _get(part, _CODE) is not None:
        return ToolUse("", "code_execution", _get(part, _CODE), server=True)
    if _get(part, _CODE_RESULT) is not None:
        return ToolResult("", text_of(field(_get(part, _CODE_RESULT), "output")), server=True)
    if part.get("thought") is True:
        return Thinking()
    return opaque(part, next((key for key in part if key not in ("thought", "thoughtSignature")), "empty"))


def _medium(inline: Any, file: Any) -> Media:
    value = inline if inline is not None else file
    media_type = text_of(_get(value, ("mimeType", "mime_type")))
    data = field(inline, "data") if inline is not None else None
    # Raw bytes go on the wire as base64: four characters for three bytes.
    size = (
        len(data) if isinstance(data, str) else (len(data) + 2) // 3 * 4 if isinstance(data, (bytes, bytearray)) else 0
    )
    return Media(media_kind(media_type, "file"), media_type, size)


_TEXT_KEYS = ("result", "output", "error")


def _response_text(value: Any, parts: Any) -> tuple[str, int, int]:
    """Give a response's text, the number of its media, and their bytes. A response of one text is that text."""
    key = next(iter(value)) if type(value) is dict and len(value) == 1 else None
    text = value[key] if key in _TEXT_KEYS and isinstance(value[key], str) else text_of(value)
    media, size = 0, 0
    for part in parts if isinstance(parts, (list, tuple)) else ():
        inline, file = _get(part, _INLINE), _get(part, _FILE)
        if inline is not None or file is not None:
            medium = _medium(inline, file)
            text += f"\n{describe(medium)}"
            media += 1
            size += medium.bytes
    return text, media, size


def _edited(part: Any, block: Block, edit: Edit) -> Any:
    if isinstance(edit, SetText):
        return edit.text if isinstance(part, str) else changed(part, {"text": edit.text})
    if isinstance(edit, SetMedia):
        if isinstance(part, dict):
            return {"text": edit.text}
        return changed(part, {"text": edit.text}, [key for key in (*_INLINE, *_FILE) if field(part, key) is not None])
    if isinstance(edit, SetArguments):
        if _get(part, _CALL) is None:
            return part
        key = _key(part, _CALL)
        return changed(part, {key: changed(field(part, key), {"args": edit.arguments})})
    if isinstance(edit, SetResult):
        if _get(part, _RESPONSE) is None:
            key = _key(part, _CODE_RESULT)
            return changed(part, {key: changed(field(part, key), {"output": edit.text})})
        key = _key(part, _RESPONSE)
        old = field(part, key)
        value = field(old, "response")
        name = "error" if isinstance(block, ToolResult) and block.error else "result"
        if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in _TEXT_KEYS:
            name = next(iter(value))
        drop = ("parts",) if field(old, "parts") is not None else ()
        return changed(part, {key: changed(old, {"response": {name: edit.text}}, drop)})
    raise InputError(f"{type(edit).__name__} is no edit of a part")
