"""Choose the hits: priors that only nudge, one hit for a fact and its source, nearest skill, tail by activation.

Rules of the file:

- A prior is bounded: importance, recency and use together move a score by at most 0.2, less than one word of a query.
- Activation never moves the head (``settings.head`` places); behind it, it may take a fifth of the places for what was
  not found (a third when the query asks broadly).
- Nothing is dropped in silence: what a hit stands for is named in its ``also``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from wakeful.records import MemoryLayer, MemoryNode
from wakeful.retrieval import lexical
from wakeful.retrieval.fuse import Candidate, Weighed
from wakeful.retrieval.hits import ActivationLog, Hit
from wakeful.retrieval.query import Query
from wakeful.retrieval.settings import RecallSettings

STRONG = 0.15
"""Activation from which a node may take one of the last places."""

DEEP = 64
"""Candidates among which repetitions are looked for, at least."""

_REASONS = {
    "words": "words of the query",
    "meaning": "near in meaning",
    "window": "words of the turns around it",
    "session": "its session is about this",
    "answers a question": "follows a question that matches",
    "said after": "follows a turn that matches",
    "said before": "precedes a turn that matches",
    "speaker": "said by the one who is asked about",
    "tells a time": "tells a time, as the query asks when",
    "in the period": "said in the time that the query names",
    "importance": "important",
    "recency": "recent",
    "use": "often used",
    "activation": "reached over the graph",
}


def prior(node: MemoryNode, at: datetime, settings: RecallSettings) -> tuple[float, float, float]:
    """What importance, recency and use add to a node's score."""
    days = max(0.0, (at - node.asserted_at).total_seconds() / 86_400)
    uses = node.access_count + node.activation_count
    weight = max(-1.0, min(1.0, (node.importance - 5) / 5))
    fresh = 2 ** (-days / settings.recency_days) if days < 20 * settings.recency_days else 0.0
    return settings.importance * weight, settings.recency * fresh, settings.use * uses / (uses + 5)


def order(weighed: Weighed, at: datetime, settings: RecallSettings) -> list[Candidate]:
    """Order all candidates, best first; equal scores by id."""
    for each in weighed.candidates.values():
        importance, recency, use = prior(each.node, at, settings)
        each.parts |= {"importance": importance, "recency": recency, "use": use}
        each.score += importance + recency + use
    return sorted(weighed.candidates.values(), key=lambda each: (-each.score, each.node.id))


def choose(
    ordered: Sequence[Candidate],
    weighed: Weighed,
    query: Query,
    log: ActivationLog,
    k: int,
    settings: RecallSettings,
) -> tuple[tuple[Hit, ...], tuple[str, ...]]:
    """Take the best ``k``, each thing once, and let activation bring in the tail. Gives hits and ids brought in."""
    active = dict(log.activation)
    # What stands far behind is looked at only when activation reached it.
    reach = max(4 * k, DEEP)
    groups = _group([*ordered[:reach], *(each for each in ordered[reach:] if each.node.id in active)])
    seeds = {node_id for node_id, _ in log.seeds}
    chosen = groups[:k]
    places = max(0, min(k // 3 if query.broad else max(1, k // 5), k - settings.head))
    waiting = [
        group for group in groups[k:] if active.get(group[0].node.id, 0.0) >= STRONG and group[0].node.id not in seeds
    ]
    waiting.sort(key=lambda group: (-active[group[0].node.id], group[0].node.id))
    room = range(len(chosen) - 1, settings.head - 1, -1)
    replaceable = [index for index in room if active.get(chosen[index][0].node.id, 0.0) < STRONG][:places]
    brought = waiting[: len(replaceable)]
    for index in replaceable[: len(brought)]:
        chosen[index] = []
    chosen = [group for group in chosen if group] + brought
    taken = [group[0].node.id for group in brought]
    return tuple(_hits(chosen, weighed, active, seeds, set(taken))), tuple(taken)


def _group(ordered: Sequence[Candidate]) -> list[list[Candidate]]:
    """Put together what counts once: a fact and its source turn, the same words again, a skill's farther versions."""
    groups: list[list[Candidate]] = []
    place: dict[tuple[object, ...], int] = {}
    for each in ordered:
        keys = _keys(each)
        found = next((place[key] for key in keys if key in place), None)
        if found is None:
            found = len(groups)
            groups.append([])
        group = groups[found]
        if group and _nearer(each.node, group[0].node):
            group.insert(0, each)
        else:
            group.append(each)
        for key in keys:
            place.setdefault(key, found)
    return groups


def _keys(each: Candidate) -> list[tuple[object, ...]]:
    node = each.node
    keys: list[tuple[object, ...]] = [("id", node.id)]
    if node.layer is MemoryLayer.PROCEDURAL and node.label:
        keys.append(("skill", node.label))
    elif node.content:
        keys.append(("text", node.layer, node.source.speaker, node.content.strip()))
    if node.source.by == "extractor" or node.layer is MemoryLayer.SEMANTIC:
        keys += [("id", entry) for entry in node.source.entries[:1]]
    return keys


def _nearer(node: MemoryNode, other: MemoryNode) -> bool:
    return (
        node.layer is MemoryLayer.PROCEDURAL
        and other.layer is MemoryLayer.PROCEDURAL
        and len(node.scope.levels) > len(other.scope.levels)
    )


def _hits(
    groups: Sequence[Sequence[Candidate]],
    weighed: Weighed,
    active: Mapping[str, float],
    seeds: set[str],
    taken: set[str],
) -> list[Hit]:
    most = max((group[0].score for group in groups), default=0.0)
    fit = weighed.fit()
    hits: list[Hit] = []
    last = 1.0
    for group in groups:
        best = group[0]
        share = max(0.0, best.score) / most if most > 0 else 0.0
        # A hit brought in by activation stands behind better ones, so its score may not pass theirs.
        last = min(last, share)
        parts = dict(best.parts)
        arrived = active.get(best.node.id, 0.0)
        if arrived and best.node.id not in seeds:
            parts["activation"] = arrived
        hits.append(
            Hit(
                best.node,
                round(min(1.0, last * fit), 6),
                _reasons(parts, brought_in=best.node.id in taken),
                tuple(item for item in parts.items() if abs(item[1]) >= 0.005),
                tuple(other.node.id for other in group[1:]),
            )
        )
    return hits


def _reasons(parts: Mapping[str, float], *, brought_in: bool) -> tuple[str, ...]:
    told = [(value, name) for name, value in parts.items() if name in _REASONS and value >= 0.02]
    told.sort(key=lambda item: (-item[0], item[1]))
    reasons = [f"{_REASONS[name]} ({value:.2f})" for value, name in told]
    if brought_in:
        reasons.insert(0, f"brought in by activation ({parts.get('activation', 0.0):.2f})")
    return tuple(reasons) or ("the most recent",)


def matched_terms(query: Query, candidate: Candidate) -> tuple[str, ...]:
    """The query's terms that a candidate holds."""
    return tuple(
        term for term, count in zip(query.terms, lexical.counts(query.terms, candidate.bag), strict=True) if count
    )
