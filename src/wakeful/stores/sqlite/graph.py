"""Edges."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from wakeful import ops as op
from wakeful.errors import MemoryContractError, NotFound
from wakeful.records import MemoryEdge, MemoryScope
from wakeful.stores import rules
from wakeful.stores.sqlite.rows import edge_columns, micros, read_edge
from wakeful.stores.sqlite.transaction import Transaction, ids_text, paths


def put_edges(tx: Transaction, each: op.PutEdges) -> int:
    """Insert or merge edges."""
    if not each.edges:
        return 0
    erased_at = tx.erased_at(each.scope)
    rows: dict[str, int] = {}
    scope = tx.own_scope_id(each.scope)
    for given in each.edges:
        rules.check_tombstone(erased_at, given.recorded_at, each.scope)
        edge = rules.prepare_edge(given, each.scope, tx.now)
        ends = {
            "source": _visible_row(tx, each.scope, edge.source_id, rows),
            "target": _visible_row(tx, each.scope, edge.target_id, rows),
            "scope": scope,
        }
        held = tx.one("same_edge", {**ends, "relation": edge.relation})
        if held is not None:
            edge = rules.merge_edge(read_edge(held), edge)
        try:
            tx.run("put_edge", {**edge_columns(edge), **ends})
        except sqlite3.IntegrityError:
            message = f"the edge id {edge.id!r} can't be used here; let MemoryEdge.new make it"
            raise MemoryContractError(message) from None
    return len(each.edges)


def _visible_row(tx: Transaction, scope: MemoryScope, node_id: str, rows: dict[str, int]) -> int:
    if node_id not in rows:
        found = tx.one("visible_row", {"id": node_id, "paths": paths(scope)})
        if found is None:
            raise NotFound(f"no node {node_id!r} is visible in {scope.path}; an edge needs both its ends")
        rows[node_id] = found[0]
    return rows[node_id]


def get_edges(tx: Transaction, each: op.GetEdges) -> tuple[MemoryEdge, ...]:
    """Give the edges that touch any of these nodes, strongest first."""
    seen = paths(each.scope)
    found: dict[str, MemoryEdge] = {}
    parameters = {"paths": seen, "relation": each.relation, "at": micros(each.at), "limit": each.limit_per_node}
    for (row,) in tx.run("rows_of", {"ids": ids_text(each.node_ids), "paths": seen}).fetchall():
        touching: dict[str, MemoryEdge] = {}
        if each.direction != "in":
            touching |= _edges(tx, "edges_out", {**parameters, "row": row})
        if each.direction != "out":
            touching |= _edges(tx, "edges_in", {**parameters, "row": row})
        for edge in sorted(touching.values(), key=_strength)[: each.limit_per_node]:
            found[edge.id] = edge
    return tuple(sorted(found.values(), key=_strength))


def _edges(tx: Transaction, name: str, parameters: dict[str, object]) -> dict[str, MemoryEdge]:
    return {edge.id: edge for edge in map(read_edge, tx.run(name, parameters))}


def _strength(edge: MemoryEdge) -> tuple[float, str]:
    return (-edge.weight, edge.id)


def edges_of_scopes(tx: Transaction, scopes: Sequence[int]) -> tuple[MemoryEdge, ...]:
    """Give every edge that these scopes own."""
    return tuple(map(read_edge, tx.run("subtree_edges", {"scopes": json.dumps(scopes)})))


def delete_edges(tx: Transaction, each: op.DeleteEdges) -> int:
    """Delete owned edges."""
    return tx.run("drop_edges", {"ids": ids_text(each.ids), "scope": tx.scope_id(each.scope)}).rowcount
