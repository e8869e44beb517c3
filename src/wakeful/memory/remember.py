"""The flow of remembering: read what is given, scrub, embed, reconcile facts, write in one transaction.

Rules of the file:

- Raw turns are in the transaction whatever becomes of their facts; a failed extraction is parked with its reason.
- No model is asked and nothing is embedded inside a transaction.
- Facts are looked up for the whole batch at once, and decided one after the other, so a batch may contradict itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from wakeful.errors import ConfigError, MemoryContractError, ModelError
from wakeful.ids import content_id
from wakeful.memory import extract, reconcile
from wakeful.memory.claims import claim_of
from wakeful.memory.embedding import Space, embedded
from wakeful.memory.receipts import Remembered, Written
from wakeful.memory.settings import WritingSettings
from wakeful.memory.turns import as_given, dated_label, episodes, from_messages, guarded, scrubbed
from wakeful.needs import Flow, ask, now, run
from wakeful.ops import Change, GetNodes, Log, PutEdges, PutNodes, QueryNodes, SearchText, Visibility
from wakeful.records import MemoryEdge, MemoryLayer, MemoryNode, MemoryScope, Source, Turn, utc
from wakeful.replies import Unreadable
from wakeful.terms import query_terms

MENTIONED = "FROM"
"""Relation from a fact to the turn that it was taken from."""
REPLACES = "SUPERSEDES"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How one ``remember`` is to be done."""

    layer: MemoryLayer | None = None
    """Layer of a text; None: semantic."""
    label: str = ""
    at: datetime | None = None
    """When it was said; None: now. A ``Turn`` with its own time keeps that."""
    session: str | None = None
    speaker: str | None = None
    ref: str | None = None
    importance: float | None = None
    properties: dict[str, Any] = field(default_factory=dict)
    trust: Literal["low", "normal", "high"] = "normal"
    pinned: bool = False
    extract: bool = True
    """Take facts out of turns and texts."""
    model: bool = False
    """A model may be asked for them."""
    dialect: str | None = None
    expires_at: datetime | None = None


def remember(
    scope: MemoryScope, what: Any, options: Options, space: Space, settings: WritingSettings
) -> Flow[Remembered]:
    """Remember a text, a node, turns, messages, or a list of one of these. One transaction, all or nothing."""
    if not isinstance(scope, MemoryScope):
        raise MemoryContractError(f"remember needs a MemoryScope, not {scope!r}")
    moment = yield from now()
    at = utc(options.at, "remember(at=)") or moment
    batch = _read(scope, what, options, at, settings, moment)
    if not batch.episodes and not batch.facts and not batch.nodes:
        return Remembered(scope=scope)
    parked: tuple[str, ...] = ()
    if options.extract and batch.said:
        facts, parked = yield from _extract(batch, options, settings)
        batch.facts += _fact_nodes(scope, batch, facts)
    yield from _write_plan(scope, batch, space, settings)
    return (yield from _commit(scope, batch, parked))


@dataclass(slots=True)
class _Batch:
    """What one ``remember`` is going to write; a working value."""

    episodes: list[MemoryNode] = field(default_factory=list)
    nodes: list[MemoryNode] = field(default_factory=list)
    """Rows given whole: written as they are."""
    facts: list[MemoryNode] = field(default_factory=list)
    """Rows that are compared with what is known first."""
    said: list[MemoryNode] = field(default_factory=list)
    """Rows to take facts from."""
    decisions: list[reconcile.Decision] = field(default_factory=list)
    held: dict[str, MemoryNode] = field(default_factory=dict)
    """Rows given whole that exist, by id."""
    removed: int = 0
    """Secrets taken out."""
    unkeepable: int = 0
    """Characters taken out that no store can keep."""


