"""Spread activation from the best hits over the graph: what belongs to them, found or not.

Activation leaves a seed along its edges, in both directions, loses a share at each hop, is divided by the square root
of the number of edges (the fan: a hub tells little), is scaled by the edge's weight and relation, and stops below a
floor. What arrives is added up to a ceiling. The order of nodes and edges decides nothing: all steps of a hop are made
from the activation before it, and ties are broken by id.

Source: Collins and Loftus, "A Spreading-Activation Theory of Semantic Processing", 1975; the fan effect: Anderson,
"Retrieval of propositional information from long-term memory", 1974.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from wakeful.records import MemoryEdge
from wakeful.retrieval.hits import ActivationLog, Spread
from wakeful.retrieval.settings import RecallSettings

AGAINST = 0.7
"""Share that flows against an edge's direction: that a thing is mentioned somewhere says less than what a text mentions."""

RELATIONS: Mapping[str, float] = {
    "SUPERSEDES": 0.0,
    "CONTRADICTS": 0.3,
    "CO_OCCURS": 0.6,
    "NEXT": 0.6,
}
"""Share that flows along a relation; 1 for any other. What was replaced is not brought back."""


def spread(seeds: Sequence[tuple[str, float]], edges: Iterable[MemoryEdge], settings: RecallSettings) -> ActivationLog:
    """Spread from ``seeds`` (ids and activation, 0 to 1) over ``edges``; hops are bounded by the settings."""
    touching: defaultdict[str, list[tuple[str, MemoryEdge, float]]] = defaultdict(list)
    for edge in sorted({edge.id: edge for edge in edges}.values(), key=lambda edge: edge.id):
        if edge.source_id == edge.target_id:
            continue
        touching[edge.source_id].append((edge.target_id, edge, 1.0))
        touching[edge.target_id].append((edge.source_id, edge, AGAINST))
    started = dict(seeds)
    active = dict(seeds)
    front = dict(seeds)
    steps: list[Spread] = []
    for hop in range(1, settings.hops + 1):
        arriving: defaultdict[str, float] = defaultdict(float)
        for source in sorted(front):
            for step in _steps(source, front[source], touching[source], hop, settings):
                steps.append(step)
                arriving[step.target] += step.amount
        front = {}
        for target in sorted(arriving):
            if target in started:
                continue
            before = active.get(target, 0.0)
            active[target] = min(settings.ceiling, before + arriving[target])
            if active[target] > before:
                front[target] = active[target] - before
        if not front:
            break
    reached = sorted(active.items(), key=lambda item: (-item[1], item[0]))
    return ActivationLog(seeds=tuple(seeds), steps=tuple(steps), activation=tuple(reached))


def _steps(
    source: str,
    amount: float,
    edges: Sequence[tuple[str, MemoryEdge, float]],
    hop: int,
    settings: RecallSettings,
) -> list[Spread]:
    fan = len(edges)
    out = []
    for target, edge, direction in edges:
        flow = amount * settings.decay * edge.weight * direction * RELATIONS.get(edge.relation, 1.0) / math.sqrt(fan)
        if flow >= settings.floor:
            out.append(Spread(source, target, edge.relation, hop, flow, fan))
    return out
