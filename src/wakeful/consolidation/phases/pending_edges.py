"""Relations that recall saw while activation spread become edges.

Recall leaves pairs under the state key ``pending_edges`` as ``[source, target, count]``, since it writes no edges.
The weight saturates with the count: ``1 - 0.8 ^ count``, the noisy or of sightings that are worth 0.2 each (Pearl 1988,
Probabilistic Reasoning in Intelligent Systems, section 4.3.2).
"""

from __future__ import annotations

from wakeful.consolidation.phase import Cycle, Outcome, Phase
from wakeful.needs import Flow, run
from wakeful.ops import GetNodes, GetState, PutEdges, PutState
from wakeful.records import MemoryEdge

KEY = "pending_edges"
RELATION = "RELATED_TO"


def pending_edges(cycle: Cycle) -> Flow[Outcome]:
    """Turn pending pairs into edges; pairs with an end that is gone are dropped."""
    (pending,) = yield from run(GetState(cycle.scope, KEY))
    if not pending:
        return Outcome()
    ids = tuple({node_id for source, target, _ in pending for node_id in (source, target)})
    (known,) = yield from run(GetNodes(cycle.scope, ids))
    alive = {node.id for node in known}
    edges = tuple(
        MemoryEdge.new(
            scope=cycle.scope,
            source_id=source,
            target_id=target,
            relation=RELATION,
            weight=1 - 0.8 ** max(1, int(count)),
            at=cycle.started_at,
            provenance="activation",
        )
        for source, target, count in pending
        if source in alive and target in alive and source != target
    )
    write = (PutEdges(cycle.scope, edges),) if edges else ()
    return Outcome(
        batches=((*write, PutState(cycle.scope, KEY, None)),), changed=len(edges), rows_read=len(pending) + len(known)
    )


PENDING_EDGES = Phase(name="pending_edges", reads=(f"state:{KEY}",), writes=(f"edges:{RELATION}",), run=pending_edges)
