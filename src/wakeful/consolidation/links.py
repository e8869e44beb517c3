"""Hand the links of retired rows on to what stands for them, so that no relation ends at a row that is hidden."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from wakeful.consolidation.phase import Cycle
from wakeful.needs import Flow, run
from wakeful.ops import GetEdges
from wakeful.records import MemoryEdge

MOST = 32
"""Links of one retired row that are handed on: the strongest."""


def inherited(
    cycle: Cycle, heirs: Mapping[str, Sequence[str]], relations: Iterable[str] | None = None
) -> Flow[dict[str, tuple[MemoryEdge, ...]]]:
    """Links of the rows that each heir stands for, with the heir in their place: by the heir's id.

    ``heirs``: the retired rows' ids by the heir's. ``relations``: those that are handed on; None: all. A link between
    two rows of one heir is not handed on, and one of another owner stays as it is. Where several rows have the same link
    it has the greatest of their weights.
    """
    if not heirs:
        return {}
    retired = {old: heir for heir, ids in heirs.items() for old in ids}
    wanted = None if relations is None else frozenset(relations)
    (edges,) = yield from run(GetEdges(cycle.scope, tuple(retired), limit_per_node=MOST))
    made: dict[str, dict[tuple[str, str, str], MemoryEdge]] = {heir: {} for heir in heirs}
    for edge in edges:
        if edge.scope != cycle.scope or (wanted is not None and edge.relation not in wanted):
            continue
        source, target = retired.get(edge.source_id, edge.source_id), retired.get(edge.target_id, edge.target_id)
        if source == target:
            continue
        heir = source if source in heirs else target
        key = source, edge.relation, target
        held = made[heir].get(key)
        if held is None or held.weight < edge.weight:
            made[heir][key] = MemoryEdge.new(
                scope=cycle.scope,
                source_id=source,
                target_id=target,
                relation=edge.relation,
                weight=edge.weight,
                at=edge.asserted_at,
                provenance=edge.provenance,
                evidence=edge.evidence,
                properties=edge.properties,
                valid_from=edge.valid_from,
                valid_until=edge.valid_until,
                expires_at=edge.expires_at,
            )
    return {heir: tuple(links.values()) for heir, links in made.items() if links}
