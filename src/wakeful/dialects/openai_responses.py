"""OpenAI Responses items: the ``input`` list of the Responses API.

A native message is one item: a message, a reasoning item, a call, its output, something that the provider ran, a
compaction item, a reference. Calls and outputs are tables of types, so a type that pairs the same way is one more line.
An approval request of an MCP server is a call, and the approval its output.

The rules are checked in ``openai_responses_rules``.

Source: https://platform.openai.com/docs/api-reference/responses/create (input), and the item types of the ``openai`` SDK.
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
    OPAQUE_CHARS,
    WIRE_OVERHEAD,
    brief,
    by_block,
    changed,
    data_url,
    decoded,
    describe,
    field,
    forgets,
    media_kind,
    opaque,
    plain,
    provisional,
    text_of,
)
from wakeful.dialects.openai_responses_rules import validate
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
from wakeful.dialects.responses_items import BLANK_IMAGE, CALLS, OTHER, OUTPUTS, RUN_BY_PROVIDER, call_id, item_type
from wakeful.errors import InputError

_FACTS = FACTS["openai_responses"]
_OVERHEAD = _FACTS.message_overhead
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
_KINDS: dict[Role, int] = {"user": Kind.USER, "assistant": Kind.ASSISTANT, "system": Kind.SYSTEM}
_CONTENT = frozenset(
    {"input_text", "output_text", "input_image", "input_file", "input_audio", "refusal", "summary_text"}
)
_new = tuple.__new__


class OpenAIResponses:
    """The dialect of OpenAI Responses items."""

    name = "openai_responses"
    facts: Facts = _FACTS

    def recognises(self, messages: Sequence[Any]) -> float:
        """Say how surely these are Responses items; a list of roles and plain text alone scores 0.3."""
        sure = 0.3 if len(messages) else 0.0
        for message in messages:
            kind, content = field(message, "type"), field(message, "content")
            if kind is not None and type(kind) is not str:
                return 0.0
            if kind in CALLS or kind in OUTPUTS or kind in RUN_BY_PROVIDER or kind in OTHER or kind == "reasoning":
                return 1.0
            if kind is not None and kind != "message":
                return 0.0
            role = field(message, "role")
            if type(role) is not str or role not in _ROLES or field(message, "parts") is not None:
                return 0.0
            if field(message, "tool_calls") is not None or hasattr(type(message), "tool_calls"):
                return 0.0
            if kind == "message":
                sure = max(sure, 0.8)
            if isinstance(content, list):
                for part in content:
                    what = field(part, "type")
                    if type(what) is not str or what not in _CONTENT:
                        return 0.0
                    sure = 0.95
        return sure

    def weigh(self, message: Any, count: Count) -> Weight:
        """Weigh an item in one pass."""
        if type(message) is not dict:
            message = plain(message)
        what = message.get("type")
        if what is None or what == "message":
            return _weigh_message(message, count)
        if type(what) is str and what in CALLS:
            text = _raw_arguments(message, what)
            tokens = _OVERHEAD + CALL_OVERHEAD + (count(text, "json") if text else 0)
            calls = (call_id(message, what),)
            return _new(Weight, (Kind.CALLS, tokens, calls, (), WIRE_OVERHEAD + BLOCK_BYTES + len(text), 0))
        if type(what) is str and what in OUTPUTS:
            return _weigh_output(message, what, count)
        if what == "reasoning":
            size = len(text_of(message.get("encrypted_content")))
            text = _reasoning_text(message)
            tokens = _OVERHEAD + (size // OPAQUE_CHARS or (count(text, "text") if text else 0))
            return _new(Weight, (Kind.ASSISTANT, tokens, (), (), WIRE_OVERHEAD + size + len(text), Flag.THINKING))
        return _weigh_blocks(message, count)

    def read(self, message: Any) -> View:
        """Read an item whole."""
        message = plain(message)
        what = item_type(message)
        item_id = message.get("id")
        role, blocks = _read(message, what)
        return View(role, blocks, item_id if type(item_id) is str else None)

    def rewrite(self, message: Any, edits: Sequence[Edit]) -> Any | None:
        """Return the item with the edits made, or None when nothing is left of it."""
        if not edits:
            return message
        simple = plain(message)
        what = item_type(simple)
        blocks = _read(simple, what)[1]
        todo = by_block(edits, blocks)
        if forgets(edits) and field(message, "id") is not None:
            message = changed(message, {}, ("id",))
        if not todo:
            return message
        if what == "message":
            return _rewrite_message(message, todo)
        if all(isinstance(todo.get(i), Remove) for i in range(len(blocks))):
            return None
        for i, edit in todo.items():
            message = _edited(message, what, blocks[i], edit)
        return message

    def note(self, text: str, *, role: Literal["user", "system"] = "user", id: str | None = None) -> Any:
        """Make a message item of one text. Ids of items are the provider's to give, so none is set."""
        return {"type": "message", "role": role, "content": text}

    def answer(self, call_id: str, text: str, *, name: str = "", error: bool = True) -> Any:
        """Make the output of a function call. The format has no error flag: the text says it."""
        return {"type": "function_call_output", "call_id": call_id, "output": text}

    def merge(self, messages: Sequence[Any]) -> Any:
        """Make one message item of message items of one role. Raises ``InputError`` for other items."""
        if len(messages) == 1:
            return messages[0]
        dicts = [plain(message) for message in messages]
        roles = {message.get("role") for message in dicts}
        if len(roles) != 1 or any(item_type(message) != "message" for message in dicts):
            raise InputError("only message items of one role can be merged")
        role = roles.pop()
        parts: list[Any] = []
        for message in dicts:
            content = message.get("content")
            if isinstance(content, str):
                kind = "output_text" if role == "assistant" else "input_text"
                parts += [{"type": kind, "text": content}] if content else []
            else:
                parts += content or []
        return {"type": "message", "role": role, "content": parts}

    def dumps(self, message: Any) -> str:
        """Serialise an item."""
        return serial.dumps(message)

    def loads(self, text: str) -> Any:
        """Give back an item from ``dumps``."""
        return serial.loads(text)

    def validate(
        self, messages: Sequence[Any], *, thinking: bool = False, open_tail: bool = True, strict: bool = False
    ) -> list[Problem]:
        """Check the rules of ``openai_responses_rules``; ``thinking`` and ``strict`` change nothing here."""
        return validate(messages, open_tail=open_tail)