def _read(
    scope: MemoryScope, what: Any, options: Options, at: datetime, settings: WritingSettings, moment: datetime
) -> _Batch:
    """Sort out what was given."""
    batch = _Batch()
    items: list[Any] = (
        [what] if isinstance(what, (str, Turn, MemoryNode, dict)) or hasattr(what, "content") else list(what)
    )
    kinds = {_kind(item) for item in items}
    if len(kinds) > 1:
        raise ConfigError(f"remember takes items of one kind at a time, not {', '.join(sorted(kinds))}")
    kind = next(iter(kinds), "")
    if kind == "node":
        _read_nodes(scope, items, batch, settings)
    elif kind == "text":
        for text in items:
            _read_text(scope, text, options, at, batch, settings)
    elif kind:
        if kind == "turn":
            given = as_given(items, trust=options.trust)
        else:
            given = from_messages(items, dialect=options.dialect, session=options.session)
        given = [each for each in given if each.turn.text and extract.clean(each.turn.text).strip()]
        batch.unkeepable += sum(
            extract.unkeepable(each.turn.text) + extract.unkeepable(each.turn.speaker or "") for each in given
        )
        batch.episodes, batch.removed = episodes(
            scope, given, at, scrub=settings.scrub, session=options.session, recorded_at=moment
        )
        batch.said = [node for node in batch.episodes if node.source.trust != "low" and node.source.by != "tool"]
    return batch


def _kind(item: Any) -> str:
    if isinstance(item, str):
        return "text"
    if isinstance(item, MemoryNode):
        return "node"
    return "turn" if isinstance(item, Turn) else "message"


def _read_nodes(scope: MemoryScope, items: Iterable[MemoryNode], batch: _Batch, settings: WritingSettings) -> None:
    for node in items:
        if node.scope != scope:
            raise MemoryContractError(
                f"node {node.id!r} is owned by {node.scope.path}, not by {scope.path}; a scope writes only its own rows"
            )
        clean, removed = scrubbed(node) if settings.scrub else (node, 0)
        batch.removed += removed
        batch.nodes.append(guarded(clean))


def _read_text(
    scope: MemoryScope, text: str, options: Options, at: datetime, batch: _Batch, settings: WritingSettings
) -> None:
    content = extract.clean(text).strip()
    if not content:
        raise ConfigError("an empty text can't be remembered")
    batch.unkeepable += extract.unkeepable(text)
    layer = MemoryLayer(options.layer) if options.layer is not None else MemoryLayer.SEMANTIC
    label = options.label
    if layer is MemoryLayer.EPISODIC and not label:
        label = dated_label(options.speaker, at)
    claim = None
    if layer is MemoryLayer.SEMANTIC:
        # A row is retired as a whole, so it claims no more than one thing.
        said = extract.sentences(content)
        claims = [claim_of(each, speaker=options.speaker, at=at) for each in said]
        apart = options.extract and options.trust != "low" and not options.label and not options.properties
        if len(said) > 1 and apart and None not in claims:
            for each in said:
                _read_text(scope, each, options, at, batch, settings)
            return
        if len(said) < 2:
            claim = claim_of(content, speaker=options.speaker, at=at)
    node = MemoryNode.new(
        scope=scope,
        layer=layer,
        label=label,
        content=content,
        at=at,
        properties={**reconcile.properties_of(claim), **options.properties},
        importance=options.importance if options.importance is not None else 5.0,
        pinned=options.pinned,
        expires_at=options.expires_at,
        valid_until=claim.until if claim is not None else None,
        source=Source(
            session=options.session,
            ref=options.ref,
            speaker=options.speaker,
            trust=options.trust,
            by="assistant" if options.speaker == "assistant" else "user",
        ),
    )
    if settings.scrub:
        node, removed = scrubbed(node)
        batch.removed += removed
    node = guarded(node)
    if layer is MemoryLayer.SEMANTIC and node.status == "active":
        batch.facts.append(node)
        if claim is None and len(extract.sentences(content)) > 1 and options.trust != "low":
            batch.said.append(node)
    else:
        batch.nodes.append(node)


