"""Messages as plain text, for summarisers, search and people: total over block types.

Rules of the file:

- Every block kind is shown, calls with their arguments and results too; media and unknown blocks are described. Only
  thinking is left out.
- Text that is given to a model as data is fenced with a mark made from its own hash, and what looks like a fence inside
  is defused, so nothing in it can end the fence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from wakeful.dialects.native import json_text
from wakeful.dialects.protocol import Block, Dialect, Media, Opaque, Text, Thinking, ToolResult, ToolUse
from wakeful.ids import content_id


def render(dialect: Dialect, messages: Sequence[Any]) -> str:
    """Render messages whole, a line or more a block."""
    return "\n".join(
        f"{view.role}: {text}"
        for message in messages
        for view in (dialect.read(message),)
        for text in _texts(view.blocks)
    )


class Rendered:
    """Messages as numbered text: each is read once, when it is first asked for, and clipped as often as need be."""

    def __init__(self, dialect: Dialect, messages: Sequence[Any], numbers: Sequence[int]) -> None:
        self._read = dialect.read
        self._messages = messages
        self._numbers = numbers
        self._texts: dict[int, tuple[str, list[str]]] = {}

    def __len__(self) -> int:
        return len(self._messages)

    def text(self, index: int, clip: int) -> str:
        """Give a message with its number, long blocks with their middle left out; "" for one that shows nothing."""
        known = self._texts.get(index)
        if known is None:
            view = self._read(self._messages[index])
            known = self._texts[index] = f"#{self._numbers[index]} {view.role}: ", list(_texts(view.blocks))
        prefix, texts = known
        return "\n".join([prefix + (text if len(text) <= clip else clipped(text, clip)) for text in texts])


def clipped(text: str, most: int) -> str:
    """Give a text of at most about ``most`` characters: head and tail, and how much is left out between them."""
    if len(text) <= most:
        return text
    head, tail = most * 2 // 3, most // 3
    return f"{text[:head]} [... {len(text) - head - tail:,} characters left out ...] {text[len(text) - tail :]}"


def fenced(text: str) -> str:
    """Fence a text as data: it can't end its own fence."""
    safe = _FENCE.sub("‹\\1record", text)
    mark = content_id(safe)[:8]
    return f"<record-{mark}>\n{safe}\n</record-{mark}>"


_FENCE = re.compile(r"<(/?)record", re.IGNORECASE)


def _texts(blocks: Sequence[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Text(text):
                if text:
                    yield text
            case ToolUse():
                arguments = block.arguments if isinstance(block.arguments, str) else json_text(block.arguments)
                yield f"call {block.name}({arguments})"
            case ToolResult():
                name = f" of {block.name}" if block.name else ""
                yield f"{'error' if block.error else 'result'}{name}: {block.text}"
            case Media():
                size = f", {block.bytes:,} bytes" if block.bytes else ""
                yield f"[{f'{block.kind} {block.media_type}'.strip()}{size}]"
            case Opaque():
                yield f"[{block.kind}] {block.text}"
            case Thinking():
                pass
