"""``wakeful nap``, ``wakeful schedule`` and ``wakeful worker``: tend memory between turns."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from wakeful.cli.opening import add_place, must_exist, place, scope_of

if TYPE_CHECKING:
    from wakeful.consolidation.report import ConsolidationReport

CADENCES = ("quick_nap", "nightly", "deep_sleep")


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    nap = commands.add_parser("nap", help="tend the memory of a scope, or of every scope that is due")
    add_place(nap)
    _add_cadence(nap)
    nap.add_argument("--all", action="store_true", help="every scope that is due, longest waiting first")
    nap.add_argument("--dry-run", action="store_true", help="report what would be done and change nothing")
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
    worker.add_argument("--concurrency", type=int, default=4, metavar="N", help="naps at the same time (default: 4)")
    worker.add_argument("--once", action="store_true", help="stop when no job is left")
    worker.set_defaults(run=run_worker)


def _add_cadence(command: argparse.ArgumentParser) -> None:
    command.add_argument("--cadence", choices=CADENCES, default="quick_nap", help="default: quick_nap")


def run_nap(arguments: argparse.Namespace) -> int:
    """Tend, and print a report; exit code 1 when a cycle did not finish."""
    from wakeful.engine.worker import Tender
    from wakeful.stores import open_store

    scope = None if arguments.all else scope_of(arguments)
    must_exist(place(arguments))
    store = open_store(place(arguments))
    good = True
    try:
        tender = Tender(store)
        if scope is not None:
            report = tender.tend(scope, arguments.cadence, dry_run=arguments.dry_run)
            _show(report, arguments.json)
            return 0 if report.status == "done" else 1
        for left, report in tender.tend_due(arguments.cadence, dry_run=arguments.dry_run):
            _show(report, arguments.json, short=True)
            good = good and report.status == "done"
            if sys.stderr.isatty():
                print(f"\r{left} scopes left \r", end="", file=sys.stderr, flush=True)
    finally:
        store.close()
    return 0 if good else 1


def _show(report: ConsolidationReport, as_json: bool, *, short: bool = False) -> None:
    if as_json:
        print(json.dumps(report.as_dict(), ensure_ascii=False))
        return
    dry = ", dry run" if report.dry_run else ""
    print(
        f"{report.scope}: {report.cadence} {report.status}{dry}, {report.rows_read} rows read, {report.changed} changed"
    )
    if short:
        return
    for phase in report.phases:
        reason = f"  {phase.reason}" if phase.reason else ""
        print(
            f"  {phase.name:<18} {phase.status:<8} {phase.rows_read:>7} read {phase.changed:>7} changed"
            f" {phase.milliseconds:>8.1f} ms{reason}"
        )
        for note in phase.notes[:5]:
            print(f"    {note}")


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

    jobs = worker.run_worker(place(arguments), concurrency=arguments.concurrency, wait=not arguments.once)
    print(json.dumps(jobs))
    return 0
