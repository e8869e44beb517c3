"""Rules of single layers: the nearest skill wins, working memory is bounded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from wakeful.ids import time_id
from wakeful.memory.extract import clean
from wakeful.memory.scrub import scrub_text
from wakeful.memory.settings import WritingSettings
from wakeful.needs import Flow, now, run
from wakeful.ops import DeleteNodes, PutNodes, QueryNodes, Visibility
from wakeful.records import MemoryLayer, MemoryNode, MemoryScope, Source

MOST = 1_000
"""Skills about one tool that are looked at."""


def nearest(skills: Iterable[MemoryNode]) -> tuple[MemoryNode, ...]:
    """Keep, of skills with one label, the one whose scope lies deepest; skills without a label all stay."""
    held: dict[str, MemoryNode] = {}
    for skill in skills:
        key = skill.label or f"\n{skill.id}"
        other = held.get(key)
        if other is None or _closer(skill, other):
            held[key] = skill
    return tuple(held.values())


def _closer(skill: MemoryNode, other: MemoryNode) -> bool:
    here, there = len(skill.scope.levels), len(other.scope.levels)
    return here > there or (here == there and (skill.updated_at, skill.id) > (other.updated_at, other.id))


def skills(scope: MemoryScope, *, limit: int = 200) -> Flow[tuple[MemoryNode, ...]]:
    """The skills in force at a scope: active, the nearest of each label, most important first."""
    moment = yield from now()
    visibility = Visibility(at=moment, layers=(MemoryLayer.PROCEDURAL,))
    (rows,) = yield from run(QueryNodes(scope=scope, visibility=visibility, order="importance", limit=limit))
    found: Sequence[MemoryNode] = rows
    return nearest(found)


def skills_about(scope: MemoryScope, tools: Sequence[str]) -> Flow[tuple[MemoryNode, ...]]:
    """The skills in force about these tools (``properties["tool"]``), all of them, however important they are."""
    moment = yield from now()
    visibility = Visibility(at=moment, layers=(MemoryLayer.PROCEDURAL,))
    found = yield from run(
        *(QueryNodes(scope=scope, visibility=visibility, properties={"tool": name}, limit=MOST) for name in tools)
    )
    return tuple(node for rows in found for node in rows)


def note(
    scope: MemoryScope, text: str, settings: WritingSettings, *, session: str | None = None, label: str = ""
) -> Flow[MemoryNode]:
    """Put down a working entry. The session's oldest entries give way, and every entry ends with its time to live."""
    moment = yield from now()
    content = clean(text)
    if settings.scrub:
        content, _ = scrub_text(content)
    node = MemoryNode.new(
        scope=scope,
        layer=MemoryLayer.WORKING,
        label=label,
        content=content,
        at=moment,
        id=time_id(int(moment.timestamp() * 1000)),
        source=Source(session=session),
        expires_at=moment + timedelta(seconds=settings.working_seconds),
    )
    everything = Visibility(at=moment, layers=(MemoryLayer.WORKING,), expired=True)
    _, rows = yield from run(
        PutNodes(scope, (node,)),
        QueryNodes(scope=scope, visibility=everything, session=session, owned_only=True, order="updated", limit=500),
    )
    rows = [row for row in rows if row.source.session == session]
    gone = tuple(
        row.id
        for place, row in enumerate(rows)
        if row.id != node.id and (place >= settings.working_entries or (row.expires_at or moment) < moment)
    )
    if gone:
        yield from run(DeleteNodes(scope, gone))
    return node


def working(scope: MemoryScope, *, session: str | None = None, limit: int = 32) -> Flow[tuple[MemoryNode, ...]]:
    """The last working entries, oldest first."""
    moment = yield from now()
    visibility = Visibility(at=moment, layers=(MemoryLayer.WORKING,))
    (rows,) = yield from run(
        QueryNodes(scope=scope, visibility=visibility, session=session, owned_only=True, order="updated", limit=limit)
    )
    return tuple(reversed(rows))
