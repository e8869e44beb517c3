"""Near-duplicates become one: found through the store's indexes, merged around the oldest, their sources kept behind it.

A pair is one fact when its numbers, dates, negation and names are the same (``wording.signature``), and so are its words
but for case, punctuation and fillers (``wording.gist``). Of a pair that is near in words or meaning a model may be asked;
without an answer both stay, since one other word makes another fact. Merging is by star: every copy is compared with the
one that stays, never with another copy, so A~B and B~C do not join A and C. Copies are retired with ``superseded_by``, and
their counts, sources and links are the head's from then on.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

from wakeful.consolidation.judging import rulings
from wakeful.consolidation.links import inherited
from wakeful.consolidation.phase import TRUST, Cycle, Outcome, Phase, seen, trusted, unmoved
from wakeful.consolidation.phases.supersede import claim
from wakeful.consolidation.wording import folded, gist, overlap, signature, words
from wakeful.needs import Flow, run
from wakeful.ops import Change, GetNodes, Log, PutEdges, SearchText, SearchVector, UpdateNodes
from wakeful.records import MemoryEdge, MemoryLayer, MemoryNode
from wakeful.terms import query_terms

NEAREST = 6
"""Neighbours looked at for each node of the window."""
MOST_BY_WORDS = 300
"""Newest nodes of the window for which a model's candidates are looked up by words, where they have no vector."""
MOST_PAIRS = 60
"""Pairs that are judged in a cycle."""
SYSTEM = (
    'You keep the facts of a memory free of duplicates. Rule for each pair: "same" when both statements say the very '
    'same of the same thing, so that nothing is lost when one of them goes; "both" when one says anything that the other '
    'does not, or when you can\'t tell. Give "rulings"; each has "pair", "verdict" and a short "reason".'
)
"""System prompt of the judge. ``both`` is what stands without a judge, so doubt merges nothing."""


def comparable(left: MemoryNode, right: MemoryNode) -> bool:
    """Whether two nodes may state one fact at all: of one kind and owner, and without rival claims."""
    if (left.layer, left.label, left.scope) != (right.layer, right.label, right.scope):
        return False
    mine, theirs = claim(left), claim(right)
    return mine is None or theirs is None or (mine.key, mine.value) == (theirs.key, theirs.value)


def same_fact(left: MemoryNode, right: MemoryNode) -> bool:
    """Whether two nodes state one fact in the same words, but for case, punctuation and fillers."""
    if not comparable(left, right) or gist(left.content) != gist(right.content):
        return False
    return folded(left.content) == folded(right.content) or signature(left.content) == signature(right.content)


def doubtful(left: MemoryNode, right: MemoryNode, cosine: float | None, cycle: Cycle) -> bool:
    """Whether two nodes are near enough to ask a model. ``cosine`` of their vectors; None: not known."""
    if not comparable(left, right) or signature(left.content) != signature(right.content):
        return False
    near = cosine is not None and cosine >= cycle.settings.merge_cosine
    return near or overlap(words(left.content), words(right.content)) >= cycle.settings.merge_overlap


def merge(cycle: Cycle) -> Flow[Outcome]:
    """Merge near-duplicates of the window's semantic nodes."""
    recent = cycle.layer(MemoryLayer.SEMANTIC)
    near, read = yield from _neighbours(cycle, recent)
    stars = Stars()
    doubts: dict[tuple[str, str], tuple[MemoryNode, MemoryNode]] = {}
    for node in sorted(recent, key=_age):
        for other, cosine in sorted(near[node.id], key=lambda pair: _age(pair[0])):
            head, copy = (node, other) if _age(node) <= _age(other) else (other, node)
            if head.id == copy.id or not stars.may_join(head, copy):
                continue
            if same_fact(head, copy):
                stars.join(head, copy)
            elif cycle.model and (cycle.fresh(head) or cycle.fresh(copy)) and doubtful(head, copy, cosine, cycle):
                doubts[head.id, copy.id] = head, copy
    pairs = [pair for pair in doubts.values() if stars.may_join(*pair)]
    ruled, notes = yield from rulings(cycle, pairs[:MOST_PAIRS], system=SYSTEM, verdicts=("same", "both"))
    if ruled:
        still = yield from unmoved(cycle, [node for pair in pairs for node in pair])
        for at, ruling in sorted(ruled.items()):
            head, copy = pairs[at]
            if ruling.verdict == "same" and {head.id, copy.id} <= still and stars.may_join(head, copy):
                stars.join(head, copy, ruling.reason)
    notes = (*(f"judged: {reason}" for reason in stars.reasons.values()), *notes)
    if len(pairs) > MOST_PAIRS:
        notes = (*notes, f"{len(pairs) - MOST_PAIRS} pairs not judged: a cycle judges {MOST_PAIRS}")
    heirs = {key: [copy.id for copy in copies] for key, copies in stars.copies.items()}
    links = yield from inherited(cycle, heirs)
    batches = tuple(
        _merged(cycle, stars.heads[key], copies, stars.reasons, links.get(key, ()))
        for key, copies in stars.copies.items()
    )
    return Outcome(
        batches=_grouped(batches, cycle.settings.batch),
        changed=len(stars.gone) + len(stars.copies),
        rows_read=read,
        notes=notes,
    )