def _extract(
    batch: _Batch, options: Options, settings: WritingSettings
) -> Flow[tuple[list[extract.Fact], tuple[str, ...]]]:
    """Take facts from what was said: with the model when there is one, by patterns otherwise or when it fails."""
    said = [extract.Said(node.content, node.source.speaker, node.asserted_at) for node in batch.said]
    if not options.model:
        return extract.by_patterns(said), ()
    reasons: list[str] = []
    for _ in range(settings.extraction_tries):
        try:
            reply = yield from ask(extract.request(said), "extractor")
            return extract.read_reply(reply.text, said, settings), ()
        except (ModelError, ConfigError, Unreadable, TimeoutError) as error:
            reasons.append(f"{type(error).__name__}: {error}")
            if isinstance(error, ModelError) and not error.retryable:
                break
    parked = f"{reasons[-1]} (asked {len(reasons)} times; patterns were used instead)"
    return extract.by_patterns(said), (parked,)


def _fact_nodes(scope: MemoryScope, batch: _Batch, facts: Sequence[extract.Fact]) -> list[MemoryNode]:
    nodes = []
    for fact in facts:
        origin = batch.said[fact.turn]
        if fact.text == origin.content and origin.layer is MemoryLayer.SEMANTIC:
            continue
        moment = origin.asserted_at
        claim = fact.claim
        text = fact.text
        node = MemoryNode(
            id=content_id(scope.path, origin.id, text, prefix="f-"),
            scope=scope,
            layer=MemoryLayer.SEMANTIC,
            label=claim.attribute if claim is not None else "",
            content=text,
            properties=reconcile.properties_of(claim),
            importance=fact.importance,
            source=replace(origin.source, by="extractor", entries=(origin.id,)),
            asserted_at=moment,
            updated_at=moment,
            valid_until=claim.until if claim is not None else None,
        )
        clean, removed = scrubbed(node)
        batch.removed += removed
        nodes.append(clean)
    return nodes


def _write_plan(scope: MemoryScope, batch: _Batch, space: Space, settings: WritingSettings) -> Flow[None]:
    """Look up what the facts are compared with, decide on each, and embed what will be written."""
    at = yield from now()
    if batch.nodes:
        (held,) = yield from run(GetNodes(scope, tuple(node.id for node in batch.nodes)))
        batch.held = {node.id: node for node in held}
    if batch.facts:
        known = yield from _known(scope, batch.facts, at, settings)
        so_far = reconcile.Batch()
        for fact, rows in zip(batch.facts, known, strict=True):
            decision = reconcile.decide(fact, so_far.around(fact, rows), at, settings)
            so_far.take(decision)
            batch.decisions.append(decision)
    fresh = [*batch.episodes, *batch.nodes, *(d.node for d in batch.decisions if d.write)]
    vectors = {node.id: node for node in (yield from embedded(fresh, space))}
    batch.episodes = [vectors[node.id] for node in batch.episodes]
    batch.nodes = [vectors[node.id] for node in batch.nodes]
    batch.decisions = [replace(d, node=vectors.get(d.node.id, d.node)) for d in batch.decisions]


def _known(
    scope: MemoryScope, facts: Sequence[MemoryNode], at: datetime, settings: WritingSettings
) -> Flow[list[list[MemoryNode]]]:
    """The rows that each fact is compared with: near by words, and those of the same attribute and subject."""
    visible = Visibility(at=at, layers=(MemoryLayer.SEMANTIC,), superseded=False)
    # A fact that ended still tells a late arrival where it belongs.
    ever = replace(visible, superseded=True)
    ops: list[Any] = []
    owner: list[int] = []
    for index, fact in enumerate(facts):
        terms = tuple(query_terms(fact.content))[:24]
        if terms:
            ops.append(SearchText(scope=scope, terms=terms, visibility=visible, limit=settings.neighbours))
            owner.append(index)
        claim = reconcile.claim_from(fact)
        if claim is not None:
            same = {"subject": claim.subject, "attribute": claim.attribute}
            ops.append(QueryNodes(scope=scope, visibility=ever, properties=same, owned_only=True, limit=32))
            owner.append(index)
    results = yield from run(*ops)
    found: list[list[MemoryNode]] = [[] for _ in facts]
    for index, rows in zip(owner, results, strict=True):
        found[index] += [row if isinstance(row, MemoryNode) else row.node for row in rows]
    return found


