"""What a cycle did, phase by phase. A phase that found nothing differs from one that did not run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

Cadence: TypeAlias = Literal["quick_nap", "nightly", "deep_sleep"]
CADENCES: tuple[Cadence, ...] = ("quick_nap", "nightly", "deep_sleep")


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseReport:
    """What one phase did."""

    name: str
    status: Literal["ran", "skipped", "failed", "resumed"]
    """``resumed``: an interrupted cycle had finished it, and it was not run again."""
    reason: str = ""
    """Why it was skipped, or what failed."""
    rows_read: int = 0
    changed: int = 0
    """Rows written, and 0 when the phase ran and found nothing."""
    milliseconds: float = 0.0
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    notes: tuple[str, ...] = ()
    """What a person would want to know: what was linked, merged or retired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationReport:
    """What a cycle did."""

    scope: str
    """Path of the scope."""
    cadence: Cadence
    started_at: datetime
    finished_at: datetime | None = None
    dry_run: bool = False
    status: Literal["done", "partial", "busy", "stopped"] = "done"
    """``partial``: a phase failed; ``busy``: another worker has the scope's lease; ``stopped``: the lease was lost or
    the time was up, and what was done until then stands."""
    phases: tuple[PhaseReport, ...] = ()
    operations: tuple[Any, ...] = field(default=(), repr=False)
    """In a dry run: the operations that would have been run, in order."""

    @property
    def changed(self) -> int:
        """Rows written by all phases."""
        return sum(phase.changed for phase in self.phases)

    @property
    def rows_read(self) -> int:
        """Rows read by all phases."""
        return sum(phase.rows_read for phase in self.phases)

    @property
    def errors(self) -> Mapping[str, str]:
        """Reason by name of the phases that failed."""
        return {phase.name: phase.reason for phase in self.phases if phase.status == "failed"}

    def as_dict(self) -> dict[str, Any]:
        """The report as plain JSON data, without operations."""
        data = {name: value for name, value in asdict(self).items() if name != "operations"}
        data["started_at"] = self.started_at.isoformat()
        data["finished_at"] = self.finished_at.isoformat() if self.finished_at else None
        data["changed"] = self.changed
        return data
