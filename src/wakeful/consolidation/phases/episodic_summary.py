"""Old episodes are digested, a session at a time: the digest is written and checked before its sources are retired.

A session is ripe when its last turn is ``summary_days`` old. The digest (``digests``) keeps every identifier of its sources:
names, codes, numbers; and it mentions what they mentioned. Digest and retirement are one transaction, and each source points
to the digest. A session that changed while its digest was written is left for the next cycle, and a turn that changed in
the last moment is not retired.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from wakeful.consolidation.backlog import portions
from wakeful.consolidation.digests import digest
from wakeful.consolidation.links import inherited
from wakeful.consolidation.phase import Cycle, Outcome, Phase, least_trust, seen, unmoved
from wakeful.consolidation.phases.entity_links import RELATION as MENTIONS
from wakeful.ids import content_id
from wakeful.needs import Flow, run
from wakeful.ops import Change, Log, PutEdges, PutNodes, QueryNodes, UpdateNodes
from wakeful.records import MemoryEdge, MemoryLayer, MemoryNode, Source

LABEL = "digest"


def episodic_summary(cycle: Cycle) -> Flow[Outcome]:
    """Digest the sessions that are ripe."""
    ripe = cycle.started_at - timedelta(days=cycle.settings.summary_days)
    query = QueryNodes(
        scope=cycle.scope,
        visibility=cycle.visible(layers=(MemoryLayer.EPISODIC,)),
        idle_since=None if cycle.first else cycle.since - timedelta(days=cycle.settings.summary_days),
        idle_before=ripe,
        owned_only=True,
    )
    (old,), marks = yield from portions(cycle, "episodic_summary", (query,), cycle.settings.window_limit)
    sessions = sorted({node.source.session for node in cycle.own(old) if node.source.session and node.label != LABEL})
    if not sessions:
        return Outcome(batches=(marks,) if marks else (), rows_read=len(old))
    members = yield from run(*(_session(cycle, session) for session in sessions))
    notes: list[str] = []
    drafted: list[tuple[list[MemoryNode], str, str]] = []
    read = len(old) + sum(len(nodes) for nodes in members)
    for session, nodes in zip(sessions, members, strict=True):
        turns = sorted(
            (node for node in cycle.own(nodes) if node.label != LABEL and not node.pinned),
            key=lambda node: (node.asserted_at, node.id),
        )
        if len(turns) < cycle.settings.summary_episodes or turns[-1].asserted_at > ripe:
            continue
        text, by = yield from digest(cycle, turns)
        if not text or len(text) >= sum(len(turn.content) + 1 for turn in turns):
            notes.append(f"{session}: nothing shorter could be written; left as it is")
            continue
        drafted.append((turns, text, by))
    batches = []
    still = yield from unmoved(cycle, [turn for turns, _, _ in drafted for turn in turns])
    heirs = {_digest_id(cycle, turns): [turn.id for turn in turns] for turns, _, _ in drafted}
    links = yield from inherited(cycle, heirs, (MENTIONS,))
    for turns, text, by in drafted:
        session = turns[0].source.session or ""
        if any(turn.id not in still for turn in turns):
            notes.append(f"{session}: changed while its digest was written; left for the next cycle")
        else:
            batches.append(_retire(cycle, session, turns, text, by, links.get(_digest_id(cycle, turns), ())))
            notes.append(f"{session}: {len(turns)} turns digested ({by})")
    changed = sum(len(batch[1].changes) + 1 for batch in batches)
    kept = (*batches, marks) if marks else tuple(batches)
    return Outcome(batches=kept, changed=changed, rows_read=read, notes=tuple(notes))


def _session(cycle: Cycle, session: str) -> QueryNodes:
    return QueryNodes(
        scope=cycle.scope,
        visibility=cycle.visible(layers=(MemoryLayer.EPISODIC,)),
        session=session,
        owned_only=True,
        limit=cycle.settings.window_limit,
    )


def _digest_id(cycle: Cycle, turns: list[MemoryNode]) -> str:
    return content_id(cycle.scope.path, turns[0].source.session or "", *(turn.id for turn in turns), prefix="dg-")


def _retire(
    cycle: Cycle, session: str, turns: list[MemoryNode], text: str, by: str, links: tuple[MemoryEdge, ...]
) -> tuple[Any, ...]:
    """The digest and the retirement of its sources, for one transaction."""
    ids = tuple(turn.id for turn in turns)
    made = MemoryNode.new(
        id=_digest_id(cycle, turns),
        scope=cycle.scope,
        layer=MemoryLayer.EPISODIC,
        label=LABEL,
        content=text,
        at=turns[-1].asserted_at,
        importance=max(turn.importance for turn in turns),
        properties={"first_at": turns[0].asserted_at.isoformat(), "turns": len(turns), "by": by.partition(":")[0]},
        source=Source(by="consolidation", session=session, entries=ids, trust=least_trust(turns)),
    )
    changes = {
        turn.id: {"status": "retracted", "superseded_at": cycle.started_at, "superseded_by": made.id} for turn in turns
    }
    log = tuple(
        Change(node=turn, action="merge", reason=f"digested into {made.id}", at=cycle.started_at) for turn in turns
    )
    retire = UpdateNodes(scope=cycle.scope, changes=changes, expected=seen(turns))
    handed_on = (PutEdges(cycle.scope, links),) if links else ()
    return PutNodes(cycle.scope, (made,)), retire, Log(cycle.scope, log), *handed_on


EPISODIC_SUMMARY = Phase(
    name="episodic_summary",
    reads=("content", "source"),
    writes=("nodes:digest", "status", "superseded_by", "history"),
    run=episodic_summary,
)