DIALECT = OpenAIResponses()


def _role_of(message: dict[str, Any]) -> Role:
    role = message.get("role")
    if type(role) is not str or role not in _ROLES:
        raise InputError(
            f"a Responses item needs a type, or a role of {', '.join(_ROLES)}; it has {brief(role)}: {brief(message)}"
        )
    return _ROLES[role]


def _weigh_message(message: dict[str, Any], count: Count) -> Weight:
    content = message.get("content")
    if content is None and "role" not in message and type(message.get("id")) is str:
        return Weight(Kind.OTHER, _OVERHEAD, (), (), WIRE_OVERHEAD)
    kind = _KINDS[_role_of(message)]
    if type(content) is str:
        tokens = _OVERHEAD + count(content, "text") if content else _OVERHEAD
        return _new(Weight, (kind, tokens, (), (), WIRE_OVERHEAD + len(content), 0))
    tokens, size, flags = _OVERHEAD, WIRE_OVERHEAD, 0
    for part in content if isinstance(content, (list, tuple)) else [] if content is None else [content]:
        size += BLOCK_BYTES
        text = part.get("text") if type(part) is dict else None
        if type(text) is not str:
            block = _content_block(part)
            if isinstance(block, Media):
                tokens += _FACTS.media_tokens
                size += block.bytes
                flags |= Flag.MEDIA
                continue
            text = block.text if isinstance(block, (Text, Opaque)) else ""
        if text:
            tokens += count(text, "text")
            size += len(text)
    return _new(Weight, (kind, tokens, (), (), size, flags))


def _weigh_output(message: dict[str, Any], what: str, count: Count) -> Weight:
    output = message.get(OUTPUTS[what].content)
    tokens, size, flags = _OVERHEAD + CALL_OVERHEAD, WIRE_OVERHEAD + BLOCK_BYTES, 0
    if type(output) is str:
        if output:
            tokens += count(output, "json" if output[0] in "{[" else "text")
            size += len(output)
            flags = Flag.PROVISIONAL if provisional(output) else 0
    elif output is not None:
        text, bulk, media = _output_text(output)
        tokens += (count(text, "json" if text[0] in "{[" else "text") if text else 0) + media * _FACTS.media_tokens
        size += len(text) + bulk
        flags = (Flag.MEDIA if media else 0) | (Flag.PROVISIONAL if provisional(text) else 0)
    return _new(Weight, (Kind.RESULTS, tokens, (), (call_id(message, what),), size, flags))


