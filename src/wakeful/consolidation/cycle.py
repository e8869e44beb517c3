"""Run a cycle: take the scope's lease, run its phases one after another, and report.

Rules of the file:

- A batch of operations is one transaction that also carries the fence (a worker that lost the lease changes nothing),
  and the last one the checkpoint (a killed cycle goes on behind its last finished phase, with the same clock).
- A model is asked only while a phase decides, never inside a transaction; ``attend`` bounds and counts its calls. Light
  cycles ask none.
- The lease is prolonged while a phase works, between its batches, and before each model call.
- A phase that fails is recorded, and the others run; nothing of it is half-done, since its operations were not run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from wakeful.consolidation.attend import Attendant, Lease, PriceOf
from wakeful.consolidation.phase import Cycle, Outcome, Phase
from wakeful.consolidation.report import Cadence, ConsolidationReport, PhaseReport, Spending
from wakeful.consolidation.settings import TendingSettings
from wakeful.consolidation.window import recent_nodes
from wakeful.errors import StaleWriter
from wakeful.needs import Flow, now, run
from wakeful.ops import AcquireLease, Fence, GetState, PutState, ReleaseLease
from wakeful.records import MemoryScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One cycle to be run."""

    scope: MemoryScope
    cadence: Cadence
    owner: str
    """Name of the worker, unique among those that are alive."""
    roster: Sequence[Phase]
    settings: TendingSettings = field(default_factory=TendingSettings)
    at: datetime | None = None
    """The cycle's clock; None: the real one."""
    dry_run: bool = False
    model: bool = False
    """Whether a model may be asked; ``quick_nap`` asks none all the same."""
    prices: PriceOf | None = None
    """Prices of models, for the report."""


def state_key(cadence: Cadence) -> str:
    """Key of a scope's state under which a cadence keeps its checkpoint."""
    return f"cycle:{cadence}"


def cycle(job: Run) -> Flow[ConsolidationReport]:
    """Run one cycle. Never raises for a phase that fails; the report says so."""
    clock = job.at if job.at is not None else (yield from now())
    if job.dry_run:
        (state,) = yield from run(GetState(job.scope, state_key(job.cadence)))
        return (yield from _phases(job, clock, state or {}, None))
    moment, seconds = (yield from now()), job.settings.lease_seconds
    acquire = AcquireLease(scope=job.scope, owner=job.owner, at=moment, seconds=seconds)
    token, state = yield from run(acquire, GetState(job.scope, state_key(job.cadence)))
    if token is None:
        return ConsolidationReport(scope=job.scope.path, cadence=job.cadence, started_at=clock, status="busy")
    lease = Lease(scope=job.scope, owner=job.owner, token=token, seconds=seconds, renewed=moment)
    release = ReleaseLease(scope=job.scope, owner=job.owner, token=token)
    try:
        report = yield from _phases(job, clock, state or {}, lease)
    except Exception:
        yield from run(release)
        raise
    yield from run(release)
    return report


def _phases(job: Run, clock: datetime, state: dict[str, Any], lease: Lease | None) -> Flow[ConsolidationReport]:
    unfinished = state.get("started_at") if lease is not None else None
    started_at = datetime.fromisoformat(unfinished) if unfinished else clock
    done: list[str] = list(state.get("done", ())) if unfinished else []
    last = state.get("finished_at")
    since = datetime.fromisoformat(last) if last else started_at - timedelta(hours=job.settings.lookback_hours)
    context = Cycle(
        scope=job.scope,
        cadence=job.cadence,
        started_at=started_at,
        since=since,
        first=last is None,
        settings=job.settings,
        model=job.model and job.cadence != "quick_nap",
    )
    recent = yield from recent_nodes(
        job.scope,
        started_at,
        lookback_hours=job.settings.lookback_hours,
        since=since,
        limit=job.settings.window_limit,
        owned_only=True,
    )
    context = replace(context, recent=recent)
    began = yield from now()
    until = began + timedelta(seconds=job.settings.most_seconds)
    attendant = Attendant(settings=job.settings, until=until, lease=lease, prices=job.prices)
    reports: list[PhaseReport] = []
    operations: list[Any] = []
    status = "done"
    for phase in job.roster:
        if phase.name in done:
            reports.append(PhaseReport(name=phase.name, status="resumed", reason="finished before the interruption"))
            continue
        before = yield from now()
        if before > until:
            status = "stopped"
            reports.append(PhaseReport(name=phase.name, status="skipped", reason="the cycle's time is up"))
            continue
        try:
            outcome = yield from attendant.attend(phase.run(context))
            if lease is None:
                operations += [operation for batch in outcome.batches for operation in batch]
            else:
                done = [*done, phase.name]
                yield from _write(job, lease, outcome, {**state, "started_at": started_at.isoformat(), "done": done})
        except StaleWriter as error:
            spent = attendant.take()
            reports.append(PhaseReport(name=phase.name, status="failed", reason=str(error), spending=spent))
            status = "stopped"
            break
        except Exception as error:  # a phase must not stop the others; the report carries it
            done = [name for name in done if name != phase.name]
            reason, spent = f"{type(error).__name__}: {error}", attendant.take()
            reports.append(PhaseReport(name=phase.name, status="failed", reason=reason, spending=spent))
            status = "partial"
            continue
        after = yield from now()
        reports.append(_report(phase, outcome, (after - before).total_seconds() * 1_000, attendant.take()))
    if lease is not None and status in ("done", "partial"):
        yield from run(
            Fence(job.scope, lease.token),
            PutState(job.scope, state_key(job.cadence), {"finished_at": started_at.isoformat()}),
        )
    return ConsolidationReport(
        scope=job.scope.path,
        cadence=job.cadence,
        started_at=started_at,
        finished_at=(yield from now()),
        dry_run=job.dry_run,
        notes=_window_notes(recent, job.settings.window_limit),
        status=status,  # type: ignore[arg-type]  # one of the literals above
        phases=tuple(reports),
        operations=tuple(operations),
    )


def _window_notes(recent: Sequence[Any], limit: int) -> tuple[str, ...]:
    """Say when not all that is recent was looked at."""
    if len(recent) < limit:
        return ()
    return (f"the window holds the newest {limit:,} rows; what was written before them was left out",)


def _write(job: Run, lease: Lease, outcome: Outcome, checkpoint: dict[str, Any]) -> Flow[None]:
    """Run the batches; the last one carries the checkpoint."""
    fence = Fence(job.scope, lease.token)
    batches = list(outcome.batches) or [()]
    for number, batch in enumerate(batches):
        last = (PutState(job.scope, state_key(job.cadence), checkpoint),) if number == len(batches) - 1 else ()
        yield from lease.keep(least=job.settings.lease_seconds / 2)
        yield from run(fence, *batch, *last)


def _report(phase: Phase, outcome: Outcome, milliseconds: float, spent: tuple[Spending, ...]) -> PhaseReport:
    return PhaseReport(
        name=phase.name,
        status="skipped" if outcome.skipped is not None else "ran",
        reason=outcome.skipped or "",
        rows_read=outcome.rows_read,
        changed=outcome.changed,
        milliseconds=milliseconds,
        spending=spent,
        notes=outcome.notes,
    )
