"""``wakeful nap``, ``wakeful schedule`` and ``wakeful worker``: tend memory between turns."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from wakeful.cli.chart import bar, table
from wakeful.cli.opening import add_place, must_exist, place, scope_of, whole

if TYPE_CHECKING:
    from wakeful.consolidation.report import ConsolidationReport, Spending

CADENCES = ("quick_nap", "nightly", "deep_sleep")
MODEL = "anthropic/MODEL, openai/MODEL, or local:FILE.gguf; asked by nightly and deep_sleep (default: none is asked)"
NOTES = 8
"""Notes of a phase that are shown."""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    nap = commands.add_parser("nap", help="tend the memory of a scope, or of every scope that is due")
    add_place(nap)
    _add_cadence(nap)
    nap.add_argument("--all", action="store_true", help="every scope that is due (at or below --scope), longest first")
    nap.add_argument("--dry-run", action="store_true", help="report what would be done and change nothing")
    nap.add_argument("--model", metavar="M", help=MODEL)
    nap.add_argument("--calls", type=whole, metavar="N", help="most calls of the model in a cycle (50)")
    nap.add_argument("--json", action="store_true", help="print one report a line as JSON")
    nap.set_defaults(run=run_nap)

    schedule = commands.add_parser("schedule", help="list the scopes that are due, or give them to the workers")
    add_place(schedule, scope=False)
    _add_cadence(schedule)
    schedule.add_argument("--enqueue", action="store_true", help="give each a job on the queue (PostgreSQL)")
    schedule.add_argument("--json", action="store_true", help="print as JSON")
    schedule.set_defaults(run=run_schedule)

    worker = commands.add_parser("worker", help="work on naps of a PostgreSQL store, beside other workers")
    add_place(worker, scope=False)
    worker.add_argument("--concurrency", type=whole, default=4, metavar="N", help="naps at the same time (default: 4)")
    worker.add_argument("--model", metavar="M", help=MODEL)
    worker.add_argument("--once", action="store_true", help="stop when no job is left")
    worker.set_defaults(run=run_worker)


def _add_cadence(command: argparse.ArgumentParser) -> None:
    command.add_argument("--cadence", choices=CADENCES, default="quick_nap", help="default: quick_nap")


def _model(arguments: argparse.Namespace) -> Any:
    """The model that was named, as a chat model; None when none was: a key in the environment alone spends nothing."""
    if arguments.model is None:
        return None
    from wakeful.cli.chat import model_of
    from wakeful.models.choose import coerce_model

    return coerce_model(model_of(arguments.model))


def run_nap(arguments: argparse.Namespace) -> int:
    """Tend, and print a report; exit code 1 when a cycle did not finish."""
    from wakeful.consolidation.settings import TendingSettings
    from wakeful.engine.worker import Tender
    from wakeful.stores import open_store

    scope = None if arguments.all and arguments.scope is None else scope_of(arguments)
    settings = TendingSettings(model_calls=arguments.calls) if arguments.calls is not None else None
    must_exist(place(arguments))
    model = _model(arguments)
    store = open_store(place(arguments))
    try:
        tender = Tender(store, settings=settings, model=model)
        if arguments.all:
            return _nap_all(tender, arguments, scope)
        assert scope is not None
        with progress() as show:
            report = tender.tend(
                scope,
                arguments.cadence,
                dry_run=arguments.dry_run,
                watch=lambda name, done, total: show(done / total, f"{done + 1} of {total}: {name}"),
            )
        _show(report, arguments.json)
        return 0 if report.status == "done" else 1
    finally:
        store.close()


def _nap_all(tender: Any, arguments: argparse.Namespace, root: Any) -> int:
    """Tend every scope that is due, with a line each and a sum."""
    began, changed = time.monotonic(), 0
    counts: dict[str, int] = {}
    spent: list[Spending] = []
    with progress() as show:
        for left, report in tender.tend_due(arguments.cadence, root=root, dry_run=arguments.dry_run):
            show.clear()
            _show(report, arguments.json, short=True)
            counts[report.status] = counts.get(report.status, 0) + 1
            changed += report.changed
            spent += report.spending
            done = sum(counts.values())
            show(done / (done + left), f"{done:,} of {done + left:,} scopes")
    if not counts:
        print(f"no scope is due for {arguments.cadence}", file=sys.stderr)
        return 0
    if not arguments.json:
        states = ", ".join(f"{count:,} {status}" for status, count in counts.items())
        dry = " would be" if arguments.dry_run else ""
        seconds = time.monotonic() - began
        print(
            f"{sum(counts.values()):,} scopes: {states}; {changed:,} rows{dry} changed, {seconds:.1f} s",
            file=sys.stderr,
        )
        for line in spending_lines(spent):
            print(line, file=sys.stderr)
    return 0 if set(counts) == {"done"} else 1


class Progress:
    """A bar on standard error; nothing where that is no terminal."""

    def __init__(self) -> None:
        self._on = sys.stderr.isatty()

    def __call__(self, share: float, text: str) -> None:
        """Draw it."""
        if self._on:
            print(f"\r\x1b[K[{bar(share, 32)}] {text}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take it away, so that a line may be printed."""
        if self._on:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


