"""Read idle rows in bounded portions, so that a long history is worked off over several cycles and none of it is missed.

A phase reads what became idle since the last cycle. When that is more than a portion, the newest are read, and a mark in the
scope's state says how far; the next cycles read on from there, a portion each, until nothing is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from wakeful.consolidation.phase import Cycle
from wakeful.needs import Flow, run
from wakeful.ops import GetState, PutState, QueryNodes
from wakeful.records import MemoryNode


def portions(
    cycle: Cycle, name: str, queries: Sequence[QueryNodes], limit: int
) -> Flow[tuple[list[tuple[MemoryNode, ...]], tuple[Any, ...]]]:
    """Read idle rows: (rows by query, operations that keep the marks). ``queries`` name a range of idle times each."""
    keys = [f"backlog:{name}:{number}" for number in range(len(queries))]
    marks = yield from run(*(GetState(cycle.scope, key) for key in keys))
    rows: list[tuple[MemoryNode, ...]] = []
    keep: list[Any] = []
    for key, mark, query in zip(keys, marks, queries, strict=True):
        asked = [replace(query, limit=limit)]
        if mark is not None:
            asked.append(replace(query, idle_since=None, idle_before=datetime.fromisoformat(mark), limit=limit))
        found = yield from run(*asked)
        rows.append(tuple({node.id: node for nodes in found for node in nodes}.values()))
        left = _left(found, limit, mark)
        if left != mark:
            keep.append(PutState(cycle.scope, key, left))
    return rows, tuple(keep)


def _left(found: Sequence[Sequence[MemoryNode]], limit: int, mark: str | None) -> str | None:
    """How far back rows were read, where some are left; None: none are."""
    for nodes in found:
        if len(nodes) >= limit:
            oldest = min(node.updated_at for node in nodes).isoformat()
            return None if oldest == mark else oldest
    return None
