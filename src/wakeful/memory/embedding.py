"""Give rows their vectors: only those that need one, in one call, and none when the embedder fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wakeful.needs import Flow, embed
from wakeful.records import MemoryLayer, MemoryNode, with_vector


@dataclass(frozen=True, slots=True)
class Space:
    """The embedding in use."""

    model: str | None = None
    """Id of the model; None: rows are stored without vectors."""


EMBEDDED = frozenset((MemoryLayer.SEMANTIC, MemoryLayer.EPISODIC, MemoryLayer.PROCEDURAL))
"""Layers that are searched by meaning; working scratch and reminders are found by words."""


def text_of(node: MemoryNode) -> str:
    """The text that is embedded for a node: who speaks, or the label, and the content."""
    speaker = node.source.speaker
    if speaker is not None:
        return f"{speaker}: {node.content}"
    return f"{node.label}: {node.content}" if node.label and node.content else node.content or node.label


def embedded(nodes: Sequence[MemoryNode], space: Space) -> Flow[list[MemoryNode]]:
    """Give the nodes with vectors of the model in use. One that has such a vector keeps it."""
    if space.model is None:
        return list(nodes)
    needing = [
        node for node in nodes if node.embedding_model != space.model and node.layer in EMBEDDED and text_of(node)
    ]
    vectors = yield from embed(tuple(text_of(node) for node in needing))
    made = dict(zip((id(node) for node in needing), vectors, strict=True))
    return [with_vector(node, made[id(node)], space.model) if id(node) in made else node for node in nodes]
