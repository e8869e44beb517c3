"""OpenAI Chat Completions messages, and those of the many servers that speak the same.

One message holds several blocks, in this order: reasoning (``reasoning_content`` or ``reasoning``, as DeepSeek, vLLM
and OpenRouter give it), the content (a string, or its parts), a refusal, audio, the tool calls, a legacy
``function_call``. A result is a message of its own. Roles: ``developer`` counts as system, ``function`` as tool.

Rules checked by ``validate``: C1 a result answers a call of the assistant message before it, once; C2 every call is
answered right after its message, before any other role; with ``strict``, C4: user and assistant take turns, as some
local chat templates demand. C3 (it fits) needs a model and is the meter's.

Source: https://platform.openai.com/docs/api-reference/chat/create
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from wakeful.dialects import serial
from wakeful.dialects.facts import FACTS
from wakeful.dialects.native import (
    BLOCK_BYTES,
    CALL_OVERHEAD,
    NOTICE_CHARS,
    OPAQUE_CHARS,
    WIRE_OVERHEAD,
    as_texts,
    brief,
    by_block,
    changed,
    field,
    opaque,
    plain,
    provisional,
    text_of,
)
from wakeful.dialects.openai_chat_parts import (
    LEGACY,
    as_part,
    call_block,
    call_usual,
    content_block,
    legacy_block,
    raw_arguments,
    result_text,
)
from wakeful.dialects.protocol import (
    Block,
    Columns,
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

_FACTS = FACTS["openai_chat"]
_OVERHEAD = _FACTS.message_overhead
_KINDS = {
    "system": Kind.SYSTEM,
    "developer": Kind.SYSTEM,
    "user": Kind.USER,
    "assistant": Kind.ASSISTANT,
    "tool": Kind.RESULTS,
    "function": Kind.RESULTS,
}
_ROLES: dict[str, Role] = {"developer": "system", "function": "tool"}
_REASONING = ("reasoning_content", "reasoning")
_PARTS = frozenset({"text", "image_url", "input_audio", "file", "refusal", "video_url"})
_USER, _ASSISTANT, _CALLS, _RESULTS, _WAITS = Kind.USER, Kind.ASSISTANT, Kind.CALLS, Kind.RESULTS, Flag.PROVISIONAL
_RESULT_TOKENS, _RESULT_BYTES = _OVERHEAD + CALL_OVERHEAD, WIRE_OVERHEAD + BLOCK_BYTES
_NOTICE = WIRE_OVERHEAD + NOTICE_CHARS
_new = tuple.__new__


class OpenAIChat:
    """The dialect of OpenAI Chat Completions."""

    name = "openai_chat"
    facts: Facts = _FACTS

    def recognises(self, messages: Sequence[Any]) -> float:
        """Say how surely these are Chat messages; a list of roles and plain text alone scores 0.5."""
        sure = 0.5
        for message in messages:
            if type(message) is dict:
                role, content = message.get("role"), message.get("content")
                keys = message
            else:
                role, content = getattr(message, "role", None), getattr(message, "content", None)
                keys = getattr(message, "model_fields_set", {})
            if type(role) is not str or role not in _KINDS or (type(message) is dict and "parts" in message):
                return 0.0
            if "tool_calls" in keys or "tool_call_id" in keys or "function_call" in keys or role == "function":
                return 1.0
            if type(content) is list:
                for part in content:
                    kind = field(part, "type")
                    if type(kind) is not str or kind not in _PARTS:
                        return 0.0
                    if kind != "text":
                        sure = 0.9
        return sure if len(messages) else 0.0

    def weigh(self, message: Any, count: Count) -> Weight:
        """Weigh a message in one pass."""
        if type(message) is not dict:
            message = plain(message)
        try:
            kind = _KINDS[message["role"]]
        except (KeyError, TypeError):
            raise _no_role(message) from None
        content = message.get("content")
        tokens, size, flags = _OVERHEAD, WIRE_OVERHEAD, 0
        if type(content) is str:
            if content:
                size += len(content)
                if content[0] in "{[":
                    tokens += count(content, "json")
                    if kind == _RESULTS and size <= _NOTICE and provisional(content):
                        flags = _WAITS
                else:
                    tokens += count(content, "text")
        elif content:
            more, size, flags = _weigh_parts(content, count)
            tokens += more
            if kind == _RESULTS and provisional(result_text(content)[0]):
                flags |= _WAITS
        if kind == _ASSISTANT:
            if len(message) == 2 and content is not None:
                return _new(Weight, (kind, tokens, (), (), size, flags))
            return _weigh_assistant(message, count, tokens, size, flags)
        if kind == _RESULTS:
            call_id = message.get("tool_call_id")
            if type(call_id) is not str:
                call_id = _result_id(message)
            return _new(Weight, (kind, tokens + CALL_OVERHEAD, (), (call_id,), size + BLOCK_BYTES, flags))
        return _new(Weight, (kind, tokens, (), (), size, flags))

    def weigh_all(self, messages: Sequence[Any], count: Count) -> Columns:
        """Weigh many: as ``weigh`` does each, with the usual shapes told apart here."""
        n = len(messages)
        text, code = as_texts(count)
        kinds, flags, tokens, sizes = bytearray(n), bytearray(n), [0] * n, [0] * n
        calls: list[tuple[str, ...]] = [()] * n
        results: list[tuple[str, ...]] = [()] * n
        role: Any
        content: Any
        for i, message in enumerate(messages):
            try:
                role, content = message["role"], message["content"]
            except (KeyError, TypeError):
                role = content = None
            if type(message) is not dict:
                pass
            elif type(content) is str:
                first = content[0] if content else "{"
                if first == "{" or first == "[":
                    pass
                elif role == "tool":
                    call_id = message.get("tool_call_id")
                    if type(call_id) is str:
                        kinds[i] = _RESULTS
                        tokens[i] = text(content) + _RESULT_TOKENS
                        sizes[i] = len(content) + _RESULT_BYTES
                        results[i] = (call_id,)
                        continue
                elif role == "user" or (role == "assistant" and len(message) == 2):
                    kinds[i] = _USER if role == "user" else _ASSISTANT
                    tokens[i] = text(content) + _OVERHEAD
                    sizes[i] = len(content) + WIRE_OVERHEAD
                    continue
            elif content is None and role == "assistant" and len(message) == 3:
                uses = message.get("tool_calls")
                if type(uses) is list:
                    ids: tuple[str, ...] = ()
                    total, size = _OVERHEAD, WIRE_OVERHEAD
                    try:
                        for use in uses:
                            call_id, arguments = use["id"], use["function"]["arguments"]
                            if not (type(arguments) is type(call_id) is str):
                                break
                            total += CALL_OVERHEAD + (code(arguments) if arguments else 0)
                            size += BLOCK_BYTES + len(arguments)
                            ids += (call_id,)
                    except (KeyError, TypeError):
                        ids = ()
                    if ids and len(ids) == len(uses):
                        kinds[i], tokens[i], sizes[i], calls[i] = _CALLS, total, size, ids
                        continue
            kinds[i], tokens[i], calls[i], results[i], sizes[i], flags[i] = self.weigh(message, count)
        return Columns(bytes(kinds), tokens, calls, results, sizes, bytes(flags))

    def read(self, message: Any) -> View:
        """Read a message whole."""
        if type(message) is dict:
            view = _read_usual(message)
            if view is not None:
                return view
        message = plain(message)
        role = _role(message)
        shown: Role = _ROLES.get(role, role)  # type: ignore[arg-type]  # _role has checked that it is a known one
        message_id = message.get("id")
        return View(
            shown, tuple(block for _, block in _slots(message, role)), message_id if type(message_id) is str else None
        )

    def rewrite(self, message: Any, edits: Sequence[Edit]) -> Any | None:
        """Return the message with the edits made, or None when nothing is left of it."""
        if not edits:
            return message
        simple = plain(message)
        role = _role(simple)
        slots = _slots(simple, role)
        todo = by_block(edits, [block for _, block in slots])
        if not todo:
            return message
        if all(isinstance(todo.get(i), Remove) for i in range(len(slots))):
            return None
        return _rewrite(message, slots, todo)

    def note(self, text: str, *, role: Literal["user", "system"] = "user", id: str | None = None) -> Any:
        """Make a message of one text; the format has no message ids."""
        return {"role": role, "content": text}

    def answer(self, call_id: str, text: str, *, name: str = "", error: bool = True) -> Any:
        """Make a message that answers a call. The format has no error flag: the text says it."""
        if call_id.startswith(LEGACY):
            return {"role": "function", "name": call_id[len(LEGACY) :], "content": text}
        return {"role": "tool", "tool_call_id": call_id, "content": text}

    def merge(self, messages: Sequence[Any]) -> Any:
        """Make one message of neighbours of one role: their content as parts, their calls in order.

        Raises ``InputError`` for results (each is a message of its own) or several roles.
        """
        if len(messages) == 1:
            return messages[0]
        dicts = [plain(message) for message in messages]
        roles = {_role(message) for message in dicts}
        if len(roles) != 1 or roles & {"tool", "function"}:
            raise InputError(f"only messages of one role that are no results can be merged; these are {sorted(roles)}")
        merged: dict[str, Any] = {}
        parts: list[Any] = []
        calls: list[Any] = []
        for message in dicts:
            content = message.get("content")
            if type(content) is str:
                parts += [{"type": "text", "text": content}] if content else []
            else:
                parts += content or []
            calls += message.get("tool_calls") or []
            for key, value in message.items():
                if key in _REASONING and isinstance(merged.get(key), str) and isinstance(value, str):
                    merged[key] += value
                else:
                    merged.setdefault(key, value)
        merged["content"] = parts if parts else None
        if calls:
            merged["tool_calls"] = calls
        return merged

    def dumps(self, message: Any) -> str:
        """Serialise a message."""
        return serial.dumps(message)

    def loads(self, text: str) -> Any:
        """Give back a message from ``dumps``."""
        return serial.loads(text)

    def validate(
        self, messages: Sequence[Any], *, thinking: bool = False, open_tail: bool = True, strict: bool = False
    ) -> list[Problem]:
        """Check C1 and C2, with ``strict`` C4 too. ``thinking`` changes nothing here."""
        problems = _pairing(messages, open_tail)
        return problems + _alternation(messages) if strict else problems


DIALECT = OpenAIChat()


def _no_role(message: Any) -> InputError:
    role = message.get("role")
    return InputError(f"a Chat message needs a role of {', '.join(_KINDS)}; it has {brief(role)}: {brief(message)}")


def _role(message: dict[str, Any]) -> str:
    role = message.get("role")
    if type(role) is not str or role not in _KINDS:
        raise _no_role(message)
    return role


def _result_id(message: dict[str, Any]) -> str:
    call_id = message.get("tool_call_id")
    if call_id is None and message.get("role") == "function":
        return LEGACY + text_of(message.get("name"))
    return text_of(call_id)


def _weigh_parts(content: Any, count: Count) -> tuple[int, int, int]:
    """Weigh a content that is no string: tokens, bytes, flags."""
    tokens, size, flags = 0, WIRE_OVERHEAD, 0
    if not isinstance(content, (list, tuple)):
        shown = text_of(content)
        return count(shown, "json"), size + len(shown), 0
    for part in content:
        size += BLOCK_BYTES
        text: Any = part.get("text") if type(part) is dict else None
        if type(text) is not str:
            block: Block = Text(part) if type(part) is str else content_block(as_part(part))
            if isinstance(block, Media):
                tokens += _FACTS.media_tokens
                size += block.bytes
                flags = Flag.MEDIA
                continue
            text = block.text if isinstance(block, (Text, Opaque)) else ""
        if text:
            tokens += count(text, "json" if text[0] in "{[" else "text")
            size += len(text)
    return tokens, size, flags


def _weigh_assistant(message: dict[str, Any], count: Count, tokens: int, size: int, flags: int) -> Weight:
    calls: tuple[str, ...] = ()
    uses = message.get("tool_calls")
    if uses:
        if type(uses) is not list and not isinstance(uses, (list, tuple)):
            uses = ()
        size += BLOCK_BYTES * len(uses)
        for use in uses:
            try:
                call_id, arguments = use["id"], use["function"]["arguments"]
            except (KeyError, TypeError):
                call_id = arguments = None
            if type(arguments) is not str or type(call_id) is not str:
                call_id, arguments = text_of(field(use, "id")), raw_arguments(use)
            tokens += CALL_OVERHEAD + (count(arguments, "json") if arguments else 0)
            size += len(arguments)
            calls += (call_id,)
    if not message.keys() <= _PLAIN:
        for key in message.keys() - _PLAIN:
            more, bulk, bits, extra = _weigh_extra(message, key, count)
            tokens += more
            size += bulk
            flags |= bits
            calls += extra
    return _new(Weight, (_CALLS if calls else _ASSISTANT, tokens, calls, (), size, flags))


_PLAIN = frozenset({"role", "content", "tool_calls", "name", "annotations"})


def _weigh_extra(message: dict[str, Any], key: str, count: Count) -> tuple[int, int, int, tuple[str, ...]]:
    """Weigh a rarer field of an assistant message: tokens, bytes, flags, ids of calls."""
    value = message[key]
    if not value:
        return 0, 0, 0, ()
    if key == _reasoning(message):
        return count(value, "text"), len(value), Flag.THINKING, ()
    if key == "refusal":
        return (count(value, "text"), len(value), 0, ()) if type(value) is str else (0, 0, 0, ())
    if key == "audio":
        return _FACTS.media_tokens, len(text_of(field(value, "data"))), Flag.MEDIA, ()
    if key == "function_call":
        arguments = text_of(field(value, "arguments"))
        tokens = CALL_OVERHEAD + (count(arguments, "json") if arguments else 0)
        return tokens, BLOCK_BYTES + len(arguments), 0, (legacy_block(value).id,)
    if key == "reasoning_details":
        size = len(text_of(value))
        return 0 if _reasoning(message) else size // OPAQUE_CHARS, size, 0, ()
    return 0, 0, 0, ()


def _reasoning(message: dict[str, Any]) -> str | None:
    """Give the field that holds the reasoning's text."""
    for key in _REASONING:
        if type(message.get(key)) is str and message[key]:
            return key
    return None


