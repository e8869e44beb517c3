"""Candidates of a recall, put together from the two searches, for stores that keep no sketches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wakeful import ops as op
from wakeful.records import MemoryNode
from wakeful.sketches import sketch_of


def searches(each: op.FindCandidates) -> tuple[op.SearchText | None, op.SearchVector | None]:
    """The searches by words and by vector that an operation stands for; None: it asks for no such one."""
    words = near = None
    if each.terms:
        words = op.SearchText(scope=each.scope, terms=each.terms, visibility=each.visibility, limit=each.by_words)
    if each.vector is not None:
        near = op.SearchVector(
            scope=each.scope, vector=each.vector, model=each.model, visibility=each.visibility, limit=each.by_meaning
        )
    return words, near


def found(words: Iterable[op.TextHit], near: Iterable[op.TextHit], terms: Sequence[str]) -> tuple[op.Found, ...]:
    """Put together what was found by words and by vector."""
    nodes: dict[str, MemoryNode] = {}
    by_words: dict[str, float] = {}
    by_meaning: dict[str, float] = {}
    for hits, scores in ((words, by_words), (near, by_meaning)):
        for hit in hits:
            nodes[hit.node.id] = hit.node
            scores[hit.node.id] = hit.score
    return tuple(
        op.Found(sketch_of(node, terms), by_words.get(id_), by_meaning.get(id_)) for id_, node in nodes.items()
    )
