"""Reading nodes: by id, by filter, by subtree, by neighbourhood in time; counts."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from wakeful import ops as op
from wakeful.errors import NotFound
from wakeful.records import STATUSES, MemoryLayer, MemoryNode, MemoryScope
from wakeful.sketches import Sketch, sketch_of
from wakeful.stores import rules
from wakeful.stores.sqlite import graph, search
from wakeful.stores.sqlite.rows import LAYER_NUMBER, LAYERS, micros, visibility_parameters
from wakeful.stores.sqlite.transaction import Transaction, ids_text, paths

_EARLIEST, _LATEST = -(1 << 62), 1 << 62


def _limit(limit: int | None) -> int:
    return -1 if limit is None else max(limit, 0)


def get_nodes(tx: Transaction, each: op.GetNodes) -> tuple[MemoryNode, ...]:
    """Give visible nodes by id."""
    parameters = {"ids": json.dumps(each.ids), "paths": paths(each.scope), **visibility_parameters(each.visibility)}
    if each.embeddings:
        return tuple(node for _, node in tx.whole_nodes("get_whole_nodes", parameters))
    return tx.nodes("get_nodes", parameters)


def query_nodes(tx: Transaction, each: op.QueryNodes) -> tuple[MemoryNode, ...]:
    """Give visible nodes by filter, in order, along the index that leaves the fewest rows."""
    seen = [scope.id for scope in tx.seen_scopes(each.scope) if not each.owned_only or scope.path == each.scope.path]
    if each.after is not None:
        rules.check_after(each)
    parameters = _query_parameters(each, seen)
    if each.expires_before is not None:
        return tx.nodes("expiring_nodes", parameters)
    if each.superseded_before is not None:
        return tx.nodes("superseded_nodes", parameters)
    if each.accessed_since is not None:
        return tx.nodes("accessed_nodes", parameters)
    if each.idle_since is not None:
        # Used since then: edited since then, or accessed since then.
        found = {node.id: node for node in tx.nodes("accessed_nodes", parameters)}
        found |= {node.id: node for node in tx.nodes("sorted_nodes", parameters)}
        return _first(each, list(found.values()))
    if parameters["attribute"] is not None:
        return tx.nodes("claimed_nodes", parameters)
    if each.label:
        return tx.nodes("labelled_nodes", parameters)
    if each.order != "updated":
        return tx.nodes("sorted_nodes", parameters)
    # One walk along the index for each owner and layer stops at the limit; one query over all would sort every row.
    layers = LAYERS if each.visibility.layers is None else tuple(dict.fromkeys(each.visibility.layers))
    name = "newest_nodes" if each.descending else "oldest_nodes"
    walked: list[MemoryNode] = []
    for scope in seen:
        for layer in layers:
            walked += tx.nodes(name, {**parameters, "scope": scope, "layer": LAYER_NUMBER[layer]})
    return _first(each, walked)


def _query_parameters(each: op.QueryNodes, seen: list[int]) -> dict[str, Any]:
    since = each.updated_since if each.idle_since is None else each.idle_since
    used = each.accessed_since if each.accessed_since is not None else each.idle_since
    layers = LAYERS if each.visibility.layers is None else each.visibility.layers
    subject, attribute = _claim(each)
    return {
        **visibility_parameters(each.visibility),
        "scopes": json.dumps(seen),
        "every_layer": json.dumps([LAYER_NUMBER[MemoryLayer(layer)] for layer in layers]),
        "subject": subject,
        "attribute": attribute,
        "since": _EARLIEST if since is None else micros(since),
        "before": _LATEST if each.idle_before is None else micros(each.idle_before),
        "used_since": micros(used),
        "updated_since": micros(each.updated_since),
        "idle_since": micros(each.idle_since),
        "idle_before": micros(each.idle_before),
        "accessed_since": micros(each.accessed_since),
        "expires_before": micros(each.expires_before),
        "superseded_before": micros(each.superseded_before),
        "label": each.label,
        "session": each.session,
        "properties": json.dumps(dict(each.properties)) if each.properties else None,
        "order": each.order,
        "descending": each.descending,
        "after": each.after,
        "limit": _limit(each.limit),
    }


def _claim(each: op.QueryNodes) -> tuple[str | None, str | None]:
    """The subject and attribute asked for, where the index of claims has them: both are texts."""
    subject, attribute = each.properties.get("subject"), each.properties.get("attribute")
    if isinstance(subject, str) and isinstance(attribute, str):
        return subject, attribute
    return None, None


def _first(each: op.QueryNodes, nodes: list[MemoryNode]) -> tuple[MemoryNode, ...]:
    nodes.sort(key=lambda node: (rules.order_key(node, each.order), node.id), reverse=each.descending)
    return tuple(nodes[: each.limit])


def query_subtree(tx: Transaction, each: op.QuerySubtree) -> Any:
    """Give the nodes of the scope and of all below it, scope by scope."""
    scopes = tx.scopes_below(each.scope)
    behind_path, behind_row = "", -1
    if each.after is not None:
        place = tx.one("place_of", {"id": each.after})
        if place is None or not each.scope.contains(MemoryScope.parse(place[1])):
            raise NotFound(f"no node {each.after!r} in {each.scope.path} to continue behind")
        behind_row, behind_path = place
    parameters: dict[str, Any] = {**visibility_parameters(each.visibility), "stale_for": each.stale_for}
    name = "subtree_nodes"
    if each.updated_since is not None:
        name = "recent_subtree_nodes"
        layers = each.visibility.layers if each.visibility is not None else None
        wanted = LAYERS if layers is None else layers
        parameters["every_layer"] = json.dumps([LAYER_NUMBER[layer] for layer in wanted])
        parameters["since"] = micros(each.updated_since)
    found: list[MemoryNode] = []
    for scope, path in scopes:
        left = _limit(each.limit) if each.limit is None else each.limit - len(found)
        if path < behind_path or left == 0:
            continue
        behind = behind_row if path == behind_path else -1
        rows = tx.whole_nodes(name, {**parameters, "scope": scope, "behind": behind, "limit": left})
        found += [node for _, node in rows]
    if not each.edges:
        return tuple(found)
    return tuple(found), graph.edges_of_scopes(tx, [scope for scope, _ in scopes])


def adjacent(tx: Transaction, each: op.Adjacent) -> tuple[tuple[str, int, Sketch], ...]:
    """Give the rows said just before and after each of these."""
    held = search.adjacent(tx, each)
    if held is not None:
        return held
    found = _adjacent_in_file(tx, each)
    return tuple((anchor, distance, sketch_of(node, each.terms)) for anchor, distance, node in found)


def _adjacent_in_file(tx: Transaction, each: op.Adjacent) -> tuple[tuple[str, int, MemoryNode], ...]:
    seen = tx.seen_scopes(each.scope)
    parameters: dict[str, Any] = {"ids": ids_text(each.ids), "paths": paths(each.scope)}
    places: dict[str, list[tuple[int, int]]] = {}
    for offset in range(each.distance):
        for anchor, _, before, after in tx.run("beside", {**parameters, "offset": offset}):
            beside = places.setdefault(anchor, [])
            beside += [(-offset - 1, before)] if before is not None else []
            beside += [(offset + 1, after)] if after is not None else []
    rows = list(dict.fromkeys(row for beside in places.values() for _, row in beside))
    nodes = {row: node for row, node in search.read_rows(tx, rows, seen).items() if each.visibility.admits(node)}
    found: list[tuple[str, int, MemoryNode]] = []
    hidden: list[str] = []
    for anchor, beside in places.items():
        if all(row in nodes for _, row in beside):
            found += [(anchor, distance, nodes[row]) for distance, row in sorted(beside)]
        else:
            hidden.append(anchor)
    return tuple(found) + (_adjacent_past_hidden(tx, each, hidden) if hidden else ())


def _adjacent_past_hidden(
    tx: Transaction, each: op.Adjacent, anchors: list[str]
) -> tuple[tuple[str, int, MemoryNode], ...]:
    """Walk from each anchor until enough rows were met that the reader may be given."""
    visible = visibility_parameters(each.visibility)
    found: list[tuple[str, int, MemoryNode]] = []
    rows = tx.run("anchors", {"ids": ids_text(anchors), "paths": paths(each.scope)}).fetchall()
    for anchor, row, scope, session, layer, asserted in rows:
        parameters = {
            **visible,
            "row": row,
            "scope": scope,
            "said_in": session,
            "layer": layer,
            "asserted": asserted,
            "distance": each.distance,
        }
        before = tx.nodes("said_before", parameters)
        found += [(anchor, -offset, node) for offset, node in reversed(tuple(enumerate(before, 1)))]
        found += [(anchor, offset, node) for offset, node in enumerate(tx.nodes("said_after", parameters), 1)]
    return tuple(found)


def stats(tx: Transaction, each: op.Stats) -> dict[str, Any]:
    """Count what the scope owns and sees."""
    seen = tx.seen_scopes(each.scope)
    scope = next((held.id for held in seen if held.path == each.scope.path), -1)
    nodes, superseded, embedded, changes = tx.one("stats", {"scope": scope})
    layers: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    for layer, status, count in tx.run("stats_by_layer", {"scope": scope}):
        layers[str(LAYERS[layer])] += count
        statuses[STATUSES[status]] += count
    return {
        "nodes": nodes,
        "edges": tx.one("count_edges", {"scope": scope})[0],
        "history": changes,
        "embedded": embedded,
        "superseded": superseded,
        "visible": tx.one("count_visible", {"scopes": json.dumps([held.id for held in seen])})[0],
        "layers": dict(layers),
        "statuses": dict(statuses),
    }


def list_scopes(tx: Transaction, each: op.ListScopes) -> tuple[MemoryScope, ...]:
    """Give the scopes that own nodes."""
    path = None if each.scope is None else each.scope.path
    found = tx.run("list_scopes", {"path": path, "after": each.after, "limit": _limit(each.limit)})
    return tuple(MemoryScope.parse(path) for (path,) in found)
