"""The flow of a recall: find candidates by words and by meaning, fetch what stands near, weigh, choose.

Two transactions of reads, a third only when the graph leads to rows that were not found. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from wakeful.errors import ConfigError, MemoryContractError, ModelError
from wakeful.needs import Flow, embed, now, run
from wakeful.ops import Adjacent, GetEdges, GetNodes, QueryNodes, SearchText, SearchVector, Visibility
from wakeful.records import MemoryEdge, MemoryLayer, MemoryNode, MemoryScope, utc
from wakeful.retrieval import lexical, rank
from wakeful.retrieval.activation import spread
from wakeful.retrieval.fuse import Candidate, Weighed, fuse, preliminary
from wakeful.retrieval.hits import ActivationLog, Explanation, Hit, Recall
from wakeful.retrieval.query import Query, read_query
from wakeful.retrieval.render import Tokens, render
from wakeful.retrieval.settings import RecallSettings

SHOWN_LAYERS = (MemoryLayer.SEMANTIC, MemoryLayer.EPISODIC, MemoryLayer.PROCEDURAL, MemoryLayer.WORKING)
"""Layers that a recall looks in when none are named: reminders come when they are due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One recall to be made."""

    scope: MemoryScope
    query: str
    k: int = 10
    layers: tuple[MemoryLayer, ...] | None = None
    """None: all but the prospective one."""
    as_of: datetime | None = None
    """What was true in the world then; None: now."""
    budget: int | None = None
    """Tokens of ``Recall.text``; None: no bound."""
    model: str | None = None
    """Id of the embedding model; None: by words alone."""
    settings: RecallSettings = field(default_factory=RecallSettings)

    def __post_init__(self) -> None:
        if not isinstance(self.scope, MemoryScope):
            raise MemoryContractError(f"a recall needs a MemoryScope, not {self.scope!r}")
        if not isinstance(self.query, str):
            raise ConfigError(f"a query is text, not {type(self.query).__name__}")
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 0:
            raise ConfigError(f"k is a whole number of hits, 0 or more, not {self.k!r}")
        if self.budget is not None and self.budget < 0:
            raise ConfigError(f"a token budget is 0 or more, not {self.budget}")
        utc(self.as_of, "recall(as_of=)")


@dataclass(frozen=True, slots=True)
class _Weighed:
    """What a recall knows before it chooses."""

    query: Query
    at: datetime
    visibility: Visibility
    ordered: Sequence[Candidate]
    weighed: Weighed
    log: ActivationLog
    notes: tuple[str, ...]


def recall(ask: Ask, tokens: Tokens) -> Flow[Recall]:
    """Recall what matters for a query. Raises nothing for a query without words: the most recent comes then."""
    found = yield from _weigh(ask)
    hits, brought = rank.choose(found.ordered, found.weighed, found.query, found.log, ask.k, ask.settings)
    shown, text, left_out = render(hits, ask.budget, tokens)
    return Recall(
        query=ask.query,
        scope=ask.scope,
        hits=shown,
        activation_log=replace(found.log, brought_in=brought),
        text=text,
        left_out=left_out,
        candidates=len(found.ordered),
        notes=found.notes,
    )


def explain(ask: Ask, node_id: str) -> Flow[Explanation]:
    """Say why a node was or was not recalled. A node that the scope may not see is not told from one that is not."""
    found = yield from _weigh(ask)
    hits, _ = rank.choose(found.ordered, found.weighed, found.query, found.log, ask.k, ask.settings)
    for place, hit in enumerate(hits, 1):
        if hit.node.id == node_id:
            return _explained(hit, place, found)
        if node_id in hit.also:
            said = f"place {place} says the same and stands for it: {hit.node.id}"
            return Explanation(id=node_id, recalled=False, reasons=(said, *hit.reasons))
    for place, each in enumerate(found.ordered, 1):
        if each.node.id == node_id:
            return _missed(each, place, hits, found, ask)
    return (yield from _not_found(ask, node_id, found))


def _explained(hit: Hit, place: int, found: _Weighed) -> Explanation:
    candidate = found.weighed.candidates[hit.node.id]
    terms = rank.matched_terms(found.query, candidate)
    reasons = (f"score {hit.score:.3f}", f"words in common: {', '.join(terms) or 'none'}", *hit.reasons)
    path = found.log.path_to(hit.node.id)
    return Explanation(id=hit.node.id, recalled=True, place=place, hit=hit, path=path, reasons=reasons)


def _missed(each: Candidate, place: int, hits: Sequence[Hit], found: _Weighed, ask: Ask) -> Explanation:
    terms = rank.matched_terms(found.query, each)
    least = min((dict_sum(hit.parts) for hit in hits), default=0.0)
    reasons = (
        f"weighed at place {place} of {len(found.ordered)}; k is {ask.k}",
        f"its score {each.score:.2f}, the last hit's {least:.2f}",
        f"words in common: {', '.join(terms) or 'none'}",
        *(f"{name} {value:+.2f}" for name, value in each.parts.items() if value),
    )
    path = found.log.path_to(each.node.id)
    return Explanation(id=each.node.id, recalled=False, path=path, reasons=reasons)


def dict_sum(parts: Sequence[tuple[str, float]]) -> float:
    """Add up the parts of a score, activation aside."""
    return sum(value for name, value in parts if name != "activation")


def _not_found(ask: Ask, node_id: str, found: _Weighed) -> Flow[Explanation]:
    """Look the node up without the visibility rule, to say which part of the rule hid it, or that nothing matched."""
    (nodes,) = yield from run(GetNodes(ask.scope, (node_id,)))
    if not nodes:
        return Explanation(id=node_id, recalled=False, reasons=("no such memory is visible in this scope",))
    node: MemoryNode = nodes[0]
    reasons = list(_hidden(node, found.visibility))
    if not reasons:
        bag = lexical.bag_of(node.label, node.content)
        common = [term for term in found.query.terms if term in bag.terms]
        reasons.append(
            f"found neither among the best {ask.settings.by_words} by words nor the best {ask.settings.by_meaning} by "
            f"meaning; words in common: {', '.join(common) or 'none'}"
        )
        if ask.model is not None and node.embedding_model != ask.model:
            reasons.append("it has no vector of the embedder in use; run reembed")
    return Explanation(id=node_id, recalled=False, reasons=tuple(reasons))


def _hidden(node: MemoryNode, visibility: Visibility) -> tuple[str, ...]:
    reasons = []
    if node.status not in visibility.statuses:
        reasons.append(f"its status is {node.status}")
    if visibility.layers is not None and node.layer not in visibility.layers:
        reasons.append(f"its layer {node.layer} was not asked for")
    if node.expires_at is not None and node.expires_at <= visibility.at:
        reasons.append(f"it expired at {node.expires_at.isoformat()}")
    if not node.holds_at(visibility.at, as_of=visibility.as_of):
        when = visibility.as_of or visibility.at
        by = f", superseded by {node.superseded_by}" if node.superseded_by else ""
        reasons.append(f"it does not hold at {when.isoformat()}{by}")
    return tuple(reasons)


def _weigh(ask: Ask) -> Flow[_Weighed]:
    at = yield from now()
    visibility = Visibility(at=at, as_of=utc(ask.as_of, "as_of"), layers=ask.layers or SHOWN_LAYERS)
    query = read_query(ask.query, ask.as_of or at)
    notes: list[str] = []
    vector = yield from _vector(ask, notes)
    found = yield from _search(ask, query, vector, visibility, notes)
    front = preliminary(found.values(), ask.settings)
    edges = yield from _surroundings(ask, front, found, visibility)
    log = yield from _activate(ask, front, edges, found, visibility)
    weighed = fuse(query, found, ask.settings)
    ordered = rank.order(weighed, at, ask.settings)
    if not query.terms and vector is None:
        ordered = sorted(ordered, key=lambda each: (each.node.asserted_at, each.node.id), reverse=True)
    return _Weighed(query, at, visibility, ordered, weighed, log, tuple(notes))


def _vector(ask: Ask, notes: list[str]) -> Flow[bytes | None]:
    if ask.model is None or not ask.query.strip():
        return None
    try:
        (vector,) = yield from embed((ask.query,), "query")
    except ModelError as error:
        notes.append(f"searched by words alone, since the embedder failed: {error}")
        return None
    return vector if any(vector) else None


def _search(
    ask: Ask, query: Query, vector: bytes | None, visibility: Visibility, notes: list[str]
) -> Flow[dict[str, Candidate]]:
    ops: list[Any] = []
    settings = ask.settings
    wanted = max(1, ask.k)
    if query.terms:
        limit = max(settings.by_words, 2 * wanted)
        ops.append(SearchText(scope=ask.scope, terms=query.terms, visibility=visibility, limit=limit))
    if vector is not None and ask.model is not None:
        limit = max(settings.by_meaning, 2 * wanted)
        ops.append(SearchVector(scope=ask.scope, vector=vector, model=ask.model, visibility=visibility, limit=limit))
    if not ops:
        notes.append("nothing to search by, so the most recent come")
        ops.append(QueryNodes(scope=ask.scope, visibility=visibility, order="asserted", limit=wanted))
    results = yield from run(*ops)
    found: dict[str, Candidate] = {}
    for op, rows in zip(ops, results, strict=True):
        for row in rows:
            node = row if isinstance(row, MemoryNode) else row.node
            each = found.get(node.id)
            if each is None:
                each = found[node.id] = Candidate(node)
            if isinstance(op, SearchText):
                each.words = row.score
            elif isinstance(op, SearchVector):
                each.cosine = row.score
    return found


def _surroundings(
    ask: Ask, front: Sequence[Candidate], found: dict[str, Candidate], visibility: Visibility
) -> Flow[tuple[MemoryEdge, ...]]:
    """Fetch what was said around the best candidates, and the edges of the seeds, in one transaction."""
    anchors = tuple(
        each.node.id for each in front[: ask.settings.neighbours_of] if each.node.source.session is not None
    )
    seeds = tuple(each.node.id for each in front[: ask.settings.seeds])
    ops: list[Any] = []
    if anchors:
        ops.append(Adjacent(scope=ask.scope, ids=anchors, visibility=visibility))
    if seeds:
        ops.append(GetEdges(ask.scope, seeds, at=visibility.as_of or visibility.at))
    results = yield from run(*ops)
    edges: tuple[MemoryEdge, ...] = ()
    for op, rows in zip(ops, results, strict=True):
        if isinstance(op, GetEdges):
            edges = rows
            continue
        for anchor, distance, node in rows:
            other = found.get(node.id)
            if other is None:
                other = found[node.id] = Candidate(node)
            if distance < 0:
                found[anchor].before, other.after = node.id, anchor
            else:
                found[anchor].after, other.before = node.id, anchor
    return edges


def _activate(
    ask: Ask,
    front: Sequence[Candidate],
    edges: tuple[MemoryEdge, ...],
    found: dict[str, Candidate],
    visibility: Visibility,
) -> Flow[ActivationLog]:
    """Spread from the best candidates; rows that were reached and not found become candidates."""
    best = front[: ask.settings.seeds]
    seeds = [(each.node.id, 1.0 / (1 + 0.25 * place)) for place, each in enumerate(best)]
    if not edges:
        return ActivationLog(seeds=tuple(seeds))
    held = list(edges)
    for _ in range(1, ask.settings.hops):
        log = spread(seeds, held, ask.settings)
        outer = tuple(node_id for node_id, _ in log.activation[: 4 * ask.settings.seeds] if node_id not in dict(seeds))
        if not outer:
            break
        (more,) = yield from run(GetEdges(ask.scope, outer, at=visibility.as_of or visibility.at, limit_per_node=16))
        held += more
    log = spread(seeds, held, ask.settings)
    missing = tuple(node_id for node_id, _ in log.activation[:64] if node_id not in found)
    if missing:
        (nodes,) = yield from run(GetNodes(ask.scope, missing, visibility))
        for node in nodes:
            found[node.id] = Candidate(node)
    # What the reader may not be shown is not named in the log either.
    return replace(
        log,
        steps=tuple(step for step in log.steps if step.source in found and step.target in found),
        activation=tuple(item for item in log.activation if item[0] in found),
    )
