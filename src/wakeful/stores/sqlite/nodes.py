"""Writing nodes: insert, merge, change, use, delete, history."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from wakeful import ops as op
from wakeful.errors import MemoryContractError, NotFound
from wakeful.records import MemoryNode, check_text
from wakeful.stores import rules
from wakeful.stores.sqlite.rows import halves, micros, moment, node_columns, read_version, terms_text, version_text
from wakeful.stores.sqlite.transaction import Transaction, ids_text, paths


def put_nodes(tx: Transaction, each: op.PutNodes) -> int:
    """Insert or merge nodes."""
    if not each.nodes:
        return 0
    erased_at = tx.erased_at(each.scope)
    for given in each.nodes:
        rules.check_tombstone(erased_at, given.recorded_at, each.scope)
    _declare(tx, each.nodes)
    scope = tx.own_scope_id(each.scope)
    held = _held(tx, [given.id for given in each.nodes])
    fresh: dict[str, MemoryNode] = {}
    written = 0
    for given in each.nodes:
        node = rules.check_node(given, each.scope)
        row, old = held.get(node.id, (0, None))
        if old is not None and old.scope.levels != each.scope.levels:
            raise MemoryContractError(f"the id {node.id!r} can't be used in {each.scope.path}; choose another")
        known = old or fresh.get(node.id)
        expected = each.expected.get(node.id)
        if expected is not None and (known is None or known.updated_at != expected):
            continue
        written += 1
        if known is not None:
            node = rules.merge(known, node)
        if old is None:
            fresh[node.id] = node
        else:
            _change(tx, scope, row, old, node)
            held[node.id] = (row, node)
    _insert(tx, scope, tuple(fresh.values()))
    return written


def _held(tx: Transaction, ids: Sequence[str]) -> dict[str, tuple[int, MemoryNode]]:
    return {node.id: (row, node) for row, node in tx.whole_nodes("held_nodes", {"ids": ids_text(ids)})}


def _declare(tx: Transaction, nodes: Sequence[MemoryNode]) -> None:
    """Check vectors against the store's embedding; the first vector declares it."""
    if any(node.embedding is not None for node in nodes):
        held = tx.embedding()
        space = rules.check_vectors(held, nodes)
        if space != held:
            tx.set_embedding(space)


def _insert(tx: Transaction, scope: int, nodes: Sequence[MemoryNode]) -> None:
    if not nodes:
        return
    first = tx.new_rows(len(nodes))
    texts = [terms_text(node) for node in nodes]
    now = micros(tx.now)
    tx.run_many(
        "add_node",
        (
            (row, node.id, scope, *node_columns(node, text, now))
            for row, (node, text) in enumerate(zip(nodes, texts, strict=True), first)
        ),
    )
    token = str(scope)
    tx.run_many("index_terms", ((row, token, text) for row, text in enumerate(texts, first)))
    embedded = [(row, node.embedding) for row, node in enumerate(nodes, first) if node.embedding is not None]
    vectors = halves([vector for _, vector in embedded])
    tx.run_many("put_vector", ((row, data) for (row, _), data in zip(embedded, vectors, strict=True)))
    tx.changed(scope)


def _change(tx: Transaction, scope: int, row: int, old: MemoryNode, node: MemoryNode) -> None:
    """Write a changed node over the old one, with its index entries."""
    terms = terms_text(node)
    if (old.label, old.content) != (node.label, node.content):
        tx.run("unindex_terms", (row, *map(str, tx.one("terms_of", {"row": row}))))
        tx.run("index_terms", (row, str(scope), terms))
    tx.run("change_node", (*node_columns(node, terms), row))
    if node.embedding is None:
        tx.run("drop_vector", (row,))
    elif node.embedding != old.embedding:
        tx.run("put_vector", (row, halves([node.embedding])[0]))
    tx.run("note_revision", {"scope": scope, "node": row, "change": tx.change})
    tx.changed(scope)


def update_nodes(tx: Transaction, each: op.UpdateNodes) -> int:
    """Change single fields of owned rows."""
    scope = tx.scope_id(each.scope)
    if scope is None:
        return 0
    held = _held(tx, list(each.changes))
    changed = 0
    for node_id, values in each.changes.items():
        row, old = held.get(node_id, (0, None))
        if old is None or old.scope.levels != each.scope.levels:
            continue
        expected = each.expected.get(node_id)
        if expected is not None and old.updated_at != expected:
            continue
        node = rules.change(old, values)
        if values.get("embedding") is not None:
            _declare(tx, (node,))
        _change(tx, scope, row, old, node)
        changed += 1
    return changed


def touch(tx: Transaction, each: op.Touch) -> int:
    """Count one more use of owned rows."""
    scope = tx.scope_id(each.scope)
    if scope is None:
        return 0
    name = "touch_access" if each.kind == "access" else "touch_activation"
    which = {"ids": ids_text(each.ids), "scope": scope}
    touched = tx.run(name, {**which, "at": micros(each.at)}).rowcount
    if touched:
        note_use(tx, which)
    return touched


def note_use(tx: Transaction, which: dict[str, Any]) -> None:
    """Note that owned rows changed in what search does not look at."""
    tx.run("note_use", {**which, "change": tx.change})
    tx.changed(which["scope"])


def delete_nodes(tx: Transaction, each: op.DeleteNodes) -> int:
    """Delete owned rows with all that hangs on them."""
    scope = tx.scope_id(each.scope)
    if scope is None:
        return 0
    rows = [row for (row,) in tx.run("owned_rows", {"ids": ids_text(each.ids), "scope": scope})]
    if not rows:
        return 0
    which = {"rows": json.dumps(rows)}
    for name in ("unindex_rows", "drop_edges_of_rows", "drop_history_of_rows", "drop_vectors_of_rows"):
        tx.run(name, which)
    tx.run("drop_revisions_of_rows", {**which, "scope": scope})
    tx.run("drop_rows", which)
    tx.changed(scope, gone=True)
    return len(rows)


def log(tx: Transaction, each: op.Log) -> int:
    """Write versions into the history."""
    scope = tx.scope_id(each.scope)
    for entry in each.changes:
        check_text(entry.reason, "a change's reason")
        values = {
            "id": entry.node.id,
            "scope": scope,
            "action": entry.action,
            "reason": entry.reason,
            "at": micros(entry.at),
            "version": version_text(replace(entry.node, embedding=None)),
        }
        if tx.run("add_history", values).rowcount != 1:
            raise NotFound(f"{each.scope.path} owns no node {entry.node.id!r} to write history for")
    return len(each.changes)


def history(tx: Transaction, each: op.History) -> tuple[op.Change, ...]:
    """Give the versions of a visible row."""
    found = tx.run("history_of", {"id": each.id, "paths": paths(each.scope)})
    return tuple(
        op.Change(node=read_version(version), action=action, reason=reason, at=moment(at))  # type: ignore[arg-type]  # NOT NULL
        for action, reason, at, version in found
    )
