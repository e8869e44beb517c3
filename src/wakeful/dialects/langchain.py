"""LangChain messages (``BaseMessage`` objects), found by their class's name so that LangChain is imported only to make one.

An assistant message holds its calls up to three times: in ``tool_calls``, as blocks of the content, and in
``additional_kwargs`` as the provider sent them. Here a call is one block, read from ``tool_calls``, and an edit of it
changes every copy. Reasoning is a block of the content or a field of ``additional_kwargs``; when it goes, the ids of the
Responses API that point to it go with it (rule L3).

Rules checked by ``validate``: L1 a ``RemoveMessage`` names an id; L2 a ``ToolMessage`` answers a call of the AI message
before its block, every call once; L4 what stands before ``REMOVE_ALL_MESSAGES`` is no part of the state, and is not
checked; with ``strict``, L5: system messages stand at the head only.

Source: https://reference.langchain.com/python/langchain_core/messages/, langgraph's ``add_messages``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Literal

from wakeful.dialects import serial
from wakeful.dialects.facts import FACTS
from wakeful.dialects.langchain_content import (
    CALL_TYPES,
    GONE,
    block_id,
    content_block,
    forget_ids,
    raw_call,
    result_text,
    with_arguments,
)
from wakeful.dialects.native import (
    BLOCK_BYTES,
    CALL_OVERHEAD,
    WIRE_OVERHEAD,
    brief,
    by_block,
    decoded,
    forgets,
    is_langchain,
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
from wakeful.errors import InputError, MissingExtra

_FACTS = FACTS["langchain"]
_OVERHEAD = _FACTS.message_overhead
_KINDS = {
    "human": Kind.USER,
    "HumanMessageChunk": Kind.USER,
    "ai": Kind.ASSISTANT,
    "AIMessageChunk": Kind.ASSISTANT,
    "system": Kind.SYSTEM,
    "SystemMessageChunk": Kind.SYSTEM,
    "tool": Kind.RESULTS,
    "ToolMessageChunk": Kind.RESULTS,
    "function": Kind.RESULTS,
    "FunctionMessageChunk": Kind.RESULTS,
    "remove": Kind.OTHER,
}
_CHAT = {
    "user": Kind.USER,
    "human": Kind.USER,
    "assistant": Kind.ASSISTANT,
    "ai": Kind.ASSISTANT,
    "system": Kind.SYSTEM,
}
_ROLES: tuple[Role, ...] = ("system", "user", "assistant", "assistant", "tool", "system")
_REASONING = ("reasoning_content", "reasoning")
_LEGACY = "function:"
REMOVE_ALL = "__remove_all__"
"""Source: ``langgraph.graph.message.REMOVE_ALL_MESSAGES``."""
_new = tuple.__new__


class LangChain:
    """The dialect of LangChain messages."""

    name = "langchain"
    facts: Facts = _FACTS

    def recognises(self, messages: Sequence[Any]) -> float:
        """Say whether all of these are LangChain messages."""
        return 1.0 if len(messages) and all(is_langchain(message) for message in messages) else 0.0

    def weigh(self, message: Any, count: Count) -> Weight:
        """Weigh a message in one pass."""
        kind = _kind(message)
        content = message.content
        if type(content) is str and kind in (Kind.SYSTEM, Kind.USER):
            tokens = _OVERHEAD + count(content, "text") if content else _OVERHEAD
            return _new(Weight, (kind, tokens, (), (), WIRE_OVERHEAD + len(content), 0))
        if kind == Kind.RESULTS:
            return _weigh_result(message, count)
        if type(content) is str and kind == Kind.ASSISTANT and not message.additional_kwargs:
            usual = _weigh_assistant(message, content, count)
            if usual is not None:
                return usual
        tokens, size, flags = _OVERHEAD, WIRE_OVERHEAD, 0
        calls: list[str] = []
        results: list[str] = []
        own = False
        for _, block in _slots(message, kind):
            size += BLOCK_BYTES
            own = own or not isinstance(block, ToolResult)
            if isinstance(block, Media):
                tokens += _FACTS.media_tokens
                size += block.bytes
                flags |= Flag.MEDIA
            elif isinstance(block, ToolUse):
                shown = block.arguments if isinstance(block.arguments, str) else repr(block.arguments)
                tokens += CALL_OVERHEAD + (count(shown, "json") if shown else 0)
                size += len(shown)
                if not block.server:
                    calls.append(block.id)
            else:
                if block.text:
                    tokens += count(block.text, "json" if block.text[0] in "{[" else "text")
                    size += len(block.text)
                if isinstance(block, Thinking):
                    flags |= Flag.THINKING
                elif isinstance(block, ToolResult):
                    tokens += CALL_OVERHEAD
                    size += block.media_bytes
                    flags |= (Flag.PROVISIONAL if block.provisional else 0) | (Flag.MEDIA if block.media_bytes else 0)
                    results += [] if block.server else [block.call_id]
        if calls and kind == Kind.ASSISTANT:
            kind = Kind.CALLS
        elif results and not own and kind == Kind.USER:
            kind = Kind.RESULTS
        return _new(Weight, (kind, tokens, tuple(calls), tuple(results), size, flags))

    def read(self, message: Any) -> View:
        """Read a message whole."""
        kind = _kind(message)
        blocks = tuple(block for _, block in _slots(message, kind))
        role = _ROLES[kind]
        if role == "user" and blocks and all(isinstance(block, ToolResult) for block in blocks):
            role = "tool"
        return View(role, blocks, message.id if isinstance(message.id, str) else None)

    def rewrite(self, message: Any, edits: Sequence[Edit]) -> Any | None:
        """Return the message with the edits made, or None when nothing is left of it."""
        if not edits:
            return message
        slots = _slots(message, _kind(message))
        todo = by_block(edits, [block for _, block in slots])
        if todo and all(isinstance(todo.get(i), Remove) for i in range(len(slots))):
            return None
        changes = _changes(message, slots, todo)
        bound = any(isinstance(edit, Remove) and isinstance(slots[i][1], Thinking) for i, edit in todo.items())
        if forgets(edits) or bound:
            forget_ids(message, changes)
        return message.model_copy(update=changes) if changes else message

    def note(self, text: str, *, role: Literal["user", "system"] = "user", id: str | None = None) -> Any:
        """Make a ``HumanMessage`` or ``SystemMessage`` of one text."""
        messages = _messages()
        return (messages.SystemMessage if role == "system" else messages.HumanMessage)(content=text, id=id)

    def answer(self, call_id: str, text: str, *, name: str = "", error: bool = True) -> Any:
        """Make a ``ToolMessage``."""
        status = "error" if error else "success"
        return _messages().ToolMessage(content=text, tool_call_id=call_id, name=name or None, status=status)

    def merge(self, messages: Sequence[Any]) -> Any:
        """Make one message of neighbours of one role: their content as blocks, their calls in order.

        The id is that of the first. Raises ``InputError`` for results (each is a message of its own) or several roles.
        """
        if len(messages) == 1:
            return messages[0]
        kinds = {_kind(message) for message in messages}
        if len(kinds) != 1 or kinds & {Kind.RESULTS, Kind.OTHER}:
            raise InputError("only messages of one role that are no results can be merged")
        content: list[Any] = []
        for message in messages:
            if isinstance(message.content, str):
                content += [{"type": "text", "text": message.content}] if message.content else []
            else:
                content += message.content
        changes: dict[str, Any] = {"content": content}
        for key in ("tool_calls", "invalid_tool_calls"):
            if hasattr(messages[0], key):
                changes[key] = [call for message in messages for call in getattr(message, key)]
        return messages[0].model_copy(update=changes)

    def dumps(self, message: Any) -> str:
        """Serialise a message with its ids and extra fields. Raises ``InputError`` for what can't be given back."""
        _kind(message)
        text = serial.dumps({serial.MARK_LANGCHAIN: _messages().messages_to_dict([message])[0]})
        if "NaN" not in text and self.loads(text) != message:
            raise InputError(
                f"a {type(message).__name__} holds something that can't be given back from JSON "
                f"(an artifact or extra field that is an object?): {brief(message)}"
            )
        return text

    def loads(self, text: str) -> Any:
        """Give back a message from ``dumps``."""
        data = serial.loads(text)
        if not isinstance(data, dict) or serial.MARK_LANGCHAIN not in data:
            raise InputError("this is no serialised LangChain message")
        try:
            return _messages().messages_from_dict([data[serial.MARK_LANGCHAIN]])[0]
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"this is no serialised LangChain message: {error}") from error

    def validate(
        self, messages: Sequence[Any], *, thinking: bool = False, open_tail: bool = True, strict: bool = False
    ) -> list[Problem]:
        """Check L1, L2 and L4, with ``strict`` L5 too. ``thinking`` changes nothing here."""
        return _validate(messages, open_tail, strict)


