"""Rules of the Anthropic Messages format, checked over a list of messages.

| code | rule |
|---|---|
| A1 | every ``tool_use`` is answered in the very next message, all of them in one user message |
| A2 | every ``tool_result`` answers a ``tool_use`` of the message before it, once |
| A3 | in a user message results come first |
| A4 | what the provider ran is paired with its result inside the assistant message |
| A6 | a thinking block carries its signature (a redacted one its data) |
| A7 | with thinking on, the first assistant message of the running tool loop starts with thinking |
| A9 | content is not empty, no text is blank, a last assistant text has no trailing white space |
| A10 | the first message is a user's; ``strict``: no neighbours of one role, the last one is not the assistant's |
| A12 | at most 32 MB a request, 8,000 pixels an image, 2,000 when there are more than 20 images |
| A13 | one compaction block, first in its message, its text not empty |
| A15 | at most 4 ``cache_control`` markers (those of the system prompt and the tools are not seen here) |

A5 and A8 (thinking is unchanged, and so is all before it) need the history as it was: ``binding.bound_problems``. A11
(it fits) needs a model and is the meter's; A14 (context editing) is an option of a request, not of messages.

Sources: https://docs.anthropic.com/en/api/messages, .../build-with-claude/extended-thinking, .../vision, .../errors,
.../prompt-caching; the compaction block types of the ``anthropic`` SDK.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from wakeful.dialects.images import size_of
from wakeful.dialects.native import brief, plain, text_of, type_of
from wakeful.dialects.protocol import Problem
from wakeful.errors import InputError

MAX_REQUEST_BYTES = 32 * 1024 * 1024
"""Source: https://docs.anthropic.com/en/api/errors, request size limits of the Messages API."""
MAX_PIXELS, MANY_IMAGES, MAX_PIXELS_MANY = 8000, 20, 2000
"""Source: https://docs.anthropic.com/en/docs/build-with-claude/vision, evaluate image size."""
MAX_CACHE_MARKERS = 4
"""Source: https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching."""

_ROLES = frozenset({"user", "assistant", "system"})
_THINKING = frozenset({"thinking", "redacted_thinking"})
_SERVER_USES = frozenset({"server_tool_use", "mcp_tool_use"})


def validate(messages: Sequence[Any], *, thinking: bool, open_tail: bool, strict: bool) -> list[Problem]:
    """Check every rule of the table; problems are in the order of the messages."""
    parsed = [_parse(message, index) for index, message in enumerate(messages)]
    problems = [
        *_pairing(parsed, open_tail),
        *_blocks(parsed),
        *_order(parsed, strict),
        *_media(parsed),
        *_compaction(parsed),
        *_markers(parsed),
    ]
    if thinking:
        problems += _loop_thinking(parsed)
    return sorted(problems, key=lambda problem: problem.index)


_Parsed = tuple[str, list[dict[str, Any]]]
"""Role and blocks."""


def _parse(message: Any, index: int) -> _Parsed:
    message = plain(message, f"messages[{index}]")
    role, content = message.get("role"), message.get("content")
    if type(role) is not str or role not in _ROLES:
        raise InputError(f"messages[{index}] needs a role of user or assistant; it has {brief(role)}")
    if isinstance(content, str):
        return role, [{"type": "text", "text": content}] if content else []
    items = content if isinstance(content, (list, tuple)) else [] if content is None else [content]
    return role, [item if type(item) is dict else _object(item) for item in items]


def _object(item: Any) -> dict[str, Any]:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    try:
        return plain(item)
    except InputError:
        return {"type": type(item).__name__}