_READ = frozenset({"role", "content", "tool_calls", "tool_call_id", "name"})
"""Fields of the messages that ``_read_usual`` knows; a field more is left to ``_slots``."""


def _read_usual(message: dict[str, Any]) -> View | None:
    """Read a message of plain text, calls with JSON arguments, or one plain result; None for any other."""
    role, content = message.get("role"), message.get("content")
    if (content is not None and type(content) is not str) or not message.keys() <= _READ:
        return None
    if role == "tool":
        call_id, name = message.get("tool_call_id"), message.get("name")
        if type(call_id) is not str or content is None:
            return None
        waits = content[:1] == "{" and provisional(content)
        return View("tool", (ToolResult(call_id, content, False, waits, False, 0, name if type(name) is str else ""),))
    if role == "assistant":
        blocks: list[Block] = [Text(content)] if content else []
        uses = message.get("tool_calls")
        if uses:
            if type(uses) is not list:
                return None
            for use in uses:
                block = call_usual(use)
                if block is None:
                    return None
                blocks.append(block)
        return View("assistant", tuple(blocks))
    if role == "user" or role == "system":
        return View(role, (Text(content),) if content else ())
    return None


Path = tuple[str, int]
"""Field of the message, and place in its list (-1: the field itself)."""


def _slots(message: dict[str, Any], role: str) -> list[tuple[Path, Block]]:
    content = message.get("content")
    if role in ("tool", "function"):
        text, media = result_text(content)
        name = message.get("name")
        result = ToolResult(
            _result_id(message),
            text,
            provisional=provisional(text),
            media_bytes=media,
            name=name if type(name) is str else "",
        )
        return [(("content", -1), result)]
    slots: list[tuple[Path, Block]] = []
    reasoning = _reasoning(message) if role == "assistant" else None
    if reasoning:
        slots.append(((reasoning, -1), Thinking(message[reasoning])))
    if isinstance(content, (list, tuple)):
        for i, part in enumerate(content):
            slots.append((("content", i), Text(part) if type(part) is str else content_block(as_part(part))))
    elif type(content) is str:
        slots += [(("content", -1), Text(content))] if content else []
    elif content is not None:
        slots.append((("content", -1), opaque(content, type(content).__name__)))
    if role != "assistant":
        return slots
    if type(message.get("refusal")) is str and message["refusal"]:
        slots.append((("refusal", -1), Text(message["refusal"])))
    if message.get("audio"):
        slots.append((("audio", -1), Media("audio", "", len(text_of(field(message["audio"], "data"))))))
    uses = message.get("tool_calls")
    for i, use in enumerate(uses if isinstance(uses, (list, tuple)) else ()):
        slots.append((("tool_calls", i), call_block(use)))
    if message.get("function_call"):
        slots.append((("function_call", -1), legacy_block(message["function_call"])))
    return slots