DIALECT = LangChain()


def _messages() -> Any:
    try:
        from langchain_core import messages
    except ImportError as error:
        raise MissingExtra("langchain", needed_for="making LangChain messages") from error
    return messages


def _kind(message: Any) -> int:
    if not is_langchain(message):
        raise InputError(f"this is no LangChain message but a {type(message).__name__}: {brief(message)}")
    kind = _KINDS.get(message.type)
    if kind is None:
        kind = _CHAT.get(str(getattr(message, "role", "")).lower())
    if kind is None:
        raise InputError(f"a LangChain message of type {message.type!r} has no role that Wakeful knows")
    return kind


def _result_id(message: Any) -> str:
    call_id = getattr(message, "tool_call_id", None)
    return call_id if isinstance(call_id, str) else _LEGACY + text_of(message.name)


def _weigh_assistant(message: Any, content: str, count: Count) -> Weight | None:
    """Weigh text and calls with an id and a mapping of arguments; None for what is rarer."""
    if getattr(message, "invalid_tool_calls", None):
        return None
    tokens, size = _OVERHEAD, WIRE_OVERHEAD
    if content:
        tokens += count(content, "json" if content[0] in "{[" else "text")
        size += BLOCK_BYTES + len(content)
    ids: tuple[str, ...] = ()
    for call in getattr(message, "tool_calls", None) or ():
        call_id, arguments = call.get("id"), call.get("args")
        if type(call_id) is not str or type(arguments) is not dict:
            return None
        shown = repr(arguments)
        tokens += CALL_OVERHEAD + count(shown, "json")
        size += BLOCK_BYTES + len(shown)
        ids += (call_id,)
    return _new(Weight, (Kind.CALLS if ids else Kind.ASSISTANT, tokens, ids, (), size, 0))


