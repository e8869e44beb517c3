"""Turn what a caller gives into rows: turns, texts, provider messages.

A turn becomes an episode, verbatim. Its id follows from its content and place, so the same turn given twice is one row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

from wakeful import dialects
from wakeful.dialects.protocol import Dialect, Text, ToolResult, ToolUse
from wakeful.errors import ConfigError, UnknownFormat
from wakeful.ids import content_id
from wakeful.memory.extract import clean
from wakeful.memory.scrub import scrub_text, scrub_value
from wakeful.records import MemoryLayer, MemoryNode, MemoryScope, Source, Turn, utc

Trust: TypeAlias = Literal["low", "normal", "high"]

_MONTHS = "January February March April May June July August September October November December".split()

_ORDERS = re.compile(
    r"ignore (?:all |any |the |your )*(?:previous|prior|above|earlier) (?:instructions|rules|messages)"
    r"|disregard (?:all|any|the|your|previous)|you are now (?:a|an|in)\b|new (?:system )?instructions?:"
    r"|^\s*\[?(?:system|assistant|developer)\]?\s*:|<\s*/?\s*(?:system|memory|memories|instructions?|assistant)\b"
    r"|\[(?:system|developer)\]\s*:|\[/?INST\]|<\|[a-z_]+\|>|do not (?:tell|inform|mention).{0,40}\buser\b"
    r"|override (?:your|the|all) "
    r"|from now on,? (?:you|always|never)|reveal (?:your|the) (?:system )?prompt|[\U000e0020-\U000e007f]",
    re.IGNORECASE | re.MULTILINE,
)
"""Text that gives orders to a model. Source: the shapes listed under indirect prompt injection in OWASP's LLM01:2025."""


@dataclass(frozen=True, slots=True)
class Given:
    """A turn with how far it is trusted."""

    turn: Turn
    by: str = "user"
    trust: Trust = "normal"
    properties: Mapping[str, Any] = field(default_factory=dict)
    """Of what a tool returned: ``tool``, its name, and ``ok``, whether it worked."""


def gives_orders(text: str) -> bool:
    """Whether a text speaks to a model in the way of an injection."""
    return _ORDERS.search(text) is not None


def dated_label(speaker: str | None, at: datetime) -> str:
    """Label of an episode: who spoke and on which day. It is searched by words, so a name or a date finds it."""
    date = f"{at.day} {_MONTHS[at.month - 1]} {at.year}"
    return f"{speaker}, {date}" if speaker else date


def episodes(
    scope: MemoryScope,
    given: Sequence[Given],
    at: datetime,
    *,
    scrub: bool = True,
    session: str | None = None,
    recorded_at: datetime | None = None,
) -> tuple[list[MemoryNode], int]:
    """Make the episodes of turns, in order. Gives the rows and how many secrets were removed.

    ``at`` is the time of a turn without one, a microsecond later for each that follows, so that what sorts by time keeps
    their order; ``session`` the conversation of a turn without one. Several turns without either are one conversation.
    """
    if session is None and len(given) > 1:
        session = content_id("session", *(each.turn.text[:200] for each in given[:8]), at.isoformat(), prefix="c-")
    nodes, removed = [], 0
    for number, each in enumerate(given):
        turn = each.turn
        text = clean(turn.text)
        if scrub:
            text, found = scrub_text(text)
            removed += found
        moment = utc(turn.at, "Turn.at") or at
        said_at = moment if turn.at is not None else moment + timedelta(microseconds=number)
        place = turn.session if turn.session is not None else session
        speaker = clean(turn.speaker) if turn.speaker else None
        quarantined = each.trust == "low" and gives_orders(text)
        node_id = content_id(
            *(scope.path, place or "", turn.ref or "", speaker or "", moment.isoformat(), text), prefix="t-"
        )
        nodes.append(
            MemoryNode(
                id=node_id,
                scope=scope,
                layer=MemoryLayer.EPISODIC,
                label=dated_label(speaker, moment),
                content=text,
                properties={**each.properties, **({"quarantine": "gives orders"} if quarantined else {})},
                status="draft" if quarantined else "active",
                source=Source(session=place, ref=turn.ref, speaker=speaker, by=each.by, trust=each.trust),
                asserted_at=said_at,
                updated_at=said_at,
                recorded_at=recorded_at,
            )
        )
    return nodes, removed


