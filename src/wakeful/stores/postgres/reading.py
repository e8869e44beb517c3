"""Reads: rows of the scope and its ancestors, filtered by the one predicate in the database, before any limit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from wakeful import ops as op
from wakeful.errors import NotFound
from wakeful.records import MemoryEdge, MemoryLayer, MemoryNode, MemoryScope
from wakeful.sketches import Sketch
from wakeful.stores import candidates, rules
from wakeful.stores.postgres import words
from wakeful.stores.postgres.codec import (
    COLUMNS,
    OUTLINE,
    HalfVector,
    change_of,
    edge_of,
    node_of,
    numbers,
    scope_of,
    sketch_of_row,
    whole_node_of,
)
from wakeful.stores.postgres.steps import Statement, Steps, reader, run, shown, sql
from wakeful.stores.vectors import unit

EXACT_ROWS = 20_000
"""Rows of the scopes read, up to which all vectors are compared: exact, and a few milliseconds."""
_RARE = 20
"""Where fewer than one vector in so many is the reader's, the index would walk past too many others' to find them."""
_SPARE = 4
"""One candidate in so many is fetched beyond those wanted, for the rows that may not be shown."""
_PICKING = ("session", "idle_since", "idle_before", "accessed_since", "expires_before", "superseded_before")
"""Filters of ``QueryNodes`` with an index of their own."""
_STANDING = frozenset((MemoryLayer.WORKING, MemoryLayer.PROCEDURAL, MemoryLayer.PROSPECTIVE))
"""Layers that hold few rows beside the others, with an index of their own."""


def get_nodes(each: op.GetNodes) -> Steps[tuple[MemoryNode, ...]]:
    """Give nodes by id, in the order asked."""
    names = ["get_whole_nodes" if each.embeddings else "get_nodes"]
    values = {**reader(each.scope), "ids": list(each.ids)}
    if each.visibility is not None:
        names.append("and_visible")
        values |= shown(each.visibility)
    rows = yield from run(*names, **values)
    make = whole_node_of if each.embeddings else node_of
    found = {row[0]: make(row) for row in rows}
    return tuple(found[node_id] for node_id in each.ids if node_id in found)


def query_nodes(each: op.QueryNodes) -> Steps[tuple[MemoryNode, ...]]:
    """Give nodes that match, ordered in the database."""
    names = ["query_nodes"]
    values: dict[str, Any] = {**reader(each.scope), **shown(each.visibility), "limit": each.limit}
    if each.owned_only:
        values["paths"] = [each.scope.path]
    picked = each.label is not None
    for name in ("updated_since", *_PICKING):
        if getattr(each, name) is not None:
            names.append(f"query_nodes.{name}")
            values[name] = getattr(each, name)
            picked = picked or name in _PICKING
    if each.label is not None:
        names.append("query_nodes.label" if each.label else "query_nodes.no_label")
        values["label"] = each.label
    if each.visibility.layers is not None and _STANDING.issuperset(each.visibility.layers):
        names.append("query_nodes.standing")
        picked = True
    subject, attribute = each.properties.get("subject"), each.properties.get("attribute")
    if isinstance(subject, str) and isinstance(attribute, str):
        names.append("query_nodes.claim")
        values |= {"subject": subject, "attribute": attribute}
        picked = True
    if each.properties:
        names.append("query_nodes.properties")
        values["properties"] = rules.check_properties(each.properties)
    way = "down" if each.descending else "up"
    if each.after is not None:
        rules.check_after(each)
        names.append(f"query_nodes.after_{way}")
        values["after"] = each.after
    order = f"query_nodes.{'picked' if picked and each.order == 'updated' else each.order}_{way}"
    rows = yield from run(*names, order, "query_nodes.owners", order, **values)
    return tuple(map(node_of, rows))


def query_subtree(each: op.QuerySubtree) -> Steps[Any]:
    """Give nodes of the scope and of all below it, in the order of writing."""
    names = ["subtree"]
    values: dict[str, Any] = {"path": each.scope.path, "limit": each.limit, "after_path": "", "after_doc": -1}
    if each.after is not None:
        mark = yield from run("subtree_mark", path=each.scope.path, after=each.after)
        if not mark:
            raise NotFound(f"no node {each.after!r} in {each.scope.path} to continue behind")
        values |= {"after_path": mark[0][0], "after_doc": mark[0][1]}
    if each.visibility is not None:
        names.append("and_visible")
        values |= shown(each.visibility)
    for name in ("updated_since", "stale_for"):
        if getattr(each, name) is not None:
            names.append(f"subtree.{name}")
            values[name] = getattr(each, name)
    rows = yield from run(*names, "subtree.scopes", **values)
    nodes = tuple(map(whole_node_of, rows))
    if not each.edges:
        return nodes
    edges = yield from run("subtree_edges", path=each.scope.path)
    return nodes, tuple(map(edge_of, edges))


def get_edges(each: op.GetEdges) -> Steps[tuple[MemoryEdge, ...]]:
    """Give the strongest edges at each node."""
    rows = yield from run(
        "get_edges",
        **reader(each.scope),
        ids=list(each.node_ids),
        direction=each.direction,
        relation=each.relation,
        at=each.at,
        limit=each.limit_per_node,
    )
    return tuple(map(edge_of, rows))


def adjacent(each: op.Adjacent) -> Steps[tuple[tuple[str, int, Sketch], ...]]:
    """Give what was said just before and after."""
    values = {**reader(each.scope), **shown(each.visibility)}
    rows = yield from run("adjacent", **values, ids=list(dict.fromkeys(each.ids)), distance=each.distance)
    return tuple((row[0], row[1], sketch_of_row(row[2:], each.terms)) for row in rows)


def find_candidates(each: op.FindCandidates) -> Steps[tuple[op.Found, ...]]:
    """Give what the words find and what is nearest, as sketches."""
    words, near = candidates.searches(each)
    sizes = yield from _sizes(each.scope, each.model if near is not None else None)
    by_words = () if words is None else (yield from _by_words(words, "outlines_by_doc", sizes))
    by_meaning = () if near is None else (yield from _by_vector(near, "outlines_near", sizes))
    sketches = {row[0]: sketch_of_row(row, each.terms) for row in (*by_words, *by_meaning)}
    scores = {row[0]: row[OUTLINE] for row in by_words}
    cosines = {row[0]: row[OUTLINE] for row in by_meaning}
    return tuple(op.Found(sketch, scores.get(id_), cosines.get(id_)) for id_, sketch in sketches.items())


def search_text(each: op.SearchText) -> Steps[tuple[op.TextHit, ...]]:
    """Give the rows that the words find, best first."""
    hits = yield from _by_words(each, "hits_by_doc", (yield from _sizes(each.scope)))
    return tuple(op.TextHit(node_of(row), row[COLUMNS]) for row in hits)


def search_vector(each: op.SearchVector) -> Steps[tuple[op.TextHit, ...]]:
    """Give the rows nearest by cosine."""
    hits = yield from _by_vector(each, "hits_near", (yield from _sizes(each.scope, each.model)))
    return tuple(op.TextHit(node_of(row), row[COLUMNS]) for row in hits)


def _sizes(scope: MemoryScope, model: str | None = None) -> Steps[Sequence[tuple[Any, ...]]]:
    """Give owner, rows, words and documents ever numbered of each scope that the reader sees.

    For a model, behind them: vectors of all owners about, the model's number, and whether its vectors have an index.
    """
    paths = reader(scope)["paths"]
    if model is None:
        return (yield from run("sizes", "from_scopes", paths=paths))
    return (yield from run("sizes", "vector_sizes", "from_scopes", paths=paths, model=model))


def _by_words(each: op.SearchText, columns: str, sizes: Sequence[tuple[Any, ...]]) -> Steps[Sequence[tuple[Any, ...]]]:
    """Give these columns of the rows that the words find, and each one's score, best first."""
    terms = list({words.term_key(term): None for term in each.terms})
    if not terms or each.limit <= 0:
        return ()
    who = reader(each.scope)
    rows = yield from run("words", paths=who["paths"], terms=terms)
    many = _with_spare(each.limit)
    while True:
        scored = words.score(sizes, rows, many)
        end = scored.upto(many)
        hits = yield from run(
            columns,
            "from_docs",
            **who,
            **shown(each.visibility),
            owners=numbers(scored.owners[:end]),
            docs=numbers(scored.docs[:end]),
            scores=numbers(scored.scores[:end]),
            limit=each.limit,
        )
        if len(hits) >= each.limit or end >= scored.found:
            return hits
        many *= 16


