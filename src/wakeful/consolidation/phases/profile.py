"""Edited or corrected facts reach the standing preferences: one pinned profile node a scope, rewritten when they change.

Facts are the scope's current semantic nodes labelled ``preference`` or ``profile_fact``: two look-ups in the store's
index, made once the scope has a profile or the window holds a fact.
"""

from __future__ import annotations

from wakeful.consolidation.phase import Cycle, Outcome, Phase
from wakeful.ids import content_id
from wakeful.needs import Flow, run
from wakeful.ops import DeleteNodes, GetNodes, PutNodes, QueryNodes
from wakeful.records import MemoryLayer, MemoryNode, MemoryScope, Source

LABEL = "profile"
LABELS = ("preference", "profile_fact")


def profile_id(scope: MemoryScope) -> str:
    """The id of a scope's profile node."""
    return content_id(scope.path, prefix="pr-")


def _is_fact(node: MemoryNode) -> bool:
    return node.layer is MemoryLayer.SEMANTIC and node.source.trust != "low" and node.label in LABELS


def profile(cycle: Cycle) -> Flow[Outcome]:
    """Write the profile from the facts that are current."""
    key = profile_id(cycle.scope)
    semantic = (MemoryLayer.SEMANTIC,)
    (old,) = yield from run(GetNodes(cycle.scope, (key,)))
    if not old and not any(_is_fact(node) for node in cycle.own(cycle.recent)):
        return Outcome(rows_read=len(cycle.recent))
    found = yield from run(
        *(
            QueryNodes(
                scope=cycle.scope, visibility=cycle.visible(layers=semantic), label=label, owned_only=True, limit=500
            )
            for label in LABELS
        ),
    )
    facts = {node.id: node for nodes in found for node in cycle.own(nodes) if _is_fact(node) and node.id != key}
    ordered = sorted(facts.values(), key=lambda node: (node.asserted_at, node.id))
    content = "\n".join(dict.fromkeys(node.content for node in ordered))
    read = len(cycle.recent) + sum(len(nodes) for nodes in found)
    if old and old[0].content == content:
        return Outcome(rows_read=read)
    if not content:
        return Outcome(batches=((DeleteNodes(cycle.scope, (key,)),),) if old else (), changed=len(old), rows_read=read)
    node = MemoryNode.new(
        id=key,
        scope=cycle.scope,
        layer=MemoryLayer.SEMANTIC,
        label=LABEL,
        content=content,
        at=ordered[-1].asserted_at,
        importance=9.0,
        pinned=True,
        source=Source(by="consolidation", entries=tuple(fact.id for fact in ordered)),
    )
    return Outcome(batches=((PutNodes(cycle.scope, (node,)),),), changed=1, rows_read=read)


PROFILE = Phase(name="profile", reads=("content", "label"), writes=("nodes:profile",), run=profile)
