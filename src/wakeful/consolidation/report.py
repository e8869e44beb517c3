"""What a cycle did, phase by phase. A phase that found nothing differs from one that did not run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

Cadence: TypeAlias = Literal["quick_nap", "nightly", "deep_sleep"]
CADENCES: tuple[Cadence, ...] = ("quick_nap", "nightly", "deep_sleep")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What was spent on one model."""

    model: str
    """The id that the replies gave; ``unknown`` for calls that failed before any reply."""
    calls: int = 0
    """Failed ones included."""
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Input tokens that the provider read from its cache."""
    estimated: bool = False
    """Some calls came back without their usage: four characters were counted as a token."""
    cost: float | None = 0.0
    """US dollars at list prices; None: the catalogue knows no price of the model."""

    def plus(self, other: Spending) -> Spending:
        """Add the spending on the same model."""
        costs = (self.cost, other.cost)
        return Spending(
            model=self.model,
            calls=self.calls + other.calls,
            failed=self.failed + other.failed,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            estimated=self.estimated or other.estimated,
            cost=None if None in costs else sum(cost or 0.0 for cost in costs),
        )


def summed(spent: Iterable[Spending]) -> tuple[Spending, ...]:
    """Add up what was spent, model by model, in the order in which they were first asked."""
    by_model: dict[str, Spending] = {}
    for each in spent:
        held = by_model.get(each.model)
        by_model[each.model] = each if held is None else held.plus(each)
    return tuple(by_model.values())


def cost_of(spent: Iterable[Spending]) -> float | None:
    """US dollars of all; None when the price of one is not known."""
    costs = [each.cost for each in spent]
    return None if None in costs else sum(cost or 0.0 for cost in costs)


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
    spending: tuple[Spending, ...] = ()
    """What was spent on models, one entry a model; empty: none was asked."""
    notes: tuple[str, ...] = ()
    """What a person would want to know: what was linked, merged or retired, and what a model was not asked for."""

    @property
    def model_calls(self) -> int:
        """Model calls, failed ones included."""
        return sum(each.calls for each in self.spending)

    @property
    def cost(self) -> float | None:
        """US dollars at list prices; None when a price is not known."""
        return cost_of(self.spending)


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
    notes: tuple[str, ...] = ()
    """What a person would want to know of the cycle as a whole."""
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

    @property
    def spending(self) -> tuple[Spending, ...]:
        """What all phases spent on models, one entry a model."""
        return summed(each for phase in self.phases for each in phase.spending)

    @property
    def cost(self) -> float | None:
        """US dollars at list prices, 0 when no model was asked; None when a price is not known."""
        return cost_of(self.spending)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain JSON data, without operations."""
        data = {name: value for name, value in asdict(self).items() if name != "operations"}
        data["started_at"] = self.started_at.isoformat()
        data["finished_at"] = self.finished_at.isoformat() if self.finished_at else None
        data["changed"] = self.changed
        data["spending"] = [asdict(each) for each in self.spending]
        data["cost"] = self.cost
        return data
