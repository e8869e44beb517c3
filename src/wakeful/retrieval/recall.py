"""The flow of a recall: find candidates by words and by meaning, fetch what stands near, weigh, choose.

Three transactions of reads: what is found, what stands around the best of it, and the rows that are shown, unless the
store gave them at once; one more when the graph leads to rows that were not found. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from wakeful.errors import ConfigError, MemoryContractError, ModelError
from wakeful.needs import Flow, embed, now, run
from wakeful.ops import Adjacent, FindCandidates, Found, GetEdges, GetNodes, QueryNodes, Visibility
from wakeful.records import MemoryEdge, MemoryLayer, MemoryNode, MemoryScope, utc
from wakeful.retrieval import rank
from wakeful.retrieval.activation import spread
from wakeful.retrieval.fuse import Weighed, fuse, preliminary
from wakeful.retrieval.hits import ActivationLog, Explanation, Hit, Recall
from wakeful.retrieval.pool import Pool
from wakeful.retrieval.query import Query, read_query
from wakeful.retrieval.render import Tokens, render
from wakeful.retrieval.settings import RecallSettings
from wakeful.sketches import sketch_of

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
    ordered: Sequence[int]
    weighed: Weighed
    log: ActivationLog
    notes: tuple[str, ...]


def recall(ask: Ask, tokens: Tokens) -> Flow[Recall]:
    """Recall what matters for a query. Raises nothing for a query without words: the most recent comes then."""
    found = yield from _weigh(ask)
    hits, brought = yield from _choose(ask, found)
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
    hits, _ = yield from _choose(ask, found)
    for place, hit in enumerate(hits, 1):
        if hit.node.id == node_id:
            return _explained(hit, place, found)
        if node_id in hit.also:
            said = f"place {place} says the same and stands for it: {hit.node.id}"
            return Explanation(id=node_id, recalled=False, reasons=(said, *hit.reasons))
    candidate = found.weighed.pool.place.get(node_id)
    if candidate is not None:
        return _missed(candidate, hits, found, ask)
    return (yield from _not_found(ask, node_id, found))


def _choose(ask: Ask, found: _Weighed) -> Flow[tuple[tuple[Hit, ...], tuple[str, ...]]]:
    """Choose what is shown, and read the rows of it that the store did not give at once."""
    choice = rank.choose(found.ordered, found.weighed, found.query, found.log, ask.k, ask.settings)
    sketches = [found.weighed.pool.sketches[group[0]] for group in choice.groups]
    nodes = {sketch.id: sketch.node for sketch in sketches if sketch.node is not None}
    missing = tuple(sketch.id for sketch in sketches if sketch.node is None)
    if missing:
        (rows,) = yield from run(GetNodes(ask.scope, missing, found.visibility))
        nodes |= {node.id: node for node in rows}
    return rank.hits(choice, found.weighed, found.ordered, found.log, nodes), choice.brought


def _explained(hit: Hit, place: int, found: _Weighed) -> Explanation:
    pool = found.weighed.pool
    terms = rank.matched_terms(found.query, pool.sketches[pool.place[hit.node.id]])
    reasons = (f"score {hit.score:.3f}", f"words in common: {', '.join(terms) or 'none'}", *hit.reasons)
    path = found.log.path_to(hit.node.id)
    return Explanation(id=hit.node.id, recalled=True, place=place, hit=hit, path=path, reasons=reasons)


def _missed(candidate: int, hits: Sequence[Hit], found: _Weighed, ask: Ask) -> Explanation:
    sketch = found.weighed.pool.sketches[candidate]
    terms = rank.matched_terms(found.query, sketch)
    least = min((dict_sum(hit.parts) for hit in hits), default=0.0)
    place = found.ordered.index(candidate) + 1
    reasons = (
        f"weighed at place {place} of {len(found.ordered)}; k is {ask.k}",
        f"its score {found.weighed.scores[candidate]:.2f}, the last hit's {least:.2f}",
        f"words in common: {', '.join(terms) or 'none'}",
        *(f"{name} {value:+.2f}" for name, value in found.weighed.parts(candidate).items() if value),
    )
    return Explanation(id=sketch.id, recalled=False, path=found.log.path_to(sketch.id), reasons=reasons)


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
        common = rank.matched_terms(found.query, sketch_of(node, found.query.terms))
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
    pool = yield from _search(ask, query, vector, visibility, notes)
    front = preliminary(pool, ask.settings)
    edges = yield from _surroundings(ask, query, front, pool, visibility)
    log = yield from _activate(ask, query, front, edges, pool, visibility)
    weighed = fuse(query, pool, ask.settings)
    ordered = rank.order(weighed, at, ask.settings)
    if not query.terms and vector is None:
        ordered.sort(key=lambda place: (pool.sketches[place].asserted, pool.sketches[place].id), reverse=True)
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


def _search(ask: Ask, query: Query, vector: bytes | None, visibility: Visibility, notes: list[str]) -> Flow[Pool]:
    settings, wanted = ask.settings, max(1, ask.k)
    if not query.terms and vector is None:
        notes.append("nothing to search by, so the most recent come")
        (rows,) = yield from run(QueryNodes(scope=ask.scope, visibility=visibility, order="asserted", limit=wanted))
        return Pool(Found(sketch_of(node, query.terms), None, None) for node in rows)
    (found,) = yield from run(
        FindCandidates(
            scope=ask.scope,
            terms=query.terms,
            vector=vector,
            model=ask.model or "",
            visibility=visibility,
            by_words=max(settings.by_words, 2 * wanted),
            by_meaning=max(settings.by_meaning, 2 * wanted),
        )
    )
    return Pool(found)


def _surroundings(
    ask: Ask, query: Query, front: Sequence[int], pool: Pool, visibility: Visibility
) -> Flow[tuple[MemoryEdge, ...]]:
    """Fetch what was said around the best candidates, and the edges of the seeds, in one transaction."""
    best = [pool.sketches[place] for place in front[: max(ask.settings.neighbours_of, ask.settings.seeds)]]
    anchors = tuple(sketch.id for sketch in best[: ask.settings.neighbours_of] if sketch.session is not None)
    seeds = tuple(sketch.id for sketch in best[: ask.settings.seeds])
    ops: list[Any] = []
    if anchors:
        ops.append(Adjacent(scope=ask.scope, ids=anchors, visibility=visibility, terms=query.terms))
    if seeds:
        ops.append(GetEdges(ask.scope, seeds, at=visibility.as_of or visibility.at))
    results = yield from run(*ops)
    edges: tuple[MemoryEdge, ...] = ()
    for op, rows in zip(ops, results, strict=True):
        if isinstance(op, GetEdges):
            edges = rows
            continue
        for anchor, distance, sketch in rows:
            pool.put_beside(anchor, distance, sketch)
    return edges


def _activate(
    ask: Ask,
    query: Query,
    front: Sequence[int],
    edges: tuple[MemoryEdge, ...],
    pool: Pool,
    visibility: Visibility,
) -> Flow[ActivationLog]:
    """Spread from the best candidates; rows that were reached and not found become candidates."""
    best = front[: ask.settings.seeds]
    seeds = [(pool.sketches[candidate].id, 1.0 / (1 + 0.25 * place)) for place, candidate in enumerate(best)]
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
    missing = tuple(node_id for node_id, _ in log.activation[:64] if node_id not in pool.place)
    if missing:
        (nodes,) = yield from run(GetNodes(ask.scope, missing, visibility))
        for node in nodes:
            pool.add(sketch_of(node, query.terms))
    # What the reader may not be shown is not named in the log either.
    return replace(
        log,
        steps=tuple(step for step in log.steps if step.source in pool.place and step.target in pool.place),
        activation=tuple(item for item in log.activation if item[0] in pool.place),
    )