@dataclass(slots=True)
class Stars:
    """Who is merged into whom: a head is no copy, and a copy is no head."""

    heads: dict[str, MemoryNode] = field(default_factory=dict)
    copies: dict[str, list[MemoryNode]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    reasons: dict[str, str] = field(default_factory=dict)
    """By copy: why a model took it for the same."""

    def may_join(self, head: MemoryNode, copy: MemoryNode) -> bool:
        """Whether the copy may go behind the head."""
        return not (head.id in self.gone or copy.id in self.gone or copy.id in self.copies or copy.pinned)

    def join(self, head: MemoryNode, copy: MemoryNode, reason: str = "") -> None:
        """Put the copy behind the head."""
        self.heads[head.id] = head
        self.copies.setdefault(head.id, []).append(copy)
        self.gone.add(copy.id)
        if reason:
            self.reasons[copy.id] = reason


def _neighbours(
    cycle: Cycle, recent: list[MemoryNode]
) -> Flow[tuple[dict[str, list[tuple[MemoryNode, float | None]]], int]]:
    """Candidates of each node: equal wording within the window, and the nearest vectors in the store."""
    near: dict[str, list[tuple[MemoryNode, float | None]]] = defaultdict(list)
    by_words: dict[tuple[str, ...], list[MemoryNode]] = defaultdict(list)
    for node in sorted(recent, key=_age):
        by_words[gist(node.content)].append(node)
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
        embedded = {node.id for node in part}
        wordy = [node for node in recent[at : at + 100] if node.id not in embedded and cycle.fresh(node)]
        if cycle.model and at < MOST_BY_WORDS:
            read += yield from _by_words(cycle, wordy, near)
    return near, read


def _by_words(
    cycle: Cycle, nodes: list[MemoryNode], near: dict[str, list[tuple[MemoryNode, float | None]]]
) -> Flow[int]:
    """Candidates of nodes without a vector: those that share their words, for a model to judge."""
    found = yield from run(
        *(
            SearchText(
                scope=cycle.scope,
                terms=tuple(query_terms(node.content)[:32]),
                visibility=cycle.visible(layers=(MemoryLayer.SEMANTIC,)),
                limit=NEAREST,
            )
            for node in nodes
        )
    )
    for node, hits in zip(nodes, found, strict=True):
        near[node.id] += [(hit.node, None) for hit in hits if hit.node.scope == cycle.scope]
    return sum(len(hits) for hits in found)


def _merged(
    cycle: Cycle,
    head: MemoryNode,
    copies: list[MemoryNode],
    reasons: dict[str, str],
    links: tuple[MemoryEdge, ...],
) -> tuple[Any, ...]:
    """Operations that fold the copies into the head, for one transaction."""
    sources = dict.fromkeys(
        (*head.source.entries, *(entry for copy in copies for entry in (copy.id, *copy.source.entries)))
    )
    said = sum(_times_said(node) for node in (head, *copies))
    trust = TRUST[max(trusted(node) for node in (head, *copies))]
    changes: dict[str, dict[str, Any]] = {
        head.id: {
            "source": replace(head.source, entries=tuple(sources), trust=trust),
            "properties": {**head.properties, "times_said": said},
            "importance": max(head.importance, *(copy.importance for copy in copies)),
            "access_count": head.access_count + sum(copy.access_count for copy in copies),
        }
    }
    log = []
    for copy in copies:
        changes[copy.id] = {"status": "retracted", "superseded_at": cycle.started_at, "superseded_by": head.id}
        reason = f"{'judged to be ' if copy.id in reasons else ''}the same as {head.id}"
        log.append(Change(node=copy, action="merge", reason=reason, at=cycle.started_at))
    update = UpdateNodes(scope=cycle.scope, changes=changes, expected=seen((head, *copies)))
    handed_on = (PutEdges(cycle.scope, links),) if links else ()
    return update, Log(cycle.scope, tuple(log)), *handed_on


def _times_said(node: MemoryNode) -> int:
    said = node.properties.get("times_said", 1)
    return said if isinstance(said, int) else 1


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