def _commit(scope: MemoryScope, batch: _Batch, parked: tuple[str, ...]) -> Flow[Remembered]:
    """Write everything in one transaction, and say what was done."""
    recorded = yield from now()
    final: dict[str, MemoryNode] = {}
    changes: list[Change] = []
    edges: list[MemoryEdge] = []
    for node in batch.nodes:
        old = batch.held.get(node.id)
        final[node.id] = node
        if old is None or _differs(old, node):
            action: Literal["add", "revise"] = "add" if old is None else "revise"
            changes.append(Change(node=node, action=action, reason="given as a node", at=recorded))
    for decision in batch.decisions:
        for row in decision.retired:
            row = replace(final.get(row.id, row), **_ends(row))
            final[row.id] = row
            changes.append(
                Change(
                    node=row,
                    action="supersede",
                    reason=f"replaced by {decision.node.id}: {decision.reason}",
                    at=recorded,
                )
            )
            edges.append(_edge(scope, decision.node.id, row.id, REPLACES, recorded))
        for row in decision.begun:
            final[row.id] = replace(final.get(row.id, row), valid_from=row.valid_from)
            changes.append(Change(node=final[row.id], action="revise", reason="its beginning is known", at=recorded))
        if decision.write:
            final[decision.node.id] = decision.node
            logged: Literal["add", "skip"] = "skip" if decision.action == "skip" else "add"
            changes.append(Change(node=decision.node, action=logged, reason=decision.reason, at=recorded))
        if decision.action != "skip":
            edges += [
                _edge(scope, decision.node.id, entry, MENTIONED, recorded) for entry in decision.node.source.entries
            ]
    ops: list[Any] = []
    batch.episodes = [_stamped(row, recorded) for row in batch.episodes]
    final = {node_id: _stamped(row, recorded) for node_id, row in final.items()}
    rows = (*batch.episodes, *final.values())
    if rows:
        ops.append(PutNodes(scope, rows))
    if edges:
        ops.append(PutEdges(scope, tuple(edges)))
    if changes:
        ops.append(Log(scope, tuple(changes)))
    yield from run(*ops)
    return _receipt(scope, batch, final, parked)


def _stamped(row: MemoryNode, recorded: datetime) -> MemoryNode:
    return row if row.recorded_at is not None else replace(row, recorded_at=recorded)


def _ends(row: MemoryNode) -> dict[str, Any]:
    names = ("valid_from", "valid_until", "superseded_at", "superseded_by")
    return {name: getattr(row, name) for name in names}


def _edge(scope: MemoryScope, source: str, target: str, relation: str, at: datetime) -> MemoryEdge:
    return MemoryEdge.new(
        scope=scope, source_id=source, target_id=target, relation=relation, at=at, provenance="remember"
    )


def _differs(old: MemoryNode, new: MemoryNode) -> bool:
    names = ("label", "content", "importance", "status", "valid_from", "valid_until")
    same = all(getattr(old, name) == getattr(new, name) for name in names)
    return not same or json.dumps(dict(old.properties), sort_keys=True, default=str) != json.dumps(
        dict(new.properties), sort_keys=True, default=str
    )


def _receipt(scope: MemoryScope, batch: _Batch, final: dict[str, MemoryNode], parked: tuple[str, ...]) -> Remembered:
    written = [Written(node=node, action="add", reason="kept verbatim") for node in batch.episodes]
    for node in batch.nodes:
        old = batch.held.get(node.id)
        action: Literal["add", "revise", "skip"] = "add" if old is None else "revise" if _differs(old, node) else "skip"
        written.append(Written(node=final[node.id], action=action, reason="given as a node"))
    for decision in batch.decisions:
        node = final.get(decision.node.id, decision.node)
        retired = tuple(row.id for row in decision.retired)
        written.append(Written(node=node, action=decision.action, reason=decision.reason, retired=retired))
    held_back = [each.node.id for each in written if "quarantine" in each.node.properties]
    return Remembered(
        scope=scope,
        written=tuple(written),
        scrubbed=batch.removed,
        quarantined=tuple(held_back),
        parked=parked,
        notes=_notes(batch),
    )


def _notes(batch: _Batch) -> tuple[str, ...]:
    if not batch.unkeepable:
        return ()
    return (f"{batch.unkeepable} characters that no store can keep were removed (NUL) or shown as U+FFFD (surrogates)",)
