"""What a recall gives: hits with reasons, the log of the activation, what was left out; and the why of any node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from wakeful.records import MemoryNode, MemoryScope


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that was recalled."""

    node: MemoryNode
    score: float
    """0 to 1, higher is better, on every store. It is the hit's rank score times how well the best hit fits the query:
    scores of one recall compare exactly, those of several roughly."""
    reasons: tuple[str, ...] = ()
    """Why it came, the weightiest first, with the numbers."""
    parts: tuple[tuple[str, float], ...] = ()
    """The score's parts before scaling, by name."""
    also: tuple[str, ...] = ()
    """Ids of memories that say the same (a fact's source turn, a repetition) and so do not count in k."""


@dataclass(frozen=True, slots=True)
class Spread:
    """One step of activation along an edge."""

    source: str
    target: str
    relation: str
    hop: int
    amount: float
    """Activation that arrived."""
    fan: int
    """Edges among which the source's activation was divided."""


@dataclass(frozen=True, slots=True)
class ActivationLog:
    """Where activation started, how it flowed, what it brought in."""

    seeds: tuple[tuple[str, float], ...] = ()
    """Node ids and their activation at the start."""
    steps: tuple[Spread, ...] = ()
    activation: tuple[tuple[str, float], ...] = ()
    """Every node that was reached, strongest first."""
    brought_in: tuple[str, ...] = ()
    """Ids of hits that would not be there without it."""

    def path_to(self, node_id: str) -> tuple[Spread, ...]:
        """The strongest way from a seed to this node, in order; empty for a seed or a node that was not reached."""
        if node_id in dict(self.seeds):
            return ()
        path: list[Spread] = []
        at, seen = node_id, {node_id}
        while True:
            arriving = [step for step in self.steps if step.target == at and step.source not in seen]
            if not arriving:
                return tuple(path)
            best = max(arriving, key=lambda step: (step.amount, -step.hop, step.source))
            path.insert(0, best)
            if best.hop == 1:
                return tuple(path)
            at = best.source
            seen.add(at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """What was recalled, best first."""

    query: str
    scope: MemoryScope
    hits: tuple[Hit, ...] = ()
    activation_log: ActivationLog = field(default_factory=ActivationLog)
    text: str = ""
    """The hits as text, a line each, within the token budget."""
    left_out: tuple[tuple[str, str], ...] = ()
    """Node ids that the budget left out or cut, and why."""
    candidates: int = 0
    """Rows that were weighed."""
    notes: tuple[str, ...] = ()
    """What the reader should know: no embedder, vectors of another model, nothing to search by."""

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __bool__(self) -> bool:
        return bool(self.hits)

    def __str__(self) -> str:
        return self.text or "\n".join(f"{hit.score:.2f} {hit.node.content or hit.node.label}" for hit in self.hits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a node was or was not recalled."""

    id: str
    recalled: bool
    place: int | None = None
    """1 for the best hit."""
    hit: Hit | None = None
    path: tuple[Spread, ...] = ()
    """The way on which activation came to it."""
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        head = f"{self.id}: recalled at place {self.place}" if self.recalled else f"{self.id}: not recalled"
        return "\n".join((head, *(f"  {reason}" for reason in self.reasons)))