def scrubbed(node: MemoryNode) -> tuple[MemoryNode, int]:
    """Remove the secrets of a node: label, content, properties at any depth. A changed text loses its vector."""
    label, in_label = scrub_text(node.label)
    content, in_content = scrub_text(node.content)
    properties, in_properties = scrub_value(node.properties)
    count = in_label + in_content + in_properties
    if not count:
        return node, 0
    changes: dict[str, Any] = {"label": label, "content": content, "properties": properties}
    if in_label or in_content:
        changes |= {"embedding": None, "embedding_model": None}
    return replace(node, **changes), count


def guarded(node: MemoryNode) -> MemoryNode:
    """Hold back what must not act without approval: low-trust rules, skills and reminders, and text that gives orders."""
    if node.source.trust != "low" or node.status != "active":
        return node
    if node.layer in (MemoryLayer.PROCEDURAL, MemoryLayer.PROSPECTIVE):
        return replace(node, status="draft")
    if gives_orders(node.content) or gives_orders(node.label):
        return replace(node, status="draft", properties={**node.properties, "quarantine": "gives orders"})
    return node


NO_TEXT = "[returned no text]"
_SPEAKERS = {"user": "user", "assistant": "assistant", "tool": "tool"}


def from_messages(
    messages: Sequence[Any], *, dialect: str | Dialect | None = None, session: str | None = None
) -> list[Given]:
    """Read a provider's own messages as turns. What tools returned is of low trust; system prompts are left out.

    A call is part of its message's turn and its result a turn behind it, also one without text: a call that is kept has
    its result beside it.

    Raises ``ConfigError`` for what is no message of a known format.
    """
    try:
        reader = dialects.get(dialect) if dialect is not None else dialects.guess(messages)
    except UnknownFormat as error:
        raise ConfigError(
            f"remember takes text, Turns, MemoryNodes or a provider's messages, not a {type(messages[0]).__name__} ({error})"
        ) from error
    given: list[Given] = []
    names: dict[str, str] = {}
    for index, message in enumerate(messages):
        view = reader.read(message)
        ref = view.id or f"m{index}"
        said = [block.text for block in view.blocks if isinstance(block, Text) and block.text.strip()]
        called = [f"[calls {block.name} {block.arguments}]" for block in view.blocks if isinstance(block, ToolUse)]
        names |= {block.id: block.name for block in view.blocks if isinstance(block, ToolUse)}
        if view.role in ("user", "assistant") and (said or called):
            text = "\n".join((*said, *called))
            given.append(Given(Turn(text, speaker=_SPEAKERS[view.role], session=session, ref=ref), view.role))
        for block in view.blocks:
            if isinstance(block, ToolResult):
                name = block.name or names.get(block.call_id, "tool")
                text = block.text if block.text.strip() else NO_TEXT
                turn = Turn(text, speaker=name, session=session, ref=f"{ref}:{block.call_id}")
                given.append(Given(turn, "tool", "low", {"tool": name, "ok": not block.error}))
        if view.role == "tool" and not any(isinstance(block, ToolResult) for block in view.blocks) and said:
            given.append(Given(Turn("\n".join(said), speaker="tool", session=session, ref=ref), "tool", "low"))
    return given


def as_given(turns: Iterable[Turn], *, trust: Trust = "normal", by: str | None = None) -> list[Given]:
    """Wrap turns; a turn whose speaker is ``assistant`` or ``tool`` was written by it."""
    return [
        Given(turn, by or (turn.speaker if turn.speaker in ("assistant", "tool") else "user"), trust) for turn in turns
    ]
