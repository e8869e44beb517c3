"""Contradictions are resolved: of two values of one attribute of one subject, the later in the world is current.

Only nodes with ``properties["subject"]`` and ``properties["attribute"]`` that are marked ``exclusive`` (one value at a
time) can retire each other, and only where both are equal. The older keeps its interval: ``valid_until`` is the newer
one's start. Order of arrival does not matter: the time of assertion in the world does.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from wakeful.consolidation.phase import Cycle, Outcome, Phase
from wakeful.consolidation.wording import folded
from wakeful.needs import Flow, run
from wakeful.ops import Change, Log, QueryNodes, UpdateNodes
from wakeful.records import MemoryLayer, MemoryNode


def claim(node: MemoryNode) -> tuple[str, str] | None:
    """(subject, attribute) of a node that states an exclusive fact, folded; None for any other node."""
    subject, attribute = node.properties.get("subject"), node.properties.get("attribute")
    if not node.properties.get("exclusive") or not isinstance(subject, str) or not isinstance(attribute, str):
        return None
    return folded(subject), folded(attribute)


def since_when(node: MemoryNode) -> Any:
    """When a fact began to be true, as far as it is known."""
    return node.valid_from or node.asserted_at


def value_of(node: MemoryNode) -> str:
    """The fact's value, folded."""
    return folded(str(node.properties.get("value", node.content)))


def supersede(cycle: Cycle) -> Flow[Outcome]:
    """Retire the older of contradicting facts that the window touches."""
    claims = {key for node in cycle.layer(MemoryLayer.SEMANTIC) if (key := claim(node)) is not None}
    if not claims:
        return Outcome(rows_read=len(cycle.recent))
    attributes = sorted(
        {str(node.properties["attribute"]) for node in cycle.layer(MemoryLayer.SEMANTIC) if claim(node) in claims}
    )
    found = yield from run(
        *(
            QueryNodes(
                scope=cycle.scope,
                visibility=cycle.visible(layers=(MemoryLayer.SEMANTIC,)),
                properties={"attribute": attribute},
                owned_only=True,
                limit=1_000,
            )
            for attribute in attributes
        )
    )
    rivals: dict[tuple[str, str], dict[str, MemoryNode]] = defaultdict(dict)
    for nodes in found:
        for node in cycle.own(nodes):
            if (key := claim(node)) in claims and key is not None:
                rivals[key][node.id] = node
    changes: dict[str, dict[str, Any]] = {}
    log: list[Change] = []
    for group in rivals.values():
        ordered = sorted(group.values(), key=lambda node: (since_when(node), node.updated_at, node.id))
        newest = ordered[-1]
        for older in ordered[:-1]:
            if value_of(older) == value_of(newest):
                continue
            heir = next(
                node for node in ordered if since_when(node) >= since_when(older) and value_of(node) != value_of(older)
            )
            changes[older.id] = {
                "superseded_at": cycle.started_at,
                "superseded_by": heir.id,
                "valid_until": older.valid_until or since_when(heir),
            }
            log.append(Change(node=older, action="supersede", reason=f"{newest.id} is later", at=cycle.started_at))
    batches = ((UpdateNodes(scope=cycle.scope, changes=changes), Log(cycle.scope, tuple(log))),) if changes else ()
    return Outcome(batches=batches, changed=len(changes), rows_read=sum(len(nodes) for nodes in found))


SUPERSEDE = Phase(
    name="supersede", reads=("properties",), writes=("superseded_at", "valid_until", "history"), run=supersede
)
