"""Writes: only rows that the scope itself owns.

Whoever writes holds the scope's lock until the transaction ends (see ``locks.py``), so what is read before a write is
still so when it is written: compare-and-set, merging and numbering need nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from wakeful import ops as op
from wakeful.errors import MemoryContractError, NotFound
from wakeful.records import MemoryEdge, MemoryNode, MemoryScope, check_text
from wakeful.stores import rules
from wakeful.stores.postgres import words
from wakeful.stores.postgres.codec import (
    COLUMNS,
    HalfVector,
    change_row,
    document,
    edge_of,
    edge_row,
    node_row,
    outline_row,
    whole_node_of,
)
from wakeful.stores.postgres.steps import Steps, reader, run, run_count
from wakeful.stores.protocol import EmbeddingSpace
from wakeful.stores.vectors import unit

_EMBEDDING = "embedding"


class Held:
    """A node as the database has it, and where."""

    __slots__ = ("doc", "node", "place")

    def __init__(self, row: Sequence[Any]) -> None:
        self.node = whole_node_of(row)
        self.place: int = row[COLUMNS + 1]
        self.doc: int = row[COLUMNS + 2]


def mark(scope: MemoryScope) -> bytes:
    """The key under which an erasure is remembered: a hash, so that the name itself is gone."""
    return sha256(f"tombstone/{scope.path}".encode()).digest()


def own_scope(scope: MemoryScope) -> Steps[tuple[int, int]]:
    """Give the scope's number and its next document, adding it when it is not there."""
    rows = yield from run("own_scope", path=scope.path)
    if not rows:
        yield from run_count("add_scope", path=scope.path)
        rows = yield from run("own_scope", path=scope.path)
    return rows[0][0], rows[0][1]


def _erased_at(scope: MemoryScope) -> Steps[datetime | None]:
    ((moment,),) = yield from run("erased_at", marks=[mark(each) for each in scope.visible()])
    found: datetime | None = moment
    return found


def get_embedding() -> Steps[EmbeddingSpace | None]:
    """Read the declared model of the vectors."""
    rows = yield from run("get_setting", key=_EMBEDDING)
    return EmbeddingSpace(rows[0][0]["model"], rows[0][0]["dimensions"]) if rows else None


def declare_embedding(space: EmbeddingSpace | None, *, replace_held: bool = True) -> Steps[None]:
    """Declare the model of the vectors."""
    if space is None:
        yield from run_count("drop_setting", key=_EMBEDDING)
        return
    value = json.dumps({"model": space.model, "dimensions": space.dimensions})
    yield from run_count("put_setting" if replace_held else "declare_setting", key=_EMBEDDING, value=value)


def _check_vectors(nodes: Iterable[MemoryNode]) -> Steps[None]:
    bringing = [node for node in nodes if node.embedding is not None]
    if not bringing:
        return
    held = yield from get_embedding()
    found = rules.check_vectors(held, bringing)
    if found != held:
        yield from declare_embedding(found, replace_held=held is not None)
        rules.check_vectors((yield from get_embedding()), bringing)


def put_nodes(each: op.PutNodes) -> Steps[int]:
    """Insert or merge nodes."""
    if not each.nodes:
        return 0
    now = datetime.now(UTC)
    erased_at = yield from _erased_at(each.scope)
    given: dict[str, MemoryNode] = {}
    yield from _check_vectors(each.nodes)
    for node in _directed(each.nodes):
        rules.check_tombstone(erased_at, node.recorded_at, each.scope)
        rules.check_properties(node.properties)
        ready = rules.prepare(node, each.scope, now)
        earlier = given.get(node.id)
        given[node.id] = rules.merge(earlier, ready) if earlier is not None else ready
    owner, next_doc = yield from own_scope(each.scope)
    rows = yield from run("owned", path=each.scope.path, ids=list(given))
    held = {row[0]: Held(row) for row in rows}
    expected = each.expected
    fresh = [node for node in given.values() if node.id not in held and node.id not in expected]
    again = [
        (held[node.id], rules.merge(held[node.id].node, node))
        for node in given.values()
        if node.id in held and expected.get(node.id, held[node.id].node.updated_at) == held[node.id].node.updated_at
    ]
    yield from _add(each.scope, owner, next_doc, fresh)
    yield from _change(owner, again)
    taken = {node.id for node in fresh} | {known.node.id for known, _ in again}
    return sum(node.id in taken for node in each.nodes)


def _directed(nodes: Sequence[MemoryNode]) -> Iterable[MemoryNode]:
    """Refuse vectors without a direction, and scale those that are not of unit length."""
    lengths = _lengths([node.embedding for node in nodes if node.embedding is not None])
    for node in nodes:
        if node.embedding is not None and not abs(next(lengths) - 1) < _UNIT:
            node = replace(node, embedding=unit(node.embedding, f"the vector of node {node.id!r}"))
        yield node


_UNIT = 1e-4
"""How far from 1 a vector's length may be; half floats keep no more."""