def _pairing(parsed: Sequence[_Parsed], open_tail: bool) -> Iterator[Problem]:
    waiting: dict[str, None] = {}
    opened = -1
    for index, (role, blocks) in enumerate(parsed):
        called, waiting = waiting, {}
        answered: set[str] = set()
        for block in blocks:
            kind = type_of(block)
            if kind == "tool_result":
                call_id = text_of(block.get("tool_use_id"))
                if role == "user" and call_id in called:
                    del called[call_id]
                    answered.add(call_id)
                elif call_id in answered:
                    yield Problem("A2", index, f"{call_id} is answered twice in this message; keep one result")
                else:
                    yield Problem("A2", index, f"{call_id} answers no tool_use of the message before; remove it")
            elif kind == "tool_use":
                call_id = text_of(block.get("id"))
                if role != "assistant":
                    yield Problem(
                        "A1", index, f"{call_id}: a tool_use stands in a {role} message; calls are the assistant's"
                    )
                elif call_id in waiting:
                    yield Problem("A1", index, f"{call_id}: two tool_use blocks of one message share an id")
                else:
                    waiting[call_id] = None
        if called:
            yield _unanswered(opened, called)
        opened = index
        yield from _server_pairs(index, blocks, index == len(parsed) - 1, parsed)
    if waiting and not open_tail:
        yield _unanswered(opened, waiting)


def _unanswered(index: int, ids: Sequence[str] | dict[str, None]) -> Problem:
    return Problem(
        "A1", index, f"{', '.join(ids)}: no tool_result in the next message; add the results or remove the calls"
    )


def _server_pairs(
    index: int, blocks: Sequence[dict[str, Any]], last: bool, parsed: Sequence[_Parsed]
) -> Iterator[Problem]:
    """Check A4. A pause (last message) and code that calls the client's tools leave a use open for a later message."""
    open_uses: dict[str, None] = {}
    for block in blocks:
        kind = type_of(block)
        if kind in _SERVER_USES:
            open_uses[text_of(block.get("id"))] = None
        elif kind != "tool_result" and isinstance(kind, str) and kind.endswith("_tool_result"):
            use_id = text_of(block.get("tool_use_id"))
            if use_id in open_uses:
                del open_uses[use_id]
            elif not _opened_before(use_id, index, parsed):
                yield Problem(
                    "A4", index, f"{use_id}: a {kind} without its {kind.removesuffix('_result')} use; remove it"
                )
    if open_uses and not last and not any(block.get("type") == "tool_use" for block in blocks):
        for use_id in open_uses:
            yield Problem("A4", index, f"{use_id}: a server tool use without its result in the message; remove the use")


def _opened_before(use_id: str, index: int, parsed: Sequence[_Parsed]) -> bool:
    at = index - 1
    while at >= 0 and index - at <= 64:
        role, blocks = parsed[at]
        if role == "user" and not any(block.get("type") == "tool_result" for block in blocks):
            return False
        if any(type_of(block) in _SERVER_USES and block.get("id") == use_id for block in blocks):
            return True
        at -= 1
    return False


def _blocks(parsed: Sequence[_Parsed]) -> Iterator[Problem]:
    last = len(parsed) - 1
    for index, (role, blocks) in enumerate(parsed):
        if not blocks and not (index == last and role == "assistant"):
            yield Problem("A9", index, "the content is empty; give it a text or remove the message")
        other = False
        for block in blocks:
            kind = type_of(block)
            if kind == "tool_result" and role == "user":
                if other:
                    yield Problem("A3", index, "a tool_result stands after other content; put results first")
                    other = False
            else:
                other = True
            if kind == "text" and not text_of(block.get("text")).strip():
                yield Problem("A9", index, "a text block is empty or blank; remove it")
            elif kind == "thinking" and not block.get("signature"):
                yield Problem("A6", index, "a thinking block has no signature; send it whole or remove it")
            elif kind == "redacted_thinking" and not block.get("data"):
                yield Problem("A6", index, "a redacted_thinking block has no data; send it whole or remove it")
        if index == last and role == "assistant" and blocks and blocks[-1].get("type") == "text":
            text = text_of(blocks[-1].get("text"))
            if text.strip() and text != text.rstrip():
                yield Problem("A9", index, "the last assistant text ends with white space; strip it")