def _weigh_result(message: Any, count: Count) -> Weight:
    content = message.content
    if type(content) is str and content and content[0] not in "{[":
        tokens = _OVERHEAD + CALL_OVERHEAD + count(content, "text")
        return _new(
            Weight, (Kind.RESULTS, tokens, (), (_result_id(message),), WIRE_OVERHEAD + BLOCK_BYTES + len(content), 0)
        )
    text, size, media = result_text(content)
    tokens = _OVERHEAD + CALL_OVERHEAD + media * _FACTS.media_tokens
    if text:
        tokens += count(text, "json" if text[0] in "{[" else "text")
    flags = (Flag.MEDIA if media else 0) | (Flag.PROVISIONAL if provisional(text) else 0)
    total = WIRE_OVERHEAD + BLOCK_BYTES + len(text) + size
    return _new(Weight, (Kind.RESULTS, tokens, (), (_result_id(message),), total, flags))


Path = tuple[str, Any]
"""Field of the message, and place in it: an index, a key of ``additional_kwargs``, or None for the field itself."""


def _slots(message: Any, kind: int) -> list[tuple[Path, Block]]:
    content = message.content
    if kind == Kind.RESULTS:
        text, size, _ = result_text(content)
        error = getattr(message, "status", None) == "error"
        name = message.name if isinstance(message.name, str) else ""
        block = ToolResult(
            _result_id(message), text, error=error, provisional=provisional(text), media_bytes=size, name=name
        )
        return [(("content", None), block)]
    if kind == Kind.OTHER:
        return [(("id", None), Opaque("remove", text_of(message.id)))]
    slots: list[tuple[Path, Block]] = []
    extra = message.additional_kwargs if isinstance(message.additional_kwargs, dict) else {}
    for key in _REASONING:
        if extra.get(key):
            value = extra[key]
            text = value if isinstance(value, str) else _summary(value)
            found = value.get("id") if isinstance(value, dict) else None
            slots.append((("additional_kwargs", key), Thinking(text, found if isinstance(found, str) else None)))
    uses = list(getattr(message, "tool_calls", None) or ())
    bad = list(getattr(message, "invalid_tool_calls", None) or ())
    known = {call.get("id") for call in (*uses, *bad)}
    if isinstance(content, str):
        slots += [(("content", None), Text(content))] if content else []
    else:
        for i, part in enumerate(content):
            if not (_is_call(part) and block_id(part) in known):
                slots.append((("content", i), content_block(part)))
    for i, call in enumerate(uses):
        slots.append((("tool_calls", i), ToolUse(text_of(call.get("id")), text_of(call.get("name")), call.get("args"))))
    for i, call in enumerate(bad):
        use = ToolUse(text_of(call.get("id")), text_of(call.get("name")), decoded(call.get("args")))
        slots.append((("invalid_tool_calls", i), use))
    return slots