def _lengths(vectors: Sequence[bytes]) -> Iterator[float]:
    try:
        import numpy as np
    except ModuleNotFoundError:
        return iter([0.0] * len(vectors))
    if len({len(vector) for vector in vectors}) != 1:
        return iter([0.0] * len(vectors))
    table = np.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(vectors), -1)
    lengths: list[float] = np.sqrt(np.einsum("ij,ij->i", table, table)).tolist()
    return iter(lengths)


def _add(scope: MemoryScope, owner: int, next_doc: int, nodes: Sequence[MemoryNode]) -> Steps[None]:
    if not nodes:
        return
    rows = [
        {**node_row(node), **outline_row(node), "id": node.id, "doc": next_doc + place}
        for place, node in enumerate(nodes)
    ]
    texts = [words.analysed(next_doc + place, node.label, node.content) for place, node in enumerate(nodes)]
    added = yield from run("add_nodes", owner=owner, rows=document(rows))
    places = dict(added)
    if len(places) != len(nodes):
        missing = next(node.id for node in nodes if node.id not in places)
        raise MemoryContractError(f"the id {missing!r} can't be used in {scope.path}; choose another")
    yield from _add_words(owner, texts)
    yield from _put_vectors(owner, [(places[node.id], node) for node in nodes])
    total = sum(text.length for text in texts)
    yield from run_count("count_scope", owner=owner, nodes=len(nodes), words=total, docs=len(nodes))


def _add_words(owner: int, texts: Iterable[words.Text]) -> Steps[None]:
    terms, runs, packed = words.entries(texts)
    if terms:
        yield from run_count("add_words", owner=owner, terms=terms, chunks=runs, entries=packed)


def _drop_words(owner: int, texts: Sequence[words.Text]) -> Steps[None]:
    leaving = words.touched(texts)
    if not leaving:
        return
    keys = sorted(leaving)
    rows = yield from run("some_words", owner=owner, terms=[key[0] for key in keys], chunks=[key[1] for key in keys])
    left = [(term, chunk, words.without(raw, leaving[term, chunk])) for term, chunk, raw in rows]
    kept = [row for row in left if row[2]]
    empty = [row for row in left if not row[2]]
    if kept:
        yield from run_count(
            "change_words",
            owner=owner,
            terms=[row[0] for row in kept],
            chunks=[row[1] for row in kept],
            entries=[row[2] for row in kept],
        )
    if empty:
        yield from run_count(
            "drop_words", owner=owner, terms=[row[0] for row in empty], chunks=[row[1] for row in empty]
        )


def _put_vectors(owner: int, placed: Sequence[tuple[int, MemoryNode]]) -> Steps[None]:
    by_model: dict[str, list[tuple[int, HalfVector]]] = {}
    for place, node in placed:
        if node.embedding is not None and node.embedding_model is not None:
            by_model.setdefault(node.embedding_model, []).append((place, HalfVector(node.embedding)))
    for model, vectors in by_model.items():
        number = yield from model_number(model)
        yield from run_count(
            "put_vectors",
            owner=owner,
            model=number,
            places=[place for place, _ in vectors],
            vectors=[vector for _, vector in vectors],
        )


def model_number(model: str) -> Steps[int]:
    """Give an embedding model's number, adding it when it is not there."""
    rows = yield from run("model_id", model=model)
    if not rows:
        yield from run_count("add_model", model=model)
        rows = yield from run("model_id", model=model)
    number: int = rows[0][0]
    return number


def _change(owner: int, pairs: Sequence[tuple[Held, MemoryNode]]) -> Steps[None]:
    """Write nodes in the place of what was there, with their words and vectors."""
    if not pairs:
        return
    rows = []
    for held, node in pairs:
        unclaim = rules.reminder_of(held.node) != rules.reminder_of(node)
        rows.append({**node_row(node), **outline_row(node), "place": held.place, "unclaim": unclaim})
    yield from run_count("change_nodes", owner=owner, rows=document(rows))
    moved = [(held, node) for held, node in pairs if (held.node.label, held.node.content) != (node.label, node.content)]
    if moved:
        before = [words.analysed(held.doc, held.node.label, held.node.content) for held, _ in moved]
        after = [words.analysed(held.doc, node.label, node.content) for held, node in moved]
        yield from _drop_words(owner, before)
        yield from _add_words(owner, after)
        grown = sum(text.length for text in after) - sum(text.length for text in before)
        yield from run_count("count_scope", owner=owner, nodes=0, words=grown, docs=0)
    gone = [held.place for held, node in pairs if node.embedding is None and held.node.embedding is not None]
    if gone:
        yield from run_count("drop_vectors", owner=owner, places=gone)
    new = [
        (held.place, node)
        for held, node in pairs
        if node.embedding is not None
        and (node.embedding, node.embedding_model) != (held.node.embedding, held.node.embedding_model)
    ]
    yield from _put_vectors(owner, new)