def _with_spare(limit: int) -> int:
    return limit + limit // _SPARE + 8


def _by_vector(
    each: op.SearchVector, columns: str, sizes: Sequence[tuple[Any, ...]]
) -> Steps[Sequence[tuple[Any, ...]]]:
    """Give these columns of the rows nearest by cosine, and each one's cosine, best first."""
    query = HalfVector(unit(each.vector, "the query's vector"))
    who = reader(each.scope)
    if not sizes or each.limit <= 0:
        return ()
    held = sum(size[1] for size in sizes)
    *_, everywhere, model, indexed = sizes[0]
    if model is None:
        return ()
    values = {**who, **shown(each.visibility), "vector": query, "limit": each.limit}
    many = min(_with_spare(each.limit), held)
    near = None
    if indexed and held > EXACT_ROWS and held * _RARE > everywhere:
        near = sql(columns, "nearest_indexed").replace("halfvec(0)", f"halfvec({len(query.raw) // 4:d})")
        near = near.replace("v.model = -1", f"v.model = {model:d}").replace("LIMIT -1", f"LIMIT {many:d}")
    while True:
        if near is not None:
            hits = (yield Statement(near, values)).rows
        else:
            hits = yield from run(columns, "nearest", **values, model=model, many=many)
        if len(hits) >= each.limit or many >= held:
            return hits
        many, near = many * 16, None


