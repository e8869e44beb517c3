"""What has outlived its time goes: working memory is deleted, any other expired node is retired with the reason."""

from __future__ import annotations

from typing import Any

from wakeful.consolidation.phase import Cycle, Outcome, Phase, in_batches, seen
from wakeful.needs import Flow, run
from wakeful.ops import Change, DeleteNodes, Log, QueryNodes, UpdateNodes
from wakeful.records import MemoryLayer


def expire(cycle: Cycle) -> Flow[Outcome]:
    """Delete or retire nodes whose ``expires_at`` has come."""
    query = QueryNodes(
        scope=cycle.scope,
        visibility=cycle.visible(statuses=("active", "draft"), expired=True),
        expires_before=cycle.started_at,
        owned_only=True,
        limit=cycle.settings.window_limit,
    )
    (found,) = yield from run(query)
    gone = [node for node in cycle.own(found) if node.expires_at is not None and node.expires_at <= cycle.started_at]
    scratch = [node.id for node in gone if node.layer is MemoryLayer.WORKING]
    retired = [node for node in gone if node.layer is not MemoryLayer.WORKING]
    batches: list[tuple[Any, ...]] = [
        (DeleteNodes(cycle.scope, part),) for part in in_batches(scratch, cycle.settings.batch)
    ]
    for part in in_batches(retired, cycle.settings.batch):
        changes = {node.id: {"status": "retracted", "superseded_at": cycle.started_at} for node in part}
        log = tuple(Change(node=node, action="retract", reason="expired", at=cycle.started_at) for node in part)
        batches.append((UpdateNodes(scope=cycle.scope, changes=changes, expected=seen(part)), Log(cycle.scope, log)))
    return Outcome(batches=tuple(batches), changed=len(gone), rows_read=len(found))


EXPIRE = Phase(name="expire", reads=("expires_at",), writes=("status", "superseded_at", "nodes"), run=expire)
