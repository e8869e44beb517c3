"""Edges."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from wakeful import ops as op
from wakeful.errors import MemoryContractError, NotFound
from wakeful.records import MemoryEdge, MemoryScope
from wakeful.stores import rules
from wakeful.stores.sqlite.rows import edge_columns, micros, read_edge
from wakeful.stores.sqlite.transaction import Transaction, ids_text, paths


def put_edges(tx: Transaction, each: op.PutEdges) -> int:
    """Insert or merge edges, in as many statements for a thousand as for one."""
    if not each.edges:
        return 0
    erased_at = tx.erased_at(each.scope)
    for edge in each.edges:
        rules.check_tombstone(erased_at, edge.recorded_at, each.scope)
        rules.check_owner(edge, each.scope)
    ends = {end for edge in each.edges for end in (edge.source_id, edge.target_id)}
    rows: dict[str, int] = dict(tx.run("visible_rows", {"ids": ids_text(ends), "paths": paths(each.scope)}).fetchall())
    given: dict[tuple[int, str, int], MemoryEdge] = {}
    for edge in each.edges:
        for end in (edge.source_id, edge.target_id):
            if end not in rows:
                raise NotFound(f"no node {end!r} is visible in {each.scope.path}; an edge needs both its ends")
        key = rows[edge.source_id], edge.relation, rows[edge.target_id]
        given[key] = rules.merge_edge(given[key], edge) if key in given else edge
    scope = tx.own_scope_id(each.scope)
    for held in _read(tx.run("same_edges", {"keys": json.dumps(list(given)), "scope": scope}).fetchall()):
        key = rows[held.source_id], held.relation, rows[held.target_id]
        given[key] = rules.merge_edge(held, given[key])
    now = micros(tx.now)
    try:
        tx.run_many("put_edge", ((*key, scope, *edge_columns(edge, now)) for key, edge in given.items()))
    except sqlite3.IntegrityError:
        message = f"the id of an edge of {each.scope.path} can't be used here; let MemoryEdge.new make it"
        raise MemoryContractError(message) from None
    return len(each.edges)


def get_edges(tx: Transaction, each: op.GetEdges) -> tuple[MemoryEdge, ...]:
    """Give the edges that touch any of these nodes, strongest first."""
    seen = paths(each.scope)
    found: dict[str, MemoryEdge] = {}
    rows = [row for (row,) in tx.run("linked_rows", {"ids": ids_text(each.node_ids), "paths": seen})]
    if not rows:
        return ()
    parameters = {
        "rows": json.dumps(rows),
        "paths": seen,
        "relation": each.relation,
        "at": micros(each.at),
        "limit": each.limit_per_node,
    }
    touching: defaultdict[int, dict[str, MemoryEdge]] = defaultdict(dict)
    for name, wanted in (("edges_out", each.direction != "in"), ("edges_in", each.direction != "out")):
        lines = tx.run(name, parameters).fetchall() if wanted else []
        for line, edge in zip(lines, _read(line[1:-1] for line in lines), strict=True):
            touching[line[0]][edge.id] = edge
    for edges in touching.values():
        strongest: Collection[MemoryEdge] = edges.values()
        if len(edges) > each.limit_per_node:
            strongest = sorted(edges.values(), key=_strength)[: each.limit_per_node]
        found |= {edge.id: edge for edge in strongest}
    return tuple(sorted(found.values(), key=_strength))


def _read(lines: Iterable[Sequence[Any]]) -> list[MemoryEdge]:
    scopes: dict[str, MemoryScope] = {}
    return [read_edge(line, scopes) for line in lines]


def _strength(edge: MemoryEdge) -> tuple[float, str]:
    return (-edge.weight, edge.id)


def edges_of_scopes(tx: Transaction, scopes: Sequence[int]) -> tuple[MemoryEdge, ...]:
    """Give every edge that these scopes own."""
    return tuple(_read(tx.run("subtree_edges", {"scopes": json.dumps(scopes)})))


def delete_edges(tx: Transaction, each: op.DeleteEdges) -> int:
    """Delete owned edges."""
    return tx.run("drop_edges", {"ids": ids_text(each.ids), "scope": tx.scope_id(each.scope)}).rowcount
