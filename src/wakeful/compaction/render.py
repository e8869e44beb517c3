"""Messages as plain text, for summarisers, search and people: total over block types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from wakeful.dialects.native import json_text
from wakeful.dialects.protocol import Block, Dialect, Media, Opaque, Text, Thinking, ToolResult, ToolUse


def render(dialect: Dialect, messages: Sequence[Any]) -> str:
    """Render messages, a line (or more) a block. Thinking is left out; media are described."""
    lines: list[str] = []
    for message in messages:
        view = dialect.read(message)
        lines.extend(f"{view.role}: {text}" for text in _texts(view.blocks))
    return "\n".join(lines)


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
                yield f"{'error' if block.error else 'result'} {block.text}"
            case Media():
                yield f"[{block.kind} {block.media_type}, {block.bytes:,} bytes]"
            case Opaque():
                yield f"[{block.kind}] {block.text}"
            case Thinking():
                pass
