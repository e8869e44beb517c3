"""Choose the hits: priors that only nudge, one hit for a fact and its source, nearest skill, tail by activation.

Rules of the file:

- A prior is bounded: importance, recency and use together move a score by at most 0.2, less than one word of a query.
- Activation never moves the head (``settings.head`` places); behind it, it may take a fifth of the places for what was
  not found (a third when the query asks broadly).
- Nothing is dropped in silence: what a hit stands for is named in its ``also``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from wakeful.records import MemoryLayer, MemoryNode
from wakeful.retrieval.fuse import Weighed
from wakeful.retrieval.hits import ActivationLog, Hit
from wakeful.retrieval.query import Query
from wakeful.retrieval.settings import RecallSettings
from wakeful.sketches import Sketch, micros

Value = TypeVar("Value")

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


_DAY = 86_400 * 1_000_000
"""Microseconds."""


def priors(sketches: Sequence[Sketch], at: datetime, settings: RecallSettings) -> dict[str, list[float]]:
    """What importance, recency and use add to each score."""
    now = micros(at)
    ages = [max(0.0, (now - sketch.asserted) / _DAY) / settings.recency_days for sketch in sketches]
    return {
        "importance": _looked_up(
            [sketch.importance for sketch in sketches], lambda value: settings.importance * _weight(value)
        ),
        "recency": [settings.recency * 2.0**-age if age < 20 else 0.0 for age in ages],
        "use": _looked_up([sketch.uses for sketch in sketches], lambda count: settings.use * count / (count + 5)),
    }


def _looked_up(column: Sequence[Value], prior: Callable[[Value], float]) -> list[float]:
    """Give the prior of each value, worked out once for values that come often."""
    known = {value: prior(value) for value in set(column)}
    return [known[value] for value in column]


def _weight(importance: float) -> float:
    return max(-1.0, min(1.0, (importance - 5) / 5))


def order(weighed: Weighed, at: datetime, settings: RecallSettings) -> list[int]:
    """Add the priors to the scores and order all candidates, best first, equal scores by id; gives their places."""
    sketches, scores = weighed.pool.sketches, weighed.scores
    columns = priors(sketches, at, settings)
    weighed.bonus.update(columns)
    scores[:] = map(sum, zip(scores, *columns.values(), strict=True))
    ranked = [(-score, sketch.id, place) for place, (score, sketch) in enumerate(zip(scores, sketches, strict=True))]
    ranked.sort()
    return [place for _, _, place in ranked]


@dataclass(frozen=True, slots=True)
class Choice:
    """What is to be shown, best first: places of the same thing together, the one to show in front."""

    groups: tuple[tuple[int, ...], ...]
    brought: tuple[str, ...]
    """Ids of those that activation brought in."""


def choose(
    ordered: Sequence[int], weighed: Weighed, query: Query, log: ActivationLog, k: int, settings: RecallSettings
) -> Choice:
    """Take the best ``k``, each thing once, and let activation bring in the tail."""
    sketches = weighed.pool.sketches
    active = dict(log.activation)
    # What stands far behind is looked at only when activation reached it.
    reach = max(4 * k, DEEP)
    far = [place for place in ordered[reach:] if sketches[place].id in active] if active else []
    groups = _group(sketches, [*ordered[:reach], *far])
    chosen = groups[:k]
    if not active:
        return Choice(tuple(map(tuple, chosen)), ())

    def reached(group: Sequence[int]) -> float:
        return active.get(sketches[group[0]].id, 0.0)

    seeds = {node_id for node_id, _ in log.seeds}
    places = max(0, min(k // 3 if query.broad else max(1, k // 5), k - settings.head))
    waiting = [group for group in groups[k:] if reached(group) >= STRONG and sketches[group[0]].id not in seeds]
    waiting.sort(key=lambda group: (-reached(group), sketches[group[0]].id))
    room = range(len(chosen) - 1, settings.head - 1, -1)
    replaceable = [index for index in room if reached(chosen[index]) < STRONG][:places]
    brought = waiting[: len(replaceable)]
    for index in replaceable[: len(brought)]:
        chosen[index] = []
    chosen = [group for group in chosen if group] + brought
    return Choice(tuple(map(tuple, chosen)), tuple(sketches[group[0]].id for group in brought))


def _group(sketches: Sequence[Sketch], ordered: Sequence[int]) -> list[list[int]]:
    """Put together what counts once: a fact and its source turn, the same words again, a skill's farther versions."""
    groups: list[list[int]] = []
    held: dict[object, int] = {}
    for place in ordered:
        keys = _keys(sketches[place])
        found = next((held[key] for key in keys if key in held), None)
        if found is None:
            found = len(groups)
            groups.append([])
        group = groups[found]
        if group and _nearer(sketches[place], sketches[group[0]]):
            group.insert(0, place)
        else:
            group.append(place)
        for key in keys:
            held.setdefault(key, found)
    return groups


def _keys(sketch: Sketch) -> list[object]:
    keys: list[object] = [sketch.id]
    if sketch.skill:
        keys.append(("skill", sketch.skill))
    elif sketch.said:
        keys.append(sketch.said)
    if sketch.entry is not None:
        keys.append(sketch.entry)
    return keys


def _nearer(sketch: Sketch, other: Sketch) -> bool:
    return (
        sketch.layer is MemoryLayer.PROCEDURAL
        and other.layer is MemoryLayer.PROCEDURAL
        and len(sketch.scope.levels) > len(other.scope.levels)
    )


def hits(
    choice: Choice, weighed: Weighed, ordered: Sequence[int], log: ActivationLog, nodes: Mapping[str, MemoryNode]
) -> tuple[Hit, ...]:
    """Make the hits of a choice, with reasons; one whose row is not among ``nodes`` is left out."""
    sketches, scores = weighed.pool.sketches, weighed.scores
    active, seeds, brought = dict(log.activation), {node_id for node_id, _ in log.seeds}, set(choice.brought)
    most = max((scores[group[0]] for group in choice.groups), default=0.0)
    fit = weighed.fit(ordered)
    made: list[Hit] = []
    last = 1.0
    for best, *others in choice.groups:
        node = nodes.get(sketches[best].id)
        if node is None:
            continue
        share = max(0.0, scores[best]) / most if most > 0 else 0.0
        # A hit brought in by activation stands behind better ones, so its score may not pass theirs.
        last = min(last, share)
        parts = weighed.parts(best)
        arrived = active.get(node.id, 0.0)
        if arrived and node.id not in seeds:
            parts["activation"] = arrived
        made.append(
            Hit(
                node,
                round(min(1.0, last * fit), 6),
                _reasons(parts, brought_in=node.id in brought),
                tuple(item for item in parts.items() if abs(item[1]) >= 0.005),
                tuple(sketches[other].id for other in others),
            )
        )
    return tuple(made)


def _reasons(parts: Mapping[str, float], *, brought_in: bool) -> tuple[str, ...]:
    told = [(value, name) for name, value in parts.items() if name in _REASONS and value >= 0.02]
    told.sort(key=lambda item: (-item[0], item[1]))
    reasons = [f"{_REASONS[name]} ({value:.2f})" for value, name in told]
    if brought_in:
        reasons.insert(0, f"brought in by activation ({parts.get('activation', 0.0):.2f})")
    return tuple(reasons) or ("the most recent",)


def matched_terms(query: Query, sketch: Sketch) -> tuple[str, ...]:
    """The query's terms that a candidate holds."""
    return tuple(term for term, count in zip(query.terms, sketch.counts, strict=True) if count)
