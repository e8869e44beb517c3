"""Show memories: as lines that no stored text can break out of, and as plain JSON data."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wakeful.records import MemoryEdge, MemoryNode

_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
"""Unicode categories that a terminal obeys or does not show: escape sequences, direction marks, tags."""
_JOINER = "\u200d"
"""Joins emoji and letters of some scripts; shown as it is."""


def shown(text: str, width: int = 0) -> str:
    """One line of a text with what a terminal would obey made visible; cut to ``width`` characters (0: not cut)."""
    if width:
        text = text[: width * 4 + 64]
    line = " ".join(text.split())
    if not line.isprintable():
        line = "".join(
            c if c == _JOINER or unicodedata.category(c) not in _HIDDEN else "\N{REPLACEMENT CHARACTER}" for c in line
        )
    return line if not width or len(line) <= width else line[: max(1, width - 1)] + "…"


def text_of(node: MemoryNode) -> str:
    """What a memory says."""
    return node.content or node.label


def day(moment: datetime | None) -> str:
    """The day of a moment; empty for None."""
    return "" if moment is None else moment.strftime("%Y-%m-%d")


def marks(node: MemoryNode) -> str:
    """What is special about a memory, in brackets; empty for nothing."""
    found: list[str] = []
    if node.status != "active":
        found.append(node.status)
    if node.superseded_at is not None:
        found.append("superseded")
    if node.source.trust == "low":
        found.append("untrusted")
    if node.pinned:
        found.append("pinned")
    return f" ({', '.join(found)})" if found else ""


def line_of(node: MemoryNode, width: int) -> str:
    """One line for a memory: id, day, layer, who, what."""
    who = f"{shown(node.source.speaker, 24)}: " if node.source.speaker else ""
    head = f"{node.id}  {day(node.asserted_at)}  {node.layer:<11}  "
    return head + shown(f"{who}{text_of(node)}", max(24, width - len(head))) + marks(node)


def node_data(node: MemoryNode) -> dict[str, Any]:
    """A memory as JSON data."""
    source = node.source
    return {
        "id": node.id,
        "scope": node.scope.path,
        "layer": str(node.layer),
        "label": node.label,
        "content": node.content,
        "properties": dict(node.properties),
        "importance": node.importance,
        "status": node.status,
        "pinned": node.pinned,
        "source": {
            "by": source.by,
            "trust": source.trust,
            "session": source.session,
            "speaker": source.speaker,
            "ref": source.ref,
            "entries": list(source.entries),
        },
        **{name: _iso(getattr(node, name)) for name in _TIMES},
        "superseded_by": node.superseded_by,
        "access_count": node.access_count,
        "embedding_model": node.embedding_model,
    }


_TIMES = (
    "asserted_at",
    "updated_at",
    "accessed_at",
    "recorded_at",
    "valid_from",
    "valid_until",
    "superseded_at",
    "expires_at",
)


def edge_data(edge: MemoryEdge) -> dict[str, Any]:
    """A relation as JSON data."""
    return {
        "id": edge.id,
        "scope": edge.scope.path,
        "source_id": edge.source_id,
        "target_id": edge.target_id,
        "relation": edge.relation,
        "weight": edge.weight,
        "provenance": edge.provenance,
        "evidence": list(edge.evidence),
    }


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def card(node: MemoryNode, edges: Sequence[MemoryEdge], names: dict[str, str]) -> Iterator[str]:
    """Everything about one memory, as lines."""
    yield f"{node.id}  {node.layer}{marks(node)}"
    yield f"  scope       {node.scope.path}"
    if node.label:
        yield f"  label       {shown(node.label)}"
    for number, line in enumerate((node.content or "").splitlines() or [""]):
        yield f"  {'content' if number == 0 else '':<11} {shown(line)}"
    yield f"  importance  {node.importance:g}"
    source = node.source
    said = [f"by {source.by}", f"trust {source.trust}"]
    said += [
        f"{name} {shown(str(value))}"
        for name, value in (("speaker", source.speaker), ("session", source.session), ("ref", source.ref))
        if value
    ]
    yield f"  source      {', '.join(said)}"
    for name in _TIMES:
        value = getattr(node, name)
        if value is not None:
            yield f"  {name.removesuffix('_at'):<11} {value:%Y-%m-%d %H:%M:%S} UTC"
    if node.superseded_by:
        yield f"  superseded by {node.superseded_by}"
    for key, value in node.properties.items():
        yield f"  · {shown(str(key))} = {shown(str(value), 160)}"
    for edge in edges:
        out = edge.source_id == node.id
        other = edge.target_id if out else edge.source_id
        arrow = f"─{edge.relation}→" if out else f"←{edge.relation}─"
        yield f"  {arrow} {other}  {shown(names.get(other, ''), 60)}  ({edge.weight:.2f})"
