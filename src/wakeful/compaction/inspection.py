"""What fills a window: tokens by role and by kind of content, the rounds, the largest contents, what is not valid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wakeful.compaction.budget import Budget
from wakeful.compaction.measure import measure
from wakeful.compaction.meter import Meter
from wakeful.compaction.rounds import rounds_of
from wakeful.dialects.protocol import (
    Block,
    Dialect,
    Media,
    Opaque,
    Problem,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)

KINDS = ("text", "thinking", "call", "result", "media", "other")
"""Kinds of content, in the order in which they are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """One large content."""

    index: int
    """Index of the message."""
    role: str
    kind: str
    tokens: int
    """Estimate."""
    preview: str
    """Its beginning, on one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundSize:
    """One round of the conversation."""

    start: int
    stop: int
    """Index behind its last message."""
    tokens: int
    calls: bool
    pinned: str
    """Why a compaction would leave it alone; empty when it may go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What is in a conversation, as it stands."""

    dialect: str
    messages: int
    tokens: int
    """Estimate of the whole history."""
    wire_bytes: int
    """Approximate size in a request."""
    by_role: dict[str, int]
    """Tokens by role."""
    by_kind: dict[str, int]
    """Tokens by kind of content."""
    rounds: tuple[RoundSize, ...]
    largest: tuple[Content, ...]
    """Largest contents, largest first."""
    problems: tuple[Problem, ...]
    budget: Budget
    """The window that it is measured against."""

    @property
    def over(self) -> bool:
        """Whether the next request does not fit."""
        return self.tokens > self.budget.room


def inspect_messages(
    messages: Sequence[Any], dialect: Dialect, meter: Meter, budget: Budget, *, largest: int = 8
) -> Inspection:
    """Read a conversation whole and say what fills it. Linear; nothing is changed."""
    history = measure(dialect, messages, meter.count)
    by_role: Counter[str] = Counter()
    by_kind: Counter[str] = Counter()
    contents: list[Content] = []
    for index, message in enumerate(messages):
        view = dialect.read(message)
        for block in view.blocks:
            kind, text, tokens = _part(block, dialect, meter)
            by_kind[kind] += meter.scaled(tokens)
            role = "tool" if kind == "result" else view.role
            by_role[role] += meter.scaled(tokens)
            contents.append(
                Content(
                    index=index, role=role, kind=kind, tokens=meter.scaled(tokens), preview=" ".join(text[:200].split())
                )
            )
    contents.sort(key=lambda content: (-content.tokens, content.index))
    running = history.running_tokens()
    rounds = tuple(
        RoundSize(
            start=each.start,
            stop=each.stop,
            tokens=meter.scaled(running[each.stop] - running[each.start]),
            calls=each.calls,
            pinned=each.pinned,
        )
        for each in rounds_of(history, dialect.facts)
    )
    return Inspection(
        dialect=dialect.name,
        messages=len(messages),
        tokens=meter.scaled(history.tokens),
        wire_bytes=history.size,
        by_role={role: by_role[role] for role in ("system", "user", "assistant", "tool") if by_role[role]},
        by_kind={kind: by_kind[kind] for kind in KINDS if by_kind[kind]},
        rounds=rounds,
        largest=tuple(contents[:largest]),
        problems=tuple(dialect.validate(messages)),
        budget=budget,
    )


def _part(block: Block, dialect: Dialect, meter: Meter) -> tuple[str, str, int]:
    """(kind, text, tokens in the meter's own unit) of a block."""
    match block:
        case Text(text):
            return "text", text, meter.count(text, "text")
        case Thinking(text=text):
            return "thinking", text, meter.count(text, "text")
        case ToolUse():
            text = f"{block.name}({block.arguments})"
            return "call", text, meter.count(text, "json")
        case ToolResult():
            media = dialect.facts.media_tokens if block.media_bytes else 0
            return "result", block.text, meter.count(block.text, "text") + media
        case Media():
            return "media", f"{block.kind} {block.media_type} ({block.bytes:,} bytes)", dialect.facts.media_tokens
        case Opaque():
            return "other", block.kind, meter.count(block.text, "json")