def _order(parsed: Sequence[_Parsed], strict: bool) -> Iterator[Problem]:
    before = ""
    for index, (role, blocks) in enumerate(parsed):
        if not before and role == "assistant" and not any(block.get("type") == "compaction" for block in blocks):
            yield Problem("A10", index, "the first message is the assistant's; put a user message before it")
        if strict and role == before:
            yield Problem("A10", index, f"two {role} messages in a row; merge them into one")
        if role != "system":
            before = role
    if strict and parsed and parsed[-1][0] == "assistant":
        yield Problem(
            "A10", len(parsed) - 1, "the last message is the assistant's; some models refuse it, add a user message"
        )


def _media(parsed: Sequence[_Parsed]) -> Iterator[Problem]:
    total = 0
    images: list[tuple[int, int]] = []
    count = 0
    for index, (_, blocks) in enumerate(parsed):
        for block in blocks:
            inner = block.get("content")
            nested = [item for item in inner if type(item) is dict] if isinstance(inner, list) else []
            for item in (block, *nested):
                total += _bytes(item)
                if item.get("type") != "image":
                    continue
                count += 1
                source = item.get("source")
                data = source.get("data") if type(source) is dict else None
                size = size_of(data) if isinstance(data, (str, bytes)) else None
                if size is not None and max(size) > MAX_PIXELS_MANY:
                    images.append((index, max(size)))
    limit = MAX_PIXELS if count <= MANY_IMAGES else MAX_PIXELS_MANY
    for index, pixels in images:
        if pixels > limit:
            yield Problem(
                "A12", index, f"an image is {pixels:,} pixels long, the limit is {limit:,} among {count} images"
            )
    if total > MAX_REQUEST_BYTES:
        yield Problem("A12", len(parsed) - 1, f"the messages are {total:,} bytes, the limit is {MAX_REQUEST_BYTES:,}")


def _bytes(block: dict[str, Any]) -> int:
    total = 0
    for value in block.values():
        if isinstance(value, str):
            total += len(value) if value.isascii() else len(value.encode("utf-8", "replace"))
        elif type(value) is dict:
            total += _bytes(value)
    return total


def _compaction(parsed: Sequence[_Parsed]) -> Iterator[Problem]:
    found = False
    for index, (role, blocks) in enumerate(parsed):
        for place, block in enumerate(blocks):
            if block.get("type") != "compaction" or block.get("content", "") is None:
                continue
            if not block.get("content"):
                yield Problem(
                    "A13", index, "a compaction block's content is empty; keep it as it came (null is allowed)"
                )
            if place or role == "system":
                yield Problem("A13", index, "a compaction block is not the first block of its message; move it there")
            if found:
                yield Problem("A13", index, "a second compaction block; drop everything before the latest one")
            found = True


def _markers(parsed: Sequence[_Parsed]) -> Iterator[Problem]:
    count = 0
    for index, (_, blocks) in enumerate(parsed):
        for block in blocks:
            inner = block.get("content")
            nested = [item for item in inner if type(item) is dict] if isinstance(inner, list) else []
            count += sum(1 for item in (block, *nested) if item.get("cache_control"))
        if count > MAX_CACHE_MARKERS:
            message = (
                f"{count} blocks with cache_control up to here, {MAX_CACHE_MARKERS} are allowed; remove old markers"
            )
            yield Problem("A15", index, message)
            return


def _loop_thinking(parsed: Sequence[_Parsed]) -> Iterator[Problem]:
    first = -1
    for index in range(len(parsed) - 1, -1, -1):
        role, blocks = parsed[index]
        if role == "assistant":
            first = index
        elif role == "user" and not any(block.get("type") == "tool_result" for block in blocks):
            break
    if first < 0:
        return
    blocks = parsed[first][1]
    if not blocks or type_of(blocks[0]) not in _THINKING:
        yield Problem(
            "A7", first, "with thinking on this message must start with thinking; turn it off until the round closes"
        )