def get_history(each: op.History) -> Steps[tuple[op.Change, ...]]:
    """Give every version of a node that the scope sees."""
    who = reader(each.scope)
    rows = yield from run("history", **who, id=each.id)
    if not rows:
        return ()
    ((_, path, *_),) = yield from run("get_nodes", paths=who["paths"], ids=[each.id])
    owner = scope_of(path)
    return tuple(change_of(row, owner) for row in rows)


def stats(each: op.Stats) -> Steps[dict[str, Any]]:
    """Count what the scope owns and sees."""
    who = reader(each.scope)
    ((nodes, edges, history, embedded, superseded, visible),) = yield from run("stats", **who)
    groups = yield from run("stats_groups", path=who["path"])
    layers: dict[str, int] = {}
    statuses: dict[str, int] = {}
    for layer, status, count in groups:
        layers[layer] = layers.get(layer, 0) + count
        statuses[status] = statuses.get(status, 0) + count
    return {
        "nodes": nodes,
        "edges": edges,
        "history": history,
        "embedded": embedded,
        "superseded": superseded,
        "visible": visible,
        "layers": layers,
        "statuses": statuses,
    }


def get_state(each: op.GetState) -> Steps[Any]:
    """Give a value kept for the scope."""
    rows = yield from run("get_state", path=each.scope.path, key=each.key)
    return json.loads(rows[0][0]) if rows else None


def list_scopes(each: op.ListScopes) -> Steps[tuple[MemoryScope, ...]]:
    """Give the scopes that own nodes, in path order."""
    if each.scope is None:
        rows = yield from run("all_scopes", after=each.after, limit=each.limit)
    else:
        rows = yield from run("scopes_below", path=each.scope.path, after=each.after, limit=each.limit)
    return tuple(MemoryScope.parse(path) for (path,) in rows)