def _summary(value: Any) -> str:
    parts = value.get("summary") if isinstance(value, dict) else None
    return "\n".join(text_of(part.get("text")) for part in parts or () if isinstance(part, dict)) if parts else ""


def _is_call(part: Any) -> bool:
    return isinstance(part, dict) and type_of(part) in CALL_TYPES


def _changes(message: Any, slots: Sequence[tuple[Path, Block]], todo: dict[int, Edit]) -> dict[str, Any]:
    """Give the fields of the message that the edits change, with their values."""
    draft = _Draft(message)
    for i, edit in todo.items():
        (where, place), block = slots[i]
        if where in ("tool_calls", "invalid_tool_calls"):
            draft.edit_call(where, place, block, edit)
        elif where == "additional_kwargs":
            extra = draft.get(where)
            draft.set(where, {k: v for k, v in extra.items() if k != place})
        elif place is None:
            draft.edit_whole(edit)
        else:
            draft.edit_part(place, edit)
    return draft.done()


class _Draft:
    """Changed fields of one message; the message itself is never touched."""

    def __init__(self, message: Any) -> None:
        self.message = message
        self.fields: dict[str, Any] = {}

    def get(self, key: str) -> Any:
        return self.fields[key] if key in self.fields else getattr(self.message, key, None)

    def set(self, key: str, value: Any) -> None:
        self.fields[key] = value

    def edit_whole(self, edit: Edit) -> None:
        if isinstance(edit, Remove):
            self.set("content", "")
        elif isinstance(edit, SetText):
            self.set("content", edit.text)
        elif isinstance(edit, SetResult):
            as_list = not isinstance(self.get("content"), str)
            self.set("content", [{"type": "text", "text": edit.text}] if as_list else edit.text)

    def edit_part(self, place: int, edit: Edit) -> None:
        content = list(self.get("content"))
        part = content[place]
        if isinstance(edit, Remove):
            content[place] = GONE
        elif isinstance(edit, SetText):
            content[place] = edit.text if isinstance(part, str) else {**part, "text": edit.text}
        elif isinstance(edit, SetMedia):
            content[place] = {"type": "text", "text": edit.text}
        elif isinstance(edit, SetResult):
            key = "output" if "output" in part and "content" not in part else "content"
            content[place] = {**part, key: edit.text}
        elif isinstance(edit, SetArguments):
            content[place] = with_arguments(part, edit.arguments)
        self.set("content", content)

    def edit_call(self, where: str, place: int, block: Block, edit: Edit) -> None:
        """Edit a call in every place that holds a copy of it."""
        call_id = block.id if isinstance(block, ToolUse) else ""
        gone = isinstance(edit, Remove)
        arguments = edit.arguments if isinstance(edit, SetArguments) else {}
        raw = json.dumps(arguments, ensure_ascii=False)
        calls = list(self.get(where))
        args: Any = arguments if where == "tool_calls" else raw
        calls[place] = GONE if gone else {**calls[place], "args": args}
        self.set(where, calls)

        def same(part: Any) -> bool:
            return _is_call(part) and bool(call_id) and block_id(part) == call_id

        if not isinstance(self.get("content"), str):
            self._copies("content", same, lambda part: GONE if gone else with_arguments(part, arguments))
        if self.get("tool_call_chunks"):
            key = "tool_call_chunks"
            self._copies(key, lambda c: c.get("id") == call_id, lambda c: GONE if gone else {**c, "args": raw})
        extra = self.get("additional_kwargs") or {}
        if isinstance(extra.get("tool_calls"), list):
            copies = [
                call if not isinstance(call, dict) or call.get("id") != call_id else raw_call(call, raw, gone)
                for call in extra["tool_calls"]
            ]
            self.set("additional_kwargs", {**extra, "tool_calls": [call for call in copies if call is not GONE]})
        elif isinstance(extra.get("function_call"), dict) and isinstance(block, ToolUse):
            legacy = extra["function_call"]
            if legacy.get("name") == block.name:
                rest = {k: v for k, v in extra.items() if k != "function_call"}
                self.set("additional_kwargs", rest if gone else {**rest, "function_call": {**legacy, "arguments": raw}})

    def _copies(self, key: str, same: Callable[[Any], bool], make: Callable[[Any], Any]) -> None:
        items = self.get(key)
        if any(same(item) for item in items):
            self.set(key, [make(item) if same(item) else item for item in items])

    def done(self) -> dict[str, Any]:
        for key, value in self.fields.items():
            if isinstance(value, list):
                self.fields[key] = [item for item in value if item is not GONE]
        return self.fields


