"""Turns like those of people who talk, generated: the same for the same seed, with vectors of the light embedder.

Words follow the law of Zipf and Mandelbrot over 30,000 invented ones, 8 to 24 a turn, so that the commonest word stands
in a quarter of the turns. A query is 3 to 6 words of one turn.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from wakeful import ops as op
from wakeful.models.embed import StaticEmbedder
from wakeful.records import MemoryLayer, MemoryNode, MemoryScope, Source

START = datetime(2026, 1, 1, tzinfo=UTC)
VISIBLE = op.Visibility(at=START + timedelta(days=3650))
_SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er")]


class Turns:
    """Make turns and queries."""

    def __init__(self, seed: int = 1) -> None:
        self.rng = random.Random(seed)
        words = random.Random(5)
        made = ("".join(words.choices(_SYLLABLES, k=words.randint(2, 4))) for _ in itertools.count())
        self.words = list(dict.fromkeys(itertools.islice(made, 60_000)))[:30_000]
        self.weights = list(itertools.accumulate(1 / (rank + 5) for rank in range(1, len(self.words) + 1)))

    def text(self) -> str:
        """One turn."""
        return " ".join(self.rng.choices(self.words, cum_weights=self.weights, k=self.rng.randint(8, 24)))

    def query(self, text: str) -> str:
        """Some words of a turn."""
        words = text.split()
        return " ".join(self.rng.sample(words, min(len(words), self.rng.randint(3, 6))))


def nodes(scope: MemoryScope, texts: Sequence[str], embedder: StaticEmbedder, first: int = 0) -> tuple[MemoryNode, ...]:
    """Make nodes of turns as ``remember`` makes them: episodes of sessions of 50, a minute apart, with vectors."""
    vectors = embedder.embed(tuple(texts), "document")
    return tuple(
        MemoryNode.new(
            scope=scope,
            layer=MemoryLayer.EPISODIC,
            content=text,
            at=START + timedelta(minutes=number),
            embedding=vector,
            embedding_model=embedder.model_id,
            source=Source(session=f"s{number // 50}", ref=f"D{number}", speaker="Ana"),
        )
        for number, (text, vector) in enumerate(zip(texts, vectors, strict=True), first)
    )


def batches(count: int, size: int) -> Iterator[tuple[int, int]]:
    """Where each batch begins, and its size."""
    for first in range(0, count, size):
        yield first, min(size, count - first)
