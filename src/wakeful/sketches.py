"""What ranking needs of a row without its text: a store that holds it in memory need not read hundreds of rows to give ten.

A ``Sketch`` is a plain tuple by name, since a recall weighs some two hundred of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from wakeful.records import MemoryLayer, MemoryNode, MemoryScope
from wakeful.terms import index_terms
from wakeful.timewords import tells_time

TAIL = 80
"""Characters at the end of a text where a question mark makes it a question."""
QUESTION_MARKS = "?？؟"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Sketch(NamedTuple):
    """A row as ranking sees it."""

    id: str
    scope: MemoryScope
    layer: MemoryLayer
    session: str | None
    speaker: str | None
    asserted: int
    """``asserted_at`` in microseconds since 1970-01-01 UTC."""
    importance: float
    uses: int
    """Accesses and activations."""
    length: int
    """Index terms of label and content, repetitions counted; at least 1."""
    counts: tuple[int, ...]
    """How often they hold each term asked for, in that order."""
    asks: bool
    """The content ends in a question."""
    tells_time: bool
    """The content tells a time."""
    skill: str
    """The label of a skill; of anything else, empty."""
    said: int
    """Equal for rows of one layer and speaker with the same content, but for space around it; 0: a skill, or no content."""
    entry: str | None
    """Id of what a fact was taken from: it and its source say the same."""
    node: MemoryNode | None
    """The row itself, where the store had it at hand; not part of what is compared."""


@dataclass(frozen=True, slots=True)
class Bag:
    """What is read off a text once."""

    terms: Counter[str]
    length: int
    asks: bool
    tells_time: bool


@lru_cache(maxsize=16384)
def bag_of(label: str, content: str) -> Bag:
    """Analyse a text; the same text is the same value."""
    said = index_terms(content)
    terms = [*_label_terms(label), *said] if label else said
    return Bag(Counter(terms), len(terms) or 1, asks(content), tells_time(said))


@lru_cache(maxsize=4096)
def _label_terms(label: str) -> tuple[str, ...]:
    return tuple(index_terms(label))


def asks(content: str) -> bool:
    """Whether a text ends in a question."""
    tail = content[-TAIL:]
    return any(mark in tail for mark in QUESTION_MARKS)


def said_key(layer: MemoryLayer, speaker: str | None, label: str, content: str) -> int:
    """Give ``Sketch.said``."""
    if not content or (label and layer is MemoryLayer.PROCEDURAL):
        return 0
    said = f"{layer}\0{speaker or ''}\0{content.strip()}".encode("utf-8", "replace")
    return int.from_bytes(blake2b(said, digest_size=8).digest(), "big", signed=True) or 1


def micros(moment: datetime) -> int:
    """Give a time in microseconds since 1970-01-01 UTC."""
    return (moment - _EPOCH) // _MICROSECOND


def sketch_of(node: MemoryNode, terms: Sequence[str]) -> Sketch:
    """Sketch a row, counting these terms in it."""
    bag = bag_of(node.label, node.content)
    source, layer = node.source, node.layer
    taken = source.by == "extractor" or layer is MemoryLayer.SEMANTIC
    count = bag.terms.get
    return Sketch(
        id=node.id,
        scope=node.scope,
        layer=layer,
        session=source.session,
        speaker=source.speaker,
        asserted=micros(node.asserted_at),
        importance=node.importance,
        uses=node.access_count + node.activation_count,
        length=bag.length,
        counts=tuple([count(term, 0) for term in terms]),
        asks=bag.asks,
        tells_time=bag.tells_time,
        skill=node.label if layer is MemoryLayer.PROCEDURAL else "",
        said=said_key(layer, source.speaker, node.label, node.content),
        entry=source.entries[0] if taken and source.entries else None,
        node=node,
    )
