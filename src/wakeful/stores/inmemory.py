"""The store in the process: every operation in plain dictionaries, the reference that the other stores are held to.

Rules of the file:

- Rows are changed through the tables' ``_put`` and ``_drop`` alone, so a failed ``execute`` leaves nothing behind.
- Every read of rows goes through ``_seen`` or ``_visible_row`` (a subtree: ``_below``), every write through ``_owned``.
"""

from __future__ import annotations

import json
import threading
from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from wakeful import ops as op
from wakeful.errors import MemoryContractError, NotFound, StaleWriter, StoreError
from wakeful.records import MemoryEdge, MemoryNode, MemoryScope, check_text
from wakeful.sketches import Sketch, sketch_of
from wakeful.stores import bm25, candidates, rules
from wakeful.stores.protocol import EmbeddingSpace
from wakeful.stores.tables import Lease, Row, Tables
from wakeful.stores.vectors import cosines, unit


class InMemoryStore(Tables):
    """Keep memory in dictionaries, for tests, short-lived processes and as the reference of what a store promises."""

    kind = "memory"
    url = "memory://"
    supports_updated_since = True
    stores_native_scopes = True

    def __init__(self, *, embedding: EmbeddingSpace | None = None) -> None:
        super().__init__(embedding)
        self._lock = threading.RLock()
        self._closed = False

    def execute(self, ops: Sequence[op.MemoryOp]) -> tuple[Any, ...]:
        """Run operations, all or nothing; one result an operation."""
        with self._lock:
            if self._closed:
                raise StoreError("the store is closed")
            self._begin()
            try:
                return tuple(self._run(each) for each in ops)
            except BaseException:
                self._roll_back()
                raise

    async def aexecute(self, ops: Sequence[op.MemoryOp]) -> tuple[Any, ...]:
        """Run operations; nothing here blocks."""
        return self.execute(ops)

    def close(self) -> None:
        """Forget everything."""
        self._closed = True

    async def aclose(self) -> None:
        """Forget everything."""
        self.close()

    # --- tables -----------------------------------------------------------------------------------------------------

    def _run(self, each: op.MemoryOp) -> Any:
        handler = _HANDLERS.get(type(each))
        if handler is None:
            raise MemoryContractError(f"{type(each).__name__} is not a memory operation")
        rules.check_names(each)
        return handler(self, each)

    def _put_nodes(self, each: op.PutNodes) -> int:
        now, erased_at, written = datetime.now(UTC), self._erased_at(each.scope), 0
        self._put(self._meta, "embedding", rules.check_vectors(self.embedding, each.nodes))
        for given in each.nodes:
            rules.check_tombstone(erased_at, given.recorded_at, each.scope)
            rules.check_properties(given.properties)
            node = rules.prepare(given, each.scope, now)
            old = self._rows.get(node.id)
            if old is not None and old.node.scope != each.scope:
                raise MemoryContractError(f"the id {node.id!r} can't be used in {each.scope.path}; choose another")
            expected = each.expected.get(node.id)
            if expected is not None and (old is None or old.node.updated_at != expected):
                continue
            self._save(old, rules.merge(old.whole(), node) if old is not None else node)
            written += 1
        return written

    def _save(self, old: Row | None, node: MemoryNode) -> None:
        if old is not None and rules.reminder_of(old.node) != rules.reminder_of(node):
            self._drop(self._claims, node.id)
        self._write(node)

    def _put_edges(self, each: op.PutEdges) -> int:
        now, erased_at = datetime.now(UTC), self._erased_at(each.scope)
        for given in each.edges:
            rules.check_tombstone(erased_at, given.recorded_at, each.scope)
            rules.check_properties(given.properties)
            edge = rules.prepare_edge(given, each.scope, now)
            for end in (edge.source_id, edge.target_id):
                if self._visible_row(each.scope, end) is None:
                    raise NotFound(f"no node {end!r} is visible in {each.scope.path}; an edge needs both its ends")
            old = self._same_edge(edge)
            if old is not None:
                edge = rules.merge_edge(old, edge)
            elif edge.id in self._edges:
                raise MemoryContractError(f"the edge id {edge.id!r} can't be used here; let MemoryEdge.new make it")
            self._put(self._edges, edge.id, edge)
            self._put(self._touching[edge.source_id], edge.id, None)
            self._put(self._touching[edge.target_id], edge.id, None)
        return len(each.edges)

    def _same_edge(self, edge: MemoryEdge) -> MemoryEdge | None:
        for edge_id in self._touching[edge.source_id]:
            held = self._edges[edge_id]
            if (held.scope, held.source_id, held.relation, held.target_id) == (
                *(edge.scope, edge.source_id),
                *(edge.relation, edge.target_id),
            ):
                return held
        return None

    def _get_nodes(self, each: op.GetNodes) -> tuple[MemoryNode, ...]:
        rows = [self._visible_row(each.scope, node_id) for node_id in each.ids]
        return tuple(
            row.whole() if each.embeddings else row.node
            for row in rows
            if row is not None and (each.visibility is None or each.visibility.admits(row.node))
        )

    def _get_edges(self, each: op.GetEdges) -> tuple[MemoryEdge, ...]:
        found: dict[str, MemoryEdge] = {}
        for node_id in each.node_ids:
            held = [self._edges[edge_id] for edge_id in self._touching.get(node_id, ())]
            matching = [edge for edge in held if self._edge_matches(each, edge, node_id)]
            matching.sort(key=_edge_order)
            found |= {edge.id: edge for edge in matching[: each.limit_per_node]}
        return tuple(sorted(found.values(), key=_edge_order))

    def _edge_matches(self, each: op.GetEdges, edge: MemoryEdge, node_id: str) -> bool:
        return (
            each.scope.sees(edge.scope)
            and (each.relation is None or edge.relation == each.relation)
            and (each.direction != "out" or edge.source_id == node_id)
            and (each.direction != "in" or edge.target_id == node_id)
            and (each.at is None or edge.in_force_at(each.at))
        )

    def _query_nodes(self, each: op.QueryNodes) -> tuple[MemoryNode, ...]:
        nodes = [
            row.node
            for row in self._seen(each.scope, each.visibility)
            if (each.updated_since is None or row.node.updated_at >= each.updated_since)
            and (each.label is None or row.node.label == each.label)
            and (each.session is None or row.node.source.session == each.session)
            and (not each.owned_only or row.node.scope == each.scope)
            and rules.in_ranges(row.node, each)
            and rules.has_properties(row.node.properties, each.properties)
        ]
        nodes.sort(key=lambda node: (rules.order_key(node, each.order), node.id), reverse=each.descending)
        if each.after is not None:
            rules.check_after(each)
            nodes = [node for node in nodes if (node.id < each.after if each.descending else node.id > each.after)]
        return tuple(nodes[: each.limit])

    def _query_subtree(self, each: op.QuerySubtree) -> Any:
        rows = [self._rows[node_id] for owner in self._below(each.scope) for node_id in self._owners[owner]]
        rows.sort(key=lambda row: (row.node.scope.path, row.place))
        if each.after is not None:
            last = self._rows.get(each.after)
            if last is None or not each.scope.contains(last.node.scope):
                raise NotFound(f"no node {each.after!r} in {each.scope.path} to continue behind")
            rows = [row for row in rows if (row.node.scope.path, row.place) > (last.node.scope.path, last.place)]
        nodes = tuple(
            row.whole()
            for row in rows
            if (each.visibility is None or each.visibility.admits(row.node))
            and (each.updated_since is None or row.node.updated_at >= each.updated_since)
            and (each.stale_for is None or row.vector is None or row.node.embedding_model != each.stale_for)
        )[: each.limit]
        if not each.edges:
            return nodes
        edges = [edge for edge in self._edges.values() if each.scope.contains(edge.scope)]
        return nodes, tuple(sorted(edges, key=lambda edge: (edge.scope.path, edge.id)))

    def _search_text(self, each: op.SearchText) -> tuple[op.TextHit, ...]:
        owners = each.scope.visible()
        held = [node_id for owner in owners for node_id in self._owners.get(owner, ())]
        mean = sum(self._rows[node_id].length for node_id in held) / len(held) if held else 0.0
        scores: defaultdict[str, float] = defaultdict(float)
        for term in dict.fromkeys(each.terms):
            holding = [node_id for owner in owners for node_id in self._postings.get((owner, term), ())]
            weight = bm25.idf(len(held), len(holding))
            for node_id in holding:
                row = self._rows[node_id]
                scores[node_id] += weight * bm25.saturation(row.terms[term], row.length, mean)
        return self._best(scores.items(), each.visibility, each.limit)

    def _search_vector(self, each: op.SearchVector) -> tuple[op.TextHit, ...]:
        query = unit(each.vector, "the query's vector")
        found = [
            (row.node.id, row.vector)
            for row in self._seen(each.scope, each.visibility)
            if row.vector is not None and row.node.embedding_model == each.model and len(row.vector) == len(query)
        ]
        scores = cosines([vector for _, vector in found], query)
        pairs = zip((node_id for node_id, _ in found), scores, strict=True)
        return self._best(pairs, each.visibility, each.limit)

    def _best(
        self, scores: Iterable[tuple[str, float]], visibility: op.Visibility, limit: int
    ) -> tuple[op.TextHit, ...]:
        ranked = sorted((-score, node_id) for node_id, score in scores)
        hits: list[op.TextHit] = []
        for score, node_id in ranked:
            if len(hits) >= limit:
                break
            node = self._rows[node_id].node
            if visibility.admits(node):
                hits.append(op.TextHit(node, -score))
        return tuple(hits)

    def _find_candidates(self, each: op.FindCandidates) -> tuple[op.Found, ...]:
        words, near = candidates.searches(each)
        return candidates.found(
            self._search_text(words) if words is not None else (),
            self._search_vector(near) if near is not None else (),
            each.terms,
        )

    def _adjacent(self, each: op.Adjacent) -> tuple[tuple[str, int, Sketch], ...]:
        found: list[tuple[str, int, Sketch]] = []
        threads: dict[tuple[MemoryScope, str, str], list[tuple[datetime, int, str]]] = {}
        for anchor_id in dict.fromkeys(each.ids):
            anchor = self._visible_row(each.scope, anchor_id)
            if anchor is None or anchor.node.source.session is None:
                continue
            key = (anchor.node.scope, anchor.node.source.session, anchor.node.layer)
            if key not in threads:
                threads[key] = self._thread(*key, each.visibility)
            thread = threads[key]
            here = (anchor.node.asserted_at, anchor.place, anchor_id)
            before = [entry for entry in thread if entry < here][-each.distance :]
            after = [entry for entry in thread if entry > here][: each.distance]
            for offset, entry in enumerate(before, -len(before)):
                found.append((anchor_id, offset, sketch_of(self._rows[entry[2]].node, each.terms)))
            for offset, entry in enumerate(after, 1):
                found.append((anchor_id, offset, sketch_of(self._rows[entry[2]].node, each.terms)))
        return tuple(found)

    def _thread(
        self, owner: MemoryScope, session: str, layer: str, visibility: op.Visibility
    ) -> list[tuple[datetime, int, str]]:
        """What was said in one session, in order."""
        thread: list[tuple[datetime, int, str]] = []
        for node_id in self._owners[owner]:
            row = self._rows[node_id]
            same = row.node.source.session == session and row.node.layer == layer
            if same and visibility.admits(row.node):
                insort(thread, (row.node.asserted_at, row.place, node_id))
        return thread

    def _update_nodes(self, each: op.UpdateNodes) -> int:
        changed = 0
        for node_id, values in each.changes.items():
            row = self._owned(each.scope, node_id)
            if row is None:
                continue
            expected = each.expected.get(node_id)
            if expected is not None and row.node.updated_at != expected:
                continue
            node = rules.change(row.whole(), values)
            rules.check_properties(node.properties)
            if values.get("embedding") is not None:
                self._put(self._meta, "embedding", rules.check_vectors(self.embedding, (node,)))
            self._save(row, node)
            changed += 1
        return changed

    def _touch(self, each: op.Touch) -> int:
        touched = 0
        for node_id in dict.fromkeys(each.ids):
            row = self._owned(each.scope, node_id)
            if row is not None:
                self._put(self._rows, node_id, replace(row, node=rules.touched(row.node, each)))
                touched += 1
        return touched

    def _delete_nodes(self, each: op.DeleteNodes) -> int:
        rows = [self._owned(each.scope, node_id) for node_id in dict.fromkeys(each.ids)]
        found = [row for row in rows if row is not None]
        for row in found:
            self._remove(row)
        return len(found)

    def _delete_edges(self, each: op.DeleteEdges) -> int:
        owned = [
            edge_id
            for edge_id in dict.fromkeys(each.ids)
            if edge_id in self._edges and self._edges[edge_id].scope == each.scope
        ]
        return sum(self._remove_edge(edge_id) for edge_id in owned)

    def _get_history(self, each: op.History) -> tuple[op.Change, ...]:
        row = self._visible_row(each.scope, each.id)
        return self._history.get(each.id, ()) if row is not None else ()

    def _log(self, each: op.Log) -> int:
        for entry in each.changes:
            if self._owned(each.scope, entry.node.id) is None:
                raise NotFound(f"{each.scope.path} owns no node {entry.node.id!r} to write history for")
            check_text(entry.reason, "a change's reason")
            entry = replace(entry, node=replace(entry.node, embedding=None))
            held = self._history.get(entry.node.id, ())
            self._put(self._history, entry.node.id, (*held, entry))
        return len(each.changes)

    def _claim_due(self, each: op.ClaimDue) -> tuple[MemoryNode, ...]:
        owned = [self._rows[node_id].node for node_id in self._owners.get(each.scope, ())]
        due = [
            node
            for node in owned
            if rules.fires(node, each.at, each.event) and self._claims.get(node.id, each.at) <= each.at
        ]
        due.sort(key=lambda node: (node.properties.get("due_at", ""), node.id))
        for node in due[: each.limit]:
            self._put(self._claims, node.id, each.at + timedelta(seconds=each.lease_seconds))
        return tuple(due[: each.limit])

    def _ack_due(self, each: op.AckDue) -> bool:
        row = self._owned(each.scope, each.id)
        reminder = rules.reminder_of(row.node) if row is not None else None
        if row is None or reminder is None or not rules.same_occurrence(reminder, each.occurrence):
            return False
        self._drop(self._claims, each.id)
        self._write(rules.settled(row.whole(), each.until))
        return True

    def _erase(self, each: op.Erase) -> dict[str, Any]:
        rows = [self._rows[node_id] for owner in self._below(each.scope) for node_id in self._owners[owner]]
        edges = [edge.id for edge in self._edges.values() if each.scope.contains(edge.scope)]
        states = [key for key in self._states if each.scope.contains(key[0])]
        leases = [scope for scope in self._leases if each.scope.contains(scope)]
        receipt: dict[str, Any] = {
            "nodes": len(rows),
            "edges": len(edges),
            "history": sum(len(self._history.get(row.node.id, ())) for row in rows),
            "reminders": sum(rules.reminder_of(row.node) is not None for row in rows),
            "vectors": sum(row.vector is not None for row in rows),
            "state": len(states),
            "leases": len(leases),
            "scopes": len(self._below(each.scope)),
            "pending": (),
        }
        for edge_id in edges:
            self._remove_edge(edge_id)
        for row in rows:
            self._remove(row)
        for key in states:
            self._drop(self._states, key)
        for scope in leases:
            self._drop(self._leases, scope)
        mark = rules.tombstone_key(each.scope)
        self._put(self._tombstones, mark, max(each.at, self._tombstones.get(mark, each.at)))
        return receipt

    def _stats(self, each: op.Stats) -> dict[str, Any]:
        owned = [self._rows[node_id] for node_id in self._owners.get(each.scope, ())]
        return {
            "nodes": len(owned),
            "edges": sum(edge.scope == each.scope for edge in self._edges.values()),
            "history": sum(len(self._history.get(row.node.id, ())) for row in owned),
            "embedded": sum(row.vector is not None for row in owned),
            "superseded": sum(row.node.superseded_at is not None for row in owned),
            "visible": sum(1 for _ in self._seen(each.scope)),
            "layers": dict(Counter(str(row.node.layer) for row in owned)),
            "statuses": dict(Counter(str(row.node.status) for row in owned)),
        }

    def _acquire_lease(self, each: op.AcquireLease) -> int | None:
        held = self._leases.get(each.scope)
        if held is not None and held.owner != each.owner and held.until > each.at:
            return None
        token = self._next("token")
        self._put(self._leases, each.scope, Lease(each.owner, token, each.at + timedelta(seconds=each.seconds)))
        return token

    def _renew_lease(self, each: op.RenewLease) -> bool:
        held = self._leases.get(each.scope)
        if held is None or (held.owner, held.token) != (each.owner, each.token) or held.until <= each.at:
            return False
        self._put(self._leases, each.scope, replace(held, until=each.at + timedelta(seconds=each.seconds)))
        return True

    def _release_lease(self, each: op.ReleaseLease) -> bool:
        held = self._leases.get(each.scope)
        if held is None or (held.owner, held.token) != (each.owner, each.token):
            return False
        return self._drop(self._leases, each.scope)

    def _fence(self, each: op.Fence) -> None:
        held = self._leases.get(each.scope)
        if held is None or held.token != each.token:
            raise StaleWriter(f"token {each.token} is not the current one of {each.scope.path}; another worker has it")

    def _get_state(self, each: op.GetState) -> Any:
        held = self._states.get((each.scope, each.key))
        return None if held is None else json.loads(held)

    def _put_state(self, each: op.PutState) -> None:
        if each.value is None:
            self._drop(self._states, (each.scope, each.key))
        else:
            self._put(self._states, (each.scope, each.key), rules.state_text(each.value))

    def _set_embedding(self, each: op.SetEmbedding) -> None:
        space = None if each.model is None else EmbeddingSpace(each.model, each.dimensions)
        self._put(self._meta, "embedding", space)

    def _list_scopes(self, each: op.ListScopes) -> tuple[MemoryScope, ...]:
        found = [
            owner
            for owner, held in self._owners.items()
            if held
            and (each.scope is None or each.scope.contains(owner))
            and (each.after is None or owner.path > each.after)
        ]
        return tuple(sorted(found, key=lambda scope: scope.path)[: each.limit])