def _validate(messages: Sequence[Any], open_tail: bool, strict: bool) -> list[Problem]:
    problems: list[Problem] = []
    start = 0
    for index, message in enumerate(messages):
        if _kind(message) == Kind.OTHER:
            if not message.id:
                problems.append(
                    Problem("L1", index, "a RemoveMessage without an id; give the id of the message to remove")
                )
            elif message.id == REMOVE_ALL:
                start = index + 1
    waiting: dict[str, None] = {}
    answered: set[str] = set()
    opened, head = -1, True
    for index in range(start, len(messages)):
        message = messages[index]
        kind = _kind(message)
        if kind == Kind.OTHER:
            continue
        if kind == Kind.SYSTEM and not head and strict:
            problems.append(
                Problem("L5", index, "a SystemMessage after the head; some providers refuse it, move it up")
            )
        head = head and kind == Kind.SYSTEM
        blocks = [block for _, block in _slots(message, kind)]
        for block in blocks:
            if not isinstance(block, ToolResult) or block.server:
                continue
            if block.call_id in waiting:
                del waiting[block.call_id]
                answered.add(block.call_id)
            else:
                why = "is answered already" if block.call_id in answered else "is not in the AI message before"
                problems.append(
                    Problem("L2", index, f"{block.call_id}: the call of this result {why}; remove the result")
                )
        if kind == Kind.RESULTS:
            continue
        if waiting:
            problems.append(_unanswered(opened, waiting))
        uses = [block.id for block in blocks if isinstance(block, ToolUse) and not block.server]
        waiting, answered, opened = dict.fromkeys(uses), set(), index
    if waiting and not open_tail:
        problems.append(_unanswered(opened, waiting))
    return sorted(problems, key=lambda problem: problem.index)


def _unanswered(index: int, ids: dict[str, None]) -> Problem:
    return Problem(
        "L2", index, f"no ToolMessage answers {', '.join(ids)} right after its call; add it or remove the call"
    )