def _weigh_blocks(message: dict[str, Any], count: Count) -> Weight:
    what = item_type(message)
    kind = Kind.ASSISTANT if what in RUN_BY_PROVIDER else Kind.OTHER
    tokens, size, flags = _OVERHEAD, WIRE_OVERHEAD, 0
    for block in _read(message, what)[1]:
        if isinstance(block, Media):
            tokens += _FACTS.media_tokens
            size += block.bytes
            flags |= Flag.MEDIA
            continue
        text = block.text if isinstance(block, (Text, Opaque, ToolResult)) else ""
        if isinstance(block, ToolUse):
            text = text_of(block.arguments)
        if isinstance(block, ToolResult) and block.provisional:
            flags |= Flag.PROVISIONAL
        if what == "compaction":
            tokens += len(text) // OPAQUE_CHARS
        elif text:
            tokens += count(text, "json")
        size += len(text) + BLOCK_BYTES
    return _new(Weight, (kind, tokens, (), (), size, flags))


def _raw_arguments(message: dict[str, Any], what: str) -> str:
    value = message.get(CALLS[what].content)
    return value if type(value) is str else "" if value is None else text_of(value)


def _reasoning_text(message: dict[str, Any]) -> str:
    texts = []
    for key in ("summary", "content"):
        for part in message.get(key) or ():
            text = field(part, "text")
            if isinstance(text, str):
                texts.append(text)
    return "\n".join(texts)


def _read(message: dict[str, Any], what: str) -> tuple[Role, tuple[Block, ...]]:
    if what == "message":
        content = message.get("content")
        role = _role_of(message)
        if isinstance(content, str):
            return role, (Text(content),) if content else ()
        parts = content if isinstance(content, (list, tuple)) else [] if content is None else [content]
        return role, tuple(_content_block(part) for part in parts)
    if what == "reasoning":
        item_id = message.get("id")
        return "assistant", (Thinking(_reasoning_text(message), item_id if type(item_id) is str else None),)
    if what in CALLS:
        raw = message.get(CALLS[what].content)
        arguments = decoded(raw) if what in ("function_call", "mcp_approval_request") else raw
        return "assistant", (ToolUse(call_id(message, what), _name(message, what), arguments),)
    if what in OUTPUTS:
        output = message.get(OUTPUTS[what].content)
        text, size, _ = _output_text(output)
        result = ToolResult(
            call_id(message, what),
            text,
            error=message.get("status") in ("failed", "incomplete"),
            provisional=provisional(text),
            media_bytes=size,
            name=text_of(message.get("name")),
        )
        return "tool", (result,)
    if what in RUN_BY_PROVIDER:
        return "assistant", _provider_blocks(message, what)
    text = text_of(message.get("encrypted_content")) if what == "compaction" else opaque(message).text
    return "assistant", (Opaque(what, text),)


def _name(message: dict[str, Any], what: str) -> str:
    name = message.get("name")
    return name if isinstance(name, str) else CALLS[what].name


def _provider_blocks(message: dict[str, Any], what: str) -> tuple[Block, ...]:
    item_id = text_of(message.get("id"))
    if what == "image_generation_call":
        return (Media("image", "image/png", len(text_of(message.get("result")))),)
    if what == "mcp_call":
        use = ToolUse(item_id, text_of(message.get("name")), decoded(message.get("arguments")), server=True)
        output = message.get("output")
        if output is None:
            return (use,)
        error = message.get("error") is not None
        return use, ToolResult(
            item_id, text_of(output), error=error, provisional=provisional(text_of(output)), server=True
        )
    if what == "code_interpreter_call":
        use = ToolUse(item_id, "code_interpreter", message.get("code"), server=True)
        outputs = message.get("outputs")
        if not outputs:
            return (use,)
        texts = [text_of(field(part, "logs") or field(part, "url") or part) for part in outputs]
        return use, ToolResult(item_id, "\n".join(texts), server=True)
    rest = {k: v for k, v in message.items() if k not in ("id", "type", "status", "results")}
    use = ToolUse(item_id, what.removesuffix("_call"), rest, server=True)
    found = message.get("results")
    return (use, Opaque("results", text_of(found))) if found else (use,)


def _content_block(part: Any) -> Block:
    if isinstance(part, str):
        return Text(part)
    kind = field(part, "type")
    if kind in ("input_text", "output_text", "text", "summary_text", "reasoning_text"):
        return Text(text_of(field(part, "text")))
    if kind == "refusal":
        return Text(text_of(field(part, "refusal")))
    if kind in ("input_image", "computer_screenshot"):
        media_type, size = data_url(field(part, "image_url"))
        return Media("image", media_type, size)
    if kind == "input_file":
        data = field(part, "file_data")
        media_type, _ = data_url(data)
        return Media(media_kind(media_type, "document"), media_type, len(data) if isinstance(data, str) else 0)
    if kind == "input_audio":
        inner = field(part, "input_audio") or {}
        return Media("audio", text_of(field(inner, "format")), len(text_of(field(inner, "data"))))
    return opaque(part)