def update_nodes(each: op.UpdateNodes) -> Steps[int]:
    """Change single fields of owned nodes."""
    rows = yield from run("owned", path=each.scope.path, ids=list(each.changes))
    held = {row[0]: Held(row) for row in rows}
    pairs = []
    bringing = []
    for node_id, values in each.changes.items():
        known = held.get(node_id)
        if known is None or each.expected.get(node_id, known.node.updated_at) != known.node.updated_at:
            continue
        node = rules.change(known.node, values)
        rules.check_properties(node.properties)
        if values.get("embedding") is not None:
            (node,) = _directed((node,))
            bringing.append(node)
        pairs.append((known, node))
    yield from _check_vectors(bringing)
    if pairs:
        owner, _ = yield from own_scope(each.scope)
        yield from _change(owner, pairs)
    return len(pairs)


def touch(each: op.Touch) -> Steps[int]:
    """Count uses of owned nodes."""
    name = "touch_access" if each.kind == "access" else "touch_activation"
    changed = yield from run_count(name, path=each.scope.path, ids=list(dict.fromkeys(each.ids)), at=each.at)
    return changed


def delete_nodes(each: op.DeleteNodes) -> Steps[int]:
    """Delete owned nodes with all that hangs on them."""
    rows = yield from run("owned", path=each.scope.path, ids=list(dict.fromkeys(each.ids)))
    if not rows:
        return 0
    held = [Held(row) for row in rows]
    owner, _ = yield from own_scope(each.scope)
    texts = [words.analysed(known.doc, known.node.label, known.node.content) for known in held]
    yield from _drop_words(owner, texts)
    total = sum(text.length for text in texts)
    yield from run_count("count_scope", owner=owner, nodes=-len(held), words=-total, docs=0)
    deleted = yield from run_count("delete_nodes", path=each.scope.path, places=[known.place for known in held])
    return deleted


def put_edges(each: op.PutEdges) -> Steps[int]:
    """Insert or merge edges."""
    if not each.edges:
        return 0
    now = datetime.now(UTC)
    erased_at = yield from _erased_at(each.scope)
    ends = {end for edge in each.edges for end in (edge.source_id, edge.target_id)}
    for edge in each.edges:
        rules.check_tombstone(erased_at, edge.recorded_at, each.scope)
        rules.check_properties(edge.properties)
    places = dict((yield from run("visible_places", **reader(each.scope), ids=sorted(ends))))
    given: dict[tuple[str, str, str], MemoryEdge] = {}
    for edge in each.edges:
        edge = rules.prepare_edge(edge, each.scope, now)
        for end in (edge.source_id, edge.target_id):
            if end not in places:
                raise NotFound(f"no node {end!r} is visible in {each.scope.path}; an edge needs both its ends")
        key = (edge.source_id, edge.target_id, edge.relation)
        given[key] = rules.merge_edge(given[key], edge) if key in given else edge
    rows = yield from run(
        "same_edges",
        path=each.scope.path,
        sources=[places[source] for source, _, _ in given],
        targets=[places[target] for _, target, _ in given],
        relations=[relation for _, _, relation in given],
    )
    for held in map(edge_of, rows):
        key = (held.source_id, held.target_id, held.relation)
        given[key] = rules.merge_edge(held, given[key])
    owner, _ = yield from own_scope(each.scope)
    records = [
        {**edge_row(edge), "source_place": places[edge.source_id], "target_place": places[edge.target_id]}
        for edge in given.values()
    ]
    yield from run_count("put_edges", owner=owner, rows=document(records))
    return len(each.edges)


def delete_edges(each: op.DeleteEdges) -> Steps[int]:
    """Delete owned edges."""
    deleted = yield from run_count("delete_edges", path=each.scope.path, ids=list(dict.fromkeys(each.ids)))
    return deleted


def log(each: op.Log) -> Steps[int]:
    """Write versions into the history."""
    if not each.changes:
        return 0
    rows = yield from run("owned", path=each.scope.path, ids=list({entry.node.id for entry in each.changes}))
    held = {row[0]: row[COLUMNS + 1] for row in rows}
    records = []
    for number, entry in enumerate(each.changes):
        if entry.node.id not in held:
            raise NotFound(f"{each.scope.path} owns no node {entry.node.id!r} to write history for")
        check_text(entry.reason, "a change's reason")
        rules.check_properties(entry.node.properties)
        records.append({**change_row(entry), "place": held[entry.node.id], "number": number})
    owner, _ = yield from own_scope(each.scope)
    yield from run_count("log", owner=owner, rows=document(records))
    return len(each.changes)


def set_embedding(each: op.SetEmbedding) -> Steps[None]:
    """Declare the model of the vectors."""
    yield from declare_embedding(None if each.model is None else EmbeddingSpace(each.model, each.dimensions))


def put_state(each: op.PutState) -> Steps[None]:
    """Keep a value for the scope."""
    check_text(each.key, "a state's key")
    if each.value is None:
        yield from run_count("drop_state", path=each.scope.path, key=each.key)
        return
    owner, _ = yield from own_scope(each.scope)
    yield from run_count("put_state", owner=owner, key=each.key, value=rules.state_text(each.value))