@contextmanager
def progress() -> Iterator[Progress]:
    """Give a bar, and take it away at the end."""
    shown = Progress()
    try:
        yield shown
    finally:
        shown.clear()


def _show(report: ConsolidationReport, as_json: bool, *, short: bool = False) -> None:
    if as_json:
        print(json.dumps(report.as_dict(), ensure_ascii=False), flush=True)
        return
    dry = ", dry run: nothing was changed" if report.dry_run else ""
    changed = "would change" if report.dry_run else "changed"
    print(
        f"{report.scope}: {report.cadence} {report.status}{dry}; {report.rows_read:,} rows read, {report.changed:,}"
        f" {changed}",
        flush=True,
    )
    for note in report.notes:
        print(f"  {note}")
    if report.status == "busy":
        print("  another worker has the scope; the lease of one that died runs out within a minute")
    if short:
        for name, reason in report.errors.items():
            print(f"  {name} failed: {reason}")
        return
    if report.phases:
        asked = bool(report.spending)
        head = ("phase", "", "read", changed, "ms", *(("calls", "cost") if asked else ()))
        rows: list[tuple[str, ...]] = [head]
        for phase in report.phases:
            spent = (f"{phase.model_calls or ''}", dollars(phase.cost) if phase.spending else "") if asked else ()
            rows.append(
                (phase.name, phase.status, f"{phase.rows_read:,}", f"{phase.changed:,}", f"{phase.milliseconds:,.1f}",
                 *spent)
            )  # fmt: skip
        print("\n".join(f"  {line}" for line in table(rows, right=tuple(range(2, len(head))))))
    for phase in report.phases:
        notes = [*((phase.reason,) if phase.reason else ()), *phase.notes]
        for note in notes[:NOTES]:
            print(f"  {phase.name}: {note}")
        if len(notes) > NOTES:
            print(f"  {phase.name}: and {len(notes) - NOTES} more (--json shows all)")
    for line in spending_lines(report.spending):
        print(f"  {line}")


def spending_lines(spent: Any) -> list[str]:
    """What was spent, a line a model."""
    from wakeful.consolidation.report import summed

    lines = []
    for each in summed(spent):
        failed = f" ({each.failed:,} failed)" if each.failed else ""
        about = "about " if each.estimated else ""
        lines.append(
            f"{each.model}: {each.calls:,} calls{failed}, {about}{each.input_tokens:,} tokens in and"
            f" {each.output_tokens:,} out, {dollars(each.cost)}"
        )
    return lines


def dollars(cost: float | None) -> str:
    """A cost in US dollars, to a hundredth of a cent."""
    return "price not known" if cost is None else f"${cost:.4f}"


def run_schedule(arguments: argparse.Namespace) -> int:
    """List what is due, or enqueue it."""
    from wakeful.engine.worker import Tender, enqueue_due
    from wakeful.stores import open_store

    url = place(arguments)
    if arguments.enqueue:
        count, jobs = enqueue_due(url, arguments.cadence)
        print(
            json.dumps({"enqueued": count, "jobs": jobs}) if arguments.json else f"{count} scopes given to the workers"
        )
        return 0
    must_exist(url)
    store = open_store(url)
    try:
        waiting = Tender(store).due(arguments.cadence)
    finally:
        store.close()
    for each in waiting:
        last = each.last.isoformat() if each.last else None
        row = {"scope": each.scope.path, "cadence": arguments.cadence, "last": last}
        print(json.dumps(row, ensure_ascii=False) if arguments.json else f"{each.scope.path}\t{last or 'never'}")
    if not waiting and not arguments.json:
        print(f"no scope is due for {arguments.cadence}", file=sys.stderr)
    return 0


def run_worker(arguments: argparse.Namespace) -> int:
    """Work until stopped, or until nothing is left."""
    from wakeful.engine import worker

    jobs = worker.run_worker(
        place(arguments), concurrency=arguments.concurrency, wait=not arguments.once, model=_model(arguments)
    )
    print(json.dumps(jobs))
    return 0
