"""What a phase is: a name, what it reads and writes, and a flow from a cycle's context to an outcome.

A phase reads through ``Run`` needs and returns operations; it never writes by itself. It touches only rows that the
cycle's scope owns (``Cycle.own`` filters), and it leaves ``updated_at`` and ``accessed_at`` of a tended row alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from wakeful.consolidation.report import Cadence
from wakeful.consolidation.settings import TendingSettings
from wakeful.needs import Flow, run
from wakeful.ops import GetNodes, Visibility
from wakeful.records import MemoryLayer, MemoryNode, MemoryScope

KEPT = "tended"
"""Property under which phases keep their own marks on a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """The context that the phases of a cycle share."""

    scope: MemoryScope
    cadence: Cadence
    started_at: datetime
    since: datetime
    """Start of the cycle before this one of the same cadence, or the start of the window."""
    settings: TendingSettings = field(default_factory=TendingSettings)
    first: bool = False
    """No cycle of this cadence has finished before."""
    recent: tuple[MemoryNode, ...] = ()
    """The window: semantic and episodic nodes updated within the lookback, read once, newest first."""
    model: bool = False
    """Whether a model may be asked (see ``judging``)."""

    def own(self, nodes: Iterable[MemoryNode]) -> list[MemoryNode]:
        """The nodes that the cycle may write: those that its scope owns."""
        return [node for node in nodes if node.scope == self.scope]

    def layer(self, layer: MemoryLayer) -> list[MemoryNode]:
        """The window's own nodes of a layer, newest first."""
        return [node for node in self.recent if node.layer is layer and node.scope == self.scope]

    def fresh(self, node: MemoryNode) -> bool:
        """Whether a node was asserted or edited after the last cycle looked."""
        return self.first or node.updated_at > self.since

    def visible(self, **values: Any) -> Visibility:
        """Visibility at the start of the cycle."""
        return Visibility(at=self.started_at, **values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a phase wants done."""

    batches: tuple[tuple[Any, ...], ...] = ()
    """Operations, one transaction a batch: what must not come apart stands in one."""
    changed: int = 0
    """Rows that the batches write."""
    rows_read: int = 0
    skipped: str | None = None
    """Why the phase did not run; None: it ran."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A named step of a cycle."""

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    run: Callable[[Cycle], Flow[Outcome]]


def seen(nodes: Iterable[MemoryNode]) -> dict[str, datetime]:
    """What compare-and-set compares: the ``updated_at`` that was read, by id. A row that moved on since is left alone."""
    return {node.id: node.updated_at for node in nodes}


def unmoved(cycle: Cycle, nodes: Sequence[MemoryNode]) -> Flow[set[str]]:
    """Ids of the nodes that are as they were read: a model may have taken minutes, and others write meanwhile."""
    (held,) = yield from run(GetNodes(cycle.scope, tuple(node.id for node in nodes)))
    now = {node.id: (node.updated_at, node.status, node.superseded_at) for node in held}
    return {node.id for node in nodes if now.get(node.id) == (node.updated_at, node.status, node.superseded_at)}


TRUST: tuple[Literal["low", "normal", "high"], ...] = ("low", "normal", "high")
"""From text that came from outside to what was vouched for."""


def trusted(node: MemoryNode) -> int:
    """How far a node's source is trusted, as its place in ``TRUST``."""
    return TRUST.index(node.source.trust)


def least_trust(nodes: Iterable[MemoryNode]) -> Literal["low", "normal", "high"]:
    """The trust of what is derived from some nodes: that of the least trusted, and no more than normal."""
    return TRUST[min((trusted(node) for node in nodes), default=1) and 1]


def in_batches(operations: Iterable[Any], size: int) -> tuple[tuple[Any, ...], ...]:
    """Group operations, ``size`` to a transaction."""
    rows = list(operations)
    return tuple(tuple(rows[at : at + size]) for at in range(0, len(rows), size))


def mark_of(node: MemoryNode, name: str) -> Any:
    """A phase's mark on a node, or None."""
    marks = node.properties.get(KEPT)
    return marks.get(name) if isinstance(marks, dict) else None


def marked(node: MemoryNode, name: str, value: Any) -> dict[str, Any]:
    """The node's properties with a phase's mark set."""
    marks = node.properties.get(KEPT)
    return {**node.properties, KEPT: {**(marks if isinstance(marks, dict) else {}), name: value}}