def _edge_order(edge: MemoryEdge) -> tuple[float, str]:
    return (-edge.weight, edge.id)


_HANDLERS: dict[type, Callable[[InMemoryStore, Any], Any]] = {
    op.PutNodes: InMemoryStore._put_nodes,
    op.PutEdges: InMemoryStore._put_edges,
    op.GetNodes: InMemoryStore._get_nodes,
    op.GetEdges: InMemoryStore._get_edges,
    op.QueryNodes: InMemoryStore._query_nodes,
    op.QuerySubtree: InMemoryStore._query_subtree,
    op.SearchText: InMemoryStore._search_text,
    op.SearchVector: InMemoryStore._search_vector,
    op.FindCandidates: InMemoryStore._find_candidates,
    op.Adjacent: InMemoryStore._adjacent,
    op.UpdateNodes: InMemoryStore._update_nodes,
    op.Touch: InMemoryStore._touch,
    op.DeleteNodes: InMemoryStore._delete_nodes,
    op.DeleteEdges: InMemoryStore._delete_edges,
    op.History: InMemoryStore._get_history,
    op.Log: InMemoryStore._log,
    op.ClaimDue: InMemoryStore._claim_due,
    op.AckDue: InMemoryStore._ack_due,
    op.Erase: InMemoryStore._erase,
    op.Stats: InMemoryStore._stats,
    op.AcquireLease: InMemoryStore._acquire_lease,
    op.RenewLease: InMemoryStore._renew_lease,
    op.ReleaseLease: InMemoryStore._release_lease,
    op.Fence: InMemoryStore._fence,
    op.GetState: InMemoryStore._get_state,
    op.PutState: InMemoryStore._put_state,
    op.SetEmbedding: InMemoryStore._set_embedding,
    op.ListScopes: InMemoryStore._list_scopes,
}