def _rewrite(message: Any, slots: Sequence[tuple[Path, Block]], todo: dict[int, Edit]) -> Any:
    changes: dict[str, Any] = {}
    drop: list[str] = []
    lists: dict[str, list[Any]] = {}
    for i, edit in todo.items():
        (key, place), block = slots[i]
        if place < 0:
            if isinstance(edit, Remove):
                drop.append(key)
            else:
                changes[key] = _edited(field(message, key), block, edit, whole=True)
            continue
        items = lists.setdefault(key, list(field(message, key)))
        items[place] = _GONE if isinstance(edit, Remove) else _edited(items[place], block, edit)
    for key, items in lists.items():
        left = [item for item in items if item is not _GONE]
        if left:
            changes[key] = left
        else:
            drop.append(key)
    if "content" in drop and field(message, "role") == "assistant":
        drop.remove("content")
        changes["content"] = None
    if any(key in _REASONING for key in drop):
        drop.append("reasoning_details")
    return changed(message, changes, drop)


_GONE = object()


def _edited(value: Any, block: Block, edit: Edit, whole: bool = False) -> Any:
    """Give a content, part or call with one edit made. ``whole``: the value is a field of the message."""
    if isinstance(edit, SetResult):
        return edit.text if not isinstance(value, (list, tuple)) else [{"type": "text", "text": edit.text}]
    if isinstance(edit, SetMedia):
        return edit.text if whole else {"type": "text", "text": edit.text}
    if isinstance(edit, SetText):
        if isinstance(value, str):
            return edit.text
        return changed(value, {"refusal" if field(value, "type") == "refusal" else "text": edit.text})
    if isinstance(edit, SetArguments):
        raw: Any = json.dumps(edit.arguments, ensure_ascii=False)
        if field(value, "type") == "custom" and field(value, "custom") is not None:
            return changed(value, {"custom": changed(field(value, "custom"), {"input": raw})})
        function = field(value, "function")
        if function is None:
            return changed(value, {"arguments": raw})
        if isinstance(field(function, "arguments"), dict):
            raw = edit.arguments
        return changed(value, {"function": changed(function, {"arguments": raw})})
    raise InputError(f"{type(edit).__name__} does not suit a {type(block).__name__}")