def _output_text(output: Any) -> tuple[str, int, int]:
    """Give an output's text, the bytes of its media, and their number."""
    if isinstance(output, str):
        return output, 0, 0
    if isinstance(output, dict) and output.get("type") != "computer_screenshot":
        return text_of(output), 0, 0
    texts, size, media = [], 0, 0
    for part in output if isinstance(output, (list, tuple)) else [] if output is None else [output]:
        if isinstance(part, dict) and "stdout" in part:
            texts += [text_of(part.get(key)) for key in ("stdout", "stderr") if part.get(key)]
            continue
        block = _content_block(part)
        if isinstance(block, Media):
            texts.append(describe(block))
            size += block.bytes
            media += 1
        else:
            texts.append(block.text if isinstance(block, (Text, Opaque)) else "")
    return "\n".join(texts), size, media


def _rewrite_message(message: Any, todo: dict[int, Edit]) -> Any | None:
    content = field(message, "content")
    if isinstance(content, str):
        edit = todo[0]
        return changed(message, {"content": edit.text}) if isinstance(edit, SetText) else None
    role = field(message, "role")
    left: list[Any] = []
    for i, part in enumerate(content if isinstance(content, (list, tuple)) else [content]):
        edit_ = todo.get(i)
        if edit_ is None:
            left.append(part)
        elif isinstance(edit_, SetMedia):
            left.append({"type": "output_text" if role == "assistant" else "input_text", "text": edit_.text})
        elif isinstance(edit_, SetText):
            if isinstance(part, str):
                left.append(edit_.text)
            else:
                left.append(changed(part, {"refusal" if field(part, "type") == "refusal" else "text": edit_.text}))
    return changed(message, {"content": left}) if left else None


def _edited(message: Any, what: str, block: Block, edit: Edit) -> Any:
    if isinstance(edit, SetResult):
        return _with_result(message, what, edit.text)
    if isinstance(edit, SetArguments):
        return _with_arguments(message, what, edit.arguments)
    if isinstance(edit, SetMedia) and what == "image_generation_call":
        return changed(message, {"result": None})
    if isinstance(edit, Remove) and isinstance(block, ToolResult):
        return changed(message, {"output" if what == "mcp_call" else "outputs": None})
    if isinstance(edit, Remove) and isinstance(block, Opaque) and block.kind == "results":
        return changed(message, {"results": None})
    raise InputError(f"{type(edit).__name__} does not suit an item of type {what}")


def _with_result(message: Any, what: str, text: str) -> Any:
    """Replace an output by text, in the shape that its type demands. An item that can't hold a text stays."""
    if what == "code_interpreter_call":
        return changed(message, {"outputs": [{"type": "logs", "logs": text}]})
    if what == "mcp_call":
        return changed(message, {"output": text})
    key = OUTPUTS[what].content
    output = field(message, key)
    if what == "computer_call_output":
        return changed(message, {key: {"type": "computer_screenshot", "image_url": BLANK_IMAGE}})
    if what == "shell_call_output":
        first = (
            output[0] if isinstance(output, (list, tuple)) and output else {"outcome": {"type": "exit", "exit_code": 0}}
        )
        return changed(message, {key: [changed(first, {"stdout": text, "stderr": ""})]})
    if what in ("tool_search_output", "mcp_approval_response"):
        return message
    return changed(
        message, {key: [{"type": "input_text", "text": text}] if isinstance(output, (list, tuple)) else text}
    )


def _with_arguments(message: Any, what: str, arguments: dict[str, Any]) -> Any:
    """Replace a call's arguments; an action keeps the shape that its type demands."""
    text = json.dumps(arguments, ensure_ascii=False)
    key = CALLS[what].content
    value = field(message, key)
    if what in ("local_shell_call", "shell_call"):
        return changed(
            message, {key: changed(value, {"command" if what == "local_shell_call" else "commands": [text]})}
        )
    if what == "apply_patch_call" and field(value, "diff") is not None:
        return changed(message, {key: changed(value, {"diff": text})})
    if what in ("computer_call", "apply_patch_call"):
        return message
    return changed(message, {key: text if isinstance(value, str) else arguments})
