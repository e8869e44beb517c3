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

CLIP = 4_000
"""Characters of one block that a summariser is shown; the middle of a longer one is left out, and that is said."""


def render(dialect: Dialect, messages: Sequence[Any]) -> str:
    """Render messages whole, a line or more a block."""
    return "\n".join(
        f"{view.role}: {text}"
        for message in messages
        for view in (dialect.read(message),)
        for text in _texts(view.blocks)
    )


def render_numbered(
    dialect: Dialect, messages: Sequence[Any], numbers: Sequence[int], *, clip: int = CLIP
) -> list[str]:
    """Render each message with its number, long blocks with their middle left out; one text a message."""
    out: list[str] = []
    for message, number in zip(messages, numbers, strict=True):
        view = dialect.read(message)
        shown = [f"#{number} {view.role}: {clipped(text, clip)}" for text in _texts(view.blocks)]
        if shown:
            out.append("\n".join(shown))
    return out


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