def _pairing(messages: Sequence[Any], open_tail: bool) -> list[Problem]:
    problems: list[Problem] = []
    waiting: dict[str, None] = {}
    opened = -1
    answered: set[str] = set()

    def close(last: bool) -> None:
        if waiting and not (last and open_tail):
            ids = ", ".join(waiting)
            problems.append(
                Problem(
                    "C2",
                    opened,
                    f"no tool message answers {ids} right after its call; add the results or remove the calls",
                )
            )
        waiting.clear()

    for index, message in enumerate(messages):
        simple = plain(message)
        role = _role(simple)
        if role in ("tool", "function"):
            call_id = _result_id(simple)
            if call_id in waiting:
                del waiting[call_id]
                answered.add(call_id)
                continue
            why = (
                "this result answers a call that is answered already; remove the second one"
                if call_id in answered
                else "this result answers no call of the assistant message before it; remove it or bring its call back"
            )
            problems.append(Problem("C1", index, f"{call_id or '(no id)'}: {why}"))
            continue
        close(False)
        answered.clear()
        if role == "assistant":
            opened = index
            for _, block in _slots(simple, role):
                if isinstance(block, ToolUse):
                    if block.id in waiting:
                        problems.append(Problem("C2", index, f"{block.id}: two calls of one message share an id"))
                    waiting[block.id] = None
    close(True)
    return problems


def _alternation(messages: Sequence[Any]) -> list[Problem]:
    problems = []
    before = ""
    for index, message in enumerate(messages):
        role = _role(plain(message))
        if role == before and role in ("user", "assistant"):
            problems.append(Problem("C4", index, f"two {role} messages in a row; merge them into one"))
        elif role == "assistant" and before in ("", "system", "developer"):
            problems.append(Problem("C4", index, "the assistant speaks first; put a user message before it"))
        before = role
    return problems
