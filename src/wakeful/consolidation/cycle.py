"""Run a cycle: take the scope's lease, run its phases one after another, and report.

Rules of the file:

- A batch of operations is one transaction that also carries the fence (a worker that lost the lease changes nothing),
  and the last one the checkpoint (a killed cycle goes on behind its last finished phase, with the same clock).
- A model is asked and a vector made only while a phase decides, never inside a transaction.
- A phase that fails is recorded, and the others run; nothing of it is half-done, since its operations were not run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from wakeful.consolidation.phase import Cycle, Outcome, Phase
from wakeful.consolidation.report import Cadence, ConsolidationReport, PhaseReport
from wakeful.consolidation.settings import TendingSettings
from wakeful.consolidation.window import recent_nodes
from wakeful.errors import StaleWriter
from wakeful.needs import Flow, now, run
from wakeful.ops import AcquireLease, Fence, GetState, PutState, ReleaseLease, RenewLease
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


def state_key(cadence: Cadence) -> str:
    """Key of a scope's state under which a cadence keeps its checkpoint."""
    return f"cycle:{cadence}"


def cycle(job: Run) -> Flow[ConsolidationReport]:
    """Run one cycle. Never raises for a phase that fails; the report says so."""
    clock = job.at if job.at is not None else (yield from now())
    if job.dry_run:
        (state,) = yield from run(GetState(job.scope, state_key(job.cadence)))
        return (yield from _phases(job, clock, state or {}, None))
    lease = AcquireLease(scope=job.scope, owner=job.owner, at=(yield from now()), seconds=job.settings.lease_seconds)
    token, state = yield from run(lease, GetState(job.scope, state_key(job.cadence)))
    if token is None:
        return ConsolidationReport(scope=job.scope.path, cadence=job.cadence, started_at=clock, status="busy")
    release = ReleaseLease(scope=job.scope, owner=job.owner, token=token)
    try:
        report = yield from _phases(job, clock, state or {}, token)
    except Exception:
        yield from run(release)
        raise
    yield from run(release)
    return report


def _phases(job: Run, clock: datetime, state: dict[str, Any], token: int | None) -> Flow[ConsolidationReport]:
    unfinished = state.get("started_at") if token is not None else None
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
        model=job.model,
    )
    recent = yield from recent_nodes(
        job.scope,
        started_at,
        lookback_hours=job.settings.lookback_hours,
        limit=job.settings.window_limit,
        owned_only=True,
    )
    context = replace(context, recent=recent)
    began = yield from now()
    reports: list[PhaseReport] = []
    operations: list[Any] = []
    status = "done"
    for phase in job.roster:
        if phase.name in done:
            reports.append(PhaseReport(name=phase.name, status="resumed", reason="finished before the interruption"))
            continue
        before = yield from now()
        if (before - began).total_seconds() > job.settings.most_seconds:
            status = "stopped"
            reports.append(PhaseReport(name=phase.name, status="skipped", reason="the cycle's time is up"))
            continue
        try:
            outcome = yield from phase.run(context)
            if token is None:
                operations += [operation for batch in outcome.batches for operation in batch]
            else:
                done = [*done, phase.name]
                yield from _write(job, token, outcome, {**state, "started_at": started_at.isoformat(), "done": done})
        except StaleWriter as error:
            reports.append(PhaseReport(name=phase.name, status="failed", reason=str(error)))
            status = "stopped"
            break
        except Exception as error:  # a phase must not stop the others; the report carries it
            done = [name for name in done if name != phase.name]
            reports.append(PhaseReport(name=phase.name, status="failed", reason=f"{type(error).__name__}: {error}"))
            status = "partial"
            continue
        after = yield from now()
        reports.append(_report(phase, outcome, (after - before).total_seconds() * 1_000))
    if token is not None and status in ("done", "partial"):
        yield from run(
            Fence(job.scope, token),
            PutState(job.scope, state_key(job.cadence), {"finished_at": started_at.isoformat()}),
        )
    return ConsolidationReport(
        scope=job.scope.path,
        cadence=job.cadence,
        started_at=started_at,
        finished_at=(yield from now()),
        dry_run=job.dry_run,
        status=status,  # type: ignore[arg-type]  # one of the literals above
        phases=tuple(reports),
        operations=tuple(operations),
    )


def _write(job: Run, token: int, outcome: Outcome, checkpoint: dict[str, Any]) -> Flow[None]:
    """Run the batches; the last one carries the checkpoint."""
    fence = Fence(job.scope, token)
    batches = list(outcome.batches) or [()]
    for number, batch in enumerate(batches):
        last = (PutState(job.scope, state_key(job.cadence), checkpoint),) if number == len(batches) - 1 else ()
        yield from run(fence, *batch, *last)
    moment = yield from now()
    renew = RenewLease(scope=job.scope, owner=job.owner, token=token, at=moment, seconds=job.settings.lease_seconds)
    (held,) = yield from run(renew)
    if not held:
        raise StaleWriter("the scope's lease was lost; what was written until now stands")


def _report(phase: Phase, outcome: Outcome, milliseconds: float) -> PhaseReport:
    return PhaseReport(
        name=phase.name,
        status="skipped" if outcome.skipped is not None else "ran",
        reason=outcome.skipped or "",
        rows_read=outcome.rows_read,
        changed=outcome.changed,
        milliseconds=milliseconds,
        model_calls=outcome.model_calls,
        input_tokens=outcome.usage.input_tokens,
        output_tokens=outcome.usage.output_tokens,
        notes=outcome.notes,
    )
