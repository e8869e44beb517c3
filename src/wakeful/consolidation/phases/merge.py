"""Near-duplicates become one: found through the store's indexes, merged around the oldest, their sources kept behind it.

A pair is one fact only when its numbers, dates, negation and names are the same (``wording.signature``), and its words
are, or its vectors are near. Merging is by star: every copy is compared with the one that stays, never with another copy,
so A~B and B~C do not join A and C. Copies are retired with ``superseded_by``, and their counts and sources are added up.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

from wakeful.consolidation.phase import Cycle, Outcome, Phase
from wakeful.consolidation.wording import folded, overlap, signature, words
from wakeful.needs import Flow, run
from wakeful.ops import Change, GetNodes, Log, SearchVector, UpdateNodes
from wakeful.records import MemoryLayer, MemoryNode

NEAREST = 6
"""Neighbours looked at for each node of the window."""


def same_fact(left: MemoryNode, right: MemoryNode, cosine: float | None, cycle: Cycle) -> bool:
    """Whether two nodes state one fact. ``cosine`` of their vectors; None: not known."""
    if left.layer is not right.layer or left.label != right.label or left.scope != right.scope:
        return False
    if folded(left.content) == folded(right.content):
        return True
    if signature(left.content) != signature(right.content):
        return False
    shared = overlap(words(left.content), words(right.content))
    return shared >= cycle.settings.merge_overlap or (
        cosine is not None and cosine >= cycle.settings.merge_cosine and shared >= 0.5
    )


def merge(cycle: Cycle) -> Flow[Outcome]:
    """Merge near-duplicates of the window's semantic nodes."""
    recent = cycle.layer(MemoryLayer.SEMANTIC)
    near, read = yield from _neighbours(cycle, recent)
    gone: set[str] = set()
    stars: dict[str, list[MemoryNode]] = {}
    heads: dict[str, MemoryNode] = {}
    for node in sorted(recent, key=_age):
        if node.id in gone:
            continue
        for other, cosine in sorted(near[node.id], key=lambda pair: _age(pair[0])):
            if other.id in gone or other.id == node.id or node.id in gone or not same_fact(node, other, cosine, cycle):
                continue
            head, copy = (node, other) if _age(node) <= _age(other) else (other, node)
            if copy.id in stars or copy.pinned:
                continue
            heads[head.id] = head
            stars.setdefault(head.id, []).append(copy)
            gone.add(copy.id)
    batches = tuple(_merged(cycle, heads[key], copies) for key, copies in stars.items())
    return Outcome(batches=_grouped(batches, cycle.settings.batch), changed=len(gone) + len(stars), rows_read=read)


def _neighbours(
    cycle: Cycle, recent: list[MemoryNode]
) -> Flow[tuple[dict[str, list[tuple[MemoryNode, float | None]]], int]]:
    """Candidates of each node: equal wording within the window, and the nearest vectors in the store."""
    near: dict[str, list[tuple[MemoryNode, float | None]]] = defaultdict(list)
    by_words: dict[str, list[MemoryNode]] = defaultdict(list)
    for node in sorted(recent, key=_age):
        by_words[folded(node.content)].append(node)
    for group in by_words.values():
        for copy in group[1:]:
            near[copy.id].append((group[0], None))
    read = len(recent)
    for at in range(0, len(recent), 100):
        ids = tuple(node.id for node in recent[at : at + 100])
        (whole,) = yield from run(GetNodes(cycle.scope, ids, embeddings=True))
        part = [node for node in whole if node.embedding is not None and node.embedding_model is not None]
        found = yield from run(
            *(
                SearchVector(
                    scope=cycle.scope,
                    vector=node.embedding or b"",
                    model=node.embedding_model or "",
                    visibility=cycle.visible(layers=(MemoryLayer.SEMANTIC,)),
                    limit=NEAREST,
                )
                for node in part
            )
        )
        for node, hits in zip(part, found, strict=True):
            read += len(hits)
            near[node.id] += [(hit.node, hit.score) for hit in hits if hit.node.scope == cycle.scope]
    return near, read


def _merged(cycle: Cycle, head: MemoryNode, copies: list[MemoryNode]) -> tuple[Any, ...]:
    """Operations that fold the copies into the head, for one transaction."""
    sources = dict.fromkeys(
        (*head.source.entries, *(entry for copy in copies for entry in (copy.id, *copy.source.entries)))
    )
    changes: dict[str, dict[str, Any]] = {
        head.id: {
            "source": replace(head.source, entries=tuple(sources)),
            "importance": max(head.importance, *(copy.importance for copy in copies)),
            "access_count": head.access_count + sum(copy.access_count for copy in copies),
        }
    }
    log = []
    for copy in copies:
        changes[copy.id] = {"status": "retracted", "superseded_at": cycle.started_at, "superseded_by": head.id}
        log.append(Change(node=copy, action="merge", reason=f"the same as {head.id}", at=cycle.started_at))
    return UpdateNodes(scope=cycle.scope, changes=changes), Log(cycle.scope, tuple(log))


def _grouped(batches: tuple[tuple[Any, ...], ...], size: int) -> tuple[tuple[Any, ...], ...]:
    """Join merges into transactions of about ``size`` operations; one merge never comes apart."""
    grouped: list[tuple[Any, ...]] = []
    current: tuple[Any, ...] = ()
    for batch in batches:
        current += batch
        if len(current) >= size:
            grouped.append(current)
            current = ()
    return (*grouped, current) if current else tuple(grouped)


def _age(node: MemoryNode) -> tuple[Any, str]:
    return node.asserted_at, node.id


MERGE = Phase(
    name="merge", reads=("content", "embedding"), writes=("status", "superseded_by", "source", "history"), run=merge
)
